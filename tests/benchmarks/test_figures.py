# SPDX-License-Identifier: MIT
"""Pictures of both benchmarks: files, labels of axes, styles."""

import pytest

pytest.importorskip("matplotlib")
from call_overhead import benchmark as overhead
from harness import style
from paths import figures
from paths.plan import PATHS
from run import HERE, main


def rows_of_overhead():
    ways = [way for way in overhead.STYLES if not way.startswith("kept, ")]
    return [
        {"case": f"empty {n}", "way": way, "difference_us": 0.1 * (place + 1) * (n + 1), "ratio": 2.0}
        for place, way in enumerate(ways)
        for n in (1, 3, 8)
    ]


@pytest.mark.slow
def test_pictures_are_small_and_of_the_sizes_there_are(document, tmp_path):
    more = [{**row, "size": 256} for row in document["results"]]
    trained = [{**row, "case": "train_step"} for row in document["results"]]
    written = figures.draw({**document, "results": document["results"] + more + trained}, tmp_path)
    written += overhead.draw({"rows": rows_of_overhead()}, tmp_path)
    assert [file.name for file in written] == [
        f"{name}.{suffix}"
        for name in ("mlp", "training", "cold_start", "cold_start_training", "call_overhead")
        for suffix in ("png", "svg")
    ]
    for file in written:
        assert file.read_bytes().startswith(b"\x89PNG" if file.suffix == ".png" else b"<?xml")
        assert 5_000 < file.stat().st_size < 100_000


@pytest.mark.slow
def test_the_same_results_give_the_same_picture(document, tmp_path):
    first, second = (figures.draw(document, tmp_path / name) for name in ("first", "second"))
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


@pytest.mark.parametrize(
    "lowest, highest", [(0.53, 1.03), (0.15, 1.4), (0.97, 1.02), (1, 424), (0.026, 13), (1e4, 2e6)]
)
def test_an_axis_has_several_labels_within_its_range(lowest, highest):
    figure, panel = style.plt.subplots()
    style.plain_log_axis(panel.yaxis, lowest, highest)
    low, high = panel.get_ylim()
    assert low < lowest and highest < high
    ticks = panel.yaxis.get_major_locator()()
    assert len(ticks) >= 3 and all(low <= tick <= high for tick in ticks)
    assert len(ticks) <= 12
    assert "e" not in panel.yaxis.get_major_formatter()(ticks[-1])
    style.plt.close(figure)


@pytest.mark.parametrize(
    "styles",
    [
        {path: figures.STYLES[path] for path in PATHS},
        {way: look[1:] for way, look in overhead.STYLES.items()},
    ],
)
def test_every_line_has_a_colour_and_a_marker_of_its_own(styles):
    colors, markers, _ = zip(*styles.values())
    assert len(set(colors)) == len(set(markers)) == len(styles)


@pytest.mark.slow
@pytest.mark.parametrize("results", ["gpu/results.json", "paths/compiled.json"])
def test_published_pictures_are_drawn_from_the_published_results(results, tmp_path):
    source = HERE / results
    assert main([source.parent.name, "--from", str(source), "--output", str(tmp_path), "--plot"]) == 0
    published = {file.name: file.read_bytes() for file in source.parent.glob("*.svg")}
    assert published == {file.name: file.read_bytes() for file in tmp_path.glob("*.svg")}
