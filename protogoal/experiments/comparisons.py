"""The deep experiments of the paper as data: Baba and MiniHack against the baselines, and the ablations (§6.3, §6.4, Appendix E).

Each is a `Comparison` of arms; `protogoal.experiments.arms` runs and draws them. Budgets at scale cpu are the smallest at which
the arms separate on two cores; at scale paper they are the paper's 200 million frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from protogoal.domains.baba import STEPS
from protogoal.experiments.arms import Arm, Comparison, Scale

PAPER = Scale(200_000_000, 3)
SMOKE = Scale(4_000, 1)
TINY: dict[str, Any] = {
    "actor.num_envs": 8, "learner.batch_size": 4, "learner.min_replay": 500, "network.hidden": 32, "refresh_every": 1000,
    "evaluation.every": 2000, "evaluation.episodes": 4, "evaluation.final_episodes": 4, "env.max_steps": 60,
}
NO_LIMIT = {name: value for name, value in TINY.items() if name != "env.max_steps"}  # Deep Sea has none
ONE_CORE = {"threads": 1}  # seeds and arms fill the cores
AGENTS = (("proto-goal R2D2", "protogoal"), ("R2D2", "r2d2"), ("count bonus", "count-bonus"))
SHORTER: dict[str, Any] = {"exploration.discount_max": 0.97, "exploration.discount_min": 0.95}
"""Discounts with which Agent57 does best in the mazes (results/baba/earlier/agent57-trials.csv)."""
CHOSEN_ON = (40, 41, 60, *range(100, 104))
"""Seeds that settings were chosen on or that were looked at meanwhile."""
FRESH = 70
"""Seeds from here on chose nothing and were not looked at."""
TEST: dict[str, Any] = {"first_seed": FRESH, "chosen_on": CHOSEN_ON}


def baba(name: str, level: str, seeds: int) -> Comparison:
    """Proto-R2D2 against R2D2, a bonus for rare bits, and Agent57 on one size of the U-Maze, at equal frames."""
    return Comparison(
        name, f"Baba Is You, U-Maze {level}",
        "with proto-goals R2D2 solves the U-Maze within 200 million frames; R2D2 alone never sees a reward and Agent57 stays flat.",
        [Arm("proto-goal R2D2", f"baba-umaze-{level}-protogoal"), Arm("R2D2", f"baba-umaze-{level}-r2d2"),
         Arm("count bonus", f"baba-umaze-{level}-count-bonus"), Arm("Agent57", f"baba-umaze-{level}-agent57", SHORTER)],
        {"smoke": SMOKE, "cpu": Scale(STEPS[level], seeds), "paper": PAPER}, ONE_CORE, TINY, shows_time=True, **TEST)


def agent57(name: str, title: str, domain: str, steps: int, fields: dict[str, Any], smoke: dict[str, Any]) -> Comparison:
    """The baseline itself where exploration is needed: whole, without each of its parts, and R2D2."""
    preset = f"{domain}-agent57"
    return Comparison(
        name, title,
        "Agent57 is its strongest opponent; a comparison is worth something only if the opponent explores where it is known to.",
        [Arm("Agent57", preset), Arm("R2D2", f"{domain}-r2d2"),
         Arm("no episodic novelty", preset, {"exploration.is_episodic": False}),
         Arm("no lifelong novelty", preset, {"exploration.is_lifelong": False}),
         Arm("one policy", preset, {"exploration.num_policies": 1})],
        {"smoke": SMOKE, "cpu": Scale(steps, 3), "paper": Scale(10 * steps, 10)}, ONE_CORE | fields, smoke,
        shows_goals=False, tests_first=True, chosen_on=range(16))


def agent57_fresh(design: Comparison, first_seed: int, seeds: int) -> Comparison:
    """Seeds that nothing was chosen by, for the two parts whose worth the first seeds left open."""
    arms = [arm for arm in design.arms if arm.label in ("Agent57", "no episodic novelty", "one policy")]
    scales = {**design.scales, "cpu": Scale(design.scales["cpu"].steps, seeds)}
    return replace(design, name=f"{design.name}-fresh", title=f"{design.title}, fresh seeds", arms=arms, scales=scales,
                   first_seed=first_seed)


def agent57_river(steps: int) -> Comparison:
    """Whether novelty that outlives the agent makes it careless."""
    preset = "minihack-narrow-river-agent57"
    return Comparison(
        "agent57-river", "Agent57 on MiniHack NarrowRiver, 2 monsters",
        "there is no Agent57 on MiniHack; ours asks whether an intrinsic return that outlives the agent (D20) makes it careless.",
        [Arm("the return goes on", preset), Arm("the return ends", preset, {"exploration.intrinsic_return_ends": True})],
        {"smoke": SMOKE, "cpu": Scale(steps, 3), "paper": PAPER}, ONE_CORE | {"evaluation.every": 100_000, "env.monsters": 2},
        TINY | {"env.workers": 0}, shows_goals=False, **TEST)


def narrow_river(steps: int) -> Comparison:
    """Three agents with 0 to 4 monsters."""
    panels = {monsters: f"{monsters} monster{'s' * (monsters != 1)}" for monsters in range(5)}
    arms = [Arm(f"{label}, {panel}", f"minihack-narrow-river-{agent}", {"env.monsters": monsters}, panel)
            for monsters, panel in panels.items() for label, agent in AGENTS]
    return Comparison(
        "minihack-narrow-river", "MiniHack NarrowRiver, 0 to 4 monsters",
        "more monsters make the river harder, and the proto-goal agent outperforms R2D2 in each of the five settings.",
        arms, {"smoke": SMOKE, "cpu": Scale(steps, 5), "paper": PAPER}, ONE_CORE | {"evaluation.every": 100_000},
        TINY | {"env.workers": 0}, **TEST)


def wide_river(steps: int) -> Comparison:
    return Comparison(
        "minihack-wide-river-lava", "MiniHack WideRiverWithLava",
        "the proto-goal agent gets off the ground where R2D2 hardly does.",
        [Arm(label, f"minihack-wide-river-lava-{agent}") for label, agent in AGENTS],
        {"smoke": SMOKE, "cpu": Scale(steps, 3), "paper": PAPER}, ONE_CORE, TINY | {"env.workers": 0}, **TEST)


def any_environment(name: str, title: str, env: str, steps: int, claim: str, **fields: Any) -> Comparison:
    """An environment named by its id alone: no space, no setting of its own."""
    return Comparison(
        name, title, claim, [Arm(label, "", {"env": env, "agent": agent} | fields) for label, agent in AGENTS],
        {"smoke": SMOKE, "cpu": Scale(steps, 3), "paper": PAPER}, ONE_CORE, NO_LIMIT | {"evaluation.max_steps": 200}, **TEST)


OBSERVED_ONLY: dict[str, Any] = {"pge.pruning": "observed"}
PRUNING_OFF: dict[str, Any] = {"pge.pruning": "off"}


def junk(level: str) -> Comparison:
    """The U-Maze beside proto-goals that no action controls: noise, clocks, things that never change."""
    preset = f"baba-umaze-{level}-protogoal"
    beside: dict[str, dict[str, Any]] = {f"{number:,} junk goals": {"env.junk": number} for number in (80, 8_000, 800_000)}
    arms = [Arm("no junk", preset), *(Arm(label, preset, fields) for label, fields in beside.items())]
    return Comparison(
        f"junk-{level}", f"U-Maze {level} beside junk",
        "a proto-goal space may be vast and mostly useless: what cannot be controlled is pruned.",
        arms, {"smoke": SMOKE, "cpu": Scale(STEPS[level], 3), "paper": PAPER}, ONE_CORE, TINY | {"env.junk": 200}, **TEST)


def junk_unpruned() -> Comparison:
    """The same with less pruning."""
    preset, beside = "baba-umaze-small-protogoal", {"env.junk": 8_000}
    return Comparison(
        "junk-unpruned", "U-Maze small beside 8,000 junk goals, with less pruning",
        "without pruning the agent drowns in goals it can never achieve.",
        [Arm("pruned", preset, beside), Arm("only the unobserved pruned", preset, beside | OBSERVED_ONLY),
         Arm("pruning off", preset, beside | PRUNING_OFF)],
        {"smoke": SMOKE, "cpu": Scale(STEPS["small"], 3), "paper": PAPER}, ONE_CORE, TINY | {"env.junk": 200}, shows_goals=False,
        **TEST)


def pruning_parts() -> Comparison:
    """Which part of pruning does it: the U-Maze medium beside 8,000 junk goals, each part left out."""
    preset = "baba-umaze-medium-protogoal"
    without: dict[str, dict[str, Any]] = {
        "all parts": {}, "goals learned, none pursued": {"pge.p_task": 1.0, "pge.p_task_most": 1.0},
        "only the unobserved pruned": OBSERVED_ONLY, "without kinds": {"pge.kinds": False},
        "without competence": {"pge.competence": False}, "without the replay's correction": {"replay.correction": 0.0}}
    return Comparison(
        "pruning-parts", "The parts of pruning, U-Maze medium beside 8,000 junk goals", "there is no such ablation.",
        [Arm(label, preset, {"env.junk": 8_000} | fields) for label, fields in without.items()],
        {"smoke": SMOKE, "cpu": Scale(STEPS["medium"], 3), "paper": PAPER}, ONE_CORE, TINY | {"env.junk": 200}, shows_goals=False,
        tests_first=True, **TEST)


def parts_of_agent() -> Comparison:
    """What of the agent does it, beside the goals that are pursued: the U-Maze medium."""
    ours, plain = "baba-umaze-medium-protogoal", "baba-umaze-medium-r2d2"
    no_rare: dict[str, Any] = {"replay.novelty_share": 0.0}
    return Comparison(
        "parts", "Parts of the agent, U-Maze medium", "there is no such ablation.",
        [Arm("proto-goal R2D2", ours), Arm("goals learned, none pursued", ours, {"pge.p_task": 1.0, "pge.p_task_most": 1.0}),
         Arm("only the unobserved pruned", ours, OBSERVED_ONLY), Arm("uniform choice", ours, {"pge.strategy": "uniform"}),
         Arm("uniform replay", ours, no_rare), Arm("R2D2", plain), Arm("R2D2, uniform replay", plain, no_rare),
         Arm("R2D2, uniform replay, recurrent", plain, no_rare | {"network.core": "lstm"})],
        {"smoke": SMOKE, "cpu": Scale(STEPS["medium"], 3), "paper": PAPER}, ONE_CORE, TINY, shows_goals=False, tests_first=True,
        **TEST)


def ablation(name: str, title: str, claim: str, arms: Sequence[tuple[str, dict[str, Any]]], level: str = "small") -> Comparison:
    """The proto-goal agent with one mechanism changed.

    `medium` is for what the small maze hides: there a tenth of the time spent on the task is enough to win without good goals.
    """
    preset = f"baba-umaze-{level}-protogoal"
    return Comparison(
        f"ablation-{name}", f"{title}, U-Maze {level}", claim, [Arm(label, preset, fields) for label, fields in arms],
        {"smoke": SMOKE, "cpu": Scale(STEPS[level], 3), "paper": PAPER}, ONE_CORE, TINY, shows_goals=False, **TEST)


_DEEP_SEA = agent57("agent57", "Agent57 on Deep Sea, 20×20", "deep-sea", 150_000, {"env.size": 20}, NO_LIMIT)
_ALL = [
    baba("baba", "medium", 5),
    baba("baba-small", "small", 5),
    baba("baba-paper", "paper", 3),
    _DEEP_SEA,
    agent57_fresh(_DEEP_SEA, first_seed=16, seeds=32),
    replace(agent57("agent57-umaze", "Agent57 on Baba Is You, U-Maze small", "baba-umaze-small", STEPS["small"], {}, TINY), **TEST),
    agent57_river(300_000),
    narrow_river(300_000),
    junk("small"),
    junk("medium"),
    junk_unpruned(),
    pruning_parts(),
    parts_of_agent(),
    wide_river(1_000_000),
    any_environment("multiroom", "MiniGrid MultiRoom-N4-S5, its own view", "MiniGrid-MultiRoom-N4-S5-v0", 1_000_000,
                    "does not have this domain; Stable-Baselines3's zoo lists PPO at 0.000 after 10 million steps."),
    any_environment("lockedroom", "MiniGrid LockedRoom, its own view", "MiniGrid-LockedRoom-v0", 1_000_000,
                    "does not have this domain; Stable-Baselines3's zoo lists PPO at 0.000 after 10 million steps."),
    any_environment("keycorridor-view", "MiniGrid KeyCorridor S3R3, its own view", "MiniGrid-KeyCorridorS3R3-v0", 1_000_000,
                    "does not have this domain; AMIGo reaches about 0.9 after 10 million steps."),
    any_environment("montezuma", "Montezuma's Revenge from its memory", "ALE/MontezumaRevenge-v5?obs_type=ram", 330_000,
                    "does not have this domain; PPO with RND in 512 environments has the first key after about 327,000 steps."),
    ablation("p-task", "How often to follow the task", "with p_task = 0 the evaluator never wins; 0.1 was best.",
             [(f"p_task = {p}", {"pge.p_task": p}) for p in (0.0, 0.05, 0.1, 0.25, 0.5)]),
    ablation("desirability", "Desirability on and off", "weighing goals by novelty and reward matters on top of plausibility.",
             [("desirability on", {}), ("desirability off", {"pge.desirability": "uniform"})], "medium"),
    ablation("reachability", "Candidates for local reachability", "the number of candidates m has an optimum between few and many.",
             [(f"m = {m}", {"pge.num_candidates": m}) for m in (1, 2, 5, 10, 20)]),
    ablation("stratification", "Timescale buckets on and off",
             "without stratification local reachability hurts, as it biases the choice towards easy goals.",
             [("5 buckets", {}), ("1 bucket", {"pge.num_buckets": 1})]),
    ablation("hindsight", "Hindsight goals", "too few and too many hindsight goals are both worse than 15.",
             [*((f"M_her = {m}", {"learner.relabel": "novelty", "learner.hindsight_goals": m, "learner.unattained_goals": 8})
                for m in (1, 5, 15, 50)), ("all goals", {"learner.relabel": "all"})]),
    ablation("plausibility", "Pruning on and off", "without pruning the agent drowns in goals it can never achieve.",
             [("pruning on", {}), ("pruning off", {"pge.pruning": "off"})], "medium"),
    ablation("recombination", "Recombination on and off", "mastered goals are joined into new ones on the way to the task.",
             [("recombination on", {}), ("recombination off", {"pge.recombinations": 0})]),
]
COMPARISONS: dict[str, Comparison] = {comparison.name: comparison for comparison in _ALL}
