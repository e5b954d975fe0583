"""What each rule of the game does, on boards small enough to work out by hand."""

import pytest

from protogoal.envs.baba import LEGEND, Game, Legend, Level
from protogoal.envs.baba.game import actions_of

ANY = Legend(LEGEND.symbols, player_at_start=False)
UP, DOWN, LEFT, RIGHT = range(4)


def game(board: str, moves: str = "", **legend: str) -> Game:
    """A game on a board, after some moves; extra symbols as keywords."""
    level = Level.parse("\n".join(line.strip() for line in board.strip().split("\n")), Legend({**ANY.symbols, **legend}, False))
    played = Game(level)
    for action in actions_of(moves):
        played.turn(action)
    return played


def where(played: Game, name: str) -> list[tuple[int, int]]:
    return sorted((t.row, t.column) for t in played.things() if t.name == name)


def facing(played: Game, name: str) -> list[int]:
    return [t.face for t in played.things() if t.name == name]


# Movement


def test_words_are_pushed_in_a_chain_and_all_or_nothing_at_the_edge():
    board = """
        BIY....
        bRK....
        """
    assert where(game(board, "rr"), "KEKE") == [(1, 4)]
    blocked = game(board, "r" * 9)
    assert (where(blocked, "baba"), where(blocked, "ROCK"), where(blocked, "KEKE")) == ([(1, 4)], [(1, 5)], [(1, 6)])


def test_terrain_stops_like_the_edge():
    played = game("BIY\nbR#", "r")
    assert (where(played, "baba"), where(played, "ROCK")) == ([(1, 0)], [(1, 1)])


def test_every_pushable_thing_in_a_cell_moves():
    played = game("BIYRI5\nbx....", "r", x="rock + rock + ROCK")
    assert (where(played, "rock"), where(played, "ROCK")) == ([(1, 2), (1, 2)], [(0, 3), (1, 2)])


def test_push_overrides_stop_and_a_blocked_push_is_solid():
    assert where(game("BIYRI5&6\nb.r.....", "rr"), "rock") == [(1, 3)]
    assert where(game("BIYRI5&6\nb......r", "r" * 7), "baba") == [(1, 6)]


def test_stop_blocks_and_a_stop_in_the_cell_blocks_the_push_into_it():
    board = "BIYRI5HI6\nb.rw....."
    assert where(game(board, "rr"), "baba") == [(1, 1)]
    assert where(game(board, "rr"), "rock") == [(1, 2)]


def test_you_is_not_solid_and_may_step_onto_a_blocked_you():
    played = game("BIY....\n....#bb", "r")
    assert where(played, "baba") == [(1, 6), (1, 6)]


def test_a_row_of_solid_yous_walks_as_one_and_is_blocked_as_one():
    board = "BIY&6\n.bbb."
    assert where(game(board, "r"), "baba") == [(1, 2), (1, 3), (1, 4)]
    assert where(game(board, "rr"), "baba") == [(1, 2), (1, 3), (1, 4)]


def test_two_yous_push_the_same_block_once():
    played = game("BIY&5..\n.bbR...", "r")
    assert (where(played, "baba"), where(played, "ROCK")) == ([(1, 2), (1, 3)], [(1, 4)])


def test_a_blocked_you_still_turns():
    assert facing(game("BIY\nb..", "l"), "baba") == [LEFT]


def test_move_goes_by_itself_pushes_and_turns_what_it_pushes():
    played = game("KI7...\n......\n..k.R.\n...BIY", "s")
    assert where(played, "keke") == [(2, 3)]
    played.turn(4)
    assert (where(played, "keke"), where(played, "ROCK")) == ([(2, 4)], [(2, 5)])


def test_a_blocked_move_turns_round_and_goes_in_the_same_turn():
    played = game("KI7..\n....k", "s")
    assert (where(played, "keke"), facing(played, "keke")) == ([(1, 3)], [LEFT])


def test_a_move_that_is_blocked_both_ways_turns_round_and_stays():
    played = game("KI7\n#k#", "s")
    assert (where(played, "keke"), facing(played, "keke")) == ([(1, 1)], [LEFT])


def test_movers_go_at_once_and_do_not_block_each_other_on_the_way():
    played = game("KI7&6..\n..kk...", "s")
    assert where(played, "keke") == [(1, 3), (1, 4)]


def test_rules_are_not_read_again_between_you_and_move():
    played = game("KI7.\n.b..\nk...\nBIY.", "u")
    assert where(played, "IS") == [(0, 1), (3, 1)], "IS is against the edge"
    played = game("....\nKI7.\n.b..\nk...\nBIY.", "u")
    assert (where(played, "IS"), where(played, "keke")) == ([(0, 1), (4, 1)], [(3, 1)]), "broken, and moves once more"
    played.turn(4)
    assert where(played, "keke") == [(3, 1)]


