"""The variants of tasks: their shares, and the question that takes no tool."""

from collections.abc import Mapping
from datetime import date, timedelta
from random import Random

from synth.tasks.goals.goals import Asked, Fact, Goal, Variant
from tool_specs.domains.domain import Domain

WEIGHTS: Mapping[Variant, float] = {
    "normal": 0.65,
    "missing_parameter": 0.1,
    "against_policy": 0.1,
    "missing_tool": 0.05,
    "irrelevant_tool": 0.03,
    "unclear_tool": 0.04,
    "no_tool": 0.03,
}
"""Shares of the variants where all are possible. What an agent cannot have goes to the normal."""

MISSING_TOOL_WEIGHT = 0.3
"""For agents that lack a tool, about a quarter of them, and not always one that proves to be out
of reach: so the variant comes to its 5%."""


def variant_of(
    rng: Random, *, has_rules: bool, lacks_tools: bool, has_others: bool, has_alternatives: bool
) -> Variant:
    """Drawn among those that an agent can have: one with rules, with tools that its domain has and
    it has not, beside other domains, with tools that a vague user goal could mean alike."""
    weights: dict[Variant, float] = dict(WEIGHTS)
    weights["missing_tool"] = MISSING_TOOL_WEIGHT if lacks_tools else 0.0
    possible: dict[Variant, bool] = {
        "against_policy": has_rules,
        "irrelevant_tool": has_others,
        "unclear_tool": has_alternatives,
    }
    weights |= {v: 0.0 for v, can in possible.items() if not can}
    weights["normal"] = max(0.0, 1.0 - sum(w for v, w in weights.items() if v != "normal"))
    return rng.choices(list(weights), list(weights.values()))[0]


def question(domain: Domain, rng: Random) -> Goal:
    """A question that takes no tool: the agent knows the date, the rest is reckoning."""
    today = date.fromisoformat(domain.now[:10])
    days = rng.choice((7, 10, 14, 21, 30, 45, 60, 90))
    amount, times = rng.choice((12.5, 18, 24.75, 35, 49.9, 120)), rng.randint(2, 12)
    questions = (
        ("Say what date it is today.", (), "today's date", today.isoformat()),
        (
            "Work out the date that lies a number of days after today.",
            (_figure("number of days", days, "days"),),
            "the date",
            (today + timedelta(days=days)).isoformat(),
        ),
        (
            "Work out what an amount a month comes to over a number of months.",
            (
                _figure("amount a month", amount, "amount"),
                _figure("number of months", times, "months"),
            ),
            "the total",
            round(amount * times, 2),
        ),
    )
    words, known, label, answer = rng.choice(questions)
    return Goal(
        tool="",
        description=words,
        arguments={fact.param: fact.value for fact in known},
        labels={fact.param: fact.label for fact in known},
        known=known,
        asks=(Asked(label=label, values=(answer,)),),
        steps=(),
        writes=False,
    )


def _figure(label: str, value: float, param: str) -> Fact:
    return Fact(label=label, value=value, param=param, needed=True)
