"""The figures of the controllability experiment, drawn from its CSV alone; called by experiments/controllability.py.

f1.png: F1 against the amount of data, a panel a domain. values.png: what decides, the paper's values and the nats of the trials.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from protogoal.experiments.controllability import BATCH, DOMAINS, GOOD, POLICIES, interval, scores
from protogoal.experiments.curves import COLOURS, read_csv
from protogoal.experiments.drawing import INK, MUTED, pyplot, save, tidy
from protogoal.goals.evaluator import PGESettings
from protogoal.goals.plausibility import LEAST_NATS

TITLES = {
    "static": "static\nTaxi's destination", "timer": "timer\n1…100", "distractor": "distractor\nrandom pixels",
    "television": "television\n8 × 1,000 pictures", "weather": "weather\npixels only in rain", "weak": "weak\nworks 3 in 10 times",
    "delayed": "delayed\nlit 3 steps later", "long-timer": "long-timer\n1…1,000",
}
LINES = {("trials", "all"): ("randomised trials", COLOURS[0]), ("lspi", str(BATCH)): (f"LSPI, {BATCH:,} transitions", COLOURS[1]),
         ("lspi", "all"): ("LSPI, all transitions", COLOURS[4])}
STYLES: dict[str, Any] = {"random": "-", "trained": (0, (3, 1.5))}
LIMIT = 2.0  # values beyond it are drawn at the edge


def draw_f1(out: Path) -> None:
    """Both kinds of evidence and both policies; the band is the 95 % interval over seeds."""
    plt = pyplot(10)
    from matplotlib.lines import Line2D

    f1 = scores(out)
    amounts = sorted({key[4] for key in f1})
    figure, grid = plt.subplots(2, 4, figsize=(11, 6.2), sharex=True, sharey=True, constrained_layout=True)
    for axes, domain in zip(grid.flat, DOMAINS, strict=True):
        axes.axhline(GOOD, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), zorder=0)
        for (evidence, batch), (_, colour) in LINES.items():
            for policy in POLICIES:
                if (domain, policy, evidence, batch, amounts[0]) not in f1:
                    continue
                values = [f1[domain, policy, evidence, batch, e] for e in amounts]
                low, high = np.array([interval(v) if len(v) > 1 else (v[0], v[0]) for v in values]).T
                axes.fill_between(amounts, low, high, color=colour, alpha=0.15, linewidth=0)
                axes.plot(amounts, [v.mean() for v in values], color=colour, linestyle=STYLES[policy], clip_on=False,
                          linewidth=2.2 if evidence == "trials" else 1.5, zorder=3 if evidence == "trials" else 2)
        axes.set_title(TITLES[domain], fontsize=10)
        axes.set(xscale="log", ylim=(-0.02, 1.02), xlim=(amounts[0], amounts[-1]))
        axes.set_xticks(amounts, [str(e) for e in amounts])
        axes.minorticks_off()
        tidy(axes)
    for axes in grid[:, 0]:
        axes.set_ylabel("F1")
    for axes in grid[-1]:
        axes.set_xlabel("episodes")
    handles = [Line2D([], [], color=colour, linewidth=2, label=words) for words, colour in LINES.values()]
    handles += [Line2D([], [], color=INK, linestyle=STYLES[policy], label=f"{policy} policy") for policy in POLICIES]
    handles.append(Line2D([], [], color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), label=f"{GOOD:g}"))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    save(figure, out / "f1.png")


def draw_values(out: Path) -> None:
    """Bits of one seed after the last episode of the random policy: LSPI's value and the trials' nats, by what is true of them."""
    plt = pyplot(10)
    bits = read_csv(out / "values.csv")
    figure, grid = plt.subplots(2, 8, figsize=(11, 5.2), sharey="row", constrained_layout=True)
    rng = np.random.default_rng(0)
    for column, domain in zip(grid.T, DOMAINS, strict=True):
        for place, (truth, colour) in enumerate((("1", COLOURS[0]), ("0", COLOURS[1]))):
            rows = [bit for bit in bits if (bit["domain"], bit["controllable"]) == (domain, truth)]
            spread = place + rng.uniform(-0.3, 0.3, len(rows))
            control = np.array([float(bit["seek"]) + float(bit["avoid"]) for bit in rows])
            nats = np.array([float(bit["nats"]) for bit in rows])
            passes = np.array([float(bit["p"]) <= 0.01 for bit in rows], bool)
            column[0].plot(spread, np.clip(control, -LIMIT, LIMIT), ".", color=colour, markersize=5, alpha=0.6, markeredgewidth=0)
            column[1].plot(spread[passes], nats[passes], ".", color=colour, markersize=5, alpha=0.6, markeredgewidth=0)
            column[1].plot(spread[~passes], nats[~passes], "o", color=colour, markersize=3, alpha=0.6, fillstyle="none",
                           markeredgewidth=0.7)
        column[0].set_title(TITLES[domain], fontsize=8.5)
        for axes, threshold in zip(column, (PGESettings().controllability_threshold, LEAST_NATS), strict=True):
            axes.axhline(threshold, color=MUTED, linewidth=0.9, linestyle=(0, (2, 3)), zorder=0)
            axes.set_xticks([])
            axes.set_xlim(-0.6, 1.6)
            tidy(axes)
    grid[0, 0].set(ylim=(-LIMIT * 1.05, LIMIT * 1.05),
                   ylabel=f"LSPI: mean (V_seek + V_avoid)\nvalues beyond ±{LIMIT:g} are drawn at ±{LIMIT:g}")
    grid[0, 0].yaxis.label.set_fontsize(8.5)
    grid[1, 0].set(ylim=(-0.05, None), ylabel="trials: nats")
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, marker="o", linestyle="", markersize=5, label=words)
               for words, colour in (("controllable", COLOURS[0]), ("not controllable", COLOURS[1]))]
    handles.append(Line2D([], [], color=MUTED, marker="o", linestyle="", fillstyle="none", markersize=5, label="p above 0.01"))
    handles.append(Line2D([], [], color=MUTED, linewidth=0.9, linestyle=(0, (2, 3)), label="what the rule asks for"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save(figure, out / "values.png")
