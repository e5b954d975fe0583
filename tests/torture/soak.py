"""Long runs of both engines, with the memory of every process recorded and drawn: soak.csv and soak.png.

`python soak.py --minutes 120 --out runs/torture`; options that it does not know are the run's (`--learner.replay_ratio 1`). It ends
with code 1 where a process grew by more than a tenth and 10 MB over the second half of its run.
"""

import argparse
import sys
from pathlib import Path

from protogoal.experiments.scaling import soak
from protogoal.experiments.scaling_figures import draw_soak, growth

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=120.0, help="of each engine (default 120)")
    parser.add_argument("--engines", nargs="+", choices=("local", "ray"), default=["local", "ray"], help="default: both")
    parser.add_argument("--out", type=Path, default=Path("runs/torture"), help="where to write (default runs/torture)")
    options, changed = parser.parse_known_args()
    options.out.mkdir(parents=True, exist_ok=True)
    soak(options.out, options.minutes, options.engines, changed)
    draw_soak(options.out)
    grown = 0
    for engine, process, early, late in growth(options.out):
        grew = late > 1.1 * early and late > early + 10
        grown += grew
        print(f"{engine:6} {process:24} {early:8.1f} MB after half, {late:8.1f} MB at the end{'  GROWS' if grew else ''}")
    print(f"wrote {options.out / 'soak.csv'} and {options.out / 'soak.png'}")
    sys.exit(1 if grown else 0)
