"""`protogoal train --env ID` alone: real environments start, name their goals, and train; what cannot be trained is one line."""

import importlib.util
import json

import pytest

import protogoal
from protogoal.cli import main

pytest.importorskip("torch")

TINY = ["--actor.num_envs", "4", "--learner.batch_size", "4", "--learner.min_replay", "200", "--network.hidden", "16",
        "--network.rank", "8", "--network.channels", "4", "--refresh_every", "400", "--evaluation.every", "100000",
        "--evaluation.episodes", "2", "--evaluation.final_episodes", "2", "--evaluation.max_steps", "100", "--threads", "1",
        "--learner.replay_ratio", "1"]

ENVS = [
    ("CartPole-v1", "", 2_000, "pole angle"),
    ("MountainCar-v0", "", 2_000, "position"),
    ("Acrobot-v1", "", 1_000, "first angle"),
    ("FrozenLake-v1", "", 2_000, "at ("),
    ("CliffWalking-v1", "", 1_000, "at ("),
    ("Taxi-v3", "", 2_000, "taxi at ("),
    ("Blackjack-v1", "", 2_000, "dealer's card"),
    ("LunarLander-v3", "Box2D", 1_000, "angle"),
    ("MiniGrid-DoorKey-5x5-v0", "minigrid", 1_000, "ahead"),
    ("minigrid:BabyAI-GoToObj-v0", "minigrid", 1_000, "ahead"),
    ("MiniHack-Room-5x5-v0", "minihack", 600, "in sight"),
    ("ALE/Pong-v5?obs_type=ram", "ale_py", 600, "byte"),
    ("Crafter-v1?length=100", "crafter", 400, "picture"),
    ("protogoal/SparseTaxi-v0", "", 1_000, "taxi at ("),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("env", "needs", "steps", "word"), ENVS, ids=[row[0] for row in ENVS])
def test_an_environment_trains_by_its_id_alone(env, needs, steps, word, tmp_path, capsys):
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    run = str(tmp_path / "run")
    assert main(["train", "--env", env, "--run", run, "--steps", str(steps), *TINY]) == 0
    capsys.readouterr()
    assert main(["goals", run, "--json"]) == 0
    names = [goal["name"] for goal in json.loads(capsys.readouterr().out)["goals"]]
    assert any(word in name for name in names)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("agent", ["r2d2", "count-bonus", "rnd", "agent57"])
def test_every_agent_trains_without_a_space(agent, tmp_path):
    assert main(["train", "--env", "CartPole-v1", "--run", str(tmp_path / "run"), "--agent", agent, "--steps", "600", *TINY]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert (config["network"]["core"], config["replay"]["most_gigabytes"]) == ("none", 0)


@pytest.mark.filterwarnings("ignore")
def test_a_run_by_id_needs_no_trust_and_goes_on_with_the_same_bins(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "--env", "CartPole-v1", "--run", run, "--steps", "600", *TINY]) == 0
    before = protogoal.read_run(run).goals
    assert main(["resume", run, "--steps", "900"]) == 0
    capsys.readouterr()
    assert main(["eval", run, "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] >= 900
    after = protogoal.read_run(run).goals
    named = dict(zip(before["id"], before["name"], strict=True))
    assert len(named) > 10
    assert any("pole" in name or "≥" in name or "…" in name for name in named.values())
    assert named.items() <= dict(zip(after["id"], after["name"], strict=True)).items()  # names tell where a bin ends


@pytest.mark.filterwarnings("ignore")
def test_an_agent_is_asked_with_what_the_environment_gives():
    minigrid = pytest.importorskip("minigrid")
    import gymnasium

    assert minigrid
    tiny = {"actor__num_envs": 4, "learner__min_replay": 200, "learner__batch_size": 4, "network__hidden": 16, "network__rank": 8,
            "network__channels": (4,), "evaluation__final_episodes": 2, "evaluation__max_steps": 100, "refresh_every": 400}
    agent = protogoal.train("MiniGrid-Empty-5x5-v0", steps=600, record=(), **tiny)
    env = gymnasium.make("MiniGrid-Empty-5x5-v0")
    observation, _ = env.reset(seed=0)  # with its mission
    for _ in range(3):
        action = agent.predict(observation)
        observation, *_ = env.step(action)
    assert agent.config.network.core == "lstm"
    assert "goal in sight" in list(agent.goals(as_table=False)["name"])
