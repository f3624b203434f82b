"""One tool in the making: parameters, statements and wording, and its wire form."""

import re
from collections.abc import Mapping
from typing import Any

from offline_llm.tools.english import listed, sentence, spaced
from offline_llm.tools.logic import implies, others_guards, own_guards
from offline_llm.tools.members import Impossible, example_id, member_of
from offline_llm.tools.outline import Entity, Field, Outline
from tool_specs.language.expressions import parse
from tool_specs.language.syntax.nodes import Call, Node

REFUSES = "Refuses when: "
"""Begins the sentence of a description that says when the tool refuses."""
ToolWire = dict[str, Any]  # the wire form of a tool


class ToolDraft:
    """Statements are added in order; `loop` makes those that follow the body of a for_each."""

    def __init__(self, outline: Outline, name: str, text: str) -> None:
        self.outline, self.name, self.text = outline, name, sentence(text)
        self.params: dict[str, dict[str, Any]] = {}
        self.steps: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.refusals: list[str] = []
        self.value: dict[str, Any] = {}
        self.lists: set[str] = set()
        """Bindings that hold several rows."""
        self.inside: str | None = None
        self.was: dict[str, dict[str, list[str]]] = {}
        """Binding -> field -> the values it can have, as far as they were checked."""

    # parameters

    def param(self, name: str, type_: str, description: str, **more: Any) -> str:
        """Declares it and gives the expression that reads it."""
        member = {"name": name, "type": type_, "description": sentence(description)}
        self.params[name] = member | {k: v for k, v in more.items() if v is not None}
        return f"args.{name}"

    def id_of(self, entity: Entity, what: str = "", *, name: str = "", **more: Any) -> str:
        """Parameter for an id of the entity."""
        words = f"Id of the {what or entity.words}, such as {example_id(entity)}"
        return self.param(name or entity.key, "string", words, ref=entity.name, **more)

    def ids_of(self, entity: Entity, most: int, *, least: int = 1) -> str:
        """Parameter for the ids of several rows of the entity."""
        words = f"Ids of the {entity.says}, {least} to {most}"
        listed_ids = {"items": "ref", "ref": entity.name, "min": least, "max": most}
        return self.param(f"{entity.name}_ids", "array", words, **listed_ids)

    def of_field(self, field: Field, *, name: str = "", words: str = "", **more: Any) -> str:
        """Parameter that takes a value of the field."""
        member = member_of(self.outline, field, name=name, words=words)
        member |= {k: v for k, v in more.items() if v is not None}
        self.params[member["name"]] = member
        return f"args.{member['name']}"

    @property
    def given(self) -> frozenset[str]:
        """Arguments that are never null."""
        return frozenset(
            f"args.{n}" for n, p in self.params.items() if not p.get("optional") or "default" in p
        )

    # statements

    def step(self, op: str, **members: Any) -> None:
        inside = {"in": self.inside} if self.inside else {}
        self.steps.append({"op": op} | inside | {k: v for k, v in members.items() if v is not None})

    def row(self, entity: Entity, key: str = "", *, bind: str = "") -> str:
        """Reads one row; without a key by a parameter of its own."""
        bind = bind or entity.name
        self.step("read", entity=entity.name, key=key or self.id_of(entity), **{"as": bind})
        return bind

    def rows(self, entity: Entity, where: str | None, bind: str, **more: Any) -> str:
        self.lists.add(bind)
        self.step("read", entity=entity.name, where=where or None, **{"as": bind}, **more)
        return bind

    def require(self, that: str, error: str, message: str, clause: str = "") -> None:
        """`clause` says in the description when it fails; else the error's own words do."""
        self.step("require", that=that, error=error, message=message)
        self.refusals.append(clause or spaced(error))

    def in_status(self, entity: Entity, row: str, statuses: list[str]) -> None:
        """The row's status must be one of these; nothing when that is all of them."""
        status = entity.status
        assert status is not None
        if set(statuses) >= set(status.values):
            return
        self.was[row] = {status.name: statuses}
        if len(statuses) == 1:
            that, error = f"{row}.{status.name} == '{statuses[0]}'", f"not_{statuses[0]}"
        else:
            that = f"{row}.{status.name} in [{', '.join(repr(s) for s in statuses)}]"
            error = f"wrong_{status.name}"
        words = listed([spaced(s) for s in statuses], "or")
        self.require(
            that,
            error,
            f"{{{row}.{entity.key}}} is {{{row}.{status.name}}}, not {words}.",
            f"the {status.words} is not {words}",
        )

    def guard(
        self,
        entity: Entity,
        new: dict[str, str],
        row: str | None,
        after: Mapping[Node, Node] | None = None,
        like: str | None = None,
    ) -> None:
        """Requires what the rules of the domain ask of the row with these new values."""
        guards = own_guards(
            self.outline,
            entity,
            new,
            row=row,
            was=self.was.get(row or ""),
            given=self.given,
            after=after,
            like=like,
        )
        if guards is None:
            raise Impossible
        more = [] if row is None else others_guards(self.outline, entity, new, row=row)
        if self.inside and more:
            raise Impossible  # a read of rows for every turn; another pattern does it
        asked = [parse(s["that"]) for s in self.steps if s["op"] == "require"]
        for number, guard in enumerate([*guards, *more]):
            if not guard.entity and any(implies(a, parse(guard.that)) for a in asked):
                continue
            if self._as_bound(guard.that):
                continue
            clause = guard.message.rstrip(".")
            clause = f"it would break the rule that {clause[:1].lower()}{clause[1:]}"
            if not guard.entity:
                self.require(guard.that, guard.error, guard.message, clause)
                continue
            if any(s.get("as") == guard.entity for s in self.steps):
                raise Impossible  # the candidate row would hide a binding that the rule may need
            bind = f"broken_{guard.entity}" + ("_too" if number > len(guards) else "")
            self.rows(self.outline[guard.entity], guard.that, bind, limit="1")
            self.require(f"not exists({bind})", guard.error, guard.message, clause)

    def _as_bound(self, that: str) -> bool:
        """A rule about the length of a list that is given says it in the schema instead."""
        found = re.fullmatch(r"count\(args\.(\w+)\) (>=|>) (\d+)", that)
        if found is None or found[1] not in self.params:
            return False
        self.params[found[1]]["min"] = int(found[3]) + (found[2] == ">")
        return True

    def update(
        self,
        entity: Entity,
        row: str,
        new: dict[str, str],
        *,
        guarded: bool = True,
        bounds: bool = True,
        after: Mapping[Node, Node] | None = None,
    ) -> None:
        if guarded:
            self.guard(entity, new, row, after)
        if bounds:
            self.bounded(entity, row, new)
        self.step("update", target=row, set=pairs(new))

    def bounded(self, entity: Entity, row: str, new: dict[str, str]) -> None:
        """Sums and differences must stay within the bounds of their field."""
        for name, text in new.items():
            field = entity.fields[name]
            for bound, sign, word in (("min", ">=", "below"), ("max", "<=", "above")):
                limit = field.bounds.get(bound)
                if limit is None or not may_leave(text, bound):
                    continue
                self.require(
                    f"{text} {sign} {limit}",
                    f"{field.noun}_{'too_low' if bound == 'min' else 'too_high'}",
                    f"The {field.words} of {{{row}.{entity.key}}} would go {word} {limit}.",
                    f"the {field.words} would go {word} {limit}",
                )

    def create(
        self, entity: Entity, new: dict[str, str], bind: str, *, like: str | None = None
    ) -> str:
        self.guard(entity, new, None, like=like)
        self.step("create", entity=entity.name, set=pairs(new), **{"as": bind})
        return bind

    def loop(self, over: str, bind: str) -> str:
        self.step("for_each", over=over, **{"as": bind})
        self.inside = bind
        return bind

    def done(self) -> None:
        """Ends the body of a for_each; what it read is a list from here on."""
        own = (s for s in self.steps if s.get("in") == self.inside)
        self.lists |= {s["as"] for s in own if "as" in s}
        self.inside = None

    # the answer

    def answer(self, **values: Any) -> "ToolDraft":
        self.value |= values
        return self

    def told(self, text: str) -> "ToolDraft":
        """A further sentence of the description."""
        self.notes.append(sentence(text))
        return self

    def description(self) -> str:
        returned = [self.said(name, value) for name, value in _grouped(self.value).items()]
        parts = [self.text, *self.notes, f"Returns {listed(returned)}."]
        if self.refusals:
            parts.append(REFUSES + "; ".join(self.refusals) + ".")
        return " ".join(parts)

    def said(self, name: str, value: Any) -> str:
        """A member of the answer, in the description: its name, what it holds, its unit."""
        if isinstance(value, dict):
            return f"{name} (with {listed(list(value))})"
        if found := re.match(r"pick\((first\()?(\w+)\)?, '([^()]+)'\)$", value):
            fields = listed(found[3].split("', '"))
            many = found[2] in self.lists and not found[1]
            return (
                f"{name} ({'each ' if many else ''}with {fields}{', or null' if found[1] else ''})"
            )
        read = {f for f in re.findall(r"\w+\.(\w+)", value) if f in self.outline.units}
        plain = re.match(r"(sum|average|min|max|round)\(|\w+\.\w+$", value) and " / " not in value
        unit = self.outline.units[min(read)] if len(read) == 1 and plain else ""
        return f"{name} in {unit}" if unit else name

    def wire(self, parent: str = "") -> ToolWire:
        value = [*self.steps, {"op": "return", "value": pairs(flat(self.value))}]
        return {
            "name": self.name,
            "description": self.description()[:1000],
            "parent": parent,
            "params": list(self.params.values()),
            "semantics": value,
        }


