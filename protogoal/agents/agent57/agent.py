"""Agent57: R2D2 whose parts are those of the files beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from protogoal.agents.agent57.bandit import best_arm
from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.agents.blueprint import Seeds, Spaces
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.envs.vector import BatchEnv
from protogoal.settings import AgentSettings

if TYPE_CHECKING:
    from protogoal.deep.act import Actor

# NGU's gridworld constants and N = 16, the fewest policies that keep hard exploration; every policy is learned on every
# transition, as every goal is by the proto-goal agent.
TWO_CORES = Agent57Settings(
    num_policies=16,
    discount_max=0.99,
    discount_min=0.97,
    learn_policies="all",
    reads_intrinsic=False,
    kernel_epsilon=0.01,
    episodic_memory_reward_scale=0.1,
)
OF_EACH_ENVIRONMENT = {"bandit": ("arm", "reward", "pulls"), "distances": ("mean", "measured")}
"""Arrays of the actor's state with a row for each environment that do not hang on episodes."""


class Agent57(R2D2):
    """R2D2 that seeks what it has not seen."""

    settings = Agent57Settings
    stores_bonus = True

    @classmethod
    def on_two_cores(cls, config: DeepConfig) -> DeepConfig:
        network = replace(config.network, rank=32, goal_hidden=32)  # 16 policies need less than a thousand goals
        # where it ends, curious policies shun what ends an episode, and that is to win
        return replace(config, network=network, exploration=replace(TWO_CORES, intrinsic_return_ends=config.env.has_one_length))

    @classmethod
    def paper_settings(cls) -> AgentSettings:
        return Agent57Settings(memory_capacity=10_000)  # ten episodes of 1000 steps

    @classmethod
    def make_network(cls, config: DeepConfig, spaces: Spaces) -> Any:
        from protogoal.agents.agent57.split import SplitNetwork
        from protogoal.deep.network import seeded

        seed = int(Seeds.of(config.seed).weights.generate_state(1)[0])
        return seeded(seed, lambda: SplitNetwork(spaces.observation_spec, spaces.num_actions, config))

    @classmethod
    def make_learner(cls, config: DeepConfig, network: Any, target: Any) -> Any:
        from protogoal.agents.agent57.split import SplitLearner

        return SplitLearner(network, target, config, Seeds.of(config.seed).learning)

    @classmethod
    def make_actor(cls, config: DeepConfig, env: BatchEnv, network: Any, seed: np.random.SeedSequence) -> Actor:
        from protogoal.agents.agent57.act import Agent57Actor

        return Agent57Actor(env, network, config, seed)

    @classmethod
    def core_shape(cls, config: DeepConfig) -> tuple[int, int]:
        rows, hidden = super().core_shape(config)
        return 2 * rows, hidden  # two cores

    @classmethod
    def as_played(cls, config: DeepConfig, env: BatchEnv, network: Any) -> BatchEnv:
        from protogoal.agents.agent57.curiosity import CuriousView

        s: Any = config.exploration
        return CuriousView(env, network, s) if s.reads_intrinsic else env

    @classmethod
    def memory_bytes(cls, config: DeepConfig) -> dict[str, int]:
        from protogoal.agents.agent57.neighbours import BYTES_A_NUMBER

        s: Any = config.exploration
        return {"exploration.memory_capacity": s.memory_capacity * config.actor.num_envs * s.embedding_size * BYTES_A_NUMBER}

    @classmethod
    def buffers(cls, shared: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The policy with the best mean over all environments is played, once an episode has ended."""
        count, total = shared
        return {"task_policy": np.array(best_arm(count, total))} if count.any() else {}

    @classmethod
    def join_knowledge(cls, actors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Of policies and distances, for each environment; and one actor's scale of novelty."""
        first = actors[0]
        known = {"bandit": dict(first["bandit"]), "distances": dict(first["bonus"]["distances"])}
        parts = [{"bandit": actor["bandit"], "distances": actor["bonus"]["distances"]} for actor in actors]
        for part, names in OF_EACH_ENVIRONMENT.items():
            known[part] |= {name: np.concatenate([some[part][name] for some in parts]) for name in names}
        return {"bandit": known["bandit"], "bonus": {"moments": first["bonus"]["moments"], "distances": known["distances"]}}

    @classmethod
    def part_of_knowledge(cls, joined: Mapping[str, Any], index: int, num_envs: int) -> dict[str, Any]:
        """Were there fewer environments before, some begin with what another has learned."""
        rows = (index * num_envs + np.arange(num_envs)) % len(joined["bandit"]["pulls"])
        bandit = {name: joined["bandit"][name][rows] for name in OF_EACH_ENVIRONMENT["bandit"]}
        distances = {name: array[rows] for name, array in joined["bonus"]["distances"].items()}
        return {"bandit": bandit, "bonus": joined["bonus"] | {"distances": distances}}
