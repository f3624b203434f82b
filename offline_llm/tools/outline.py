"""A domain as the request's prompt shows it: entities, typed fields, references, moves, rules."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from offline_llm.tools.english import article, plural, spaced, verb_noun

NUMBERS = ("integer", "number")
MOMENTS = ("date", "datetime")
_WHEN = {"starts": "start", "begins": "start", "ends": "end", "expires": "expiry"}
_WHEN |= {"closes": "closing", "opens": "opening", "leaves": "departure", "arrives": "arrival"}


@dataclass(frozen=True)
class Field:
    entity: str
    name: str
    spec: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.spec.get("type", "string"))

    @property
    def of(self) -> str:
        """What a list holds."""
        return str(self.spec.get("of", "string"))

    @property
    def optional(self) -> bool:
        return bool(self.spec.get("optional"))

    @property
    def unit(self) -> str | None:
        return self.spec.get("unit")

    @property
    def to(self) -> str:
        return str(self.spec.get("to", ""))

    @property
    def verb(self) -> str | None:
        return self.spec.get("verb")

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(self.spec.get("values") or ())

    @property
    def bounds(self) -> dict[str, Any]:
        return {k: self.spec[k] for k in ("min", "max") if self.spec.get(k) is not None}

    @property
    def properties(self) -> list["Field"]:
        found = self.spec.get("properties") or {}
        return [Field(self.entity, name, spec) for name, spec in found.items()]

    @property
    def words(self) -> str:
        """As people say it: `due_on` is the due day, `owner_id` the owner."""
        name = self.name.removesuffix("_id")
        for suffix, word in (("_on", "date"), ("_at", "time"), ("_by", "deadline")):
            if self.type in MOMENTS and name.endswith(suffix):
                when = name.removesuffix(suffix)
                return f"{spaced(_WHEN.get(when, when))} {word}"
        return spaced(name)

    @property
    def noun(self) -> str:
        """Fit for a tool's name: `owner` of `owner_id`, `due_date` of `due_on`."""
        words = self.words.removesuffix(" by") if self.type == "enum" else self.words
        return words.replace(" ", "_").replace("-", "_")


class EntityLink(NamedTuple):
    """A reference between entities, seen from either end."""

    child: "Entity"
    field: Field
    parent: "Entity"

    @property
    def plain(self) -> bool:
        """Whether nothing else of the child points at the same entity: its name says it all."""
        return sum(f.to == self.parent.name for f in self.child.fields.values()) == 1

    @property
    def role(self) -> str:
        """What the parent is to the child."""
        return self.parent.name if self.plain else self.field.noun

    @property
    def as_role(self) -> str:
        """An end of names, for a parent that has several roles."""
        return "" if self.plain else f"_as_{self.field.noun}"


class EntityMove(NamedTuple):
    entity: "Entity"
    spec: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def words(self) -> str:
        return spaced(self.name)

    def doing(self, whom: str) -> str:
        """The move in words, with whom it is done to: `put several orders on hold`."""
        return spaced(verb_noun(self.name, whom.replace(" ", "_")))

    @property
    def status(self) -> Field:
        """The field that the move changes."""
        return self.entity.fields[self.entity.spec["lifecycle"]["field"]]

    @property
    def stamped(self) -> dict[str, str]:
        """What the move sets whatever the caller says: the status, and the time of it."""
        new = {self.status.name: f"'{self.to}'"}
        if self.stamp is not None:
            new[self.stamp.name] = "now()" if self.stamp.type == "datetime" else "date(now())"
        return new

    @property
    def test(self) -> str:
        """That a row, under the entity's name, is in a status that the move starts from."""
        row = f"{self.entity.name}.{self.status.name}"
        if len(self.sources) == 1:
            return f"{row} == '{self.sources[0]}'"
        return f"{row} in [{', '.join(repr(s) for s in self.sources)}]"

    @property
    def sources(self) -> list[str]:
        return list(self.spec.get("from") or [])

    @property
    def to(self) -> str:
        return str(self.spec["to"])

    @property
    def needs(self) -> list[dict[str, str]]:
        return list(self.spec.get("needs") or [])

    @property
    def effects(self) -> list[dict[str, Any]]:
        return list(self.spec.get("effects") or [])

    @property
    def takes(self) -> list[Field]:
        return [self.entity.fields[f] for f in self.spec.get("takes") or []]

    @property
    def stamp(self) -> Field | None:
        return self.entity.fields.get(self.spec.get("stamp") or "")


