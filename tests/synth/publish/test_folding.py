"""What comes again is folded, and nothing gets lost or out of order."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from synth.publish.folding import folded, same
from synth.render.transcript import ShownCall, ShownTurn

TURNS = st.lists(st.sampled_from("abc"), max_size=30)


def _turn(text: str, place: int) -> ShownTurn:
    return ShownTurn("assistant", text, "", (), None, place)


def _turns(texts: list[str]) -> list[ShownTurn]:
    return [_turn(text, place) for place, text in enumerate(texts)]


@given(texts=TURNS)
def test_blocks_hold_every_turn_once_and_what_is_folded_is_the_same(texts: list[str]) -> None:
    turns = _turns(texts)
    blocks = folded(turns, same)
    assert [turn for block in blocks for turn in (*block.turns, *block.again)] == turns
    for block in blocks:
        shown = [turn.text for turn in block.turns]
        assert [turn.text for turn in block.again] == shown * block.times
        assert turns[block.first - 1] is block.turns[0]


@given(texts=TURNS)
def test_no_turn_is_shown_that_says_what_the_one_before_it_says(texts: list[str]) -> None:
    open_ones = [turn for block in folded(_turns(texts), same) for turn in block.turns]
    for one, then in pairwise(open_ones):
        assert one.text != then.text or then.place != (one.place or 0) + 1


def test_two_messages_that_come_again_together_are_folded_together() -> None:
    [first, block, last] = folded(_turns(["x", *"abababab", "y"]), same)
    assert (block.first, len(block.turns), block.times) == (2, 2, 3)
    assert (first.times, last.times) == (0, 0)


def test_calls_that_differ_in_their_number_alone_come_again() -> None:
    made = [ShownCall("rent", "{}", "no", True, ("mcp",), (), number) for number in range(3)]
    turns = [ShownTurn("assistant", "", "", (one,), None, n) for n, one in enumerate(made)]
    [block] = folded(turns, same)
    assert (len(block.turns), block.times) == (1, 2)
