"""Patterns over days and times: spans, what has passed or comes soon, time left."""

from functools import partial
from itertools import pairwise

from offline_llm.tools.draft import Impossible, ToolDraft
from offline_llm.tools.idea import (
    Idea,
    Ideas,
    ahead,
    amount,
    both,
    brief,
    deadline,
    in_given,
    live_test,
    narrowing,
    optional,
    pick_of,
    picked,
    seen,
    to_come,
)
from offline_llm.tools.outline import MOMENTS, Entity, Field, Outline


def ideas(o: Outline) -> Ideas:
    for e in o:
        moments = [f for f in e.of(*MOMENTS) if seen(e, f)]
        for f in moments:
            coming = any(v > o.now for v in seen(e, f))
            yield Idea("time_left", e.name, partial(_time_left, o, e, f))
            if not f.optional:
                yield Idea("between", e.name, partial(_between, o, e, f))
            if to_come(o, e, f) and not f.optional and any(v < o.now for v in seen(e, f)):
                yield Idea("passed", e.name, partial(_passed, o, e, f))
            if coming:
                yield Idea("within", e.name, partial(_within, o, e, f))
            else:
                yield Idea("recent", e.name, partial(_recent, o, e, f))
        for first, second in pairwise(moments):
            yield Idea("span", e.name, partial(_span, o, e, first, second))


def _between(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(
        o,
        f"list_{e.many}_by_{f.noun}",
        f"List the {e.says} whose {f.words} lies in a span of days, earliest first",
    )
    begin = d.param("from_day", "date", "First day of the span")
    end = d.param("to_day", "date", "Last day of the span")
    d.require(
        f"{begin} <= {end}",
        "span_reversed",
        "The span begins on {args.from_day}, after its end {args.to_day}.",
    )
    terms = [f"date({e.name}.{f.name}) >= {begin}", f"date({e.name}.{f.name}) <= {end}"]
    number = amount(e)
    if (enums := e.of("enum")) and not number:
        param = d.of_field(enums[0], optional=True, words=f"Only this {enums[0].words}")
        terms.append(optional(param, f"{e.name}.{enums[0].name} == {param}"))
    d.rows(e, both(*terms), e.many, order_by=[f.name])
    d.answer(**{e.many: picked(e.many, brief(o, e, "between", f.name))})
    if number:
        d.answer(**{f"total_{number.name}": f"sum({e.many}.{number.name})"})
    return d


def _passed(o: Outline, e: Entity, f: Field) -> ToolDraft:
    test = live_test(e, e.name)
    if not test:
        raise Impossible
    late = deadline(f)
    name = f"list_overdue_{e.many}" if late else f"list_{e.many}_past_{f.noun}"
    d = ToolDraft(
        o, name, f"List the {e.says} that are still open although their {f.words} has passed"
    )
    number = amount(e)
    more = narrowing(o, d, e, f"passed:{f.name}")
    d.rows(e, both(test, f"{e.name}.{f.name} < {ahead(o, f)}", more), e.many, order_by=[f.name])
    d.answer(
        **{
            e.many: picked(e.many, brief(o, e, "passed", f.name)),
            "oldest_days": f"days_between(min({e.many}.{f.name}), now())",
        }
    )
    if number and late:
        d.answer(**{number.name: f"sum({e.many}.{number.name})"})
    params = [link for link in o.up(e) if not link.field.optional]
    if params and not late:
        d.answer(**{params[0].parent.many: f"distinct({e.many}.{params[0].field.name})"})
    return d


def _within(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(
        o,
        f"list_{e.many}_with_{f.noun}_soon",
        f"List the {e.says} whose {f.words} comes within a number of days",
    )
    days = d.param(
        "days",
        "integer",
        "How many days to look ahead, today included",
        min=1,
        max=365,
        unit="days",
    )
    terms = [
        f"{e.name}.{f.name} >= {ahead(o, f)}",
        f"date({e.name}.{f.name}) <= add_days(date(now()), {days})",
    ]
    if e.status and pick_of(o, f"soon:{e.name}:{f.name}", "yn") == "y":
        terms.append(in_given(d, e, e.status, "Only {} in this"))
    d.rows(e, both(*terms), "coming", order_by=[f.name])
    return d.answer(
        coming=picked("coming", brief(o, e, "within", f.name)),
        until=f"add_days(date(now()), {days})",
        found="count(coming)",
    )


def _recent(o: Outline, e: Entity, f: Field) -> ToolDraft:
    d = ToolDraft(
        o,
        f"list_latest_{e.many}_by_{f.noun}",
        f"List the {e.says} with the most recent {f.words}, latest first",
    )
    limit = d.param("limit", "integer", "How many to list", min=1, max=20, default=5, optional=True)
    more = narrowing(o, d, e, f"recent:{f.name}")
    known = f"{e.name}.{f.name} != null" if f.optional else ""
    d.rows(e, both(known, more), "latest", order_by=[f"-{f.name}"], limit=limit)
    return d.answer(
        latest=picked("latest", brief(o, e, "recent", f.name)),
        newest=f"max(latest.{f.name})",
        days_ago=f"days_between(max(latest.{f.name}), now())",
    )


def _time_left(o: Outline, e: Entity, f: Field) -> ToolDraft:
    past = f.name in e.stamps or not any(v > o.now for v in seen(e, f))
    name = f"get_days_since_{e.name}_{f.noun}" if past else f"get_days_to_{e.name}_{f.noun}"
    d = ToolDraft(
        o, name, f"Count the days {'since' if past else 'until'} the {f.words} of {e.one}"
    )
    row = d.row(e)
    if f.optional:
        d.require(
            f"{row}.{f.name} != null", f"no_{f.noun}", f"{{{row}.{e.key}}} has no {f.words} yet."
        )
    days = (
        f"days_between({row}.{f.name}, now())" if past else f"days_between(now(), {row}.{f.name})"
    )
    d.answer(**{f.name: f"{row}.{f.name}", "days": days})
    if not past:
        d.answer(passed=f"{row}.{f.name} < {'now()' if f.type == 'datetime' else 'date(now())'}")
    if e.status:
        d.answer(**{e.status.name: f"{row}.{e.status.name}"})
    return d


def _span(o: Outline, e: Entity, first: Field, second: Field) -> ToolDraft:
    minutes = first.type == second.type == "datetime"
    unit = "minutes" if minutes else "days"
    d = ToolDraft(
        o,
        f"measure_{e.name}_from_{first.noun}_to_{second.noun}",
        f"Measure the {unit} between the {first.words} and the {second.words} of {e.one}",
    )
    row = d.row(e)
    for f in (first, second):
        if f.optional:
            d.require(
                f"{row}.{f.name} != null",
                f"no_{f.noun}",
                f"{{{row}.{e.key}}} has no {f.words} yet.",
            )
    return d.answer(
        **{
            first.name: f"{row}.{first.name}",
            second.name: f"{row}.{second.name}",
            unit: f"{unit}_between({row}.{first.name}, {row}.{second.name})",
        }
    )
