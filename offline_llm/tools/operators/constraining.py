"""Operator constrain: more has to be met before the tool does its work."""

from collections.abc import Iterator

from offline_llm.tools.draft import Impossible, ToolDraft
from offline_llm.tools.english import article, plural, spaced
from offline_llm.tools.idea import amount, live_test, money, one_of, seen
from offline_llm.tools.outline import MOMENTS, NUMBERS, Entity, EntityLink, Outline
from offline_llm.tools.parents import (
    also,
    before_writing,
    draft_of,
    fit_rows,
    free_name,
    listing_of,
    main_row,
    named,
    narrow,
    subject_of,
    tried,
    writes,
)


def constrained(o: Outline, tool: dict) -> Iterator[ToolDraft]:
    d = draft_of(o, tool)
    for p in d.params.values() if writes(d) else ():
        if p["type"] in MOMENTS:
            yield from tried(o, tool, lambda d, p=p["name"]: _not_too_far(d, p))
    for step in d.steps:
        if step["op"] == "create" and "in" not in step:
            yield from _made(o, tool, step)
    subject = subject_of(d, looped=True)
    if subject is None or not writes(d):
        found = listing_of(d)
        for link in o.up(found[1]) if found and subject is None else ():
            if link.parent.live:
                yield from tried(o, tool, lambda d, x=link.field.name: _only_below_open(d, x))
        return
    e = subject.entity
    for link in o.down(e):
        yield from tried(o, tool, lambda d, link=link: _unless_there(d, link))
    if not any(s.get("target") == subject.row for s in d.steps):
        return
    for link in o.up(e):
        p = link.parent
        if p is not e and not link.field.optional:
            for f in p.of("boolean", optional=False):
                yield from tried(o, tool, lambda d, x=link.field.name, f=f.name: _if_flag(d, x, f))
            ended = {r[p.key] for r in p.sample if p.status and r[p.status.name] in p.ends}
            if any(r[link.field.name] in ended for r in e.sample):
                yield from tried(o, tool, lambda d, x=link.field.name: _if_parent_open(d, x))
    for f in e.of("boolean", optional=False):
        yield from tried(o, tool, lambda d, f=f.name: _if_own_flag(d, f))
    for f in e.of(*NUMBERS, optional=False):
        yield from tried(o, tool, lambda d, f=f.name: _small_step(d, f))
    if (f := amount(e)) is not None and money(f):
        yield from tried(o, tool, lambda d, f=f: _up_to(d, f.name))
    for f in e.of(*MOMENTS, optional=False):
        if any(v > o.now for v in seen(e, f)) and any(v < o.now for v in seen(e, f)):
            yield from tried(o, tool, lambda d, f=f: _before(d, f.name))
    for f in e.of("enum", optional=False):
        for value in dict.fromkeys(seen(e, f)):
            yield from tried(o, tool, lambda d, f=f.name, v=value: _only_kind(d, f, v))


def _made(o: Outline, tool: dict, step: dict) -> Iterator[ToolDraft]:
    """Of a tool that makes a row: only of one kind, or only small ones."""
    e = o[step["entity"]]
    for entry in step["set"]:
        f = e.fields[entry["name"]]
        if entry["value"] != f"args.{f.name}" or f.optional:
            continue
        if f.type == "enum" and not f.name.endswith("_by"):
            for value in seen(e, f)[:1]:
                yield from tried(o, tool, lambda d, f=f.name, v=value: _of_kind(d, e, f, v))
        if f.type in NUMBERS and len(set(seen(e, f))) > 1 and (money(f) or f.unit):
            yield from tried(o, tool, lambda d, f=f.name: _small(d, e, f))


def _of_kind(d: ToolDraft, e: Entity, field: str, value: str) -> ToolDraft:
    if e.name not in d.name or value in d.name or str(d.steps).count(f"args.{field}") > 1:
        raise Impossible
    del d.params[field]
    for step in d.steps:
        for entry in step.get("set", ()):
            if entry["value"] == f"args.{field}":
                entry["value"] = f"'{value}'"
    d.text = d.text.replace(e.words, f"{spaced(value)} {e.words}", 1)
    d.told(f"The {e.fields[field].words} is always {spaced(value)}")
    d.name = d.name.replace(e.name, f"{value}_{e.name}", 1)
    return d


