# SPDX-License-Identifier: MIT
"""Parts of the kit in recorded functions: recorded right, or refused with advice; the numbers of plain Python."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.kit import Background, Guard, LearntRange, Log, Normaliser, NStep, Rollout  # noqa: E402
from kit_recorded_replay import (  # noqa: E402
    of_add,
    of_draw,
    of_export,
    of_held_out,
    of_length,
    of_load_state,
    of_priorities,
    of_prioritise,
    of_rows,
    of_sample,
    of_seen,
    of_slice,
    of_state,
    replay,
)

CALLS, CHANGE = 40, 20

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning"),
]


def guarded():
    net = torch.nn.Linear(1, 1)
    return Guard(net, patience=15)


def of_allows():
    guard, scale = guarded(), torch.ones(1)

    def step(x):
        return x + (1 if guard.allows(x.sum() * scale) else -1)

    return step, lambda: scale.fill_(torch.inf)


def of_score():
    guard = guarded()

    def step(x):
        return x + guard.score(1.0)

    return step, lambda: guard.score(0.5)


def of_is_completed():
    guard = guarded()
    return lambda x: x + guard.is_completed, lambda: [guard.score(1.0) for _ in range(20)]


def of_best():
    guard = guarded()
    guard.score(3.0)
    return lambda x: x + guard.best, lambda: guard.score(1.0)


def of_returns():
    guard = guarded()
    return lambda x: x + guard.returns + guard.skipped, lambda: [guard.allows(torch.nan) for _ in range(4)]


def of_learn_range():
    guard = guarded()

    def step(x):
        guard.learn_range(x[:, None])
        return x + 1

    rows = torch.tensor([[5.0], [10.0]])
    return step, lambda: guard.learn_range(torch.full((1, 1), 9.0)), lambda: guard.outside(rows)


def of_outside():
    guard = guarded()
    guard.learn_range(torch.zeros(1, 1))
    step = lambda x: torch.where(guard.outside(x[:, None]), 0 * x, x)  # noqa: E731
    return step, lambda: guard.learn_range(torch.full((1, 1), 100.0)), lambda: guard.counts


def of_outside_restored():
    guard = guarded()
    guard.learn_range(torch.full((1, 1), 100.0))
    guard.learn_range(torch.zeros(1, 1))
    fresh = guarded().state_dict()
    return lambda x: guard.outside(x[:, None]) + x, lambda: guard.load_state_dict(fresh)


def of_outside_of_nothing():
    guard = guarded()
    change = lambda: (guard.learn_range(torch.zeros(1, 1)), guard.learn_range(torch.full((1, 1), 100.0)))  # noqa: E731
    return lambda x: guard.outside(x[:, None]) + x, change


def of_counts():
    guard = guarded()
    guard.learn_range(torch.zeros(1, 1))
    return lambda x: guard.counts.sum() + x, lambda: guard.outside(torch.ones(1, 1))


def of_normalise():
    normaliser = Normaliser(())
    normaliser.update(torch.arange(5.0))
    return normaliser.normalise, lambda: normaliser.update(torch.full((3,), 100.0))


def of_denormalise():
    normaliser = Normaliser(())
    normaliser.update(torch.arange(5.0))
    return lambda x: normaliser.denormalise(x), lambda: normaliser.load_state_dict(Normaliser(()).state_dict())


def of_update():
    normaliser = Normaliser(())

    def step(x):
        normaliser.update(x)
        return normaliser(x)

    return step, normaliser.freeze, lambda: normaliser.mean


def of_freeze():
    normaliser = Normaliser(())
    normaliser.update(torch.arange(5.0))

    def step(x):
        return normaliser.freeze()(x)

    def change():
        normaliser.freeze(False)
        normaliser.update(torch.full((3,), 100.0))

    return step, change, lambda: normaliser.frozen


def of_learnt_range():
    learnt = LearntRange(1)
    learnt.learn(torch.zeros(1, 1))
    return lambda x: torch.where(learnt(x[:, None]), 0 * x, x), lambda: learnt.learn(torch.full((1, 1), 100.0))


def of_learn():
    learnt = LearntRange(1)

    def step(x):
        learnt.learn(x[:, None])
        return x + 1

    return step, lambda: learnt.learn(torch.full((1, 1), 100.0)), lambda: learnt.high


def of_n_step():
    made, no = NStep(2), torch.zeros(2, dtype=torch.bool)

    def step(x):
        return x + made.add(x, x, x, x, no)[2].sum()

    return step, lambda: made.add(*[torch.ones(2)] * 4, ~no)


def of_rollout():
    made, no = Rollout(3), torch.zeros(2, dtype=torch.bool)

    def step(x):
        return x + made.finish(lambda x: x)[2].sum() if made.add(x, x, x, x, no) else x

    return step, lambda: made.finish(lambda x: x)


def of_log():
    log, numbers = Log(), itertools.count()

    def step(x):
        log.write(3, loss=1.0)
        log.flush()
        return x + 1

    return step, lambda: log.write(100 + next(numbers), loss=1.0), lambda: torch.tensor(log.step)


def of_log_step():
    log = Log()
    log.write(1, loss=1.0)
    return lambda x: x + log.step, lambda: log.write(7, loss=1.0)


def of_timing():
    log, seen = Log(), []

    @log.timing
    def inner(x):
        return x + 1

    class Counted(type(log.timing)):
        def __enter__(self):
            seen.append(1)
            return super().__enter__()

    log.timing.__class__ = Counted
    return inner, lambda: seen.append(100), lambda: torch.tensor(len(seen))


def of_share():
    log = Log()
    return lambda x: x + 0 * log.timing.share(), lambda: None


def background():
    net, learnt = torch.nn.Linear(1, 1), []
    torch.nn.init.ones_(net.weight)

    def step(x):
        learnt.append(x)
        with torch.no_grad():
            net.weight.add_(x.sum())
        return float(len(learnt))

    return Background(step, net, deterministic=True), learnt


def of_submit():
    made, learnt = background()

    def result():
        made.flush()
        return torch.stack(learnt)

    return lambda x: x + (made.submit(x)[1] < 10), lambda: made.submit(torch.ones(2)), result


def of_published():
    made, _ = background()
    submit = lambda: (made.submit(torch.ones(2)), made.flush())  # noqa: E731
    return lambda x: made.published(x[:, None])[:, 0], submit


def of_published_by_name():
    made, _ = background()
    predict = made.published
    submit = lambda: (made.submit(torch.ones(2)), made.flush())  # noqa: E731
    return lambda x: predict(x[:, None])[:, 0], submit


def of_publish():
    made, _ = background()

    def step(x):
        made.publish()
        made.flush()
        return x + 1

    return step, lambda: made.submit(torch.ones(2)), lambda: made.published.weight


def of_steps():
    made, _ = background()
    change = lambda: (made.submit(torch.ones(2)), made.flush())  # noqa: E731
    return lambda x: x + made.steps + made.submitted + made.dropped + (made.loss < 10) + made.is_completed, change


# What the obstacle says; empty where it is recorded
CASES = {
    of_sample: "it calls sample of kit.Replay, which counts, draws or decides in Python: call it outside of the",
    of_draw: "it calls draw of kit.Replay",
    of_priorities: "it calls weights of kit.Replay",
    of_prioritise: "it calls prioritise of kit.Replay",
    of_length: "it calls __len__ of kit.Replay",
    of_seen: "it reads seen of kit.Replay",
    of_slice: "it calls __getitem__ of kit.Replay",
    of_rows: "it calls __len__ of kit.Replay",
    of_add: "it calls add of kit.Replay",
    of_held_out: "it calls __getitem__ of kit.Replay",
    of_state: "it calls state_dict of kit.Replay",
    of_load_state: "it calls load_state_dict of kit.Replay",
    of_export: "it calls export of kit.Replay",
    of_allows: "it calls allows of kit.Guard",
    of_score: "it calls score of kit.Guard",
    of_is_completed: "it calls is_completed of kit.Guard",
    of_best: "it reads best of kit.Guard",
    of_returns: "it reads returns of kit.Guard",
    of_learn_range: "it calls learn_range of kit.Guard",
    of_outside: "",
    of_outside_restored: "",
    of_outside_of_nothing: "kit.Guard, which has learnt no range",
    of_counts: "it calls counts of kit.Guard",
    of_normalise: "",
    of_denormalise: "",
    of_update: "a number is taken out of a tensor",
    of_freeze: "",
    of_learnt_range: "",
    of_learn: "",
    of_n_step: "it calls add of kit.NStep",
    of_rollout: "it calls add of kit.Rollout",
    of_log: "it calls write of kit.Log",
    of_log_step: "it reads step of kit.Log",
    of_timing: "it calls __enter__ of kit.",
    of_share: "it calls share of kit.Timing",
    of_submit: " ",
    of_published: "it calls published of kit.Background",
    of_published_by_name: "",
    of_publish: "it calls publish of kit.Background",
    of_steps: "it reads steps of kit.Background",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_numbers_of_plain_python(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(record):
        torch.manual_seed(0)
        step, change, *result = case()
        step = recorded(step) if record else step
        seen = []
        for number in range(CALLS):
            if number == CHANGE:
                change()
            # the same in the calls that are compared
            seen.append(step(torch.arange(2.0) + number // 10).detach().clone())
        return [*seen, *(each().detach().clone() for each in result), torch.get_rng_state()], step

    (plain, _), (again, step) = run(False), run(True)
    assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    obstacle = step.recording.obstacle
    assert (CASES[case] in obstacle) if CASES[case] else not obstacle and step.recording.is_ready, obstacle


def test_parts_for_lightning_say_so_too():
    pl = pytest.importorskip("lightning.pytorch")
    from ftn_pytorch.kit import Online, ReplayData

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x):
            return self.layer(x)

        def training_step(self, batch, number):
            return self.layer(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    online = Online(Module())
    samples, _ = replay()
    data = ReplayData(samples, 4)
    x = torch.ones(2, 1)
    for step, said in (
        (lambda x: online.step(x)[1], "of kit.Online"),
        (lambda x: online(x), "of kit.Online"),
        (lambda x: x + (online.loss < 0) + online.is_completed, "of kit.Online"),
        (lambda x: x + next(iter(data.train_dataloader()))[0].sum(), "train_dataloader of kit.ReplayData"),
    ):
        step = recorded(step)
        seen = [step(x).clone() for _ in range(6)]
        assert said in step.recording.obstacle, step.recording.obstacle
        assert not torch.equal(seen[0], seen[-1]) or said == "of kit.Online"
