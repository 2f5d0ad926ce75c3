# SPDX-License-Identifier: MIT
"""Objects stay themselves over a restart: two ways to one, what a call has made, and going back in one process."""

import os
import sys

import pytest

import program
from ftn_pytorch.system import process
from ftn_pytorch.values import graph

torch = pytest.importorskip("torch")

HEADER = """
import array, collections, contextvars, functools, io, itertools, queue, random, sqlite3, sys, threading, types
import numpy as np
import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
n = 0
"""

# name: script with step(), which is kept
KEPT = {
    "a list under two names": "a, b = [1], [2]\ndef step():\n    global b\n    b = a\n    a.append(1)\n"
    "    return sum(b)",
    "new list under two names": "a = b = None\ndef step():\n    global a, b\n    if a is None: a = b = []\n"
    "    a.append(1)\n    return len(b)",
    "swap": "one, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)\ndef step():\n    global one, other\n"
    "    one, other = other, one\n    return one.weight.item()",
    "choice": "nets = {'wet': torch.nn.Linear(1, 1), 'dry': torch.nn.Linear(1, 1)}\nnow = nets['dry']\n"
    "def step():\n    global now\n    r = now.weight.item()\n    now = nets['wet']\n    return r",
    "dict by parameter": "m = {}\ndef step():\n    v = m.setdefault(net.weight, torch.zeros(1, 2)).add_(1)\n"
    "    return v.sum().item()",
    "dict by identity": "m = {}\ndef step():\n    m[id(net)] = m.get(id(net), 0) + 1\n    return m[id(net)]",
    "array in the order of Fortran": "a = None\ndef step():\n    global a\n"
    "    if a is None: a = np.asfortranarray(np.arange(6.0).reshape(2, 3))\n    a[0, 1] += 1\n"
    "    return a.ravel('K').tolist()",
    "class of ctypes": "import ctypes\nclass Pair(ctypes.Structure): _fields_ = [('one', ctypes.c_int)]\n"
    "def step():\n    global n\n    n += 1\n    return Pair(n).one",
    "lazy network": "lazy = torch.nn.LazyLinear(1)\ndef step(): return lazy(torch.rand(2, 3)).sum().item()",
    "cycle": "class Node: pass\nroot = Node()\nroot.child = None\ndef step():\n    child = Node()\n"
    "    child.parent, child.child, root.child = root, root.child, child\n    count, each = 0, root\n"
    "    while each.child is not None:\n        each, count = each.child, count + 1\n    return count",
    "view": "base, last = torch.zeros(3, 2), torch.zeros(2)\ndef step():\n    global last\n    last = base[-1]\n"
    "    base.add_(1)\n    return last.sum().item()",
    "views of what is gone": "a = b = None\ndef step():\n    global a, b\n    if a is None:\n"
    "        x = torch.zeros(4)\n"
    "        a, b = x[:3], x[1:]\n    a += 1\n    return b.sum().item()",
    "view of an array": "base, last = np.zeros((3, 2)), np.zeros(2)\ndef step():\n    global last\n"
    "    last = base[-1]\n"
    "    base[:] += 1\n    return float(last.sum())",
    "mask": "a = np.ma.masked_greater(np.arange(4.0), 2)\ndef step():\n    a[0] += 1\n    return float(a.mean())",
    "structured array": "a = np.zeros(2, [('x', 'f8'), ('y', 'i4')])\ndef step():\n    a['x'] += 1\n    a['y'] += 2\n"
    "    return float(a['x'].sum() + a['y'].sum())",
    "groups of an optimizer": "opt = torch.optim.SGD(net.parameters(), 0.5)\ngroups = opt.param_groups\n"
    "def step():\n    groups[0]['lr'] *= 0.5\n    net.weight.grad = torch.ones(1, 2)\n    opt.step()\n"
    "    return net.weight.sum().item()",
    "rate that is a tensor": "rate = torch.tensor(0.5)\nopt = torch.optim.Adam(net.parameters(), rate)\n"
    "def step():\n    rate.mul_(0.5)\n    net.weight.grad = torch.ones(1, 2)\n    opt.step()\n"
    "    return net.weight.sum().item()",
    "weak reference": "import weakref\none, ref = torch.nn.Linear(1, 1), weakref.ref(net)\n"
    "def step():\n    global ref\n"
    "    r, ref = ref().weight.sum().item(), weakref.ref(one)\n    return r",
    "default without a name": "d = collections.defaultdict(lambda: collections.deque(maxlen=2))\ndef step():\n"
    "    d[len(d) % 2].append(len(d))\n    return sum(map(sum, d.values()))",
    "gradient of a new tensor": "w = None\ndef step():\n    global w\n"
    "    if w is None: w = torch.ones(1, requires_grad=True)\n"
    "    (w * 3).sum().backward()\n    return w.grad.item()",
    "range, slice, pattern": "import re\nr, s, p = range(1), slice(1), re.compile('a')\n"
    "def step():\n    global r, s, p\n    found = len(r), s.stop, p.findall('abAB')\n"
    "    r, s, p = range(len(r) + 1), slice(s.stop + 1), re.compile('b', re.I)\n"
    "    return found",
    "legacy generator": "g = None\ndef step():\n    global g\n    g = g or np.random.RandomState(3)\n"
    "    return g.rand()",
    "numerator": "import fractions\nf = fractions.Fraction(1, 2)\ndef step():\n    f._numerator += 2\n"
    "    return float(f)",
    "buffer that state_dict leaves out": "net.register_buffer('seen', torch.zeros(1), persistent=False)\n"
    "def step():\n    net.seen = net.seen + 1\n    return net.seen.item()",
    "class of an object": "class A:\n    n = 1\nclass B:\n    n = 2\na = A()\ndef step():\n    r = a.n\n"
    "    a.__class__ = B\n    return r",
    "function of a package": "act = torch.sin\ndef step():\n    global act\n    r = act(torch.ones(1)).item()\n"
    "    act = torch.cos\n    return r",
    "method and partial": "f = g = None\nclass A:\n    def __init__(self): self.n = 0\n"
    "    def go(self, by): self.n += by\n"
    "a = A()\ndef step():\n    global f, g\n    f, g = a.go, functools.partial(a.go, 2)\n    f(1)\n"
    "    g()\n    return a.n",
    "closure": "def make():\n    count = 0\n    def inner():\n        nonlocal count\n        count += 1\n"
    "        return count\n    return inner\nstep = make()",
    "attributes": "class A: n = 0\ndef step():\n    A.n += 1\n    step.n = getattr(step, 'n', 0) + 1\n"
    "    return A.n + step.n",
    "generators that are made late": "r = {}\ndef step():\n    if not r:\n        r.update(a=random.Random(1), "
    "b=np.random.default_rng(2), c=torch.Generator().manual_seed(3))\n"
    "    return r['a'].random() + float(r['b'].random()) + torch.rand(1, generator=r['c']).item()",
    "network bound anew": "def step():\n    global net\n    r = net.weight.sum().item()\n"
    "    net = torch.nn.Linear(2, 1)\n    return r",
    "buffers": "a, b = array.array('d', [0.0]), io.BytesIO(b'')\ndef step():\n    a.append(1.0)\n    b.write(b'x')\n"
    "    return sum(a) + len(b.getvalue())",
    "count": "c = itertools.count()\ntwice = [c, c]\ndef step(): return next(twice[0]) + next(twice[1])",
    "variable of a context": "v = contextvars.ContextVar('v', default=0)\ndef step():\n    v.set(v.get() + 1)\n"
    "    return v.get()",
    "object of a package": "c = collections.ChainMap({'n': 1})\ndef step():\n    global c\n"
    "    c = c.new_child({'n': c['n'] + 1})\n    return c['n'] * len(c.maps)",
    "what an iterator uses": "m = map(lambda x: x, itertools.repeat(net))\nnext(m)\ndef step():\n"
    "    with torch.no_grad(): net.weight += 1\n    return net.weight.sum().item()",
    "event": "e = threading.Event()\ndef step():\n    r = e.is_set()\n    e.set()\n    return float(r)",
    "file that is read": "f = open(__file__)\ndef step(): return len(f.read(7)) + f.tell()",
    "imported module": "import helpers_of_graph as helpers\ndef step():\n    helpers.n += 1\n    return helpers.go()",
    "ordered dict": "d = collections.OrderedDict(a=1, b=2)\ndef step():\n    d.move_to_end(next(iter(d)))\n"
    "    return d[next(iter(d))]",
}

