"""Operator compose: two tools in one call, where what the first is about leads to the second."""

import re
from collections.abc import Iterator
from typing import Any

from synth.offline.tools.draft import Draft, Impossible
from synth.offline.tools.outline import Outline
from synth.offline.tools.parents import draft_of, loops, subject_of, writes

_LONGEST = 60


def composed(o: Outline, first: dict[str, Any], second: dict[str, Any]) -> Iterator[Draft]:
    """The first, then the second on the same row or on one that it refers to."""
    try:
        yield _joined(o, first, second)
    except Impossible:
        return


def _joined(o: Outline, first: dict[str, Any], second: dict[str, Any]) -> Draft:
    a, b = draft_of(o, first), draft_of(o, second)
    lead, follow = subject_of(a), subject_of(b)
    if a.name == b.name or _ids(a) > 1 or _ids(b) > 1:
        raise Impossible
    if follow and any(s["op"] == "read" and s["entity"] == follow.entity.name for s in a.steps[1:]):
        raise Impossible  # it tells of that row already
    if lead is None or follow is None or (writes(a) and writes(b)) or loops(a):
        raise Impossible
    if any(s["op"] == "delete" for s in [*a.steps, *b.steps]):
        raise Impossible
    key = _flow(o, lead.entity.name, follow.entity.name, lead.row)
    if key is None:
        raise Impossible
    d = a
    d.name = f"{a.name}_and_{b.name}"
    if len(d.name) > _LONGEST or d.name.count("_and_") > 1 or d.name.count("_") > 9:
        raise Impossible
    new = {p: (f"{follow.entity.name}_{p}" if p in a.params else p) for p in b.params}
    binds = {s["as"]: f"then_{s['as']}" for s in b.steps if "as" in s}
    binds |= {f"{n}_next": f"{m}_next" for n, m in binds.items()}
    same = follow.entity.name == lead.entity.name
    if same:
        binds[follow.row] = lead.row
    steps = [_renamed(s, binds, new) for s in b.steps]
    if same:
        del steps[follow.place]
    else:
        steps[follow.place]["key"] = key
    d.params |= {new[n]: p | {"name": new[n]} for n, p in b.params.items() if n != follow.param}
    shown = {n: _words(v, binds, new) for n, v in b.value.items()}
    known = {*d.value.values(), f"{binds[follow.row]}.{follow.entity.key}"}
    shown = {n: v for n, v in shown.items() if v not in known}
    if not shown:
        raise Impossible
    d.steps += steps
    d.lists |= {binds[x] for x in b.lists if x in binds}
    taken = {n.split(".")[0] for n in d.value}
    d.value |= {f"then_{n}" if n.split(".")[0] in taken else n: v for n, v in shown.items()}
    e = follow.entity
    phrase = b.text.rstrip(".").replace(
        e.one, f"the same {e.words}" if same else f"its {e.words}", 1
    )
    d.text = f"{d.text.rstrip('.')}, then {phrase[:1].lower()}{phrase[1:]}."
    d.notes += b.notes
    d.refusals += b.refusals
    return d


def _ids(d: Draft) -> int:
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
    """Outside quotes; a binding stands alone or before a dot, a parameter behind `args.`."""

    def put(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found[0]
        if found["param"]:
            return f"args.{params.get(found['param'], found['param'])}"
        return binds.get(found["name"], found["name"])

    pattern = r"(?P<quoted>'[^']*')|args\.(?P<param>\w+)|(?<![.\w])(?P<name>[a-z_]\w*)(?!\w*\()"
    return re.sub(pattern, put, text)
