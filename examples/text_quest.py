"""A text game of TextWorld's: read, and choose a command. Run: python examples/text_quest.py (extras deep, text)

TextWorld makes the game from a seed: rooms, things, and a quest of a few commands, with one reward at its end. The proto-goals are
derived: every word of each of the three texts, such as "carried: laptop" and "room: bureau". The actions are the commands that
may make sense anywhere in this game; where one makes none, the game says so, and nothing changes. A minute of one core;
with the seed as it is, the quest is done in ten of ten episodes then.
"""

import argparse
import functools
import tempfile
import warnings
from pathlib import Path

import gymnasium
import textworld
from gymnasium import spaces

import protogoal

LONGEST = 4_000  # characters of a text
SHOWN = textworld.EnvInfos(description=True, inventory=True, won=True, lost=True)


@functools.lru_cache(maxsize=8)
def game_of(seed, rooms, objects, quest):
    """A compiled game and its commands; made once in a process, some seconds."""
    options = textworld.GameOptions()
    options.seeds, options.nb_rooms, options.nb_objects, options.quest_length = seed, rooms, objects, quest
    options.path = str(Path(tempfile.mkdtemp()) / "game.z8")
    game = textworld.generator.make_game(options)
    commands = [command for command in game.possible_admissible_commands if not command.startswith("examine")]
    return textworld.generator.compile_game(game, options), tuple(sorted(commands))


class Quest(gymnasium.Env):
    """What the room looks like, what is carried, and what the game answered; reward 1 when the quest is done."""

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012  (Gymnasium's own way)

    def __init__(self, seed=1, rooms=2, objects=3, quest=3, render_mode=None):
        path, self.commands = game_of(seed, rooms, objects, quest)
        self.render_mode = render_mode
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of jericho's, that it does not know the game
            self.game = textworld.start(path, SHOWN)
        self.action_space = spaces.Discrete(len(self.commands))
        self.observation_space = spaces.Dict({name: spaces.Text(LONGEST, charset=frozenset(map(chr, range(256))))
                                              for name in ("room", "carried", "answer")})

    def _texts(self, answer):
        words = {"room": self.state.description, "carried": self.state.inventory, "answer": answer}
        return {name: (text or "").encode("latin-1", "replace").decode("latin-1")[:LONGEST] for name, text in words.items()}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.state = self.game.reset()
        return self._texts(""), {}  # the first answer tells the whole quest

    def step(self, action):
        self.state, _, _ = self.game.step(self.commands[action])
        over = bool(self.state.won or self.state.lost)
        return self._texts(self.state.feedback), float(self.state.won), over, False, {}

    def render(self):
        return self.state.feedback

    def close(self):
        self.game.close()


def make_env(seed=1, rooms=2, objects=3, quest=3, limit=50, render_mode=None):
    return gymnasium.wrappers.TimeLimit(Quest(seed, rooms, objects, quest, render_mode), limit)


def main(steps=10_000, **fields):
    env = make_env()
    print(f"{env.action_space.n} commands: {'; '.join(env.unwrapped.commands)}")
    agent = protogoal.train(make_env, steps=steps, **fields)
    print(f"the task: {agent.evaluate(10)['success']:.2f}")
    observation, _ = env.reset()
    agent.reset()
    over = False
    while not over:
        action = int(agent.predict(observation))
        observation, _, terminated, truncated, _ = env.step(action)
        print(f"> {env.unwrapped.commands[action]}\n{' '.join(observation['answer'].split())[:100]}")
        over = terminated or truncated
    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000, help="steps to train (default %(default)s)")
    main(parser.parse_args().steps)
