"""Operator compose: two tools in one call, where what the first is about leads to the second."""

import re
from collections.abc import Iterator
from typing import Any

from offline_llm.tools.draft import Impossible, ToolDraft
from offline_llm.tools.outline import Outline
from offline_llm.tools.parents import (
    Subject,
    draft_of,
    listing_of,
    loops,
    narrow,
    subject_of,
    writes,
)

_LONGEST = 64


def composed(o: Outline, first: dict[str, Any], second: dict[str, Any]) -> Iterator[ToolDraft]:
    """The first, then the second on the same row or on one that it refers to."""
    for join in (_joined, _chained, _on_what_is_made):
        try:
            yield join(o, first, second)
        except Impossible:
            continue


def _on_what_is_made(o: Outline, first: dict[str, Any], second: dict[str, Any]) -> ToolDraft:
    """The second works on the row that the first makes."""
    d, b = draft_of(o, first), draft_of(o, second)
    made = [(i, s) for i, s in enumerate(d.steps) if s["op"] == "create" and "in" not in s]
    follow = subject_of(b)
    if len(made) != 1 or "as" not in made[0][1] or follow is None:
        raise Impossible
    place, step = made[0]
    if step["entity"] != follow.entity.name or any("where" in s for s in b.steps):
        raise Impossible  # nothing refers to a new row yet
    status = follow.entity.status
    if status is not None:  # a new row has its first status, for certain
        row = f"{follow.row}.{status.name}"
        sure = [s for s in b.steps if s["op"] == "require" and s["that"].startswith(row)]
        if any(repr(follow.entity.first) not in s["that"] for s in sure):
            raise Impossible
        b.steps = [s for s in b.steps if s not in sure]
        b.refusals = [r for r in b.refusals if not r.startswith(f"the {status.words} is not")]
    return _joint(o, d, b, Subject(follow.entity, step["as"], "", place), follow)


def _joined(o: Outline, first: dict[str, Any], second: dict[str, Any]) -> ToolDraft:
    d, b = draft_of(o, first), draft_of(o, second)
    lead, follow = subject_of(d), subject_of(b)
    if lead is None or _ids(d) > 1 or loops(d) or _undoes(d, b):
        raise Impossible
    return _joint(o, d, b, lead, follow)


def _joint(
    o: Outline, d: ToolDraft, b: ToolDraft, lead: Subject, follow: Subject | None
) -> ToolDraft:
    """The statements of both, the second's on the row of the lead or on one that it refers to."""
    if d.name == b.name or loops(d):
        raise Impossible
    if any(s["op"] == "delete" for s in [*d.steps, *b.steps]):
        raise Impossible
    if follow is None:
        same, words = _narrowed(o, lead, b)
        e = lead.entity
    else:
        e = follow.entity
        same, words = e.name == lead.entity.name, e.words
        if _ids(b) > 1 or any(s["op"] == "read" and s["entity"] == e.name for s in d.steps[1:]):
            raise Impossible  # it tells of that row already, or of two
    key = _flow(o, lead.entity.name, e.name, lead.row)
    if (
        key is None
        or len(d.name) + len(b.name) > _LONGEST
        or d.name.count("_") + b.name.count("_") > 8
    ):
        raise Impossible
    hidden = any("where" in s and s["entity"] == lead.row for s in b.steps)
    if hidden and (same or follow is None):
        raise Impossible  # the rows looked at would stand under the name of the lead's row
    d.name = f"{d.name}_and_{b.name}"
    new = {p: (f"{e.name}_{p}" if p in d.params else p) for p in b.params}
    binds = {s["as"]: f"then_{s['as']}" for s in b.steps if "as" in s}
    binds |= {f"{n}_next": f"{m}_next" for n, m in binds.items()}
    if same and follow is not None:
        binds[follow.row] = lead.row
    gone = follow.param if follow is not None else ""
    put = new | ({gone: key} if gone else {})
    steps = [_renamed(s, binds, put) for s in b.steps]
    known = set(d.value.values())
    if follow is not None:
        known.add(f"{binds[follow.row]}.{e.key}")
        if same:
            del steps[follow.place]
        else:
            steps[follow.place]["key"] = key
    shown = {n: _words(v, binds, put) for n, v in b.value.items()}
    shown = {n: v for n, v in shown.items() if v not in known}
    if not shown:
        raise Impossible
    d.params |= {new[n]: p | {"name": new[n]} for n, p in b.params.items() if n != gone}
    d.steps += [_at(s, lead.row) for s in steps]
    d.lists |= {binds[x] for x in b.lists if x in binds}
    taken = {n.split(".")[0] for n in d.value}
    d.value |= {f"then_{n}" if n.split(".")[0] in taken else n: v for n, v in shown.items()}
    phrase = b.text.rstrip(".")
    if follow is None:
        phrase += f", those of {words} alone"
    else:
        phrase = phrase.replace(e.one, f"the same {words}" if same else f"its {words}", 1)
    d.text = f"{d.text.rstrip('.')}, then {phrase[:1].lower()}{phrase[1:]}."
    d.notes += b.notes
    d.refusals += b.refusals
    return d


