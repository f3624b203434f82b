"""What patterns give: tools still to be built, and the phrases that several of them share."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from offline_llm.tools.draft import ToolDraft
from offline_llm.tools.outline import NUMBERS, Entity, Field, Outline


class Idea(NamedTuple):
    pattern: str
    entity: str
    build: Callable[[], ToolDraft]
    """Raises Impossible where the pattern does not fit."""


Ideas = Iterator[Idea]


def pick_of(outline: Outline, key: str, options: Sequence[str]) -> str:
    """One of the options: the same in every request about the domain, others in other domains."""
    return options[crc32(f"{outline.name}:{key}".encode()) % len(options)]


def brief(outline: Outline, entity: Entity, key: str, *must: str) -> list[str]:
    """Names of the fields that a list shows of a row: its id, its names and a few more."""
    others = [
        f.name
        for f in entity.fields.values()
        if f.type not in ("list", "object") and f.name != entity.key
    ]
    turn = crc32(f"{outline.name}:{entity.name}:{key}".encode())
    size = 1 + turn % 3
    start = (turn >> 4) % max(len(others), 1)
    rotated = others[start:] + others[:start]
    status = [entity.status.name] if entity.status else []
    names = [entity.key, *(f.name for f in entity.natural[:2]), *must]
    if turn % 2:
        names += status
    return list(dict.fromkeys([*names, *rotated[:size]]))


def picked(rows: str, fields: Sequence[str]) -> str:
    return f"pick({rows}, {', '.join(repr(f) for f in fields)})"


def both(*terms: str) -> str:
    """A conjunction."""
    parts = [term for term in terms if term]
    return " and ".join(f"({t})" if " or " in t and len(parts) > 1 else t for t in parts)


def optional(param: str, test: str) -> str:
    """A filter that counts only where its argument is given."""
    return f"{param} == null or {test}"


def in_given(
    draft: ToolDraft, entity: Entity, field: Field, form: str = "Only {} with this"
) -> str:
    """A term with an optional parameter of its own for the field's value."""
    words = "" if field.type == "ref" else f"{form.format(entity.says)} {field.words}"
    param = draft.of_field(field, optional=True, words=words)
    return optional(param, f"{entity.name}.{field.name} == {param}")


def narrowing(
    outline: Outline, draft: ToolDraft, entity: Entity, key: str, but: Field | None = None
) -> str:
    """A term with an optional parameter of its own: by a reference, the status or a choice."""
    choices = [
        f for f in (entity.status, *entity.of("ref", "enum", "boolean", optional=False)) if f
    ]
    choices = [f for f in choices if f is not but and f.name not in draft.params]
    if not choices:
        numbers = [f for f in entity.of(*NUMBERS, optional=False) if f is not but]
        if not numbers:
            return ""
        words = f"Only {entity.says} with at least this {numbers[0].words}"
        least = draft.of_field(
            numbers[0], name=f"least_{numbers[0].noun}", optional=True, words=words
        )
        return optional(least, f"{entity.name}.{numbers[0].name} >= {least}")
    field = choices[crc32(f"{outline.name}:{entity.name}:{key}".encode()) % len(choices)]
    return in_given(draft, entity, field)


def seen(entity: Entity, field: Field) -> list[Any]:
    """What the rows that are shown have in the field."""
    return [v for row in entity.sample if (v := row.get(field.name)) is not None]


def money(field: Field) -> bool:
    """Whether the number is an amount of some currency."""
    return len(field.unit or "") == 3 and (field.unit or "").isupper()


def to_come(outline: Outline, entity: Entity, field: Field) -> bool:
    """Whether the day or time is planned, and no record of what was."""
    planned = any(value > outline.now for value in seen(entity, field))
    return field.name not in entity.stamps and (planned or field.verb is not None)


def one_of(values: Sequence[str]) -> str:
    return f"[{', '.join(repr(v) for v in values)}]"


def live_test(entity: Entity, row: str) -> str:
    """That the row can still move on; empty where every row can, or there is no telling."""
    status = entity.status
    if status is None or not entity.live or set(entity.live) >= set(status.values):
        return ""
    if len(entity.live) == 1:
        return f"{row}.{status.name} == '{entity.live[0]}'"
    return f"{row}.{status.name} in {one_of(entity.live)}"


def amount(entity: Entity) -> Field | None:
    """The number that matters most: money first."""
    numbers = entity.of(*NUMBERS, optional=False)
    return next(iter([f for f in numbers if money(f)] or numbers), None)


def deadline(field: Field) -> bool:
    words = ("due", "until", "expire", "end", "close", "deadline", "by", "ready", "back", "finish")
    return any(part.startswith(words) for part in field.name.split("_"))


def ahead(outline: Outline, field: Field) -> str:
    """Now, as the field's type compares."""
    return "now()" if field.type == "datetime" else "date(now())"
