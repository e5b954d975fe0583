"""Colours that also people with a colour-vision deficiency tell apart (Okabe and Ito's eight), in light and dark.

Nothing is said by colour alone: verdicts carry a sign, stages a dash, runs a name. Used by record/figures.py, the report
and the inspector.
"""

from __future__ import annotations

from dataclasses import dataclass

ORANGE, SKY, GREEN, BLUE = "#e69f00", "#56b4e9", "#009e73", "#0072b2"
VERMILLION, PURPLE, YELLOW, GREY = "#d55e00", "#cc79a7", "#f0e442", "#6f7680"

RUNS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)  # in the order of the runs
RUNS_ON_DARK = (SKY, ORANGE, "#2fc79a", PURPLE, "#4f9be0", "#f07d2e")
PALE = "#c9ced6"
VERDICT = {0: PALE, 1: GREY, 2: PURPLE, 3: YELLOW, 4: VERMILLION, 5: SKY, 6: GREEN}
STAGE = {"declared": GREY, "observed": PURPLE, "undecided": SKY, "controllable": BLUE, "plausible": GREEN, "offered": ORANGE,
         "mastered": VERMILLION}
_ON_DARK = {BLUE: "#4f9be0", GREEN: "#2fc79a", VERMILLION: "#f07d2e", GREY: "#a3acb8"}
STAGE_ON_DARK = {stage: _ON_DARK.get(colour, colour) for stage, colour in STAGE.items()}
DASH = {"declared": "dot", "observed": "dash", "undecided": "2px,5px", "controllable": "dashdot", "plausible": "solid",
        "offered": "6px,3px", "mastered": "solid"}

LARGE_SPACE = 200  # goals from which on numbers of them are drawn on a logarithmic axis

# Cividis, a scale that reads alike for all, without its darkest fifth: that would vanish on a dark page.
CIVIDIS = [[0.0, "#31446b"], [0.25, "#666970"], [0.5, "#958f78"], [0.75, "#cab969"], [1.0, "#ffea46"]]


@dataclass(frozen=True)
class Theme:
    """The colours of a page: of panels, in front, and between."""

    name: str
    panel: str
    text: str
    muted: str
    line: str
    runs: tuple[str, ...]
    stages: dict[str, str]

    def run(self, index: int) -> str:
        return self.runs[index % len(self.runs)]

    def ink(self, colour: str) -> str:
        """A colour as a line of it is drawn on this page: a dark ground needs some of them lighter."""
        return _ON_DARK.get(colour, colour) if self.name == "dark" else colour


LIGHT = Theme("light", "#f5f6f8", "#1b1f24", "#57606a", "#d5d9df", RUNS, STAGE)
DARK = Theme("dark", "#1d2127", "#e6e8eb", "#a3acb8", "#343b45", RUNS_ON_DARK, STAGE_ON_DARK)


def theme(name: str | None) -> Theme:
    return DARK if name == "dark" else LIGHT
