"""The domains. `register_envs` makes them known to Gymnasium: with `import protogoal`, before or after Gymnasium, or by its own
plug-ins (the entry point `gymnasium.envs`) in versions that have them. Each module is loaded only when one of its environments is
made."""

from gymnasium.envs.registration import register, registry


def _register(name: str, entry_point: str, max_episode_steps: int | None = None, vector_entry_point: str | None = None) -> None:
    if name not in registry:  # a second import (reload, spawned worker) must not warn
        register(name, entry_point=entry_point, max_episode_steps=max_episode_steps, vector_entry_point=vector_entry_point)


def register_envs() -> None:
    """Registers `protogoal/…` with Gymnasium; to do it twice does no harm."""
    _register("protogoal/SparseTaxi-v0", "protogoal.envs.taxi:SparseTaxi", max_episode_steps=200)
    _register("protogoal/MiniHackRiver-v0", "protogoal.envs.minihack.env:RiverEnv")
    _register("protogoal/Baba-v0", "protogoal.envs.baba.env:make_env", max_episode_steps=1000,
              vector_entry_point="protogoal.envs.baba.env:BabaVectorEnv")


register_envs()
