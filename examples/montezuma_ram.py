"""Montezuma's Revenge from its 128 bytes of memory. Run: python examples/montezuma_ram.py (extras deep, atari)

Every value of every byte is a proto-goal, 32,768 in all; nobody says which bytes matter. Some are known: byte 3 is the room, 42 and
43 are where the hero is, 58 the lives, 65 what he holds. They are used here for nothing but to read what was found.
"""

import argparse

import protogoal

ENV = "ALE/MontezumaRevenge-v5?obs_type=ram&repeat_action_probability=0"
KNOWN = {3: "rooms", 42: "places across", 43: "heights", 58: "numbers of lives", 65: "sets of things held"}


def main(steps=330_000, run=None, **fields):
    agent = protogoal.train(ENV, steps=steps, run=run, **fields)
    goals = agent.goals(as_table=False)
    names = [name for name, count in zip(goals["name"], goals["count"], strict=True) if count]  # turned on, not just there
    for byte, words in KNOWN.items():
        print(f"{sum(name.startswith(f'byte {byte} = ') for name in names)} new {words}")  # beside those of the start
    print(f"mean score: {agent.evaluate(5)['mean_return']:.0f}")
    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=330_000, help="steps to train (default %(default)s)")
    parser.add_argument("--run", default="runs/montezuma", help="directory of the run (default %(default)s)")
    main(**vars(parser.parse_args()))
