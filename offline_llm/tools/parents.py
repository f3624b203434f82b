"""Tools that a request gives as parents, taken apart so that operators can work on them."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from offline_llm.reading.words import sentences
from offline_llm.tools.draft import REFUSES, Impossible, ToolDraft
from offline_llm.tools.outline import Entity, Outline

Change = Callable[[ToolDraft], ToolDraft]
"""Makes the draft of a parent that of its child; Impossible where it does not fit."""

WRITES = ("create", "update", "delete", "link", "unlink")


class Subject(NamedTuple):
    """The row that a tool is about: read by an id that the caller gives."""

    entity: Entity
    row: str
    param: str
    place: int
    """Index of the statement that reads it."""


def draft_of(outline: Outline, tool: dict[str, Any]) -> ToolDraft:
    """The tool as a draft that can be changed. Raises Impossible for one without a plain return."""
    steps = [dict(step) for step in tool.get("semantics") or ()]
    if not steps or steps[-1].get("op") != "return":
        raise Impossible
    head, _, tail = str(tool["description"]).partition(REFUSES)
    said = sentences(head) or [head]
    d = ToolDraft(outline, str(tool["name"]), said[0])
    d.notes = [s for s in said[1:] if not s.startswith("Returns")]
    d.refusals = tail.rstrip(". ").split("; ") if tail else []
    d.params = {p["name"]: dict(p) for p in tool.get("params") or ()}
    d.value = {e["name"]: e["value"] for e in steps[-1].get("value") or ()}
    if "" in d.value:
        raise Impossible
    d.steps = steps[:-1]
    loops = {s["as"] for s in d.steps if s["op"] == "for_each"}
    d.lists = {s["as"] for s in d.steps if "as" in s and ("where" in s or s.get("in") in loops)}
    return d


def subject_of(d: ToolDraft, *, looped: bool = False) -> Subject | None:
    """What the tool is about, where that is one row; `looped` also takes each of several."""
    turns = {
        s["as"]: str(s["over"]).removeprefix("args.")
        for s in d.steps
        if looped and s["op"] == "for_each" and str(s["over"]).startswith("args.")
    }
    for place, step in enumerate(d.steps):
        key = str(step.get("key", ""))
        name = turns.get(key, key.removeprefix("args.") if key.startswith("args.") else "")
        known = d.params.get(name, {}).get("ref") and step.get("in") == (
            key if key in turns else None
        )
        if step["op"] == "read" and known and (entity := d.outline.entities.get(step["entity"])):
            return Subject(entity, step["as"], name, place)
    return None


def listing_of(d: ToolDraft) -> tuple[int, Entity] | None:
    """The one read of several rows, and of what."""
    places = [i for i, s in enumerate(d.steps) if s["op"] == "read" and "key" not in s]
    if len(places) != 1 or "in" in d.steps[places[0]]:
        return None  # to narrow one of several reads would make the answer contradict itself
    entity = d.outline.entities.get(d.steps[places[0]]["entity"])
    return (places[0], entity) if entity else None


def loops(d: ToolDraft) -> bool:
    return any(step["op"] == "for_each" for step in d.steps)


def writes(d: ToolDraft) -> bool:
    return any(step["op"] in WRITES for step in d.steps)


def before_writing(d: ToolDraft, add: Callable[[], None]) -> None:
    """Runs `add` so that its statements stand before the first that writes, or that loops over
    rows which are not the subject's."""
    subject = subject_of(d, looped=True)
    inside = d.steps[subject.place].get("in") if subject else None
    start = subject.place if subject and inside else 0
    ops = WRITES if inside else (*WRITES, "for_each")
    place = next((i for i, s in enumerate(d.steps) if i >= start and s["op"] in ops), len(d.steps))
    rest = d.steps[place:]
    del d.steps[place:]
    d.inside = inside
    add()
    d.inside = None
    d.steps += rest


def free_name(d: ToolDraft, name: str) -> str:
    """The name for a binding, or another one where it is taken."""
    taken = {s.get("as") for s in d.steps}
    return name if name not in taken and name not in d.outline.entities else f"{name}_row"


def room_for(d: ToolDraft, name: str) -> str:
    """The name for a member of the answer. Raises Impossible where it is taken."""
    if any(n == name or n.startswith(f"{name}.") for n in d.value):
        raise Impossible
    return name


def named(d: ToolDraft, suffix: str) -> ToolDraft:
    """Under a name that says what is new. Raises Impossible where it would get too long."""
    d.name = f"{d.name}_{suffix}"
    if len(d.name) > 60 or d.name.count("_") > 8:
        raise Impossible
    return d


def tried(o: Outline, tool: dict, change: Change) -> Iterator[ToolDraft]:
    try:
        yield change(draft_of(o, tool))
    except Impossible:
        return


def also(d: ToolDraft, words: str) -> ToolDraft:
    """The first sentence, which also says this."""
    d.text = f"{d.text.rstrip('.')}{words}."
    return d


def main_row(d: ToolDraft, *, looped: bool = False) -> tuple[Entity, str]:
    subject = subject_of(d, looped=looped)
    if subject is None:
        raise Impossible
    ids = [p for p in d.params.values() if p.get("ref") and not p.get("optional")]
    if len(ids) > 1:
        raise Impossible  # words such as `its` would leave open which row is meant
    removed = any(s["op"] == "delete" and s["target"] == subject.row for s in d.steps)
    if removed:
        raise Impossible
    return subject.entity, subject.row


def fit_rows(d: ToolDraft, e: Entity, row: str) -> list[dict[str, Any]]:
    """Rows of the domain that are shown and are in a status that the tool asks for."""
    asked = " ".join(str(s["that"]) for s in d.steps if s["op"] == "require")
    if e.status is None or f"{row}.{e.status.name}" not in asked:
        return list(e.sample)
    return [r for r in e.sample if repr(r.get(e.status.name)) in asked]


def narrow(d: ToolDraft, place: int, term: str) -> None:
    where = d.steps[place].get("where")
    if not where:
        d.steps[place]["where"] = term
        return
    kept = f"({where})" if re.search(r"^[^()]* or ", where) else where
    d.steps[place]["where"] = f"{kept} and ({term})"
