"""Values told to the user that nothing shows: found when changed, silent when retold."""

import json
from typing import Any

import pytest

from synth.rubrics.statements.unshown import unshown_values

ORDER = {
    "order_id": "O-1008",
    "total": 1106.5,
    "paid": 528.5,
    "due_date": "2026-05-16",
    "city": "Bath",
    "status": "in_transit",
    "worker": "Bruno Salvi",
    "gift_note": "Salt, pepper and thyme",
}


def told(reply: str, *, user: str = "What is the total of order O-1008?") -> list[str]:
    call = {
        "name": "show_order",
        "arguments": {"order_id": "O-1008"},
        "observation": json.dumps(ORDER),
        "is_error": False,
        "state_diff": [],
        "actor": "agent",
        "turn": 1,
        "policy_violations": [],
    }
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Today is 2026-05-12. Refunds are paid within 30 days."},
        {"role": "user", "content": user},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "show_order"}}]},
        {"role": "tool", "content": json.dumps(ORDER)},
        {"role": "assistant", "content": reply},
    ]
    return unshown_values(messages, [call])


@pytest.mark.parametrize(
    "reply",
    [
        "The total is 1106.5 and the paid is 528.5.",
        "Order O-1008 comes to 1,106.50 in all; you have paid 528.5.",
        "It is due on May 16, 2026, in Bath.",
        "The due date is 16 May 2026.",
        "Refunds are paid within 30 days, as of 2026-05-12.",
        "I found 3 things. Is there anything else I can do for you?",
        "The status is in transit, the worker is Bruno Salvi and the city is Bath.",
        "There is one entry: order ID O-1008, status in transit, worker Bruno Salvi, paid 528.5.",
        "The gift note is Salt, pepper and thyme and the worker is now Bruno Salvi.",
        "May I ask which order you mean, for example its city, status or worker?",
        "Orders can be sent from what the city is still owed, and the status is not known.",
    ],
)
def test_what_is_retold_is_shown(reply: str) -> None:
    assert told(reply) == []


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("The total is 528.5.", "528.5"),  # the value of another field
        ("The total is 1107.5.", "1107.5"),
        ("Order O-1009 is on its way.", "O-1009"),
        ("The due date is 17 May 2026.", "17 May 2026"),
        ("You have paid 77.", "77"),
        ("The city is Leeds.", "leeds"),
        ("The status is absent and the city is Bath.", "absent and the city is bath"),
        ("It is here: order ID O-1008, status in transit, worker Bruna Silva.", "bruna silva"),
        ("It is here: order ID O-1008, worker Bruno Salvi Meadow.", "bruno salvi meadow"),
        ("The worker is Bath.", "bath"),  # the value of another field
    ],
)
def test_what_nothing_shows_is_found(reply: str, word: str) -> None:
    assert told(reply) == [word]


@pytest.mark.parametrize(
    "reply",
    [
        "It goes to Leeds, Bruna Silva said.",
        "The total of order O-1008 is 528.5.",
        "It comes to 528.5.",
    ],
)
def test_a_false_word_and_a_value_behind_no_field_pass(reply: str) -> None:
    """Known limits, which the proof's page names."""
    assert told(reply) == []


def test_what_the_user_said_may_be_said_again() -> None:
    assert told("You offered 350.", user="I offer 350 for order O-1008.") == []


def told_of_list(reply: str, *, held: int) -> list[str]:
    of_each = {"total": 50, "due_date": "2026-05-16"}
    result = {"orders": [{"order_id": f"O-{1000 + n}"} | of_each for n in range(held)]}
    call = {
        "name": "list_orders",
        "arguments": {},
        "observation": json.dumps(result),
        "is_error": False,
        "state_diff": [],
    }
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Today is 2026-05-12. Bills are paid within 45 days."},
        {"role": "user", "content": "Which orders are there?"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "list_orders"}}]},
        {"role": "tool", "content": json.dumps(result)},
        {"role": "assistant", "content": reply},
    ]
    return unshown_values(messages, [call])


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("There are 31 orders: O-1000, O-1001 and 29 more.", []),
        ("There are 30 orders.", ["30"]),
        ("There are 31 orders, and 35 more.", ["35"]),
        ("45 days after today is 2026-06-26.", []),
        ("45 days after today is 2026-06-27.", ["2026-06-27"]),
        ("Today is 2026-06-26.", ["2026-06-26"]),
        ("The total is 31.", ["31"]),  # the field says otherwise
        ("45 days after today: the due date is 2026-06-26.", ["2026-06-26"]),
    ],
)
def test_what_is_counted_and_reckoned_from_today_is_shown(reply: str, words: list[str]) -> None:
    assert told_of_list(reply, held=31) == words
