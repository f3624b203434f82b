"""Patterns that change fields of rows: set, raise, shift, switch, clear, in one row or in many."""

from functools import partial
from itertools import pairwise

from offline_llm.tools.draft import Impossible, ToolDraft, label, parent_label
from offline_llm.tools.english import spaced, verb_noun
from offline_llm.tools.idea import Idea, Ideas, live_test, pick_of, picked
from offline_llm.tools.logic import mentions
from offline_llm.tools.outline import MOMENTS, NUMBERS, Entity, Field, Outline

_REMARKS = ("note", "remark", "comment", "reason", "outcome", "detail", "log", "summary", "message")
_REMARKS += ("description", "instruction", "finding", "feedback", "report", "diagnosis")
"""Beginnings of the names of texts to which something can be added."""


def ideas(o: Outline) -> Ideas:
    for e in o:
        for f in e.fields.values():
            fixed = f.name in e.stamps or f.name == e.key or f is e.status
            if fixed or f.type in ("list", "object"):
                continue
            if f.verb or (f.type in ("string", "enum") and not f.optional):
                yield Idea("set", e.name, partial(_set, o, e, f))
            if f.verb or f.type == "enum":
                yield Idea("set_many", e.name, partial(_set_many, o, e, f))
            if f.optional:
                yield Idea("clear", e.name, partial(_clear, o, e, f))
            if f.optional and f.type == "string" and f.name.startswith(_REMARKS):
                yield Idea("append", e.name, partial(_append, o, e, f))
        for f in e.of(*NUMBERS, optional=False):
            yield Idea("match", e.name, partial(_match, o, e, f))
        for f in e.of("boolean", optional=False):
            yield Idea("switch", e.name, partial(_switch, o, e, f))
        for f in e.of("enum", optional=False):
            yield Idea("step", e.name, partial(_step, o, e, f))
        yield Idea("details", e.name, partial(_details, o, e))


def shown_after(d: ToolDraft, e: Entity, row: str, *fields: Field) -> ToolDraft:
    """Answers with the row's id, its name and these fields as they are now."""
    names = list(
        dict.fromkeys([e.key, *([e.title.name] if e.title else []), *(f.name for f in fields)])
    )
    return d.answer(**{str(name): f"{row}.{name}" for name in names})


def open_row(d: ToolDraft, e: Entity, *, key: str = "") -> str:
    """Reads the row by id; where there is a lifecycle it must not have come to its end."""
    row = d.row(e, key)
    if live_test(e, e.name) and pick_of(d.outline, f"open:{d.name}", "yyn") == "y":
        d.in_status(e, row, e.live)
    return row


def _set(o: Outline, e: Entity, f: Field) -> ToolDraft:
    verb = f.verb or ("correct" if f.type == "string" else "change")
    same = [x for x in e.fields.values() if x.verb == f.verb]
    name = verb_noun(verb, e.name) if f.verb and len(same) == 1 else f"{verb}_{e.name}_{f.noun}"
    d = ToolDraft(o, name, f"{spaced(verb)} {e.one}: set its {f.words} anew")
    row = open_row(d, e)
    new = d.of_field(
        f,
        name=f"new_{f.name}",
        words=f"The {f.words} from now on" if f.type not in ("ref", "string") else "",
    )
    old = f"{row}.{f.name}"
    if f.type in ("enum", "boolean", "ref"):
        d.require(f"{new} != {old}", f"same_{f.noun}", f"The {f.words} is {{{old}}} already.")
    elif f.type in MOMENTS and not mentions(o, e, f.name):
        today = "now()" if f.type == "datetime" else "date(now())"
        d.require(f"{new} >= {today}", f"{f.noun}_passed", f"{{{new}}} lies in the past.")
    d.update(e, row, {f.name: new})
    shown_after(d, e, row, f)
    if f.type in MOMENTS:
        d.answer(days_ahead=f"days_between(now(), {row}.{f.name})")
    elif f.type == "ref":
        d.answer(**{f"{f.noun}_name": parent_label(o, f, row)})
    return d


def _set_many(o: Outline, e: Entity, f: Field) -> ToolDraft:
    verb = f.verb or "set"
    name = (
        verb_noun(verb, e.many)
        if f.verb and sum(x.verb == f.verb for x in e.fields.values()) == 1
        else f"{verb}_{f.noun}_of_{e.many}"
    )
    d = ToolDraft(o, name, f"Set the {f.words} of several {e.says} to one value; all or none")
    ids = d.ids_of(e, 20)
    new = d.of_field(f)
    d.loop(ids, "wanted")
    d.row(e, "wanted")
    if live_test(e, e.name):
        d.in_status(e, e.name, e.live)
    d.update(e, e.name, {f.name: new})
    d.done()
    return d.answer(changed=picked(e.name, [e.key, f.name]), count=f"count({e.name})")


