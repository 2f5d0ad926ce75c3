# SPDX-License-Identifier: MIT
"""Rates that NumPy has made are numbers like any others, in checkpoints and in saved recordings."""

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from ftn_pytorch import load_recording, recorded, save_recording  # noqa: E402
from ftn_pytorch.checkpoint import Checkpoint  # noqa: E402
from ftn_pytorch.values import optimizer_settings, plain  # noqa: E402

X = torch.ones(2, 3)


def cosine(optimizer):
    optimizer.param_groups[0]["lr"] = 0.1 * numpy.cos(0.3)


def interpolated(optimizer):
    optimizer.param_groups[0]["lr"] = numpy.interp(3, [0, 10], [0.1, 0.01])


def scheduled(optimizer):
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda number: numpy.exp(-number - 1.0))


def pair(optimizer):
    optimizer.param_groups[0]["betas"] = tuple(numpy.linspace(0.8, 0.9, 2))


def short(optimizer):
    optimizer.param_groups[0]["weight_decay"] = numpy.float32(0.01)


def whole(optimizer):
    optimizer.param_groups[0]["lr"] = numpy.int64(1)


WAYS = [cosine, interpolated, scheduled, pair, short, whole]


def made(change=lambda optimizer: None):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1, fused=True)
    change(optimizer)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return net, optimizer, step


def numbers_of(optimizer):
    return {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}


@pytest.mark.parametrize("change", WAYS, ids=lambda change: change.__name__)
def test_a_checkpoint_is_restored(change, tmp_path):
    net, optimizer, step = made(change)
    step(X)
    Checkpoint(net=net, optimizer=optimizer).save(str(tmp_path / "a.ckpt"))
    other, again, further = made()
    Checkpoint(net=other, optimizer=again).restore(str(tmp_path / "a.ckpt"))
    assert numbers_of(again) == numbers_of(optimizer)
    assert [step(X).item() for _ in range(3)] == [further(X).item() for _ in range(3)]


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("change", WAYS[:4], ids=lambda change: change.__name__)
def test_a_recording_is_loaded(change, tmp_path):
    net, optimizer, step = made(change)
    step = recorded(step)
    while not step.recording.is_ready:
        step(X)
    save_recording(str(tmp_path / "a.ftr"), {"step": step}, {"net": net, "optimizer": optimizer})
    loaded = load_recording(str(tmp_path / "a.ftr"))
    assert [loaded.call("step", X).item() for _ in range(3)] == [step(X).item() for _ in range(3)]


@pytest.mark.usefixtures("extension")
def test_numbers_in_a_recording(tmp_path):
    scale, mode = numpy.float64(0.5), type("Mode", (int,), {})(2)
    step = recorded(lambda x: {"y": (x * scale).sum(mode - 1), "scale": scale, "mode": mode})
    while not step.recording.is_ready:
        step(X)
    save_recording(str(tmp_path / "a.ftr"), {"step": step}, {"net": torch.nn.Linear(1, 1)})
    found = load_recording(str(tmp_path / "a.ftr")).call("step", X)
    assert torch.equal(found["y"], (X * 0.5).sum(1)) and (found["scale"], found["mode"]) == (0.5, 2)


def as_before(monkeypatch):
    """Rates go into files as they are, as in version 0.2.0."""

    def value(source):
        return source.group[source.key] if source.item < 0 else source.group[source.key][source.item]

    monkeypatch.setattr(optimizer_settings.Source, "value", value)


@pytest.mark.parametrize("change", WAYS[:4], ids=lambda change: change.__name__)
def test_a_file_that_was_written_before_is_read(change, tmp_path, monkeypatch):
    net, optimizer, step = made(change)
    step(X)
    with monkeypatch.context() as patch:
        as_before(patch)
        Checkpoint(net=net, optimizer=optimizer).save(str(tmp_path / "a.ckpt"))
    other, again, _ = made()
    Checkpoint(net=other, optimizer=again).restore(str(tmp_path / "a.ckpt"))
    assert numbers_of(again) == numbers_of(optimizer)


@pytest.mark.parametrize("number", [numpy.longdouble(0.1), numpy.str_("0.1"), numpy.datetime64("2020-01-01")])
def test_other_things_of_numpy_are_not_read(number, tmp_path, monkeypatch, fails):
    net, optimizer, _ = made(cosine)
    monkeypatch.setattr(optimizer_settings.Source, "value", lambda source: 0.1)
    from ftn_pytorch.checkpoint import content, resumption

    entries = resumption.entries
    with monkeypatch.context() as patch:
        patch.setattr(
            resumption, "entries", lambda *given: (entries(*given)[0], {**entries(*given)[1], "numbers": number})
        )
        with fails("RESULT_TYPE", "no restart could read it", "has entries that no checkpoint has"):
            Checkpoint(net=net, optimizer=optimizer).save(str(tmp_path / "a.ckpt"))
        patch.setattr(content, "check", lambda *given: None)  # a version that did not read its files
        Checkpoint(net=net, optimizer=optimizer).save(str(tmp_path / "a.ckpt"))
    with fails("FORMAT", "has entries that no checkpoint has"):
        Checkpoint(net=net, optimizer=optimizer).restore(str(tmp_path / "a.ckpt"))


def test_a_step_of_numpy(tmp_path):
    checkpoint = Checkpoint(net=torch.nn.Linear(1, 1))
    assert checkpoint.write(str(tmp_path), step=numpy.int64(5)).endswith("000005.ckpt")
    assert checkpoint.restore(str(tmp_path)) == 5


def test_plain_numbers():
    class Real(float):
        pass

    class Text(str):
        pass

    for value, kind in ((Real(0.5), float), (Text("a"), str), (numpy.bool_(True), bool), (numpy.int8(3), int)):
        assert type(plain(value)) is kind and plain(value) == value
    assert plain(X) is X and plain(None) is None and plain(True) is True
