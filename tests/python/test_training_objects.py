# SPDX-License-Identifier: MIT
"""Every scheduler and loss of torch, gradient scalers and averages, as Fortran makes them, beside plain Python."""

import inspect
import warnings

import pytest

import program
from ftn_pytorch.runners.objects import base, losses

torch = pytest.importorskip("torch")

_SCHEDULERS = torch.optim.lr_scheduler
SCHEDULERS = [
    name
    for name in base.classes((_SCHEDULERS, torch.optim.swa_utils), _SCHEDULERS.LRScheduler)
    if name not in ("SequentialLR", "ChainedScheduler")
]
NEEDED = {"step_size": 2, "gamma": 0.5, "milestones": [1, 3], "T_max": 4, "T_0": 2, "base_lr": 0.01, "max_lr": 0.1,
          "total_steps": 10, "swa_lr": 0.05}  # fmt: skip
OF_PYTHON = ["LambdaLR", "MultiplicativeLR"]


def called(runner, name, *args, **named):
    """A call as the core makes it."""
    function = program.function(runner, name)
    program.first_call(runner, name, args, named)
    return function(*args, **named)


def torch_object(kind, *args, **options):
    return called(program.torch_functions(0), f"ftn_pytorch_{kind}", *args, **options)


def trained():
    """A tensor with a gradient, and an optimizer for it."""
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)
    return torch_object("optimizer", "SGD", tensor, lr=0.1, momentum=0.5)


def needed(kind):
    """Options without which a scheduler cannot be made."""
    parameters = inspect.signature(getattr(_SCHEDULERS, kind, None) or torch.optim.swa_utils.SWALR).parameters
    options = {name: NEEDED[name] for name, each in parameters.items() if name in NEEDED and each.default is each.empty}
    return {**options, "total_steps": 10} if kind == "OneCycleLR" else options


def rates(optimizer, scheduler, metric):
    """Learning rates of some steps; either of both may be those of torch."""
    found = []
    for step in range(4):
        if isinstance(optimizer, torch.optim.Optimizer):
            optimizer.step()
            scheduler.step(*([float(step)] if metric else []))
            found.append(scheduler.get_last_lr()[0])
        else:
            called(optimizer, "step")
            called(scheduler, "step_by", float(step)) if metric else called(scheduler, "step")
            found.append(called(scheduler, "last_lr", 1))
    return found


@pytest.mark.parametrize("kind", [kind for kind in SCHEDULERS if kind not in OF_PYTHON])
def test_each_scheduler_steps_as_in_python_and_resumes(kind, tmp_path):
    options = needed(kind)
    metric = kind == "ReduceLROnPlateau"
    options.update({"patience": 1} if metric else {})
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)
    plain = torch.optim.SGD([tensor], lr=0.1, momentum=0.5)
    place = _SCHEDULERS if hasattr(_SCHEDULERS, kind) else torch.optim.swa_utils
    reference = getattr(place, kind)(plain, **options)

    def made():
        optimizer = trained()
        passed = {name: torch.tensor(value) if isinstance(value, list) else value for name, value in options.items()}
        return optimizer, called(optimizer, "scheduler", kind, **passed)

    optimizer, scheduler = made()
    assert rates(optimizer, scheduler, metric) == rates(plain, reference, metric)
    program.save(optimizer, str(tmp_path / "both"))
    again, resumed = made()
    program.restore(again, str(tmp_path / "both"))
    assert rates(again, resumed, metric) == rates(plain, reference, metric)


@pytest.mark.parametrize(
    "kind", ["StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "LinearLR", "PolynomialLR"]
)
@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.filterwarnings("error")
def test_a_scheduler_goes_on_from_the_state_that_the_core_has_kept(kind, steps):
    """As DirectOptimizer hands it over."""
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)
    plain = torch.optim.SGD([tensor], lr=0.1, momentum=0.5, fused=True)
    reference = getattr(_SCHEDULERS, kind)(plain, **needed(kind))
    plain.step()
    for _ in range(steps):
        reference.step()
    optimizer = trained()
    called(optimizer, "take_rates", 0.1, True)
    scheduler = called(optimizer, "scheduler", kind, **needed(kind))
    (rate,) = reference.get_last_lr()
    called(scheduler, "take_state", steps + 1, rate)
    called(optimizer, "set", 0, lr=rate)
    assert scheduler.state().state_dict() == reference.state_dict()
    assert optimizer.state().state_dict()["param_groups"] == plain.state_dict()["param_groups"]
    called(scheduler, "step")
    reference.step()
    assert scheduler.state().get_last_lr() == reference.get_last_lr()


@pytest.mark.parametrize("is_stepped", [False, True])
def test_a_scheduler_from_the_core_warns_of_the_order_where_that_was_wrong(is_stepped):
    optimizer = trained()
    called(optimizer, "take_rates", 0.1, is_stepped)
    scheduler = called(optimizer, "scheduler", "StepLR", step_size=2)
    called(scheduler, "take_state", 1, 0.1)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        called(scheduler, "step")
    assert [each for each in found if "before `optimizer.step()`" in str(each.message)] == found
    assert len(found) == (0 if is_stepped else 1)


