"""What the figures of all experiments share: a Matplotlib that needs no screen, its style, files that are whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protogoal.files import whole

INK, MUTED = "#1b1f24", "#57606a"


def pyplot(font_size: float | None = None) -> Any:
    """Matplotlib's pyplot in its own style, whatever was drawn before; with a size, letters are dark and axes grey."""
    import matplotlib

    matplotlib.rcdefaults()
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if font_size is not None:
        plt.rcParams.update({"font.size": font_size, "axes.edgecolor": MUTED, "text.color": INK, "axes.labelcolor": INK,
                             "xtick.color": MUTED, "ytick.color": MUTED, "font.family": "DejaVu Sans"})
    return plt


def tidy(axes: Any) -> None:
    """Pale lines across, behind all else, and no frame above and at the right."""
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


def save(figure: Any, path: Path, dpi: int = 150) -> None:
    """As PNG, whole or not at all; the figure is gone then."""
    import matplotlib.pyplot as plt

    with whole(path) as temporary:
        figure.savefig(temporary, dpi=dpi, format="png", facecolor="white")
    plt.close(figure)
