"""MiniGrid's KeyCorridor with and without proto-goals at equal frames, three seeds.

`python keycorridor_comparison.py --out OUT`. Stopped and started again it goes on; what is finished is skipped. OUT gets raw
CSV, the figure and a README.
"""

import argparse
import os
from pathlib import Path

from protogoal.experiments.arms import Arm, Comparison, Scale
from protogoal.experiments.comparisons import AGENTS, TEST

CORRIDOR = {"env": "minigrid_keycorridor:make_env", "space": "minigrid_keycorridor:proto_goals"}

COMPARISON = Comparison(
    name="keycorridor",
    title="MiniGrid KeyCorridor S3R3",
    claim="does not have this domain; what it says of its own is that goals help where rewards are sparse.",
    arms=[Arm(label, "", CORRIDOR | {"agent": agent}) for label, agent in AGENTS],
    scales={"smoke": Scale(3_000, 1), "cpu": Scale(250_000, 3)},
    common={"threads": 1, "evaluation.every": 25_000},
    smoke={"actor.num_envs": 4, "learner.min_replay": 500, "evaluation.episodes": 2, "evaluation.final_episodes": 2},
    command="python examples/keycorridor_comparison.py",
    **TEST,
)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/keycorridor"), help="where to write (default %(default)s)")
    parser.add_argument("--scale", choices=list(COMPARISON.scales), default="cpu", help="how much of it (default %(default)s)")
    parser.add_argument("--seeds", type=int, help="number of seeds (default: the scale's own)")
    parser.add_argument("--redraw", action="store_true", help="only draw the figure again, from the CSV in OUT")
    chosen = parser.parse_args()
    out = chosen.out.resolve()
    os.chdir(Path(__file__).parent)  # where minigrid_keycorridor.py lies
    if chosen.redraw:
        COMPARISON.plot(out)
    else:
        COMPARISON.run(chosen.scale, chosen.seeds, out)
