"""A checkpoint with one wild place in it (an index, a shape, a type, a number) ends in a run or in one line, never in a crash."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from amount import amount

pytest.importorskip("torch")

STEPS = {"taxi": 7000, "baba": 1300, "agent57": 1300}


@pytest.mark.parametrize("kind", STEPS)
def test_a_crafted_checkpoint_is_refused_in_one_line_or_harmless(kind, victims):
    attempts = amount({"taxi": 16, "baba": 8, "agent57": 8}[kind], 100)
    script = Path(__file__).with_name("crafted.py")
    command = [sys.executable, str(script), str(victims[kind]), str(STEPS[kind]), "0", str(attempts)]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in output.stdout.splitlines()]
    assert output.returncode == 0, f"the process died ({output.returncode}) with {answers[-1]}: {output.stderr[-500:]}"
    found = [answer for answer in answers if answer[1] != "begins"]
    assert len(found) == attempts
    for seed, code, done, said in found:
        assert code in (0, 2), (seed, done, said)
        assert code == 0 or (len(said) == 1 and said[0].startswith("protogoal: ")), (seed, done, said)


def wild(state, place, value):
    state = state | {"carry": state["carry"].copy()}
    state["carry"][place] = value
    return state


@pytest.mark.parametrize(("place", "value"), [(0, 10**9), (0, -7), (0, 500), (2, 10**6), (2, -3), (1, -1), (5, -1)])
def test_a_wild_index_never_reaches_a_kernel(place, value):
    from protogoal.presets import PRESETS
    from protogoal.run.tabular import TabularSession

    session = TabularSession(PRESETS["taxi-protogoal"])
    with pytest.raises(ValueError, match="stored carry"):
        session.load_state_dict(wild(session.state_dict(), place, value))


@pytest.mark.parametrize("bit", [-2, 10**6])
def test_nor_does_a_bit_that_no_space_has(bit):
    from protogoal.goals import GoalTable

    table = GoalTable(5)
    table.add(0, 1)
    state = table.state_dict()
    state["members"][0, 1] = bit
    with pytest.raises(ValueError, match="stored table members"):
        GoalTable(5).load_state_dict(state)
