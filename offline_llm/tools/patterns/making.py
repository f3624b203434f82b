"""Patterns that make rows: one, several, with lines, as a copy, again, or where missing."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label, member_of
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import Idea, Ideas, pick_of, picked, to_come
from offline_llm.tools.logic import mentions
from offline_llm.tools.outline import MOMENTS, Entity, EntityLink, Field, Outline
from tool_specs.language.expressions import parse
from tool_specs.language.syntax.nodes import Binary

_OFFERED = 3
"""Optional fields that a tool for new rows lets the caller give."""


def ideas(o: Outline) -> Ideas:
    for e in o:
        yield Idea("create", e.name, partial(_create, o, e))
        yield Idea("copy", e.name, partial(_copy, o, e))
        if any(to_come(o, e, f) for f in e.of(*MOMENTS, optional=False)):
            yield Idea("series", e.name, partial(_series, o, e))
        yield Idea("ensure", e.name, partial(_ensure, o, e))
        for link in o.down(e):
            yield Idea("create_with", e.name, partial(_create_with, o, e, link))
            yield Idea("create_several", link.child.name, partial(_create_several, o, link))
    for link in o.links:
        if link.child is not link.parent and link.parent.live and link.parent.ends:
            yield Idea("create_under", link.child.name, partial(_create_under, o, link))


def initial(e: Entity) -> dict[str, str]:
    """What a new row starts with whatever the caller says."""
    return {e.status.name: f"'{e.first}'"} if e.status else {}


def offered(e: Entity, *but: str) -> tuple[list[Field], list[Field]]:
    """Fields that the caller must give, and some that may be left out."""
    own = [f for f in e.fields.values() if f.name not in (e.key, *but) and f is not e.status]
    needed = [f for f in own if not f.optional]
    free = [f for f in own if f.optional and f.name not in e.stamps and f.type != "object"]
    return needed, free[:_OFFERED]


def from_args(d: ToolDraft, e: Entity, *but: str) -> dict[str, str]:
    """Parameters for the fields of a new row, and the row."""
    needed, free = offered(e, *but)
    zero = sorted(counters(d.outline, e))[:1]  # two that are zero could not be told apart
    new = {f.name: "0" if f.name in zero else d.of_field(f) for f in needed}
    new |= {f.name: d.of_field(f, optional=True) for f in free}
    return new | initial(e)


def counters(o: Outline, e: Entity) -> set[str]:
    """Whole numbers that moves of others count up and down: a new row starts at zero."""
    found: set[str] = set()
    for link in o.down(e):
        for move in link.child.moves:
            for effect in move.effects:
                if link.child.fields[effect["ref"]].to != e.name:
                    continue
                for name, text in effect["set"].items():
                    tree = parse(text)
                    counts = isinstance(tree, Binary) and tree.operator in ("+", "-")
                    if (
                        counts
                        and e.fields[name].type == "integer"
                        and e.fields[name].spec.get("min") == 0
                    ):
                        found.add(name)
    return {name for name in found if not any(f"{e.name}.{name} >" in r["that"] for r in o.rules)}


def _verb(o: Outline, e: Entity) -> str:
    return pick_of(o, f"create:{e.name}", ("create", "add", "register", "record", "open", "enter"))


def _read_parents(d: ToolDraft, e: Entity, new: dict[str, str]) -> dict[str, str]:
    """Reads the rows that arguments refer to, each once: field -> binding."""
    bound: dict[str, str] = {}
    for link in d.outline.up(e):
        value = new.get(link.field.name, "")
        if value.startswith("args.") and not d.params[value[5:]].get("optional"):
            bind = (
                link.parent.name
                if link.plain and link.parent is not e
                else link.field.noun + "_row"
            )
            d.row(link.parent, value, bind=bind)
            bound[link.field.name] = bind
    return bound


def _in_order(d: ToolDraft, e: Entity, new: dict[str, str]) -> None:
    """A day or time that has to come must lie ahead, where the rules leave that open."""
    for f in e.of(*MOMENTS, optional=False):
        coming = all(v > d.outline.now for row in e.sample if (v := row.get(f.name)))
        if f.name in new and f.verb and coming and e.sample and not d.inside:
            today = "now()" if f.type == "datetime" else "date(now())"
            message = f"The {f.words} {{{new[f.name]}}} has passed."
            d.require(f"{new[f.name]} >= {today}", f"{f.noun}_passed", message)
            return


def _created(d: ToolDraft, e: Entity, bind: str, parents: dict[str, str]) -> ToolDraft:
    names = [e.key, *(f.name for f in e.natural[:2]), *([e.status.name] if e.status else [])]
    d.answer(**{n: f"{bind}.{n}" for n in dict.fromkeys(names) if n not in parents})
    for field, row in list(parents.items())[:2]:
        link = next(x for x in d.outline.up(e) if x.field.name == field)
        name = link.field.noun if link.field.noun not in d.value else f"{link.field.noun}_name"
        d.answer(**{name: label(d.outline, link.parent, row)})
    return d


def _create(o: Outline, e: Entity) -> ToolDraft:
    verb = _verb(o, e)
    d = ToolDraft(o, f"{verb}_{e.name}", f"{verb} a new {e.words}")
    new = from_args(d, e)
    parents = _read_parents(d, e, new)
    _in_order(d, e, new)
    if e.status and len(e.status.values) > 1:
        d.told(f"It starts as {spaced(e.first)}")
    d.create(e, new, "made")
    return _created(d, e, "made", parents)


def _create_under(o: Outline, link: EntityLink) -> ToolDraft:
    """A row below a parent that is still open, with how many it has by then."""
    e, p = link.child, link.parent
    verb = pick_of(o, f"under:{e.name}:{p.name}", ("start", "add", "set_up", "plan"))
    d = ToolDraft(
        o,
        f"{verb}_{e.name}_for_open_{p.name}{link.as_role}",
        f"{spaced(verb)} a new {e.words} for {p.one} that has not come to its end",
    )
    row = d.row(p, bind="owner_row" if p is e else "")
    d.in_status(p, row, p.live)
    new = from_args(d, e, link.field.name) | {link.field.name: f"{row}.{p.key}"}
    d.create(e, new, "made")
    d.rows(e, f"{e.name}.{link.field.name} == {row}.{p.key}", "siblings")
    return d.answer(
        **{e.key: f"made.{e.key}", p.name: label(o, p, row), f"{e.name}_count": "count(siblings)"}
    )


def _create_with(o: Outline, e: Entity, link: EntityLink) -> ToolDraft:
    c = link.child
    needed, _ = offered(c, link.field.name)
    if not link.plain or not 1 <= len(needed) <= 5:
        raise Impossible
    if any(f.type in ("list", "object") for f in needed):
        raise Impossible
    d = ToolDraft(
        o,
        f"{_verb(o, e)}_{e.name}_with_{c.many}",
        f"{_verb(o, e)} a new {e.words} together with its first {c.says}",
    )
    new = from_args(d, e)
    parents = _read_parents(d, e, new)
    fields = [member_of(o, f) for f in needed]
    d.param(
        c.many,
        "array",
        f"The {c.says} to make with it, 1 to 6",
        items="object",
        fields=fields,
        min=1,
        max=6,
    )
    d.create(e, new, e.name)
    d.loop(f"args.{c.many}", "line")
    line = (
        {f.name: f"line.{f.name}" for f in needed}
        | {link.field.name: f"{e.name}.{e.key}"}
        | initial(c)
    )
    d.create(c, line, "made")
    d.done()
    _created(d, e, e.name, parents)
    return d.answer(**{c.many: f"made.{c.key}"})


def _create_several(o: Outline, link: EntityLink) -> ToolDraft:
    e, p = link.child, link.parent
    needed, _ = offered(e, link.field.name)
    if not link.plain or len(needed) > 6 or any(f.type in ("list", "object") for f in needed):
        raise Impossible
    d = ToolDraft(
        o, f"add_{e.many}_to_{p.name}", f"Add several {e.says} to {p.one} at once; all or none"
    )
    row = d.row(p)
    fields = [member_of(o, f) for f in needed]
    d.param(
        "entries", "array", f"The new {e.says}, 1 to 8", items="object", fields=fields, min=1, max=8
    )
    d.loop("args.entries", "entry")
    new = (
        {f.name: f"entry.{f.name}" for f in needed}
        | {link.field.name: f"{row}.{p.key}"}
        | initial(e)
    )
    d.create(e, new, "made")
    d.done()
    d.answer(**{p.name: label(o, p, row), e.many: f"made.{e.key}"})
    numbers = [f for f in needed if f.type in ("integer", "number")][:1]
    return d.answer(**{f"total_{f.name}": f"sum(made.{f.name})" for f in numbers})


def _copied(e: Entity, row: str, *but: str) -> dict[str, str]:
    left_out = {e.key, *but, *(f for f in e.stamps if e.fields[f].optional)}
    return {
        f.name: f"{row}.{f.name}" for f in e.fields.values() if f.name not in left_out
    } | initial(e)


def _copy(o: Outline, e: Entity) -> ToolDraft:
    verb = pick_of(o, f"copy:{e.name}", ("copy", "duplicate", "clone", "repeat"))
    d = ToolDraft(
        o, f"{verb}_{e.name}", f"{verb} {e.one} as a new one, with changes where they are given"
    )
    row = d.row(e)
    new = _copied(e, row)
    changed = [
        f
        for f in e.fields.values()
        if f.name in new and f is not e.status and f.type not in ("list", "object", "boolean")
    ]
    changed = [f for f in changed if f in e.natural or f.verb or f.type in MOMENTS]
    changed = [f for f in changed if not mentions(o, e, f.name)][:3]
    if not changed:
        raise Impossible
    for f in changed:
        new[f.name] = f"coalesce({d.of_field(f, optional=True)}, {row}.{f.name})"
    d.create(e, new, "made", like=row)
    d.answer(**{e.key: f"made.{e.key}", "copied_from": f"{row}.{e.key}"})
    return d.answer(**{f.name: f"made.{f.name}" for f in changed})


def _series(o: Outline, e: Entity) -> ToolDraft:
    moments = [f for f in e.of(*MOMENTS, optional=False) if to_come(o, e, f)]
    if not moments:
        raise Impossible
    f = moments[0]
    d = ToolDraft(
        o,
        f"repeat_{e.name}_on_{'days' if f.type == 'date' else 'times'}",
        f"Repeat {e.one} at several further {'days' if f.type == 'date' else 'times'}",
    )
    row = d.row(e)
    whens = d.param(
        f"{f.name}_list", "array", f"The {f.words} of each repetition", items=f.type, min=1, max=10
    )
    d.loop(whens, "moment")
    bare = [x.name for x in e.fields.values() if x.optional]
    d.create(e, _copied(e, row, *bare) | {f.name: "moment"}, "made", like=row)
    d.done()
    return d.answer(
        **{
            "copied_from": f"{row}.{e.key}",
            e.many: picked("made", [e.key, f.name]),
            "last": f"max(made.{f.name})",
        }
    )


def _ensure(o: Outline, e: Entity) -> ToolDraft:
    """Finds by the natural fields, else makes; both in one call."""
    names = e.natural
    needed, _ = offered(e)
    others = [f for f in needed if f not in names]
    if not names or any(f.type not in ("string", "ref") for f in names) or len(others) > 5:
        raise Impossible
    d = ToolDraft(
        o,
        f"find_or_create_{e.name}",
        f"Find {e.one} by its {' and '.join(f.words for f in names)}, or make it",
    )
    new = {f.name: d.of_field(f) for f in [*names, *others]} | initial(e)
    parents = _read_parents(d, e, new)
    test = " and ".join(f"{e.name}.{f.name} == {new[f.name]}" for f in names)
    d.rows(e, test, "known", limit="1")
    d.loop("if(exists(known), [], ['new'])", "turn")
    d.create(e, new, "made")
    d.done()
    d.answer(
        **{
            e.key: f"if(exists(known), first(known).{e.key}, first(made).{e.key})",
            "made_new": "not exists(known)",
        }
    )
    for field, bind in list(parents.items())[:1]:
        link = next(x for x in o.up(e) if x.field.name == field)
        d.answer(**{link.field.noun: label(o, link.parent, bind)})
    return d