@dataclass(frozen=True)
class Entity:
    name: str
    spec: dict[str, Any]
    sample: tuple[dict[str, Any], ...]
    """The first rows of the seed."""

    @cached_property
    def fields(self) -> dict[str, Field]:
        return {n: Field(self.name, n, s) for n, s in self.spec["fields"].items()}

    @property
    def key(self) -> str:
        return str(self.spec["key"])

    @cached_property
    def words(self) -> str:
        return spaced(self.name)

    @cached_property
    def one(self) -> str:
        """With its article."""
        return article(self.words)

    @cached_property
    def many(self) -> str:
        """The plural, as an identifier."""
        return plural(self.name)

    @property
    def says(self) -> str:
        """The plural, in words."""
        return spaced(self.many)

    @cached_property
    def natural(self) -> list[Field]:
        return [self.fields[f] for f in self.spec.get("natural") or () if f in self.fields]

    @cached_property
    def status(self) -> Field | None:
        lifecycle = self.spec.get("lifecycle")
        return self.fields[lifecycle["field"]] if lifecycle else None

    @cached_property
    def moves(self) -> list[EntityMove]:
        lifecycle = self.spec.get("lifecycle") or {}
        return [EntityMove(self, move) for move in lifecycle.get("moves", ())]

    @cached_property
    def first(self) -> str:
        """Status of a new row."""
        return self.status.values[0] if self.status else ""

    @cached_property
    def live(self) -> list[str]:
        """Statuses from which a row can still move."""
        found = {s for move in self.moves for s in move.sources}
        return [v for v in (self.status.values if self.status else ()) if v in found]

    @cached_property
    def ends(self) -> list[str]:
        """Statuses that moves lead to and none leaves."""
        reached = {move.to for move in self.moves}
        values = self.status.values if self.status else ()
        return [v for v in values if v in reached and v not in self.live]

    def of(self, *types: str, optional: bool | None = None) -> list[Field]:
        """Fields of these types, the key and the status left out."""
        left_out = {self.key, self.status.name if self.status else ""}
        return [
            f
            for f in self.fields.values()
            if f.type in types
            and f.name not in left_out
            and (optional is None or f.optional == optional)
        ]

    @cached_property
    def stamps(self) -> set[str]:
        """Fields that a move sets, or takes: nobody else writes them."""
        stamped = {move.spec.get("stamp") for move in self.moves}
        return {*filter(None, stamped), *(f.name for m in self.moves for f in m.takes)}

    @cached_property
    def title(self) -> Field | None:
        """The text by which people know a row."""
        return next((f for f in self.natural if f.type == "string"), None)


class Outline:
    def __init__(self, data: dict[str, Any]) -> None:
        self.name = str(data.get("domain", ""))
        self.heading = str(data.get("title", ""))
        self.now = str(data.get("now", ""))
        seed = data.get("seed") or {}
        self.entities = {
            name: Entity(name, spec, tuple(seed.get(name) or ()))
            for name, spec in data.get("entities", {}).items()
        }
        self.rules: list[dict[str, str]] = list(data.get("rules") or ())

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.entities.values())

    def __getitem__(self, name: str) -> Entity:
        return self.entities[name]

    @cached_property
    def links(self) -> list[EntityLink]:
        """Single references, each once."""
        return [
            EntityLink(entity, field, self[field.to])
            for entity in self
            for field in entity.fields.values()
            if field.type == "ref" and field.to in self.entities
        ]

    @cached_property
    def units(self) -> dict[str, str]:
        """Field -> unit, where the name means one unit in the whole domain."""
        found: dict[str, set[str]] = {}
        for entity in self:
            for f in entity.fields.values():
                if f.type in NUMBERS:
                    found.setdefault(f.name, set()).add(f.unit or "")
        return {name: min(units) for name, units in found.items() if len(units) == 1 and min(units)}

    def up(self, entity: Entity) -> list[EntityLink]:
        return [link for link in self.links if link.child is entity]

    def down(self, entity: Entity) -> list[EntityLink]:
        """References that point at the entity from others."""
        return [link for link in self.links if link.parent is entity and link.child is not entity]

    def holders(self, entity: Entity) -> list[Field]:
        """List fields that hold ids of the entity."""
        return [
            f for e in self for f in e.fields.values() if f.type == "list" and f.to == entity.name
        ]
