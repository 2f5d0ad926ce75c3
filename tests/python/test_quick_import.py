# SPDX-License-Identifier: MIT
"""inspect while torch is first imported: the same answers, without a look at the files of all modules."""

import inspect
import linecache
import sys
import threading

import pytest

import program
from ftn_pytorch.system import quick_import


@pytest.fixture
def first(monkeypatch):
    """As before the first import of torch."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delenv("FTN_PYTORCH_PLAIN_IMPORT", raising=False)
    program.on_start({"adopted": "0"})


def frame_of(name):
    code = "import sys\nframe = sys._getframe()"
    names = {"__name__": name}
    exec(code, names)
    return names["frame"]


def test_answers_are_the_same_and_no_file_is_looked_at(first, monkeypatch):
    asked = inspect.getmodule
    things = [frame_of("json"), frame_of("no.such"), inspect, inspect.getmodule, pytest.fixture, 3]
    import json

    with quick_import.modules_of_frames_told():
        assert inspect.getmodule is not asked
        found = [inspect.getmodule(thing) for thing in things[1:]]
        with monkeypatch.context() as without:
            without.setattr("os.path.realpath", None)
            assert inspect.getmodule(things[0]) is json
    assert inspect.getmodule is asked
    assert found == [asked(thing) for thing in things[1:]]


def test_it_ends_with_a_failure(first):
    asked = inspect.getmodule
    with pytest.raises(KeyError), quick_import.modules_of_frames_told():
        raise KeyError
    assert inspect.getmodule is asked


def test_loads_of_two_threads_leave_it_as_it_was(first):
    """Also where the one that began first ends first."""
    asked, begun, ended = inspect.getmodule, threading.Event(), threading.Event()

    def other():
        with quick_import.modules_of_frames_told():
            begun.set()
            ended.wait(60)

    thread = threading.Thread(target=other)
    with quick_import.modules_of_frames_told():
        thread.start()
        assert begun.wait(60)
    ended.set()
    thread.join()
    assert inspect.getmodule is asked


def test_another_thread_sees_that_a_file_has_changed(first, tmp_path):
    script, texts = tmp_path / "script.py", ["one = 1\n", "two = 22\n"]

    def look(place):
        script.write_text(texts[place])
        linecache.checkcache(str(script))
        seen.append(linecache.getline(str(script), 1))

    seen: list[str] = []
    with quick_import.modules_of_frames_told():
        for place in range(2):
            thread = threading.Thread(target=look, args=(place,))
            thread.start()
            thread.join()
    assert seen == texts


def test_what_somebody_else_puts_there_stays(first, monkeypatch):
    monkeypatch.setattr(inspect, "getmodule", inspect.getmodule)
    with quick_import.modules_of_frames_told():
        inspect.getmodule = other = lambda thing, _filename=None: None
    assert inspect.getmodule is other


@pytest.mark.parametrize("why", ["torch is there", "adopted", "variable"])
def test_inspect_stays_as_it_is(first, monkeypatch, why):
    if why == "torch is there":
        monkeypatch.setitem(sys.modules, "torch", sys)
    elif why == "adopted":
        program.on_start({"adopted": "1"})
    else:
        monkeypatch.setenv("FTN_PYTORCH_PLAIN_IMPORT", "1")
    asked = inspect.getmodule
    with quick_import.modules_of_frames_told():
        assert inspect.getmodule is asked
    program.on_start({"adopted": "0"})
