"""What checks write is told in words, field by field and value by value, whatever it says."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.render.evidence import in_brief, in_words, state_difference, tellings
from synth.rubrics.built_in import episode_of
from synth.rubrics.criteria import CommunicateCheck, ExpectedChange, StateCheck
from synth.rubrics.episode import StateChange
from synth.rubrics.state import check_state
from synth.rubrics.telling import check_communicate

VALUES = st.text("ab .;{}\"'\u00e9\n", max_size=6) | st.integers(0, 9) | st.booleans() | st.none()
FIELDS = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, min_size=1, max_size=3)
ROWS = st.dictionaries(st.sampled_from(["R-1", "R-2", "R-3"]), FIELDS, max_size=3)


def made(row_id: str, fields: dict[str, Any]) -> StateChange:
    before = dict.fromkeys(fields, "before")
    return {"op": "update", "entity": "row", "id": row_id, "before": before, "after": fields}


@settings(max_examples=60)
@given(expected=ROWS, seen=ROWS)
def test_a_difference_of_states_tells_each_row_once_and_what_differs_in_it(
    expected: dict[str, dict[str, Any]], seen: dict[str, dict[str, Any]]
) -> None:
    wanted = [ExpectedChange(op="update", entity="row", id=i, match=f) for i, f in expected.items()]
    changes = [made(i, fields) for i, fields in seen.items()]
    verdict = check_state(StateCheck(changes=tuple(wanted)), changes)
    found = state_difference(verdict.evidence)
    if verdict.passed:
        assert found is None
        return
    assert found is not None
    assert {one.id for one in found.missing} == expected.keys() - seen.keys()
    assert {one.id for one in found.unexpected} == seen.keys() - expected.keys()
    for one in found.otherwise:
        fields, got = expected[one.seen.id], seen[one.seen.id]
        assert set(one.left) == fields.keys() - got.keys()
        assert set(one.beside) == got.keys() - fields.keys()
        assert set(one.wrong) <= fields.keys() & got.keys()
        assert one.left or one.wrong or one.beside
    assert found.num_missing == len(found.missing) + len(found.otherwise)


ORDER = (
    'Expected 5 changes, seen 5; missing: update order O-1005 {"address": "Via Nizza 61", '
    '"status": "cancelled"}. not expected: update order O-1005 {"status": "cancelled"}.'
)


def test_what_was_wanted_is_not_called_unexpected_where_the_row_stands_in_both() -> None:
    words = in_words("state", ORDER, lambda change, field: f"{change.id}'s {field}")
    assert words == (
        "Of the 5 expected changes 4 were made. In order O-1005: address stayed "
        "\u201cO-1005's address\u201d, expected \u201cVia Nizza 61\u201d."
    )
    assert "address was not changed, expected" in in_words("state", ORDER)
    assert in_brief("state", ORDER).startswith("In order O-1005: address was not changed")


def test_a_row_that_was_created_otherwise_is_told_by_what_differs() -> None:
    evidence = (
        'Expected 1 changes, seen 1; missing: create visit {"day": "monday", "of": {"$new": 0}, '
        '"at": {"$from": 1, "$to": 3}}. not expected: create visit V-7 {"at": 4, "day": "monday", '
        '"of": "P-1", "visit_id": "V-7"}.'
    )
    assert in_words("state", evidence) == (
        "The one expected change was not made as expected. In visit V-7: at became 4, expected "
        "something from 1 to 3."
    )


def test_a_field_that_a_new_row_has_not_was_not_set() -> None:
    evidence = (
        'Expected 1 changes, seen 1; missing: create visit {"day": "monday", "room": 2}. '
        'not expected: create visit V-7 {"day": "monday"}.'
    )
    told = in_words("state", evidence, lambda _change, _field: "of another row")
    assert told.endswith("In visit V-7: room was not set, expected 2.")


def test_more_than_the_evidence_lists_is_counted() -> None:
    listed = "; ".join(f"delete row R-{n}" for n in range(5))
    found = state_difference(f"Expected 7 changes, seen 0; missing: {listed}; and 2 more.")
    assert found is not None
    assert found.num_missing == 7
    assert found.words().endswith("; and 2 more missing.")


def test_rows_that_refer_to_each_other_otherwise_are_told_in_words() -> None:
    wanted = [
        ExpectedChange(op="create", entity="trip", match={"day": 1}),
        ExpectedChange(op="create", entity="stop", match={"trip": {"$new": 0}}),
    ]
    after = {"T-1": {"day": 1}, "S-1": {"trip": "T-2"}}
    changes: list[StateChange] = [
        {"op": "create", "entity": entity, "id": row_id, "before": None, "after": after[row_id]}
        for entity, row_id in (("trip", "T-1"), ("stop", "S-1"))
    ]
    verdict = check_state(StateCheck(changes=tuple(wanted)), changes)
    assert in_words("state", verdict.evidence) == (
        "Of the 2 expected changes 2 were made. Rows refer to each other otherwise than expected."
    )
    assert in_brief("state", verdict.evidence).startswith("Rows refer to each other")


@pytest.mark.parametrize(
    ("values", "reply", "words"),
    [
        ((98,), "All is done.", "98 was not told."),
        ((98, "Ann"), "The name is Ann.", "98 was not told; Ann was told."),
        ((98,), "It is one of 97, 98 or 99.", "98 was told only "),
        (
            (98,),
            'I can\'t say: "perhaps" 98.',
            '98 was told only perhaps: \u201cI can\'t say: "perhaps" 98.\u201d.',
        ),
    ],
)
def test_whether_a_value_was_told_is_a_sentence_of_its_own(
    values: tuple[Any, ...], reply: str, words: str
) -> None:
    messages = [
        {"role": "user", "content": "Please tell me what I owe now, and who says so."},
        {"role": "assistant", "content": reply},
    ]
    verdict = check_communicate(CommunicateCheck(values=values), episode_of(messages, []))
    assert [str(value) for value in values] == [one.value for one in tellings(verdict.evidence)]
    told = in_words("communicate", verdict.evidence)
    assert told.startswith(words)
    assert "told 0" not in told


@pytest.mark.parametrize(
    ("kind", "evidence", "words"),
    [
        ("policy", "Expected no breach of a, b; seen b by call 4.", "b"),
        (
            "call",
            "Expected no call of pay; seen 1 such calls.",
            "called, and not to be called: pay",
        ),
        (
            "call",
            "Expected a successful call of pay; seen 0, of 2 calls of the tool in all.",
            "not called with success: pay",
        ),
        ("format", "Expected plain words; reply 2 is raw JSON.", "reply 2 is raw JSON"),
        ("state", "in the words of an extension", "in the words of an extension"),
    ],
)
def test_a_list_tells_in_few_words_what_failed(kind: str, evidence: str, words: str) -> None:
    assert in_brief(kind, evidence) == words
