"""The deep experiments of the paper as data: Baba and MiniHack against the baselines, and the ablations (§6.3, §6.4, Appendix E).

Each is a `Comparison` of arms; `protogoal.experiments.arms` runs and draws them. Budgets at scale cpu are the smallest at which
the arms separate on two cores; at scale paper they are the paper's 200 million frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
NO_WORKERS, SOME_JUNK = TINY | {"env.workers": 0}, TINY | {"env.junk": 200}
ONE_CORE = {"threads": 1}  # seeds and arms fill the cores
AGENTS = (("proto-goal R2D2", "protogoal"), ("R2D2", "r2d2"), ("count bonus", "count-bonus"))
SHORTER: dict[str, Any] = {"exploration.discount_max": 0.97, "exploration.discount_min": 0.95}
"""Discounts with which Agent57 does best in the mazes (results/baba/earlier/agent57-trials.csv)."""
CHOSEN_ON = (40, 41, 60, *range(100, 104))
"""Seeds that settings were chosen on or that were looked at meanwhile."""
FRESH = 70
"""Seeds from here on chose nothing and were not looked at."""
TEST: dict[str, Any] = {"first_seed": FRESH, "chosen_on": CHOSEN_ON}


def compare(name: str, title: str, claim: str, arms: Sequence[Arm], steps: int, seeds: int = 3, smoke: Mapping[str, Any] = TINY,
            common: Mapping[str, Any] | None = None, **more: Any) -> Comparison:
    """Arms on fresh seeds, a core a run."""
    scales = {"smoke": SMOKE, "cpu": Scale(steps, seeds), "paper": PAPER}
    return Comparison(name, title, claim, arms, scales, ONE_CORE | dict(common or {}), smoke, **(TEST | more))


def changed(preset: str, fields: Mapping[str, Mapping[str, Any]], common: Mapping[str, Any] | None = None) -> list[Arm]:
    """Arms of one preset: label → the fields that are changed in it."""
    return [Arm(label, preset, {**(common or {}), **some}) for label, some in fields.items()]


def baba(name: str, level: str, seeds: int) -> Comparison:
    """Proto-R2D2 against R2D2, a bonus for rare bits, and Agent57 on one size of the U-Maze, at equal frames."""
    arms = [Arm(label, f"baba-umaze-{level}-{agent}") for label, agent in AGENTS]
    return compare(
        name, f"Baba Is You, U-Maze {level}",
        "with proto-goals R2D2 solves the U-Maze within 200 million frames; R2D2 alone never sees a reward and Agent57 stays flat.",
        [*arms, Arm("Agent57", f"baba-umaze-{level}-agent57", SHORTER)], STEPS[level], seeds, shows_time=True)


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


def narrow_river(steps: int) -> Comparison:
    """Three agents with 0 to 4 monsters."""
    panels = {monsters: f"{monsters} monster{'s' * (monsters != 1)}" for monsters in range(5)}
    arms = [Arm(f"{label}, {panel}", f"minihack-narrow-river-{agent}", {"env.monsters": monsters}, panel)
            for monsters, panel in panels.items() for label, agent in AGENTS]
    return compare(
        "minihack-narrow-river", "MiniHack NarrowRiver, 0 to 4 monsters",
        "more monsters make the river harder, and the proto-goal agent outperforms R2D2 in each of the five settings.",
        arms, steps, 5, NO_WORKERS, {"evaluation.every": 100_000})


def any_environment(name: str, title: str, env: str, steps: int, claim: str, has_success: bool = True,
                    **common: Any) -> Comparison:
    """An environment named by its id alone: no space, no setting of its own but which numbers of `info` count, and how often and
    how long the task is played."""
    arms = [Arm(label, "", {"env": env, "agent": agent}) for label, agent in AGENTS]
    return compare(name, title, claim, arms, steps, smoke=NO_LIMIT | {"evaluation.max_steps": 200}, common=common,
                   has_success=has_success)


def junk(level: str) -> Comparison:
    """The U-Maze beside proto-goals that no action controls: noise, clocks, things that never change."""
    beside = {"no junk": 0} | {f"{number:,} junk goals": number for number in (80, 8_000, 800_000)}
    return compare(
        f"junk-{level}", f"U-Maze {level} beside junk",
        "a proto-goal space may be vast and mostly useless: what cannot be controlled is pruned.",
        [Arm(label, f"baba-umaze-{level}-protogoal", {"env.junk": number} if number else {}) for label, number in beside.items()],
        STEPS[level], smoke=SOME_JUNK, shows_goals=False)  # they would be those of the arm without junk


def ablation(name: str, title: str, claim: str, arms: Mapping[str, dict[str, Any]], level: str = "small") -> Comparison:
    """The proto-goal agent with one mechanism changed.

    `medium` is for what the small maze hides: there a tenth of the time spent on the task is enough to win without good goals.
    """
    preset = f"baba-umaze-{level}-protogoal"
    return compare(f"ablation-{name}", f"{title}, U-Maze {level}", claim, changed(preset, arms), STEPS[level], shows_goals=False)


OBSERVED_ONLY: dict[str, Any] = {"pge.pruning": "observed"}
PRUNING_OFF: dict[str, Any] = {"pge.pruning": "off"}
NONE_PURSUED: dict[str, Any] = {"pge.p_task": 1.0, "pge.p_task_most": 1.0}
JUNK: dict[str, Any] = {"env.junk": 8_000}
PAPERS_CHOICE: dict[str, Any] = {"pge.strategy": "paper"}
"""What has candidates and buckets; the default rule has neither."""
NO_RARE: dict[str, Any] = {"replay.novelty_share": 0.0}
RARELY: dict[str, Any] = {"evaluation.every": 500_000, "evaluation.episodes": 8, "evaluation.final_episodes": 8}
"""Where an episode of the task is long, or there is no task."""
NO_ABLATION = "there is no such ablation."
_DEEP_SEA = agent57("agent57", "Agent57 on Deep Sea, 20×20", "deep-sea", 150_000, {"env.size": 20}, NO_LIMIT)
_ALL = [
    baba("baba", "medium", 5),
    baba("baba-small", "small", 5),
    baba("baba-paper", "paper", 3),
    _DEEP_SEA,
    agent57_fresh(_DEEP_SEA, first_seed=16, seeds=32),
    replace(agent57("agent57-umaze", "Agent57 on Baba Is You, U-Maze small", "baba-umaze-small", STEPS["small"], {}, TINY), **TEST),
    compare("agent57-river", "Agent57 on MiniHack NarrowRiver, 2 monsters",
            "there is no Agent57 on MiniHack; ours asks whether an intrinsic return that outlives the agent (D20) makes it "
            "careless.",
            changed("minihack-narrow-river-agent57",
                    {"the return goes on": {}, "the return ends": {"exploration.intrinsic_return_ends": True}}),
            300_000, smoke=NO_WORKERS, common={"evaluation.every": 100_000, "env.monsters": 2}, shows_goals=False),
    narrow_river(300_000),
    junk("small"),
    junk("medium"),
    compare("junk-unpruned", "U-Maze small beside 8,000 junk goals, with less pruning",
            "without pruning the agent drowns in goals it can never achieve.",
            changed("baba-umaze-small-protogoal",
                    {"pruned": {}, "only the unobserved pruned": OBSERVED_ONLY, "pruning off": PRUNING_OFF}, JUNK),
            STEPS["small"], smoke=SOME_JUNK, shows_goals=False),
    compare("pruning-parts", "The parts of pruning, U-Maze medium beside 8,000 junk goals", NO_ABLATION,
            changed("baba-umaze-medium-protogoal", {
                "all parts": {}, "goals learned, none pursued": NONE_PURSUED, "only the unobserved pruned": OBSERVED_ONLY,
                "without kinds": {"pge.kinds": False}, "without competence": {"pge.competence": False},
                "without the replay's correction": {"replay.correction": 0.0}}, JUNK),
            STEPS["medium"], smoke=SOME_JUNK, shows_goals=False, tests_first=True),
    compare("parts", "Parts of the agent, U-Maze medium", NO_ABLATION,
            [*changed("baba-umaze-medium-protogoal", {
                "proto-goal R2D2": {}, "goals learned, none pursued": NONE_PURSUED, "only the unobserved pruned": OBSERVED_ONLY,
                "uniform choice": {"pge.strategy": "uniform"}, "uniform replay": NO_RARE}),
             *changed("baba-umaze-medium-r2d2", {
                 "R2D2": {}, "R2D2, uniform replay": NO_RARE,
                 "R2D2, uniform replay, recurrent": NO_RARE | {"network.core": "lstm"}})],
            STEPS["medium"], shows_goals=False, tests_first=True),
    compare("minihack-wide-river-lava", "MiniHack WideRiverWithLava",
            "the proto-goal agent gets off the ground where R2D2 hardly does.",
            [Arm(label, f"minihack-wide-river-lava-{agent}") for label, agent in AGENTS], 1_000_000, smoke=NO_WORKERS),
    compare("deep-sea", "Deep Sea, 16 rows", "does not have this domain.",
            [Arm(label, f"deep-sea-{agent}") for label, agent in AGENTS], 100_000, smoke=NO_LIMIT, shows_goals=False),
    any_environment("multiroom", "MiniGrid MultiRoom-N4-S5-v0, which has six rooms, its own view", "MiniGrid-MultiRoom-N4-S5-v0",
                    1_000_000, "does not have this domain; Stable-Baselines3's zoo lists PPO at 0.000 after 10 million steps."),
    any_environment("multiroom-4", "MiniGrid MultiRoom-N4-S5-v1, four rooms, its own view", "MiniGrid-MultiRoom-N4-S5-v1",
                    500_000, "does not have this domain."),
    any_environment("lockedroom", "MiniGrid LockedRoom, its own view", "MiniGrid-LockedRoom-v0", 1_000_000,
                    "does not have this domain; Stable-Baselines3's zoo lists PPO at 0.000 after 10 million steps."),
    any_environment("keycorridor-view", "MiniGrid KeyCorridor S3R3, its own view", "MiniGrid-KeyCorridorS3R3-v0", 1_000_000,
                    "does not have this domain; AMIGo reaches about 0.9 after 10 million steps."),
    any_environment("montezuma", "Montezuma's Revenge from its memory", "ALE/MontezumaRevenge-v5?obs_type=ram", 2_000_000,
                    "does not have this domain; PPO with RND in 512 environments has the first key after about 327,000 steps.",
                    **RARELY | {"evaluation.max_steps": 4_500}),
    any_environment("crafter", "Crafter without its reward", "CrafterNoReward-v1", 1_000_000,
                    "does not have this domain; without reward RND is listed at a score of 2.0, Plan2Explore at 2.1.",
                    has_success=False, info="inventory,achievements", **RARELY),
    ablation("p-task", "How often to follow the task", "with p_task = 0 the task is never won; 0.1 was best.",
             {f"p_task = {p}": {"pge.p_task": p} for p in (0.0, 0.05, 0.1, 0.25, 0.5)}),
    ablation("desirability", "Desirability on and off", "weighing goals by novelty and reward matters on top of plausibility.",
             {"desirability on": {}, "desirability off": {"pge.desirability": "uniform"}}, "medium"),
    ablation("reachability", "Candidates for local reachability", "the number of candidates m has an optimum between few and many.",
             {f"m = {m}": PAPERS_CHOICE | {"pge.num_candidates": m} for m in (1, 2, 5, 10, 20)}),
    ablation("stratification", "Timescale buckets on and off",
             "without stratification local reachability hurts, as it biases the choice towards easy goals.",
             {"5 buckets": PAPERS_CHOICE, "1 bucket": PAPERS_CHOICE | {"pge.num_buckets": 1}}),
    ablation("hindsight", "Hindsight goals", "too few and too many hindsight goals are both worse than 15.",
             {f"M_her = {m}": {"learner.relabel": "novelty", "learner.hindsight_goals": m, "learner.unattained_goals": 8}
              for m in (1, 5, 15, 50)} | {"all goals": {"learner.relabel": "all"}}),
    ablation("plausibility", "Pruning on and off", "without pruning the agent drowns in goals it can never achieve.",
             {"pruning on": {}, "pruning off": PRUNING_OFF}, "medium"),
    ablation("recombination", "Recombination on and off", "mastered goals are joined into new ones on the way to the task.",
             {"recombination on": {}, "recombination off": {"pge.recombinations": 0}}),
]
COMPARISONS: dict[str, Comparison] = {comparison.name: comparison for comparison in _ALL}