def test_two_rules_that_say_move_move_a_thing_once():
    assert where(game("KI7KI7\nk.....", "s"), "keke") == [(1, 1)]


def test_shift_carries_what_lies_on_it_and_turns_it():
    played = game("PI~.BIY\nx>.....", "s", x="belt right + rock up")
    assert (where(played, "rock"), facing(played, "rock")) == ([(1, 1)], [RIGHT])
    assert where(played, "belt") == [(1, 0), (1, 1)]


def test_shift_comes_after_you():
    played = game("PI~.BIY\nb>.....", "r")
    assert where(played, "baba") == [(1, 2)]


# Interactions


def test_defeat_removes_only_the_you():
    played = game("BIYSI4\nbs....", "r")
    assert (where(played, "baba"), where(played, "skull"), played.lost) == ([], [(1, 1)], True)


def test_what_is_you_and_defeat_is_gone():
    assert where(game("BIY&4\nb....", "s"), "baba") == []


def test_hot_removes_only_the_melt_and_what_is_both_melts_itself():
    played = game("BIYBI9LI8\nbl.......", "r")
    assert (where(played, "baba"), where(played, "lava")) == ([], [(1, 1)])
    assert where(game("LI8&9\nl....", "s"), "lava") == []


def test_sink_removes_both_one_for_one():
    played = game("BIYNI0\nbn....", "r")
    assert (where(played, "baba"), where(played, "water")) == ([], [])
    two = game("BIYNI0\nxn....", "r", x="baba + baba")
    assert (where(two, "baba"), where(two, "water")) == ([(1, 1)], [])
    both = game("NI0\nx..", "s", x="water + water + water")
    assert where(both, "water") == [(1, 0)]


def test_words_sink_and_their_rule_with_them():
    played = game("..b..NI0\nBIY.....\n..n.....", "d")
    assert (where(played, "YOU"), where(played, "water"), played.lost) == ([], [], True)


def test_open_and_shut_vanish_when_one_steps_into_the_other():
    board = "DI)&6EI(&5\nb.ed......\nBIY......."
    played = game(board, "rr")
    assert (where(played, "key"), where(played, "door"), where(played, "baba")) == ([], [], [(1, 2)])
    assert where(game("DI)&6.\nBI(&Y.\nbd....", "r"), "baba") == []


def test_open_and_shut_in_one_cell_vanish_one_for_one():
    played = game("DI)EI(\nx.....", "s", x="door + key + key")
    assert (where(played, "door"), where(played, "key")) == ([], [(1, 0)])


def test_weak_vanishes_under_anything_and_breaks_against_something_solid():
    assert where(game("BIYRI%\nbr....", "r"), "rock") == []
    pushed = game("BIYRI5&%\n.....b.r", "rr")
    assert (where(pushed, "rock"), where(pushed, "baba")) == ([], [(1, 7)])
    assert where(game("BIY&%\n....b", "r"), "baba") == []


def test_weak_and_stop_is_no_obstacle():
    played = game("BIYRI6&%\nbr......", "r")
    assert (where(played, "rock"), where(played, "baba")) == ([], [(1, 1)])


def test_float_meets_only_what_floats():
    board = "BIYSI4&^\nbs......"
    assert where(game(board, "r"), "baba") == [(1, 1)]
    assert where(game(board + "\nBI^.....", "r"), "baba") == []
    assert not game("BIYFIW&^\nbf......", "r").won


def test_float_does_not_pass_through_stop():
    assert where(game("BIYHI6&^\nbw......", "r"), "baba") == [(1, 0)]


def test_win_comes_last_under_the_new_rules():
    board = "BIY.....\n........\n..bx.IW."  # a word lies on the flag
    assert not game(board, "s", x="FLAG + flag").won
    completed = game(board, "r", x="FLAG + flag")
    assert (where(completed, "FLAG"), where(completed, "baba")) == ([(2, 4)], [(2, 3)])
    assert completed.won, "the step onto the flag pushes FLAG IS WIN together, and wins that very turn"


def test_a_win_rule_broken_by_the_step_onto_the_flag_does_not_win():
    board = "BIY..\n..bx.\n...I.\n...W."
    assert "FLAG IS WIN" in {str(s) for s in game(board, x="FLAG + flag").rules()}
    stepped = game(board, "r", x="FLAG + flag")
    assert (where(stepped, "baba"), where(stepped, "flag"), stepped.won) == ([(1, 3)], [(1, 3)], False)


def test_defeat_and_sink_come_before_win():
    assert not game("BIYFIWFI4\nbf.......", "r").won
    assert not game("BIYFIWFI0\nbf.......", "r").won


def test_what_is_you_and_win_wins():
    assert game("BIY&W\nb....", "s").won


# Reading


