"""Operator constrain: more has to be met before the tool does its work."""

from collections.abc import Iterator

from synth.offline.tools.draft import Draft, Impossible
from synth.offline.tools.english import article, plural, spaced
from synth.offline.tools.idea import amount, money, one_of, seen
from synth.offline.tools.outline import MOMENTS, Outline
from synth.offline.tools.parents import (
    also,
    before_writing,
    draft_of,
    listing_of,
    loops,
    main_row,
    named,
    narrow,
    subject_of,
    tried,
    writes,
)


def constrained(o: Outline, tool: dict) -> Iterator[Draft]:
    d = draft_of(o, tool)
    subject = subject_of(d)
    if subject is None or loops(d) or not writes(d):
        if subject is None and (found := listing_of(d)):
            for link in o.up(found[1]):
                if link.parent.live:
                    yield from tried(o, tool, lambda d, x=link.field.name: _only_below_open(d, x))
        return
    e = subject.entity
    for link in o.up(e):
        p = link.parent
        if p is not e and not link.field.optional:
            for f in p.of("boolean", optional=False):
                yield from tried(o, tool, lambda d, x=link.field.name, f=f.name: _if_flag(d, x, f))
            ended = {r[p.key] for r in p.sample if p.status and r[p.status.name] in p.ends}
            if any(r[link.field.name] in ended for r in e.sample):
                yield from tried(o, tool, lambda d, x=link.field.name: _if_parent_open(d, x))
    if (f := amount(e)) is not None and money(f):
        yield from tried(o, tool, lambda d, f=f: _up_to(d, f.name))
    for f in e.of(*MOMENTS, optional=False):
        if any(v > o.now for v in seen(e, f)) and any(v < o.now for v in seen(e, f)):
            yield from tried(o, tool, lambda d, f=f: _before(d, f.name))
    for f in e.of("enum", optional=False):
        for value in dict.fromkeys(seen(e, f)):
            yield from tried(o, tool, lambda d, f=f.name, v=value: _only_kind(d, f, v))


def _if_flag(d: Draft, ref: str, flag: str) -> Draft:
    e, row = main_row(d)
    p = d.outline[e.fields[ref].to]
    test = f"lookup('{p.name}', {row}.{ref}).{flag}"
    values = seen(p, p.fields[flag])
    wanted = sum(values) * 2 >= len(values) if values else True
    if flag in str(d.steps):
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


def _if_parent_open(d: Draft, ref: str) -> Draft:
    e, row = main_row(d)
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


def _up_to(d: Draft, field: str) -> Draft:
    e, row = main_row(d)
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


def _before(d: Draft, field: str) -> Draft:
    e, row = main_row(d)
    f = e.fields[field]
    if field in str(d.steps):
        raise Impossible
    today = "now()" if f.type == "datetime" else "date(now())"
    message = f"The {f.words} {{{row}.{field}}} of {{{row}.{e.key}}} has passed."
    before_writing(d, lambda: d.require(f"{row}.{field} > {today}", f"{f.noun}_passed", message))
    also(d, f", while its {f.words} is still to come")
    return named(d, f"before_{f.noun}")


def _only_kind(d: Draft, field: str, value: str) -> Draft:
    """For rows of one kind alone, whose name the tool carries: `extend_short_trip`."""
    e, row = main_row(d)
    f = e.fields[field]
    if field in str(d.steps) or e.name not in d.name or value in d.name or field.endswith("_by"):
        raise Impossible
    asked = " ".join(str(s["that"]) for s in d.steps if s["op"] == "require")
    status = e.status.name if e.status and f"{row}.{e.status.name}" in asked else ""
    if not any(r.get(field) == value and repr(r.get(status, "")) in asked + "''" for r in e.sample):
        raise Impossible
    message = f"The {f.words} of {{{row}.{e.key}}} is {{{row}.{field}}}, not {spaced(value)}."
    test = f"{row}.{field} == '{value}'"
    before_writing(d, lambda: d.require(test, f"not_{value}", message))
    d.text = d.text.replace(e.one, f"{article(spaced(value))} {e.words}", 1)
    d.told(f"It is for {e.says} whose {f.words} is {spaced(value)}")
    d.name = d.name.replace(e.name, f"{value}_{e.name}", 1)
    return d


def _only_below_open(d: Draft, ref: str) -> Draft:
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
