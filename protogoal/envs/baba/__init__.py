"""Baba Is You: exact rules, many games at once (paper §6.3; the U-Maze).

`rules` reads what the words spell, `movement` and `engine` play a turn, `levels` reads level files, `batch` is the fast
core for agents, `env` the Gymnasium face, `render` draws, `game` plays one game or a string of moves, `play` is for people.
"""

from protogoal.envs.baba.batch import ACTIONS, BabaBatch
from protogoal.envs.baba.game import Game, Outcome, replay
from protogoal.envs.baba.levels import KEKE_LEGEND, LEGEND, Legend, Level, level_names, load_level

__all__ = ["ACTIONS", "KEKE_LEGEND", "LEGEND", "BabaBatch", "Game", "Legend", "Level", "Outcome", "level_names", "load_level",
           "replay"]
