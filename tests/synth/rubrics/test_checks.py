"""Checks on hand-made episodes: what each kind looks at, and that order matters only where said.

Checks on episodes of real worlds are in test_planted_failures.py.
"""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.rubrics.built_in import BUILT_IN, EpisodeCall, PolicyViolation, episode_of, net_changes
from synth.rubrics.criteria import Rubric, decide

Row = dict[str, Any]


def change(op: str, entity: str, row_id: str, before: Row | None, after: Row | None) -> Row:
    return {"op": op, "entity": entity, "id": row_id, "before": before, "after": after}


def says(text: str | None, **more: Any) -> Row:
    return {"role": "assistant", "content": text, **more}


def rubric(kind: str, check: Row | None = None) -> Rubric:
    criterion = {"id": "c", "kind": kind, "words": "w", "weight": 1, "mandatory": True}
    return Rubric.model_validate({"criteria": [criterion | ({"check": check} if check else {})]})


def passes(kind: str, spec: Row | None, **episode: Any) -> bool:
    found = BUILT_IN.check(
        rubric(kind, spec).criteria[0],
        episode_of(
            episode.get("messages", [says("Done.")]),
            episode.get("calls", []),
            changes=episode.get("changes"),
            policy_violations=episode.get("breaches", []),
        ),
    )
    assert found is not None
    assert found.evidence.startswith("Expected")
    assert found.passed is (found.score == 1.0)
    return found.score == 1.0


ORDER = {"op": "create", "entity": "order", "match": {"customer_id": "CU-1001", "total": 12}}
LINE = {"op": "create", "entity": "line", "match": {"order_id": {"$new": 0}, "sku": "A"}}
PAID = {"op": "update", "entity": "invoice", "id": "IN-1", "match": {"status": "paid"}}


def made(
    order_id: str, line_id: str, *, line_order: str | None = None, total: Any = 12
) -> list[Row]:
    order = {"order_id": order_id, "customer_id": "CU-1001", "total": total}
    line = {"line_id": line_id, "order_id": line_order or order_id, "sku": "A"}
    return [
        change("create", "order", order_id, None, order),
        change("create", "line", line_id, None, line),
        change("update", "invoice", "IN-1", {"status": "open"}, {"status": "paid"}),
    ]


def test_generated_ids_do_not_matter_and_neither_does_order() -> None:
    spec = {"changes": [ORDER, LINE, PAID]}
    for changes in itertools.permutations(made("OR-1009", "LI-7", total=12.0)):
        assert passes("state", spec, changes=changes)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        made("OR-1", "LI-1")[:2],
        made("OR-1", "LI-1", line_order="OR-0"),
        made("OR-1", "LI-1", total=13),
        [*made("OR-1", "LI-1"), change("delete", "order", "OR-5", {"order_id": "OR-5"}, None)],
        [*made("OR-1", "LI-1")[:2], change("update", "invoice", "IN-2", {}, {"status": "paid"})],
        [*made("OR-1", "LI-1")[:2], change("update", "invoice", "IN-1", {}, {"status": "void"})],
        [
            *made("OR-1", "LI-1")[:2],
            change("update", "invoice", "IN-1", {}, {"status": "paid", "total": 0}),
        ],
    ],
)
def test_missing_wrong_and_collateral_changes_fail(changes: list[Row]) -> None:
    assert not passes("state", {"changes": [ORDER, LINE, PAID]}, changes=changes)


def test_two_like_rows_need_two_rows() -> None:
    spec = {"changes": [ORDER, ORDER, {**LINE, "match": {"order_id": {"$new": 1}, "sku": "A"}}]}
    first, line, _ = made("OR-1", "LI-1")
    second = made("OR-2", "LI-2")[0]
    assert passes("state", spec, changes=[first, second, line])
    assert not passes("state", spec, changes=[first, line])


