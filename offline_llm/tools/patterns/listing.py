"""Patterns that find and list rows: by text, by reference in either direction, by day, by rank."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import (
    Idea,
    Ideas,
    ahead,
    amount,
    both,
    brief,
    in_given,
    live_test,
    optional,
    pick_of,
    picked,
    seen,
)
from offline_llm.tools.outline import MOMENTS, NUMBERS, EntityLink, Field, Outline


def ideas(o: Outline) -> Ideas:
    for link in o.links:
        if link.child is link.parent:
            yield Idea("tree", link.child.name, partial(_tree, o, link))
            continue
        yield Idea("children", link.child.name, partial(_children, o, link))
        yield Idea("without", link.parent.name, partial(_without, o, link))
        yield Idea("having", link.parent.name, partial(_having, o, link))
        for f in link.child.of(*MOMENTS, optional=False):
            if not any(v > o.now for v in seen(link.child, f)):
                continue
            yield Idea("next", link.child.name, partial(_next, o, link, f))
        for f in link.parent.of("enum", "boolean", optional=False):
            yield Idea("by_parent", link.child.name, partial(_by_parent, o, link, f))
        for further in o.up(link.parent):
            if further.parent not in (link.child, link.parent):
                yield Idea("two_hops", link.child.name, partial(_two_hops, o, link, further))


def _tree(o: Outline, link: EntityLink) -> ToolDraft:
    e, f = link.child, link.field
    d = ToolDraft(
        o, f"get_{e.name}_branch", f"Show {e.one} with what lies directly above and below it"
    )
    d.row(e, bind="chosen")
    d.rows(e, f"{e.name}.{f.name} == chosen.{e.key}", "below")
    shown = brief(o, e, "tree")
    return d.answer(
        **{
            e.name: label(o, e, "chosen"),
            "above": picked(f"lookup('{e.name}', chosen.{f.name})", shown),
            "below": picked("below", shown),
            "width": "count(below)",
        }
    )


def _children(o: Outline, link: EntityLink) -> ToolDraft:
    e, p = link.child, link.parent
    form = pick_of(
        o,
        f"children:{e.name}:{link.field.name}",
        ("list_{p}_{es}", "list_{es}_of_{p}", "list_{es}_for_{p}"),
    )
    d = ToolDraft(
        o,
        form.format(p=p.name, es=e.many) + link.as_role,
        f"List the {e.says} of {p.one}" + (f", as its {link.field.words}" if link.as_role else ""),
    )
    row = d.row(p, bind="chosen" if p is e else "")
    terms = [f"{e.name}.{link.field.name} == {row}.{p.key}"]
    shown = brief(o, e, f"children:{p.name}")
    if e.status:
        terms.append(in_given(d, e, e.status, "Only {} in this"))
    moments = e.of(*MOMENTS, optional=False)
    d.rows(e, both(*terms), e.many, order_by=[f"-{moments[0].name}"] if moments else None)
    d.answer(**{p.name: label(o, p, row), e.many: picked(e.many, shown)})
    number = amount(e)
    if number:
        d.answer(**{f"total_{number.name}": f"sum({e.many}.{number.name})"})
    else:
        d.answer(found=f"count({e.many})")
    return d


def _without(o: Outline, link: EntityLink) -> ToolDraft:
    e, p = link.child, link.parent
    d = ToolDraft(
        o,
        f"list_{p.many}_without_{e.many}{link.as_role}",
        f"List the {p.says} that have no {e.words} of a given kind",
    )
    choice = e.status or next(iter(e.of("enum", optional=False)), None)
    if choice is None:
        raise Impossible
    param = d.of_field(choice, words=f"The {choice.words} of which no {e.words} may exist")
    d.rows(e, f"{e.name}.{choice.name} == {param}", e.many)
    d.rows(p, f"not ({p.name}.{p.key} in {e.many}.{link.field.name})", p.many)
    shown = brief(o, p, f"without:{e.name}")
    return d.answer(**{p.many: picked(p.many, shown), "found": f"count({p.many})"})


def _having(o: Outline, link: EntityLink) -> ToolDraft:
    e, p = link.child, link.parent
    numbers = e.of(*NUMBERS, optional=False)
    moments = [f for f in e.of(*MOMENTS) if f.name not in e.stamps]
    test = live_test(e, e.name)
    if numbers:
        f = numbers[0]
        d = ToolDraft(
            o,
            f"list_{p.many}_by_{e.name}_{f.noun}{link.as_role}",
            f"List the {p.says} that have {e.one} of at least a given {f.words}",
        )
        param = d.of_field(f, name=f"least_{f.noun}", words=f"Least {f.words} of the {e.words}")
        where = both(test, f"{e.name}.{f.name} >= {param}")
        if test:
            d.told(f"Only {e.says} that are still {spaced(' or '.join(e.live))} count")
    elif moments:
        f = moments[0]
        d = ToolDraft(
            o,
            f"list_{p.many}_with_{e.many}_after_day{link.as_role}",
            f"List the {p.says} that have {e.one} with a {f.words} on or after a day",
        )
        param = d.param("day", "date", "First day that counts")
        where = f"date({e.name}.{f.name}) >= {param}"
    else:
        raise Impossible
    d.rows(e, where, e.many)
    d.rows(p, f"{p.name}.{p.key} in {e.many}.{link.field.name}", p.many)
    shown = brief(o, p, f"having:{e.name}")
    return d.answer(**{p.many: picked(p.many, shown), f"{e.name}_count": f"count({e.many})"})


def _next(o: Outline, link: EntityLink, f: Field) -> ToolDraft:
    e, p = link.child, link.parent
    coming = f.name not in e.stamps
    word = "next" if coming else "last"
    when = "" if len(e.of(*MOMENTS, optional=False)) == 1 else f"_by_{f.noun}"
    d = ToolDraft(
        o,
        f"get_{word}_{e.name}_of_{p.name}{link.as_role}{when}",
        f"Show the {word} {e.words} of {p.one}, by its {f.words}",
    )
    row = d.row(p, bind="chosen" if p is e else "")
    d.rows(
        e,
        both(f"{e.name}.{link.field.name} == {row}.{p.key}", f"{e.name}.{f.name} >= {ahead(o, f)}"),
        "coming",
        order_by=[f.name],
        limit="5",
    )
    return d.answer(
        **{
            e.name: picked("first(coming)", brief(o, e, "next", f.name)),
            "days_left": f"days_between(now(), first(coming).{f.name})",
        }
    )


def _by_parent(o: Outline, link: EntityLink, f: Field) -> ToolDraft:
    e, p = link.child, link.parent
    d = ToolDraft(
        o,
        f"list_{e.many}_by_{link.role}_{f.noun}",
        f"List the {e.says} whose {link.role.replace('_', ' ')} has a given {f.words}",
    )
    param = d.of_field(
        f, name=f"{link.role}_{f.noun}", words=f"{f.words} of the {link.role.replace('_', ' ')}"
    )
    terms = [f"lookup('{p.name}', {e.name}.{link.field.name}).{f.name} == {param}"]
    test = live_test(e, e.name)
    if test and pick_of(o, f"open:{e.name}:{f.name}", "yn") == "y":
        terms.append(test)
        d.told(f"Only {e.says} that can still move on are listed")
    d.rows(e, both(*terms), e.many)
    shown = brief(o, e, f"by_parent:{f.name}", link.field.name)
    return d.answer(
        **{e.many: picked(e.many, shown), p.many: f"distinct({e.many}.{link.field.name})"}
    )


def _two_hops(o: Outline, link: EntityLink, further: EntityLink) -> ToolDraft:
    e, p, g = link.child, link.parent, further.parent
    via = "" if link.plain else f"_by_{link.field.noun}"
    d = ToolDraft(
        o,
        f"list_{g.name}_{e.many}_across_{p.many}{via}",
        f"List the {e.says} of all {p.says} that belong to {g.one}",
    )
    row = d.row(g)
    hop = f"lookup('{p.name}', {e.name}.{link.field.name}).{further.field.name} == {row}.{g.key}"
    terms = [hop]
    if e.status:
        values = d.param(
            f"{e.status.name}_in",
            "array",
            f"Only {e.says} in one of these",
            items="enum",
            values=list(e.status.values),
            optional=True,
            min=1,
            max=5,
        )
        terms.append(optional(values, f"{e.name}.{e.status.name} in {values}"))
    d.rows(e, both(*terms), e.many)
    return d.answer(
        **{
            g.name: label(o, g, row),
            e.many: picked(e.many, brief(o, e, f"two_hops:{g.name}", link.field.name)),
            f"per_{p.name}": f"tally({e.many}.{link.field.name})",
        }
    )
