"""Patterns that move values: dates by days, amounts between rows, numbers by percent."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label
from offline_llm.tools.english import spaced
from offline_llm.tools.idea import Idea, Ideas, live_test, money, pick_of, picked, seen, to_come
from offline_llm.tools.logic import mentions
from offline_llm.tools.outline import MOMENTS, NUMBERS, Entity, Field, Outline
from offline_llm.tools.patterns.changing import open_row, shown_after
from offline_llm.tools.patterns.measuring import limits_of, plain_limit

_STOCKS = ("balance", "stock", "quantity", "budget", "quota", "credit", "allowance", "left")
_STOCKS += ("capacity", "slots", "seats", "points", "hours", "hand", "reserve", "funds", "limit")
"""Parts of the names of numbers of which a part can go from one row to another."""


def ideas(o: Outline) -> Ideas:
    for e in o:
        for f in e.of(*NUMBERS, optional=False):
            for sign in ("+", "-") if f.unit or f.verb else ():
                yield Idea("adjust", e.name, partial(_adjust, o, e, f, sign))
            if any(word in f.name for word in _STOCKS):
                yield Idea("transfer", e.name, partial(_transfer, o, e, f))
            if money(f) or f.verb:
                yield Idea("percent", e.name, partial(_percent, o, e, f))
        for f in [f for f in e.of(*MOMENTS, optional=False) if to_come(o, e, f)]:
            yield Idea("shift", e.name, partial(_shift, o, e, f))
            yield Idea("swap", e.name, partial(_swap, o, e, f))
            for link in o.up(e):
                if link.parent is not e and link.plain:
                    yield Idea("shift_all", e.name, partial(_shift_all, o, e, f, link.field))


def _adjust(o: Outline, e: Entity, f: Field, sign: str) -> ToolDraft:
    fixed = {(low.name, "-") for low, _ in limits_of(o, e)} | {
        (high.name, "+") for _, high in limits_of(o, e)
    }
    if (f.name, sign) in fixed:
        raise Impossible  # the rule about the two could never refuse it
    ruled = mentions(o, e, f.name)
    if ruled and sign == "-" and f not in [high for _, high in limits_of(o, e)]:
        raise Impossible
    options = ("raise", "increase", "step_up") if sign == "+" else ("lower", "reduce", "cut")
    verb = pick_of(o, f"adjust:{e.name}:{f.name}", options)
    d = ToolDraft(
        o, f"{verb}_{e.name}_{f.noun}", f"{spaced(verb)} the {f.words} of {e.one} by an amount"
    )
    row = open_row(d, e)
    unit = f" in {f.unit}" if f.unit else ""
    most = {"max": f.spec["max"]} if f.spec.get("max") is not None else {}
    by = d.param(
        "by",
        f.type,
        f"By how much{unit}, more than zero",
        min=1 if f.type == "integer" else 0.5,
        unit=f.unit,
        **most,
    )
    d.update(
        e,
        row,
        {
            f.name: f"{row}.{f.name} {sign} {by}"
            if f.type == "integer"
            else f"round({row}.{f.name} {sign} {by}, 2)"
        },
        bounds=not (ruled and plain_limit(o, e, f)),
    )
    return shown_after(d, e, row, f)


def _transfer(o: Outline, e: Entity, f: Field) -> ToolDraft:
    if (
        f.spec.get("min") is None
        or f.spec["min"] > 0
        or f.unit in ("%", None)
        or mentions(o, e, f.name)
    ):
        raise Impossible
    d = ToolDraft(
        o,
        f"transfer_{f.noun}_between_{e.many}",
        f"Move part of the {f.words} of one {e.words} to another",
    )
    giver = d.row(e, d.id_of(e, f"{e.words} that gives", name=f"from_{e.key}"), bind="giver")
    taker = d.row(e, d.id_of(e, f"{e.words} that takes", name=f"to_{e.key}"), bind="taker")
    d.require(f"giver.{e.key} != taker.{e.key}", f"same_{e.name}", f"Name two different {e.says}.")
    much = d.param("amount", f.type, f"How much to move, in {f.unit}", min=1, unit=f.unit)
    d.require(
        f"giver.{f.name} >= {much}",
        f"not_enough_{f.noun}",
        f"{{{giver}.{e.key}}} has only {{{giver}.{f.name}}} {f.unit}.",
    )
    if f.spec.get("max") is not None:
        d.require(
            f"taker.{f.name} + {much} <= {f.spec['max']}",
            f"{f.noun}_too_high",
            f"{{{taker}.{e.key}}} would go above {f.spec['max']}.",
        )
    less, more = (f"{giver}.{f.name} - {much}", f"{taker}.{f.name} + {much}")
    if f.type == "number":
        less, more = f"round({less}, 2)", f"round({more}, 2)"
    d.step("update", target=giver, set=[{"name": f.name, "value": less}])
    d.step("update", target=taker, set=[{"name": f.name, "value": more}])
    return d.answer(
        **{f"{side}_{f.name}": f"{side}.{f.name}" for side in ("giver", "taker")}, moved=much
    )


def _percent(o: Outline, e: Entity, f: Field) -> ToolDraft:
    if (
        f.type != "number"
        or mentions(o, e, f.name)
        or f.unit == "%"
        or f.spec.get("max") is not None
    ):
        raise Impossible
    enums = [
        x for x in (*e.of("enum", "ref", optional=False),) if x.verb is None or x.type == "ref"
    ]
    if not enums:
        raise Impossible
    choice = enums[0]
    d = ToolDraft(
        o,
        f"change_{f.noun}_of_{e.many}_by_percent",
        f"Raise or lower the {f.words} of all {e.says} with one {choice.words} by a percentage",
    )
    which = d.of_field(choice)
    percent = d.param(
        "percent", "number", "By how much, below zero to lower it", min=-50, max=50, unit="%"
    )
    d.require(f"{percent} != 0", "no_change", "A change by 0 % changes nothing.")
    test = f"{e.name}.{choice.name} == {which}" + (
        f" and {live}" if (live := live_test(e, e.name)) else ""
    )
    d.rows(e, test, e.many)
    if choice.type == "ref":
        d.require(f"exists({e.many})", f"no_{e.many}", f"Nothing to change for {{{which}}}.")
    d.loop(e.many, e.name)
    floor = f.spec.get("min")
    value = f"round({e.name}.{f.name} * (100 + {percent}) / 100, 2)"
    d.step(
        "update",
        target=e.name,
        set=[{"name": f.name, "value": f"max({value}, {floor})" if floor else value}],
    )
    d.done()
    return d.answer(**{e.many: picked(e.many, [e.key, f.name]), "total": f"sum({e.many}.{f.name})"})


def _shift(o: Outline, e: Entity, f: Field) -> ToolDraft:
    verb = pick_of(o, f"shift:{e.name}:{f.name}", ("postpone", "push_back", "delay"))
    d = ToolDraft(
        o,
        f"{verb}_{e.name}_{f.noun}",
        f"{spaced(verb)} the {f.words} of {e.one} by some days, at the same time of day",
    )
    row = open_row(d, e)
    days = d.param("days", "integer", "By how many days", min=1, max=180, unit="days")
    new = {f.name: f"add_days({row}.{f.name}, {days})"}
    for other in e.of(f.type, optional=False):
        if (
            other.name not in e.stamps
            and other is not f
            and ("end" in other.name or "until" in other.name or "to" in other.name.split("_"))
        ):
            new[other.name] = f"add_days({row}.{other.name}, {days})"
            d.told(f"Moves the {other.words} with it, so that the length stays the same")
    d.update(e, row, new)
    shown_after(d, e, row, *(e.fields[n] for n in new))
    return d.answer(previous=f"add_days({row}.{f.name}, -{days})")


def _shift_all(o: Outline, e: Entity, f: Field, ref: Field) -> ToolDraft:
    p = o[ref.to]
    if mentions(o, e, f.name) or not any(v > o.now for v in seen(e, f)):
        raise Impossible
    d = ToolDraft(
        o,
        f"shift_{p.name}_{e.many}_{f.noun}",
        f"Shift the {f.words} of every coming {e.words} of {p.one} by some days",
    )
    row = d.row(p)
    days = d.param(
        "days",
        "integer",
        "By how many days, below zero to bring them forward",
        min=-30,
        max=90,
        unit="days",
    )
    d.require(f"{days} != 0", "no_shift", "A shift by no days changes nothing.")
    today = "now()" if f.type == "datetime" else "date(now())"
    where = f"{e.name}.{ref.name} == {row}.{p.key} and {e.name}.{f.name} > {today}"
    d.rows(e, where, e.many, order_by=[f.name])
    d.require(
        f"exists({e.many})", f"no_{e.name}_ahead", f"{{{label(o, p, row)}}} has no {e.words} ahead."
    )
    d.loop(e.many, e.name)
    d.update(e, e.name, {f.name: f"add_days({e.name}.{f.name}, {days})"})
    d.done()
    return d.answer(
        **{
            e.many: picked(e.many, [e.key, f.name]),
            "first": f"min({e.many}.{f.name})",
            "moved": f"count({e.many})",
        }
    )


def _swap(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(o, f"swap_{f.noun}_of_{e.many}", f"Exchange the {f.words} of two {e.says}")
    for side in ("first", "second"):
        d.row(e, d.id_of(e, f"{side} {e.words}", name=f"{side}_{e.key}"), bind=side)
        if live_test(e, side):
            d.in_status(e, side, e.live)
    d.require(
        f"first.{f.name} != second.{f.name}", f"same_{f.noun}", f"Both have {{first.{f.name}}}."
    )
    if mentions(o, e, f.name):
        raise Impossible
    d.loop(f"[first.{f.name}]", "kept")
    d.step("update", target="first", set=[{"name": f.name, "value": f"second.{f.name}"}])
    d.step("update", target="second", set=[{"name": f.name, "value": "kept"}])
    d.done()
    shown = [e.key, f.name]
    return d.answer(
        first=picked("first", shown),
        second=picked("second", shown),
        days_apart=f"days_between(first.{f.name}, second.{f.name})",
    )
