"""Deep Sea, two arms: curiosity finds, and returns to, a treasure that ε-greedy exploration hardly ever sees."""

import dataclasses

import pytest
from reference.tiny_deep import steps_of

from protogoal.presets import PRESETS
from protogoal.record.store import Store
from protogoal.run.local import LocalSession

pytestmark = pytest.mark.learning
SEEDS = range(2)


def wins(preset, seed, folder, steps=40_000, size=12, **agent57):
    """Treasures found while training, and by the player at the end, of 20 episodes."""
    config = PRESETS[preset]
    config = dataclasses.replace(
        config, seed=seed, steps=steps, threads=1, env=dataclasses.replace(config.env, size=size),
        exploration=dataclasses.replace(config.exploration, **agent57),
        evaluation=dataclasses.replace(config.evaluation, every=steps, final_episodes=20))
    session = LocalSession(config)
    with Store.create(folder / f"{preset}-{seed}.db") as store:
        for _ in steps_of(session, store):
            pass
    return session.log.metrics(steps)["train_wins"], session.evaluate(20, seed=1).successes


def test_agent57_solves_deep_sea_and_r2d2_does_not(tmp_path):
    curious = [wins("deep-sea-agent57", seed, tmp_path) for seed in SEEDS]
    greedy = [wins("deep-sea-r2d2", seed, tmp_path) for seed in SEEDS]
    assert any(found >= 50 and played == 20 for found, played in curious), curious  # the first seed does not find it in these steps
    assert all(found <= 5 and played == 0 for found, played in greedy), greedy