def _clear(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(
        o, f"clear_{e.name}_{f.noun}", f"Remove the {f.words} that is recorded for {e.one}"
    )
    row = d.row(e)
    d.require(f"{row}.{f.name} != null", f"no_{f.noun}", f"{{{row}.{e.key}}} has no {f.words}.")
    d.update(e, row, {f.name: "null"})
    return shown_after(d, e, row, f, *e.of("enum", "boolean", optional=False)[:1])


def _append(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(
        o,
        f"add_to_{e.name}_{f.noun}",
        f"Add a line to the {f.words} of {e.one}, with the date in front",
    )
    row = d.row(e)
    text = d.param(
        "text", "string", "What to add, such as 'called back, no answer'", min=2, max=300
    )
    line = f"concat(date(now()), ': ', {text})"
    d.update(
        e,
        row,
        {f.name: f"if({row}.{f.name} == null, {line}, concat({row}.{f.name}, '; ', {line}))"},
    )
    return shown_after(d, e, row, f)


def _match(o: Outline, e: Entity, f: Field) -> ToolDraft:
    if not f.verb:
        raise Impossible
    d = ToolDraft(o, f"match_{e.name}_{f.noun}", f"Give {e.one} the same {f.words} as another one")
    model = d.row(
        e, d.id_of(e, f"{e.words} to take the {f.words} from", name=f"model_{e.key}"), bind="model"
    )
    row = d.row(e)
    d.require(
        f"{model}.{f.name} != {row}.{f.name}",
        f"same_{f.noun}",
        f"Both have {{{row}.{f.name}}} already.",
    )
    d.update(e, row, {f.name: f"{model}.{f.name}"})
    shown_after(d, e, row, f)
    return d.answer(like=label(o, e, model))


def _switch(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(o, f"set_{e.name}_{f.noun}", f"Switch the mark '{f.words}' of {e.one} on or off")
    row = open_row(d, e)
    value = d.param(
        f.name, "boolean", f.spec.get("description") or f"True when {f.words}, false when not"
    )
    d.require(
        f"{value} != {row}.{f.name}", "no_change", f"{{{row}.{e.key}}} is set that way already."
    )
    d.update(e, row, {f.name: value})
    shown_after(d, e, row, f)
    ups = [link for link in o.up(e) if not link.field.optional and link.parent is not e]
    if ups:
        d.answer(**{f"{ups[-1].field.noun}_name": parent_label(o, ups[-1].field, row)})
    return d


def _step(o: Outline, e: Entity, f: Field) -> ToolDraft:
    """Only for choices that are an order: low to high, small to large."""
    scales = ("low", "small", "minor", "basic", "routine", "bronze", "short", "normal", "light")
    values = list(f.values)
    if not values or values[0] not in scales or len(values) > 5:
        raise Impossible
    d = ToolDraft(o, f"escalate_{e.name}_{f.noun}", f"Raise the {f.words} of {e.one} by one step")
    row = open_row(d, e)
    d.require(
        f"{row}.{f.name} != '{values[-1]}'",
        "at_the_top",
        f"{{{row}.{e.key}}} is {values[-1]} already.",
    )
    text = f"'{values[-1]}'"
    for low, high in reversed(list(pairwise(values))[:-1]):
        text = f"if({row}.{f.name} == '{low}', '{high}', {text})"
    d.update(e, row, {f.name: text})
    return shown_after(d, e, row, f, *([e.status] if e.status else []))


def _details(o: Outline, e: Entity) -> ToolDraft:
    fields = [
        f
        for f in e.fields.values()
        if f.name != e.key
        and f is not e.status
        and f.name not in e.stamps
        and f.type in ("string", "enum", "boolean", *NUMBERS)
        and not mentions(o, e, f.name)
    ][:5]
    if len(fields) < 2:
        raise Impossible
    d = ToolDraft(
        o,
        f"update_{e.name}_details",
        f"Update what is recorded about {e.one}; what is left out stays as it is",
    )
    row = d.row(e)
    new = {f.name: f"coalesce({d.of_field(f, optional=True)}, {row}.{f.name})" for f in fields}
    given = " or ".join(f"args.{f.name} != null" for f in fields)
    d.require(given, "nothing_given", "Give at least one value to change.")
    d.step("update", target=row, set=[{"name": n, "value": v} for n, v in new.items()])
    return shown_after(d, e, row, *fields)
