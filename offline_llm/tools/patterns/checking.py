"""Patterns that answer before anything is done: may it move, why not, what then, is there room."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import Idea, Ideas, both, brief, live_test, one_of, picked
from offline_llm.tools.outline import Entity, EntityLink, EntityMove, Field, Outline
from offline_llm.tools.patterns.removing import referrers


def ideas(o: Outline) -> Ideas:
    for e in o:
        for move in e.moves:
            yield Idea("may_move", e.name, partial(_may_move, o, move))
            if move.needs:
                yield Idea("ready", e.name, partial(_ready, o, move))
            if move.effects:
                yield Idea("foresee", e.name, partial(_foresee, o, move))
        yield Idea("next_steps", e.name, partial(_next_steps, o, e))
        yield Idea("removable", e.name, partial(_removable, o, e))
        yield Idea("audit", e.name, partial(_audit, o, e))
        for f in e.of("integer", "number", optional=False):
            yield Idea("enough", e.name, partial(_enough, o, e, f))
    for link in o.links:
        if link.child is link.parent:
            continue
        for f in link.child.of("datetime", "date", optional=False):
            if f.name not in link.child.stamps:
                yield Idea("clash", link.child.name, partial(_clash, o, link, f))
        yield Idea("workload", link.parent.name, partial(_workload, o, link))


def _may_move(o: Outline, move: EntityMove) -> ToolDraft:
    """Which of the conditions of a move fails first, in words."""
    e = move.entity
    if not move.needs:
        raise Impossible
    d = ToolDraft(
        o,
        f"check_{move.name}_of_{e.name}",
        f"Check whether {e.one} is ready to {move.words}, and what stands in the way",
    )
    row = d.row(e)
    status = move.status
    reason = "'ready'"
    for need in reversed(move.needs):
        reason = f"if({need['that']}, {reason}, '{need['error']}')"
    reason = f"if({move.test}, {reason}, 'wrong_{status.name}')"
    tests = both(move.test, *(f"({need['that']})" for need in move.needs))
    d.answer(
        **{
            e.key: f"{row}.{e.key}",
            "allowed": tests,
            "reason": reason,
            status.name: f"{row}.{status.name}",
        }
    )
    codes = ", ".join(["ready", f"wrong_{status.name}", *(n["error"] for n in move.needs)])
    return d.told(f"The reason is one of {codes}")


def _ready(o: Outline, move: EntityMove) -> ToolDraft:
    e = move.entity
    d = ToolDraft(
        o,
        f"list_{e.many}_ready_to_{move.name}",
        f"List the {e.says} for which every condition to {move.words} is met",
    )
    ups = [link for link in o.up(e) if link.plain and link.parent is not e]
    more = ""
    if ups:
        param = d.id_of(ups[0].parent, optional=True)
        more = f"{param} == null or {e.name}.{ups[0].field.name} == {param}"
    needs = [f"({n['that']})" for n in move.needs]
    d.rows(e, both(move.test, *needs, more), "ready")
    d.rows(e, both(move.test, more), "candidates")
    d.answer(
        ready=picked("ready", brief(o, e, f"ready:{move.name}")),
        waiting="count(candidates) - count(ready)",
    )
    return d.told(f"Those waiting have the right {move.status.words} and fail another condition")


def _foresee(o: Outline, move: EntityMove) -> ToolDraft:
    """What the effects of a move would come to, with nothing changed."""
    e = move.entity
    d = ToolDraft(
        o,
        f"preview_{move.name}_of_{e.name}",
        f"Foresee what changes elsewhere to {move.doing(e.one)}, without doing it",
    )
    row = d.row(e)
    for effect in move.effects:
        field = e.fields[effect["ref"]]
        other = o[field.to]
        if field.optional or other is e or other.name in d.value:
            raise Impossible
        d.row(other, f"{row}.{field.name}", bind=other.name)
        d.answer(**{other.name: {"name": label(o, other, other.name)}})
        for name, text in effect["set"].items():
            d.value[other.name] |= {f"{name}_now": f"{other.name}.{name}", f"{name}_then": text}
    return d.answer(possible=move.test)


def _next_steps(o: Outline, e: Entity) -> ToolDraft:
    if len(e.moves) < 2 or e.status is None:
        raise Impossible
    d = ToolDraft(
        o,
        f"list_next_steps_of_{e.name}",
        f"Show which steps are open to {e.one} in its present {e.status.words}",
    )
    row = d.row(e)
    moves = {m.name: m.test for m in e.moves[:6]}
    tests = list(moves.values())
    if any(tests.count(t) > 1 for t in tests):
        moves = {n: t for i, (n, t) in enumerate(moves.items()) if t not in tests[:i]}
    d.answer(
        **{e.status.name: f"{row}.{e.status.name}", **{f"may_{n}": t for n, t in moves.items()}}
    )
    if e.ends:
        d.answer(finished=f"{row}.{e.status.name} in {one_of(e.ends)}")
    return d


def _removable(o: Outline, e: Entity) -> ToolDraft:
    tests: dict[str, list[str]] = {}
    for child, test in referrers(o, e):
        tests.setdefault(child.name, []).append(test)
    if not tests or e.name in tests:
        raise Impossible
    d = ToolDraft(
        o,
        f"check_what_uses_{e.name}",
        f"Check what refers to {e.one}, before it is deleted or changed",
    )
    row = d.row(e)
    for name, found in tests.items():
        d.rows(o[name], " or ".join(found), o[name].many)
        d.answer(**{o[name].many: f"{o[name].many}.{o[name].key}"})
    total = " + ".join(f"count({o[name].many})" for name in tests)
    return d.answer(**{"uses": total, "removable": f"{total} == 0", e.key: f"{row}.{e.key}"})


def _audit(o: Outline, e: Entity) -> ToolDraft:
    """Open rows whose parent has come to its end: loose ends of the books."""
    test = live_test(e, e.name)
    links = [x for x in o.up(e) if x.parent.ends and x.parent.status and x.parent is not e]
    if not test or not links:
        raise Impossible
    p, f = links[0].parent, links[0].field
    assert p.status is not None
    d = ToolDraft(
        o,
        f"find_open_{e.many}_of_closed_{p.many}",
        f"Find the {e.says} that are open while their {p.words} is in one {p.status.words}",
    )
    status = d.of_field(
        p.status, name=f"{p.name}_{p.status.name}", words=f"{p.status.words} of the {p.words}"
    )
    d.rows(
        e, both(test, f"lookup('{p.name}', {e.name}.{f.name}).{p.status.name} == {status}"), e.many
    )
    return d.answer(
        **{
            e.many: picked(e.many, brief(o, e, "audit", f.name)),
            p.many: f"distinct({e.many}.{f.name})",
            "found": f"count({e.many})",
        }
    )


def _enough(o: Outline, e: Entity, f: Field) -> ToolDraft:
    if f.spec.get("min") is None or (f.unit or "") in ("", "%"):
        raise Impossible
    d = ToolDraft(
        o,
        f"check_{e.name}_{f.noun}",
        f"Check whether the {f.words} of {e.one} comes to at least a given amount",
    )
    row = d.row(e)
    wanted = d.of_field(f, name="needed", words=f"The {f.words} that is needed")
    have = f"{row}.{f.name}"
    d.answer(
        **{
            f.name: have,
            "enough": f"{have} >= {wanted}",
            "short_by": f"max(round({wanted} - {have}, 2), 0)",
        }
    )
    if e.title:
        d.answer(**{e.name: label(o, e, row)})
        d.rows(e, f"{e.name}.{f.name} >= {wanted}", "with_enough")
        d.answer(with_enough=f"with_enough.{e.key}")
    return d


def _clash(o: Outline, link: EntityLink, f: Field) -> ToolDraft:
    e, p = link.child, link.parent
    span = "day" if f.type == "date" else "hours"
    d = ToolDraft(
        o,
        f"check_{link.role}_{e.name}_clash_by_{f.noun}",
        f"Check whether a {spaced(link.role)} has {e.one} near a wished {f.words}",
    )
    row = d.row(p, d.id_of(p, name=f"{link.role}_id"))
    wanted = d.of_field(f, name=f"wished_{f.name}", words=f"The {f.words} one has in mind")
    mine = f"{e.name}.{link.field.name} == {row}.{p.key}"
    if span == "day":
        near = f"{e.name}.{f.name} == {wanted}"
    else:
        hours = d.param(
            "hours",
            "integer",
            "How many hours before and after count as near",
            min=1,
            max=48,
            default=2,
            optional=True,
            unit="hours",
        )
        gap = f"minutes_between({e.name}.{f.name}, {wanted})"
        near = f"{gap} <= {hours} * 60 and {gap} >= -{hours} * 60"
    d.rows(e, both(mine, near), "near")
    d.rows(e, both(mine, f"{e.name}.{f.name} > {wanted}"), "later", order_by=[f.name])
    d.answer(free="not exists(near)", near=picked("near", brief(o, e, f"clash:{f.name}", f.name)))
    return d.answer(next_after=f"min(later.{f.name})")


def _workload(o: Outline, link: EntityLink) -> ToolDraft:
    """Those with no more than so many open rows: who can take one more."""
    e, p = link.child, link.parent
    test = live_test(e, e.name)
    if not test:
        raise Impossible
    d = ToolDraft(
        o,
        f"compare_open_{e.many}_of_{p.many}{link.as_role}",
        f"Compare how many open {e.says} several {p.says} have",
    )
    ids = d.ids_of(p, 10, least=2)
    d.rows(e, both(test, f"{e.name}.{link.field.name} in {ids}"), "still_open")
    d.rows(
        p,
        f"{p.name}.{p.key} in {ids} and not ({p.name}.{p.key} in still_open.{link.field.name})",
        "idle",
    )
    return d.answer(
        open_counts=f"tally(still_open.{link.field.name})",
        without_any=f"idle.{p.key}",
        together="count(still_open)",
    )
