"""Quotes are marked where they stand, and a verdict leads to the place that it is about."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.judging.transcript import is_quoted, places_of, quotable
from synth.publish.quotes import (
    QuoteMarks,
    ShownQuote,
    in_whole_words,
    places_in,
    value_shown,
)
from synth.publish.verdicts_shown import ShownCriterion, ShownEvidence, reason_in_words
from synth.render.transcript import ShownTurn, turns_of
from tests.synth.small_dataset import call

WORDS = st.text(st.sampled_from("abc dE1\u00df\u0130'\"*\n\u201c\u2026\\"), max_size=60)


def criterion(kind: str, evidence: str, quote: str = "") -> ShownCriterion:
    by, words = evidence.split(": ", 1)
    said = (ShownEvidence(by, words),)
    is_code = by == "code"
    return ShownCriterion(
        *(kind, kind, "", True, False, by, False, None, said, quote, is_code),
        stored=words if is_code else "",
    )


@given(text=WORDS, quotes=st.lists(WORDS, max_size=4), limit=st.integers(0, 70))
def test_pieces_are_the_text_whatever_is_quoted(text: str, quotes: list[str], limit: int) -> None:
    marks = QuoteMarks([ShownQuote(quote, "truth", False) for quote in quotes])
    whole = "".join(piece.text for piece in marks(text, limit))
    assert whole.startswith(text[:limit])
    assert (whole == text) == (len(text) <= limit)


@given(text=WORDS, quote=WORDS)
def test_what_is_accepted_as_a_quote_of_a_text_is_found_in_it(text: str, quote: str) -> None:
    said = quotable("", [], [], [{"role": "user", "content": text}])
    spoken = [one for one in said if one.of == "user"][:1]
    if is_quoted(quote, spoken):
        assert places_of(quote, text)


@pytest.mark.parametrize(
    ("text", "quote", "marked"),
    [
        ("It costs 1,200.50 EUR.", "200.50 EUR", "1,200.50 EUR"),
        ("The boats B-17 and B-18.", "boats B-1", "boats B-17"),
        ("the boathouse", "the boat", "the boathouse"),
        ("It is rented, for 20 EUR.", "for 20 EUR", "for 20 EUR"),
        ("It is rented, for 20 EUR.", "is rented,", "is rented,"),
        ("\u8239\u5df2\u7ecf\u79df\u597d", "\u5df2\u7ecf\u79df\u597d", "\u5df2\u7ecf\u79df\u597d"),
    ],
)
def test_a_mark_begins_and_ends_in_no_word(text: str, quote: str, marked: str) -> None:
    pieces = QuoteMarks([ShownQuote(quote, "truth", False)])(text, 100)
    assert [piece.text for piece in pieces if piece.quote] == [marked]


@given(text=WORDS, ends=st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_widening_takes_nothing_away_and_is_done_once(text: str, ends: tuple[int, int]) -> None:
    start, stop = sorted(min(end, len(text)) for end in ends)
    first, last = in_whole_words(text, start, stop)
    assert first <= start <= stop <= last
    assert in_whole_words(text, first, last) == (first, last)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("the BOAT is", ["The *boat* is"]),
        ("boat is rented ... 20 EUR", ["boat* is\n  rented", "20 EUR"]),
        ("no such words", []),
        ("e", []),
        ("", []),
    ],
)
def test_case_spacing_and_emphasis_make_no_difference(quote: str, found: list[str]) -> None:
    text = "The *boat* is\n  rented for three days; it costs 20 EUR."
    assert [text[start:end] for start, end in places_of(quote, text)] == found


def test_a_quote_of_a_result_is_found_in_the_lines_in_which_it_is_shown() -> None:
    value = {"boats": [{"id": 1, "name": "Heron"}]}
    shown = json.dumps(value, indent=2)
    [(start, end)] = places_of('{"id": 1, "name": "Heron"}', shown)
    assert json.loads(shown[start:end]) == value["boats"][0]


def turns() -> list[ShownTurn]:
    messages = [
        {"role": "user", "content": "Rent me the Heron."},
        {"role": "assistant", "content": "", "tool_calls": [call("c0", "rent", "{}")]},
        {"role": "tool", "tool_call_id": "c0", "content": "ok"},
        {"role": "assistant", "content": "It is rented, for 20 EUR."},
    ]
    diff = [{"op": "update", "entity": "boat", "id": "B-1", "before": {"free": True}, "after": {}}]
    log = {"tool_call_id": "c0", "call_index": 0, "actor": "agent", "executed_by": "mcp"}
    log |= {"injected_outcome": None, "error_code": None, "policy_violations": ["no_renting"]}
    log |= {"state_diff": diff, "is_error": False, "turn": 1}
    return turns_of(messages, [log], None)


@pytest.mark.parametrize(
    ("failed", "anchor"),
    [
        (criterion("nl", "judge: no", "for 20 EUR"), "message-3"),
        (criterion("policy", "code: seen no_renting by call 0."), "message-2-call-1"),
        (
            criterion(
                "state",
                'code: Expected 0 changes, seen 1; not expected: update boat B-1 {"x": 1}.',
            ),
            "message-2-call-1",
        ),
        (criterion("call", "code: Expected no call of rent; seen 1."), "message-2-call-1"),
        (criterion("state", "code: in the words of an extension"), "message-3"),
        (criterion("test", "code: mended 0 of 1."), "message-2-call-1"),
        (criterion("format", "code: message 2 shows tool markup."), "message-2"),
        (criterion("format", "code: the last message is empty."), "message-3"),
    ],
)
def test_a_verdict_leads_to_what_it_is_about(failed: ShownCriterion, anchor: str) -> None:
    assert [place.anchor for place in places_in(turns(), failed)] == [anchor]


LAST_WORD = "the agent's last word, though no call did what is missing"


def changing_turns() -> list[ShownTurn]:
    """A change of address that is asked for and not made, and a cancellation that is."""
    order = {"orders": [{"order_id": "O-5", "address": "Rue Sala 19", "status": "packed"}]}
    messages = [
        {"role": "user", "content": "The address is to be Via Nizza 61. Then cancel order O-5."},
        {"role": "assistant", "content": "", "tool_calls": [call("c0", "list", "{}")]},
        {"role": "tool", "tool_call_id": "c0", "content": json.dumps(order)},
        {"role": "user", "content": "And then? I want my 20 back; tell me the balance."},
        {"role": "assistant", "content": "", "tool_calls": [call("c1", "cancel", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"balance": 98}'},
        {"role": "assistant", "content": "It is cancelled."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "Goodbye."},
    ]
    before, after = {"status": "packed"}, {"status": "cancelled"}
    diff = [{"op": "update", "entity": "order", "id": "O-5", "before": before, "after": after}]
    given = {"actor": "agent", "executed_by": "mcp", "injected_outcome": None, "error_code": None}
    given |= {"policy_violations": [], "is_error": False}
    log = [
        given | {"tool_call_id": f"c{n}", "call_index": n, "turn": n, "state_diff": found}
        for n, found in enumerate(([], diff))
    ]
    return turns_of(messages, log, None)


def found_in(evidence: str, kind: str = "state", words: str = "") -> list[tuple[str, str]]:
    failed = criterion(kind, f"code: {evidence}")._replace(words=words)
    return [(place.anchor, place.words) for place in places_in(changing_turns(), failed)]


@pytest.mark.parametrize(
    ("value", "how"),
    [("Via Nizza 61", "asks for it"), ("nobody said this", "names what was to change")],
)
def test_a_change_that_is_missing_leads_to_who_asked_and_to_no_call_that_is_right(
    value: str, how: str
) -> None:
    evidence = (
        f'Expected 1 changes, seen 1; missing: update order O-5 {{"address": "{value}", '
        '"status": "cancelled"}. not expected: update order O-5 {"status": "cancelled"}.'
    )
    assert found_in(evidence) == [
        ("message-1", f"message 1, user, {how}, and no call did it"),
        ("message-7", f"message 7, assistant: {LAST_WORD}"),
    ]


def test_what_a_list_is_to_hold_besides_leads_to_who_asked_for_that() -> None:
    record = {"patient_id": "P-7", "name": "Ada Lind", "allergies": ["iodine"]}
    messages = [
        {"role": "user", "content": "Record 20 for Ada Lind, who has iodine on record."},
        {"role": "assistant", "content": "", "tool_calls": [call("c0", "find", "{}")]},
        {"role": "tool", "tool_call_id": "c0", "content": json.dumps(record)},
        {"role": "user", "content": "She is allergic to peanuts, too."},
        {"role": "assistant", "content": "That is noted."},
    ]
    evidence = (
        'Expected 1 changes, seen 0; missing: update patient P-7 {"allergies": '
        '["iodine", "peanuts"]}.'
    )
    failed = criterion("state", f"code: {evidence}")
    asked, replied = places_in(turns_of(messages, [], None), failed)
    assert asked.words == "message 3, user, asks for it, and no call did it"
    assert replied.words == f"message 4, assistant: {LAST_WORD}"


def test_a_change_that_nobody_names_leads_to_the_agents_last_message() -> None:
    found = found_in("Expected 1 changes, seen 0; missing: create trip.")
    assert found == [("message-7", f"message 7, assistant: {LAST_WORD}")]


def test_a_wrong_value_leads_to_the_call_that_set_it() -> None:
    evidence = (
        'Expected 1 changes, seen 1; missing: update order O-5 {"status": "returned"}. '
        'not expected: update order O-5 {"status": "cancelled"}.'
    )
    assert [anchor for anchor, _ in found_in(evidence)] == ["message-4-call-1"]
    failed = criterion("state", f"code: {evidence}")
    as_planned = {"message-4-call-1"}  # so it is not to blame
    asked, _ = places_in(changing_turns(), failed, None, as_planned)
    assert asked.words == "message 1, user, names what was to change, and no call did it"


def test_a_value_that_was_not_told_leads_to_the_question_the_result_and_the_reply() -> None:
    evidence = "Expected the user to be told 98; told 0; not told: 98."
    asked = "Was to be told: balance \u2014 98 (of: Cancel an order.)"
    places = found_in(evidence, "communicate", asked)
    assert [anchor for anchor, _ in places] == ["message-3", "message-4-call-1", "message-5"]
    assert "whose result holds 98" in places[1][1]
    assert "does not tell 98" in places[2][1]


def test_where_a_judge_names_nothing_no_place_is_named() -> None:
    assert places_in(turns(), criterion("nl", "judge: it does not look so")) == []


@pytest.mark.parametrize(
    ("evidence", "anchors"),
    [
        ("Expected no call of get-boats; seen 1 such calls.", ["message-2-call-1"]),
        (
            "Expected no call of any tool; seen 3 such calls.",
            ["message-2-call-1", "message-2-call-2", "message-4-call-1"],
        ),
        (
            "Expected no call of any tool that changes something; seen 1 such calls.",
            ["message-4-call-1"],
        ),
        (
            "Expected no call of any tool before message 2 of the user; seen 2 such calls.",
            ["message-2-call-1", "message-2-call-2"],
        ),
        (
            "Expected a successful call of rent before message 2 of the user; seen 0, of 1 calls "
            "of the tool in all.",
            ["message-4-call-1"],
        ),
    ],
)
def test_a_call_that_was_forbidden_leads_to_it_whatever_its_name(
    evidence: str, anchors: list[str]
) -> None:
    asked = [call("c0", "get-boats", "{}"), call("c1", "look", "{}")]
    messages = [
        {"role": "user", "content": "Which boats are there?"},
        {"role": "assistant", "content": "", "tool_calls": asked},
        {"role": "user", "content": "Rent me the Heron."},
        {"role": "assistant", "content": "", "tool_calls": [call("c2", "rent", "{}")]},
    ]
    diff = [{"op": "update", "entity": "boat", "id": "B-1", "before": {"free": True}, "after": {}}]
    given = {"actor": "agent", "executed_by": "mcp", "injected_outcome": None, "error_code": None}
    given |= {"policy_violations": [], "is_error": False, "turn": 1}
    log = [
        given | {"tool_call_id": f"c{n}", "call_index": n, "state_diff": diff if n == 2 else []}
        for n in range(3)
    ]
    places = places_in(turns_of(messages, log, None), criterion("call", f"code: {evidence}"))
    assert [place.anchor for place in places] == anchors


def test_what_a_field_was_is_told_of_the_row_and_of_no_row_that_names_it() -> None:
    order = {"order_id": "O-5", "customer_id": "C-1", "status": "shipped"}
    customer = {"name": "Ada Lind", "customer_id": "C-1", "status": "plain", "orders": [order]}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call("c0", "list", "{}")]},
        {"role": "tool", "tool_call_id": "c0", "content": json.dumps({"orders": [order]})},
        {"role": "assistant", "content": "", "tool_calls": [call("c1", "find", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps(customer)},
    ]
    found = turns_of(messages, [], None)
    assert value_shown(found[:1], "C-1", "status") is None
    assert value_shown(found, "C-1", "status") == "plain"
    assert value_shown(found, "O-5", "status") == "shipped"


def test_every_reason_is_a_sentence() -> None:
    for reason in ("failed_state", "failed_my_own", "user_wrong", "near_duplicate", "unheard_of"):
        words = reason_in_words(reason)
        assert words[0].isupper()
        assert words.endswith(".")
        assert "_" not in words.replace("my_own", "")
    assert reason_in_words("") == ""
