# SPDX-License-Identifier: MIT
"""Draw a step of the model in a trace of torch.profiler, the one of median length, and its operators."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

FORTRAN = "Fortran"
FORWARD, TRAIN = "closure.ftn_pytorch_forward", "closure.ftn_pytorch_train"
COLOURS = {FORTRAN: "#999999", FORWARD: "#56B4E9", TRAIN: "#0072B2", "optimizer": "#CC79A7", "operators": "#E69F00"}
LANES = ("program", "optimizer", "operators")
SHOWN = 10  # operators


def events_of(folder):
    """Events of the newest trace with a duration, as (name, category, thread, begin, end) in ms."""
    trace = max(folder.glob("*.pt.trace.json"), key=lambda path: path.stat().st_mtime)
    found = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("ph") == "X"]
    begin = min(event["ts"] for event in found)
    return [
        (each["name"], each["cat"], each["tid"], (each["ts"] - begin) / 1e3, (each["ts"] - begin + each["dur"]) / 1e3)
        for each in found
        if each.get("cat") in ("cpu_op", "user_annotation")
    ]


def outermost(events):
    """Events of a thread that lie in no other of them."""
    found = []
    for event in sorted(events, key=lambda event: (event[3], -event[4])):
        if not found or event[3] >= found[-1][4]:
            found.append(event)
    return found


def own_times(operators):
    """Time in ms of each operator without those inside it, by name."""
    times, open_events = {}, []
    for event in sorted(operators, key=lambda event: (event[3], -event[4])):
        while open_events and event[3] >= open_events[-1][4]:
            open_events.pop()
        times[event[0]] = times.get(event[0], 0) + event[4] - event[3]
        if open_events:
            times[open_events[-1][0]] -= event[4] - event[3]
        open_events.append(event)
    return times


def draw_step(axes, events, first, end):
    def bars(found, lane, colour):
        spans = [(each[3] - first, each[4] - each[3]) for each in found]
        axes.broken_barh(spans, (LANES.index(lane) + 0.1, 0.8), color=colour, ec="white", lw=0.3)

    bars([(None, None, None, first, end)], "program", COLOURS[FORTRAN])
    for name in (FORWARD, TRAIN):
        bars([each for each in events if each[0] == name], "program", COLOURS[name])
    bars([each for each in events if each[0].startswith("Optimizer.")], "optimizer", COLOURS["optimizer"])
    bars(outermost([each for each in events if each[1] == "cpu_op"]), "operators", COLOURS["operators"])
    axes.set(xlim=(0, end - first), ylim=(len(LANES), 0), xlabel="time (ms)")
    axes.set_yticks([lane + 0.5 for lane in range(len(LANES))], LANES)
    axes.set_title("A: one step of the model", loc="left", pad=24)
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in (FORTRAN, FORWARD, TRAIN)]
    names = (FORTRAN, FORWARD, TRAIN)
    axes.legend(handles, names, loc="lower center", bbox_to_anchor=(0.4, 0.98), ncols=3, frameon=False, columnspacing=1)
    axes.spines[["top", "right"]].set_visible(False)


def draw_operators(axes, events):
    times = own_times([each for each in events if each[1] == "cpu_op"])
    largest = sorted(times.items(), key=lambda item: item[1])[-SHOWN:]
    names = [name.removeprefix("autograd::engine::evaluate_function: ") for name, _ in largest]
    axes.barh(names, [time for _, time in largest], color=COLOURS["operators"])
    axes.set(xlabel="time of its own in this step (ms)")
    axes.set_title("B: its operators", loc="left", pad=24)
    axes.spines[["top", "right"]].set_visible(False)


def main(folder):
    events = events_of(folder)
    ends = sorted(event[4] for event in events if event[0] == TRAIN)
    steps = sorted(zip(ends, ends[1:]), key=lambda step: step[1] - step[0])
    first, end = steps[len(steps) // 2]
    thread = next(event[2] for event in events if event[0] == TRAIN)
    inside = [event for event in events if event[2] == thread and first <= event[3] and event[4] <= end]
    plt.rcParams.update({"font.size": 11, "svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4), width_ratios=(3, 2), layout="constrained")
    draw_step(left, inside, first, end)
    draw_operators(right, inside)
    figure.savefig(folder / "profile.png", dpi=110)
    figure.savefig(folder / "profile.svg", metadata={"Date": None})


main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
