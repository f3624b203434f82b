"""Generator, job `world_sketch`: a domain for tools that come without one, from their own words.

Nouns of the tools' names become entities, parameters their fields, and each entity gets a few rows.
"""

import re
from random import Random
from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.reading.words import table
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of
from tool_specs.toolsets.nouns import GENERIC, asked_by, subject_of

_MAX_ENTITIES, _MAX_FIELDS, _ROWS = 5, 9, 6
_NAME = re.compile(r"[^a-z0-9]+")
_KINDS = {"integer": "integer", "number": "number", "boolean": "boolean", "string": "string"}
_LEFT_OUT = frozenset(table(
    "args arguments body cursor fields filter filters format headers id include limit offset"
    " options page params payload per_page query sort sort_by token"
))  # fmt: skip
_STATUS = ("open", "done", "archived")
_FIRST = table("amber birch cedar delta ember fjord grove harbor indigo juniper")
_SECOND = table("north summit review launch report draft archive weekly central pilot")


def write_environment(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    found = sections(request)
    source, tools = json_of(found, "source", {}), json_of(found, "tools", [])
    rng = rng_of(request.key, "world")
    nouns = _nouns(tools)
    entities = {noun: _entity(noun, nouns[noun], list(nouns)) for noun in nouns}
    seed: dict[str, list[dict[str, Any]]] = {}
    for name, entity in entities.items():
        seed[name] = [_row(entity, number, seed, rng) for number in range(_ROWS)]
    title = " ".join(str(source.get("server", "tools")).replace("/", " ").split("_")).strip()
    return {
        "title": f"{title[:60]}",
        "description": f"The records that the tools of {title[:80]} work on.",
        "now": "2026-03-02T09:00:00",
        "entities": entities,
        "seed": seed,
        "rules": [],
    }


def _nouns(tools: list[dict[str, Any]], server: str = "") -> dict[str, dict[str, Any]]:
    """Entity -> parameters about it, the nouns that most tools speak of first."""
    found: dict[str, dict[str, Any]] = {}
    spoken: dict[str, int] = {}
    for tool in tools:
        subject = _name(subject_of(str(tool["name"]), server).noun)
        if not subject or subject in GENERIC:
            continue
        spoken[subject] = spoken.get(subject, 0) + 1
        about = found.setdefault(subject, {})
        members = (tool.get("input_schema") or {}).get("properties") or {}
        for param, schema in members.items():
            asked = asked_by(param, subject.replace("_", " "))
            other = _name(asked.noun)
            if asked.is_id and other and other != subject:
                spoken[other] = spoken.get(other, 0) + 1
                found.setdefault(other, {})
            if isinstance(schema, dict):
                about.setdefault(param, schema)
    ranked = sorted(found, key=lambda noun: (-spoken[noun], noun))[:_MAX_ENTITIES]
    return {noun: found[noun] for noun in ranked} or {"record": {}}


def _name(noun: str) -> str:
    words = _NAME.sub("_", noun.lower()).strip("_")[:40]
    return words if re.fullmatch(r"[a-z][a-z0-9_]*", words) and words != "args" else ""


def _entity(noun: str, params: dict[str, Any], nouns: list[str]) -> dict[str, Any]:
    key = f"{noun}_id"
    fields: dict[str, Any] = {key: {"type": "string"}, "name": {"type": "string"}}
    for param, schema in params.items():
        name, asked = _name(param), asked_by(param, noun.replace("_", " "))
        other = _name(asked.noun)
        if not name or name in fields or name in _LEFT_OUT or len(fields) >= _MAX_FIELDS:
            continue
        if asked.is_id:
            # only what stands before it in the list, so that its rows are there to point at
            if other in nouns[: nouns.index(noun)]:
                fields[name] = {"type": "ref", "to": other, "optional": True}
            continue
        values = [v for v in schema.get("enum") or () if isinstance(v, str) and v]
        kind = schema.get("type")
        if values and len(values) == len(set(values)):
            fields[name] = {"type": "enum", "values": values[:20], "optional": True}
        elif isinstance(kind, str) and kind in _KINDS:
            fields[name] = {"type": _KINDS[kind], "optional": True}
    if "status" not in fields and "state" not in fields:
        fields["status"] = {"type": "enum", "values": list(_STATUS)}
    prefix = "".join(word[0] for word in noun.split("_")).upper()
    return {"key": key, "prefix": f"{prefix}{noun[1:2].upper()}-", "fields": fields}


def _row(
    entity: dict[str, Any], number: int, seed: dict[str, list[dict[str, Any]]], rng: Random
) -> dict[str, Any]:
    row: dict[str, Any] = {entity["key"]: f"{entity['prefix']}{1001 + number}"}
    for name, spec in entity["fields"].items():
        if name == entity["key"]:
            continue
        kind = spec["type"]
        if kind == "ref":
            rows = seed[spec["to"]]
            row[name] = next(iter(rng.choice(rows).values()))
        elif kind == "enum":
            row[name] = rng.choice(spec["values"])
        elif kind == "boolean":
            row[name] = rng.random() < 0.5
        elif kind in ("integer", "number"):
            row[name] = rng.randint(1, 90)
        elif name == "name":
            row[name] = f"{_FIRST[number % len(_FIRST)]}-{rng.choice(_SECOND)}"
        elif rng.random() < 0.7:
            row[name] = f"{rng.choice(_FIRST)} {rng.choice(_SECOND)}"
    return row