# name: (script, pieces of the message)
REFUSED = {
    "numbers of an array": (
        "a, t = np.zeros(2), None\ndef step():\n    global t\n    t = torch.from_numpy(a)",
        ["t shares its numbers with a tensor, an array or a buffer"],
    ),
    "numbers of a parameter": (
        "v = None\ndef step():\n    global v\n    v = net.weight.detach().numpy()",
        ["v shares its numbers"],
    ),
    "numbers of a buffer of Python": (
        "b, v = bytearray(4), None\ndef step():\n    global v\n    v = np.frombuffer(b, np.uint8)",
        ["v shares its numbers"],
    ),
    "state of an optimizer": (
        "opt, held = torch.optim.Adam(net.parameters()), None\ndef step():\n    global held\n"
        "    net(torch.ones(1, 2)).sum().backward()\n    opt.step()\n    held = opt.state[net.weight]",
        ["held is part of the state of opt, which is made again. Copy it"],
    ),
    "optimizer with a hook": (
        "opt = None\ndef step():\n    global opt\n    opt = torch.optim.SGD(net.parameters())\n"
        "    opt.register_step_post_hook(print)",
        ["opt is of type torch.optim.sgd.SGD, made after the load"],
    ),
    "fields of an object under a name": (
        "class Own: n = 0\nown, held = Own(), None\ndef step():\n    global held\n    own.n, held = 1, vars(own)",
        ["held is the __dict__ of an object, under a name of its own since a call"],
    ),
    "bits of another generator": (
        "rng, two = np.random.default_rng(1), None\ndef step():\n    global two\n"
        "    two = np.random.Generator(rng.bit_generator)",
        ["two draws from the bit generator of another generator, since a call"],
    ),
    "class made by a call": (
        "T = None\ndef step():\n    global T\n    T = type('T', (), {})",
        ["T is the class T, and nothing finds it by this name"],
    ),
    "keys that are weak": (
        "import weakref\nd = weakref.WeakKeyDictionary()\ndef step(): d[net] = 1",
        ["is of type weakref.ReferenceType"],
    ),
    "network": (
        "best = None\ndef step():\n    global best\n    best = torch.nn.Linear(1, 1)",
        ["best is of type torch"],
    ),
    "layer": ("net = torch.nn.Sequential(net)\ndef step(): net.append(torch.nn.ReLU())", ["net.(layers)/1"]),
    "other size": ("def step(): net.weight = torch.nn.Parameter(torch.ones(1, 3))", ["net has other parameters"]),
    "group": (
        "class Own(torch.optim.SGD): pass\nopt = Own([net.weight], 0.1)\n"
        "def step(): opt.add_param_group({'params': [net.bias]})",
        ["opt has other groups"],
    ),
    "hook": ("def step(): net.register_forward_hook(lambda *a: None)", ["other hooks than after the load"]),
    "graph": (
        "loss = None\ndef step():\n    global loss\n    loss = net(torch.ones(1, 2))",
        ["loss is a tensor", "Detach"],
    ),
    "tied late": (
        "other = torch.nn.Linear(2, 1)\ndef step(): other.weight = net.weight",
        ["shares its numbers with another tensor"],
    ),
    "late module": (
        "def step():\n    import helpers_of_graph\n    helpers_of_graph.n += 1",
        ["helpers_of_graph.n is in a module that was imported after the load"],
    ),
    "cached": (
        "@functools.lru_cache(None)\ndef made(): return []\ndef step(): made().append(1)",
        ["made keeps results"],
    ),
    "spawn": ("rng = np.random.default_rng(1)\ndef step(): rng.spawn(1)", ["rng has spawned others"]),
    "queue": ("q = queue.SimpleQueue()\nq.put(1)\ndef step(): q.put(q.get() + 1)", ["q is of type _queue.SimpleQueue"]),
    "variable": (
        "v = contextvars.ContextVar('v')\ndef step(): v.set(memoryview(b'b'))",
        ["v.value is of type builtins"],
    ),
    "context": (
        "v, c = contextvars.ContextVar('v'), contextvars.copy_context()\ndef step(): c.run(v.set, 1)",
        ["c is of type _contextvars.Context"],
    ),
    "map of a lambda": (
        "m = map(lambda x: x, itertools.count())\ndef step(): next(m)",
        ["m is of type builtins.map"],
    ),
    "generator in a loop": (
        "def endless():\n    n = 0\n    while True:\n        n += 1\n        yield n\ng = endless()\nnext(g)\n"
        "def step(): next(g)",
        ["g is of type builtins.generator"],
    ),
    "module in place of another": (
        "import helpers_of_graph as h\ndef step():\n    new = types.ModuleType(h.__name__)\n    new.n = 2\n"
        "    sys.modules['helpers_of_graph'] = new\ndef other():\n    import helpers_of_graph",
        ["helpers_of_graph is a module in place of one that had this name"],
    ),
    "context that is entered": (
        "import contextlib\nstack = contextlib.ExitStack()\ndef step():\n"
        "    stack.enter_context(torch.autograd.profiler.record_function('x'))",
        ["torch.autograd.profiler.record_function"],
    ),
    "code": ("def f(): return 1\ndef step(): f.__code__ = (lambda: 2).__code__", ["f is a function whose __code__"]),
    "local class": (
        "a = None\ndef step():\n    global a\n    class Local: pass\n    a = Local()",
        ["nothing finds this class by its name"],
    ),
}


