"""Parameters for fields: their types, bounds and units, and in words what to give."""

from typing import Any

from offline_llm.tools.english import listed, sentence, spaced
from offline_llm.tools.outline import Entity, Field, Outline


class Impossible(Exception):  # noqa: N818 - no error: the pattern does not fit here
    """The pattern does not fit here; the tool is left out."""


def example_id(entity: Entity) -> str:
    if entity.sample:
        return str(entity.sample[0].get(entity.key))
    return f"{entity.spec.get('prefix') or ''}1001"


def member_of(outline: Outline, field: Field, *, name: str = "", words: str = "") -> dict[str, Any]:
    """A parameter, or a member of an object parameter, for a value of the field."""
    owner = spaced(field.entity)
    text = words or field.spec.get("description") or f"{field.words} of the {owner}"
    member: dict[str, Any] = {"name": name or field.name, "type": field.type}
    if field.unit:
        member["unit"] = field.unit
    match field.type:
        case "ref":
            entity = outline[field.to]
            text = f"Id of the {field.words}, such as {example_id(entity)}"
            member |= {"type": "string", "ref": field.to}
        case "enum":
            member["values"] = list(field.values)
        case "integer" | "number":
            member |= field.bounds
            text += f", in {field.unit}" if field.unit and not words else ""
        case "list":
            if field.of == "object":
                if not field.properties:
                    raise Impossible
                fields = members_of(outline, field)
                member |= {"type": "array", "items": "object", "fields": fields, "max": 10}
            else:
                ref = {"ref": field.to} if field.of == "ref" else {}
                member |= {"type": "array", "items": field.of, "max": 10} | ref
        case "object":
            if not field.properties:
                raise Impossible
            member["fields"] = members_of(outline, field)
        case "string":
            quoted = [str(v) for v in _samples(outline, field) if v and "'" not in str(v)][:2]
            text = text.rstrip(".")
            text += f", such as {listed([repr(v) for v in quoted], 'or')}" if quoted else ""
            member |= {"min": 1, "max": 200}
    return member | {"description": sentence(text)}


def members_of(outline: Outline, field: Field) -> list[dict[str, Any]]:
    """Of an object, or of the objects of a list; they hold no lists or objects themselves."""
    if any(p.type in ("list", "object") for p in field.properties):
        raise Impossible
    return [
        member_of(outline, p) | ({"optional": True} if p.optional else {}) for p in field.properties
    ]


def _samples(outline: Outline, field: Field) -> list[Any]:
    entity = outline.entities.get(field.entity)
    rows = entity.sample if entity else ()
    return list(dict.fromkeys(v for row in rows if isinstance(v := row.get(field.name), str)))
