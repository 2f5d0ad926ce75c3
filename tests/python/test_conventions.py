# SPDX-License-Identifier: MIT
"""How a function wants its arguments, whether a call fits, and declared shapes."""

import functools

import numpy
import pytest

import program

FORWARD = "ftn_pytorch_forward"
TRAIN = "ftn_pytorch_train"


def convention(runner, name=FORWARD):
    return program.bind(runner, name)[1:]


def first_call(runner, *args, name=FORWARD, **kwargs):
    program.first_call(runner, name, args, kwargs)


# ---- one list or separate arguments


@pytest.mark.parametrize(
    ("parameters", "one_list"),
    [
        ("x", True),
        ("inputs", True),
        ("x, y=None", True),
        ("x, *, scale=1.0", True),
        ("*inputs", True),
        ("x, **more", True),
        ("x=None, /", True),
        ("x, y", False),
        ("x, y, z=0", False),
        ("x, *, scale", False),
        ("*, x", False),
        ("**named", False),
        ("", False),
    ],
)
def test_forward_gets_one_list_whenever_it_takes_one_argument(load, parameters, one_list):
    assert convention(load(f"def ftn_pytorch_forward({parameters}): pass\n"))[0] is one_list


@pytest.mark.parametrize(
    ("parameters", "one_list"),
    [("x, target", True), ("*all", True), ("x, y=None, target=None", True), ("x", False), ("x, y, target", False)],
)
def test_train_gets_list_and_target_whenever_it_takes_two_arguments(load, parameters, one_list):
    assert convention(load(f"def ftn_pytorch_train({parameters}): pass\n"), TRAIN)[0] is one_list


@pytest.mark.parametrize(("word", "one_list"), [("list", True), ("args", False)])
@pytest.mark.parametrize("parameters", ["x", "x, y"])
def test_script_overrides_the_rule(load, word, one_list, parameters):
    runner = load(f"ftn_pytorch_convention = '{word}'\ndef ftn_pytorch_forward({parameters}): pass\n")
    assert convention(runner)[0] is one_list


def test_override_that_is_none_of_the_two_is_refused(load, fails):
    with fails("SCRIPT", "ftn_pytorch_convention", "'lists'", '"list" or "args"'):
        load("ftn_pytorch_convention = 'lists'\n")


CALLABLES = {
    "wrapped function": (
        """
        import functools
        def logged(f):
            @functools.wraps(f)
            def call(*args, **kwargs): return f(*args, **kwargs)
            return call
        @logged
        def ftn_pytorch_forward(x, y): pass
        """,
        False,
    ),
    "partial of two arguments": (
        """
        import functools
        def combine(x, y): pass
        ftn_pytorch_forward = functools.partial(combine, 1)
        """,
        True,
    ),
    "bound method": (
        """
        class Net:
            def run(self, x, y): pass
        ftn_pytorch_forward = Net().run
        """,
        False,
    ),
    "object with __call__": (
        """
        class Net:
            def __call__(self, x): pass
        ftn_pytorch_forward = Net()
        """,
        True,
    ),
    "class": ("class ftn_pytorch_forward:\n    def __init__(self, x, y): pass\n", False),
    "lambda": ("ftn_pytorch_forward = lambda x: x\n", True),
    "builtin without signature": ("ftn_pytorch_forward = max\n", False),
}


@pytest.mark.parametrize(("text", "one_list"), CALLABLES.values(), ids=CALLABLES.keys())
def test_rule_holds_for_every_kind_of_callable(load, text, one_list):
    assert convention(load(text))[0] is one_list


TORCH_CALLABLES = {
    "inference mode": ("@torch.inference_mode()\ndef ftn_pytorch_forward(x, y): pass\n", False),
    "no grad": ("@torch.no_grad()\ndef ftn_pytorch_forward(x): pass\n", True),
    "network": ("ftn_pytorch_forward = torch.nn.Linear(1, 1)\n", True),
    "network of two inputs": ("ftn_pytorch_forward = torch.nn.Bilinear(1, 1, 1)\n", False),
    "compiled network": ("ftn_pytorch_forward = torch.compile(torch.nn.Bilinear(1, 1, 1))\n", False),
    "compiled function": ("@torch.compile\ndef ftn_pytorch_forward(x, y): pass\n", False),
}


