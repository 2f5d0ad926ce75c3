# SPDX-License-Identifier: MIT
"""Every optimizer of torch, as Fortran makes and steps it, beside plain Python that does the same."""

import sys
import types

import pytest

import program
from ftn_pytorch.runners.objects import base
from ftn_pytorch.tensors.fortran_tensors import adapt

torch = pytest.importorskip("torch")

OPTIMIZERS = base.classes((torch.optim,), torch.optim.Optimizer)
SCRIPT = """
    import torch
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5, bias={bias}), torch.nn.Tanh(), torch.nn.Linear(5, 1, bias={bias}))

    def ftn_pytorch_forward(x):
        return net(x)
"""
X = torch.linspace(-1, 1, 30).reshape(10, 3)
Y = X.sum(1, keepdim=True).sin()


@pytest.fixture
def model(load, request):
    """The runner of a script; Muon takes matrices only."""
    kind = request.getfixturevalue("kind") if "kind" in request.fixturenames else ""
    return load(SCRIPT.format(bias=kind != "Muon"))


def called(runner, name, *args, **named):
    """A call as the core makes it."""
    function = program.function(runner, name)
    program.first_call(runner, name, args, named)
    return function(*args, **named)


def network(runner):
    return runner.networks()["net"]


def gradients(net, sparse):
    """Gradients of the loss, or sparse ones where an optimizer takes nothing else."""
    for each in net.parameters():
        each.grad = None
    loss = ((net(X) - Y) ** 2).mean()
    loss.backward()
    for each in net.parameters() if sparse else ():
        each.grad = each.grad.to_sparse()
    return loss


def one_step(kind, runner, made, step_with):
    net = network(runner)
    if made.needs_closure:
        step_with(made, lambda: ((net(X) - Y) ** 2).mean())
    else:
        gradients(net, kind == "SparseAdam")
        called(made, "step")


@pytest.fixture
def step_with(monkeypatch):
    """step_with(made, closure): a step where the core calls a closure, here a function of Python."""

    def step_with(made, closure):
        core = types.SimpleNamespace(call_closure=lambda address, context: (closure(),))
        core.inherit = lambda descriptor, stays_open: None  # for locks of other tests, which end at any moment
        function = program.function(made, "step_with")
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "_ftn_pytorch", core)
            return function(1, 0)

    return step_with


