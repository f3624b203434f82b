"""Job `rules`: policy rules that turn on what a row of the domain says, of one tool each."""

from collections.abc import Iterator
from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import seen
from offline_llm.tools.outline import Entity, Outline
from offline_llm.tools.parents import WRITES


def write_rules(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    """At most `count` rules, of different tools; none where a request asks to mend some."""
    found = sections(request)
    if "problems" in found:
        return {"rules": []}
    outline = Outline(json_of(found, "domain", {}))
    tools = [t for t in json_of(found, "tools", []) if isinstance(t, dict)]
    count = int(json_of(found, "wanted", {}).get("count") or 0)
    chosen: dict[str, dict[str, str]] = {}
    for tool in tools:
        rule = next((r for r in _rules(outline, tool) if r["id"] not in chosen), None)
        if rule is not None and len(chosen) < count:
            chosen[rule["id"]] = rule
    return {"rules": list(chosen.values())}


def _rules(outline: Outline, tool: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Of a tool that writes: do not call it for rows of one kind."""
    if not any(step.get("op") in WRITES for step in tool.get("semantics") or ()):
        return
    for param in tool.get("params") or ():
        entity = outline.entities.get(str(param.get("ref", "")))
        if entity is None or param["type"] != "string" or param.get("optional"):
            continue
        for field, value in _kinds(entity):
            says, it = entity.says, spaced(field)
            yield {
                "id": f"no_{tool['name']}_where_{field}_is_{value}".lower()[:64].strip("_"),
                "text": f"Do not {spaced(tool['name'])} for {says} whose {it} is "
                f"{spaced(value)}; tell the person to ask the office.",
                "tool": str(tool["name"]),
                "forbids": f"lookup('{entity.name}', args.{param['name']}).{field} == '{value}'",
            }


def _kinds(entity: Entity) -> Iterator[tuple[str, str]]:
    """Fields with several values among the rows that are shown, and one of these; not the status,
    which tools look at themselves."""
    for field in entity.of("enum", optional=False):
        values = seen(entity, field)
        if field != entity.status and len(values) > 1:
            yield field.name, str(values[-1])
