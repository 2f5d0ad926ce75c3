# SPDX-License-Identifier: MIT
"""Ways in which code writes to what it holds, by other names and through others: kept bit for bit, or refused."""

import pytest

import checkpoint_more_ways
import checkpoint_ways
from restarting import run

KEPT = {**checkpoint_ways.KEPT, **checkpoint_more_ways.KEPT}

# name: (what is named, script)
REFUSED = {
    "generator fn": (
        "g",
        """
def gen():
    n=0
    while True:
        n+=1
        yield float(n)
g=gen()
def step(): return next(g)
""",
    ),
    "send": (
        "g",
        """
def gen():
    n=0
    while True:
        n+=1
        yield float(n)
g=gen()
def step(): return g.send(None)
""",
    ),
    "cycle": (
        "c",
        """
import itertools
c=itertools.cycle([1.,2.,3.])
def step(): return next(c)
""",
    ),
    "enumerate": (
        "c",
        """
c=enumerate([1.,2.,3.]*9)
def step(): return float(next(c)[0])
""",
    ),
    "range iter field": (
        "OBJ.it",
        """
class A:
    def __init__(self): self.it=iter(range(99))
    def __next__(self): return next(self.it)
OBJ=A()
def step(): return float(next(OBJ))
""",
    ),
    "contextvar": (
        "v",
        """
import contextvars
v=contextvars.ContextVar('v',default=0.0)
def step():
    v.set(v.get()+1)
    return v.get()
""",
    ),
    "threading local": (
        "l",
        """
import threading
l=threading.local()
l.n=0
def step():
    l.n+=1
    return float(l.n)
""",
    ),
    "weakref": (
        "W.data",
        """
import weakref
class A: pass
k=A()
W=weakref.WeakKeyDictionary()
W[k]=0
def step():
    W[k]+=1
    return float(W[k])
""",
    ),
    "array": (
        "a",
        """
import array
a=array.array('d',[0.0])
def step():
    a[0]+=1
    return a[0]
""",
    ),
    "StringIO": (
        "s",
        """
import io
s=io.StringIO()
def step():
    s.write('x')
    return float(len(s.getvalue()))
""",
    ),
    "tensor attr": (
        "w.mult",
        """
import torch
w=torch.ones(1,requires_grad=True)
w.mult=1.0
opt=torch.optim.SGD([w],0.1)
def step():
    w.mult*=0.5
    return w.mult
""",
    ),
}


@pytest.mark.parametrize("way", KEPT)
def test_what_is_written_to_in_any_way_goes_on_bit_for_bit(way, load, tmp_path):
    place = str(tmp_path / "state")
    whole = run(load, KEPT[way], 7)
    assert run(load, KEPT[way], 3, place) + run(load, KEPT[way], 4, place, restores=True) == whole
    assert len(set(whole)) > 1


@pytest.mark.parametrize("way", REFUSED)
def test_what_is_written_to_in_any_way_is_refused_where_it_cannot_be_kept(way, load, tmp_path, fails):
    path, text = REFUSED[way]
    with fails("RESULT_TYPE", path, "model.py:", "ftn_pytorch_transient"):
        run(load, text, 2, str(tmp_path / "state"))