@pytest.mark.parametrize("kind", OF_PYTHON)
def test_a_scheduler_that_needs_a_function_of_python_says_so(kind, fails):
    with fails("ARGUMENT", kind, "needs a Python function, lr_lambda", "script"):
        called(trained(), "scheduler", kind)


@pytest.mark.parametrize("kind", ["SequentialLR", "ChainedScheduler"])
def test_schedulers_of_schedulers(kind):
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)
    plain = torch.optim.SGD([tensor], lr=0.1, momentum=0.5)
    parts = [_SCHEDULERS.ConstantLR(plain, 0.5, 3), _SCHEDULERS.ExponentialLR(plain, 0.9)]
    sequential = kind == "SequentialLR"
    reference = _SCHEDULERS.SequentialLR(plain, parts, [2]) if sequential else _SCHEDULERS.ChainedScheduler(parts)
    optimizer = trained()
    made = [
        called(optimizer, "scheduler", "ConstantLR", factor=0.5, total_iters=3),
        called(optimizer, "scheduler", "ExponentialLR", gamma=0.9),
    ]
    options = {"milestones": torch.tensor([2])} if sequential else {}
    whole = called(optimizer, "scheduler", kind, *(called(each, "number") for each in made), **options)
    assert rates(optimizer, whole, False) == rates(plain, reference, False)


def test_schedulers_refuse_what_does_not_fit(fails):
    optimizer = trained()
    with fails("ARGUMENT", "no scheduler 'StpLR'", "did you mean 'StepLR'?"):
        called(optimizer, "scheduler", "StpLR")
    with fails("SIGNATURE", "StepLR needs the option 'step_size'"):
        called(optimizer, "scheduler", "StepLR")
    with fails("SIGNATURE", "no option 'stepsize'", "did you mean 'step_size'?"):
        called(optimizer, "scheduler", "StepLR", stepsize=3)
    with fails("ARGUMENT", "'gamma'", "must be a number"):
        called(optimizer, "scheduler", "StepLR", step_size=3, gamma="half")
    with fails("ARGUMENT", "scale_fn of CyclicLR is a Python function"):
        called(optimizer, "scheduler", "CyclicLR", base_lr=0.1, max_lr=0.2, scale_fn="sin")
    plateau = called(optimizer, "scheduler", "ReduceLROnPlateau")
    with fails("SIGNATURE", "decides by a metric"):
        called(plateau, "step")
    with fails("ARGUMENT", "no group 2", "from 1 to 1"):
        called(plateau, "last_lr", 2)


def values(*shape):
    return (torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64).reshape(shape) / 7).sin()


SCORES, SIGNS, CLASSES = values(4, 3), values(4, 3).sign(), torch.tensor([0, 2, 1, 1])
INPUTS = {
    "NLLLoss": (SCORES.log_softmax(1), CLASSES),
    "NLLLoss2d": (values(2, 3, 4, 4).log_softmax(1), torch.ones(2, 4, 4, dtype=torch.int64)),
    "GaussianNLLLoss": (SCORES, 2 * SCORES, SCORES**2),
    "KLDivLoss": (SCORES.log_softmax(1), SCORES.softmax(1)),
    "BCELoss": (SCORES.sigmoid(), (SIGNS + 1) / 2),
    "BCEWithLogitsLoss": (SCORES, (SIGNS + 1) / 2),
    "MultiLabelMarginLoss": (SCORES, torch.tensor([[0, -1, 1], [1, 2, -1], [2, 0, 1], [-1, 0, 0]])),
    "CrossEntropyLoss": (SCORES, CLASSES),
    "MultiLabelSoftMarginLoss": (SCORES, (SIGNS + 1) / 2),
    "CosineEmbeddingLoss": (SCORES, values(4, 3).cos(), torch.tensor([1, -1, 1, 1])),
    "MarginRankingLoss": (SCORES, -SCORES, SIGNS),
    "MultiMarginLoss": (SCORES, CLASSES),
    "TripletMarginLoss": (SCORES, SCORES + 1, SCORES.cos()),
    "TripletMarginWithDistanceLoss": (SCORES, SCORES + 1, SCORES.cos()),
    "CTCLoss": (values(5, 1, 3).log_softmax(2), torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2])),
    "AdaptiveLogSoftmaxWithLoss": (SCORES.float(), CLASSES),
    "LinearCrossEntropyLoss": (SCORES.float(), CLASSES),
}
OPTIONS = {
    "AdaptiveLogSoftmaxWithLoss": {"in_features": 3, "n_classes": 4, "cutoffs": torch.tensor([2, 3])},
    "LinearCrossEntropyLoss": {"in_features": 3, "num_classes": 3},
}


