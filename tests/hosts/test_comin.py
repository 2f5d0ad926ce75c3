# SPDX-License-Identifier: MIT
"""The plug-in of hosts/comin in ComIn's own hosts, on one rank and on two. `make test-hosts` runs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from comin_build import build
from hosts_run import COMIN, ROOT

pytestmark = pytest.mark.skipif(
    not COMIN, reason="FTN_PYTORCH_COMIN_SOURCE names no checkout of ComIn: make test-hosts"
)

EXAMPLE = ROOT / "hosts" / "comin" / "example"
OURS = ("ftn_pytorch", "plugin")

# Learns a function of place alone, so that a run of six steps is two of three.
GOES_ON = """
    import torch
    import ftn_pytorch
    from ftn_pytorch import average_gradients
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1).double()
    optimizer = torch.optim.Adam(net.parameters())
    steps = 0
    ftn_pytorch_shared = ["net", "optimizer"]
    def ftn_pytorch_comin():
        return ["EP_ATM_TIMELOOP_START learn"]
    def learn():
        global steps
        here = ftn_pytorch.host()
        x = torch.stack([torch.from_numpy(here[name]) for name in ("clon", "clat")], -1)
        x = x[torch.from_numpy(here["owned"])]
        optimizer.zero_grad()
        (net(x) - x.sin().sum(1, keepdim=True)).square().mean().backward()
        average_gradients(net, samples=len(x))
        optimizer.step()
        steps += 1
        print(f"step {steps} {[p.tolist() for p in net.parameters()]}", flush=True)
"""


TELLS = """
    plain = apply
    def apply(temp):
        out = plain(temp)
        print(f"the script wrote on rank {rank()} {out.min():.16E} {out.max():.16E} there", flush=True)
        return out
"""
LEARN = "def learn(*fields):\n    return fields\n"
TRACERS = "def ftn_pytorch_comin():\n    return ['add one tracer', 'add two tracer']\n"
FAILS = """
    def ftn_pytorch_comin():
        return ["EP_ATM_PHYSICS_BEFORE learn temp"]
    def learn(temp):
        return 1 / 0
