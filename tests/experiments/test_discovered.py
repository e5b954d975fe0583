"""Which goals were discovered when: the rows of a store, and the figures of both forms."""

import matplotlib.image
import pytest

from protogoal.experiments import discovered


def row(goal, kind, mastered, seed=0):
    return dict(zip(discovered.GOALS, ("proto", str(seed), goal, kind, "10", "20", str(mastered), "12", "0.9", "50"), strict=True))


@pytest.mark.parametrize("rows", [
    [*(row(f"baba at (0,{c})", "baba", 100 * c + 100) for c in range(5)),
     row("FLAG at (1,1)", "FLAG", 900), row("a AND b", "x", 50)],
    [row("boulder", "word", 100), row("boulder", "word", 60, seed=1),
     row("water", "word", 300), row("boulder AND water", "both", 800)],
    [row("never", "word", "")],
], ids=["kinds", "words", "nothing mastered"])
def test_goals_are_drawn_by_kind_or_by_word(rows, tmp_path):
    discovered.plot(rows, ["#000000", "#0072B2"], "title", tmp_path / "goals.png", end=2000.0)
    assert matplotlib.image.imread(tmp_path / "goals.png").std() > 0.01
    assert [path.name for path in tmp_path.iterdir()] == ["goals.png"]