def _small(d: ToolDraft, e: Entity, field: str) -> ToolDraft:
    f = e.fields[field]
    values = sorted(seen(e, f))
    limit, value = values[len(values) // 2], f"args.{field}"
    if e.name not in d.name or "small" in d.name or limit <= (f.spec.get("min") or 0):
        raise Impossible
    unit = f" {f.unit}" if f.unit else ""
    message = (
        f"A {f.words} of {{{value}}}{unit} is above {limit}{unit}; that takes a larger permission."
    )
    before_writing(d, lambda: d.require(f"{value} <= {limit}", f"{f.noun}_too_large", message))
    also(d, f", with {f.words} up to {limit}{unit}")
    d.name = d.name.replace(e.name, f"small_{e.name}", 1)
    return d


def _if_flag(d: ToolDraft, ref: str, flag: str) -> ToolDraft:
    e, row = main_row(d, looped=True)
    p = d.outline[e.fields[ref].to]
    test = f"lookup('{p.name}', {row}.{ref}).{flag}"
    values = seen(p, p.fields[flag])
    above = {r[p.key]: r.get(flag) for r in p.sample}
    shown = {above[r[ref]] for r in fit_rows(d, e, row) if r[ref] in above}
    wanted = sum(values) * 2 >= len(values) if values else True
    if flag in str(d.steps) or len(shown) < 2:
        raise Impossible
    words = p.fields[flag].words
    noun = e.fields[ref].noun
    error = f"{noun}_{'not_' if wanted else ''}{p.fields[flag].noun}"
    message = (
        f"The {spaced(noun)} of {{{row}.{e.key}}} is {'not ' if wanted else ''}marked as {words}."
    )
    before_writing(d, lambda: d.require(test if wanted else f"not {test}", error, message))
    also(d, f", provided that its {spaced(noun)} is {'' if wanted else 'not '}marked as {words}")
    return named(d, f"if_{noun}_{'' if wanted else 'not_'}{p.fields[flag].noun}")


def _if_own_flag(d: ToolDraft, flag: str) -> ToolDraft:
    e, row = main_row(d, looped=True)
    f, values = e.fields[flag], seen(e, e.fields[flag])
    if flag in str(d.steps) or len({r.get(flag) for r in fit_rows(d, e, row)}) < 2:
        raise Impossible
    wanted = sum(values) * 2 >= len(values)
    word = f.noun if wanted else f"not_{f.noun}"
    message = f"{{{row}.{e.key}}} is {'not ' if wanted else ''}marked as {f.words}."
    error = f"not_{f.noun}" if wanted else f.noun
    test = f"{row}.{flag}" if wanted else f"not {row}.{flag}"
    before_writing(d, lambda: d.require(test, error, message))
    also(d, f", only where it is {'' if wanted else 'not '}marked as {f.words}")
    return named(d, f"if_{word}")


_FAR = ((30, "thirty"), (60, "sixty"), (90, "ninety"), (180, "half_a_year"))


def _not_too_far(d: ToolDraft, param: str) -> ToolDraft:
    if "within" in d.name:
        raise Impossible
    days, word = _FAR[len(d.name) % len(_FAR)]
    suffix = "within_half_a_year" if days == 180 else f"within_{word}_days"
    last = f"add_days(date(now()), {days})"
    value = f"args.{param}"
    test = f"date({value}) <= {last}"
    if d.params[param].get("optional"):
        test = f"{value} == null or {test}"
    message = f"{{{value}}} is more than {days} days ahead."
    before_writing(d, lambda: d.require(test, "too_far_ahead", message))
    also(d, f", no more than {days} days ahead")
    return named(d, suffix)


def _small_step(d: ToolDraft, field: str) -> ToolDraft:
    """A new number no more than a fifth away from the present one."""
    row = main_row(d, looped=True)[1]
    written = [x["value"] for s in d.steps for x in s.get("set", ()) if x["name"] == field]
    news = [p for p in d.params if f"args.{p}" in written]
    if not news or f"{row}.{field} " in str(d.steps):
        raise Impossible
    new, old = f"args.{news[0]}", f"{row}.{field}"
    test = f"{new} <= {old} * 1.2 and {new} >= {old} * 0.8"
    message = f"{{{new}}} is more than a fifth away from {{{old}}}."
    before_writing(d, lambda: d.require(test, "step_too_large", message))
    also(d, ", by no more than a fifth up or down")
    return named(d, "by_a_fifth_at_most")


def _unless_there(d: ToolDraft, link: EntityLink) -> ToolDraft:
    """A new row only where the parent has none that is still open."""
    e, row = main_row(d, looped=True)
    c = link.child
    made = [s for s in d.steps if s["op"] == "create" and s["entity"] == c.name and "in" not in s]
    open_ = live_test(c, c.name)
    if not made or not open_ or "open" in d.name or any(s.get("as") == c.name for s in d.steps):
        raise Impossible
    where = f"{c.name}.{link.field.name} == {row}.{e.key} and {open_}"
    bind = free_name(d, f"open_{c.many}")
    message = f"{{{row}.{e.key}}} has an open {c.words} already."

    def add() -> None:
        d.rows(c, where, bind, limit="1")
        d.require(f"not exists({bind})", f"{c.name}_open_already", message)

    before_writing(d, add)
    also(d, f", unless the {e.words} has an open one already")
    return named(d, "unless_open")


def _if_parent_open(d: ToolDraft, ref: str) -> ToolDraft:
    e, row = main_row(d, looped=True)
    p = d.outline[e.fields[ref].to]
    assert p.status is not None
    if f".{p.status.name}" in str(d.steps).replace(f"{row}.{p.status.name}", ""):
        raise Impossible
    noun = e.fields[ref].noun
    status = f"lookup('{p.name}', {row}.{ref}).{p.status.name}"
    message = f"The {spaced(noun)} of {{{row}.{e.key}}} is {{{status}}}."
    open_ = [s for s in p.status.values if s not in p.ends]
    before_writing(d, lambda: d.require(f"{status} in {one_of(open_)}", f"{noun}_closed", message))
    also(d, f", as long as its {spaced(noun)} is still {spaced(' or '.join(open_[:3]))}")
    return named(d, f"while_{noun}_open")


def _up_to(d: ToolDraft, field: str) -> ToolDraft:
    e, row = main_row(d, looped=True)
    f = e.fields[field]
    if field in str(d.steps):
        raise Impossible
    limit = d.of_field(
        f, name=f"up_to_{f.noun}", words=f"Largest {f.words} for which the caller may do this"
    )
    message = f"The {f.words} of {{{row}.{e.key}}} is {{{row}.{field}}}, above {{{limit}}}."
    before_writing(
        d, lambda: d.require(f"{row}.{field} <= {limit}", f"{f.noun}_above_limit", message)
    )
    also(d, f", up to a limit on its {f.words}")
    return named(d, f"up_to_{f.noun}")


def _before(d: ToolDraft, field: str) -> ToolDraft:
    e, row = main_row(d, looped=True)
    f = e.fields[field]
    if field in str(d.steps) or len({r[field] > d.outline.now for r in fit_rows(d, e, row)}) < 2:
        raise Impossible
    today = "now()" if f.type == "datetime" else "date(now())"
    message = f"The {f.words} {{{row}.{field}}} of {{{row}.{e.key}}} has passed."
    before_writing(d, lambda: d.require(f"{row}.{field} > {today}", f"{f.noun}_passed", message))
    also(d, f", while its {f.words} is still to come")
    return named(d, f"before_{f.noun}")


def _only_kind(d: ToolDraft, field: str, value: str) -> ToolDraft:
    """For rows of one kind alone, whose name the tool carries: `extend_short_trip`."""
    e, row = main_row(d, looped=True)
    f = e.fields[field]
    if field in str(d.steps) or e.name not in d.name or value in d.name or field.endswith("_by"):
        raise Impossible
    if not any(r.get(field) == value for r in fit_rows(d, e, row)):
        raise Impossible
    message = f"The {f.words} of {{{row}.{e.key}}} is {{{row}.{field}}}, not {spaced(value)}."
    test = f"{row}.{field} == '{value}'"
    before_writing(d, lambda: d.require(test, f"not_{value}", message))
    d.text = d.text.replace(e.one, f"{article(spaced(value))} {e.words}", 1)
    d.told(f"It is for {e.says} whose {f.words} is {spaced(value)}")
    d.name = d.name.replace(e.name, f"{value}_{e.name}", 1)
    return d


def _only_below_open(d: ToolDraft, ref: str) -> ToolDraft:
    found = listing_of(d)
    assert found is not None
    place, e = found
    p = d.outline[e.fields[ref].to]
    if p is e or p.status is None or not p.ends or "limit" in d.steps[place]:
        raise Impossible
    noun = e.fields[ref].noun
    status = f"{noun}_{p.status.name}"
    if status in d.params:
        raise Impossible
    param = d.of_field(p.status, name=status, words=f"{p.status.words} of the {spaced(noun)}")
    narrow(d, place, f"lookup('{p.name}', {e.name}.{ref}).{p.status.name} == {param}")
    also(d, f", of {plural(spaced(noun))} in one {p.status.words} only")
    return named(d, f"by_{noun}_{p.status.noun}")
