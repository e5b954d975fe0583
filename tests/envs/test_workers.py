"""Worker processes: the same transitions as in one process, and a run that survives what happens to them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium import spaces

from protogoal.envs.door import load
from protogoal.envs.episodes import episode_seed
from protogoal.envs.gym_batch import GymBatchEnv
from protogoal.envs.workers import WorkerPool
from protogoal.goals.spaces import BagOfWords, NamedCallables, ProtoGoalSpace


class Walk(gymnasium.Env):
    """A walk on 0…9 from a random place, with a word now and then; at 9 it ends, after `limit` steps it is cut off."""

    def __init__(self, limit: int = 12, fault: str = ""):
        self.observation_space = spaces.Dict({
            "place": spaces.Discrete(10),
            "board": spaces.Box(0, 3, (2, 5), np.uint8),
            "speed": spaces.Box(-1.0, 1.0, (2,), np.float32),
            "word": spaces.Text(16, min_length=0),
        })
        self.action_space = spaces.Discrete(3, start=-1)
        self.limit, self.fault, self.steps = limit, fault, 0

    def _see(self, word=""):
        board = np.zeros(10, np.uint8)
        board[self.place] = 1 + self.steps % 3
        return {"place": self.place, "board": board.reshape(2, 5), "speed": np.array([self.luck, 0], np.float32), "word": word}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps, self.luck = int(self.np_random.integers(5)), 0, float(self.np_random.random())
        return self._see(), {}

    def step(self, action):
        assert action in (-1, 0, 1)
        if self.fault == "raise":
            raise OSError("the walk is closed")
        self.steps += 1
        self.place = int(np.clip(self.place + action, 0, 9))
        self.luck = float(self.np_random.random())
        word = "edge" if self.place == 0 else ("goal" if self.place == 9 else "")
        reward = float("nan") if self.fault == "nan" else float(self.place == 9)
        return self._see(word), reward, self.place == 9, self.steps >= self.limit, {}


class Continuous(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.Box(-1, 1, (1,))


class Nested(gymnasium.Env):
    observation_space = spaces.Tuple([spaces.Discrete(2)])
    action_space = spaces.Discrete(2)


def run(pool: WorkerPool, actions: np.ndarray) -> list[dict[str, np.ndarray]]:
    steps = []
    for a in actions:
        pool.step(a)
        steps.append({
            "reward": pool.reward.copy(), "terminated": pool.terminated.copy(), "truncated": pool.truncated.copy(),
            **{f"now {k}": v.copy() for k, v in pool.observation.items()},
            **{f"final {k}": v.copy() for k, v in pool.final.items()},
        })
    return steps


def assert_same(a: list[dict[str, np.ndarray]], b: list[dict[str, np.ndarray]]) -> None:
    for x, y in zip(a, b, strict=True):
        for key in x:
            np.testing.assert_array_equal(x[key], y[key], err_msg=key)


def wait_until(condition, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_workers_give_the_same_transitions_as_one_process():
    actions = np.random.default_rng(0).integers(0, 3, (60, 5))
    traces = []
    for num_workers in (0, 1, 3):
        pool = WorkerPool(Walk, 5, num_workers)
        pool.reset(seed=4)
        traces.append(run(pool, actions))
        pool.close()
    assert sum(step["terminated"].sum() for step in traces[0]) > 0
    assert sum(step["truncated"].sum() for step in traces[0]) > 5
    assert_same(traces[0], traces[1])
    assert_same(traces[0], traces[2])


def test_transitions_are_those_of_the_environments_stepped_by_hand():
    actions = np.random.default_rng(1).integers(0, 3, (50, 3))
    pool = WorkerPool(partial(Walk, limit=9), 3)
    pool.reset(seed=8)
    envs = [Walk(limit=9) for _ in range(3)]
    episodes = [0, 0, 0]
    for k, env in enumerate(envs):
        observation, _ = env.reset(seed=episode_seed(8, k, 0))
        assert pool.observation["place"][k] == observation["place"]
    for a in actions:
        pool.step(a)
        for k, env in enumerate(envs):
            observation, reward, terminated, truncated, _ = env.step(a[k] - 1)
            assert pool.final["place"][k] == observation["place"]
            np.testing.assert_array_equal(pool.final["board"][k], observation["board"])
            assert bytes(pool.final["word"][k]).rstrip(b"\0").decode() == observation["word"]
            assert (pool.reward[k], pool.terminated[k], pool.truncated[k]) == (reward, terminated, truncated and not terminated)
            if terminated or truncated:
                episodes[k] += 1
                observation, _ = env.reset(seed=episode_seed(8, k, episodes[k]))
            assert pool.observation["place"][k] == observation["place"]
            np.testing.assert_array_equal(pool.observation["speed"][k], observation["speed"])
    assert min(episodes) > 2


def test_a_seed_fixes_everything_and_no_seed_goes_on_with_the_next_episodes():
    actions = np.random.default_rng(0).integers(0, 3, (20, 2))
    pool = WorkerPool(Walk, 2)
    pool.reset(seed=1)
    first = run(pool, actions)
    pool.reset()
    later = run(pool, actions)
    assert any(not np.array_equal(a["now speed"], b["now speed"]) for a, b in zip(first, later, strict=True))
    pool.reset(seed=1)
    assert_same(first, run(pool, actions))


def test_a_killed_worker_is_restarted_reported_and_its_transitions_truncated():
    events: list[str] = []
    pool = WorkerPool(Walk, 4, 2, on_event=events.append)
    try:
        pool.reset(seed=0)
        for a in np.ones((3, 4), int):
            pool.step(a)
        before = {name: array.copy() for name, array in pool.observation.items()}
        victim, other = pool.pids
        os.kill(victim, signal.SIGKILL)
        pool.step(np.ones(4, int))
        assert len(events) == 1
        assert "environments 0–1" in events[0]
        assert "SIGKILL" in events[0]
        np.testing.assert_array_equal(pool.crashed, [True, True, False, False])
        np.testing.assert_array_equal(pool.truncated[:2], [True, True])
        np.testing.assert_array_equal(pool.terminated[:2], [False, False])
        np.testing.assert_array_equal(pool.reward[:2], [0, 0])
        np.testing.assert_array_equal(pool.final["place"][:2], before["place"][:2])
        assert pool.observation["speed"][0, 0] != before["speed"][0, 0]  # a fresh episode
        assert pool.pids[1] == other
        assert gone(victim)
        run(pool, np.random.default_rng(0).integers(0, 3, (30, 4)))  # and the run goes on
        assert not pool.crashed.any()
        assert len(events) == 1
    finally:
        pool.close()


def test_workers_can_die_again_and_again():
    events: list[str] = []
    pool = WorkerPool(Walk, 2, 2, on_event=events.append)
    try:
        pool.reset(seed=0)
        for round_ in range(3):
            os.kill(pool.pids[round_ % 2], signal.SIGKILL)
            pool.step(np.ones(2, int))
            pool.step(np.ones(2, int))
        assert len(events) == 3
    finally:
        pool.close()


def test_an_environment_that_always_raises_is_given_up_with_its_own_words():
    pool = WorkerPool(partial(Walk, fault="raise"), 2, 1)
    pool.reset(seed=0)
    pool.step(np.ones(2, int))
    assert pool.crashed.all()
    pool.step(np.ones(2, int))
    with pytest.raises(ValueError, match="OSError: the walk is closed"):
        pool.step(np.ones(2, int))
    pool.close()


def test_a_worker_that_hangs_is_replaced():
    events: list[str] = []

    def told(text):
        events.append(text)
        pool.timeout = 120.0  # the new one may take its time

    pool = WorkerPool(Walk, 2, 1, on_event=told)
    try:
        pool.reset(seed=0)
        hung = pool.pids[0]
        os.kill(hung, signal.SIGSTOP)
        pool.timeout = 0.2
        pool.step(np.ones(2, int))
        assert pool.crashed.all()
        assert "did not answer for 0.2 s" in events[0]
        assert gone(hung)
        pool.step(np.ones(2, int))
        assert not pool.crashed.any()
        assert len(events) == 1
    finally:
        pool.close()


def test_closing_leaves_no_process_no_file_and_no_shared_memory():
    memory = Path("/dev/shm")
    shared = set(memory.iterdir()) if memory.exists() else set()
    pool = WorkerPool(Walk, 3, 2)
    pool.reset(seed=0)
    pids, directory = pool.pids, Path(pool.directory)
    assert directory.exists()
    pool.close()
    pool.close()
    assert all(wait_until(partial(gone, pid)) for pid in pids)
    assert not directory.exists()
    after = set(memory.iterdir()) if memory.exists() else set()
    assert not [path for path in after - shared if path.name.startswith("pym")]


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "SIGKILL", "exit"])
def test_nothing_stays_behind_however_the_parent_ends(ending, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent("""
        import sys
        import numpy as np
        from test_workers import Walk
        from protogoal.envs.workers import WorkerPool
        if __name__ == "__main__":
            pool = WorkerPool(Walk, 4, 2)
            pool.reset(seed=0)
            print(*pool.pids, pool.directory, flush=True)
            while sys.argv[1] != "exit":
                pool.step(np.ones(4, int))
    """))
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    parent = subprocess.Popen([sys.executable, str(script), ending], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": path}, start_new_session=True)
    *pids, directory = parent.stdout.readline().split()
    assert len(pids) == 2
    if ending == "SIGINT":
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    elif ending != "exit":
        parent.send_signal(getattr(signal, ending))
    _, stderr = parent.communicate(timeout=120)
    assert all(wait_until(partial(gone, int(pid))) for pid in pids)
    assert wait_until(lambda: not Path(directory).exists())
    if ending in ("SIGINT", "exit"):
        assert "leaked" not in stderr
        assert stderr.count("Traceback") == (ending == "SIGINT")


def test_a_script_without_a_main_guard_can_use_workers():
    code = ("from test_workers import Walk; from protogoal.envs.workers import WorkerPool\n"
            "class Mine(Walk): pass\n"
            "pool = WorkerPool(Mine, 2, 1); pool.reset(seed=0); print(__name__, pool.observation['place'].shape)")
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert (done.stdout, done.stderr) == ("__main__ (2,)\n", "")


def test_a_step_that_was_interrupted_must_be_followed_by_a_reset(monkeypatch):
    def interrupted(pipe, timeout=0.0):
        raise KeyboardInterrupt

    pool = WorkerPool(Walk, 2, 1)
    try:
        pool.reset(seed=0)
        monkeypatch.setattr(Connection, "poll", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.step(np.ones(2, int))
        monkeypatch.undo()
        with pytest.raises(RuntimeError, match="interrupted"):
            pool.step(np.ones(2, int))
        pool.reset(seed=3)
        first = run(pool, np.ones((5, 2), int))
        pool.reset(seed=3)
        assert_same(first, run(pool, np.ones((5, 2), int)))
    finally:
        pool.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_state_is_taken_up_again_to_the_bit(num_workers):
    actions = np.random.default_rng(3).integers(0, 3, (80, 4))
    pool = WorkerPool(Walk, 4, num_workers)
    pool.reset(seed=6)
    run(pool, actions[:37])
    state = pool.get_state()
    now = {k: v.copy() for k, v in pool.observation.items()}
    rest = run(pool, actions[37:])
    pool.close()
    events: list[str] = []
    again = WorkerPool(Walk, 4, num_workers, on_event=events.append)
    again.set_state(state)
    for name in ("place", "board", "speed"):
        np.testing.assert_array_equal(again.observation[name], now[name])
    assert_same(rest, run(again, actions[37:]))
    again.close()
    assert not events


def test_an_episode_that_cannot_be_repeated_starts_afresh_and_is_reported():
    events: list[str] = []
    pool = WorkerPool(partial(Walk, limit=50), 2)
    pool.reset(seed=0)
    run(pool, np.ones((20, 2), int))
    shorter = WorkerPool(partial(Walk, limit=5), 2, on_event=events.append)  # ends before the actions do
    shorter.set_state(pool.get_state())
    assert "2 of 2" in events[0]
    shorter.step(np.ones(2, int))


@pytest.mark.parametrize(("factory", "arguments", "said"), [
    (Continuous, (2,), "Discrete"), (Nested, (2,), "Tuple"), (Walk, (0,), "num_envs"), (Walk, (2, -1), "num_workers"),
])
def test_what_cannot_be_batched_is_refused(factory, arguments, said):
    with pytest.raises(ValueError, match=said):
        WorkerPool(factory, *arguments)


def test_wrong_actions_seeds_and_states_are_refused():
    pool = WorkerPool(Walk, 2)
    pool.reset(seed=0)
    with pytest.raises(ValueError, match="shape"):
        pool.step(np.ones(3, int))
    with pytest.raises(ValueError, match="0…2"):
        pool.step(np.array([0, 3]))
    with pytest.raises(ValueError, match="seed"):
        pool.reset(seed=-1)
    with pytest.raises(ValueError, match="environments"):
        pool.set_state({"seed": 0, "episode": np.zeros(3), "length": np.zeros(3), "actions": np.zeros((3, 0))})


# the adapter for the deep agent ------------------------------------------------------------------------------------

def words(capacity: int = 8) -> ProtoGoalSpace:
    return BagOfWords(capacity, key="word")


def test_observations_are_sorted_by_their_spaces_and_hidden_parts_are_for_the_bits_alone():
    batch = GymBatchEnv(Walk, words(), 3, hidden=("word",))
    observation, active = batch.reset(seed=0)
    kinds = {name: (spec.kind, spec.shape, spec.num_values) for name, spec in batch.observation_spec.items()}
    assert kinds == {"place": ("active", (1,), 10), "board": ("characters", (2, 5), 4), "speed": ("vector", (2,), 0)}
    assert {name: array.shape for name, array in observation.items()} == {"place": (3, 1), "board": (3, 2, 5), "speed": (3, 2)}
    assert (batch.num_actions, batch.num_bits, batch.max_active) == (3, 8, 8)
    assert active.shape == (3, 8)
    assert (active == -1).all()


def test_bits_belong_to_the_transition_and_not_to_the_state_after_a_reset():
    batch = GymBatchEnv(partial(Walk, limit=100), words(), 1)
    batch.reset(seed=0)
    while True:
        step = batch.step(np.array([2]))  # to the right, up to the goal
        if step.terminated[0]:
            break
        assert (step.final_active == -1).all()
    assert batch.space.name(step.final_active[0, 0]) == "word: goal"
    assert step.final_observation["place"][0, 0] == 9
    assert (step.active == -1).all()
    assert step.observation["place"][0, 0] < 5


def test_the_vocabulary_is_the_same_for_any_number_of_workers():
    actions = np.random.default_rng(0).choice([0, 2, 2], (60, 4))
    found = []
    for num_workers in (0, 2):
        batch = GymBatchEnv(Walk, words(), 4, num_workers)
        batch.reset(seed=0)
        active = [batch.step(a).final_active.copy() for a in actions]
        found.append((batch.space.state_dict(), np.stack(active)))
        batch.close()
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert len(found[0][0]["vocabulary"]) == 2


def test_a_crash_attains_no_bits():
    batch = GymBatchEnv(Walk, words(), 2, 1)
    try:
        batch.reset(seed=0)
        for _ in range(5):
            step = batch.step(np.zeros(2, int))  # to the left: "edge" from now on
        assert (step.final_active[:, 0] >= 0).all()
        os.kill(batch.pool.pids[0], signal.SIGKILL)
        step = batch.step(np.zeros(2, int))
        assert step.truncated.all()
        assert (step.final_active == -1).all()
    finally:
        batch.close()


def test_bits_may_look_at_the_whole_transition():
    class Number(gymnasium.Env):
        observation_space, action_space = spaces.Discrete(10), spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.n = 0
            return self.n, {}

        def step(self, action):
            self.n = (self.n + int(action)) % 10
            return self.n, 0.0, False, False, {}

    space = NamedCallables({"grew": lambda s, a, s_next: s_next > s, "chose 1": lambda s, a, s_next: a == 1})
    batch = GymBatchEnv(Number, space, 2)
    _, active = batch.reset(seed=0)
    assert (active == -1).all()
    step = batch.step(np.array([0, 1]))
    np.testing.assert_array_equal(step.final_active, [[-1, -1], [0, 1]])


class Counting(ProtoGoalSpace):
    """More and more bits are on, one more at each call; room is made for two."""

    usual_active = 2

    def __init__(self):
        super().__init__(40)
        self.calls = 0

    def _active(self, s, a, s_next):
        self.calls += 1
        return np.tile(np.arange(self.calls), (len(s_next["place"]), 1))

    def name(self, i):
        return f"bit {i}"

    kind = name


def test_lists_grow_with_what_is_on_and_stay_as_wide():
    batch = GymBatchEnv(partial(Walk, limit=100), Counting(), 2)
    _, active = batch.reset(seed=0)
    np.testing.assert_array_equal(active, [[0, -1]] * 2)
    widths = []
    for on in range(2, 30):
        step = batch.step(np.zeros(2, int))  # to the left, where no episode ends
        assert (step.final_active >= 0).sum(1).tolist() == [on, on]
        assert step.active.shape == step.final_active.shape == (2, batch.max_active)
        widths.append(batch.max_active)
    assert widths == sorted(widths)
    state = batch.get_state()
    other = GymBatchEnv(partial(Walk, limit=100), Counting(), 2)
    assert other.set_state(state)[1].shape == (2, widths[-1])
    state["max_active"] = 10**9
    with pytest.raises(ValueError, match="max_active"):
        other.set_state(state)


def test_a_space_that_does_not_keep_its_word_and_numbers_that_are_none_are_refused():
    class Liar(BagOfWords):
        def _bits(self, s, a, s_next):
            return np.zeros((len(s_next), 3), np.bool_)

    with pytest.raises(ValueError, match=r"\[N, 8\]"):
        GymBatchEnv(Walk, Liar(8, key="word"), 2).reset(seed=0)
    batch = GymBatchEnv(partial(Walk, fault="nan"), words(), 2)
    batch.reset(seed=0)
    with pytest.raises(ValueError, match="reward nan"):
        batch.step(np.ones(2, int))


def test_every_kind_of_space_is_read_in_its_own_way():
    def made(space):
        class Seen(gymnasium.Env):
            observation_space, action_space = space, spaces.Discrete(2)

        return GymBatchEnv(Seen, NamedCallables({"x": lambda s, a, s_next: True}), 1).observation_spec["observation"]

    assert made(spaces.MultiBinary((3, 4, 5))).kind == "planes"
    assert made(spaces.MultiBinary(6)).kind == "vector"
    assert made(spaces.Box(0, 1, (2, 4, 5), np.uint8)).kind == "planes"
    view = made(spaces.Box(0, 255, (7, 7, 3), np.uint8))
    assert (view.kind, view.shape, view.num_values) == ("grid", (3, 7, 7), 768)
    assert made(spaces.Box(0, 255, (128,), np.uint8)).kind == "bytes"
    assert made(spaces.Box(-1, 3, (4, 5), np.int8)).num_values == 5
    assert made(spaces.Box(0, 255, (210, 160, 3), np.uint8)).shape == (1, 52, 40)  # smaller, and grey
    assert made(spaces.Box(0.0, 1.0, (3, 64, 64), np.float32)).shape == (3, 64, 64)
    assert made(spaces.MultiDiscrete([3, 4])).num_values == 7
    assert made(spaces.Discrete(10**12)).num_values == 65_536
    assert made(spaces.Text(5)).kind == "active"
    with pytest.raises(ValueError, match="at most"):
        made(spaces.Box(-1.0, 1.0, (210, 160, 3), np.float32))


def test_objects_are_loaded_by_module_and_name():
    assert load("protogoal.envs.workers:WorkerPool") is WorkerPool
    for wrong in ("protogoal", "no_such_module:x", "protogoal.envs.workers:nothing"):
        with pytest.raises(ValueError, match=r"module|import"):
            load(wrong)
