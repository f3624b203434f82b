"""The variants of tasks: their shares, and the question that takes no tool."""

import re
from datetime import date, timedelta
from random import Random
from typing import Self

from pydantic import Field, model_validator

from records.config import Config
from synth.tasks.goals.goals import Asked, Fact, Goal, Variant
from tool_specs.domains.domain import Domain


class _Shares(Config):
    """Shares of all tasks; what they leave of 1 is normal tasks."""

    @model_validator(mode="after")
    def _leave_room(self) -> Self:
        shares = self.model_dump()
        if sum(shares.values()) > 1.0 + 1e-9:
            told = ", ".join(f"{name} = {share}" for name, share in shares.items())
            raise ValueError(f"shares of all tasks may add up to 1 at most, got {told}")
        return self


class VariantShares(_Shares):
    """How often tasks in a domain are of a variant. What an agent cannot have goes to the normal
    tasks, and so do the draws that come to no proved task."""

    missing_parameter: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of tasks in which the user leaves out a needed fact until asked."""
    against_policy: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of tasks with a goal that a rule of the domain forbids, for agents with rules."""
    missing_tool: float = Field(default=0.3, ge=0.0, le=1.0)
    """Share of tasks with a goal whose tool the agent lacks, among agents that lack one. These are
    about a quarter, and not every such goal proves to be out of reach: 0.3 comes to 5% of all."""
    irrelevant_tool: float = Field(default=0.03, ge=0.0, le=1.0)
    """Share of tasks with a goal of another domain, for which no tool at hand is any use."""
    unclear_tool: float = Field(default=0.04, ge=0.0, le=1.0)
    """Share of tasks whose first goal does not say what should be done, for agents with tools that
    it could mean alike."""
    no_tool: float = Field(default=0.03, ge=0.0, le=1.0)
    """Share of tasks that ask a question which takes no tool."""


class ServerVariantShares(_Shares):
    """How often tasks on a real MCP server are of a variant; what rules forbid and which goals are
    out of reach is known of domains only."""

    missing_parameter: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of tasks in which the user leaves out a needed fact until asked."""
    irrelevant_tool: float = Field(default=0.05, ge=0.0, le=1.0)
    """Share of tasks with a goal of another domain, for which no tool at hand is any use."""

    def variant(self, rng: Random) -> Variant:
        draw = rng.random()
        if draw < self.missing_parameter:
            return "missing_parameter"
        both = self.missing_parameter + self.irrelevant_tool
        return "irrelevant_tool" if draw < both else "normal"


def variant_of(
    rng: Random,
    *,
    shares: VariantShares,
    has_rules: bool,
    lacks_tools: bool,
    has_others: bool,
    has_alternatives: bool,
) -> Variant:
    """Drawn among those that an agent can have: one with rules, with tools that its domain has and
    it has not, beside other domains, with tools that a vague user goal could mean alike."""
    weights: dict[Variant, float] = {
        "normal": 0.0,
        "missing_parameter": shares.missing_parameter,
        "against_policy": shares.against_policy if has_rules else 0.0,
        "missing_tool": shares.missing_tool if lacks_tools else 0.0,
        "irrelevant_tool": shares.irrelevant_tool if has_others else 0.0,
        "unclear_tool": shares.unclear_tool if has_alternatives else 0.0,
        "no_tool": shares.no_tool,
    }
    weights["normal"] = max(0.0, 1.0 - sum(w for v, w in weights.items() if v != "normal"))
    return rng.choices(list(weights), list(weights.values()))[0]


ABOUT_RULES = 0.7
"""How often a question without tools is about a rule, where one of the domain holds a figure."""

_FIGURE = re.compile(r"(?<![\w.,:-])\d+(?:[.,]\d+)?(?![\w:-])")


def question(domain: Domain, rng: Random) -> Goal:
    """A question that takes no tool: the agent knows its rules and the date, the rest is
    reckoning."""
    rules = [rule for rule in domain.policy if len(_FIGURE.findall(rule.text)) == 1]
    if rules and rng.random() < ABOUT_RULES:
        return _about_rule(rng.choice(rules).text)
    return _reckoned(domain, rng)


def _about_rule(rule: str) -> Goal:
    figure = _FIGURE.search(rule)
    assert figure is not None
    value = float(figure[0].replace(",", "."))
    return Goal(
        tool="",
        description="Ask which figure one of the desk's rules names.",
        wish="Find out from the assistant, without having anything done, which figure stands where "
        f"this rule of the desk has dots: {_FIGURE.sub('...', rule)}",
        arguments={},
        labels={},
        known=(),
        asks=(
            Asked(
                label="the figure in that rule",
                values=(int(value) if value.is_integer() else value,),
            ),
        ),
        steps=(),
        writes=False,
    )


def _reckoned(domain: Domain, rng: Random) -> Goal:
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
