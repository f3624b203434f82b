"""Patterns that find rows by what is in them: text, choice, span of days, number, list, gap."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label
from offline_llm.tools.english import listed, sentence, singular
from offline_llm.tools.idea import (
    Idea,
    Ideas,
    amount,
    both,
    brief,
    in_given,
    narrowing,
    optional,
    pick_of,
    picked,
)
from offline_llm.tools.outline import MOMENTS, NUMBERS, Entity, Field, Outline


def ideas(o: Outline) -> Ideas:
    for e in o:
        yield Idea("search", e.name, partial(_search, o, e))
        yield Idea("batch", e.name, partial(_batch, o, e))
        yield Idea("extremes", e.name, partial(_extremes, o, e))
        for f in e.of("enum", "boolean", optional=False):
            yield Idea("like", e.name, partial(_like, o, e, f))
        for f in e.of(*NUMBERS, optional=False):
            yield Idea("rank", e.name, partial(_rank, o, e, f))
            yield Idea("range", e.name, partial(_range, o, e, f))
        for f in e.of("list"):
            yield Idea("holding", e.name, partial(_holding, o, e, f))
        for f in e.fields.values():
            if f.optional:
                yield Idea("missing", e.name, partial(_missing, o, e, f))


def _search(o: Outline, e: Entity) -> ToolDraft:
    text = e.title or next(iter(e.of("string", optional=False)), None)
    verb = pick_of(o, f"search:{e.name}", ("find", "search", "find", "look_up"))
    d = ToolDraft(
        o, f"{verb}_{e.many}", f"{verb.replace('_', ' ')} {e.says} by what is known of them"
    )
    terms, filters = [], [*e.of("enum", "boolean", optional=False)]
    if e.status:
        filters.insert(0, e.status)
    if text:
        words = f"Part of the {text.words}, in any case"
        param = d.param(text.name, "string", words, optional=True, min=1, max=100)
        terms.append(optional(param, f"{e.name}.{text.name} contains {param}"))
    count = 1 + len(pick_of(o, f"filters:{e.name}", ("", "x", "xx")))
    for f in filters[:count]:
        terms.append(in_given(d, e, f))
    if not terms:
        raise Impossible
    shown = brief(o, e, "search", *(f.name for f in filters[:count]))
    order = text.name if text else e.key
    if pick_of(o, f"paged:{e.name}", ("yes", "no")) == "yes":
        limit = d.param(
            "limit", "integer", "Most rows of a page", min=1, max=50, default=20, optional=True
        )
        cursor = d.param("cursor", "string", "The next_cursor of the page before", optional=True)
        d.rows(e, both(*terms), e.many, order_by=[order], limit=limit, cursor=cursor)
        d.answer(**{e.many: picked(e.many, shown)}, next_cursor=f"{e.many}_next")
    else:
        d.rows(e, both(*terms), e.many, order_by=[order])
        d.answer(**{e.many: picked(e.many, shown)}, found=f"count({e.many})")
    return d


def _like(o: Outline, e: Entity, f: Field) -> ToolDraft:
    others = [x for x in (e.status, *(x.field for x in o.up(e))) if x and x.name != f.name]
    second = others[0] if others and pick_of(o, f"like:{e.name}:{f.name}", "yn") == "y" else None
    same = f.words + (f" and {second.words}" if second else "")
    d = ToolDraft(
        o,
        f"find_{e.many}_with_same_{f.noun}",
        f"Find the other {e.says} that share the {same} of {e.one}",
    )
    chosen = d.row(e, bind="chosen")
    terms = [f"{e.name}.{e.key} != chosen.{e.key}", f"{e.name}.{f.name} == chosen.{f.name}"]
    if second:
        terms.append(f"{e.name}.{second.name} == chosen.{second.name}")
    d.rows(e, both(*terms), "others")
    return d.answer(
        **{
            f.name: f"{chosen}.{f.name}",
            "others": picked("others", brief(o, e, f"like:{f.name}")),
            "found": "count(others)",
        }
    )


def _rank(o: Outline, e: Entity, f: Field) -> ToolDraft:
    down = pick_of(o, f"rank:{e.name}:{f.name}", ("highest", "lowest", "highest"))
    d = ToolDraft(
        o,
        f"list_{e.many}_with_{down}_{f.noun}",
        f"List the {e.says} with the {down} {f.words}, in that order",
    )
    top = d.param("top", "integer", "How many to list", min=1, max=25, default=3, optional=True)
    enums = [x for x in (e.status, *e.of("enum", "boolean", optional=False)) if x]
    where = None
    if enums:
        turn = int(pick_of(o, f"rank2:{e.name}:{f.name}", "012"))
        where = in_given(d, e, enums[turn % len(enums)])
    d.rows(e, where, "ranked", order_by=[("-" if down == "highest" else "") + f.name], limit=top)
    return d.answer(
        ranked=picked("ranked", brief(o, e, "rank", f.name)),
        together=f"sum(ranked.{f.name})",
        average=f"average(ranked.{f.name})",
    )


def _range(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(
        o,
        f"find_{e.many}_by_{f.noun}",
        f"Find the {e.says} whose {f.words} lies between two bounds",
    )
    least = d.of_field(f, name=f"least_{f.noun}", optional=True, words=f"Least {f.words}")
    most = d.of_field(f, name=f"most_{f.noun}", optional=True, words=f"Largest {f.words}")
    terms = [
        optional(least, f"{e.name}.{f.name} >= {least}"),
        optional(most, f"{e.name}.{f.name} <= {most}"),
    ]
    up = [link for link in o.up(e) if link.plain and link.parent is not e]
    if up and pick_of(o, f"range:{e.name}:{f.name}", "yn") == "y":
        param = d.id_of(up[0].parent, optional=True)
        terms.append(optional(param, f"{e.name}.{up[0].field.name} == {param}"))
    d.rows(e, both(*terms), "found", order_by=[f.name])
    shown = brief(o, e, "range", f.name)
    return d.answer(**{e.many: picked("found", shown), "average": f"average(found.{f.name})"})


def _holding(o: Outline, e: Entity, f: Field) -> ToolDraft:
    single = singular(f.words)
    d = ToolDraft(
        o,
        f"find_{e.many}_by_{single.replace(' ', '_')}",
        f"Find the {e.says} whose {f.words} include a given one",
    )
    if f.to in o.entities:
        held = o[f.to]
        row = d.row(held)
        test = f"{row}.{held.key} in {e.name}.{f.name}"
        d.answer(**{held.name: label(o, held, row)})
    elif f.of == "object":
        member = next((p for p in f.properties if p.type in ("string", "ref", "enum")), None)
        if member is None:
            raise Impossible
        known = [
            str(v[member.name])
            for row in e.sample
            for v in row.get(f.name) or ()
            if v.get(member.name)
        ]
        if not known:
            raise Impossible
        examples = listed([repr(v) for v in dict.fromkeys(known[:4])], "or")
        words = f"{member.words} to look for, such as {examples}"
        param = d.of_field(member, name=f"{single}_{member.name}".replace(" ", "_"))
        d.params[param.removeprefix("args.")]["description"] = sentence(words)
        test = f"{param} in {e.name}.{f.name}.{member.name}"
    elif f.of == "string":
        param = d.param(single.replace(" ", "_"), "string", f"One of the {f.words}", min=1, max=80)
        test = f"{e.name}.{f.name} contains {param}"
    else:
        raise Impossible
    d.rows(e, test, e.many)
    shown = [*brief(o, e, "holding"), f.name]
    return d.answer(**{e.many: picked(e.many, shown), "found": f"count({e.many})"})


def _missing(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(
        o,
        f"list_{e.many}_without_{f.noun}",
        f"List the {e.says} for which no {f.words} is recorded yet",
    )
    terms = [f"{e.name}.{f.name} == null"]
    terms.append(narrowing(o, d, e, f"missing:{f.name}", f))
    d.rows(e, both(*terms), e.many)
    d.rows(e, None, "all_rows")
    return d.answer(
        **{
            e.many: picked(e.many, brief(o, e, f"missing:{f.name}")),
            "missing": f"count({e.many})",
            "of_all": "count(all_rows)",
        }
    )


def _batch(o: Outline, e: Entity) -> ToolDraft:
    verb = pick_of(o, f"batch:{e.name}", ("get", "fetch", "show"))
    d = ToolDraft(
        o, f"{verb}_{e.many}_by_id", f"{verb} several {e.says} at once, in the order asked for"
    )
    ids = d.ids_of(e, 20)
    item = d.loop(ids, "wanted")
    row = d.row(e, item)
    d.done()
    d.answer(**{e.many: picked(row, brief(o, e, "batch"))})
    if number := amount(e):
        d.answer(**{f"total_{number.name}": f"sum({row}.{number.name})"})
    return d


def _extremes(o: Outline, e: Entity) -> ToolDraft:
    number, moments = amount(e), e.of(*MOMENTS, optional=False)
    if number is None or not moments or e.status is None:
        raise Impossible
    f = moments[0]
    d = ToolDraft(
        o,
        f"get_{e.name}_extremes",
        f"Show the earliest, the latest and the largest of the {e.says} in one {e.status.words}",
    )
    status = d.of_field(e.status, words=f"{e.status.words} of the {e.says} to look at")
    where = f"{e.name}.{e.status.name} == {status}"
    shown = brief(o, e, "extremes", f.name, number.name)
    for bind, order in (
        ("earliest", f.name),
        ("latest", f"-{f.name}"),
        ("highest", f"-{number.name}"),
    ):
        d.rows(e, where, bind, order_by=[order], limit="1")
    return d.answer(**{b: picked(f"first({b})", shown) for b in ("earliest", "latest", "highest")})
