"""Deep Sea: one path leads to the treasure."""

import numpy as np

from protogoal.envs.deep_sea import DeepSea


def test_only_going_right_in_every_row_finds_the_treasure():
    sea = DeepSea(5, 2, layout=3)
    sea.reset(seed=0)
    total = np.zeros(2)
    for t in range(5):
        right = sea.right[sea.row, sea.column]
        step = sea.step(np.array([right[0], right[1] if t != 2 else 1 - right[1]]))
        total += step.reward
        assert step.terminated.all() == (t == 4)
        assert not step.truncated.any()
    np.testing.assert_allclose(total, [1.0 - 0.01, -0.01 * 4 / 5], rtol=1e-5)
    assert (step.active == 0).all()  # back at the top left
    assert step.final_active[0, 0] == 24


def test_a_random_policy_finds_it_once_in_two_to_the_size():
    sea, rng = DeepSea(5, 64), np.random.default_rng(0)
    sea.reset(seed=0)
    found = sum(int((sea.step(rng.integers(2, size=64)).reward > 0.5).sum()) for _ in range(5 * 100))
    assert 120 < found < 280  # 6,400 episodes / 32


def test_a_state_that_is_saved_and_loaded_goes_on():
    rng = np.random.default_rng(0)
    one, two = DeepSea(6, 3), DeepSea(6, 3)
    one.reset(seed=0)
    for _ in range(4):
        one.step(rng.integers(2, size=3))
    two.set_state(one.get_state())
    for _ in range(9):
        action = rng.integers(2, size=3)
        ours, again = one.step(action), two.step(action)
        for name in ("active", "final_active", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(again, name), err_msg=name)
        for name, array in ours.observation.items():
            np.testing.assert_array_equal(array, again.observation[name], err_msg=name)
