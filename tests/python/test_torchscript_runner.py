# SPDX-License-Identifier: MIT
"""TorchScript models: prediction, training, saving and restoring."""

import os
import warnings

import pytest

import program

torch = pytest.importorskip("torch")

FORWARD, TRAIN = "ftn_pytorch_forward", "ftn_pytorch_train"
INFERENCE_MODE = 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x, scale: float = 1.0):
        return self.layer(x) * scale

    @torch.jit.export
    def difference(self, a, b):
        return a - b


@pytest.fixture
def save(tmp_path):
    def save(net, name="net.pt"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.jit.save(torch.jit.script(net), tmp_path / name)
        return str(tmp_path / name)

    return save


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net()


def load(path, **options):
    return program.load_model(path, **options)


def call(runner, name, *args, flags=0, **kwargs):
    return program.function(runner, name, flags)(*args, **kwargs)


X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("load", [program.load, program.load_model])
def test_model_is_recognised_whatever_was_expected(save, net, load):
    runner = load(save(net, "net.model"))
    assert (runner.name, runner.backend, runner.framework, runner.device) == ("net", "torchscript", "torch", None)


def test_nothing_is_warned_of_that_the_user_cannot_change(save, net, tmp_path):
    path = save(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner = load(path)
        call(runner, FORWARD, X)
        program.save(runner, str(tmp_path / "again.pt"))


# ---- forward


def test_forward_computes_what_the_model_computes(save, net):
    runner = load(save(net))
    assert torch.equal(call(runner, FORWARD, X), net(X))
    assert torch.equal(call(runner, FORWARD, X, scale=2.0), net(X, 2.0))
    assert program.bind(runner, FORWARD)[1:3] == (False, False)


def test_forward_keeps_gradients_possible(save, net):
    assert call(load(save(net)), FORWARD, X).requires_grad


def test_flag_for_inference_mode_is_honoured_in_forward_and_load(save, net):
    path = save(net)
    for result in (
        call(load(path), FORWARD, X, flags=INFERENCE_MODE),
        call(load(path, flags=INFERENCE_MODE), FORWARD, X),
    ):
        assert result.is_inference()
        assert torch.equal(result, net(X))


def test_other_methods_can_be_called(save, net, fails):
    runner = load(save(net))
    assert torch.equal(call(runner, "difference", X, X), torch.zeros(2, 2))
    assert program.has(runner, "difference")
    assert not program.has(runner, "_private")
    with fails("HOOK", "no function diference", "difference", "forward"):
        program.function(runner, "diference")


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "pieces"),
    [
        (FORWARD, (), {}, ("(x, scale=1.0)", "'x'")),
        (FORWARD, (X, 1.0, 2.0), {}, ("too many",)),
        (FORWARD, (X,), {"depth": 1}, ("depth",)),
        ("difference", (X,), {}, ("(a, b)", "'b'")),
        ("ftn_pytorch_create_optimizer_sgd", (), {}, ("lr",)),
    ],
)
def test_call_that_does_not_fit_is_told_before_it_is_made(save, net, fails, name, args, kwargs, pieces):
    with fails("SIGNATURE", name, *pieces):
        program.first_call(load(save(net)), name, args, kwargs)


def test_call_that_fits_passes(save, net):
    runner = load(save(net))
    program.first_call(runner, FORWARD, (X,), {"scale": 2.0})
    program.first_call(runner, TRAIN, (X, X), {})


def test_exception_in_the_model_is_told(save, net, fails):
    with fails("PYTHON", "shapes cannot be multiplied"):
        call(load(save(net)), FORWARD, torch.ones(2, 3))


def test_real_arrays_of_the_other_precision_are_told_with_the_cure(save, net, fails):
    runner = load(save(net))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    advice = (
        "It was called with (float64 array of shape (2, 2)). The parameters of the model are float32: "
        'load(..., dtype="float32") converts real arrays on their way in.'
    )
    with fails("PYTHON", "same dtype", advice):
        call(runner, FORWARD, X.double())
    with fails("PYTHON", "same dtype", advice):
        call(runner, TRAIN, X.double(), TARGET)
    with fails("PYTHON", 'load(..., dtype="float64")'):
        call(load(save(net.double())), FORWARD, X)


