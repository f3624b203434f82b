"""What a state looks like as a table: sizes, gaps, how references are spread, names that are easily
taken for each other.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tool_specs.execution.state import EntityRow, State
from tool_specs.growth.near import sound_of
from tool_specs.growth.relations import single_refs
from tool_specs.language.domain_file import DomainFile, EntitySpec


class EntitySummary(NamedTuple):
    entity: str
    seed_rows: int
    rows: int
    missing: float | None
    """Share of nulls among the values of optional fields; None without such fields."""
    to_top_tenth: float | None
    """Share of the references to the entity's rows that go to a tenth of them; None without any."""
    alike: int
    """Rows with a name, or what else people know them by, that sounds like another row's."""
    ambiguous: int
    """Rows whose natural fields all are another row's, too: no user goal is about them."""


def summary_of(file: DomainFile, seed: State, state: State) -> list[EntitySummary]:
    """In the order of the file."""
    return [
        EntitySummary(
            name,
            sum(1 for _ in seed.tables[name].rows()),
            len(rows := list(state.tables[name].rows())),
            missing_share(entity, rows),
            top_tenth_share(name, file, state),
            num_alike(entity, rows),
            len(ambiguous_keys(entity, rows)),
        )
        for name, entity in file.entities.items()
    ]


def missing_share(entity: EntitySpec, rows: Sequence[EntityRow]) -> float | None:
    optional = [name for name, spec in entity.fields.items() if spec.optional]
    if not optional or not rows:
        return None
    nulls = sum(row[name] is None for row in rows for name in optional)
    return round(nulls / len(optional) / len(rows), 3)


def top_tenth_share(name: str, file: DomainFile, state: State) -> float | None:
    counts: Counter[str] = Counter()
    for other, entity in file.entities.items():
        for field, to in single_refs(entity).items():
            if to == name:
                held = (row[field] for row in state.tables[other].rows())
                counts.update(key for key in held if key is not None)
    if not counts:
        return None
    tenth = max(1, sum(1 for _ in state.tables[name].rows()) // 10)
    return round(sum(count for _, count in counts.most_common(tenth)) / counts.total(), 3)


def num_alike(entity: EntitySpec, rows: Sequence[EntityRow]) -> int:
    total = 0
    for field in entity.fields if entity.natural else ():
        if entity.fields[field].type != "string" or field == entity.key:
            continue
        if field in entity.natural or field == "name":
            sounds = Counter(sound_of(row[field]) for row in rows if row[field] is not None)
            total += sum(count for count in sounds.values() if count > 1)
    return total


def ambiguous_keys(entity: EntitySpec, rows: Sequence[EntityRow]) -> set[str]:
    """Of rows that their natural fields do not tell from another row."""
    if not entity.natural:
        return set()
    found: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        found.setdefault(tuple(str(row[f]) for f in entity.natural), []).append(row[entity.key])
    return {key for keys in found.values() if len(keys) > 1 for key in keys}