"""


@pytest.fixture(scope="module", params=COMIN, ids=lambda source: source.name)
def hosts(request):
    folder = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"])
    return build(request.param, folder / "prefix", folder / "comin" / request.param.name)


@pytest.fixture(scope="module")
def grids(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grids")
    subprocess.run([sys.executable, EXAMPLE / "make_grids.py", folder], check=True)
    return folder


class Run:
    """Runs of hosts in a folder."""

    def __init__(self, hosts, folder, grids):
        self.hosts, self.folder, self.grids = hosts, folder, grids

    def script(self, name, text):
        (self.folder / name).write_text(textwrap.dedent(text))

    def __call__(self, host, ranks, entries, **options):
        return self.hosts.start(host, ranks, self.folder, entries, self.grids, **options)


@pytest.fixture
def run(hosts, grids, tmp_path):
    return Run(hosts, tmp_path, grids)


@pytest.fixture
def example(run):
    shutil.copy(EXAMPLE / "closure.py", run.folder)
    return run


def ended(output):
    """Losses by rank and time, and the sum of weights of each rank."""
    losses = {}
    for time, rank, loss in re.findall(r"(\d{4}-\S{14}): rank (\d) of \d, \d+ cells, loss (\d\.\d\de.\d\d)", output):
        losses.setdefault(rank, {})[time] = float(loss)
    return losses, dict(re.findall(r"rank (\d): losses of 3 steps, sum of weights (\d\.\d{12})", output))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_script_trains_in_the_host_and_the_host_reads_its_tracer(example, ranks):
    example.script("closure.py", (EXAMPLE / "closure.py").read_text() + textwrap.dedent(TELLS))
    output, _ = example("restarting", ranks, [(*OURS, "closure.py"), ("recorder", "var_recorder", "qnn")])
    losses, weights = ended(output)
    assert len(losses) == len(weights) == ranks and len(set(weights.values())) == 1, output
    assert all(max(by_time.values()) < 1e-3 and len(by_time) == 3 for by_time in losses.values())
    assert set(re.findall(r"of \d, (\d+) cells", output)) == {str(160 // ranks)}, "the padded block is not owned"
    for rank in range(ranks):
        written = re.findall(rf"the script wrote on rank {rank} (\S+) (\S+)", output)[-1]
        read = example.hosts.read_back(output, example.folder, rank)
        assert read == [*map(float, written)] and len(set(read)) == 2, output


def test_the_minimal_host_is_enough(example):
    _, weights = ended(example("minimal", 2, [(*OURS, "closure.py")])[0])
    assert len(weights) == 2 and len(set(weights.values())) == 1


def test_a_replay_trains_as_the_host(example):
    recorded = [("run", "run_recorder", ""), ("var", "var_recorder", "temp")]
    live, _ = example("minimal", 2, [*recorded, (*OURS, "closure.py")])
    replayed, _ = example("replay", 2, [(*OURS, "closure.py")])
    losses, weights = ended(replayed)
    assert len(weights) == 2 and len(set(weights.values())) == 1, replayed
    assert losses.keys() == ended(live)[0].keys() and all(min(each.values()) < 1e-3 for each in losses.values())


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_restart_goes_on_as_if_there_had_been_none(run, ranks):
    run.script("learns.py", GOES_ON)
    options = "learns.py checkpoints=restart/ml"
    first = [run("restarting", ranks, [(*OURS, options)])[0]]
    first.append(run("restarting", ranks, [(*OURS, options)], restart=True)[0])
    steps = re.findall(r"step (\d+) (\[.*?\]\])", "".join(first))
    assert sorted(int(step) for step, _ in steps) == sorted([*range(1, 7)] * ranks), steps
    run.script(
        "learns.py", GOES_ON.replace("def learn():", "def learn():\n        once()\n        once()\n    def once():")
    )
    whole = run("restarting", ranks, [(*OURS, "learns.py")])[0]
    assert {*re.findall(r"step (\d+) (\[.*?\]\])", whole)} == {*steps} and len({*steps}) == 6


def test_a_restart_without_a_checkpoint_is_told(run):
    run.script("learns.py", GOES_ON)
    output, errors = run("restarting", 1, [(*OURS, "learns.py checkpoints=none")], restart=True)
    assert "ICON restarts, and learns.py begins anew" in errors and "step 3" in output


def test_an_exception_ends_the_host_with_its_traceback(run):
    run.script("fails.py", FAILS)
    _, errors = run("minimal", 1, [("mine", "plugin", "fails.py")], expect=1)
    assert "comin_ftn_pytorch (mine)" in errors and "ZeroDivisionError" in errors and "return 1 / 0" in errors


@pytest.mark.parametrize(
    ("options", "lines", "text"),
    [
        ("", [], "options must name a script"),
        ("none.py", [], "none.py"),
        ("script.py checkpoint=here", [], 'the word "checkpoint=here". Valid are checkpoints=FOLDER'),
        ("script.py", ["EP_NOWHERE learn"], "no entry point EP_NOWHERE"),
        ("script.py", ["EP_SECONDARY_CONSTRUCTOR learn"], "no entry point EP_SECONDARY_CONSTRUCTOR"),
        ("script.py", ["EP_DESTRUCTOR learn"], "no entry point EP_DESTRUCTOR"),
        ("script.py", ["EP_ATM_PHYSICS_BEFORE forgets temp"], "script.py defines no forgets"),
        ("script.py", ["EP_ATM_PHYSICS_BEFORE learn tmp"], "learn: ICON has no field tmp in domain 1"),
        ("script.py", ["EP_ATM_PHYSICS_BEFORE learn temp@gpu"], "temp@gpu: write NAME or NAME@device"),
        ("script.py", ["EP_ATM_PHYSICS_BEFORE learn temp@device"], "or does not run on a GPU"),
        ("script.py", [f"EP_ATM_PHYSICS_BEFORE learn {'x' * 90}"], "ICON has no field xxx"),
        (
            "script.py",
            ["EP_ATM_PHYSICS_BEFORE learn temp", "EP_ATM_PHYSICS_BEFORE learn > temp@device"],
            "learn: temp and temp@device at one entry point",
        ),
        ("script.py", ["EP_ATM_PHYSICS_BEFORE learn temp > u > v"], "there are two signs >"),
        ("script.py", ["learn"], 'write "add NAME"'),
        ("script.py", ["add new tracer unit=1"], 'the word "unit=1": valid are 2d, tracer, '),
        ("script.py", ["add new tracer tracer_hadv=many"], 'the word "tracer_hadv=many"'),
        ("script.py", ["add new tracer=1"], 'the word "tracer=1"'),
        ("script.py", [7], "result 1"),
    ],
)
def test_what_is_not_understood_ends_the_host(run, options, lines, text):
    run.script("script.py", f"def ftn_pytorch_comin():\n    return {lines}\n" + LEARN)
    _, errors = run("minimal", 1, [(*OURS, options)], expect=1)
    assert text in errors


def test_a_script_without_lines_is_refused(run):
    run.script("script.py", "net = 1\n")
    _, errors = run("minimal", 1, [(*OURS, "script.py")], expect=1)
    assert "script.py defines no ftn_pytorch_comin" in errors


TOLD = """
    import ftn_pytorch
    at_load = ftn_pytorch.host()
    def ftn_pytorch_comin():
        return ["EP_ATM_ADVECTION_BEFORE look temp pres_sfc > pres_sfc", "EP_ATM_PHYSICS_BEFORE after pres_sfc"]
    def look(temp, pres_sfc):
        here = ftn_pytorch.host()
        assert {*at_load} == {*here}
        shapes = [tuple(here[name].shape) for name in ("clon", "clat", "area", "owned")]
        print("told", here["time"], here["entry_point"], here["domain"], here["domains"], here["dt"], here["restart"],
              here["run_start"], here["run_stop"], here["options"], {*shapes} == {tuple(pres_sfc.shape)},
              here["hhl"].shape[1] == temp.shape[1] + 1, len(here["glb_index"]), int(here["owned"].sum()), flush=True)
        return pres_sfc + 7
    def after(pres_sfc):
        print("surface", pres_sfc.ndim, float(pres_sfc.flatten()[0]), flush=True)
