"""One numbering: what checks count in their own ways is told, and linked, as the page counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.tables.schemas import Row
from synth.publish.numbering import PageNumbers
from synth.render.transcript import ShownTurn, turns_of
from tests.synth.small_dataset import call


def _logged(index: int, name: str) -> Row:
    row = {"tool_call_id": f"c{index}", "call_index": index, "actor": "agent", "name": name}
    row |= {"executed_by": "mcp", "injected_outcome": None, "error_code": None, "turn": 1}
    return row | {"policy_violations": [], "state_diff": [], "is_error": False}


def turns() -> list[ShownTurn]:
    """Messages 1 to 6 on the page; of 9 messages three are results inside their calls."""
    two = [call("c0", "find", "{}"), call("c1", "find", "{}")]
    messages: list[Row] = [
        {"role": "system", "content": "You rent boats."},
        {"role": "user", "content": "Rent me the Heron."},
        {"role": "assistant", "content": "", "tool_calls": two},
        {"role": "tool", "tool_call_id": "c0", "content": "ok"},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": "I rent it.", "tool_calls": [call("c2", "rent", "{}")]},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        {"role": "user", "content": "And the Teal?"},
        {"role": "assistant", "content": "{}"},
    ]
    log = [_logged(0, "find"), _logged(1, "find"), _logged(2, "rent")]
    return turns_of(messages, log, None)


@pytest.mark.parametrize(
    ("kind", "evidence", "told"),
    [
        (
            "economy",
            "3 calls; call 1 repeats call 0.",
            "3 calls; call 3.2 (find) repeats call 3.1 (find).",
        ),
        ("policy", "seen no_renting by call 2.", "seen no_renting by call 4.1 (rent)."),
        ("policy", "seen it by call 9.", "seen it by another conversation's call (index 9)."),
        ("format", "reply 2 is raw JSON", "message 6 is raw JSON"),
        ("call", "before message 2 of the user; seen none", "before message 5; seen none"),
        ("turns", "in a row, the second at 8", "in a row, the second message 6"),
        ("turns", "goes on at message 7 with 1 call", "goes on at message 5 with 1 call"),
        ("turns", "message 4, that answers", "index 4 of the messages, that answers"),
        ("communicate", "told 'call 1'", "told 'call 1'"),
    ],
)
def test_what_a_check_counts_is_told_as_the_page_counts(
    kind: str, evidence: str, told: str
) -> None:
    assert PageNumbers(turns()).told(kind, evidence) == told


def test_a_call_and_a_message_lead_where_they_stand_and_none_leads_nowhere() -> None:
    text = "call 3.2 (find) repeats call 3.1; message 6; call 3.3; message 7; message 99999999999"
    pieces = PageNumbers(turns()).linked(text)
    assert "".join(piece.text for piece in pieces) == text
    anchors = [piece.anchor for piece in pieces if piece.anchor]
    assert anchors == ["message-3-call-2", "message-3-call-1", "message-6"]


@given(text=st.text(st.sampled_from("call message.0136 "), max_size=60))
def test_pieces_are_the_text(text: str) -> None:
    numbers = PageNumbers(turns())
    assert "".join(piece.text for piece in numbers.linked(text)) == text


def test_a_later_conversation_does_not_take_the_counts_of_the_whole_episode_for_its_own() -> None:
    numbers = PageNumbers(turns(), is_first=False)
    assert numbers.told("format", "reply 2 is raw JSON") == "reply 2 is raw JSON"
