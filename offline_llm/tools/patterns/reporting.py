"""Patterns that reckon over rows: overviews, totals, tallies, comparisons, time and room left."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label, parent_label
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import (
    Idea,
    Ideas,
    amount,
    both,
    brief,
    in_given,
    live_test,
    optional,
    pick_of,
    picked,
)
from offline_llm.tools.outline import MOMENTS, Entity, EntityLink, Outline


def ideas(o: Outline) -> Ideas:
    for e in o:
        yield Idea("get", e.name, partial(_get, o, e))
        yield Idea("board", e.name, partial(_board, o, e))
        yield Idea("trace", e.name, partial(_trace, o, e))
        yield Idea("file", e.name, partial(_file, o, e))
    for link in o.links:
        if link.child is not link.parent:
            yield Idea("summary", link.parent.name, partial(_summary, o, link))
            yield Idea("per_parent", link.child.name, partial(_per_parent, o, link))
            yield Idea("share", link.parent.name, partial(_share, o, link))


def _get(o: Outline, e: Entity) -> ToolDraft:
    verb = pick_of(o, f"get:{e.name}", ("get", "show", "look_up", "get"))
    d = ToolDraft(
        o, f"{verb}_{e.name}", f"{verb.replace('_', ' ')} {e.one} with everything recorded about it"
    )
    row = d.row(e)
    d.answer(**{f.name: f"{row}.{f.name}" for f in e.fields.values()})
    for link in o.up(e)[:2]:
        if link.parent is not e and not link.field.optional:
            name = link.field.noun + ("_name" if link.field.noun in d.value else "")
            d.answer(**{name: parent_label(o, link.field, row)})
    for link in o.down(e)[:1]:
        d.rows(link.child, f"{link.child.name}.{link.field.name} == {row}.{e.key}", link.child.many)
        d.answer(**{f"{link.child.name}_count": f"count({link.child.many})"})
    return d


def _board(o: Outline, e: Entity) -> ToolDraft:
    if e.status is None:
        raise Impossible
    d = ToolDraft(
        o, f"get_{e.name}_board", f"Show how many {e.says} there are in each {e.status.words}"
    )
    ups = [
        link for link in o.up(e) if link.plain and link.parent is not e and not link.field.optional
    ]
    terms = []
    if ups:
        param = d.id_of(ups[0].parent, optional=True)
        terms = [optional(param, f"{e.name}.{ups[0].field.name} == {param}")]
        d.told(f"Counts those of one {ups[0].parent.words} where its id is given")
    number = amount(e)
    for status in [*e.live, *e.ends][:5]:
        d.rows(e, both(*terms, f"{e.name}.{e.status.name} == '{status}'"), f"{status}_rows")
        d.answer(**{status: {"count": f"count({status}_rows)"}})
        if number:
            d.value[status][number.name] = f"sum({status}_rows.{number.name})"
    return d


def _trace(o: Outline, e: Entity) -> ToolDraft:
    chains = [
        (link, further)
        for link in o.up(e)
        for further in o.up(link.parent)
        if link.parent is not e and further.parent not in (e, link.parent)
    ]
    chains = [c for c in chains if not (c[0].field.optional or c[1].field.optional)]
    if not chains:
        raise Impossible
    link, further = chains[0]
    p, g = link.parent, further.parent
    d = ToolDraft(o, f"trace_{e.name}_to_{g.name}", f"Follow {e.one} up to the {g.words} behind it")
    row = d.row(e)
    d.row(p, f"{row}.{link.field.name}", bind="above")
    d.row(g, f"above.{further.field.name}", bind="top")
    return d.answer(
        **{
            e.name: picked(row, brief(o, e, "trace")),
            p.name: picked("above", brief(o, p, "trace")),
            g.name: picked("top", brief(o, g, "trace")),
        }
    )


def _file(o: Outline, e: Entity) -> ToolDraft:
    downs = list({link.child.name: link for link in reversed(o.down(e)) if link.plain}.values())[:2]
    if len(downs) < 2:
        raise Impossible
    d = ToolDraft(
        o, f"get_{e.name}_file", f"Open the file of {e.one}: its data and what hangs on it"
    )
    row = d.row(e)
    d.answer(**{e.name: picked(row, brief(o, e, "file"))})
    for link in downs:
        c = link.child
        test = both(f"{c.name}.{link.field.name} == {row}.{e.key}", live_test(c, c.name))
        open_ = "open_" if live_test(c, c.name) else ""
        d.rows(c, test, f"{open_}{c.many}")
        d.answer(**{f"{open_}{c.many}": picked(f"{open_}{c.many}", brief(o, c, "file"))})
    return d


def _summary(o: Outline, link: EntityLink) -> ToolDraft:
    e, p = link.child, link.parent
    d = ToolDraft(
        o, f"summarise_{p.name}_{e.many}{link.as_role}", f"Summarise the {e.says} of {p.one}"
    )
    row = d.row(p)
    mine = f"{e.name}.{link.field.name} == {row}.{p.key}"
    d.rows(e, mine, e.many)
    d.answer(**{p.name: label(o, p, row), "total": f"count({e.many})"})
    if test := live_test(e, e.name):
        d.rows(e, both(mine, test), "still_open")
        d.answer(open="count(still_open)")
    if number := amount(e):
        d.answer(**{f"average_{number.name}": f"average({e.many}.{number.name})"})
    for f in e.of(*MOMENTS, optional=False)[:1]:
        d.answer(**{f"latest_{f.noun}": f"max({e.many}.{f.name})"})
    if choice := e.of("enum", optional=False)[:1]:
        d.answer(**{f"by_{choice[0].noun}": f"tally({e.many}.{choice[0].name})"})
    return d


def _per_parent(o: Outline, link: EntityLink) -> ToolDraft:
    e, p = link.child, link.parent
    d = ToolDraft(o, f"count_{e.many}_per_{link.role}", f"Count the {e.says} of each {p.words}")
    choices = [x for x in (e.status, *e.of("enum", "boolean", optional=False)) if x]
    where = in_given(d, e, choices[0], "Count only {} with this") if choices else None
    d.rows(e, where, e.many)
    d.rows(p, f"not ({p.name}.{p.key} in {e.many}.{link.field.name})", "idle")
    return d.answer(
        per=f"tally({e.many}.{link.field.name})", none=f"idle.{p.title.name if p.title else p.key}"
    )


def _share(o: Outline, link: EntityLink) -> ToolDraft:
    e, p = link.child, link.parent
    goal = e.ends[0] if e.ends else None
    if goal is None or e.status is None:
        raise Impossible
    d = ToolDraft(
        o,
        f"get_{goal}_share_of_{p.name}_{e.many}{link.as_role}",
        f"Calculate what part of the {e.says} of {p.one} ended as {spaced(goal)}",
    )
    row = d.row(p)
    mine = f"{e.name}.{link.field.name} == {row}.{p.key}"
    d.rows(e, mine, e.many)
    d.rows(e, both(mine, f"{e.name}.{e.status.name} == '{goal}'"), "reached")
    return d.answer(
        percent=f"if(exists({e.many}), round(count(reached) * 100 / count({e.many}), 1), null)",
        **{goal: "count(reached)", "of_all": f"count({e.many})"},
    )
