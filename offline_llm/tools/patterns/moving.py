"""Patterns of lifecycle moves: one row, several, all of a parent, what is due, and what follows."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, may_leave, parent_label
from offline_llm.tools.english import spaced, verb_noun
from offline_llm.tools.idea import Idea, Ideas, both, pick_of
from offline_llm.tools.logic import mentions, rewritten
from offline_llm.tools.outline import EntityLink, EntityMove, Field, Outline
from tool_specs.language.expressions import parse, show, walk
from tool_specs.language.syntax.nodes import Access, Binary, Literal, Name, Node


def ideas(o: Outline) -> Ideas:
    for e in o:
        for move in e.moves:
            yield Idea("move", e.name, partial(_move, o, move))
            yield Idea("move_many", e.name, partial(_move_many, o, move))
            yield Idea("undo", e.name, partial(_undo, o, move))
            for link in o.down(e):
                if link.child.moves:
                    yield Idea("cascade", e.name, partial(_cascade, o, move, link))
            for f in e.fields.values():
                if f.verb and f.name != e.key and not f.optional:
                    yield Idea("move_with", e.name, partial(_move_with, o, move, f))


def make_move(
    d: ToolDraft, move: EntityMove, *, extra: dict[str, str] | None = None, note: bool = True
) -> str:
    """The statements of a move of the row bound under the entity's name."""
    e = move.entity
    row = e.name
    d.in_status(e, row, move.sources)
    parents = _touched(d, move)
    for need in move.needs:
        text = show(_bound(parse(need["that"]), parents, e.name, extra or {}))
        d.require(text, need["error"], need["message"])
    new = move.stamped | (extra or {})
    for field in move.takes:
        given = field.name in d.params
        new[field.name] = f"args.{field.name}" if given else d.of_field(field)
    d.update(e, row, new, after=_after(move, parents))
    for effect in move.effects:
        _effect(d, move, effect, parents)
    return row


def _touched(d: ToolDraft, move: EntityMove) -> dict[Node, str]:
    """Reads the rows that the effects change: call of lookup -> binding."""
    o, row = d.outline, move.entity.name
    found: dict[Node, str] = {}
    for effect in move.effects:
        field = move.entity.fields[effect["ref"]]
        other = o[field.to]
        if field.optional or other is move.entity or other.name in found.values():
            raise Impossible
        d.row(other, f"{row}.{field.name}", bind=other.name)
        found[parse(f"lookup('{other.name}', {row}.{field.name})")] = other.name
    return found


def _after(move: EntityMove, parents: dict[Node, str]) -> dict[Node, Node]:
    """What the effects will make of fields that rules look up."""
    calls = {bind: call for call, bind in parents.items()}
    found: dict[Node, Node] = {}
    for effect in move.effects:
        bind = move.entity.fields[effect["ref"]].to
        found |= {Access(calls[bind], f): parse(text) for f, text in effect["set"].items()}
    return found


def _bound(node: Node, parents: dict[Node, str], row: str, new: dict[str, str]) -> Node:
    """With the rows that are read anyway by name, and with values as they will be."""
    put: dict[Node, Node] = {call: Name(bind) for call, bind in parents.items()}
    put |= {Access(Name(row), field): parse(text) for field, text in new.items()}
    return rewritten(node, put)


def _effect(d: ToolDraft, move: EntityMove, effect: dict, parents: dict[Node, str]) -> None:
    """An effect; what the needs ask of a field of the row already is not asked again."""
    other = d.outline[move.entity.fields[effect["ref"]].to]
    asked = [s["that"] for s in d.steps if s["op"] == "require"]
    known = {
        n.field
        for text in asked
        for n in walk(parse(text))
        if isinstance(n, Access) and n.base == Name(other.name)
    }
    new = {
        f: text if f in known else _kept_in(other.fields[f], text)
        for f, text in effect["set"].items()
    }
    d.update(other, other.name, new, guarded=not known & new.keys(), bounds=not known & new.keys())


def _kept_in(field: Field, text: str) -> str:
    """A counter that goes up or down stays within its bounds instead of refusing the move."""
    tree = parse(text)
    if isinstance(tree, Binary) and isinstance(tree.right, Literal):
        for bound, function in (("min", "max"), ("max", "min")):
            if field.bounds.get(bound) is not None and may_leave(text, bound):
                return f"{function}({text}, {field.bounds[bound]})"
    return text


def _said(d: ToolDraft, move: EntityMove, row: str) -> None:
    """What a move answers with: the row's id and status, and what else it changed."""
    o, e, status = d.outline, move.entity, move.status
    d.answer(**{e.key: f"{row}.{e.key}", status.name: f"{row}.{status.name}"})
    if move.stamp is not None:
        d.answer(**{move.stamp.name: f"{row}.{move.stamp.name}"})
    for effect in move.effects:
        other = o[e.fields[effect["ref"]].to]
        for name in list(effect["set"])[:2]:
            key = name if name not in d.value else f"{other.name}_{name}"
            d.answer(**{key: f"{other.name}.{name}"})
    if not move.effects:
        plain = [link for link in o.up(e) if not link.field.optional and link.parent is not e]
        if plain and pick_of(o, f"said:{e.name}:{move.name}", "yyn") == "y":
            link = plain[len(move.name) % len(plain)]
            key = link.field.noun if link.field.noun not in d.value else f"{link.field.noun}_name"
            d.answer(**{key: parent_label(o, link.field, row)})
        else:
            kept = [f for f in e.fields.values() if f.name not in d.value and not f.optional]
            for field in kept[len(move.name) % 2 : 2 + len(move.name) % 3]:
                d.answer(**{field.name: f"{row}.{field.name}"})


