"""A plan beside the calls: each call stands for one step, and what is left over is extra."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from records.tables.schemas import Row
from synth.publish.plans_shown import plan_beside

STEPS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=6)
CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.booleans()), max_size=6)


def step(tool: str, value: int, actor: str = "agent") -> Row:
    return {"tool": tool, "arguments": {"n": value}, "actor": actor}


def made(index: int, tool: str, value: int, is_error: bool = False, **more: Any) -> Row:
    row = {"call_index": index, "name": tool, "arguments": json.dumps({"n": value})}
    row |= {"is_error": is_error, "error_code": "no" if is_error else None, "actor": "agent"}
    return row | {"state_diff": [], "executed_by": "mcp"} | more


@given(steps=STEPS, calls=CALLS)
def test_every_call_stands_for_one_step_or_is_extra(
    steps: list[tuple[str, int]], calls: list[tuple[str, int, bool]]
) -> None:
    rows = [made(i, *call) for i, call in enumerate(calls)]
    shown = plan_beside([step(*one) for one in steps], rows, [])
    assert len(shown.steps) == len(steps)
    assert sum(one.made is not None for one in shown.steps) + len(shown.extra) == len(rows)
    for one in shown.steps:
        assert (one.made is None) == (one.fate == "missing")
    well = [call[:2] for call in calls if not call[2]]
    as_planned = [one for one in shown.steps if one.fate == "made"]
    assert len(as_planned) == sum(min(steps.count(one), well.count(one)) for one in {*steps, *well})


def test_what_is_missing_refused_and_otherwise_is_told() -> None:
    plan = [step("look", 1), step("rent", 1), step("pay", 1), step("sign", 1, "user")]
    calls = [
        made(0, "look", 1),
        made(1, "rent", 2),
        made(2, "pay", 1, is_error=True),
        made(3, "sign", 1),
        made(4, "write_note", 1, executed_by="notes"),
    ]
    shown = plan_beside(plan, calls, [])
    fates = [one.fate for one in shown.steps]
    assert fates == ["made", "made with other arguments", "made and refused", "missing"]
    assert [one.words.partition(",")[0] for one in shown.extra] == ["sign"]
    assert shown.words == (
        "Of the 4 calls of the reference plan: 1 as planned, 1 with other arguments (rent), "
        "1 refused (pay), 1 missing (sign); besides, 1 call that the plan does not have."
    )


@given(steps=STEPS, calls=CALLS)
def test_the_sentence_on_the_plan_reads_as_a_sum(
    steps: list[tuple[str, int]], calls: list[tuple[str, int, bool]]
) -> None:
    rows = [made(i, *call) for i, call in enumerate(calls)]
    shown = plan_beside([step(*one) for one in steps], rows, [])
    parts, _, besides = shown.words.partition(": ")[2].partition("; besides, ")
    counts = [int(n) for n in re.findall(r"(?:^|, )(\d+) (?=as|with|refused|missing)", parts)]
    assert sum(counts) == len(steps)
    if steps:
        assert int(besides.split()[0] if besides else 0) == len(shown.extra)


def test_a_plan_without_a_call_says_so() -> None:
    assert plan_beside([], [], []).words == "The reference plan makes no call; 0 calls were made."