def plain_step(kind, net, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = ((net(X) - Y) ** 2).mean()
        loss.backward()
        return loss

    if kind == "LBFGS":
        optimizer.step(closure)
    else:
        gradients(net, kind == "SparseAdam")
        optimizer.step()


def weights(net):
    return [each.detach().clone() for each in net.parameters()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_each_optimizer_steps_as_in_python_and_resumes_with_the_same_bits(kind, model, load, tmp_path, step_with):
    reference = network(load(SCRIPT.format(bias=kind != "Muon"), name="reference.py"))
    begin = weights(reference)
    plain = getattr(torch.optim, kind)
    fused = {"fused": True} if "fused" in plain.__init__.__code__.co_varnames else {}
    plain = plain(reference.parameters(), lr=0.01, **fused)

    made = called(model, "ftn_pytorch_optimizer", kind, lr=0.01)
    for step in range(6):
        if step == 3:
            program.checkpoint(model, str(tmp_path / "kept"))
            called(made, "zero_grad")
            program.save(made, str(tmp_path / "optimizer"))
            halfway = weights(network(model))
        one_step(kind, model, made, step_with)
        plain_step(kind, reference, plain)
    assert not same(begin, weights(reference)), "nothing was trained"
    assert same(weights(network(model)), weights(reference))

    again = load(SCRIPT.format(bias=kind != "Muon"), name="again.py")
    remade = called(again, "ftn_pytorch_optimizer", kind, lr=0.5)
    program.restore(again, str(tmp_path / "kept"))
    for _ in range(3):
        one_step(kind, again, remade, step_with)
    assert same(weights(network(again)), weights(reference))

    net = network(again)
    with torch.no_grad():
        for each, old in zip(net.parameters(), halfway, strict=True):
            each.copy_(old)
    remade = called(again, "ftn_pytorch_optimizer", kind, lr=0.5)
    program.restore(remade, str(tmp_path / "optimizer"))
    for _ in range(3):
        one_step(kind, again, remade, step_with)
    assert same(weights(network(again)), weights(reference))


def torch_runner():
    return program.torch_functions(0)


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def test_the_fused_kernel_is_used_where_there_is_one_unless_another_form_is_asked_for(model):
    assert called(model, "ftn_pytorch_optimizer", "AdamW").held.param_groups[0]["fused"] is True
    assert called(model, "ftn_pytorch_optimizer", "AdamW", foreach=True).held.param_groups[0]["fused"] is None
    assert called(model, "ftn_pytorch_optimizer", "AdamW", fused=False).held.param_groups[0]["fused"] is False
    complex_one = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    made = called(torch_runner(), "ftn_pytorch_optimizer", "SGD", complex_one)
    assert not made.held.param_groups[0]["fused"]


def test_groups_have_settings_of_their_own(fails):
    first, second = leaf(2), leaf(3)
    made = called(torch_runner(), "ftn_pytorch_optimizer", "AdamW", first, lr=0.1, betas=torch.tensor([0.8, 0.9]))
    called(made, "add_group", second, lr=0.01)
    assert [group["lr"] for group in made.held.param_groups] == [0.1, 0.01]
    assert called(made, "get", "lr", 2) == 0.01
    assert called(made, "get", "betas", 0).tolist() == pytest.approx([0.8, 0.9], rel=1e-6)
    called(made, "set", 2, lr=0.5, amsgrad=1)
    assert [group["lr"] for group in made.held.param_groups] == [0.1, 0.5]
    assert [group["amsgrad"] for group in made.held.param_groups] == [False, True]
    called(made, "set", 0, lr=0.25)
    assert [group["lr"] for group in made.held.param_groups] == [0.25, 0.25]
    with fails("ARGUMENT", "no group 3", "from 1 to 2"):
        called(made, "set", 3, lr=0.5)
    with fails("SIGNATURE", "no setting 'weigth_decay'", "did you mean 'weight_decay'?"):
        called(made, "set", 0, weigth_decay=0.5)
    with fails("ARGUMENT", "'lr'", "must be a number", "'fast'"):
        called(made, "set", 0, lr="fast")
    with fails("ARGUMENT", "refuses the group", "some parameters appear in more than one"):
        called(made, "add_group", second)


def test_gradients_are_clipped_by_norm_and_by_value():
    tensor = leaf(4)
    made = called(torch_runner(), "ftn_pytorch_optimizer", "SGD", tensor)
    tensor.grad = torch.full((4,), 3.0)
    assert called(made, "clip_norm", 1.5, 2.0) == pytest.approx(6)
    assert tensor.grad.tolist() == pytest.approx([0.75] * 4)
    called(made, "clip_value", 0.5)
    assert tensor.grad.tolist() == pytest.approx([0.5] * 4)


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        ("AdanW", {}, ("ARGUMENT", "no optimizer 'AdanW'", "did you mean 'AdamW'?")),
        ("Optimizer", {}, ("ARGUMENT", "no optimizer 'Optimizer'")),
        ("AdamW", {"beta": 1.0}, ("SIGNATURE", "no option 'beta'", "did you mean 'betas'?")),
        ("AdamW", {"lr": "fast"}, ("ARGUMENT", "'lr'", "must be a number", "'fast'")),
        ("AdamW", {"amsgrad": "yes"}, ("ARGUMENT", "'amsgrad'", "must be a logical", "'yes'")),
        ("AdamW", {"betas": 0.9}, ("ARGUMENT", "'betas'", "an array of 2 numbers")),
        ("AdamW", {"lr": -1.0}, ("ARGUMENT", "AdamW refuses lr=-1.0", "Invalid learning rate")),
    ],
)
def test_what_torch_does_not_know_is_refused(kind, options, wanted, model, fails):
    with fails(*wanted):
        called(model, "ftn_pytorch_optimizer", kind, **options)


def test_a_step_needs_gradients_and_lbfgs_a_closure(model, fails):
    made = called(model, "ftn_pytorch_optimizer", "SGD", lr=0.1)
    with fails("ARGUMENT", "none of the 4 parameters of SGD has a gradient", "call backward"):
        called(made, "step")
    made = called(model, "ftn_pytorch_optimizer", "LBFGS")
    with fails("SIGNATURE", "LBFGS computes the loss several times", "closure"):
        called(made, "step")