def pairs(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _grouped(values: dict[str, Any]) -> dict[str, Any]:
    """Members with dotted names under their first part."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        head, _, rest = name.partition(".")
        if rest:
            found.setdefault(head, {})[rest] = value
        else:
            found[name] = value
    return found


def flat(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Nested objects with dotted names."""
    found: dict[str, Any] = {}
    for name, part in value.items():
        found |= flat(part, f"{path}{name}.") if isinstance(part, dict) else {path + name: part}
    return found


def may_leave(text: str, bound: str) -> bool:
    """Whether a new value that is reckoned may pass the bound: by the sign of what is added."""
    tree = parse(text)
    if isinstance(tree, Call) and tree.function == "round":
        tree = tree.arguments[0]
    operator = getattr(tree, "operator", "")
    if operator not in ("+", "-"):
        return False
    return (operator == "-") == (bound == "min")


def label(outline: Outline, entity: Entity, row: str) -> str:
    """Expression for how people call the row."""
    field = entity.title
    return f"{row}.{field.name if field else entity.key}"


def parent_label(outline: Outline, field: Field, row: str) -> str:
    """Expression for how people call the row that the reference points at."""
    entity = outline[field.to]
    shown = entity.title.name if entity.title else entity.key
    return f"lookup('{entity.name}', {row}.{field.name}).{shown}"
