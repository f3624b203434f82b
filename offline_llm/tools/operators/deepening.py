"""Operator deepen: the tool does more of its job in the same call, and tells more."""

from collections.abc import Iterator

from offline_llm.tools.draft import Impossible, ToolDraft
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import brief, optional, picked
from offline_llm.tools.logic import mentions
from offline_llm.tools.outline import MOMENTS, NUMBERS, Outline
from offline_llm.tools.parents import (
    also,
    draft_of,
    free_name,
    listing_of,
    loops,
    main_row,
    named,
    narrow,
    room_for,
    subject_of,
    tried,
    writes,
)


def deepened(o: Outline, tool: dict) -> Iterator[ToolDraft]:
    d = draft_of(o, tool)
    if (each := subject_of(d, looped=True)) is not None and writes(d):
        for f in each.entity.of("string", "enum", "boolean", *NUMBERS):
            if f.name not in each.entity.stamps and not mentions(o, each.entity, f.name):
                yield from tried(o, tool, lambda d, f=f: _and_update(d, f.name))
    subject = subject_of(d)
    if subject is not None:
        for link in o.up(subject.entity):
            if link.parent is not subject.entity and not link.field.optional:
                yield from tried(o, tool, lambda d, link=link: _with_parent(d, link.field.name))
        for link in o.down(subject.entity):
            yield from tried(o, tool, lambda d, link=link: _with_children(d, link))
    elif not writes(d) and (found := listing_of(d)) is not None:
        yield from tried(o, tool, _by_page)
        for f in found[1].of("enum", "boolean", "ref"):
            yield from tried(o, tool, lambda d, f=f: _with_breakdown(d, f.name))
        for f in found[1].of(*NUMBERS, optional=False):
            yield from tried(o, tool, lambda d, f=f: _with_totals(d, f.name))


def _with_parent(d: ToolDraft, ref: str) -> ToolDraft:
    e, row = main_row(d)
    p = d.outline[e.fields[ref].to]
    noun = e.fields[ref].noun
    above = f"{noun}_above"
    if any(s.get("entity") == p.name for s in d.steps):
        raise Impossible
    d.row(p, f"{row}.{ref}", bind=above)
    siblings = free_name(d, f"{noun}_{e.many}")
    d.rows(e, f"{e.name}.{ref} == {above}.{p.key}", siblings)
    d.value[room_for(d, noun)] = picked(above, brief(d.outline, p, f"deep:{d.name}"))
    d.value[f"{e.name}_count"] = f"count({siblings})"
    also(d, f", and show the {spaced(noun)} that it belongs to")
    d.told(f"Counts all {e.says} of that {spaced(noun)} as well")
    return named(d, f"and_show_{noun}")


def _with_children(d: ToolDraft, link: object) -> ToolDraft:
    e, row = main_row(d)
    c, f = link.child, link.field  # type: ignore[attr-defined]
    if any(s.get("entity") == c.name for s in d.steps):
        raise Impossible
    limit = d.param(
        f"{c.name}_limit",
        "integer",
        f"Most {c.says} to show",
        min=1,
        max=20,
        default=5,
        optional=True,
    )
    when = c.of(*MOMENTS, optional=False)
    d.rows(
        c,
        f"{c.name}.{f.name} == {row}.{e.key}",
        c.many,
        order_by=[f"-{when[0].name}"] if when else None,
        limit=limit,
    )
    d.value[room_for(d, c.many)] = picked(c.many, brief(d.outline, c, f"deep:{d.name}"))
    if numbers := c.of(*NUMBERS, optional=False):
        d.value[f"{c.name}_{numbers[0].name}"] = f"sum({c.many}.{numbers[0].name})"
    also(d, f", and show {'the latest of ' if when else ''}its {c.says}")
    return named(d, f"and_show_{c.many}")


def _and_update(d: ToolDraft, field: str) -> ToolDraft:
    e, row = main_row(d, looped=True)
    f = e.fields[field]
    if "_and_note_" in d.name:
        raise Impossible
    updates = [s for s in d.steps if s["op"] == "update" and s["target"] == row]
    if not updates or field in d.params or any(x["name"] == field for x in updates[-1]["set"]):
        raise Impossible
    reads_it = f"{row}.{field}"
    later = d.steps[d.steps.index(updates[-1]) :]
    if any(reads_it in str(s) for s in later):
        raise Impossible
    value = d.of_field(
        f,
        optional=True,
        words=f"New {f.words} of the {e.words}; left out, it stays"
        if f.type not in ("ref", "string")
        else "",
    )
    updates[-1]["set"] = [
        *updates[-1]["set"],
        {"name": field, "value": f"coalesce({value}, {reads_it})"},
    ]
    d.value[room_for(d, field)] = reads_it
    also(d, f", and note a new {f.words} if there is one")
    return named(d, f"and_note_{f.noun}")


def _by_page(d: ToolDraft) -> ToolDraft:
    found = listing_of(d)
    assert found is not None
    step = d.steps[found[0]]
    if "limit" in step or loops(d) or writes(d):
        raise Impossible
    most = d.param(
        "limit", "integer", "Most rows of a page", min=1, max=50, default=10, optional=True
    )
    after = d.param("cursor", "string", "The next_cursor of the page before", optional=True)
    step |= {"limit": most, "cursor": after}
    d.value[room_for(d, "next_cursor")] = f"{step['as']}_next"
    if f"count({step['as']})" not in d.value.values():
        d.value[room_for(d, "on_this_page")] = f"count({step['as']})"
    also(d, ", page by page")
    return named(d, "by_page")


def _with_breakdown(d: ToolDraft, field: str) -> ToolDraft:
    found = listing_of(d)
    assert found is not None
    place, e = found
    bind, f = d.steps[place]["as"], e.fields[field]
    d.value[f"by_{f.noun}"] = f"tally({bind}.{field})"
    if f.type != "ref" and f"args.{field}" not in str(d.steps):
        param = d.of_field(f, optional=True, words=f"Only {e.says} with this {f.words}")
        narrow(d, place, optional(param, f"{e.name}.{field} == {param}"))
    also(d, f", with a count for each {f.words}")
    return named(d, f"with_{f.noun}_counts")


def _with_totals(d: ToolDraft, field: str) -> ToolDraft:
    found = listing_of(d)
    assert found is not None
    place, e = found
    bind, f = d.steps[place]["as"], e.fields[field]
    if f"({bind}.{field})" in str(d.value) or f"least_{f.noun}" in d.params:
        raise Impossible
    param = d.of_field(
        f,
        name=f"least_{f.noun}",
        optional=True,
        words=f"Only {e.says} with at least this {f.words}",
    )
    narrow(d, place, optional(param, f"{e.name}.{field} >= {param}"))
    d.value |= {
        f"{f.name}_sum": f"sum({bind}.{field})",
        f"{f.name}_average": f"average({bind}.{field})",
    }
    also(d, f", with the sum and average of their {f.words}")
    return named(d, f"with_{f.noun}_figures")
