"""Patterns that move rows nobody names: all of a parent, the next in turn, what is due."""

from functools import partial
from typing import Any

from offline_llm.tools.draft import Impossible, ToolDraft, label
from offline_llm.tools.english import spaced, verb_noun
from offline_llm.tools.idea import Idea, Ideas, both, brief, picked
from offline_llm.tools.outline import MOMENTS, EntityLink, EntityMove, Field, Outline


def ideas(o: Outline) -> Ideas:
    for e in o:
        for move in e.moves:
            for link in o.up(e):
                if link.parent is not e:
                    yield Idea("move_all", e.name, partial(_move_all, o, move, link))
                    yield Idea("move_next", e.name, partial(_move_next, o, move, link))
            for f in e.of(*MOMENTS, optional=False):
                if any(_is_due(o, move, f, row) for row in e.sample):
                    yield Idea("sweep", e.name, partial(_sweep, o, move, f))


def _is_due(o: Outline, move: EntityMove, f: Field, row: dict[str, Any]) -> bool:
    status = move.status
    return bool(row.get(f.name, o.now) < o.now and row[status.name] in move.sources)


def _or(statuses: list[str]) -> str:
    return spaced(" or ".join(statuses))


def _move_all(o: Outline, move: EntityMove, link: EntityLink) -> ToolDraft:
    e, p = move.entity, link.parent
    if any(e.fields[effect["ref"]].to == p.name for effect in move.effects) or move.effects:
        raise Impossible
    name = verb_noun(move.name, f"{p.name}_{e.many}") + link.as_role
    d = ToolDraft(
        o, name, f"{move.doing('every ' + e.words)} of {p.one} that is {_or(move.sources)}"
    )
    row = d.row(p, bind="owner_row" if p is e else "")
    status, test = move.status, move.test
    terms = [f"{e.name}.{link.field.name} == {row}.{p.key}", test]
    terms += [need["that"] for need in move.needs if "lookup(" not in need["that"]]
    if len(terms) < 2 + len(move.needs):
        raise Impossible
    if move.needs:
        d.told("Leaves out those that do not meet the conditions of that step")
    d.rows(e, both(*terms), e.many)
    d.require(
        f"exists({e.many})", "nothing_to_do", f"{{{label(o, p, row)}}} has no {e.words} for this."
    )
    d.loop(e.many, e.name)
    new = dict(move.stamped)
    new |= {field.name: d.of_field(field) for field in move.takes}
    d.was[e.name] = {status.name: move.sources}
    d.update(e, e.name, new)
    d.done()
    return d.answer(
        **{
            p.name: label(o, p, row),
            e.many: picked(e.many, brief(o, e, "move_all", status.name)),
            "changed": f"count({e.many})",
        }
    )


def _move_next(o: Outline, move: EntityMove, link: EntityLink) -> ToolDraft:
    e, p, status = move.entity, link.parent, move.status
    order = [f for f in e.of(*MOMENTS, optional=False)]
    if (
        move.effects
        or any("lookup(" in need["that"] for need in move.needs)
        or not order
        or len(move.sources) > 1
        or not link.plain
    ):
        raise Impossible
    f = order[0]
    d = ToolDraft(
        o,
        verb_noun(move.name, f"next_{e.name}") + f"_of_{p.name}",
        f"{move.doing('the ' + e.words)} of {p.one} that comes first by {f.words}",
    )
    row = d.row(p)
    terms = [
        f"{e.name}.{link.field.name} == {row}.{p.key}",
        f"{e.name}.{status.name} == '{move.sources[0]}'",
    ]
    terms += [need["that"] for need in move.needs]
    d.rows(e, both(*terms), "waiting", order_by=[f.name], limit="1")
    d.require(
        "exists(waiting)",
        f"no_{e.name}_{move.sources[0]}",
        f"No {e.words} of {{{label(o, p, row)}}} is ready.",
    )
    d.was[e.name] = {status.name: move.sources}
    d.loop("waiting", e.name)
    new = dict(move.stamped)
    new |= {field.name: d.of_field(field) for field in move.takes}
    d.update(e, e.name, new)
    d.done()
    return d.answer(
        **{
            e.name: picked("first(waiting)", brief(o, e, "move_next", f.name, status.name)),
            p.name: label(o, p, row),
        }
    )


def _sweep(o: Outline, move: EntityMove, f: Field) -> ToolDraft:
    e, status = move.entity, move.status
    if move.effects or any("lookup(" in n["that"] for n in move.needs) or f.name in e.stamps:
        raise Impossible
    d = ToolDraft(
        o,
        verb_noun(move.name, e.many) + f"_past_{f.noun}",
        f"{move.doing('all ' + e.says)} whose {f.words} lies more than some days back",
    )
    days = d.param(
        "days", "integer", f"How many days the {f.words} must lie back", min=0, max=365, unit="days"
    )
    most = d.param(
        "at_most", "integer", "Stop after this many", min=1, max=50, default=10, optional=True
    )
    test = move.test
    terms = [
        test,
        f"days_between({e.name}.{f.name}, now()) > {days}",
        *(n["that"] for n in move.needs),
    ]
    d.rows(e, both(*terms), "due", order_by=[f.name], limit=most)
    d.require(
        "exists(due)", f"no_{e.name}_due", f"No {e.words} lies more than {{{days}}} days back."
    )
    d.was[e.name] = {status.name: move.sources}
    d.loop("due", e.name)
    new = dict(move.stamped)
    new |= {field.name: d.of_field(field) for field in move.takes}
    d.update(e, e.name, new)
    d.done()
    return d.answer(
        **{e.many: picked("due", brief(o, e, "sweep", f.name)), "oldest": f"min(due.{f.name})"}
    )