def test_incidental_fields_are_free_and_only_they() -> None:
    spec = {
        "changes": [PAID],
        "incidental": [{"entity": "invoice", "fields": ["note"]}, {"entity": "log", "fields": []}],
    }
    paid = change("update", "invoice", "IN-1", {"status": "open"}, {"status": "paid", "note": "x"})
    note = change("update", "invoice", "IN-2", {"note": None}, {"note": "y"})
    log = change("create", "log", "LO-1", None, {"log_id": "LO-1"})
    assert passes("state", spec, changes=[paid, note, log])
    other = change("update", "invoice", "IN-2", {"total": 1}, {"total": 2, "note": "y"})
    assert not passes("state", spec, changes=[paid, other])


def test_lists_are_bags_unless_reordering_is_the_change() -> None:
    def spec(after: list[str]) -> Row:
        match = {"tracks": after}
        return {"changes": [{"op": "update", "entity": "mix", "id": "MX-1", "match": match}]}

    def seen(before: list[str], after: list[str]) -> list[Row]:
        return [change("update", "mix", "MX-1", {"tracks": before}, {"tracks": after})]

    assert passes("state", spec(["a", "b", "c"]), changes=seen(["a"], ["a", "c", "b"]))
    assert passes("state", spec(["b", "a"]), changes=seen(["a", "b"], ["b", "a"]))
    assert not passes(
        "state", spec(["b", "c", "a"]), changes=seen(["a", "b", "c"], ["c", "b", "a"])
    )


ROW_STATES = st.lists(st.none() | st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.just(0)}))


@given(st.lists(st.tuples(st.sampled_from("xy"), ROW_STATES), max_size=2), st.data())
def test_net_changes_is_the_difference_of_the_ends(rows: list, data: st.DataObject) -> None:
    """Oracle: walk each row through random states, and compare first with last."""
    walks = {row_id: [data.draw(ROW_STATES.filter(bool)), states] for row_id, states in rows}
    diffs, ends = [], {}
    for row_id, (start, states) in walks.items():
        before = start[0]
        ends[row_id] = (before, before)
        for after in states:
            if before == after:
                continue
            if before is None or after is None:
                op = "create" if before is None else "delete"
                diffs.append(change(op, "e", row_id, before, after))
            else:
                fields = [f for f in after if after[f] != before[f]]
                old, new = ({f: row[f] for f in fields} for row in (before, after))
                diffs.append(change("update", "e", row_id, old, new))
            before = after
            ends[row_id] = (start[0], after)
    net = {c["id"]: c for c in net_changes(diffs)}
    for row_id, (first, last) in ends.items():
        if first == last:
            assert row_id not in net
        elif first is None or last is None:
            assert (net[row_id]["before"], net[row_id]["after"]) == (first, last)
        else:
            fields = [f for f in last if last[f] != first[f]]
            assert net[row_id]["after"] == {f: last[f] for f in fields}
            assert net[row_id]["before"] == {f: first[f] for f in fields}


def test_a_create_undone_is_no_change() -> None:
    row = {"order_id": "OR-1", "total": 1}
    diffs = [
        change("create", "order", "OR-1", None, row),
        change("delete", "order", "OR-1", row, None),
    ]
    calls = [EpisodeCall(tool="t", arguments={}, diff=(diff,)) for diff in diffs]
    assert passes("state", {"changes": []}, calls=calls)


def call(tool: str, *, is_error: bool = False, **arguments: Any) -> EpisodeCall:
    return EpisodeCall(tool=tool, arguments=arguments, is_error=is_error)


def test_calls_by_arguments_success_and_order() -> None:
    occur = {"tool": "pay", "must": "occur", "arguments": {"amount": 5}}
    assert passes("call", occur, calls=[call("pay", amount=5.0, note="x")])
    assert not passes("call", occur, calls=[call("pay", amount=6)])
    assert not passes("call", occur, calls=[call("pay", amount=5, is_error=True)])
    forbid = {"tool": "pay", "must": "not_occur"}
    assert passes("call", forbid, calls=[call("look")])
    assert not passes("call", forbid, calls=[call("pay", is_error=True)])
    first = {"tool": "look", "must": "occur", "before": "pay"}
    assert passes("call", first, calls=[call("look"), call("pay"), call("look")])
    assert passes("call", first, calls=[call("pay", is_error=True), call("look"), call("pay")])
    assert passes("call", first, calls=[call("look")])
    assert not passes("call", first, calls=[call("pay"), call("look")])


