"""MiniHack's river on the real NetHack (paper §6.3): glyph classes, the game, the environment, its pictures, batches."""

from protogoal.envs.minihack.batch import river_batch, word_space
from protogoal.envs.minihack.env import RiverEnv
from protogoal.envs.minihack.game import COLUMNS, MAX_MONSTERS, MOVES, ROWS, SCENARIOS

__all__ = ["COLUMNS", "MAX_MONSTERS", "MOVES", "ROWS", "SCENARIOS", "RiverEnv", "river_batch", "word_space"]
