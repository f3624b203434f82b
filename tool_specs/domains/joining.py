"""One domain made of two or three whose people are the same: a clinic and a broker with the same
customers. It is a domain file like any other, so that whatever reads one reads it."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from records.errors import ConfigError
from tool_specs.domains.domain import Domain
from tool_specs.language.domain_file import DomainFile, EntitySpec, FieldSpec

MOST_PARTS = 3

CONTACT = ("email", "phone", "mobile", "birth_date", "date_of_birth", "address", "town")
"""Fields that a person has alike everywhere, where both entities have them with one type."""

WEEK = 7


class JoinedPart(NamedTuple):
    domain: Domain
    person: str
    """The entity whose rows are people that all parts have."""


def joined(name: str, parts: Sequence[JoinedPart]) -> dict[str, Any]:
    """The joint domain as a domain file's content, with all tools, policy and rows of the parts.

    The clock is the latest of the parts'; dates of the others are moved on by whole weeks. The
    people of the further parts, in their order, get names and contacts of those of the first part,
    and a field that refers to them, so that their records hang together.

    Raises ConfigError for parts that cannot be joined: other than two or three, with time, with a
    name in common, or whose people have no name.
    """
    if not 2 <= len(parts) <= MOST_PARTS:
        raise ConfigError(f"two or three domains can be joined, got {len(parts)}")
    if problems := list(_problems(parts)):
        raise ConfigError("\n".join(problems))
    files = [part.domain.file for part in parts]
    now = max(file.now for file in files)
    seeds = [_moved(file, _weeks(file.now, now)) for file in files]
    entities = {n: _plain(spec) for file in files for n, spec in file.entities.items()}
    first = parts[0]
    people = first.domain.file.entities[first.person]
    for part, seed in zip(parts[1:], seeds[1:], strict=True):
        spec = part.domain.file.entities[part.person]
        entities[part.person]["fields"][people.key] = {
            "type": "ref",
            "to": first.person,
            "optional": True,
            "description": f"The same person as {first.person}.",
        }
        _share(seeds[0][first.person], people, seed, part.person, spec)
    titles = [file.title for file in files]
    return {
        "domain": name,
        "title": " and ".join(titles),
        "category": files[0].category,
        "description": " ".join(f"{file.title}: {file.description}" for file in files),
        "split": max((file.split for file in files), key=lambda split: split != "train"),
        "now": now,
        "entities": entities,
        "rules": [_plain(rule) for file in files for rule in file.rules],
        "seed": {n: rows for seed in seeds for n, rows in seed.items()},
        "policy": [_plain(rule) for file in files for rule in file.policy],
        "tools": [_plain(tool) for file in files for tool in file.tools],
        "user_tools": [tool for file in files for tool in file.user_tools],
    }


def _problems(parts: Sequence[JoinedPart]) -> Iterator[str]:
    for part in parts:
        file = part.domain.file
        if part.domain.has_time:
            yield f"{file.domain}: time passes in it; only domains without time can be joined"
        if part.person not in file.entities:
            known = ", ".join(file.entities)
            yield f"{file.domain}: has no entity {part.person!r}, only {known}"
        elif _name_field(file.entities[part.person]) is None:
            yield f"{file.domain}: {part.person} has no text by which people name a row"
    for what, names in (
        ("an entity", [set(part.domain.file.entities) for part in parts]),
        ("a tool", [set(part.domain.programs) for part in parts]),
        ("a rule of the policy", [{r.id for r in part.domain.file.policy} for part in parts]),
        ("a rule", [{r.id for r in part.domain.file.rules} for part in parts]),
    ):
        seen: set[str] = set()
        for part, own in zip(parts, names, strict=True):
            for name in sorted(seen & own):
                yield f"{part.domain.name}: {what} named {name!r} stands in another part, too"
            seen |= own


def _name_field(spec: EntitySpec) -> str | None:
    """The field by which people name the row."""
    texts = [name for name in spec.natural if spec.fields[name].type == "string"]
    return texts[0] if texts else None


def _plain(model: Any) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _weeks(own: str, now: str) -> timedelta:
    days = (date.fromisoformat(now[:10]) - date.fromisoformat(own[:10])).days
    return timedelta(days=days // WEEK * WEEK)


def _moved(file: DomainFile, by: timedelta) -> dict[str, list[dict[str, Any]]]:
    """The seed with its dates moved on: weekdays stay what they are."""
    return {
        name: [
            {field: _later(value, spec.fields.get(field), by) for field, value in row.items()}
            for row in file.seed.get(name, [])
        ]
        for name, spec in file.entities.items()
    }


def _later(value: Any, spec: FieldSpec | None, by: timedelta) -> Any:
    if spec is None or value is None:
        return value
    kind = spec.of if spec.type == "list" else spec.type
    if isinstance(value, list):
        return [_later_one(one, kind, spec, by) for one in value]
    return _later_one(value, kind, spec, by)


def _later_one(value: Any, kind: str, spec: FieldSpec, by: timedelta) -> Any:
    match kind:
        case "date":
            return (date.fromisoformat(value) + by).isoformat()
        case "datetime":
            return (datetime.fromisoformat(value) + by).isoformat()
        case "object" if isinstance(value, dict):
            inner = spec.properties or {}
            return {name: _later(part, inner.get(name), by) for name, part in value.items()}
    return value


def _share(
    people: Sequence[dict[str, Any]],
    spec: EntitySpec,
    seed: dict[str, list[dict[str, Any]]],
    entity: str,
    other: EntitySpec,
) -> None:
    """Make the rows of the other part's people those of the first part, in the given seed."""
    name, theirs = _name_field(spec), _name_field(other)
    alike = [
        field
        for field in CONTACT
        if field in spec.fields
        and field in other.fields
        and spec.fields[field].type == other.fields[field].type
    ]
    renamed: dict[str, str] = {}
    for person, row in zip(people, seed[entity], strict=False):
        renamed[row[str(theirs)]] = person[str(name)]
        row |= {field: person.get(field) for field in alike}
        row[spec.key] = person[spec.key]
    for rows in seed.values():
        for row in rows:
            for field, value in row.items():
                if isinstance(value, str) and value in renamed:
                    row[field] = renamed[value]
