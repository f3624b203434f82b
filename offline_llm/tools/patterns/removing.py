"""Patterns that delete: what nothing refers to, with its children, what is finished, doubles."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import Idea, Ideas, pick_of
from offline_llm.tools.logic import mentions
from offline_llm.tools.outline import Entity, EntityLink, Outline


def ideas(o: Outline) -> Ideas:
    for e in o:
        yield Idea("remove", e.name, partial(_remove, o, e))
        yield Idea("remove_many", e.name, partial(_remove_many, o, e))
        yield Idea("merge", e.name, partial(_merge, o, e))
        for link in o.down(e):
            yield Idea("remove_with", e.name, partial(_remove_with, o, e, link))


def referrers(o: Outline, e: Entity) -> list[tuple[Entity, str]]:
    """(entity, condition that one of its rows points at the row bound under the name of `e`)."""
    key = f"{e.name}.{e.key}"
    found = [(link.child, f"{link.child.name}.{link.field.name} == {key}") for link in o.down(e)]
    return found + [(o[f.entity], f"{key} in {f.entity}.{f.name}") for f in o.holders(e)]


def _remove(o: Outline, e: Entity) -> ToolDraft:
    verb = pick_of(o, f"remove:{e.name}", ("delete", "remove", "strike_off"))
    d = ToolDraft(o, f"{verb}_{e.name}", f"{spaced(verb)} {e.one} that nothing refers to")
    if any(link.child is link.parent for link in o.up(e)) or any(
        c is e for c, _ in referrers(o, e)
    ):
        raise Impossible
    row = d.row(e)
    if e.status and e.ends:
        d.in_status(e, row, [e.first, *e.ends] if e.first not in e.ends else e.ends)
    if not guard_referrers(d, o, e) and not e.status:
        return _struck(d, e, row)
    return _struck(d, e, row)


def guard_referrers(d: ToolDraft, o: Outline, e: Entity, *but: str) -> bool:
    """Requires that no row points at the row; deleting it would leave those without it."""
    found: dict[str, list[str]] = {}
    for child, test in referrers(o, e):
        if child.name not in but:
            found.setdefault(child.name, []).append(test)
    for name, tests in found.items():
        child = o[name]
        d.rows(child, " or ".join(tests), child.many, limit="1")
        d.require(
            f"not exists({child.many})",
            f"has_{child.many}",
            f"{{{e.name}.{e.key}}} still has {child.says}.",
            f"{child.one} refers to it",
        )
    return bool(found)


def _struck(d: ToolDraft, e: Entity, row: str) -> ToolDraft:
    d.step("delete", target=row)
    title = [e.title.name] if e.title else []
    others = [
        f.name
        for f in e.fields.values()
        if f.type in ("enum", "number", "date") and f is not e.status
    ][:2]
    return d.answer(
        **{f"removed_{n}": f"{row}.{n}" for n in dict.fromkeys([e.key, *title, *others])}
    )


def _remove_many(o: Outline, e: Entity) -> ToolDraft:
    if (
        referrers(o, e)
        or any(link.child is link.parent for link in o.up(e))
        or not e.status
        or not e.ends
    ):
        raise Impossible
    d = ToolDraft(
        o,
        f"clear_out_{e.ends[0]}_{e.many}",
        f"Delete the {e.says} that are {spaced(e.ends[0])}, the oldest ids first",
    )
    most = d.param("at_most", "integer", "Delete no more than this many", min=1, max=50)
    refs = [link for link in o.up(e) if link.plain]
    test = f"{e.name}.{e.status.name} == '{e.ends[0]}'"
    if refs:
        param = d.id_of(refs[0].parent, optional=True)
        test += f" and ({param} == null or {e.name}.{refs[0].field.name} == {param})"
    d.rows(e, test, "done", limit=most)
    d.require("exists(done)", f"none_{e.ends[0]}", f"No {e.words} is {spaced(e.ends[0])}.")
    d.loop("done", e.name)
    d.step("delete", target=e.name)
    d.done()
    return d.answer(**{f"removed_{e.many}": f"done.{e.key}", "number_removed": "count(done)"})


def _remove_with(o: Outline, e: Entity, link: EntityLink) -> ToolDraft:
    c = link.child
    if (
        not link.plain
        or referrers(o, c)
        or o.holders(e)
        or any(x.child is x.parent for x in o.up(e))
    ):
        raise Impossible
    d = ToolDraft(o, f"delete_{e.name}_and_{c.many}", f"Delete {e.one} together with its {c.says}")
    d.row(e)
    if e.status and e.ends:
        d.in_status(e, e.name, [e.first, *e.ends] if e.first not in e.ends else e.ends)
    guard_referrers(d, o, e, c.name)
    d.rows(c, f"{c.name}.{link.field.name} == {e.name}.{e.key}", c.many, limit="1000")
    d.loop(c.many, c.name)
    d.step("delete", target=c.name)
    d.done()
    d.step("delete", target=e.name)
    return d.answer(
        **{
            e.key: f"{e.name}.{e.key}",
            f"removed_{c.many}": f"{c.many}.{c.key}",
            "number_removed": f"count({c.many})",
        }
    )


def _merge(o: Outline, e: Entity) -> ToolDraft:
    links = o.down(e)
    children = [link.child.name for link in links]
    if not links or o.holders(e) or len(set(children)) < len(children) or e.status:
        raise Impossible
    if any(mentions(o, link.child, link.field.name) for link in links) or any(
        x.child is x.parent for x in o.up(e)
    ):
        raise Impossible
    d = ToolDraft(
        o, f"merge_{e.many}", f"Merge {e.one} that was entered twice into the one to keep"
    )
    keep = d.row(e, d.id_of(e, f"{e.words} to keep", name=f"kept_{e.key}"), bind="kept")
    gone = d.row(
        e,
        d.id_of(e, f"{e.words} entered twice, which is deleted", name=f"double_{e.key}"),
        bind="double",
    )
    d.require(
        f"{keep}.{e.key} != {gone}.{e.key}",
        f"same_{e.name}",
        f"Name two different {e.says}.",
        f"both ids name the same {e.words}",
    )
    for link in links:
        c = link.child
        d.rows(c, f"{c.name}.{link.field.name} == {gone}.{e.key}", c.many, limit="1000")
        d.loop(c.many, c.name)
        d.update(c, c.name, {link.field.name: f"{keep}.{e.key}"})
        d.done()
        d.answer(**{f"moved_{c.many}": f"{c.many}.{c.key}"})
    d.step("delete", target=gone)
    return d.answer(**{e.name: label(o, e, keep)})