@pytest.mark.parametrize("kind", losses.names())
def test_each_loss_is_that_of_python(kind):
    options = OPTIONS.get(kind, {})
    inputs = INPUTS.get(kind, (SCORES, SIGNS))
    torch.manual_seed(1)
    plain = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    reference = getattr(torch.nn, kind)(**plain)(*inputs)
    torch.manual_seed(1)
    first = inputs[0].clone().requires_grad_()
    result = called(torch_object("loss", kind, **options), "forward", first, *inputs[1:])
    assert torch.equal(result, getattr(reference, "loss", reference))
    result.backward()
    assert first.grad is not None and first.grad.shape == first.shape


def test_losses_copy_their_arrays_and_have_parameters_where_torch_has(fails):
    weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    made = torch_object("loss", "CrossEntropyLoss", weight=weight)
    weight.zero_()
    reference = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    assert torch.equal(called(made, "forward", SCORES, CLASSES), reference(SCORES, CLASSES))
    adaptive = torch_object("loss", "AdaptiveLogSoftmaxWithLoss", **OPTIONS["AdaptiveLogSoftmaxWithLoss"])
    assert "head.weight" in called(adaptive, "ftn_pytorch_parameters")
    with fails("ARGUMENT", "no loss 'MSLoss'", "did you mean 'MSELoss'?"):
        torch_object("loss", "MSLoss")
    with fails("ARGUMENT", "no loss 'Linear'"):
        torch_object("loss", "Linear")
    with fails("ARGUMENT", "'reduction'", "must be a string"):
        torch_object("loss", "MSELoss", reduction=1)
    with fails("ARGUMENT", "TripletMarginLoss refuses margin=-1.0"):
        torch_object("loss", "TripletMarginLoss", margin=-1.0)


def test_a_scaler_leaves_out_steps_with_infinite_gradients(tmp_path, fails):
    optimizer = trained()
    scaler = called(optimizer, "scaler", init_scale=8.0, growth_interval=1)
    (tensor,) = optimizer.held.param_groups[0]["params"]
    for factor, wanted in ((1.0, 0.9), (float("inf"), 0.9)):
        called(optimizer, "zero_grad")
        called(scaler, "scale", (tensor * factor).sum()).backward()
        called(scaler, "unscale")
        called(scaler, "step")
        called(scaler, "update")
        assert tensor.tolist() == pytest.approx([wanted] * 2)
    assert called(scaler, "get_scale") == 8.0
    called(optimizer, "zero_grad")
    with fails("ARGUMENT", "has a gradient"):
        called(scaler, "step")
    with fails("SIGNATURE", "no option 'initscale'", "did you mean 'init_scale'?"):
        called(optimizer, "scaler", initscale=8.0)
    scaler.held.update(32.0)
    program.save(scaler, str(tmp_path / "scaler"))
    other = called(optimizer, "scaler")
    program.restore(other, str(tmp_path / "scaler"))
    assert called(other, "get_scale") == 32.0


NETWORK = """
    import torch
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))

    def ftn_pytorch_forward(x):
        return net(x)
"""


@pytest.mark.parametrize("use_buffers", [False, True])
def test_averages_are_those_of_torch_and_part_of_checkpoints(use_buffers, load, tmp_path, fails):
    tools = torch.optim.swa_utils
    model = load(NETWORK)
    net = model.networks()["net"]
    made = called(model, "ftn_pytorch_averaged", decay=0.75, use_buffers=use_buffers)
    reference = tools.AveragedModel(net, multi_avg_fn=tools.get_ema_multi_avg_fn(0.75), use_buffers=use_buffers)
    for step in range(3):
        net(values(4, 2).float() + step)
        with torch.no_grad():
            net[0].weight.add_(0.5)
        called(made, "update")
        reference.update_parameters(net)
    assert called(made, "updates") == 3
    program.checkpoint(model, str(tmp_path / "kept"))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    called(made, "swap")
    same = net.state_dict()
    assert all(torch.equal(value, same[name]) for name, value in reference.module.state_dict().items())
    with fails("ARGUMENT", "call swap first"):
        called(made, "update")
    with fails("ARGUMENT", "call swap first"):
        program.checkpoint(model, str(tmp_path / "kept"))
    called(made, "swap")
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())

    again = load(NETWORK, name="again.py")
    other = called(again, "ftn_pytorch_averaged", decay=0.75, use_buffers=use_buffers)
    program.restore(again, str(tmp_path / "kept"))
    called(other, "swap")
    same = again.networks()["net"].state_dict()
    assert all(torch.equal(value, same[name]) for name, value in reference.module.state_dict().items())
    with fails("ARGUMENT", "decay is 1.0"):
        called(again, "ftn_pytorch_averaged", decay=1.0)
    with fails("SIGNATURE", "torch_averaged has no option 'deccay'; did you mean 'decay'?"):
        called(again, "ftn_pytorch_averaged", deccay=0.5)
    with fails("ARGUMENT", "'decay' of torch_averaged must be a number"):
        called(again, "ftn_pytorch_averaged", decay="slow")
