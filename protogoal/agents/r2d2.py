"""R2D2 (Kapturowski et al. 2019) as the paper uses it: actor, replay, learner; the task is the only goal.

An agent is a class. Its class methods say what it is made of: engines call them, each part in whatever process it lives, and
never ask which agent it is. An instance is the agent put together in one process: `run.local` calls act → remember → learn.
Another agent overrides what it does otherwise; `ProtoR2D2` adds the proto-goal evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from protogoal.agents.blueprint import INTRINSIC, INTRINSIC_SPEC, Seeds, Spaces, can_learn, updates_due
from protogoal.config import DeepConfig
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.replay import Replay
from protogoal.deep.segments import Sizes
from protogoal.deep.stored import check_actions
from protogoal.envs.vector import BatchEnv
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.goal_set import GoalSet
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.stored import stored_number
from protogoal.settings import AgentSettings

if TYPE_CHECKING:  # torch costs a second, which is not paid to read settings
    from protogoal.deep.act import Actor, Experience


class R2D2:
    """One agent: it acts in N environments, remembers segments, and learns from them."""

    settings: type[AgentSettings] = AgentSettings
    """The class of its section `exploration`."""
    sets_goals = False
    """Whether a proto-goal evaluator chooses what it pursues."""
    stores_bonus = False
    """Whether its observations tell what the last step was worth beyond the task."""

    # --- what it is made of ---------------------------------------------------------------------------------------

    @classmethod
    def on_two_cores(cls, config: DeepConfig) -> DeepConfig:
        """A task's configuration with what this agent needs otherwise; its presets."""
        return config

    @classmethod
    def paper_settings(cls) -> AgentSettings:
        """Its section `exploration` at the paper's scale."""
        return cls.settings()

    @classmethod
    def make_network(cls, config: DeepConfig, spaces: Spaces) -> Any:
        """The network of a run, with its first weights: what `deep.network.QNetwork` can do, or more."""
        from protogoal.deep.network import make_network

        slots = min(spaces.num_bits, config.network.goal_slots)
        weights = Seeds.of(config.seed).weights
        return make_network(spaces.observation_spec, spaces.num_actions, slots, config.network, weights)

    @classmethod
    def make_learner(cls, config: DeepConfig, network: Any, target: Any) -> Any:
        """What learns the network."""
        from protogoal.deep.learn import Learner

        return Learner(network, target, config.learner, Seeds.of(config.seed).learning, config.replay.burn_in)

    @classmethod
    def make_actor(cls, config: DeepConfig, env: BatchEnv, network: Any, seed: np.random.SeedSequence) -> Actor:
        """What acts with it."""
        from protogoal.deep.act import Actor

        return Actor(env, network, config.actor, config.replay, seed, config.pge.max_members, keeps_trials=cls.sets_goals)

    @classmethod
    def stored(cls, config: DeepConfig, spaces: Spaces) -> Sizes:
        """What replay stores of a segment."""
        observation = spaces.observation_spec | ({INTRINSIC: INTRINSIC_SPEC} if cls.stores_bonus else {})
        return Sizes(observation, spaces.num_bits, spaces.max_active, cls.core_shape(config))

    @classmethod
    def core_shape(cls, config: DeepConfig) -> tuple[int, int]:
        """Shape of the recurrent core's state, as it is stored with a segment."""
        return (2, config.network.hidden) if config.network.core == "lstm" else (0, 0)

    @classmethod
    def as_played(cls, config: DeepConfig, env: BatchEnv, network: Any) -> BatchEnv:
        """Environments for playing, with all that the network reads."""
        return env

    @classmethod
    def memory_bytes(cls, config: DeepConfig) -> dict[str, int]:
        """Memory beside replay that settings of its own ask for, by their dotted names."""
        return {}

    # --- what several workers must agree upon ---------------------------------------------------------------------

    @classmethod
    def buffers(cls, shared: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Buffers of the network that is played with, from the sum of what all actors share (`Actor.shared`)."""
        return {}

    @classmethod
    def join_knowledge(cls, actors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Of the states of several actors what does not hang on their episodes, as the state of one."""
        return {}

    @classmethod
    def part_of_knowledge(cls, joined: Mapping[str, Any], index: int, num_envs: int) -> dict[str, Any]:
        """The part of it with which actor `index` of several begins."""
        return dict(joined)

    @classmethod
    def shared_knowledge(cls, shared: NDArray[Any]) -> dict[str, Any]:
        """What an actor that takes the place of a lost one can know from what that had shared, as a part of its state."""
        return {}

    # --- in one process -------------------------------------------------------------------------------------------

    evaluator: ProtoGoalEvaluator | None = None

    def __init__(self, config: DeepConfig, env: BatchEnv, space: ProtoGoalSpace):
        if space.size != env.num_bits:
            raise ValueError(f"the proto-goal space has {space.size} bits, the environments give {env.num_bits}")
        self.config, self.env, self.space = config, env, space
        self._seeds = seeds = Seeds.of(config.seed)
        from protogoal.deep.device import resolve

        device = resolve(config.device)
        self.network, target = (self.make_network(config, env).to(device) for _ in range(2))
        self.acting_network = self.make_network(config, env)  # its own copy, on the CPU: acting goes on while the learner works
        self.learner = self.make_learner(config, self.network, target)
        self.actor = self.make_actor(config, env, self.acting_network, seeds.acting)
        self.replay = Replay(self.stored(config, env), config.replay)
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
        shared = self.actor.shared()
        if shared is not None:
            from protogoal.deep.network import set_buffers

            for network in (self.network, self.learner.average.network):
                set_buffers(network, self.buffers(shared))

    def updates_due(self) -> int:
        """Updates by which the learner is behind `replay_ratio`."""
        return updates_due(self.config, self.steps, self.learner.updates) if self.can_learn else 0

    def learn(self) -> dict[str, float]:
        """One update from a batch of replay."""
        batch = self.replay.sample(self.config.learner.batch_size, self._sampling)
        figures: dict[str, float] = self.learner.update(batch, self.known)
        return figures

    def publish(self) -> None:
        """Hands the learner's weights to the actor."""
        self.acting_network.load_state_dict(self.network.state_dict())

    def refresh(self) -> None:
        """Judges the goals anew, where there are any."""

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain arrays and JSON-able values; loading it continues to the bit."""
        from protogoal.deep.network import weights_to_arrays

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
        from protogoal.deep.network import weights_from_arrays

        self.space.load_state_dict(state["space"])  # the words its bits stand for; before the actor reads with them
        self.learner.load_state_dict(state["learner"])
        weights_from_arrays(self.acting_network, state["acting_network"])
        check_actions(state["replay"]["arrays"], self.env.num_actions, "action", "previous_action")
        self.replay.load_state_dict(state["replay"])
        self.actor.load_state_dict(state["actor"])
        self._sampling.bit_generator.state = state["sampling"]
        self.steps = stored_number(state["steps"], "steps")
