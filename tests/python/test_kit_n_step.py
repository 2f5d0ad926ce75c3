# SPDX-License-Identifier: MIT
"""Returns over several steps, against a loop over each environment and each step."""

import pytest
import torch

from episodes import played
from ftn_pytorch.kit import NStep, Replay


def reference(steps, n, gamma):
    """(observation, action, return, next observation, discount) of each step whose return is known."""
    found = []
    for place in range(len(steps[0][0])):
        for first in range(len(steps)):
            total, weight = 0.0, 1.0
            for last in range(first, min(first + n, len(steps))):
                _, _, reward, following, terminated, truncated = (each[place] for each in steps[last])
                total, weight = total + weight * float(reward), weight * gamma
                if terminated or truncated or last == first + n - 1:
                    observation, action = (each[place] for each in steps[first][:2])
                    discount = 0.0 if terminated else weight
                    found.append((*observation.tolist(), int(action), total, *following.tolist(), discount))
                    break
    return sorted(found)


def rows(found):
    return [
        (*observation.tolist(), int(action), float(reward), *following.tolist(), float(discount))
        for observation, action, reward, following, discount in zip(*found)
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_each_step_once_as_a_loop_has_it(n):
    steps, made = played(), NStep(n, 0.9)
    found = [row for step in steps for row in rows(made.add(*step))]
    expected = reference(steps, n, 0.9)
    assert len(found) == len(expected)
    for one, other in zip(sorted(found), expected):
        assert one == pytest.approx(other, rel=1e-13)


def test_what_ends_comes_oldest_first_and_nothing_of_the_next_episode():
    made, no, yes = NStep(3, 0.5), torch.tensor([False]), torch.tensor([True])
    one = lambda value: torch.tensor([float(value)])  # noqa: E731
    assert len(made.add(one(1), one(0), one(1), one(2), no)[0]) == 0
    assert len(made.add(one(2), one(0), one(1), one(3), no, no)[0]) == 0
    observation, _, reward, following, discount = made.add(one(3), one(0), one(1), one(9), no, yes)
    assert observation.tolist() == [1, 2, 3] and reward.tolist() == [1.75, 1.5, 1]
    assert following.tolist() == [9, 9, 9] and discount.tolist() == [0.125, 0.25, 0.5]
    observation, _, reward, following, discount = made.add(one(7), one(0), one(4), one(8), yes)
    assert (observation.tolist(), reward.tolist(), discount.tolist()) == ([7], [4], [0])


def test_a_replay_takes_what_comes_and_memory_of_the_simulation_may_change():
    replay, made = Replay(1000), NStep(3)
    memory = [each.clone() for each in played()[0]]
    for step in played(dtype=torch.float32):
        for place, each in zip(memory, step):
            place.copy_(each)
        replay.add(*made.add(*memory))
    assert [column.dtype for column in replay[:]] == [torch.float64, torch.int64] + [torch.float64] * 3
    observation, following = replay[:][0], replay[:][3]
    assert (observation[:, 0] == following[:, 0]).all()
    steps = (following - observation)[:, 1]
    assert (steps >= 1).all() and (steps <= 5).all()


def test_a_state_goes_on_bit_for_bit(fails):
    steps, made = played(), NStep(4, 0.9)
    for step in steps[:31]:
        made.add(*step)
    again = NStep(4, 0.9)
    again.load_state_dict(made.state_dict())
    for step in steps[31:]:
        assert all(map(torch.equal, made.add(*step), again.add(*step)))
    again.load_state_dict(NStep(4, 0.9).state_dict())
    assert len(again.add(*steps[0])[0]) in (0, 1)
    with fails("FORMAT", "(4, 0.9) in the file and (3, 0.9) here"):
        NStep(3, 0.9).load_state_dict(made.state_dict())
    other = NStep(4, 0.9)
    other.add(*played(environments=2)[0])
    with fails("FORMAT", "the environments are"):
        other.load_state_dict(made.state_dict())


def test_what_does_not_fit_is_refused(fails):
    for given, wrong in (((0, 0.9), "n is 0"), ((1, 1.1), "gamma is 1.1")):
        with fails("ARGUMENT", wrong):
            NStep(*given)
    made, step = NStep(2), list(played()[0])
    made.add(*step)
    with fails("SHAPE", "observations and actions were"):
        made.add(*played(environments=2)[0])
    with fails("SHAPE", "the first axis counts environments"):
        made.add(*step[:2], step[2][:, None], *step[3:])
    with fails("SHAPE", "the next (3, 1)"):
        made.add(*step[:3], step[3][:, :1], *step[4:])