def test_a_closure_must_compute_a_loss_of_the_parameters(model, fails, step_with):
    made = called(model, "ftn_pytorch_optimizer", "LBFGS")
    with fails("ARGUMENT", "was not computed from anything that requires gradients"):
        step_with(made, lambda: torch.ones(()))


@pytest.mark.parametrize(
    ("kind", "elements", "options", "fused"),
    [
        ("SGD", 25, {}, None),
        ("SGD", 65536, {}, True),
        ("SGD", 25, {"momentum": 0.9}, True),
        ("SGD", 25, {"fused": True}, True),
        ("Adam", 25, {}, True),
        ("Adam", 25, {"foreach": True}, None),
    ],
)
def test_the_fused_kernel_is_taken_where_it_pays(kind, elements, options, fused):
    made = called(torch_runner(), "ftn_pytorch_optimizer", kind, torch.ones(elements, requires_grad=True), **options)
    assert made.held.param_groups[0]["fused"] is fused


def section():
    return torch.ones(4, 3)[:, :2].requires_grad_()


def test_sections_of_arrays_take_no_fused_kernel(fails):
    assert not called(torch_runner(), "ftn_pytorch_optimizer", "Adam", section()).held.param_groups[0]["fused"]
    made = called(torch_runner(), "ftn_pytorch_optimizer", "Adam", leaf(3))
    called(made, "add_group", section())
    assert [group["fused"] for group in made.held.param_groups] == [True, False]
    for group in (0, 2):
        with fails("ARGUMENT", "Adam is asked for the fused kernel", "parameter 1", "leave out the option fused"):
            called(made, "set", group, fused=1)
    with fails("ARGUMENT", "parameter 2"):
        called(torch_runner(), "ftn_pytorch_optimizer", "Adam", leaf(3), section(), fused=True)
    with fails("ARGUMENT", "parameter 1"):
        called(made, "add_group", section(), fused=1)


@pytest.mark.parametrize("gradient", [torch.arange(6.0).reshape(3, 2).t(), torch.ones(1).expand(2, 3)])
def test_a_gradient_that_a_script_lays_out_otherwise_is_stepped_as_it_is_meant(gradient):
    weight, plain = leaf(2, 3), leaf(2, 3)
    weight.grad, plain.grad = gradient, gradient.clone()
    called(called(torch_runner(), "ftn_pytorch_optimizer", "SGD", weight, lr=0.5, momentum=0.5), "step")
    torch.optim.SGD([plain], lr=0.5, momentum=0.5).step()
    assert torch.equal(weight, plain)


@pytest.mark.parametrize("options", [{"momentum": 0.5, "nesterov": True}, {"momentum": 0.5, "dampening": 0.25}])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_a_parameter_whose_first_gradient_comes_later_begins_its_momentum_then(options, is_scaled):
    leaves, plain = [leaf(2), leaf(3)], [leaf(2), leaf(3)]
    made = called(torch_runner(), "ftn_pytorch_optimizer", "SGD", *leaves, lr=0.5, **options)
    groups = made.held.param_groups
    stepper = called(made, "scaler", init_scale=1.0) if is_scaled else made
    if is_scaled:  # which looks at infinities alone
        called(stepper, "scale", leaves[0].sum())
    reference = torch.optim.SGD(plain, lr=0.5, **options)
    for step in range(3):
        for tensors in (leaves, plain):
            for each in tensors[: step + 1]:
                each.grad = each.detach() * (step + 1)
        called(stepper, "step")
        if is_scaled:
            called(stepper, "update")
        reference.step()
        assert all(torch.equal(one, other) for one, other in zip(leaves, plain)), step
    assert made.held.param_groups is groups and groups[0]["params"] == leaves