def _move(o: Outline, move: EntityMove) -> ToolDraft:
    e = move.entity
    d = ToolDraft(o, verb_noun(move.name, e.name), move.spec["text"])
    d.row(e)
    row = make_move(d, move)
    _said(d, move, row)
    for effect in move.effects:
        other = o[e.fields[effect["ref"]].to]
        names = " and ".join(other.fields[f].words for f in effect["set"])
        d.told(f"Also changes the {names} of the {other.words}")
    return d


def _move_many(o: Outline, move: EntityMove) -> ToolDraft:
    e = move.entity
    d = ToolDraft(
        o, verb_noun(move.name, e.many), f"{move.doing('several ' + e.says)} in one go; all or none"
    )
    ids = d.ids_of(e, 10)
    for field in move.takes:
        d.of_field(field)
    d.loop(ids, "wanted")
    d.row(e, "wanted")
    make_move(d, move)
    d.done()
    d.answer(**{e.many: f"{e.name}.{e.key}", "done": f"count({e.name})"})
    kept = [f for f in e.of("integer", "number", optional=False)][:1]
    if kept and len(move.name) % 2:
        d.answer(**{f"total_{kept[0].name}": f"sum({e.name}.{kept[0].name})"})
    return d


def _move_with(o: Outline, move: EntityMove, f: Field) -> ToolDraft:
    e = move.entity
    if (
        f in move.takes
        or (move.stamp and f.name == move.stamp.name)
        or f.type in ("list", "object")
    ):
        raise Impossible
    if mentions(o, e, f.name):
        raise Impossible  # rows of one status alone seldom show that the rule can be broken
    d = ToolDraft(
        o,
        f"{verb_noun(move.name, e.name)}_with_new_{f.noun}",
        f"{move.doing(e.one)} and change its {f.words} on the way",
    )
    d.row(e)
    new = d.of_field(f, name=f"new_{f.name}", words=f"The {f.words} from now on")
    if f.type in ("ref", "enum", "boolean"):
        d.require(
            f"{new} != {e.name}.{f.name}",
            f"same_{f.noun}",
            f"The {f.words} is {{{e.name}.{f.name}}} already.",
        )
    old = d.answer(previous=f"{e.name}.{f.name}")
    make_move(d, move, extra={f.name: new})
    d.value = {}
    status = move.status
    old.answer(
        **{
            e.key: f"{e.name}.{e.key}",
            status.name: f"{e.name}.{status.name}",
            f.name: f"{e.name}.{f.name}",
        }
    )
    return d


def _cascade(o: Outline, move: EntityMove, link: EntityLink) -> ToolDraft:
    e, c = move.entity, link.child
    closing = [
        m
        for m in c.moves
        if not m.needs
        and not m.effects
        and m.to in c.ends
        and not any(f.type != "string" for f in m.takes)
    ]
    if not closing or move.to not in e.ends or not link.plain:
        raise Impossible
    follow = closing[-1]
    status = follow.status
    d = ToolDraft(
        o,
        f"{verb_noun(move.name, e.name)}_with_{c.many}",
        f"{move.doing(e.one)} and {follow.doing('its open ' + c.says)}",
    )
    d.row(e)
    d.rows(c, both(f"{c.name}.{link.field.name} == {e.name}.{e.key}", follow.test), c.many)
    make_move(d, move)
    d.loop(c.many, c.name)
    new = dict(follow.stamped)
    for f in follow.takes:
        name = f.name if f.name not in d.params else f"{c.name}_{f.name}"
        new[f.name] = d.of_field(f, name=name)
    d.was[c.name] = {status.name: follow.sources}
    d.update(c, c.name, new)
    d.done()
    return d.answer(
        **{
            e.key: f"{e.name}.{e.key}",
            move.status.name: f"{e.name}.{move.status.name}",
            c.many: f"{c.many}.{c.key}",
        }
    )


def _undo(o: Outline, move: EntityMove) -> ToolDraft:
    e, status = move.entity, move.status
    if (
        move.effects
        or len(move.sources) > 1
        or any(m.sources == [move.to] and m.to == move.sources[0] for m in e.moves)
    ):
        raise Impossible
    back = move.sources[0]
    d = ToolDraft(
        o,
        f"return_{e.name}_to_{back}",
        f"Take {e.one} back from {spaced(move.to)} to {spaced(back)}, to correct a mistake",
    )
    row = d.row(e)
    d.in_status(e, row, [move.to])
    new = {status.name: f"'{back}'"}
    if move.stamp is not None and move.stamp.optional:
        new[move.stamp.name] = "null"
    new |= {f.name: "null" for f in move.takes if f.optional}
    d.update(e, row, new)
    if sum(s["op"] == "require" for s in d.steps) > 1:
        raise Impossible  # what a rule asks of the earlier status is seldom still so
    reason = d.param(
        "reason", "string", "Why it is taken back, such as 'entered by mistake'", min=3, max=200
    )
    return d.answer(
        **{
            e.key: f"{row}.{e.key}",
            status.name: f"{row}.{status.name}",
            "was": f"'{move.to}'",
            "reason": reason,
        }
    )
