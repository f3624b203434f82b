"""Patterns that measure: totals and tallies."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft
from offline_llm.tools.idea import (
    Idea,
    Ideas,
    both,
    in_given,
    live_test,
    narrowing,
    optional,
    pick_of,
)
from offline_llm.tools.outline import NUMBERS, Entity, Field, Outline
from tool_specs.language.expressions import parse, walk
from tool_specs.language.syntax.nodes import Access, Binary, Name


def ideas(o: Outline) -> Ideas:
    for e in o:
        for f in e.of(*NUMBERS, optional=False):
            yield Idea("stats", e.name, partial(_stats, o, e, f))
        for f in e.of("enum", "boolean", "string", "date", optional=False):
            yield Idea("tally", e.name, partial(_tally, o, e, f))


def limits_of(o: Outline, e: Entity) -> list[tuple[Field, Field]]:
    """Pairs of numbers of which a rule says that the first never exceeds the second."""
    found = []
    for rule in o.rules:
        tree = parse(rule["that"])
        if rule["entity"] != e.name or not isinstance(tree, Binary):
            continue
        sides = (tree.left, tree.right) if tree.operator == "<=" else (tree.right, tree.left)
        if tree.operator in ("<=", ">=") and all(
            isinstance(s, Access) and s.base == Name(e.name) for s in sides
        ):
            low, high = (e.fields[s.field] for s in sides)  # type: ignore[union-attr]
            if low.type in NUMBERS and high.type in NUMBERS and not (low.optional or high.optional):
                found.append((low, high))
    return found


def plain_limit(o: Outline, e: Entity, f: Field) -> bool:
    """Whether a rule without conditions keeps the field within a limit."""
    rules = [parse(rule["that"]) for rule in o.rules if rule["entity"] == e.name]
    return any(
        isinstance(tree, Binary)
        and tree.operator in ("<=", ">=")
        and Access(Name(e.name), f.name) in walk(tree)
        for tree in rules
    )


def _stats(o: Outline, e: Entity, f: Field) -> ToolDraft:
    verb = pick_of(
        o,
        f"stats:{e.name}:{f.name}",
        ("summarise_{f}_of_{es}", "get_{e}_{f}_statistics", "total_{e}_{f}"),
    )
    d = ToolDraft(
        o, verb.format(f=f.noun, es=e.many, e=e.name), f"Sum up the {f.words} of the {e.says}"
    )
    terms = []
    enums = [x for x in (e.status, *e.of("enum", "boolean", optional=False)) if x]
    turn = int(pick_of(o, f"stats2:{e.name}:{f.name}", "012"))
    if enums:
        terms.append(in_given(d, e, enums[turn % len(enums)]))
    ups = [link for link in o.up(e) if link.plain and link.parent is not e]
    if ups and turn != 1:
        param = d.id_of(ups[turn % len(ups)].parent, optional=True)
        terms.append(optional(param, f"{e.name}.{ups[turn % len(ups)].field.name} == {param}"))
    if not terms:
        raise Impossible
    d.rows(e, both(*terms), e.many)
    values = {
        "count": f"count({e.many})",
        "total": f"sum({e.many}.{f.name})",
        "average": f"average({e.many}.{f.name})",
        "lowest": f"min({e.many}.{f.name})",
        "highest": f"max({e.many}.{f.name})",
    }
    shown = [["count", "total", "average"], ["average", "lowest", "highest"], list(values)][turn]
    return d.answer(**{name: values[name] for name in shown})


def _tally(o: Outline, e: Entity, f: Field) -> ToolDraft:
    if f in e.natural or (
        f.type == "string" and f.name.endswith(("email", "phone", "note", "notes"))
    ):
        raise Impossible
    d = ToolDraft(o, f"count_{e.many}_by_{f.noun}", f"Count the {e.says} by {f.words}")
    ups = [link for link in o.up(e) if link.plain and link.parent is not e]
    turn = pick_of(o, f"tally:{e.name}:{f.name}", "abc")
    where = None
    if e.status and turn == "a":
        where = in_given(d, e, e.status, "Count only {} in this")
    elif ups and turn == "b":
        param = d.id_of(ups[-1].parent, optional=True)
        where = optional(param, f"{e.name}.{ups[-1].field.name} == {param}")
    else:
        if test := live_test(e, e.name):
            d.told("Only those that can still move on are counted")
        where = both(test, narrowing(o, d, e, f"tally:{f.name}", f))
    d.rows(e, where, e.many)
    return d.answer(**{f"by_{f.noun}": f"tally({e.many}.{f.name})", "total": f"count({e.many})"})
