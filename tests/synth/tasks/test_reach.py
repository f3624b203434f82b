"""Proofs that no plan reaches a user goal, against all plans of small worlds: they never say "no
plan" where there is one, and they do say it often enough to be of use."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.rubrics.built_in import net_changes, same_value
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.proof.reach import Reach
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations

LONGEST = 3
"""Calls of the plans that are tried, all of them."""

STATES = ("open", "held", "shut")
CONDITIONS = (
    "box.state == 'open'",
    "box.state != 'shut'",
    "not box.sealed",
    "box.state in ['held']",
    "when box.state == 'open'",
    "when args.box.sealed",
)
"""Of a `require`, or behind `when` of a `when` that the effect stands in."""

FORBIDS = (
    "lookup('box', args.box_id).state == 'held'",
    "lookup('box', args.box_id).sealed",
    "lookup('box', args.box_id).sealed or lookup('box', args.box_id).state == 'open'",
    "not lookup('box', args.box_id).sealed and lookup('box', args.box_id).weight > 1",
    "lookup('box', args.box_id).label == 'red'",
    "lookup('box', args.box_id).weight > 1 and lookup('box', args.box_id).label != 'red'",
    "args.box.state == 'held'",
    "args.box.sealed or args.box_id.weight > 1 and args.box.label != 'red'",
    "true",
)


def tool(number: int, guard: str | None, effect: tuple[str, ...]) -> dict[str, Any]:
    """One of a handful of forms of tools on boxes and the notes about them."""
    params: dict[str, Any] = {
        "box_id": {"type": "string", "ref": "box", "description": "Id of the box, such as BX-1."}
    }
    semantics: list[dict[str, Any]] = [
        {"op": "read", "entity": "box", "key": "args.box_id", "as": "box"}
    ]
    if guard and not guard.startswith("when "):
        semantics.append({"op": "require", "that": guard, "error": "no", "message": "No."})
    match effect:
        case ("state", value):
            semantics.append({"op": "update", "target": "box", "set": {"state": f"'{value}'"}})
        case ("any_state",):
            params["state"] = {"type": "enum", "values": list(STATES[:2]), "description": "State."}
            semantics.append({"op": "update", "target": "box", "set": {"state": "args.state"}})
        case ("named_state",):
            params["state"] = {"type": "enum", "values": list(STATES[:2]), "description": "State."}
            semantics.append({"op": "let", "as": "named", "be": "args.state"})
            semantics.append({"op": "let", "as": "same", "be": "args.box"})
            semantics.append({"op": "update", "target": "same", "set": {"state": "named"}})
        case ("seal", value):
            semantics.append({"op": "update", "target": "box", "set": {"sealed": value}})
        case ("weigh",):
            semantics.append({"op": "update", "target": "box", "set": {"weight": "box.weight + 1"}})
        case ("note",):
            made = {"box_id": "args.box_id", "text": "'seen'"}
            semantics.append({"op": "create", "entity": "note", "set": made})
        case ("tag",):
            params["tags"] = {
                "type": "array",
                "items": {"type": "string"},
                "description": "Its tags.",
            }
            semantics.append({"op": "update", "target": "box", "set": {"tags": "args.tags"}})
        case ("delete",):
            semantics.append({"op": "delete", "target": "box"})
    if guard and guard.startswith("when "):
        body = [statement | {"in": "fits"} for statement in semantics[1:]]
        head = {"op": "when", "that": guard.removeprefix("when "), "as": "fits"}
        semantics[1:] = [head, *body]
    semantics.append({"op": "return", "value": {"box_id": "args.box_id"}})
    return {
        "name": f"tool_{number}",
        "description": "Do what the tool does to a box. Returns box_id.",
        "params": params,
        "semantics": semantics,
    }


EFFECTS = st.one_of(
    st.tuples(st.just("state"), st.sampled_from(STATES)),
    st.just(("any_state",)),
    st.just(("named_state",)),
    st.tuples(st.just("seal"), st.sampled_from(("true", "false"))),
    st.just(("weigh",)),
    st.just(("note",)),
    st.just(("tag",)),
    st.just(("delete",)),
)
TOOLS = st.lists(
    st.tuples(st.none() | st.sampled_from(CONDITIONS), EFFECTS), min_size=2, max_size=5
)


def domain_of(forms: list[tuple[str | None, tuple[str, ...]]], forbids: str) -> Domain:
    field = {"type": "string"}
    return Domain.of(
        {
            "domain": "boxes",
            "title": "Boxes",
            "category": "smart_home",
            "description": "Boxes with a state, and notes about them.",
            "now": "2026-03-02T09:00:00",
            "entities": {
                "box": {
                    "key": "box_id",
                    "natural": ["label"],
                    "fields": {
                        "box_id": field,
                        "label": field,
                        "state": {"type": "enum", "values": list(STATES)},
                        "sealed": {"type": "boolean"},
                        "weight": {"type": "integer"},
                        "tags": {"type": "list", "of": "string"},
                    },
                },
                "note": {
                    "key": "note_id",
                    "prefix": "NO-",
                    "fields": {
                        "note_id": field,
                        "box_id": {"type": "ref", "to": "box"},
                        "text": field,
                    },
                },
            },
            "seed": {
                "box": [
                    {
                        "box_id": "BX-1",
                        "label": "red",
                        "state": "open",
                        "sealed": False,
                        "weight": 1,
                        "tags": [],
                    },
                    {
                        "box_id": "BX-2",
                        "label": "blue",
                        "state": "shut",
                        "sealed": True,
                        "weight": 2,
                        "tags": ["old"],
                    },
                ],
                "note": [],
            },
            "policy": [
                {
                    "id": "rule",
                    "text": "Do not use the first tool then.",
                    "tool": "tool_0",
                    "forbids": forbids,
                }
            ],
            "tools": [tool(i, guard, effect) for i, (guard, effect) in enumerate(forms)],
        },
        origin="boxes",
    )


def every_call(domain: Domain, names: list[str]) -> list[tuple[str, dict[str, Any]]]:
    calls = []
    for name in names:
        params = domain.programs[name].spec.params
        states = STATES if "state" in params else (None,)
        for key, state in itertools.product(("BX-1", "BX-2"), states):
            more = {"state": state} if state else {"tags": ["new"]} if "tags" in params else {}
            calls.append((name, {"box_id": key} | more))
    return calls


def every_end(
    domain: Domain, names: list[str], *, lawful: bool
) -> dict[str, tuple[DomainEnvironment, list[dict[str, Any]]]]:
    """State hash -> (world, net changes) of every state that plans up to LONGEST lead to."""
    start = DomainEnvironment.of(domain)
    ends: dict[str, tuple[DomainEnvironment, list[dict[str, Any]]]] = {
        start.state_hash: (start, [])
    }
    latest = dict(ends)
    for _ in range(LONGEST):
        fresh: dict[str, tuple[DomainEnvironment, list[dict[str, Any]]]] = {}
        for environment, diffs in latest.values():
            for name, arguments in every_call(domain, names):
                if lawful and policy_violations(environment, name, arguments):
                    continue
                after = environment.snapshot()
                result = after.call(name, arguments)
                if not result.is_error and after.state_hash not in ends:
                    ends[after.state_hash] = fresh[after.state_hash] = (
                        after,
                        [*diffs, *result.diff],
                    )
        latest = fresh
    return {key: (environment, net_changes(diffs)) for key, (environment, diffs) in ends.items()}


def wishes(domain: Domain, name: str) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """(arguments, changes) of the calls of a tool that would do something."""
    found = []
    for _, arguments in every_call(domain, [name]):
        result = DomainEnvironment.of(domain).call(name, arguments)
        if result.diff:
            found.append((arguments, result.diff))
    return found


def holds(environment: DomainEnvironment, changes: list[dict[str, Any]]) -> bool:
    """Whether the state has what the changes would bring, however it came to it."""
    for change in changes:
        row = environment.get(change["entity"], change["id"])
        if change["op"] == "delete":
            if row is not None:
                return False
        elif row is None or not all(same_value(v, row[f]) for f, v in change["after"].items()):
            return False
    return True


SEEN = {"no_effect": 0, "breach": 0, "reached": 0}


@pytest.mark.slow
@settings(max_examples=250, deadline=None, derandomize=True)
@given(TOOLS, st.sampled_from(FORBIDS))
def test_no_plan_makes_what_is_said_to_be_out_of_reach(
    forms: list[tuple[str | None, tuple[str, ...]]], forbids: str
) -> None:
    domain = domain_of(forms, forbids)
    others = [name for name in domain.programs if name != "tool_0"]
    tools = tools_of(domain)
    reach = Reach(domain, [tools[name] for name in others], DomainEnvironment.of(domain))
    ends = every_end(domain, others, lawful=False)
    for _, changes in wishes(domain, "tool_0"):
        reached = any(holds(environment, changes) for environment, _ in ends.values())
        obstacle = reach.obstacle(changes)
        assert not (reached and obstacle), (obstacle, changes)
        SEEN["no_effect"] += obstacle is not None
        SEEN["reached"] += reached


@pytest.mark.slow
@settings(max_examples=250, deadline=None, derandomize=True)
@given(TOOLS, st.sampled_from(FORBIDS))
def test_no_lawful_plan_makes_what_is_said_to_take_a_breach(
    forms: list[tuple[str | None, tuple[str, ...]]], forbids: str
) -> None:
    domain = domain_of(forms, forbids)
    tools = tools_of(domain)
    reach = Reach(domain, tools.values(), DomainEnvironment.of(domain))
    ends = every_end(domain, list(domain.programs), lawful=True)
    for arguments, changes in wishes(domain, "tool_0"):
        if not policy_violations(DomainEnvironment.of(domain), "tool_0", arguments):
            continue
        net = net_changes(changes)
        reached = any(found == net for _, found in ends.values())
        obstacle = reach.violation(changes)
        assert not (reached and obstacle), (obstacle, changes)
        SEEN["breach"] += obstacle is not None
        SEEN["reached"] += reached


@pytest.mark.slow
def test_both_answers_are_met_with() -> None:
    """Else the two tests above would prove nothing."""
    assert min(SEEN.values()) >= 20, SEEN
