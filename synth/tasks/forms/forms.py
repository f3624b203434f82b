"""The shares of goals by form, and how a goal of each form is added to a task."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Self

from pydantic import Field, model_validator

from records.config import Config
from synth.tasks.forms.chosen import add_chosen
from synth.tasks.forms.conditional import add_conditional
from synth.tasks.forms.corrected import add_corrected
from synth.tasks.forms.described import add_described
from synth.tasks.forms.fallback import add_fallback
from synth.tasks.forms.for_each import add_for_each
from synth.tasks.forms.within import add_within
from synth.tasks.goals.building import Builder
from synth.tasks.goals.goals import GoalForm

ADDERS: Mapping[GoalForm, Callable[[Builder], bool]] = {
    "chosen": add_chosen,
    "described": add_described,
    "within": add_within,
    "for_each": add_for_each,
    "conditional": add_conditional,
    "fallback": add_fallback,
    "corrected": add_corrected,
}


class FormShares(Config):
    """How many of the goals have structure; the others are plain. A goal whose form
    the state and the tools at hand do not give is plain as well."""

    chosen: float = Field(default=0.12, ge=0.0, le=1.0)
    """Share of goals whose row is chosen by comparison, such as the cheapest of a list."""
    described: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of goals whose row is described by what sets it apart, such as the loan that is
    overdue."""
    within: float = Field(default=0.04, ge=0.0, le=1.0)
    """Share of goals for the best row within a limit, such as the fastest that costs at most 40."""
    for_each: float = Field(default=0.08, ge=0.0, le=1.0)
    """Share of goals for every row of a set."""
    conditional: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of goals that are to be done only if a figure is above a limit."""
    fallback: float = Field(default=0.06, ge=0.0, le=1.0)
    """Share of goals with a first choice that is refused and a second one."""
    corrected: float = Field(default=0.05, ge=0.0, le=1.0)
    """Share of goals that change what an earlier goal has set."""
    traded: float = Field(default=0.25, ge=0.0, le=1.0)
    """Share of the tasks against the policy or without the tool, of which the user takes something
    else in place of what cannot be had, where the tools at hand give it."""
    together: float = Field(default=0.25, ge=0.0, le=1.0)
    """Share of the normal tasks of several wishes whose first message brings more than one."""
    sessions: float = Field(default=0.05, ge=0.0, le=1.0)
    """Share of the normal tasks that are brought in two or three conversations, where the agent has
    to keep notes in between."""

    @model_validator(mode="after")
    def _leave_room(self) -> Self:
        if (total := sum(self._of_goals.values())) > 1.0 + 1e-9:
            raise ValueError(f"shares of all goals may add up to 1 at most, got {total:.2f}")
        return self

    @property
    def _of_goals(self) -> dict[GoalForm, float]:
        return {form: getattr(self, form) for form in ADDERS}

    @property
    def shape_goals(self) -> bool:
        """Whether a goal can be other than plain."""
        return any(self._of_goals.values())

    def draw(self, rng: Random) -> GoalForm:
        shares = self._of_goals
        plain: dict[GoalForm, float] = {"plain": max(0.0, 1.0 - sum(shares.values()))}
        weights = shares | plain
        return rng.choices(list(weights), list(weights.values()))[0]


ALL_PLAIN = FormShares(
    chosen=0,
    described=0,
    within=0,
    for_each=0,
    conditional=0,
    fallback=0,
    corrected=0,
    traded=0,
    together=0,
    sessions=0,
)


def add_of_form(builder: Builder, form: GoalForm) -> bool:
    """Append a goal of the form; False for a plain one, and where there is none."""
    return form in ADDERS and ADDERS[form](builder)