def _chained(o: Outline, first: dict[str, Any], second: dict[str, Any]) -> ToolDraft:
    """What the second does to one row, done to every row that the first finds fit for it."""
    d, b = draft_of(o, first), draft_of(o, second)
    found, follow = listing_of(d), subject_of(b)
    if found is None or follow is None or writes(d) or loops(b) or _ids(b) > 1:
        raise Impossible
    place, e = found
    others = [s for i, s in enumerate(b.steps) if i != follow.place]
    fit = {"require", "update"} >= {s["op"] for s in others} and follow.entity is e
    if not fit or not writes(b) or e.name in b.value or e.name in {s.get("as") for s in d.steps}:
        raise Impossible
    if any(s["op"] == "update" and s["target"] != follow.row for s in others):
        raise Impossible
    new = {p: (f"new_{p}" if p in d.params else p) for p in b.params}
    for step in others:
        test = _words(str(step.get("that", "true")), {follow.row: e.name}, new)
        if step["op"] == "require" and f"{e.name}." in test:
            narrow(d, place, test)
        elif step["op"] == "require":
            d.step(
                "require", that=test, error=step["error"], message=_words(step["message"], {}, new)
            )
    rows = d.steps[place]["as"]
    d.params |= {new[n]: p | {"name": new[n]} for n, p in b.params.items() if n != follow.param}
    d.require(f"exists({rows})", "none_found", f"No {e.words} fits.", f"no {e.words} fits")
    d.loop(rows, e.name)
    d.steps += [
        _renamed(s, {follow.row: e.name}, new) | {"in": e.name}
        for s in others
        if s["op"] == "update"
    ]
    d.done()
    if f"count({rows})" not in d.value.values():
        d.value["number_changed"] = f"count({rows})"
    verb = "_".join(part for part in b.name.split("_") if part not in e.name.split("_"))
    d.name = f"{d.name}_and_{verb}_{'of_each' if '_' in verb else 'them'}"
    if len(d.name) > _LONGEST or d.name.count("_") > 10 or verb.count("_") > 1:
        raise Impossible
    phrase = b.text.rstrip(".").replace(e.one, "each of them", 1)
    d.text = f"{d.text.rstrip('.')}, then {phrase[:1].lower()}{phrase[1:]}."
    d.notes += b.notes
    return d.told("Those that do not meet the conditions of the second step are left out")


_LEAD = "lead_row_of_the_first_tool"
"""Stands for the row of the first tool in a filter of the second, until bindings are renamed."""


def _at(step: dict[str, Any], row: str) -> dict[str, Any]:
    where = step.get("where")
    return step | {"where": where.replace(_LEAD, row)} if where else step


def _undoes(a: ToolDraft, b: ToolDraft) -> bool:
    """Whether the first changes what the second asks for, or both write the same field."""
    set_by = [{x["name"]: x["value"] for s in d.steps for x in s.get("set", ())} for d in (a, b)]
    asked = " ".join(str(s["that"]) for s in b.steps if s["op"] == "require")
    told = str(b.value)
    broken = any(f".{f} " in f"{asked} " and v not in asked for f, v in set_by[0].items())
    broken = broken or any(v.startswith("'") and f".{f} " in told for f, v in set_by[0].items())
    return broken or bool(set_by[0].keys() & set_by[1].keys())


def _narrowed(o: Outline, lead: Subject, b: ToolDraft) -> tuple[bool, str]:
    """A list as the second tool: of rows that belong to the row of the first, or with it."""
    found = listing_of(b)
    if found is None or writes(b) or loops(b) or _ids(b):
        raise Impossible
    place, listed = found
    for link in o.up(listed):
        if link.parent is lead.entity:
            test, words = f"{_LEAD}.{lead.entity.key}", f"that {lead.entity.words}"
        else:
            mine = [x for x in o.up(lead.entity) if x.parent is link.parent and x.plain]
            if not mine or mine[0].field.optional:
                continue
            test, words = f"{_LEAD}.{mine[0].field.name}", f"the same {link.parent.words}"
        if f"{listed.name}.{link.field.name}" not in str(b.steps[place].get("where")):
            narrow(b, place, f"{listed.name}.{link.field.name} == {test}")
            return True, words
    raise Impossible


def _ids(d: ToolDraft) -> int:
    """How many rows the caller names."""
    return sum(1 for p in d.params.values() if p.get("ref") and not p.get("optional"))


def _flow(o: Outline, first: str, second: str, row: str) -> str | None:
    """How the row of the first tool names the row of the second."""
    if first == second:
        return f"{row}.{o[first].key}"
    refs = [link.field for link in o.up(o[first]) if link.parent.name == second]
    return f"{row}.{refs[0].name}" if refs and not refs[0].optional else None


def _renamed(step: dict[str, Any], binds: dict[str, str], params: dict[str, str]) -> dict[str, Any]:
    """A statement with the bindings and parameters of its tool under their new names."""
    made = dict(step)
    own = {n: m for n, m in binds.items() if n != step.get("entity") or "where" not in step}
    for member in ("key", "where", "limit", "cursor", "that", "message", "to", "over"):
        if member in made:
            made[member] = _words(made[member], own if member == "where" else binds, params)
    for member in ("as", "in", "target"):
        if member in made:
            made[member] = binds.get(made[member], made[member])
    if "set" in made:
        made["set"] = [x | {"value": _words(x["value"], binds, params)} for x in made["set"]]
    return made


def _words(text: str, binds: dict[str, str], params: dict[str, str]) -> str:
    """Outside quotes; a binding stands alone or before a dot, a parameter behind `args.`. What
    takes the place of a parameter may be a field of a row."""

    def put(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found[0]
        if found["param"]:
            new = params.get(found["param"], found["param"])
            return new if "." in new else f"args.{new}"
        return binds.get(found["name"], found["name"])

    pattern = r"(?P<quoted>'[^']*')|args\.(?P<param>\w+)|(?<![.\w])(?P<name>[a-z_]\w*)(?!\w*\()"
    return re.sub(pattern, put, text)
