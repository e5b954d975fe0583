"""The colours: readable on both grounds, and told apart with a colour-vision deficiency."""

import itertools
import re
from importlib import resources

import numpy as np
import pytest

from protogoal.goals.plausibility import Verdict
from protogoal.record.palette import DARK, LIGHT, RUNS, STAGE, VERDICT

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
SHEETS = ["inspector/assets/page.css", "report_assets/report.css"]


def linear(colour: str) -> np.ndarray:
    digits = colour.lstrip("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    value = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    """The contrast ratio of WCAG 2, 1 … 21."""
    bright = sorted((float(linear(colour) @ [0.2126, 0.7152, 0.0722]) + 0.05 for colour in (a, b)), reverse=True)
    return bright[0] / bright[1]


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def variables(sheet: str) -> list[dict[str, str]]:
    """The colour variables of a style sheet, on light and on dark."""
    text = (resources.files("protogoal.record") / sheet).read_text()
    found: list[dict[str, str]] = []
    for block in re.findall(r":root[^{]*\{(.*?)\}", text, flags=re.DOTALL):
        pairs = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", block))
        if "bg" in pairs:
            found.append(pairs)
    return found


@pytest.mark.parametrize("sheet", SHEETS)
def test_every_text_is_readable_on_both_grounds(sheet):
    light, dark = variables(sheet)
    assert (contrast(light["bg"], "#fff") == 1.0, contrast(dark["bg"], "#000") < 1.3) == (True, True)
    for colours in (light, dark):
        for ink in ("text", "muted", "accent", *(f"v{verdict}" for verdict in VERDICT)):
            for ground in ("bg", "panel"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (sheet, ink, ground, colours[ground])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("colours", [list(VERDICT.values()), list(RUNS[:4]), list(STAGE.values())],
                         ids=["verdicts", "runs", "stages"])
def test_colours_are_told_apart_by_everyone(deficiency, colours):
    seen = [lab(DEFICIENCIES[deficiency] @ linear(colour)) for colour in colours]
    for (i, a), (j, b) in itertools.combinations(enumerate(seen), 2):
        assert np.linalg.norm(a - b) > 10, (colours[i], colours[j])


def test_the_page_has_a_swatch_and_an_ink_for_every_verdict():
    text = (resources.files("protogoal.record") / SHEETS[0]).read_text()
    swatches = dict(re.findall(r"\.swatch-(\d)::before \{ background: (\S+); \}", text))
    assert swatches == {str(verdict): "var(--line)" if verdict == 0 else colour for verdict, colour in VERDICT.items()}
    assert set(VERDICT) == {int(verdict) for verdict in Verdict}
    for sheet, name in zip(SHEETS, ("verdict-", "v"), strict=True):
        text = (resources.files("protogoal.record") / sheet).read_text()
        assert all(f".{name}{verdict} {{ color: var(--v{verdict}); }}" in text for verdict in VERDICT)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_stand_out_from_their_ground(theme):
    for colour in (*theme.runs, *theme.stages.values()):
        assert contrast(colour, theme.panel) >= 2.0, colour
