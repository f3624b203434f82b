"""Proofs that no plan reaches a user goal: what its changes need, no call of the tools can give.

Delete-relaxed, row by row: a field may take every value that it has, or that some applicable write
could ever store in it; nothing is ever taken away. So more is reachable here than really is, and a
"no" is a proof, whatever the length of the plan. A "yes" says nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from synth.rubrics.built_in import net_changes, same_value
from synth.tasks.goals.domain_tools import DomainTool, jobs_of
from synth.tasks.goals.effects import ANY, ANYTHING, ValueSource, Write
from tool_specs.domains.domain import CheckedRule, Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.programs import Entities, args_type
from tool_specs.execution.statements import MAX_STEPS
from tool_specs.language.evaluation import ARGS, Scope, compile_condition
from tool_specs.language.expressions import parse
from tool_specs.language.paths import expanded
from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Call,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
)
from tool_specs.language.values import EvaluationError

RequiredChange = Mapping[str, Any]
FieldSources = dict[str, list[ValueSource]]
"""Field of a row -> what it can come to hold."""


class Obstacle(NamedTuple):
    """A change that no plan makes, and why."""

    change: str
    """"update order OR-1001 status"."""
    why: str
    """`no_effect`: no tool at hand stores that; `violation`: every call that does breaks a rule;
    `other_world`: no tool at hand reaches the state at all."""


class Reach:
    """What the tools can make of a state, however often they are called, and what becomes of it by
    itself meanwhile."""

    def __init__(
        self,
        domain: Domain,
        tools: Iterable[DomainTool],
        before: DomainEnvironment,
        now: DomainEnvironment | None = None,
        done: Sequence[RequiredChange] = (),
    ) -> None:
        """`now` is a state that is known to come about after `before`, by the changes `done`."""
        self._domain = domain
        self._tools = list(tools)
        self._jobs = jobs_of(domain)
        self._environments = [before] if now is None else [before, now]
        self._done = list(done)

    def obstacle(self, changes: Sequence[RequiredChange]) -> Obstacle | None:
        """A change that no plan makes, among those of a user goal; None where there may be a
        plan."""
        makers = [*self._tools, *self._jobs]
        writes = [(tool, write) for tool in makers for write in tool.writes]
        for change in changes:
            for what, found in self._makers(change, writes):
                if not found:
                    return Obstacle(what, "no_effect")
        return None

    def violation(self, changes: Sequence[RequiredChange]) -> Obstacle | None:
        """A change that no plan without a violation makes that in the end has brought about exactly
        `changes` besides what was `done`."""
        tools = _without_traces(self._tools, self._jobs, net_changes([*self._done, *changes]))
        writes = [(tool, write) for tool in (*tools, *self._jobs) for write in tool.writes]
        laws = _Laws(self._domain, self._environments[0], [write for _, write in writes])
        for change in changes:
            for what, found in self._makers(change, writes):
                forced = (
                    (tool, self._forced(change, field, write, writes))
                    for tool, write, field in found
                )
                if all(laws.forbid(tool, arguments) for tool, arguments in forced):
                    return Obstacle(what, "breach")
        return None

    def _makers(
        self, change: RequiredChange, writes: Sequence[tuple[DomainTool, Write]]
    ) -> Iterable[tuple[str, list[tuple[DomainTool, Write, str]]]]:
        """(what must be done, the writes that can do it), for each field of an update."""
        op, entity = change["op"], change["entity"]
        own = [(t, w) for t, w in writes if w.entity in (entity, ANY)]
        words = f"{op} {entity}" + ("" if op == "create" else f" {change['id']}")
        if op == "create":
            fitting = [
                (t, w, "") for t, w in own if w.op == "create" and self._makes(change, w, own)
            ]
            yield words, fitting
            return
        first = self._environments[0].get(entity, change["id"])
        if op == "delete" and first is None:
            return  # who never made the row need not delete it
        held = first or {}
        fields = self._fields(change, own)
        own = [(t, w) for t, w in own if w.op == op and _applies(w, fields)]
        if op == "delete":
            yield words, [(t, w, "") for t, w in own]
            return
        for field, value in change["after"].items():
            if field in held and same_value(held[field], value):
                continue  # it was so at first, and may have been left alone
            found = [(t, w, field) for t, w in own if field in w.sets]
            found = [(t, w, f) for t, w, f in found if w.sets[f].admits(value)]
            yield f"{words} {field}", found

    def _makes(
        self, change: RequiredChange, write: Write, own: Sequence[tuple[DomainTool, Write]]
    ) -> bool:
        """Whether each field of the new row can be as wanted, from the start or set later."""
        for field, value in (change["after"] or {}).items():
            if value == change["id"]:
                continue  # the environment gives the id
            first = write.sets.get(field, ValueSource((None,)))
            if not first.admits(value) and not _settable(field, value, own):
                return False
        return True

    def _fields(
        self, change: RequiredChange, own: Sequence[tuple[DomainTool, Write]]
    ) -> FieldSources:
        """The values that each field of the row can come to hold."""
        rows = [
            environment.get(change["entity"], change["id"]) for environment in self._environments
        ]
        fields: FieldSources = {}
        for row in rows:
            for field, value in (row or {}).items():
                fields.setdefault(field, []).append(ValueSource((value,)))
        if rows[0] is None:  # made on the way, by whatever makes such rows
            for field in self._domain.entities[change["entity"]].fields:
                fields.setdefault(field, []).append(ANYTHING)
        left = [write for _, write in own if write.op == "update"]
        while ready := [write for write in left if _applies(write, fields)]:
            left = [write for write in left if write not in ready]
            for write in ready:
                for field, source in write.sets.items():
                    fields.setdefault(field, []).append(source)
        return fields

    def _forced(
        self,
        change: RequiredChange,
        field: str,
        write: Write,
        writes: Sequence[tuple[DomainTool, Write]],
    ) -> dict[str, Any]:
        """Arguments that a call must have for this write to make the change at last."""
        forced: dict[str, Any] = {}
        known = self._environments[0].get(change["entity"], change["id"])
        if change["op"] != "create":
            if write.key is not None and known is not None:
                forced[write.key] = change["id"]
            fields = [field] if field else []
        else:
            fields = [
                name
                for name in write.sets
                if not any(w.op == "update" and name in w.sets for _, w in writes)
            ]
        made = {c["id"] for c in (*self._done, change) if c["op"] == "create"}
        for name in fields:
            value = (change["after"] or {}).get(name)
            if (param := write.sets[name].param) is not None and not _names_any(value, made):
                forced[param] = value
        return forced


def _names_any(value: Any, ids: Collection[str]) -> bool:
    """Whether one of these ids stands in a value, which may be a list or a record."""
    if isinstance(value, list | dict):
        members = value.values() if isinstance(value, dict) else value
        return any(_names_any(member, ids) for member in members)
    return value in ids


def _applies(write: Write, fields: FieldSources) -> bool:
    return all(
        any(guard.may_hold(source) for source in fields.get(guard.field, [ANYTHING]))
        for guard in write.guards
    )


def _settable(field: str, value: Any, own: Sequence[tuple[DomainTool, Write]]) -> bool:
    return any(w.op == "update" and field in w.sets and w.sets[field].admits(value) for _, w in own)


def _without_traces(
    tools: Sequence[DomainTool], jobs: Sequence[DomainTool], changes: Sequence[RequiredChange]
) -> list[DomainTool]:
    """The tools but those whose every call leaves a row that nothing takes away and that is not
    among the changes."""
    deleted = {w.entity for tool in (*tools, *jobs) for w in tool.writes if w.op == "delete"}
    made = {change["entity"] for change in changes if change["op"] == "create"}
    if ANY in deleted:
        return list(tools)
    return [
        tool
        for tool in tools
        if not any(
            w.op == "create" and w.always and w.entity not in deleted | made for w in tool.writes
        )
    ]


class _Laws:
    """The rules of a domain in a state of which the writes can change some fields."""

    def __init__(
        self, domain: Domain, environment: DomainEnvironment, writes: Sequence[Write]
    ) -> None:
        self._domain, self._environment = domain, environment
        self._changing = {(w.entity, field) for w in writes for field in w.sets if w.op == "update"}
        self._going = {w.entity for w in writes if w.op == "delete"}
        self._unclear = any(w.entity == ANY for w in writes)

    def forbid(self, tool: DomainTool, arguments: Mapping[str, Any]) -> bool:
        """Whether every call with these arguments, whatever the others are, breaks a rule."""
        types = {"args": args_type(tool.spec)}
        entities = _entities(self._domain).types
        return any(
            self._holds(
                expanded(parse(rule.spec.forbids), types.get, entities).node, rule, tool, arguments
            )
            for rule in self._domain.rules.get(tool.name, ())
            if rule.spec.id in tool.rules
        )

    def _holds(
        self, node: Node, rule: CheckedRule, tool: DomainTool, arguments: Mapping[str, Any]
    ) -> bool | None:
        """True or False where it is so whatever happens, else None."""
        match node:
            case Binary(operator="and" | "or" as word, left=left, right=right):
                parts = [self._holds(side, rule, tool, arguments) for side in (left, right)]
                settles = word == "or"
                if settles in parts:
                    return settles
                return None if None in parts else not settles
            case Unary(operator="not", operand=operand):
                held = self._holds(operand, rule, tool, arguments)
                return None if held is None else not held
        if not self._is_settled(node, arguments):
            return None
        given = dict.fromkeys(tool.spec.params) | dict(arguments)
        try:
            condition = _condition(self._domain, rule.spec.id, node)
            return bool(condition([given, self._environment.state, MAX_STEPS]))
        except EvaluationError:
            return None

    def _is_settled(self, node: Node, arguments: Mapping[str, Any]) -> bool:
        """Whether all that the expression reads is given, or a field that nothing changes."""
        match node:
            case Literal():
                return True
            case Access(base=Name(name="args"), field=name):
                return name in arguments
            case Access(base=Call(function="lookup", arguments=(Literal(value=str(e)), key))):
                stays = (e, node.field) not in self._changing and e not in self._going
                return stays and not self._unclear and self._is_settled(key, arguments)
            case Access(base=base):
                return isinstance(base, Access) and self._is_settled(base, arguments)
            case Call(function="now"):
                return not self._domain.has_time
            case Call(function=function, arguments=parts):
                return function != "lookup" and all(self._is_settled(p, arguments) for p in parts)
            case Binary(left=left, right=right):
                return all(self._is_settled(side, arguments) for side in (left, right))
            case ListOf(items=items):
                return all(self._is_settled(item, arguments) for item in items)
            case Unary(operand=operand):
                return self._is_settled(operand, arguments)
        return False


@lru_cache(maxsize=1024)
def _condition(domain: Domain, rule_id: str, node: Node) -> Any:
    """A part of a rule's condition, compiled."""
    rule = next(rule for rule in domain.policy if rule.id == rule_id)
    spec = next(tool for tool in domain.tools if tool.name == rule.tool)
    types = _entities(domain).types
    return compile_condition(node, Scope({"args": (ARGS, args_type(spec))}, types))


@lru_cache(maxsize=256)
def _entities(domain: Domain) -> Entities:
    return Entities.of(domain.file)
