"""Operator broaden: the same action for several rows, for all of a kind, by more filters."""

import re
from collections.abc import Iterator

from offline_llm.tools.draft import Impossible, ToolDraft
from offline_llm.tools.english import plural
from offline_llm.tools.idea import optional, picked
from offline_llm.tools.outline import NUMBERS, Outline
from offline_llm.tools.parents import (
    also,
    draft_of,
    listing_of,
    loops,
    named,
    narrow,
    subject_of,
    tried,
    writes,
)


def broadened(o: Outline, tool: dict) -> Iterator[ToolDraft]:
    d = draft_of(o, tool)
    subject = subject_of(d)
    if subject is not None and not loops(d):
        if writes(d):
            yield from tried(o, tool, _for_several)
            for f in subject.entity.of("enum", "ref", optional=False):
                yield from tried(o, tool, lambda d, f=f: _for_all_with(d, f.name))
        else:
            yield from tried(o, tool, _of_several)
    elif (found := listing_of(d)) is not None and not loops(d):
        for f in found[1].of("enum", "ref", *NUMBERS, optional=False):
            yield from tried(o, tool, lambda d, f=f: _or_by(d, f.name))


def _for_several(d: ToolDraft) -> ToolDraft:
    subject = subject_of(d)
    assert subject is not None
    e, row = subject.entity, subject.row
    if any("where" in s for s in d.steps) or not d.name.count(e.name) or e.many in d.name:
        raise Impossible
    ids = d.ids_of(e, 15)
    del d.params[subject.param]
    d.params = {f"{e.name}_ids": d.params.pop(f"{e.name}_ids")} | d.params
    head, body = d.steps[: subject.place], d.steps[subject.place :]
    if any(s["op"] not in ("read",) for s in head):
        raise Impossible
    body = [{**s, "in": "each_id"} for s in body]
    body[0]["key"] = "each_id"
    d.steps = [*head, {"op": "for_each", "over": ids, "as": "each_id"}, *body]
    made = [s for s in body if s["op"] == "create"]
    d.value = {e.many: f"{row}.{e.key}", "number_done": f"count({row})"}
    if made and made[0].get("as"):
        c = d.outline[made[0]["entity"]]
        d.value["made"] = f"{made[0]['as']}.{c.key}"
    d.lists.add(row)
    d.text = d.text.replace(e.one, f"several {e.says}", 1)
    d.told("All are done or, when one is refused, none")
    d.name = f"bulk_{d.name}"
    return d


def _for_all_with(d: ToolDraft, field: str) -> ToolDraft:
    """Every row with one value of a field, instead of one row by its id."""
    subject = subject_of(d)
    assert subject is not None
    e, row, f = subject.entity, subject.row, subject.entity.fields[field]
    others = [
        s
        for s in d.steps
        if s["op"] not in ("update", "require") and s is not d.steps[subject.place]
    ]
    if (
        others
        or row != e.name
        or e.many in d.name
        or f"'{field}'" in str(d.steps)
        or field in d.params
    ):
        raise Impossible
    tests = [s["that"] for s in d.steps if s["op"] == "require" and row in s["that"]]
    kept = [s for s in d.steps if s["op"] == "require" and row not in s["that"]]
    updates = [s for s in d.steps if s["op"] == "update"]
    if any(s["target"] != row for s in updates):
        raise Impossible
    del d.params[subject.param]
    value = d.of_field(
        f, words=f"The {f.words} of the {e.says} that are meant" if f.type != "ref" else ""
    )
    if any(f"args.{p}" not in str([*kept, *updates, *tests]) for p in d.params if p != f.name):
        raise Impossible
    d.steps, d.refusals = kept, d.refusals[: len(kept)]
    terms = [f"{e.name}.{field} == {value}", *(f"({t})" if " or " in t else t for t in tests)]
    d.rows(e, " and ".join(terms), "meant")
    d.require("exists(meant)", "none_meant", f"No {e.words} with that {f.words} is ready for this.")
    d.loop("meant", e.name)
    d.steps += [{**s, "in": e.name} for s in updates]
    d.done()
    changed = list(dict.fromkeys(x["name"] for s in updates for x in s["set"]))[:3]
    d.value = {e.many: picked("meant", [e.key, *changed]), "changed": "count(meant)"}
    d.text = d.text.replace(
        e.one, f"every {e.words} {'of' if f.type == 'ref' else 'with'} one {f.words}", 1
    ).replace(" its ", " their ")
    d.notes = []
    d.told(f"Those of the {e.says} that do not meet the conditions are left alone")
    d.name = f"{d.name.replace(e.name, e.many, 1)}_by_{f.noun}"
    return d


def _of_several(d: ToolDraft) -> ToolDraft:
    """A read of one row as a read of up to ten."""
    subject = subject_of(d)
    assert subject is not None
    e, row = subject.entity, subject.row
    if len(d.steps) > 1 or e.many in d.name or e.name not in d.name:
        raise Impossible
    plain = {n: v for n, v in d.value.items() if re.fullmatch(rf"{row}\.\w+", v)}
    if len(plain) < 2:
        raise Impossible
    used = {p for p in d.params if p != subject.param}
    if used:
        raise Impossible
    ids = d.ids_of(e, 10)
    del d.params[subject.param]
    d.steps = []
    d.loop(ids, "each_id")
    d.row(e, "each_id", bind=row)
    d.done()
    d.value = {e.many: picked(row, list(dict.fromkeys(v.split(".")[1] for v in plain.values())))}
    d.value["number_found"] = f"count({row})"
    d.text = d.text.replace(e.one, f"several {e.says}", 1)
    d.name = f"bulk_{d.name}"
    return d


def _or_by(d: ToolDraft, field: str) -> ToolDraft:
    found = listing_of(d)
    assert found is not None
    place, e = found
    f = e.fields[field]
    if f"args.{field}" in str(d.steps) or f"{e.name}.{field} " in str(d.steps[place].get("where")):
        raise Impossible
    if f.type in NUMBERS:
        least = d.of_field(
            f, name=f"least_{f.noun}", optional=True, words=f"Only those of at least this {f.words}"
        )
        most = d.of_field(
            f, name=f"most_{f.noun}", optional=True, words=f"Only those of at most this {f.words}"
        )
        narrow(d, place, optional(least, f"{e.name}.{field} >= {least}"))
        narrow(d, place, optional(most, f"{e.name}.{field} <= {most}"))
        also(d, f", also within bounds of the {f.words}")
        return named(d, f"within_{f.noun}")
    items = {"items": "ref", "ref": f.to} if f.type == "ref" else {"items": f.type}
    values = list(f.values) or None
    anyof = d.param(
        f"{f.noun}_any_of",
        "array",
        f"Only those whose {f.words} is one of these",
        values=values,
        optional=True,
        min=1,
        max=5,
        **items,
    )
    narrow(d, place, optional(anyof, f"{e.name}.{field} in {anyof}"))
    also(d, f", also for several values of the {f.words} at once")
    return named(d, f"for_several_{plural(f.noun)}")
