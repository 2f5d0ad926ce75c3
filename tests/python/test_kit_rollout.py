# SPDX-License-Identifier: MIT
"""Advantages of the steps of a policy, against sums over each episode."""

from pathlib import Path

import pytest
import torch

import program
from episodes import played
from ftn_pytorch.kit import Rollout

GAMMA, LAM = 0.9, 0.8


def critic(observation):
    return torch.sin(observation @ torch.tensor([3.0, 0.7], dtype=observation.dtype))


def by_definition(steps):
    """The sum over all later errors of the episode, each worth gamma times lam less than the one before."""
    found = torch.zeros(len(steps), len(steps[0][2]), dtype=torch.float64)
    for place in range(found.shape[1]):
        for first in range(len(steps)):
            weight = 1.0
            for observation, _, reward, following, terminated, truncated in steps[first:]:
                value, after = (float(critic(each[place])) for each in (observation, following))
                after = 0.0 if terminated[place] else after
                found[first, place] += weight * (float(reward[place]) + GAMMA * after - value)
                weight *= GAMMA * LAM
                if terminated[place] or truncated[place]:
                    break
    return found


def by_bootstrapped_rewards(steps):
    """As stable-baselines3 defines it: the value of an episode that was cut off is a part of its last reward."""
    values = torch.stack([critic(step[0]) for step in steps])
    later, found = torch.zeros(len(steps[0][2]), dtype=torch.float64), []
    for number in reversed(range(len(steps))):
        _, _, reward, following, terminated, truncated = steps[number]
        is_over = terminated | truncated
        reward = reward + GAMMA * critic(following) * (truncated & ~terminated)
        after = torch.where(is_over, 0.0, critic(following))
        later = reward + GAMMA * after - values[number] + GAMMA * LAM * later * ~is_over
        found.insert(0, later)
    return torch.stack(found)


def filled(steps, count=None):
    rollout = Rollout(len(steps) if count is None else count, GAMMA, LAM)
    added = [rollout.add(*step) for step in steps]
    assert added == [False] * (len(steps) - 1) + [count is None] and len(rollout) == len(steps)
    return rollout


@pytest.mark.parametrize("definition", [by_definition, by_bootstrapped_rewards])
@pytest.mark.parametrize("count", [None, 100])
def test_advantages_as_they_are_defined(definition, count):
    steps = played(40)
    observation, action, advantage, target = filled(steps, count).finish(critic)
    torch.testing.assert_close(advantage, definition(steps).flatten())
    torch.testing.assert_close(target, advantage + critic(observation))
    assert torch.equal(observation, torch.cat([step[0] for step in steps]))
    assert torch.equal(action, torch.cat([step[1] for step in steps]))


def test_it_begins_anew_with_copies_of_its_own():
    rollout, steps = filled(played(5)), played(5, seed=1)
    first = rollout.finish(critic)
    kept = [each.clone() for each in first]
    for step in steps:
        rollout.add(*(each.clone() for each in step))
    assert all(map(torch.equal, first, kept))
    torch.testing.assert_close(rollout.finish(critic)[2], by_definition(steps).flatten())


def test_a_value_after_the_end_is_never_used():
    steps = [(*step[:3], torch.where(step[4][:, None], torch.nan, step[3]), *step[4:]) for step in played(40)]
    assert any(bool(step[4].any()) for step in steps)
    assert filled(steps).finish(critic)[2].isfinite().all()


def test_episodes_without_a_limit_and_rewards_of_another_type():
    steps = [(step[0].float(), step[1], step[2] * 2, *step[3:5]) for step in played(10)]
    steps = [(*step[:2], step[2].round().int(), step[3].float(), step[4]) for step in steps]
    rollout = Rollout(10, GAMMA, LAM)
    for step in steps:
        rollout.add(*step)
    never = torch.zeros(3, dtype=torch.bool)
    advantage = rollout.finish(critic)[2]
    assert advantage.dtype == torch.float32
    expected = by_definition([(*step, never) for step in steps])
    torch.testing.assert_close(advantage.double(), expected.flatten(), rtol=1e-4, atol=1e-5)


def test_a_state_goes_on_bit_for_bit(fails):
    steps = played(20)
    rollout, again = filled(steps[:12], 20), Rollout(20, GAMMA, LAM)
    again.load_state_dict(rollout.state_dict())
    for step in steps[12:]:
        rollout.add(*step), again.add(*step)
    assert all(map(torch.equal, rollout.finish(critic), again.finish(critic)))
    again.load_state_dict(Rollout(20, GAMMA, LAM).state_dict())
    assert len(again) == 0
    with fails("FORMAT", "lam is 0.8 in the file and 0.5 here"):
        Rollout(20, GAMMA, 0.5).load_state_dict(rollout.state_dict())
    other = Rollout(20, GAMMA, LAM)
    other.add(*played(environments=2)[0])
    with fails("FORMAT", "the steps are"):
        other.load_state_dict(filled(steps[:12], 20).state_dict())


def test_what_does_not_fit_is_refused(fails):
    with fails("ARGUMENT", "steps is 0"):
        Rollout(0)
    with fails("ARGUMENT", "gamma is 0.99 and lam 1.5"):
        Rollout(1, lam=1.5)
    rollout = Rollout(1)
    with fails("ARGUMENT", "no steps to finish"):
        rollout.finish(critic)
    rollout.add(*played()[0])
    with fails("ARGUMENT", "there are all 1 steps"):
        rollout.add(*played()[0])
    with fails("SHAPE", "values of shape (3, 1), and not (3,)"):
        rollout.finish(lambda observation: observation[:, :1])
    rollout.finish(critic)
    with fails("SHAPE", "the steps were"):
        rollout.add(*played(environments=2)[0])
    with fails("SHAPE", "the first axis counts environments"):
        rollout.add(*played()[0][:2], torch.zeros(4), *played()[0][3:])


def test_the_agent_of_the_example_restarts_bit_for_bit_within_a_rollout(tmp_path, extension):
    source = Path(__file__).parents[2] / "examples" / "reinforcement_learning" / "agent.py"
    text, config = (
        source.read_text(),
        {"updates": 9, "steps": 6, "observations": 2, "actions": 5, "width": 8, "batch": 9},
    )
    steps = played(54, dtype=torch.float32)

    def load(name):
        (tmp_path / f"{name}.py").write_text(text)
        return program.load(str(tmp_path / f"{name}.py"), config)

    def run(runner, first, last):
        act, train = (program.function(runner, name) for name in ("act", "ftn_pytorch_train"))
        for observation, _, *led_to in steps[first:last]:
            action = act(observation)
            yield action.tolist(), *train(observation, action, *led_to)

    whole = list(run(load("whole"), 0, 54))
    runner = load("first")
    found = list(run(runner, 0, 33))  # three steps of the sixth rollout
    program.checkpoint(runner, str(tmp_path / "checkpoints"), keep=1, step=33)
    list(run(runner, 33, 40))
    runner = load("second")
    program.restore(runner, str(tmp_path / "checkpoints"))
    assert found + list(run(runner, 33, 54)) == whole
    assert [is_completed for _, is_completed, _ in whole] == [False] * 53 + [True]
    assert len({loss for *_, loss in whole}) == 10
