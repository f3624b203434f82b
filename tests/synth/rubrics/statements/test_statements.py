"""Statements: how replies are taken apart, and what code can tell of each part."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.rubrics.statements.statements import ReplyStatement, statements_of, truth_by_code

Row = dict[str, Any]

POLICY = "You are a desk. Today is Thursday, 5 March 2026. A fee is 1.50 or 50 percent."
BOOKINGS = [
    {"booking": "LP-58213", "film": "The Salt Road", "time": "18:10", "seats": 3, "paid": 34.5},
    {"booking": "LP-58231", "film": "Blue Hours", "time": "20:50", "seats": 20, "paid": 230.0},
]


def call(name: str, arguments: Row, result: Any, diff: list[Row] | None = None) -> Row:
    return {
        "name": name,
        "arguments": arguments,
        "observation": result if isinstance(result, str) else json.dumps(result),
        "is_error": False,
        "state_diff": diff or [],
    }


MOVED = {
    "op": "update",
    "entity": "bookings",
    "id": "LP-58213",
    "before": {"date": "2026-03-06"},
    "after": {"date": "2026-03-09"},
}
CALLS = [
    call("find_bookings", {"account": "A-3307"}, BOOKINGS),
    call("move_booking", {"booking": "LP-58213", "date": "2026-03-09"}, {"ok": True}, [MOVED]),
]
OPENING = "Hello, Dorota Finch here. Please move The Salt Road to Monday, I can pay 40 pounds."


def said(*replies: str, calls: list[Row] = CALLS, opening: str = OPENING) -> list[ReplyStatement]:
    messages: list[Row] = [
        {"role": "system", "content": POLICY},
        {"role": "user", "content": opening},
    ]
    for number, made in enumerate(calls):
        name, arguments = made["name"], json.dumps(made["arguments"])
        function = {"name": name, "arguments": arguments}
        wire = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [wire]})
        observed = made["observation"]
        messages.append({"role": "tool", "name": name, "content": observed})
    messages += [{"role": "assistant", "content": reply} for reply in replies]
    return statements_of(messages, calls)


def outcome(text: str, **more: Any) -> str:
    """Of the one statement of a reply, after words that show its language."""
    first, *rest = said(f"This is what I have found for you.\n{text}", **more)
    assert first.outcome == "open"
    (statement,) = rest
    return statement.outcome


def test_sentences_lines_and_rows_are_numbered_through() -> None:
    found = said("Hi Dorota! Done:\n- **Film:** Blue Hours\n| Fee | 1.50 |", "All at 8 p.m. then.")
    assert [s.id for s in found] == ["s1", "s2", "s3", "s4", "s5"]
    assert [s.message for s in found] == [6, 6, 6, 6, 7]
    texts = ["Hi Dorota!", "Done:", "- **Film:** Blue Hours", "| Fee | 1.50 |"]
    assert [s.text for s in found] == [*texts, "All at 8 p.m. then."]


@pytest.mark.parametrize(
    "text",
    [
        "LP-58231: time 20:50",
        "- **LP-58231** paid: \u00a3230.00",
        "Booking LP-58231 is for 20 seats.",
        "| LP-58231 | seats | 20 |",
        "The film of LP-58231 is Blue Hours.",
        "LP-58231: paid 23000 cents",
        "LP-58231: time 8:50 pm, seats 20, paid 230.",
        "LP-58213: date 9 March",
        "Dear Ms Finch,",
        "Hello Dorota!",
        "Yours sincerely,",
        "Thank you very much, Dorota.",
    ],
)
def test_right_values_and_greetings_match(text: str) -> None:
    expected = "open" if text == "Booking LP-58231 is for 20 seats." else "matched"
    assert outcome(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("LP-58231: time 20:30", "time of LP-58231 is '20:50', not '20:30'."),
        ("LP-58231: seats 27", "seats of LP-58231 is 20, not '27'."),
        ("| LP-58231 | paid | 203.00 |", "paid of LP-58231 is 230.0, not '203.00'."),
        ("The time of LP-58231 is 9:20 pm.", "time of LP-58231 is '20:50', not '9:20 pm"),
        ("LP-58213: date 12 March", "date of LP-58213 is '2026-03-09', not '12 March'."),
    ],
)
def test_a_value_that_the_record_never_had_is_contradicted(text: str, why: str) -> None:
    _, statement = said(f"This is what I have found for you.\n{text}")
    assert statement.outcome == "contradicted"
    assert why in statement.evidence
    verdict = truth_by_code([statement])
    assert verdict.passed is False
    assert text.replace("'", "\\'") in verdict.evidence


@pytest.mark.parametrize(
    "text",
    [
        "LP-58213: date 6 March",  # what it was before
        "LP-58231: seats 18, which is two fewer than before.",
        "The time of LP-58231 is not 20:30.",
        "Is the time of LP-58231 20:30?",
        "If the time of LP-58231 is 20:30, tell me.",
        "You said the time of LP-58231 is 20:30.",
        "LP-58231: paid about \u00a3225",
        "LP-58231: paid \u00a3229.99",  # rounded
        "LP-58231: paid \u00a340",  # the user's own number
        "LP-58231: paid \u00a311.50",  # 230 over 20 seats
        "LP-58231: paid \u00a3345.00",  # half as much again
        "LP-58231: paid \u00a3203.00 per month",
        "LP-58231: paid \u00a3203.00",  # in a currency that nobody spoke of
        "LP-58231: time 9:20 pm in London",
        "Your booking is LP-58321.",
        "LP-58231: late time 21:30",  # another time than the field's
        "LP-58231: seats 15, paid 150",  # which of the two is wrong is for the judge
        "LP-58231 and LP-58213: time 20:30",
        "LP-58231: weekly seats 25 kg",
        "time: 20:30",
        "LP-58231 20:30",
        "The time of LP-58231 was 20:30.",
        "LP-58231: time 8:50",  # in the evening, perhaps
        "I have moved booking LP-58213 to 9 March.",
        "Not LP-58321 but LP-58231.",
        "A number such as LP-00000 stands on the ticket.",
        "Flight NX999 is another thing.",
        "The film begins soon.",
    ],
)
def test_whatever_leaves_a_doubt_stays_open(text: str) -> None:
    assert outcome(text) == "open"


def test_nothing_is_decided_in_a_language_without_a_table() -> None:
    opening = "Ol\u00e1, aqui \u00e9 a Dorota. Por favor, mude a minha reserva para segunda-feira."
    (statement,) = said(
        "A reserva LP-58321 est\u00e1 feita para o dia 9, com seats 25.", opening=opening
    )
    assert statement.outcome == "open"


def test_a_statement_before_the_last_call_does_not_match() -> None:
    early: list[Row] = [
        {"role": "user", "content": OPENING},
        {"role": "assistant", "content": "This is what I see.\nLP-58231: time 20:50"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
    ]
    assert [s.outcome for s in statements_of(early, CALLS)] == ["open", "open"]


def test_what_a_call_may_have_changed_unseen_stays_open() -> None:
    item = {"item": "IT-2041", "due": "2026-04-01", "copies": 20}
    calls = [call("look", {}, item), call("extend", {"item": "IT-2041", "days": 2}, "ok")]
    assert outcome("IT-2041: due 3 April", calls=calls) == "open"
    assert outcome("IT-2041: due 3 April", calls=calls[:1]) == "contradicted"
    extended = {"op": "update", "entity": "items", "id": "IT-2041", "before": {}, "after": {"n": 1}}
    calls[1]["state_diff"] = [extended]
    assert outcome("IT-2041: due 3 April", calls=calls) == "contradicted"
    assert outcome("IT-2041: copies 20", calls=calls) == "matched"


def test_open_statements_have_what_they_are_about_beside_them() -> None:
    (statement,) = said("I have moved The Salt Road, LP-58213, to Monday 9 March at 18:10 for you.")
    assert 1 <= len(statement.beside) <= 4
    assert all(len(excerpt) <= 200 for excerpt in statement.beside)
    assert statement.beside[0].startswith('find_bookings returned {"booking": "LP-58213"')
    assert any("changed bookings LP-58213, after:" in excerpt for excerpt in statement.beside)
    assert not any("LP-58231" in excerpt for excerpt in statement.beside)
    assert said("I am glad that it worked.")[0].beside == ()


def test_an_excerpt_of_a_long_object_keeps_what_the_statement_tells() -> None:
    notes = {f"note_{i}": f"words that say little, number {i} of many" for i in range(12)}
    calls = [call("look", {}, {"ticket": "TK-1011"} | notes | {"fee": 38.5})]
    (statement,) = said("The fee of TK-1011 came to 38.50 pounds in the end.", calls=calls)
    assert statement.beside == ('look returned {"ticket": "TK-1011", "fee": 38.5}',)


def test_results_that_are_nested_text_lists_or_broken_are_taken_as_they_are() -> None:
    inner = json.dumps({"orders": [{"order_id": "OR-1001", "total": 99.5}]})
    calls = [call("a", {"q": [1]}, {"content": inner}), call("b", {}, "{broken"), call("c", {}, "")]
    assert outcome("OR-1001: total 99.50", calls=calls) == "matched"
    assert outcome("OR-1001: total 85.50", calls=calls) == "contradicted"
    calls[0]["is_error"] = True
    assert outcome("OR-1001: total 99.50", calls=calls) == "open"


FIELDS = {
    "en": ("price", "The price of {id} is {value}.", "This is what I have found for you."),
    "de": ("preis", "Der Preis von {id} ist {value}.", "Das ist es, was ich f\u00fcr Sie habe."),
    "es": ("precio", "{id}: el precio es {value}.", "Esto es lo que hay para usted."),
    "fr": ("prix", "{id}: le prix est {value}.", "Voici ce que j'ai pour vous."),
}
amounts = st.integers(20_00, 10**6).map(lambda cents: cents / 100)


def spelled(amount: float, code: str) -> str:
    plain = f"{amount:,.2f}"
    return plain if code == "en" else plain.translate({44: ".", 46: ","})


@pytest.mark.parametrize("code", FIELDS)
@settings(deadline=None)
@given(price=amounts, told=amounts)
def test_the_record_s_value_is_never_contradicted_and_another_never_matches(
    code: str, price: float, told: float
) -> None:
    field, sentence, opening = FIELDS[code]
    calls = [call("look", {}, {"item": "IT-2041", field: price})]
    right = sentence.format(id="IT-2041", value=f"{spelled(price, code)} \u20ac")
    wrong = sentence.format(id="IT-2041", value=f"{spelled(told, code)} \u20ac")
    _, statement = said(f"{opening}\n{right}", calls=calls, opening=opening)
    assert statement.outcome == "matched"
    _, statement = said(f"{opening}\n{wrong}", calls=calls, opening=opening)
    assert (statement.outcome == "matched") == (told == price)
    if abs(told - price) <= 1:
        assert statement.outcome != "contradicted"


ORDER = {"order_id": "LP-58213", "price": 100.0, "refund": 0, "delivery_date": "2026-03-05"}
NOTE = {
    "op": "update",
    "entity": "orders",
    "id": "LP-58213",
    "before": {"note": ""},
    "after": {"note": "x"},
}
READ = call("get_order", {"order_id": "LP-58213"}, ORDER)
NOTED = call("set_note", {"order_id": "LP-58213", "note": "x"}, {"ok": True}, [NOTE])
ASKED = {"order_id": "LP-58213"}


@pytest.mark.parametrize(
    ("text", "name", "arguments", "result"),
    [
        ("The refund for LP-58213 is 35.", "quote_refund", ASKED, {"refund": 35}),
        ("The price of LP-58213 is 113.27.", "convert", {"amount": 100}, {"amount": 113.27}),
        ("The price of LP-58213 is 119.00.", "tax", {"country": "DE"}, {"vat": 19}),
        ("The delivery date of LP-58213 is 9 March.", "get_date", ASKED, "2026-03-09"),
    ],
)
def test_what_another_result_says_or_adds_up_to_is_not_contradicted(
    text: str, name: str, arguments: Row, result: Any
) -> None:
    calls = [READ, NOTED]
    assert outcome(text, calls=calls) == "contradicted"
    assert outcome(text, calls=[*calls, call(name, arguments, result)]) == "open"


def test_what_a_change_left_counts_and_no_stale_or_other_result() -> None:
    read = call("get_order", ASKED, {"order_id": "LP-58213", "fee": 40})
    change = NOTE | {"before": {"fee": 40}, "after": {"fee": 30}}
    changed = call("set_fee", ASKED | {"fee": 30}, {"ok": True}, [change])
    stale = read | {"injected_outcome": "stale"}
    assert outcome("LP-58213: fee 40", calls=[read, changed, stale]) == "open"
    assert outcome("LP-58213: fee 30", calls=[read, changed, stale]) == "matched"
    preview = call("preview_change", ASKED, {"order_id": "LP-58213", "fee": 10})
    assert outcome("LP-58213: fee 10", calls=[read, preview]) == "open"
    two = call("list", {}, [{"customer": "CU-100", "order": "LP-58214", "total": 80}])
    assert outcome("CU-100: total 80", calls=[two]) == "open"
    assert outcome("CU-100: total 410", calls=[two]) == "open"


def test_an_unknown_id_is_open_with_the_evidence_beside_it() -> None:
    hint = "LP-77777: no such id stands anywhere in the conversation."
    _, statement = said("I am glad to help you.\nYour new order is LP-77777.", calls=[READ])
    assert (statement.outcome, statement.beside[0]) == ("open", hint)
    costs = [call("list", {}, [{"name": "Basic", "price": "EUR120"}])]
    for text in ("You save EUR140 with Basic.", "Order numbers have the form LP-12345."):
        _, statement = said(f"I am glad to help you.\n{text}", calls=[READ, *costs])
        assert not any("no such id" in excerpt for excerpt in statement.beside)


def test_words_beside_a_call_are_heard_and_make_nothing_known() -> None:
    words = "This is your new order: LP-77777."
    messages: list[Row] = [
        {"role": "user", "content": OPENING},
        {"role": "assistant", "content": words, "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": "This is your order: LP-77777."},
    ]
    first, then = statements_of(messages, [READ])
    assert (first.message, first.text, first.outcome) == (1, words, "open")
    assert then.beside[0].startswith("LP-77777: no such id")
