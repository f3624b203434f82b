"""Job `jobs`: what comes by itself in a domain, moves of lifecycles that need nothing."""

from collections.abc import Iterator
from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from offline_llm.tools.outline import EntityMove, Outline


def write_jobs(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    """At most `count` jobs, of different entities; none where a request asks to mend some."""
    found = sections(request)
    if "problems" in found:
        return {"jobs": []}
    count = int(json_of(found, "wanted", {}).get("count") or 0)
    return {"jobs": list(_jobs(Outline(json_of(found, "domain", {}))))[:count]}


def _jobs(outline: Outline) -> Iterator[dict[str, Any]]:
    """Of each entity the last move that needs nothing and changes no other row: it comes half an
    hour later where it can be made."""
    for entity in outline:
        moves = [m for m in entity.moves if not (m.needs or m.effects or m.takes)]
        if moves and f"{moves[-1].name}_due_at" not in entity.fields:
            yield _job(moves[-1])


def _job(move: EntityMove) -> dict[str, Any]:
    row, due = move.entity.name, f"{move.name}_due_at"
    changes = {**move.stamped, due: "null"}
    return {
        "name": f"{move.name}_comes_by_itself"[:64],
        "text": f"By itself, {move.doing(move.entity.says)} when the moment for it has come.",
        "entity": row,
        "fields": [
            {
                "name": due,
                "description": "When it comes by itself.",
                "value": f"if({move.test}, add_minutes(now(), 30), null)",
            }
        ],
        "where": move.test,
        "due": f"{row}.{due}",
        "do": [
            {
                "op": "update",
                "target": row,
                "set": [{"name": name, "value": value} for name, value in changes.items()],
            }
        ],
    }