@pytest.fixture
def made(load, write, monkeypatch):
    """made(text): a runner of a script, with a module beside it that is imported anew."""

    def made(text):
        monkeypatch.delitem(sys.modules, "helpers_of_graph", raising=False)
        write("helpers_of_graph.py", "n = 0\ndef go():\n    global n\n    n += 1\n    return n\n")
        return load(HEADER + text + "\n")

    return made


def calls(runner, count):
    return [program.call(runner, "step") for _ in range(count)]


@pytest.mark.parametrize("name", KEPT)
def test_a_restart_goes_on(name, made, tmp_path):
    runner, place = made(KEPT[name]), str(tmp_path / "state")
    calls(runner, 3)
    program.save(runner, place)
    expected = calls(runner, 4)
    program.restore(runner, place)
    assert calls(runner, 4) == expected, "in the same process"
    other = made(KEPT[name])
    program.restore(other, place)
    assert calls(other, 4) == expected
    program.restore(other, place)
    program.save(other, place)
    assert calls(other, 4) == expected, "after a second file"


@pytest.mark.parametrize("leave", ["import sys; sys.modules.pop('module_of_graph')", "pass"], ids=["gone", "there"])
def test_going_back_puts_modules_back_for_those_who_import(leave, made, write, tmp_path, monkeypatch, fails):
    monkeypatch.syspath_prepend(os.path.dirname(write("module_of_graph.py", "n = 0\n")))
    write("late_of_graph.py", "n = 0\n")
    text = "import module_of_graph\ndef step():\n    import module_of_graph as m\n    m.n += 1\n    return m.n\n"
    runner = made(f"{text}def leave(): {leave}\ndef late():\n    import late_of_graph\n    late_of_graph.n += 1\n")
    calls(runner, 1)
    program.save(runner, str(tmp_path / "state"))
    program.call(runner, "leave")
    calls(runner, 2)
    program.restore(runner, str(tmp_path / "state"))
    assert calls(runner, 1) == [2]
    program.call(runner, "late")
    with fails("FORMAT", "late_of_graph.n of a module that a call imported cannot be taken back"):
        program.restore(runner, str(tmp_path / "state"))
    for name in ("module_of_graph", "late_of_graph"):
        sys.modules.pop(name)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_restart_could_not_put_back_is_refused_when_it_is_saved(name, made, tmp_path, fails):
    text, pieces = REFUSED[name]
    runner = made(text)
    program.save(runner, str(tmp_path / "first"))
    calls(runner, 1)
    with fails("RESULT_TYPE", *pieces):
        program.save(runner, str(tmp_path / "state"))
    assert not (tmp_path / "state").exists()


