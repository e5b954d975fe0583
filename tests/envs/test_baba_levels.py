"""Level files, legends, replays, and the levels of the Keke competition where they are at hand."""

import json
from pathlib import Path

import pytest

from protogoal.envs.baba import KEKE_LEGEND, LEGEND, BabaBatch, Legend, Level, level_names, load_level, replay
from protogoal.envs.baba.levels import MAX_SIDE

KEKE = Path(__file__).parents[2].parent / "shared" / "data" / "keke_levels.json"
U_MAZES = {"umaze-small": (7, 7, 25), "umaze-medium": (9, 11, 31), "umaze-paper": (13, 15, 47)}


@pytest.mark.parametrize("name", level_names())
def test_every_level_is_won_by_its_stored_solution_and_not_before(name):
    level = load_level(name)
    outcome = replay(level, level.solution)
    assert outcome.won
    assert outcome.steps == len(level.solution)
    assert level.title
    assert level.teaches


def test_there_is_a_level_for_each_rule_of_the_game():
    taught = " ".join(load_level(name).teaches for name in level_names())
    words = ("PUSH", "STOP", "MOVE", "DEFEAT", "SINK", "HOT", "MELT", "OPEN", "SHUT", "WEAK", "SHIFT", "FLOAT", "AND", "NOT",
             "TEXT", "NOUN IS NOUN", "YOU")
    assert [word for word in words if word not in taught] == []


@pytest.mark.parametrize("name", U_MAZES)
def test_the_u_maze_has_seven_planes_and_a_shortest_win_of_known_length(name):
    height, width, shortest = U_MAZES[name]
    level = load_level(name)
    assert (level.height, level.width, len(level.solution)) == (height, width, shortest)
    assert level.kinds == ("baba", "flag", "BABA", "IS", "YOU", "FLAG", "WIN")
    assert BabaBatch(level, 1).num_bits == 7 * height * width
    breakable = load_level(f"{name}-breakable")
    first_row = [c // level.width for k, c in zip(breakable.kind, breakable.cell, strict=True) if breakable.kinds[k] == "YOU"]
    assert first_row == [1]


def test_levels_are_found_by_short_names_and_paths(tmp_path):
    assert load_level("medium") is load_level("umaze-medium") is load_level("U-Maze_medium")
    file = tmp_path / "mine.txt"
    file.write_text("title: Mine\nsolution: r\nlegend: x = rock + flag\n\nBIYFIW\nbx....\n")
    level = load_level(file)
    assert (level.name, level.title, level.solution) == ("mine", "Mine", "r")
    assert replay(level, "r").won


@pytest.mark.parametrize(("text", "message"), [
    ("", "no grid"),
    ("title: only\n", "no grid"),
    ("BIY\nb?.", "unknown character '\\?' in row 1, column 1"),
    ("BIY.\nb..", "ragged lines: row 1 has 3"),
    ("b..\n..f", "no words"),
    ("BI.\nb.Y", "nothing is YOU at the start"),
    ("BI!Y\nb...", "nothing is YOU at the start"),
    ("BIY" + "." * MAX_SIDE, "too large"),
    ("BIY\n" + "...\n" * MAX_SIDE, "too large"),
    ("legend: x rock\n\nBIY\nbx.", "not of the form"),
    ("legend: x = cucumber\n\nBIY\nbx.", "'cucumber' is not an object"),
    ("legend: x = rock sideways\n\nBIY\nbx.", "faces up, down, left, right"),
])
def test_a_level_that_cannot_be_played_says_why(text, message):
    with pytest.raises(ValueError, match=message):
        Level.parse(text)


def test_a_level_whose_player_is_not_on_the_board_is_refused_when_it_is_to_be_played():
    with pytest.raises(ValueError, match="nothing is YOU at the start"):
        BabaBatch(Level.parse("BIY\n.f."), 1)
    assert not replay(Level.parse("BIY\n.f."), "rr").won


def test_things_that_are_not_text_or_not_levels_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must be text"):
        Level.parse(b"BIY\nb..")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no level 'nowhere'; there are"):
        load_level("nowhere")
    with pytest.raises(ValueError, match="single characters"):
        Legend({"xx": "rock"})


def test_a_plain_mapping_is_a_legend_too():
    legend = {"1": "BABA", "2": "IS", "3": "YOU", "4": "AND", "5": "WIN", "6": "baba", ".": "empty"}
    assert replay(Level.parse("12345.\n6.....", legend), "r").won


def test_types_that_are_only_named_have_a_plane():
    level = Level.parse("BIY\nbR.\nFIW")
    assert level.kinds == ("baba", "rock", "flag", "BABA", "IS", "YOU", "ROCK", "FLAG", "WIN")


def test_windows_line_ends_and_blank_lines_around_the_grid_do_not_matter():
    assert Level.parse("\r\nBIY\r\nb..\r\n\r\n").kinds == Level.parse("BIY\nb..").kinds


def test_a_wrong_move_is_named():
    with pytest.raises(ValueError, match="move 2 is 'x'"):
        replay("small", "udx")


def test_replay_counts_moves_up_to_the_win_and_takes_upper_case_and_waits():
    assert replay("small", load_level("small").solution.upper() + "uuuu").steps == 25
    assert replay("small", "s.SS") == replay("small", "....")
    lost = replay(Level.parse("BIYSI4\nbs...."), "rrr")
    assert (lost.won, lost.lost, lost.steps) == (False, True, 3)


def test_the_competitions_legend_knows_all_its_characters():
    objects = "bsfoalrwkgv"
    assert set(KEKE_LEGEND.symbols) == {*objects, *objects.upper(), *"0123456789", "_", ".", " "}
    assert LEGEND.symbols["#"] == KEKE_LEGEND.symbols["_"] == "terrain"


def test_a_level_may_wait_for_its_player_in_the_competitions_legend():
    level = Level.parse("________\n_kB.12._\n_b.f..._\n_K17F13_\n________", legend=KEKE_LEGEND)
    with pytest.raises(ValueError, match="nothing is YOU at the start"):
        BabaBatch(level, 1)
    assert replay(level, "srr").won


@pytest.mark.skipif(not KEKE.is_file(), reason="the competition's levels are not at hand")
def test_every_level_of_the_competition_is_won_by_its_solution():
    levels = json.loads(KEKE.read_text())["levels"]
    assert len(levels) > 50
    failed = [entry["id"] for entry in levels if not replay(Level.parse(entry["ascii"], legend=KEKE_LEGEND), entry["solution"]).won]
    assert failed == []