"""


def test_a_script_is_told_time_domain_and_grid(run):
    run.script("told.py", TOLD)
    output, _ = run("minimal", 1, [(*OURS, "told.py dtype=keep threads -- speed = 3")])
    told = re.findall("told (.*)", output)
    begin = (
        "1950-01-01T00:00:00 EP_ATM_ADVECTION_BEFORE 1 1 600.0 False 1950-01-01T00:00:00 1950-01-01T00:30:00 speed = 3"
    )
    assert told[0] == begin + " True True 160 160" and len(told) == 3
    assert re.findall("surface (.*)", output) == ["2 57.0", "2 57.0", "2 64.0"]


NESTED = """
    import ftn_pytorch
    def ftn_pytorch_comin():
        return ["EP_ATM_PHYSICS_BEFORE inside temp > temp", "EP_ATM_TIMELOOP_END outside temp"]
    def inside(temp):
        here = ftn_pytorch.host()
        print("inside", here["domain"], here["domains"], here["dt"], float(temp.flatten()[0]), flush=True)
        return temp + 100 * here["domain"]
    def outside(temp):
        here = ftn_pytorch.host()
        print("outside", here["domain"], float(temp.flatten()[0]), flush=True)
"""


def test_each_domain_has_its_fields(run):
    run.script("nested.py", NESTED)
    output, _ = run("nested", 1, [(*OURS, "nested.py dtype=keep")])
    inside, outside = (re.findall(rf"{word} (.*)", output) for word in ("inside", "outside"))
    assert inside[0] == "1 2 600.0 42.0" and [line[:9] for line in inside] == ["1 2 600.0", "2 2 300.0"] * 3
    assert [line.split()[0] for line in outside] == ["1", "2"] * 3
    # in the second one the host leaves temp as the script returns it
    got = [float(line.split()[-1]) for line in inside[1::2]]
    assert [float(line.split()[-1]) for line in outside[1::2]] == [value + 200 for value in got] and min(got) > 1000


CHECKPOINTS = """
    steps = 0
    ftn_pytorch_state = ["steps"]
    def ftn_pytorch_comin():
        return ["EP_ATM_TIMELOOP_START learn", "EP_ATM_CHECKPOINT_BEFORE ready temp"]
    def learn():
        global steps
        steps += 1
    def ready(temp):
        global steps
        steps += 100
        print("ready", steps, flush=True)
"""


def test_a_line_at_the_checkpoint_is_called_before_it_is_written(run):
    run.script("script.py", CHECKPOINTS)
    first, _ = run("restarting", 1, [(*OURS, "script.py checkpoints=here")])
    second, _ = run("restarting", 1, [(*OURS, "script.py checkpoints=here")], restart=True)
    assert re.findall("ready (.*)", first) == ["103"] and re.findall("ready (.*)", second) == ["206"]


COPIES = """
    import sys
    def ftn_pytorch_comin():
        return ["EP_ATM_PHYSICS_BEFORE learn temp pres_sfc", "EP_ATM_PHYSICS_BEFORE change temp > temp u"]
    def learn(temp, pres_sfc):
        print("called", file=sys.stderr, flush=True)
    def change(temp):
        return temp, temp
"""


def test_a_host_on_a_gpu_is_told_what_is_read_and_written(run):
    run.script("copies.py", COPIES)
    _, errors = run("accelerated", 1, [(*OURS, "copies.py")])
    parts = re.split("^called$", errors, flags=re.MULTILINE)
    before, *after = [{line.rstrip() for line in re.findall("copied: (.*)", part)} for part in parts]
    assert before >= {"temp to the host", "pres_sfc to the host"}
    assert len(after) == 3 and after[-1] == {"temp to the GPU", "u to the GPU"}


KINDS = """
    def ftn_pytorch_comin():
        return [f"{each} look single kind > single kind" for each in ("EP_ATM_PHYSICS_BEFORE", "EP_ATM_TIMELOOP_END")]
    def look(single, kind):
        print("kinds", single.dtype, kind.dtype, single.ndim, kind.ndim, single.mean(), kind.max(), flush=True)
        return single + 0.25, kind + 7
