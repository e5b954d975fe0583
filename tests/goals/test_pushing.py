"""What the deep agent relies on: in Baba Is You, cells that it can walk to are plausible, and what never moves is not."""

import numpy as np

from protogoal.envs.baba.batch import BabaBatch
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict


def test_a_random_players_trials_find_its_own_cells_plausible_and_fixed_things_static():
    rng = np.random.default_rng(0)
    env = BabaBatch("small", num_envs=64, max_episode_steps=200)
    steps, over = [], np.ones(64, bool)
    for _ in range(200):
        before, action = env.bits > 0, rng.integers(5, size=64)
        step = env.step(action)
        steps.append((before, action, env.final_bits > 0, over))
        over = step.terminated | step.truncated
    old, actions, new, first = (np.stack(part, 1) for part in zip(*steps, strict=True))  # [N, T, …]
    pge = ProtoGoalEvaluator(env.num_bits, 5)
    for i in range(64):
        pge.observe(old[i], actions[i], new[i], first=first[i])
    pge.refresh()
    plane = {name: np.arange(i * env.num_cells, (i + 1) * env.num_cells) for i, name in enumerate(env.plane_names)}
    often = pge.tested.events >= 50
    walked = plane["baba"][often[plane["baba"]]]
    assert len(walked) > 10
    assert (pge.verdict[walked] == Verdict.PLAUSIBLE).mean() >= 0.9
    pushed = plane["FLAG"][pge.table.count[plane["FLAG"]] > 0]  # the word that can be pushed
    assert len(pushed) > 3
    assert (pge.verdict[pushed] >= Verdict.UNDECIDED).mean() > 0.9
    assert (pge.verdict[pushed] == Verdict.PLAUSIBLE).any()
    for fixed in ("flag", "YOU", "WIN"):
        seen = plane[fixed][pge.table.observed[plane[fixed]]]
        assert (pge.verdict[seen] == Verdict.STATIC).sum() >= 1
        assert not (pge.verdict[seen] == Verdict.PLAUSIBLE).any()
