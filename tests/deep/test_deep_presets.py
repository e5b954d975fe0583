"""Presets: the paper's tables value for value, and settings that refuse what cannot be."""

import ast
import inspect
import itertools
import re
from dataclasses import fields

import pytest

from protogoal.deep import settings
from protogoal.presets import PRESETS, at_paper_scale
from protogoal.settings import from_dict, to_dict

DEEP = {name: config for name, config in PRESETS.items() if not config.has_paper_settings}
SECTIONS = [settings.NetworkSettings, settings.ActorSettings, settings.ReplaySettings, settings.LearnerSettings,
            settings.EvaluationSettings]


def test_paper_scale_is_table_1_of_the_paper():
    config = at_paper_scale(DEEP["baba-umaze-paper-protogoal"])
    table = {
        "replay buffer size": (config.replay.capacity, 1_000_000),
        "prioritised": (config.replay.novelty_share, 0.0),
        "learning rate": (config.learner.learning_rate, 3e-4),
        "epsilon": (config.learner.adam_epsilon, 1e-4),
        "weight decay": (config.learner.weight_decay, 1e-4),
        "target update period": (config.learner.target_period, 10_000),
        "batch size": (config.learner.batch_size, 64),
        "discount": (config.learner.task_discount, 0.99),
        "discount of goals": (config.learner.goal_discount, 0.99),
        "trace length": (config.replay.trace_length, 10),
        "trace lambda": (config.learner.trace_lambda, 0.95),
        "actors": (config.actor.num_envs, 128),
    }
    assert {name: ours for name, (ours, _) in table.items()} == {name: theirs for name, (_, theirs) in table.items()}


def test_paper_scale_is_table_2_of_the_paper():
    config = at_paper_scale(DEEP["baba-umaze-paper-protogoal"])
    pge = config.pge
    assert (pge.goal_set_size, config.learner.hindsight_goals, config.learner.relabel) == (100, 15, "novelty")
    assert (pge.controllability_threshold, pge.reachability_threshold) == (0.1, 0.5)
    assert (pge.estimator.projections, pge.batch_size, pge.estimator.discount) == (32, 1024, 0.95)
    assert (pge.p_task, pge.num_buckets, pge.num_candidates, pge.mastery_threshold) == (0.1, 5, 5, 0.6)
    assert (pge.pruning, pge.strategy, pge.competence, pge.patience) == ("values", "paper", False, 0.0)
    assert (pge.p_task_most, pge.p_task_of, config.env.max_steps) == (0.1, "choices", 1000)


@pytest.mark.parametrize("name", sorted(DEEP))
def test_a_preset_survives_json(name):
    assert from_dict(type(DEEP[name]), to_dict(DEEP[name])) == DEEP[name]


def test_r2d2_differs_from_the_proto_goal_preset_in_the_agent_alone():
    names = [name for name in DEEP if name.startswith("baba") and name.endswith("-protogoal")]
    assert len(names) >= 3
    for name in names:
        ours, plain = to_dict(DEEP[name]), to_dict(DEEP[name.replace("protogoal", "r2d2")])
        assert {key for key in ours if ours[key] != plain[key]} == {"agent"}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_says_what_it_is_and_refuses_nonsense(section):
    body = ast.parse(inspect.getsource(section)).body[0].body
    told = {one.target.id: ast.unparse(following) for one, following in itertools.pairwise(body) if isinstance(one, ast.AnnAssign)}
    for field in fields(section):
        assert re.match("['\"]+\\w", told[field.name]), f"{field.name} has no words under it"
        if field.name != "clip_goal_values":
            with pytest.raises(ValueError, match=rf"{section.__name__}\.{field.name} must be"):
                section(**{field.name: "nonsense"})
