"""DoorKey in Python: trained, and then asked to reach what it chose as goals itself. Run from this directory: python doorkey.py"""

import gymnasium
from minigrid_keycorridor import KINDS, CorridorView, proto_goals

import protogoal

if "goal" not in KINDS:
    KINDS.append("goal")  # DoorKey's green square


def make_env(render_mode=None):
    return CorridorView(gymnasium.make("MiniGrid-DoorKey-6x6-v0", render_mode=render_mode, disable_env_checker=True))


if __name__ == "__main__":
    import doorkey  # by its name, so that the run can be opened again

    agent = protogoal.train(doorkey.make_env, proto_goals, steps=60_000, run="runs/doorkey")
    print(agent.goals())
    print("before locked door:", agent.evaluate(100, goal="before locked door")["success"])
    print("the task:", agent.evaluate(100)["success"])

    env = make_env()
    observation, _ = env.reset(seed=1)
    for _ in range(100):  # to the lock, then through the door
        observation, reward, terminated, truncated, _ = env.step(agent.predict(observation, goal="lock unlocked"))
        if observation["status"][3] or terminated or truncated:
            break
    agent.save("doorkey.npz")