def test_a_hook_of_a_later_call_on_a_network_that_was_lazy_is_refused(made, tmp_path, fails):
    text = "lazy = torch.nn.LazyLinear(1)\ndef step(): lazy(torch.rand(2, 3))\n"
    runner = made(f"{text}def add(): lazy.register_forward_hook(lambda *given: None)")
    calls(runner, 1)
    program.save(runner, str(tmp_path / "state"))
    program.call(runner, "add")
    with fails("RESULT_TYPE", "are other hooks than after the load"):
        program.save(runner, str(tmp_path / "state"))


def test_what_later_calls_made_is_gone_after_going_back(made, tmp_path):
    text = "class A: pass\na = A()\ndef step():\n    global extra\n    a.x = net.y = step.z = extra = A.w = 1\n"
    runner = made(text)
    program.save(runner, str(tmp_path / "state"))
    calls(runner, 1)
    program.restore(runner, str(tmp_path / "state"))
    held = vars(runner._module)
    assert "extra" not in held and not vars(held["a"]) and not hasattr(held["A"], "w")
    assert not hasattr(held["net"], "y") and not hasattr(held["step"], "z")


def test_code_of_a_function_goes_back(made, tmp_path):
    runner = made("def f(): return 1\ndef step():\n    r = f()\n    f.__code__ = (lambda: 2).__code__\n    return r")
    program.save(runner, str(tmp_path / "state"))
    assert calls(runner, 2) == [1, 2]
    program.restore(runner, str(tmp_path / "state"))
    assert calls(runner, 2) == [1, 2]