@pytest.mark.parametrize("way", ["step", "closure", "scaler"])
def test_a_graph_that_needs_the_values_before_a_step_is_refused(way, step_with):
    tensor, other = leaf(2), leaf(2)
    made = called(torch_runner(), "ftn_pytorch_optimizer", "Adam", tensor, other)
    assert made.held.param_groups[0]["fused"]
    square, of_other = (tensor * tensor).sum(), (other * other).sum()
    if way == "closure":
        with torch.no_grad():
            step_with(made, lambda: tensor.sum())
    else:
        stepper = called(made, "scaler", init_scale=1.0) if way == "scaler" else made
        loss = tensor.sum()
        (called(stepper, "scale", loss) if way == "scaler" else loss).backward()
        called(stepper, "step")
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()
    of_other.backward()  # it had no gradient, and is as it was
    assert other.grad.tolist() == [2.0, 2.0]


def test_a_tensor_of_the_other_axis_order_is_trained_itself(fails):
    weights = torch.ones(2, 3, requires_grad=True)
    view = adapt(weights, None, is_reversed=True, copied=False)
    made = called(torch_runner(), "ftn_pytorch_optimizer", "SGD", view, lr=0.5)
    weights.sum().backward()
    called(made, "step")
    assert made.held.param_groups[0]["params"][0] is weights and weights.tolist() == [[0.5] * 3] * 2
    called(made, "add_group", adapt(torch.ones(1, 2, requires_grad=True), None, is_reversed=True, copied=False))
    with fails("ARGUMENT", "parameter 1 is the result of an operation"):
        made = called(torch_runner(), "ftn_pytorch_optimizer", "SGD", adapt(2 * weights, None, True, False))


def test_there_must_be_something_to_train(load, fails, model):
    with fails("ARGUMENT", "there are no parameters to train"):
        called(torch_runner(), "ftn_pytorch_optimizer", "SGD")
    with fails("ARGUMENT", "parameter 2 requires no gradients"):
        called(torch_runner(), "ftn_pytorch_optimizer", "SGD", leaf(1), torch.ones(1))
    with fails("ARGUMENT", "parameter 1 is the result of an operation"):
        called(torch_runner(), "ftn_pytorch_optimizer", "SGD", 2 * leaf(1))
    with fails("ARGUMENT", "argument 2 is no tensor"):
        called(torch_runner(), "ftn_pytorch_optimizer", "SGD", leaf(1), 0.5)
    for each in called(model, "ftn_pytorch_parameters").values():
        each.requires_grad_(False)
    with fails("ARGUMENT", "no parameter of", "requires gradients", "set_requires_grad"):
        called(model, "ftn_pytorch_optimizer", "SGD")
    plain = load("import torch\ndef ftn_pytorch_forward(x):\n    return x\n", name="plain.py")
    with fails("HOOK", "no parameters that can be reached"):
        called(plain, "ftn_pytorch_optimizer", "SGD")


def test_a_restart_needs_the_same_optimizers(model, load, fails, tmp_path):
    first = called(model, "ftn_pytorch_optimizer", "SGD")
    second = called(model, "ftn_pytorch_optimizer", "Adam")
    assert list(model.attached()) == ["torch_optimizer.1", "torch_optimizer.2"]
    program.checkpoint(model, str(tmp_path / "kept"))
    del first
    assert list(model.attached()) == ["torch_optimizer.1"]
    assert model.attached()["torch_optimizer.1"] is second.held
    again = load(SCRIPT.format(bias=True), name="again.py")
    with fails("FORMAT", "there is no 'torch_optimizer.1' here: create it before restore"):
        program.restore(again, str(tmp_path / "kept"))
    made = called(again, "ftn_pytorch_optimizer", "Adam"), called(again, "ftn_pytorch_optimizer", "SGD")
    with fails("FORMAT", "torch_optimizer.1 is of type torch.SGD in the file and torch.Adam here"):
        program.restore(again, str(tmp_path / "kept"))
    del made


def test_a_script_with_hooks_is_told_that_they_do_not_keep_the_optimizer(load, tmp_path):
    hooks = "\n    def ftn_pytorch_save(file):\n        torch.save(net.state_dict(), file)\n"
    hooks += "\n    def ftn_pytorch_restore(file):\n        pass\n"
    model = load(SCRIPT.format(bias=True) + hooks)
    made = called(model, "ftn_pytorch_optimizer", "SGD")
    with pytest.warns(UserWarning, match="torch_optimizer.1 is not in what ftn_pytorch_save writes"):
        program.checkpoint(model, str(tmp_path / "kept"))
    del made
