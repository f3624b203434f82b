"""What the agent of a goal on a server can know without being told: numbers of formulas and values
that descriptions name."""

from typing import Any

import pytest

from sandboxes.mcp.servers import ServerGoal, holds
from synth.rubrics.built_in import EpisodeCall
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.servers.derivable import choices_of, composed_in
from synth.tasks.servers.drafting import goal_of
from synth.tasks.servers.proving import numbers_in
from synth.tasks.servers.trying import TriedGoal


def tried(tool: str, arguments: dict[str, Any]) -> TriedGoal:
    call = EpisodeCall(tool=tool, arguments=arguments, observation="done", is_error=False)
    goal = ServerGoal.model_validate({"id": "g", "wish": "w", "calls": [{"tool": tool}]})
    return TriedGoal(goal, (call,), [], {}, "none")


def composed(said: str, expression: str) -> tuple[str, ...]:
    tools = {"calculate": {"input_schema": {"type": "object", "properties": {}}, "description": ""}}
    proposed = {"goal": said, "said": []}
    return composed_in(proposed, tried("calculate", {"expression": expression}), tools)


@pytest.mark.parametrize(
    ("said", "expression"),
    [
        ("1250 euros and 19 percent tax in 12 parts", "(1250*1.19)/12"),
        ("a round table of 140 centimetres", "pi*(140/2)**2"),
        ("3000 euros for 7 years at 2.5 percent", "3000*1.025**7"),
        ("15 percent off 80 euros", "80*(1-0.15)"),
        ("15 percent off 80 euros", "80*0.85"),
        ("90 minutes in hours", "(90)/60"),
    ],
)
def test_powers_units_and_percentages_need_not_be_said(said: str, expression: str) -> None:
    assert composed(said, expression) == ("0.expression",)


def test_raised_and_circled_digits_are_no_numbers() -> None:
    assert composed("① what 10² and 3 are together", "(10^2)+3 # ②") == ("0.expression",)


def test_a_number_of_thousands_of_digits_is_not_read() -> None:
    assert numbers_in(f"{'9' * 5_000}, which has 5000 digits") == [5_000]


def test_another_number_has_to_be_said() -> None:
    with pytest.raises(UnprovedError, match="underivable_argument"):
        composed("what three loaves of rye cost", "3*4.40")


def test_values_that_a_schema_lists_defaults_to_or_names_can_be_chosen() -> None:
    schema = {
        "properties": {
            "kind": {"enum": ["new", "old"]},
            "order": {"type": "string", "default": "newest"},
            "branch": {"description": "'local', \"remote\" or `all` branches, don't say any's"},
        }
    }
    assert choices_of(schema) == {"new", "old", "newest", "local", "remote", "all"}


@pytest.mark.parametrize(
    ("answer", "value", "is_there"),
    [
        ("2026-03-02T18:00:00+09:00", "18:00", True),
        ("difference: +5.75h", "5.75", True),
        ("98 kg", "98", True),
        ("12kWh.", "12", True),
        ("1880", "18", False),
        ("18.5", "18", False),
        ("715b2f", "715", False),
        ("T-18", "8", False),
        ("cats", "cat", False),
    ],
)
def test_a_value_stands_in_an_answer_as_a_whole(answer: str, value: str, *, is_there: bool) -> None:
    assert holds(answer, value) is is_there


def test_the_user_knows_what_the_sentence_says_and_no_id_that_is_looked_up_beside_it() -> None:
    goal = ServerGoal.model_validate(
        {
            "id": "g",
            "wish": "hand the prospects of Priya Nair over to Sofia Brandt",
            "calls": [
                {"tool": "find", "arguments": {"item": {"owner": "Priya Nair"}}},
                {
                    "tool": "update",
                    "arguments": {"item": {"id": "pros-1", "owner": "Sofia Brandt"}},
                },
            ],
            "labels": {"0.item": "present owner", "1.item": "new owner"},
        }
    )
    tools = {name: {"input_schema": {}, "description": name} for name in ("find", "update")}
    known = {fact.value for fact in goal_of(goal, {}, tools).known}
    assert known == {"Priya Nair", "Sofia Brandt"}


SHOP = {
    "accessories": {"3": {"name": "String set", "supplier": "Falk", "place": "in stock"}},
    "invoices": {"R-120": {"kind": "order", "note": "where it was left"}},
}
"""Rows whose values hold words of SQL."""


def queried(said: str, query: str, *answers: str) -> tuple[str, ...]:
    calls = [
        EpisodeCall(tool="look", arguments={}, observation=answer, is_error=False)
        for answer in answers
    ]
    asked = EpisodeCall(tool="ask", arguments={"query": query}, observation="[]", is_error=False)
    goal = ServerGoal.model_validate({"id": "g", "wish": "w", "calls": [{"tool": "ask"}]})
    tools = {
        name: {"input_schema": {"properties": {}}, "description": ""} for name in ("look", "ask")
    }
    done = TriedGoal(goal, (*calls, asked), [], SHOP, "none")
    return composed_in({"goal": said, "said": []}, done, tools)


@pytest.mark.parametrize(
    ("said", "query"),
    [
        (
            "what is there of strings",
            "SELECT name FROM accessories WHERE in_stock < 1 ORDER BY name",
        ),
        ("what strings there are", "select name from accessories where name like '%strings%'"),
        (
            "mark R-120 as paid on 2026-02-16",
            "UPDATE invoices SET paid_on = '2026-02-16' WHERE invoice_no = 'R-120'",
        ),
        ("which invoices have the kind order", "SELECT a FROM invoices WHERE kind = 'order'"),
    ],
)
def test_the_grammar_of_a_query_is_no_secret_of_rows_that_hold_its_words(
    said: str, query: str
) -> None:
    assert queried(said, query) == ("0.query",)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM accessories WHERE supplier = 'Falk'",
        "SELECT * FROM invoices WHERE invoice_no = 'R-120'",
        "SELECT * FROM invoices WHERE kind = 'order'",
        "SELECT * FROM accessories WHERE supplier = falk",
        "SELECT * FROM invoices WHERE amount > 480",
        "SELECT * FROM invoices WHERE customer = 'Grant'",
    ],
)
def test_a_value_in_a_query_has_to_be_known(query: str) -> None:
    with pytest.raises(UnprovedError, match="underivable_argument"):
        queried("what there is", query)
    told = "Falk, Grant, R-120, an order over 480"
    assert queried("what there is", query, told) == ("1.query",)


def chosen(value: str, *, kept: str) -> tuple[str, ...]:
    """Of a tool whose texts name values, with a state that holds `kept` afterwards."""
    schema = {"properties": {"status": {"type": "string", "default": "pending"}}}
    tools = {"list": {"input_schema": schema, "description": 'One of "pending" or "all".'}}
    call = EpisodeCall(tool="list", arguments={"status": value}, observation="[]", is_error=False)
    goal = ServerGoal.model_validate({"id": "g", "wish": "w", "calls": [{"tool": "list"}]})
    row = {"op": "create", "entity": "task", "id": "7", "before": None, "after": {"state": kept}}
    done = TriedGoal(goal, (call,), [row], {}, "workspace")
    return composed_in({"goal": "what is to be done", "said": []}, done, tools)


def test_a_value_that_a_tool_names_is_a_choice_unless_another_choice_is_another_state() -> None:
    assert chosen("all", kept="a small thing for all")
    assert chosen("pending", kept="pending"), "the default"
    with pytest.raises(UnprovedError, match="underivable_argument"):
        chosen("all", kept="all")
    with pytest.raises(UnprovedError, match="underivable_argument"):
        chosen("every", kept="nothing")
