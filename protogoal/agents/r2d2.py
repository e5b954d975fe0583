"""R2D2 (Kapturowski et al. 2019) as the paper uses it: actor, replay, learner; the task is the only goal.

`ProtoR2D2` adds the proto-goal evaluator to it. `run.local` calls act → remember → learn in a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from protogoal.agents.making import make_agent_actor, make_agent_learner, make_agent_network
from protogoal.agents.parts import Seeds, can_learn, core_shape, stored_spec, updates_due
from protogoal.config import DeepConfig
from protogoal.deep.act import Experience
from protogoal.deep.network import weights_from_arrays, weights_to_arrays
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.replay import Replay
from protogoal.envs.vector import BatchEnv
from protogoal.goals.selection import GoalSet
from protogoal.goals.spaces import ProtoGoalSpace


class R2D2:
    """One agent: it acts in N environments, remembers segments, and learns from them."""

    def __init__(self, config: DeepConfig, env: BatchEnv, space: ProtoGoalSpace):
        if space.size != env.num_bits:
            raise ValueError(f"the proto-goal space has {space.size} bits, the environments give {env.num_bits}")
        self.config, self.env, self.space = config, env, space
        self._seeds = seeds = Seeds.of(config.seed)
        self.network, target, self.acting_network = (make_agent_network(config, env) for _ in range(3))
        # acting has its own copy, so that it can go on while the learner works
        self.learner = make_agent_learner(config, self.network, target)
        self.actor = make_agent_actor(config, env, self.acting_network, seeds.acting)
        self.replay = Replay(stored_spec(config, env), env.num_bits, env.max_active, core_shape(config), config.replay)
        self._sampling = np.random.default_rng(seeds.sampling)
        self.steps = 0
        self.goal_set = GoalSet.empty()
        self.known = KnownGoals.none(env.num_bits)

    @property
    def can_learn(self) -> bool:
        """Enough is in replay."""
        return can_learn(self.config, self.replay.transitions)

    def act(self, randomly: bool) -> Experience:
        """One window of steps with the acting network; `randomly` until learning has begun."""
        return self.actor.collect(self.goal_set, act_randomly=randomly)

    def remember(self, experience: Experience) -> None:
        """Puts a window into replay."""
        self.replay.add(experience.segments)
        self.steps += experience.segments.size * self.config.replay.trace_length

    def updates_due(self) -> int:
        """Updates by which the learner is behind `replay_ratio`."""
        return updates_due(self.config, self.steps, self.learner.updates) if self.can_learn else 0

    def learn(self) -> dict[str, float]:
        """One update from a batch of replay."""
        batch = self.replay.sample(self.config.learner.batch_size, self._sampling)
        return self.learner.update(batch, self.known)

    def publish(self) -> None:
        """Hands the learner's weights to the actor."""
        self.acting_network.load_state_dict(self.network.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain arrays and JSON-able values; loading it continues to the bit."""
        return {
            "learner": self.learner.state_dict(),
            "acting_network": weights_to_arrays(self.acting_network),
            "replay": self.replay.state_dict(),
            "actor": self.actor.state_dict(),
            "sampling": self._sampling.bit_generator.state,
            "steps": self.steps,
            "space": self.space.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        if "space" in state:  # the words its bits stand for; before the actor reads with them
            self.space.load_state_dict(state["space"])
        self.learner.load_state_dict(state["learner"])
        weights_from_arrays(self.acting_network, state["acting_network"])
        self.replay.load_state_dict(state["replay"])
        self.actor.load_state_dict(state["actor"])
        self._sampling.bit_generator.state = state["sampling"]
        self.steps = int(state["steps"])
