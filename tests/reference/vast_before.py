"""What `benchmarks/vast.py` measures, measured of version 0.1.0, where bits travelled as matrices and each had weights.

`vast_before.py SIZE STEPS`, with the package of that version on the path; `vast.py` unpacks it from the history and calls this.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import numpy as np
from vast import TOGETHER, costs

from protogoal.envs.views import ActiveView
from protogoal.goals.spaces import ProtoGoalSpace, Union
from protogoal.presets import PRESETS
from protogoal.run import local

SCREENS, CLOCKS, ALWAYS_ON = 8, 2, 8  # as in protogoal.envs.junk


class Declared(ProtoGoalSpace):
    """Bits without functions: the environments say which are on."""

    name = kind = lambda self, i: f"junk {i}"

    def _bits(self, s, a, s_next):
        raise NotImplementedError


class WithJunk(ActiveView):
    """The level, observed as before, with as much junk on as `protogoal.envs.junk` has, drawn anew at every step."""

    def __init__(self, env, size):
        super().__init__(env.env)
        self.own, self.junk, self._rng = env.num_bits, size, np.random.default_rng(0)
        self.num_bits, self.max_active = env.num_bits + size, env.max_active + SCREENS + CLOCKS + ALWAYS_ON

    def _beside(self, active):
        part = self.junk // (SCREENS + CLOCKS + 1)
        drawn = self._rng.integers(part, size=(self.num_envs, SCREENS + CLOCKS)) + part * np.arange(SCREENS + CLOCKS)
        static = np.tile(self.junk - 1 - np.arange(ALWAYS_ON), (self.num_envs, 1))
        return np.concatenate([active, self.own + drawn, self.own + static], 1)

    def reset(self, seed=None):
        observation, active = super().reset(seed)
        return observation, self._beside(active)

    def step(self, actions):
        step = super().step(actions)
        return step._replace(active=self._beside(step.active), final_active=self._beside(step.final_active))


class NoRecord:
    """Takes what is told and forgets it."""

    def __getattr__(self, name):
        return lambda *_, **__: None


class Session(local.LocalSession):
    def train(self):
        yield from super().train(NoRecord())


def see_half(evaluator):
    """The last half of the bits are on, once each, as in `vast.see_half`."""
    ids = np.random.default_rng(0).permutation(np.arange(evaluator.num_bits // 2, evaluator.num_bits))
    for part in np.array_split(ids, max(1, len(ids) // (100 * TOGETHER))):
        rows = np.arange(len(part)) // TOGETHER
        bits = np.zeros((rows[-1] + 1, evaluator.num_bits), bool)
        bits[rows, part] = True
        evaluator.observe(bits, np.zeros(len(bits)))


if __name__ == "__main__":
    size, steps = int(sys.argv[1]), int(sys.argv[2])
    preset = PRESETS["baba-umaze-small-protogoal"]
    config = replace(preset, threads=1, steps=10**9, refresh_every=10_000, actor=replace(preset.actor, num_envs=32),
                     learner=replace(preset.learner, min_replay=1_000, replay_ratio=8.0),  # what the present preset has
                     evaluation=replace(preset.evaluation, every=10**9), replay=replace(preset.replay, capacity=100_000))
    make_level = local.make_batch_env
    own = local.LocalSession(config).env.num_bits  # and compiles

    def make_with_junk(*arguments, **more):
        env, space = make_level(*arguments, **more)
        return WithJunk(env, size - own), Union([space, Declared(size - own)])

    local.make_batch_env = make_with_junk
    print(json.dumps(costs(lambda: Session(config), see_half, steps)))