@pytest.mark.parametrize(("text", "one_list"), TORCH_CALLABLES.values(), ids=TORCH_CALLABLES.keys())
def test_rule_holds_for_what_torch_makes(load, text, one_list):
    pytest.importorskip("torch")
    assert convention(load("import torch\n" + text))[0] is one_list


# ---- the parameter out


@pytest.mark.parametrize(
    ("parameters", "has_out"),
    [
        ("x, out", True),
        ("x, *, out=None", True),
        ("x, **more", False),
        ("x, *out", False),
        ("out, /", False),
        ("x, **out", False),
    ],
)
def test_out_counts_only_as_a_keyword_parameter(load, parameters, has_out):
    assert convention(load(f"def ftn_pytorch_forward({parameters}): pass\n"))[1] is has_out


@pytest.mark.parametrize(
    ("body", "neglects_out"),
    [
        ("out = 2 * x", True),
        ("y = 2 * x", True),
        ("if x: out[0] = x\n    else: out = x", True),
        ("(out := 2 * x)", True),
        ("out[...] = 2 * x", False),
        ("out += x", False),
        ("y = out; y[...] = x", False),
        ("f(x, out=out)", False),
        ("return [out.copy_(x) for _ in x]", False),
        ("if out is None: out = f(x)\n    f(x, out=out)", False),
        ("out = f(x) if out is None else out; f(x, out=out)", False),
        ("if out is None: f(x)\n    else: out = x", True),
        ("out = f(x) if out is None else x", True),
    ],
)
@pytest.mark.parametrize("decorator", ["", "@functools.lru_cache\n"])
def test_a_function_that_gives_out_another_meaning_neglects_it(load, decorator, body, neglects_out):
    text = f"import functools\n{decorator}def ftn_pytorch_forward(x, out):\n    {body}\n"
    assert convention(load(text))[2] is neglects_out


def test_a_function_without_out_or_without_source_neglects_nothing(load):
    assert convention(load("def ftn_pytorch_forward(x): pass\n"))[2] is False
    assert convention(load("exec('def ftn_pytorch_forward(x, out): pass')\n"))[2] is False


# ---- binding


def test_bound_callable_is_the_function_of_the_script(load):
    runner = load("def ftn_pytorch_forward(x): pass\ndef other(): pass\n")
    for name in (FORWARD, "other"):
        function = program.function(runner, name)
        assert function.__globals__[name] is function


# ---- signature


@pytest.mark.parametrize(
    ("parameters", "args", "kwargs", "pieces"),
    [
        ("x", (1, 2), {}, ("(x)", "(int, int)", "too many positional")),
        ("x, y", (1,), {}, ("(x, y)", "missing", "'y'")),
        ("x, *, dt=0.1", (1,), {"dz": 2.0}, ("(x, *, dt=0.1)", "(int, dz=float)", "dz")),
        ("x: int", (), {}, ("(x)", "no arguments")),
        ("x, y", ([1, 2, 3],), {}, ("list of 3",)),
    ],
)
def test_call_that_does_not_fit_is_told_before_it_is_made(load, fails, parameters, args, kwargs, pieces):
    runner = load(f"def ftn_pytorch_forward({parameters}): raise AssertionError('called')\n")
    with fails("SIGNATURE", FORWARD, *pieces):
        first_call(runner, *args, **kwargs)


def test_arrays_are_described_by_type_and_shape(load, fails):
    with fails("SIGNATURE", "float32 array of shape (3, 4)"):
        first_call(load("def ftn_pytorch_forward(): pass\n"), numpy.zeros((3, 4), "f4"))


def test_call_that_fits_passes(load):
    runner = load("def ftn_pytorch_forward(x, *, dt=0.1): pass\nlargest = max\n")
    first_call(runner, 1, dt=2.0)
    first_call(runner, 1, 2, 3, name="largest")


# ---- declared shapes

