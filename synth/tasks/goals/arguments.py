"""Draw arguments for a user goal: ids of rows that exist, values that a person would bring along.

Other than `tool_specs.validation.drawing`, which looks for calls that any tool accepts, this draws
what makes a good task: rows that the conversation is about already, and new values made of those
that the state holds (a name of two names, another number of the same form). Whether the call
succeeds is for the caller to see, by executing it.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from records.tables.splits import Split
from synth.tasks.goals.domain_tools import DomainTool, FieldRef
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.growth.partition import fits
from tool_specs.language.domain_file import ParamSpec
from tool_specs.language.parameters import Path
from tool_specs.validation.drawing import examples_in

_EMAIL = re.compile(r"([\w.+-]+)@([\w.-]+)")
_NAME_LIKE = re.compile(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)+")

PREFER_MADE = 0.8
"""How often a row that an earlier user goal made is taken, where one fits."""

PREFER_KNOWN = 0.6
"""How often a row that the conversation is already about is taken again, where one fits."""

PREFER_RELATED = 0.7
"""How often, else, a row is taken that one of these refers to or that refers to one of them."""

GIVE_OPTIONAL = 0.4
"""How often an optional parameter is given."""

OWN_TRIES = 60
"""Draws of one new value until it belongs to the task's split; then there is none."""

MANY_STEPS = 150
"""A number of fewer possible values belongs to every split."""

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

PHRASES = (
    "Please call me before you come.",
    "This is urgent, I need it this week.",
    "Leave it with the neighbour if nobody is in.",
    "I will be away until Thursday.",
    "Handle with care.",
    "Everything as we discussed on the phone.",
    "It stopped working yesterday evening.",
    "Use the side entrance.",
    "Keep me posted by email.",
    "As agreed with the manager.",
)
"""For texts of which neither state nor description holds an example."""


class Drawer:
    """Draws for one task. `recent` is (entity, key) of the rows it has been about so far, `made`
    of those that its user goals have made."""

    def __init__(
        self, domain: Domain, rng: Random, *, closely: bool = False, split: Split | None = None
    ) -> None:
        """`closely`: of rows that hang together with the recent ones, wherever there is one;
        `split`: to which new values belong."""
        self._domain = domain
        self.split: Split | None = split
        self._rng = rng
        self._closely = closely
        self.recent: list[tuple[str, str]] = []
        self.made: list[tuple[str, str]] = []

    def draw(self, environment: DomainEnvironment, tool: DomainTool) -> dict[str, Any]:
        """Arguments for the tool, which the environment has yet to accept."""
        return _Draw(self, self._domain, self._rng, environment, tool).arguments()

    def ref(self, environment: DomainEnvironment, entity: str) -> str | None:
        """The id of some row; None where there is none."""
        for rows, share in ((self.made, PREFER_MADE), (self.recent, PREFER_KNOWN)):
            fitting = [key for kind, key in rows if kind == entity and environment.get(entity, key)]
            if fitting and self._rng.random() < share:
                return self._rng.choice(fitting)
        related = self._related(environment, entity)
        if related and (self._closely or self._rng.random() < PREFER_RELATED):
            return self._rng.choice(related)
        key_field = self._domain.entities[entity].key
        keys = [row[key_field] for row in environment.rows(entity)]
        return self._rng.choice(keys) if keys else None

    def _related(self, environment: DomainEnvironment, entity: str) -> list[str]:
        """Ids of rows of the entity that hang together with the recent ones."""
        spec = self._domain.entities[entity]
        found: dict[str, None] = {}
        for kind, key in self.recent:
            for field, own in spec.fields.items():
                if own.type == "ref" and own.to == kind:
                    rows = environment.state.tables[entity].matching({field: key})
                    found.update(dict.fromkeys(row[spec.key] for row in rows))
            row = environment.get(kind, key) or {}
            for field, theirs in self._domain.entities[kind].fields.items():
                if theirs.type == "ref" and theirs.to == entity and row.get(field):
                    found[row[field]] = None
        return list(found)