"""


def test_fields_of_other_types(run):
    if not run.hosts.is_replay:
        pytest.skip("ComIn 0.2 has fields of double precision only")
    run.script("kinds.py", KINDS)
    output, _ = run("minimal", 1, [(*OURS, "kinds.py dtype=keep")])
    found = re.findall("kinds (.*)", output)
    assert found[:2] == ["float32 int32 3 2 0.5 3", "float32 int32 3 2 0.75 10"]


ADDS = """
    def ftn_pytorch_comin():
        return [
            "add flux 2d restart units=W/m2 long_name=heat_flux",
            "add dust tracer tracer_turb tracer_hadv=22",
            "EP_ATM_PHYSICS_BEFORE fill temp > flux dust",
        ]
    def fill(temp):
        return temp[:, 0] + 100, temp * 0 + 5
"""


def test_new_fields_have_their_metadata(run):
    run.script("adds.py", ADDS)
    run("minimal", 1, [(*OURS, "adds.py dtype=keep"), ("recorder", "var_recorder", "flux,dust")])
    command = ["ncdump", run.folder / "vars_0.nc"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace("\\", "")
    sizes = dict(re.findall(r"(\w+_dim_\d) = (\d+) ;", text))
    assert [sizes[f"flux_dim_{axis}"] for axis in (1, 2, 3)] == ["8", "20", "1"]
    assert [sizes[f"dust_dim_{axis}"] for axis in (1, 2, 3)] == ["8", "10", "20"]
    first = {name: values.split(",")[0].strip() for name, values in re.findall(r"(flux|dust) =\s+([^;]*);", text)}
    assert first == {"flux": "142", "dust": "5"}
    if run.hosts.is_replay:  # the minimal host keeps other metadata
        assert 'flux:metadata::units = "W/m2"' in text and 'flux:metadata::long_name = "heat_flux"' in text
        assert "flux:metadata::restart = 1b" in text and "dust:metadata::tracer_turb = 1b" in text
        assert "dust:metadata::tracer_hadv = 22" in text and "flux:metadata::tracer = 0b" in text


def test_a_container_is_refused(run):
    name = "container" if run.hosts.is_replay else "tracer"
    run.script("script.py", f"def ftn_pytorch_comin():\n    return ['EP_ATM_PHYSICS_BEFORE learn {name}']\n" + LEARN)
    entries = [(*OURS, "script.py")]
    if run.hosts.is_replay:
        run.script("tracers.py", TRACERS)
        entries.append(("two", "plugin", "tracers.py"))
    _, errors = run("minimal", 1, entries, expect=1)
    assert f"learn: {name} is a container of fields: name one of them" in errors


def test_several_scripts_have_options_of_their_own(run):
    text = "import ftn_pytorch\ndef ftn_pytorch_comin():\n    return ['EP_ATM_PHYSICS_BEFORE say']\ndef say():\n"
    text += "    print(ftn_pytorch.host()['options'], flush=True)\n"
    run.script("one.py", text)
    run.script("two.py", text)
    output, _ = run("minimal", 1, [("a", "plugin", "one.py -- first"), ("b", "plugin", "two.py -- second")])
    assert re.findall("first|second", output) == ["first", "second"] * 3


BESIDE = """
    import sys
    try:
        import comin
        @comin.register_callback(comin.EP_ATM_PHYSICS_BEFORE)
        def physics():
            print("the adapter at", comin.current_get_datetime(), flush=True)
    except ImportError:
        print("the adapter runs without its module", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_python_adapter_before_the_plug_in(example, ranks):
    example.script("beside.py", BESIDE)
    output, _ = example("minimal", ranks, [("adapter", "adapter", "./beside.py"), (*OURS, "closure.py")])
    losses, _ = ended(output)
    assert len(losses) == ranks and all(max(each.values()) < 1e-3 for each in losses.values())
    assert output.count("the adapter at") == 3 * ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_python_adapter_after_the_plug_in(example, ranks):
    example.script("beside.py", BESIDE)
    output, _ = example("minimal", ranks, [(*OURS, "closure.py"), ("adapter", "adapter", "./beside.py")])
    _, weights = ended(output)
    assert len(weights) == ranks and len(set(weights.values())) == 1
    assert output.count("the adapter runs without its module") == ranks