def test_malformed_arguments_are_no_match_and_no_crash() -> None:
    broken = EpisodeCall(tool="pay", arguments="{amount:", is_error=True)
    assert not passes("call", {"tool": "pay", "must": "occur"}, calls=[broken])


def test_only_words_to_the_user_tell_them() -> None:
    spec = {"values": ["AP-1009", 12.5]}
    asked = [{"role": "user", "content": "Is it AP-1009 for 12.50?"}]
    tool = [says("", tool_calls=[{"id": "1"}]), {"role": "tool", "content": "AP-1009, 12.50"}]
    assert not passes("communicate", spec, messages=[*asked, *tool, says("Done.")])
    beside = [says("I made AP-1009 for 12.50", tool_calls=[{"id": "1"}])]
    assert passes("communicate", spec, messages=[*asked, *beside, says("Done.")])
    assert passes("communicate", spec, messages=[*asked, says("It is ap-1009."), says("$12.50")])
    half = BUILT_IN.check(
        rubric("communicate", spec).criteria[0], episode_of([says("AP-1009")], [])
    )
    assert half is not None
    assert (half.passed, half.score) == (False, 0.5)
    assert "not told: 12.5" in half.evidence


def test_policy_counts_only_its_rules() -> None:
    spec = {"rules": ["no_refund"]}
    assert passes("policy", spec, breaches=[PolicyViolation(rule="other", call_index=0)])
    assert not passes("policy", spec, breaches=[PolicyViolation(rule="no_refund", call_index=3)])


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "hi"}],
        [says("")],
        [says(None)],
        [says("ok", tool_calls=[{"id": "1"}])],
        [says('{"status": "ok"}')],
        [says('```json\n[{"id": 1}]\n```')],
        [says('<tool_call>{"name": "x"}</tool_call>'), says("Done.")],
        [says("<|tool_calls_section_begin|> functions.pay:0")],
    ],
)
def test_format_faults(messages: list[Row]) -> None:
    assert not passes("format", None, messages=messages)


@pytest.mark.parametrize("text", ["Done.", "{curly} words", "See [1], [2].", "a < b > c", "[]x"])
def test_format_lets_plain_words_pass(text: str) -> None:
    assert passes("format", None, messages=[{"role": "user", "content": "hi"}, says(text)])


def test_nl_is_left_to_the_judge() -> None:
    assert BUILT_IN.check_all(rubric("nl"), episode_of([says("x")], [])) == {}


def test_decision_needs_every_mandatory_and_enough_weight() -> None:
    criteria = [
        {"id": name, "kind": "nl", "words": "w", "weight": weight, "mandatory": mandatory}
        for name, weight, mandatory in [("a", 2, True), ("b", 1, False), ("c", 1, False)]
    ]
    both = Rubric.model_validate({"pass_threshold": 0.7, "criteria": criteria})
    assert decide(both, {"a": 1, "b": 1, "c": 0}) == (True, 0.75, ())
    assert decide(both, {"a": 1, "b": 0, "c": 0}) == (False, 0.5, ())
    assert decide(both, {"a": 0, "b": 1, "c": 1}) == (False, 0.5, ("a",))
    assert decide(both, {"a": 1}) == (True, 1.0, ())
    assert decide(both, {"b": 1}) == (False, 1.0, ("a",))
    with pytest.raises(ValueError, match="not in the rubric: d"):
        decide(both, {"d": 1})


def test_rubric_refuses_repeated_ids() -> None:
    one = {"id": "a", "kind": "format", "words": "w", "weight": 1, "mandatory": True}
    with pytest.raises(ValueError, match="repeated: a"):
        Rubric.model_validate({"criteria": [one, one]})
