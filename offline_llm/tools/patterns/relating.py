"""Patterns over references: assign, hand over, exchange."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label
from offline_llm.tools.english import plural, spaced
from offline_llm.tools.idea import Idea, Ideas, both, in_given, live_test, pick_of
from offline_llm.tools.logic import mentions
from offline_llm.tools.outline import EntityLink, Field, Outline


def ideas(o: Outline) -> Ideas:
    for link in o.links:
        if link.child is link.parent or link.field.name in link.child.stamps:
            continue
        yield Idea("assign", link.child.name, partial(_assign, o, link))
        yield Idea("assign_many", link.child.name, partial(_assign_many, o, link))
        yield Idea("hand_over", link.child.name, partial(_hand_over, o, link))
        yield Idea("exchange", link.child.name, partial(_exchange, o, link))


def _open_parent(d: ToolDraft, link: EntityLink, row: str) -> None:
    """Nothing is given to a parent that has come to its end."""
    p = link.parent
    if p.status and p.ends and p.live:
        d.in_status(p, row, [s for s in p.status.values if s not in p.ends])


def _assign(o: Outline, link: EntityLink) -> ToolDraft:
    e, p, f = link.child, link.parent, link.field
    verb = pick_of(
        o,
        f"assign:{e.name}:{f.name}",
        ("assign_{e}_to_{p}", "move_{e}_to_other_{p}", "give_{e}_another_{p}"),
    )
    d = ToolDraft(
        o, verb.format(e=e.name, p=link.role), f"Give {e.one} another {spaced(link.role)}"
    )
    row = d.row(e)
    if live_test(e, row):
        d.in_status(e, row, e.live)
    d.row(p, d.id_of(p, f"new {spaced(link.role)}", name=f"new_{f.name}"), bind="chosen")
    _open_parent(d, link, "chosen")
    d.require(
        f"chosen.{p.key} != {row}.{f.name}",
        f"same_{f.noun}",
        f"{{{row}.{e.key}}} has that {f.words} already.",
    )
    d.update(e, row, {f.name: f"chosen.{p.key}"})
    d.rows(e, f"{e.name}.{f.name} == chosen.{p.key}", "now_there")
    return d.answer(
        **{
            e.key: f"{row}.{e.key}",
            p.name: label(o, p, "chosen"),
            "number_there": "count(now_there)",
        }
    )


def _is_looked_up(o: Outline, f: Field) -> bool:
    return any("lookup(" in r["that"] and f.name in r["that"] for r in o.rules)


def _assign_many(o: Outline, link: EntityLink) -> ToolDraft:
    e, p, f = link.child, link.parent, link.field
    if _is_looked_up(o, f):
        raise Impossible
    d = ToolDraft(
        o,
        f"assign_{e.many}_to_{link.role}",
        f"Give several {e.says} the same {spaced(link.role)}; all or none",
    )
    row = d.row(p)
    ids = d.ids_of(e, 20)
    _open_parent(d, link, row)
    d.loop(ids, "wanted")
    d.row(e, "wanted")
    d.update(e, e.name, {f.name: f"{row}.{p.key}"})
    d.done()
    return d.answer(
        **{p.name: label(o, p, row), e.many: f"{e.name}.{e.key}", "assigned": f"count({e.name})"}
    )


def _hand_over(o: Outline, link: EntityLink) -> ToolDraft:
    e, p, f = link.child, link.parent, link.field
    if mentions(o, e, f.name) or _is_looked_up(o, f):
        raise Impossible
    d = ToolDraft(
        o,
        f"hand_over_{e.many}_between_{plural(link.role)}",
        f"Hand all {e.says} of one {spaced(link.role)} over to another",
    )
    giver = d.row(
        p,
        d.id_of(p, f"{spaced(link.role)} that gives them away", name=f"from_{p.key}"),
        bind="giver",
    )
    taker = d.row(
        p, d.id_of(p, f"{spaced(link.role)} that gets them", name=f"to_{p.key}"), bind="taker"
    )
    d.require(
        f"{giver}.{p.key} != {taker}.{p.key}",
        f"same_{p.name}",
        f"Name two different {p.says}.",
        f"both ids name the same {p.words}",
    )
    test = f"{e.name}.{f.name} == {giver}.{p.key}"
    if e.status:
        test = both(test, in_given(d, e, e.status, "Only {} in this"))
    d.rows(e, test, e.many)
    d.require(
        f"exists({e.many})",
        "nothing_to_hand_over",
        f"{{{label(o, p, giver)}}} has no such {e.words}.",
    )
    d.loop(e.many, e.name)
    d.step("update", target=e.name, set=[{"name": f.name, "value": f"{taker}.{p.key}"}])
    d.done()
    return d.answer(
        giver=label(o, p, giver), taker=label(o, p, taker), **{e.many: f"{e.many}.{e.key}"}
    )


def _exchange(o: Outline, link: EntityLink) -> ToolDraft:
    e, p, f = link.child, link.parent, link.field
    if mentions(o, e, f.name) or _is_looked_up(o, f):
        raise Impossible
    d = ToolDraft(
        o,
        f"exchange_{plural(link.role)}_of_{e.many}",
        f"Let two {e.says} exchange their {plural(spaced(link.role))}",
    )
    for side in ("first", "second"):
        d.row(e, d.id_of(e, f"{side} {e.words}", name=f"{side}_{e.key}"), bind=side)
    d.require(
        f"first.{f.name} != second.{f.name}", f"same_{f.noun}", f"Both have {{first.{f.name}}}."
    )
    d.loop(f"[first.{f.name}]", "kept")
    d.step("update", target="first", set=[{"name": f.name, "value": f"second.{f.name}"}])
    d.step("update", target="second", set=[{"name": f.name, "value": "kept"}])
    d.done()
    shown = f"lookup('{p.name}', {{}}.{f.name}).{p.title.name if p.title else p.key}"
    return d.answer(
        first=shown.format("first"),
        second=shown.format("second"),
        first_id=f"first.{e.key}",
        second_id=f"second.{e.key}",
    )
