"""Small batches of environments for tests: obvious, deterministic, with every kind of ending."""

import numpy as np

from protogoal.envs.vector import ArraySpec, BatchStep


class Corridor:
    """N players on cells 0…length−1; left and right. The far end pays 1 and ends the episode; a time limit cuts it.

    Bits: one a cell. Observation: `kind` active (the cell's id), planes (a 1×length picture) or vector (a one-hot).
    """

    num_actions = 2
    max_active = 1

    def __init__(self, length=6, num_envs=4, limit=20, kind="active", start=0, scrambled=False):
        self.length, self.num_envs, self.limit, self.kind, self.begin = length, num_envs, limit, kind, start
        self.num_bits = length
        # which action goes right in each cell; scrambled, no constant policy gets far
        self.right = np.random.default_rng(7).integers(2, size=length) if scrambled else np.ones(length, int)
        shape = {"active": (1,), "planes": (1, 1, length), "vector": (length,), "characters": (1, length)}[kind]
        dtype = {"active": np.int16, "planes": np.uint8, "vector": np.float32, "characters": np.uint8}[kind]
        self.observation_spec = {"cell": ArraySpec(shape, np.dtype(dtype), kind, length if kind == "active" else 2)}
        self.reset()

    def _observe(self, cell):
        if self.kind == "active":
            array = cell[:, None].astype(np.int16)
        else:
            one_hot = np.eye(self.length, dtype=np.float32)[cell]
            spec = self.observation_spec["cell"]
            array = one_hot.reshape(len(cell), *spec.shape).astype(spec.dtype)
        return {"cell": array}

    def reset(self, seed=None):
        self.cell = np.full(self.num_envs, self.begin)
        self.time = np.zeros(self.num_envs, int)
        return self._observe(self.cell), self.cell[:, None].copy()

    def step(self, actions):
        self.cell = np.clip(self.cell + np.where(np.asarray(actions) == self.right[self.cell], 1, -1), 0, self.length - 1)
        self.time += 1
        terminated = self.cell == self.length - 1
        truncated = (self.time >= self.limit) & ~terminated
        final = self.cell.copy()
        over = terminated | truncated
        self.cell = np.where(over, self.begin, self.cell)
        self.time[over] = 0
        return BatchStep(self._observe(self.cell), self.cell[:, None].copy(), self._observe(final), final[:, None].copy(),
                         terminated.astype(np.float32), terminated, truncated)

    def get_state(self):
        return {"cell": self.cell.copy(), "time": self.time.copy()}

    def set_state(self, state):
        self.cell, self.time = state["cell"].copy(), state["time"].copy()
        return self._observe(self.cell), self.cell[:, None].copy()

    def close(self):
        pass
