"""The evaluator in other libraries' training loops: `goal_env` for hindsight replay, `sb3` for Stable-Baselines3."""
