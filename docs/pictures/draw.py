"""Draws the diagrams of the documentation as SVG: python docs/pictures/draw.py. They are committed; this is their source."""

from __future__ import annotations

import itertools
from pathlib import Path
from xml.sax.saxutils import escape

INK, SOFT, PAPER = "#27364b", "#7b8794", "#ffffff"
BLUE, ORANGE, GREEN, GREY, RED = "#dbe7f6", "#fdebd3", "#ddf1e4", "#eef0f3", "#f8dcd8"


class Picture:
    """A few shapes on a white sheet."""

    def __init__(self, width: int, height: int, title: str):
        self.width, self.height = width, height
        self.parts = [f"<title>{escape(title)}</title>",
                      f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                      f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>',
                      f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>']

    def box(self, x, y, w, h, lines, fill=BLUE, size=14):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" fill="{fill}" stroke="{INK}" stroke-width="1"/>')
        top = y + h / 2 - (len(lines) - 1) * size * 0.65
        for k, line in enumerate(lines):
            self.text(x + w / 2, top + k * size * 1.3, line, size if k == 0 else size - 2, bold=k == 0)

    def text(self, x, y, words, size=13, colour=INK, bold=False, anchor="middle"):
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight} '
                          f'dominant-baseline="middle">{escape(words)}</text>')

    def arrow(self, *points, dashed=False):
        path = " ".join(f"{'M' if k == 0 else 'L'}{x},{y}" for k, (x, y) in enumerate(points))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.4"{dash} marker-end="url(#tip)"/>')

    def line(self, x1, y1, x2, y2, colour=SOFT, width=1.0):
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>')

    def dot(self, x, y, r, fill=INK, stroke="none"):
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="{r}" fill="{fill}" stroke="{stroke}" stroke-width="1.4"/>')

    def save(self, path: Path) -> None:
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'font-family="system-ui, sans-serif" role="img">')
        path.write_text("\n".join([head, *self.parts, "</svg>", ""]))


def overview() -> Picture:
    p = Picture(860, 300, "From transitions to bits, to plausible goals, to an agent that pursues them")
    p.box(20, 105, 130, 70, ["environment", "s, a, r, s'"], GREY)
    p.box(196, 105, 152, 70, ["proto-goal space", "b(s, a, s') ∈ {0,1}ᴮ"], BLUE)
    p.box(395, 40, 280, 200, [], ORANGE)
    p.text(535, 58, "evaluator (PGE)", 14, bold=True)
    for k, (name, words) in enumerate((("observed", "N(g) > 0"), ("controllable", "trials"), ("reached", "pursuits against chance"),
                                       ("desirable", "reward + novelty"))):
        p.box(412, 76 + 39 * k, 246, 31, [], PAPER)
        p.text(424, 92 + 39 * k, name, 13, bold=True, anchor="start")
        p.text(648, 92 + 39 * k, words, 12, SOFT, anchor="end")
    p.box(710, 105, 130, 70, ["agent", "pursues one goal"], GREEN)
    p.arrow((150, 140), (194, 140))
    p.arrow((348, 140), (393, 140))
    p.arrow((675, 140), (708, 140))
    p.arrow((775, 175), (775, 272), (85, 272), (85, 177))
    p.text(430, 286, "actions", 12, SOFT)
    p.arrow((740, 105), (740, 18), (535, 18), (535, 38), dashed=True)
    p.text(632, 10, "which pursuits succeeded: mastered goals are recombined", 11, SOFT)
    return p


def funnel() -> Picture:
    p = Picture(760, 250, "Each test removes proto-goals")
    steps = [("listed", "whatever might matter", 1.0, GREY), ("observed", "it has happened", 0.62, BLUE),
             ("controllable", "acting makes a difference", 0.5, BLUE), ("reached", "pursuits succeed, beyond chance", 0.36, BLUE),
             ("offered", "K drawn by reward and novelty", 0.2, GREEN)]
    lost = ["a ball that is not there", "the clock, the weather", "fails again and again", "what is known by heart"]
    for k, (name, words, share, fill) in enumerate(steps):
        y, width = 14 + 46 * k, 330 * share
        p.parts.append(f'<rect x="{190 - width / 2}" y="{y}" width="{width}" height="32" rx="4" fill="{fill}" stroke="{INK}"/>')
        p.text(190, y + 16, name, 13, bold=True)
        p.text(370, y + 16, words, 13, anchor="start")
        if k < len(lost):
            p.text(590, y + 39, f"✂ {lost[k]}", 11, SOFT, anchor="start")
    return p


def pursuit() -> Picture:
    p = Picture(760, 170, "One episode is several pursuits")
    p.line(40, 80, 720, 80, INK, 1.5)
    p.text(40, 150, "episode starts", 12, SOFT, anchor="start")
    p.text(720, 150, "time limit: truncated, values go on", 12, SOFT, anchor="end")
    spans = [(40, 210, "seek “key at (2,3)”", "attained", GREEN), (210, 400, "seek “door open”", "attained", GREEN),
             (400, 560, "seek “box at (5,5)”", "given up", RED), (560, 720, "follow the task", "", BLUE)]
    for start, end, words, outcome, fill in spans:
        p.parts.append(f'<rect x="{start + 3}" y="58" width="{end - start - 6}" height="44" rx="6" fill="{fill}" stroke="{INK}"/>')
        p.text((start + end) / 2, 80, words, 12)
        if outcome:
            p.dot(end, 80, 6, PAPER, INK)
            p.text(end, 34, outcome, 12, bold=True)
            p.arrow((end, 44), (end, 70))
    p.text(380, 126, "the next goal is chosen where the agent stands", 12, SOFT)
    return p


def hindsight() -> Picture:
    p = Picture(760, 190, "A failed trajectory has attained other goals")
    points = [(60, 120), (150, 90), (240, 110), (330, 70), (420, 95), (510, 60), (600, 85)]
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        p.arrow((x1 + 8, y1), (x2 - 9, y2))
    for k, (x, y) in enumerate(points):
        p.dot(x, y, 7, GREEN if k in (2, 5) else GREY, INK)
    p.text(240, 140, "“word: boulder”", 12, bold=True)
    p.text(510, 28, "“word: push”", 12, bold=True)
    p.dot(700, 85, 9, PAPER, INK)
    p.text(700, 112, "“word: cross”", 12)
    p.text(700, 130, "wanted, not attained", 11, SOFT)
    p.text(60, 150, "start", 12, SOFT)
    p.text(380, 174, "The paper's hindsight: learned three times over, for what was wanted, for the task, and for what was "
           "attained on the way", 12, SOFT)
    return p


if __name__ == "__main__":
    for draw in (overview, funnel, pursuit, hindsight):
        draw().save(Path(__file__).with_name(f"{draw.__name__}.svg"))
