"""What can be trained: each domain with its proto-goal space, its size, and the presets that train it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Domain:
    """One row of `protogoal envs`."""

    name: str  # presets begin with it
    env: str  # Gymnasium id and arguments
    actions: int
    proto_goals: str
    size: int  # B
    needs: str  # the extra to install, or nothing


def domains() -> list[Domain]:
    """All that come with protogoal; nothing heavy is loaded."""
    from protogoal.envs.baba import load_level
    from protogoal.goals.spaces import BagOfWords

    rows = [Domain("taxi", "protogoal/SparseTaxi-v0", 6, "25 taxi cells, 5 passenger places, 4 destinations", 34, "")]
    for size in ("small", "medium", "paper"):
        level = load_level(f"umaze-{size}")
        planes = len(level.kinds)
        rows.append(Domain(f"baba-umaze-{size}", f'protogoal/Baba-v0, level="umaze-{size}"', 5,
                           f"{planes} objects and words in each of {level.width}×{level.height} cells",
                           planes * level.width * level.height, "deep"))
    rows.append(Domain("deep-sea", "protogoal.envs.deep_sea.DeepSea, size=16", 2, "the diver in each of 16×16 cells", 256, "deep"))
    words = BagOfWords().size
    rivers = {"narrow-river": 'scenario="narrow-river", monsters=0…4', "wide-river-lava": 'scenario="wide-river-lava"'}
    for name, arguments in rivers.items():
        rows.append(Domain(f"minihack-{name}", f"protogoal/MiniHackRiver-v0, {arguments}", 8,
                           f"words of the message line, at most {words}, discovered as they are read", words, "deep,minihack"))
    return rows


def catalog() -> list[dict[str, Any]]:
    """The same as JSON-able rows, with the presets of each domain."""
    from protogoal.presets import PRESETS, announced_presets

    presets = PRESETS | announced_presets()
    return [asdict(d) | {"presets": [name for name in presets if name.startswith(f"{d.name}-")]}
            for d in [*domains(), *_announced()]]


def _announced() -> list[Domain]:
    """Domains of other packages; each is made once, to count its actions and proto-goals."""
    from protogoal.envs.own import EnvReference, announced_domains, make_space

    rows = []
    for name, domain in announced_domains().items():
        env = EnvReference(domain.env)()
        rows.append(Domain(name, domain.env, int(env.action_space.n),  # type: ignore[attr-defined]
                           domain.proto_goals, make_space(domain.space, env).size, "deep"))
        env.close()
    return rows


def show() -> None:
    """Print the catalogue, a block for each domain."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for row in catalog():
        needs = f"   needs: pip install \"protogoal\\[{row['needs']}]\"" if row["needs"] else ""
        console.print(f"[bold]{row['name']}[/]   {row['actions']} actions, {row['size']:,} proto-goals{needs}")
        console.print(f"    [dim]environment[/]  {row['env']}")
        console.print(f"    [dim]proto-goals[/]  {row['proto_goals']}")
        console.print(f"    [dim]presets[/]      {'  '.join(row['presets']) or '–'}\n")