def test_configuration_is_refused(save, net, fails):
    with fails("ARGUMENT", "takes no config", "lr"):
        program.load_model(save(net), {"lr": 0.1})


def test_device_flag_in_forward_alone_is_warned_of(save, net):
    runner = load(save(net))
    with pytest.warns(UserWarning, match="module_use_device"):
        assert torch.equal(call(runner, FORWARD, X, flags=1), net(X))


# ---- train

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
TARGET = torch.tensor([[1.0], [0.0]])


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_train_makes_the_step_that_torch_makes(save, net, kind):
    runner = load(save(net))
    assert call(runner, f"ftn_pytorch_create_optimizer_{kind}", 0.1) is None
    optimizer = OPTIMIZERS[kind](net.parameters(), lr=0.1, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(X), TARGET)
        loss.backward()
        optimizer.step()
        assert call(runner, TRAIN, X, TARGET) == (False, loss.item())
    assert torch.equal(call(runner, FORWARD, X), net(X))


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_parameter_that_is_a_section_is_trained_alone(save, kind):
    class Section(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4, 3)[:, :2])

        def forward(self, x):
            return x @ self.weight.t()

    runner = load(save(Section()))
    call(runner, f"ftn_pytorch_create_optimizer_{kind}", 0.1, **({"momentum": 0.5} if kind == "sgd" else {}))
    call(runner, TRAIN, torch.ones(2, 2), torch.zeros(2, 4))
    weight = runner._model.weight.detach()
    assert weight.stride() == (3, 1), "a file keeps the section"
    whole = weight.as_strided((4, 3), (3, 1))
    assert (whole[:, :2] < 1).all() and torch.equal(whole[:, 2], torch.ones(4))


def test_a_method_with_the_name_of_one_of_torch_is_that_of_the_model(save):
    class Halves(torch.nn.Module):
        def forward(self, x):
            return x

        @torch.jit.export
        def half(self, x):
            return x / 2

        @torch.jit.export
        def eval(self, x):
            return x + 1

    runner = load(save(Halves()))
    for _ in range(2):
        assert torch.equal(call(runner, "half", X), X / 2) and torch.equal(call(runner, "eval", X), X + 1)
        assert torch.equal(call(runner, FORWARD, X), X)
    assert list(runner.signature("half").parameters) == ["x"]


def test_a_file_without_a_name_is_not_restored(save, net, fails):
    with fails("FILE", "the name of the checkpoint is empty"):
        load(save(net)).restore("")


def test_settings_of_the_optimizer_are_passed_on(save, net):
    plain, heavy = load(save(net)), load(save(net))
    call(plain, "ftn_pytorch_create_optimizer_sgd", 0.1)
    call(heavy, "ftn_pytorch_create_optimizer_sgd", 0.1, momentum=0.9)
    losses = [[call(runner, TRAIN, X, TARGET)[1] for _ in range(3)] for runner in (plain, heavy)]
    assert losses[0][:2] == losses[1][:2]
    assert losses[0][2] != losses[1][2]


def test_named_inputs_and_target_are_passed_by_name(save, net):
    runner = load(save(net))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.0)
    expected = torch.nn.functional.mse_loss(net(X, 2.0), TARGET).item()
    assert call(runner, TRAIN, X, TARGET, scale=2.0) == (False, expected)
    assert call(runner, TRAIN, X, scale=2.0, target=TARGET) == (False, expected)


def test_train_without_optimizer_says_what_to_call(save, net, fails):
    with fails("HOOK", "create_optimizer_sgd"):
        call(load(save(net)), TRAIN, X, TARGET)


def test_prediction_and_target_of_unequal_shape_are_refused(save, net, fails):
    runner = load(save(net))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    before = call(runner, FORWARD, X)
    with fails("SHAPE", "(2, 1)", "(2,)", "train to the mean"):
        call(runner, TRAIN, X, TARGET[:, 0])
    assert torch.equal(call(runner, FORWARD, X), before)


def test_prediction_and_target_of_unequal_type_are_refused(save, net, fails):
    runner = load(save(net))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    with fails("DTYPE", "float32", "float64"):
        call(runner, TRAIN, X, TARGET.double())


def test_train_without_target_is_refused(save, net, fails):
    runner = load(save(net))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    with fails("SIGNATURE", "target"):
        call(runner, TRAIN)