class _Draw:
    """One draw: the rows that the call names first, then values that suit them."""

    def __init__(
        self,
        drawer: Drawer,
        domain: Domain,
        rng: Random,
        environment: DomainEnvironment,
        tool: DomainTool,
    ) -> None:
        self.drawer, self.domain, self.rng = drawer, domain, rng
        self.environment, self.tool = environment, tool
        self.rows: list[dict[str, Any]] = []

    def arguments(self) -> dict[str, Any]:
        params = {n: p for n, p in self.tool.spec.params.items() if n not in self.tool.paging}
        given = {name for name, param in params.items() if self.given(param)}
        refs = {
            name: self.drawer.ref(self.environment, param.ref)
            for name, param in params.items()
            if param.ref and name in given
        }
        self.rows = [
            row
            for name, key in refs.items()
            if key is not None and (row := self.environment.get(params[name].ref or "", key))
        ]
        values = {
            name: refs[name] if name in refs else self.value(param, (name,))
            for name, param in params.items()
            if name in given
        }
        kept = {
            name: value
            for name, value in values.items()
            if value is not None and not (params[name].optional and value == params[name].default)
        }
        return with_fitting_days(params, kept)

    def given(self, param: ParamSpec) -> bool:
        return not param.optional or self.rng.random() < GIVE_OPTIONAL

    def value(self, param: ParamSpec, path: Path) -> Any:
        """None where there is nothing to choose from."""
        if param.ref:
            return self.drawer.ref(self.environment, param.ref)
        match param.type:
            case "enum":
                return self.rng.choice(param.values)
            case "boolean":
                return self.rng.random() < 0.5
            case "integer" | "number":
                return self.of_own_split(lambda: self.number(param, path), param, path)
            case "date":
                return self.moment().isoformat()[:10]
            case "datetime":
                return self.moment().isoformat()
            case "string":
                return self.of_own_split(lambda: self.text(param, path), param, path)
            case "array":
                return self.array(param, path)
            case "object":
                parts = (param.properties or {}).items()
                members = {n: self.value(p, (*path, n)) for n, p in parts if self.given(p)}
                return {name: value for name, value in members.items() if value is not None}

    def of_own_split(self, draw: Callable[[], Any], param: ParamSpec, path: Path) -> Any:
        """What is drawn, where it is new a value of the task's own split; None where none of many
        draws is. A split takes one draw of the task's rng like every other."""
        split, rng = self.drawer.split, self.rng
        if split is None:
            return draw()
        self.rng = Random(rng.getrandbits(64))
        try:
            for _ in range(OWN_TRIES):
                value = draw()
                if self.is_shared(value, param, path) or fits(value, split):
                    return value
            return None
        finally:
            self.rng = rng

    def is_shared(self, value: Any, param: ParamSpec, path: Path) -> bool:
        """Whether the value is one that every split may have: it stands in the state, in the
        tool's description, or is one of few."""
        there = [*self.existing(path), *(v for row in self.rows for v in row.values())]
        if any(v == value and not isinstance(v, bool) for v in there):
            return True
        if isinstance(value, str):
            return value in (*examples_in(param.description or "").texts, *PHRASES)
        step = 0.5 if param.type == "number" and value < 20 else 1
        least, most = param.min, param.max
        return least is not None and most is not None and (most - least) / step < MANY_STEPS

    def array(self, param: ParamSpec, path: Path) -> list[Any]:
        """One to three elements, all different."""
        least = int(param.min or 1)
        most = int(min(param.max or 3, 3))
        items: list[Any] = []
        for _ in range(self.rng.randint(least, max(least, most))):
            item = self.value(param.items, (*path, "items")) if param.items else None
            if item is not None and item not in items:
                items.append(item)
        return items

    def moment(self) -> datetime:
        """In the next three weeks, at a full or half hour of the day."""
        start = datetime.fromisoformat(self.domain.now).replace(hour=0, minute=0, second=0)
        half_hours = self.rng.randrange(16, 36)
        return start + timedelta(days=self.rng.randint(1, 21), minutes=30 * half_hours)

    def number(self, param: ParamSpec, path: Path) -> int | float:
        """Within the bounds; half the time of the size of a number in the rows it concerns."""
        near = [v for row in self.rows for v in row.values() if _is_number(v) and v > 0]
        usual = [v for v in self.existing(path) if _is_number(v)]
        low = param.min if param.min is not None else 1
        high = param.max if param.max is not None else max([*usual, *near, low + 10])
        if 0 <= low < 1 <= high:
            low = 1  # nobody pays a cent
        if near and self.rng.random() < 0.5:
            value = self.rng.choice(near) * self.rng.choice((0.25, 0.5, 0.5, 1.0, 1.0))
        elif usual and self.rng.random() < 0.5:
            value = self.rng.choice(usual)
        else:
            value = self.rng.uniform(low, max(low, min(high, low + 200)))
        halves = param.type == "number" and value < 20
        value = round(value * 2) / 2 if halves else round(value)
        value = min(max(value, low), high)
        return int(value) if value == int(value) else value

    def text(self, param: ParamSpec, path: Path) -> str:
        """Made from texts of the field that the parameter is stored in or compared with, unless
        its description gives whole texts as examples."""
        examples = examples_in(param.description or "")
        if examples.quoted:
            return self.rng.choice(examples.texts)
        if pool := [v for v in self.existing(path) if isinstance(v, str) and v]:
            return self.varied(self.rng.choice(pool), pool)
        if examples.texts:
            return self.rng.choice(examples.texts)
        return self.rng.choice(PHRASES)

    def varied(self, text: str, pool: list[str]) -> str:
        """Another value of the same form, where the form is one that is easy to vary."""
        if email := _EMAIL.fullmatch(text):
            others = [m[1] for other in pool if (m := _EMAIL.fullmatch(other))]
            first = re.split(r"[._]", email[1])[0]
            last = re.split(r"[._]", self.rng.choice(others))[-1]
            return f"{first}.{last}@{email[2]}" if first != last else text
        if _NAME_LIKE.fullmatch(text) and all(_NAME_LIKE.fullmatch(other) for other in pool):
            return f"{text.rsplit(' ', 1)[0]} {self.rng.choice(pool).rsplit(' ', 1)[-1]}"
        if re.search(r"\d", text) and " " not in text:
            return re.sub(r"\d(?=\D*$|\d\D*$)", lambda _: str(self.rng.randint(1, 9)), text)
        return text

    def existing(self, path: Path) -> list[Any]:
        """Values that rows have in the parameter's field."""
        place: FieldRef | None = self.tool.stored_in.get(path)
        if place is None:
            return []
        entity, field = place
        values = (row.get(field) for row in self.environment.rows(entity))
        return [v for value in values for v in (value if isinstance(value, list) else [value])]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def with_fitting_days(params: Mapping[str, ParamSpec], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with dates and moments moved on to the weekday that they name, by six days at
    most; as they are where they name none or several. Who moves a course to Tuesdays does not let
    it begin on a Monday."""
    named = [
        WEEKDAYS.index(value.lower())
        for name, value in arguments.items()
        if params[name].type == "enum" and str(value).lower() in WEEKDAYS
    ]
    if len(named) != 1:
        return arguments
    return {
        name: _on(value, named[0]) if params[name].type in ("date", "datetime") else value
        for name, value in arguments.items()
    }


def _on(moment: str, weekday: int) -> str:
    day = date.fromisoformat(moment[:10])
    return (day + timedelta(days=(weekday - day.weekday()) % 7)).isoformat() + moment[10:]
