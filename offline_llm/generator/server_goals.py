"""What people could want of a server: a goal for each tool, its arguments seen or made up; and the
forms that a server asks for."""

import json
import re
from collections.abc import Iterator
from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.server.request import ChatRequest
from offline_llm.server.sampling import sample
from offline_llm.settings.settings import OfflineSettings

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PLAIN = re.compile(r"\d[\d.,:-]*\d|\d|[A-Z][\w-]+(?: [A-Z][\w-]+)*|\w{3,}")
_MADE_UP = {"phone": "555-0142", "email": "lena.berg@mail.example", "name": "Lena Berg"}
_MADE_UP |= {"city": "Salzburg", "date": "2026-03-09", "": "Bring the blue folder"}
"""Word of a parameter -> a value of its kind."""

_FIGURES = {"integer": 2, "number": 12.5, "boolean": True}
_READS = re.compile(r"^(?:get|list|read|show|find|search|look|count|all|what)", re.IGNORECASE)


def look_at_server(request: ChatRequest, settings: OfflineSettings) -> Any:
    """Calls what takes no argument, and searches with one letter."""
    calls = []
    for tool in json_of(sections(request), "tools", []):
        required = tool["input_schema"].get("required") or []
        if not required or (len(required) == 1 and _READS.match(tool["name"])):
            calls.append({"tool": tool["name"], "arguments": dict.fromkeys(required, "e")})
    return {"calls": calls[:10]}


def server_goals(request: ChatRequest, settings: OfflineSettings) -> Any:
    found = sections(request)
    pool: dict[str, list[Any]] = {}
    texts = list(json_of(found, "workspace", {}).items())
    texts += [("", one.get("answer", "")) for one in json_of(found, "answers", [])]
    for entity, text in texts:
        for name, value in _members(text):
            for key in (name, *(f"{word.rstrip('s')} {name}" for word in _words(entity))):
                pool.setdefault(key, []).append(value)
    tools = json_of(found, "tools", [])
    tried = json_of(found, "goals that are there already", [])
    tried += json_of(found, "goals that were not kept, and why", [])
    known = {one["calls"][0]["tool"] for one in tried}
    bare = [tool["name"] for tool in tools if not tool["input_schema"].get("required")]
    return {"goals": [_goal(t, pool, bare) for t in tools if t["name"] not in known][:8]}


def _goal(tool: dict[str, Any], pool: dict[str, list[Any]], bare: list[str]) -> dict[str, Any]:
    schema = tool["input_schema"]
    members = schema.get("properties") or {}
    arguments = {
        name: _argument(name, members.get(name) or {}, pool, tool["name"])
        for name in schema.get("required") or []
    }
    said = [
        {"value": value, "label": " ".join(_words(name))}
        for name, value in arguments.items()
        if isinstance(value, str | int | float)
    ]
    what = tool["description"].split(". ")[0].strip().rstrip(".") or tool["name"]
    values = ", ".join(f"{one['label']} {json.dumps(one['value']).strip(chr(34))}" for one in said)
    call = {"tool": tool["name"], "arguments": arguments}
    reads = _READS.match(tool["name"]) is not None
    return {
        "goal": f"{what}: {values}." if values else f"{what}.",
        "form": "plain",
        "calls": [call],
        "said": said,
        "told": [{"call": 0, "label": "what it shows"}] if reads else [],
        "seen_by": [] if reads else [{"tool": name, "arguments": {}} for name in bare[:2]],
        "twin": {"before": [], "calls": []},
    }


def _argument(name: str, schema: dict[str, Any], pool: dict[str, list[Any]], tool: str) -> Any:
    """A value that was seen under the name, or under its last word, or one of the kind."""
    words, kind = _words(name), schema.get("type", "string")
    about = [f"{word} {name}" for word in _words(tool)] + [f"{word} name" for word in words]
    for key in (*about, "_".join(words), words[-1], *words):
        for value in pool.get(key, ()):
            if isinstance(value, str) == (kind == "string"):
                return value
    if kind != "string" or "enum" in schema:
        return _FIGURES.get(kind, sample(schema, name))
    return next((_MADE_UP[word] for word in (*words, "") if word in _MADE_UP), name)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)] or [name]


def _members(text: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """(name, plain value) of what is JSON in a text or in parts of it."""
    if isinstance(text, str) and not key:
        try:
            yield from _members(
                json.loads(text.partition(" [")[0] if " more char" in text else text)
            )
        except ValueError:
            return
    elif isinstance(text, dict):
        for name, value in text.items():
            yield from [("name", name)] if isinstance(value, dict) and not name.isdigit() else []
            yield from _members(value, "_".join(_words(name)))
    elif isinstance(text, list):
        for value in text:
            yield from _members(value, key or "entry")
    elif isinstance(text, str | int | float) and not isinstance(text, bool):
        yield key, text


def read_goals(request: ChatRequest, settings: OfflineSettings) -> Any:
    """What the answers tell that the goals do not say, and whether one came to nothing."""
    read = []
    for one in json_of(sections(request), "goals", []):
        texts = [str(call["answer"]) for call in one["calls"]]
        told = [_piece(texts[place["call"]], one["goal"]) for place in one["told"]]
        fault = (
            "An answer is an error." if any(t.lower().startswith("error") for t in texts) else ""
        )
        read.append({"number": one["number"], "fault": fault, "told": told, "other_fits": False})
    return {"goals": read}


def _piece(answer: str, goal: str) -> str:
    """The first number, name or word of the answer that the goal does not have, numbers first."""
    names = {word for key, _ in _members(answer) for word in key.split("_")}
    pieces = [p for p in _PLAIN.findall(answer) if p.lower() not in goal.lower() and p not in names]
    return next(iter(sorted(pieces, key=lambda piece: not piece[0].isdigit())), "")


def fill_in_form(request: ChatRequest, settings: OfflineSettings) -> Any:
    """A form that a server asks for, filled in with what the person knows, else declined."""
    found = sections(request)
    known = dict(re.findall(r"^- (.+?): (.+)$", found.get("what you know", ""), re.MULTILINE))
    schema = json_of(found, "form", {}).get("requestedSchema") or {}
    content: dict[str, Any] = {}
    for name, member in (schema.get("properties") or {}).items():
        wanted = {*_words(name), *_words(member.get("title") or "")}
        fits = [value for label, value in known.items() if wanted & {*_words(label)}]
        if fits:
            is_text = member.get("type", "string") == "string"
            content[name] = fits[0] if is_text else json.loads(fits[0].lower())
    if all(name in content for name in schema.get("required") or []) and content:
        return {"action": "accept", "content": content}
    return {"action": "decline", "content": {}}
