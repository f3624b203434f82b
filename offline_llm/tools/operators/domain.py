"""Job `domain` (operator specialise): a narrower application, from a field that gets one value."""

import json
import re
from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import seen
from offline_llm.tools.outline import MOMENTS, NUMBERS, Entity, Field, Outline
from records.seeds import rng_of

_AIM = re.compile(r"^(\w+)\.(\w+) = (.+)$")
_TEAMS = ("team", "desk", "office", "service", "unit", "group")
_GRADES = (("small", "large"), ("basic", "extended"), ("first", "second"))


def write_domain(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    found = sections(request)
    data = json_of(found, "domain", {})
    wanted = json_of(found, "wanted", {})
    outline = Outline(data)
    aim = next((m for a in wanted.get("aims") or () if (m := _AIM.match(str(a)))), None)
    rng = rng_of(json.dumps(data), "specialise", int(wanted.get("draw") or 0))
    entity, field, value = _fixed(outline, aim)
    kind = (
        spaced(value)
        if field.type == "enum"
        else f"{'' if value == 'true' else 'non '}{field.words}"
    )
    added = _added(entity, rng.choice(_GRADES))
    constant = value if field.type == "boolean" else f"'{value}'"
    fix = {"entity": entity.name, "field": field.name, "value": constant}
    team = rng.choice(_TEAMS)
    about = f"{kind} {entity.says}"
    return {
        "domain": _name(f"{kind} {spaced(outline.name)}"),
        "title": f"{outline.heading}: {about}"[:80],
        "description": f"{data.get('description', '')} This {team} looks after {about} only."[:500],
        # what is left may be too little to work with: then the rules alone make it narrower
        "fix": [] if "problems" in found else [fix],
        "add_fields": [field for field, _ in added],
        "rules": [rule for _, rule in added if rule],
    }


def _fixed(outline: Outline, aim: re.Match[str] | None) -> tuple[Entity, Field, str]:
    """The field and value of the aim; without one, of the first choice there is."""
    if aim and aim[1] in outline.entities and aim[2] in outline[aim[1]].fields:
        entity = outline[aim[1]]
        return entity, entity.fields[aim[2]], aim[3].strip()
    for entity in outline:
        for field in entity.of("enum", optional=False):
            return entity, field, str((seen(entity, field) or field.values)[0])
    entity = next(iter(outline))
    return entity, entity.fields[entity.key], ""


def _name(words: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_0123456789")
    return name[:64].strip("_0123456789")


def _added(entity: Entity, grades: tuple[str, str]) -> list[tuple[dict[str, Any], Any]]:
    """New fields with values for the rows there are, each with a rule that they meet or None."""
    found: list[tuple[dict[str, Any], Any]] = []
    row = entity.name
    number = next(iter(entity.of(*NUMBERS, optional=False)), None)
    if number is not None and number.spec.get("min", -1) >= 0:
        name, half = f"{number.noun}_reserve", f"round({row}.{number.name} / 4, 2)"
        field = _field(entity, name, "number", f"Part of the {number.words} kept back.", half)
        rule = {
            "id": f"{name}_within_{number.noun}",
            "entity": row,
            "that": f"{row}.{name} <= {row}.{number.name}",
            "text": f"The reserve never exceeds the {number.words} itself.",
        }
        found.append((field | ({"unit": number.unit} if number.unit else {}), rule))
        middle = sorted(seen(entity, number))[len(seen(entity, number)) // 2 :][:1] or [1]
        graded = f"if({row}.{number.name} >= {middle[0]}, '{grades[1]}', '{grades[0]}')"
        grade = _field(entity, f"{number.noun}_grade", "enum", "How it is graded here.", graded)
        found.append((grade | {"values": list(grades)}, None))
    moment = next(iter(entity.of(*MOMENTS, optional=False)), None)
    if moment is not None:
        name, before = f"{moment.noun}_reminder", f"add_days(date({row}.{moment.name}), -3)"
        words = f"Day on which people are reminded of the {moment.words}."
        rule = {
            "id": f"{name}_in_time",
            "entity": row,
            "that": f"{row}.{name} <= date({row}.{moment.name})",
            "text": f"The reminder comes no later than the {moment.words}.",
        }
        found.append((_field(entity, name, "date", words, before), rule))
    if not found:
        shown = entity.title.name if entity.title else entity.key
        made = f"concat('Folder ', {row}.{shown})"
        found.append((_field(entity, "folder", "string", "Where its papers lie.", made), None))
    return [pair for pair in found if pair[0]["name"] not in entity.fields]


def _field(entity: Entity, name: str, type_: str, words: str, value: str) -> dict[str, Any]:
    return {
        "entity": entity.name,
        "name": name,
        "type": type_,
        "description": words,
        "value": value,
    }