def test_model_of_several_results_cannot_be_trained(save, fails):
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x):
            return self.layer(x), x

    runner = load(save(Two()))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    with fails("RESULT_TYPE", "one tensor", "tuple"):
        call(runner, TRAIN, X, TARGET)


def test_model_without_parameters_has_no_optimizer(save, fails):
    runner = load(save(torch.nn.ReLU()))
    with fails("ARGUMENT", "no parameters"):
        call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)


def test_loss_that_is_not_a_number_is_passed_on(save, net):
    runner = load(save(net))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    loss = call(runner, TRAIN, X * float("nan"), TARGET)[1]
    assert loss != loss


# ---- save, restore, reload


def trained(path):
    runner = load(path)
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    call(runner, TRAIN, X, TARGET)
    return runner


def test_what_was_saved_can_be_loaded(save, net, tmp_path):
    runner = trained(save(net))
    program.save(runner, str(tmp_path / "trained.pt"))
    assert torch.equal(call(load(str(tmp_path / "trained.pt")), FORWARD, X), call(runner, FORWARD, X))
    assert sorted(os.listdir(tmp_path)) == ["net.pt", "trained.pt"]


def test_save_replaces_the_file_that_was_loaded(save, net):
    path = save(net)
    runner = trained(path)
    program.save(runner, path)
    assert torch.equal(call(load(path), FORWARD, X), call(runner, FORWARD, X))


@pytest.mark.parametrize("name", ["nowhere/net.pt", "."])
def test_save_to_a_place_that_cannot_be_written_is_told(save, net, tmp_path, fails, name):
    runner = load(save(net))
    with fails("FILE", "cannot be written"):
        program.save(runner, str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["net.pt"]


def test_restore_reads_the_parameters_in_place(save, net, tmp_path):
    runner = trained(save(net))
    forward, after_training = program.function(runner, FORWARD), call(runner, FORWARD, X)
    program.save(runner, str(tmp_path / "trained.pt"))
    call(runner, TRAIN, X, TARGET)
    assert not torch.equal(forward(X), after_training)
    program.restore(runner, str(tmp_path / "trained.pt"))
    assert torch.equal(forward(X), after_training)
    assert call(runner, TRAIN, X, TARGET)[1] > 0


@pytest.mark.parametrize(
    ("other", "piece"), [(torch.nn.Linear(2, 1), "layer.bias"), (torch.nn.Sequential(), "layer.weight")]
)
def test_restore_of_another_model_is_refused_and_changes_nothing(save, net, fails, other, piece):
    runner = load(save(net))
    with fails("FORMAT", "another model", piece):
        program.restore(runner, save(other, "other.pt"))
    assert torch.equal(call(runner, FORWARD, X), net(X))


def test_restore_of_another_size_is_refused_and_changes_nothing(save, net, fails):
    runner = load(save(net))
    larger = Net()
    larger.layer = torch.nn.Linear(2, 5)
    with fails("FORMAT", "another model", "layer.weight"):
        program.restore(runner, save(larger, "larger.pt"))
    assert torch.equal(call(runner, FORWARD, X), net(X))


def test_restore_of_another_kind_of_file_is_refused(save, net, fails, tmp_path, write):
    runner = load(save(net))
    with fails("FORMAT", "no TorchScript model"):
        program.restore(runner, write("model.py", ""))
    torch.save(net.state_dict(), tmp_path / "weights.pt")
    with fails("FORMAT", "no TorchScript model"):
        program.restore(runner, str(tmp_path / "weights.pt"))


def test_reload_reads_the_file_and_starts_the_optimizer_afresh(save, net):
    runner = trained(save(net))
    other = Net()
    save(other)
    program.reload(runner)
    assert torch.equal(call(runner, FORWARD, X), other(X))
    call(runner, TRAIN, X, TARGET)
    assert not torch.equal(call(runner, FORWARD, X), other(X))


def test_failed_reload_keeps_the_model(save, net, fails, tmp_path):
    runner = load(save(net))
    (tmp_path / "net.pt").write_bytes(b"PK\x03\x04")
    with fails("FORMAT", "torch.jit.load"):
        program.reload(runner)
    assert torch.equal(call(runner, FORWARD, X), net(X))
