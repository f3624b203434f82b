"""What the offline simulator reads of a prompt: one call, the rows that it names, and its words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from offline_llm.reading.sections import json_of
from offline_llm.reading.words import split, stem

SimRow = dict[str, Any]


class Named(NamedTuple):
    """A row that an argument names by its key."""

    param: str
    entity: str
    row: SimRow


@dataclass
class SimCall:
    """One call as the prompt tells it."""

    entities: dict[str, Any]
    rows: dict[str, list[SimRow]]
    tool: dict[str, Any]
    arguments: dict[str, Any]
    now: str
    named: list[Named] = field(default_factory=list)

    @classmethod
    def of(cls, found: dict[str, str]) -> "SimCall":
        environment = json_of(found, "world", {})
        call = cls(
            json_of(found, "entities", {}),
            json_of(found, "state", {}),
            json_of(found, "tool", {}),
            json_of(found, "call", {}),
            str(environment.get("now", "2026-01-01T00:00:00")),
        )
        call.named = list(call._named())
        return call

    def key(self, entity: str) -> str:
        return self.entities[entity]["key"]

    def fields(self, entity: str) -> dict[str, Any]:
        return self.entities[entity]["fields"]

    @property
    def outputs(self) -> dict[str, Any]:
        schema = self.tool.get("output_schema")
        found = schema.get("properties") if isinstance(schema, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def verbs(self) -> set[str]:
        words = split(self.tool["name"]) + split(str(self.tool.get("description", "")))[:2]
        return {stem(word) for word in words}

    def _named(self) -> Iterator[Named]:
        for param, value in self.arguments.items():
            for one in value if isinstance(value, list) else [value]:
                for entity, rows in self.rows.items():
                    for row in rows:
                        if isinstance(one, str) and row.get(self.key(entity)) == one:
                            yield Named(param, entity, row)

    def missing(self) -> str | None:
        """An argument that should name a row and names none."""
        params = {named.param for named in self.named}
        for param, value in self.arguments.items():
            wanted = {self.key(e) for e in self.entities} | {f"{e}_id" for e in self.entities}
            if param in wanted and isinstance(value, str) and param not in params:
                return f"There is no {param} {value}."
        return None

    def entity_of_name(self) -> str | None:
        """The entity that the tool's name speaks of, the last of them."""
        said = [stem(word) for word in split(self.tool["name"])]
        fitting = [e for e in self.entities if all(stem(w) in said for w in split(e))]
        return fitting[-1] if fitting else None