@pytest.mark.parametrize(("line", "rules"), [
    ("BIY", {"BABA IS YOU"}),
    ("B&RIY", {"BABA IS YOU", "ROCK IS YOU"}),
    ("BIY&W", {"BABA IS YOU", "BABA IS WIN"}),
    ("B&RIY&W", {"BABA IS YOU", "BABA IS WIN", "ROCK IS YOU", "ROCK IS WIN"}),
    ("BIRIY", {"BABA IS ROCK", "ROCK IS YOU"}),
    ("BIR&FIY", {"BABA IS ROCK", "BABA IS FLAG", "FLAG IS YOU"}),
    ("BIY&R&FIW", {"BABA IS YOU", "BABA IS ROCK", "BABA IS FLAG", "FLAG IS WIN"}),
    ("BI!Y", {"BABA IS NOT YOU"}),
    ("BI!!Y", {"BABA IS YOU"}),
    ("!BIY", {"NOT BABA IS YOU"}),
    ("!B&RIY", {"NOT BABA IS YOU", "ROCK IS YOU"}),
    ("BI!RIY", {"BABA IS NOT ROCK", "NOT ROCK IS YOU"}),
    ("BIYRIW", {"BABA IS YOU", "ROCK IS WIN"}),
    ("BRIW", {"ROCK IS WIN"}),
    ("BIY&", {"BABA IS YOU"}),
    ("&BIY", {"BABA IS YOU"}),
    ("YIB", set()), ("BI", set()), ("IY", set()), ("BII", set()), ("BI&Y", set()), ("B!IY", set()),
])
def test_a_line_of_words_reads_as(line, rules):
    for board in (line, "\n".join(line)):
        assert {str(sentence) for sentence in game(board).rules()} == rules


def test_stacked_words_give_every_reading():
    played = game("xIy\nbr.", "r", x="BABA + ROCK", y="YOU + PUSH")
    assert {str(s) for s in played.rules()} == {"BABA IS YOU", "BABA IS PUSH", "ROCK IS YOU", "ROCK IS PUSH"}
    assert (where(played, "baba"), where(played, "rock")) == ([(1, 1)], [(1, 2)])


def test_a_stack_of_not_and_something_else_reads_both_ways():
    played = game("BIxY\nb...", "r", x="NOT + AND")
    assert where(played, "baba") == [(1, 0)], "BABA IS NOT YOU; B IS AND YOU is no rule"


def test_is_not_cancels():
    assert where(game("BIY....\nHI6HI!6\nbw.....", "r"), "baba") == [(2, 1)]


def test_not_a_noun_means_every_other_object_but_no_text():
    played = game("!BI5...\nBIY.FIW\nbr.....", "r")
    assert where(played, "rock") == [(2, 2)]
    assert where(game("!BIY\n.b.r\nR...", "r"), "baba") == [(1, 1)]


# Transformation


def test_noun_is_noun_transforms_before_the_first_turn_and_after_each():
    assert where(game("RIF\nr..\nIY.", ""), "flag") == [(1, 0)]
    played = game("BIY..\nR....\n.IF..\nb...r", "")
    assert where(played, "rock") == [(3, 4)]
    pushed = game("BIY..\nbR.IF\n....r", "r")
    assert (where(pushed, "rock"), where(pushed, "flag")) == ([], [(2, 4)])


def test_x_is_x_blocks_its_transformation():
    assert where(game("RIFRIR\nr.YI..", "s"), "rock") == [(1, 0)]


def test_two_kinds_change_places_at_once():
    played = game("RIF.FIR\nr.f..YI", "s")
    assert (where(played, "rock"), where(played, "flag")) == ([(1, 0)], [(1, 2)]), "swapped at the start, and back"


def test_x_is_y_and_z_makes_both():
    played = game("RIF&B\nr..YI", "")
    assert (where(played, "flag"), where(played, "baba"), where(played, "rock")) == ([(1, 0)], [(1, 0)], [])


def test_what_would_exceed_the_room_is_not_made():
    played = game("RIF&B\nFIR..\nBIR..\nrr.YI", "s" * 40)
    assert len(played.things()) == played.level.capacity


def test_x_is_not_x_vanishes():
    assert where(game("RI!R\nr.YI", ""), "rock") == []


def test_x_is_text_becomes_its_word_and_the_rules_are_read_again():
    played = game("..BIY\n..RIT\nrIW..", "")
    assert (where(played, "rock"), where(played, "ROCK")) == ([], [(1, 2), (2, 0)])
    assert "ROCK IS WIN" in {str(s) for s in played.rules()}


def test_text_is_noun_transforms_the_words():
    played = game("TIR\nIY.", "")
    assert (len(where(played, "rock")), where(played, "TEXT")) == (5, [])


def test_text_is_you_moves_the_words():
    assert where(game("TIY...", "r"), "TEXT") == [(0, 1)]


def test_text_stays_push_whatever_is_said():
    played = game("BIY...\nTI!5..\nbR....", "r")
    assert where(played, "ROCK") == [(2, 2)]
