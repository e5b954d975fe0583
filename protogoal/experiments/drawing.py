"""What the figures of all experiments share: a Matplotlib that needs no screen, its style, files that are whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protogoal.files import whole

INK, MUTED = "#1b1f24", "#57606a"


def pyplot(style: dict[str, Any] | None = None) -> Any:
    """Matplotlib's pyplot with its own style and what is given of ours, whatever was drawn before."""
    import matplotlib

    matplotlib.rcdefaults()
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(style or {})
    return plt


def muted(font_size: float) -> dict[str, Any]:
    """A style: dark letters, grey axes."""
    return {"font.size": font_size, "axes.edgecolor": MUTED, "text.color": INK, "axes.labelcolor": INK, "xtick.color": MUTED,
            "ytick.color": MUTED, "font.family": "DejaVu Sans"}


def save(figure: Any, path: Path, dpi: int = 150) -> None:
    """As PNG, whole or not at all; the figure is gone then."""
    import matplotlib.pyplot as plt

    with whole(path) as temporary:
        figure.savefig(temporary, dpi=dpi, format="png", facecolor="white")
    plt.close(figure)