SHAPES = """
ftn_pytorch_shapes = {"x": ("ncol", 40), "y": ("ncol", None), "target": ("ncol",), "inputs": [("n",), ("n", 2)]}
def ftn_pytorch_forward(x, y=None, **named): pass
def ftn_pytorch_train(x, target): pass
def diagnose(*, y): pass
def several(inputs): pass
"""


def zeros(*shape):
    return numpy.zeros(shape)


def test_shapes_that_agree_pass(load):
    runner = load(SHAPES)
    first_call(runner, zeros(5, 40), zeros(5, 3))
    first_call(runner, zeros(7, 40), y=zeros(7, 0))
    first_call(runner, zeros(7, 40), zeros(7), name=TRAIN)
    first_call(runner, y=zeros(1, 1), name="diagnose")
    first_call(runner, [zeros(3), zeros(3, 2)], name="several")


@pytest.mark.parametrize(
    ("args", "kwargs", "pieces"),
    [
        ((zeros(5, 39),), {}, ("x has shape (5, 39)", "('ncol', 40)", "axis 1 has size 39, not 40")),
        ((zeros(40),), {}, ("x has shape (40,)", "1 axes, not 2")),
        ((zeros(5, 40), zeros(6, 3)), {}, ("y has shape (6, 3)", "ncol is 6 on axis 0, but 5 on x axis 0")),
        ((zeros(5, 40),), {"y": zeros(6, 3)}, ("ncol is 6",)),
        ((zeros(5, 40),), {"target": zeros(6)}, ("target", "ncol is 6")),
        ((1.0,), {}, ("x has shape ()", "0 axes, not 2")),
        (([zeros(5, 40)],), {}, ("x is declared as one array", "list of 1")),
    ],
)
def test_shape_that_differs_is_told(load, fails, args, kwargs, pieces):
    with fails("SHAPE", *pieces):
        first_call(load(SHAPES), *args, **kwargs)


def test_shapes_of_train_include_the_target(load, fails):
    with fails("SHAPE", "target has shape (5, 1)", "reverse of the Fortran order"):
        first_call(load(SHAPES), zeros(5, 40), zeros(5, 1), name=TRAIN)


@pytest.mark.parametrize(
    ("value", "pieces"),
    [
        ([zeros(3), zeros(4, 2)], ("inputs[1]", "n is 4 on axis 0, but 3 on inputs[0] axis 0")),
        ([zeros(3)], ("list of 2 arrays", "1 arrays")),
        (zeros(3), ("list of 2 arrays", "array of shape (3,)")),
    ],
)
def test_shapes_of_a_list_are_a_list(load, fails, value, pieces):
    with fails("SHAPE", *pieces):
        first_call(load(SHAPES), value, name="several")


@pytest.mark.parametrize(
    ("declared", "pieces"),
    [
        ("('ncol', 40)", ("must be a dict",)),
        ("{'x': 40}", ("['x'] is 40", "must be a tuple")),
        ("{'x': ('ncol', 4.0)}", ("must be a tuple of integers",)),
        ("{'x': (True,)}", ("must be a tuple of integers",)),
        ("{'x': (-1,)}", ("must be a tuple of integers",)),
        ("{'temprature': (3,)}", ("names 'temprature'", "did you mean 'temperature'")),
    ],
)
def test_malformed_declaration_is_refused_at_load(load, fails, declared, pieces):
    with fails("SCRIPT", "ftn_pytorch_shapes", *pieces):
        load(f"ftn_pytorch_shapes = {declared}\ndef ftn_pytorch_forward(x, temperature): pass\n")


def test_shapes_of_a_function_without_signature_are_checked_by_name(load, fails):
    runner = load("ftn_pytorch_shapes = {'key': (3,)}\nftn_pytorch_forward = max\ndef f(key): pass\n")
    first_call(runner, zeros(2), key=zeros(3))
    with fails("SHAPE", "key"):
        first_call(runner, zeros(2), key=zeros(4))


def test_partial_is_still_checked(load, fails):
    runner = load("import functools\nftn_pytorch_forward = functools.partial(pow, 2)\n")
    assert isinstance(program.function(runner, FORWARD), functools.partial)
    with fails("SIGNATURE"):
        first_call(runner, 1, 2, 3)