def test_what_cannot_go_back_is_told_and_nothing_is_changed(made, tmp_path, fails):
    runner = made("it, a = iter([1, 2]), [1]\ndef step():\n    a.append(1)\n    return next(it)\n")
    program.save(runner, str(tmp_path / "state"))
    calls(runner, 1)
    with fails("FORMAT", "it cannot be taken back: start the program again"):
        program.restore(runner, str(tmp_path / "state"))
    assert vars(runner._module)["a"] == [1, 1]


@pytest.mark.filterwarnings("error::ftn_pytorch.system.process.FtnPytorchWarning")
@pytest.mark.parametrize(
    "text",
    [
        "d = {'a': 1}\nkeys, proxy, view = d.keys(), types.MappingProxyType(d), memoryview(bytearray(2))\n"
        "def step():\n    d[len(d)] = 1\n    view[0] += 1\n    return len(keys) + len(proxy) + view[0]",
        "local = threading.local()\nlocal.n = 0\ndef step():\n    local.n += 1\n    return local.n",
    ],
)
def test_what_shows_others_is_kept_with_them(text, made, tmp_path):
    runner, place = made(text), str(tmp_path / "state")
    calls(runner, 2)
    program.save(runner, place)
    expected = calls(runner, 2)
    other = made(text)
    program.restore(other, place)
    assert calls(other, 2) == expected


def test_what_a_package_puts_into_its_own_objects_is_made_again(made, write, tmp_path, monkeypatch, fails):
    module = write(
        "site-packages/package_of_graph.py",
        "class Fast:\n    def __reduce__(self): raise TypeError\n"
        "class Reader:\n    def __init__(self): self.cached = {}\n    def read(self):\n"
        "        self.cached['fast'] = Fast()\n        return 1\n",
    )
    monkeypatch.syspath_prepend(os.path.dirname(module))
    text = "import package_of_graph\nreader = package_of_graph.Reader()\ndef step(): return reader.read()"
    runner, place = made(text), str(tmp_path / "state")
    calls(runner, 1)
    program.save(runner, place)
    program.restore(made(text), place)
    vars(runner._module)["reader"].cached["other"] = iter([1])
    with fails("RESULT_TYPE", "reader.cached/fast is of type package_of_graph.Fast"):
        program.save(runner, place)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("db = sqlite3.connect(':memory:')\ndef step(): pass", "db is of type sqlite3.Connection"),
        (
            "class Own(sqlite3.Connection):\n    n = 1\ndb = Own(':memory:')\ndb.n = 2\ndef step(): pass",
            "db is of type",
        ),
        ("s = {5, 1, 9}\ndef step():\n    s.discard(1)\n    s.add(74)", "s is a set whose order"),
        ("@functools.cache\ndef f(x): return x\ndef step(): return f(1)", "f is a function that keeps its results"),
        (
            "import abc\nclass B(abc.ABC): pass\nclass C: pass\ndef step(): B.register(C)",
            "a subclass that is registered with abc is a setting",
        ),
        (
            "s = set(range(99))\ndef step(): s.difference_update(range(3, 90))\nstep()\ns.add(500)",
            "s is a set whose order",
        ),
    ],
)
def test_what_is_not_seen_is_told_once(text, name, made, tmp_path):
    runner = made(text)
    calls(runner, 1)
    if "step()\ns" in text:
        vars(runner._module)["s"].update(range(1000, 1003))
    with pytest.warns(process.FtnPytorchWarning, match=name):
        program.save(runner, str(tmp_path / "state"))


def test_a_file_names_no_function_that_the_script_does_not_mention(made, tmp_path, fails, monkeypatch):
    text = "act = None\ndef step():\n    global act\n    act = torch.cos\n"
    runner = made(text)
    calls(runner, 1)
    program.save(runner, str(tmp_path / "state"))
    with fails("FORMAT", "torch.cos, which no code of the script mentions"):
        program.restore(made(text.replace("torch.cos", "torch.sin")), str(tmp_path / "state"))


def test_a_graph_has_a_name_for_each_object(made):
    runner = made("a = {'x': [[]], 'x/0': [[]], 1: [[]], '1': [[]]}\nb = a['x'][0]\ndef step(): pass")
    found = graph.known(vars(runner._module))
    names = {id(node.value): name for name, node in found.named.items()}
    assert len(names) == len(found.named)
    assert names[id(vars(runner._module)["b"])] == "b" and "net.weight" in found.named
