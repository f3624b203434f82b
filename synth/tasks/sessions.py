"""Tasks over several conversations: what the person brings when, and what the agent has to keep.

The goals are brought in order, some of them in a later conversation. One of those hangs on a value
that the person gives in the first conversation to be kept, and does not have any more when it comes
back. That nothing but a note can tell it is shown as for a missing fact: a twin, the same state and
the same words with another value, would be granted too and would come to something else
(`synth.tasks.proof.disclosure`).
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from synth.tasks.goals.goals import Draft, Fact, Goal
from synth.tasks.proof.disclosure import Twins
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.words.checks import said_together
from tool_specs.domains.domain import Domain

THREE = 0.3
"""How often the later goals, where there are several, are brought in two conversations."""


def in_sessions(domain: Domain, draft: Draft, rng: Random) -> Draft:
    """The draft with its goals in two or three conversations. UnprovedError("no_need_of_notes")
    where no later goal hangs on a value that can be kept from the first."""
    groups = said_together(draft)
    twins = Twins(domain, draft)
    for cut in rng.sample(range(1, len(groups)), len(groups) - 1):
        found = list(_to_keep(draft, groups[cut:]))
        rng.shuffle(found)
        found.sort(key=lambda pair: _can_be_guessed(domain, *pair))
        for goal, fact in found:
            if (other := twins.of(goal, fact)) is not None:
                cuts = [cut]
                if cut + 1 < len(groups) and rng.random() < THREE:
                    cuts.append(rng.randrange(cut + 1, len(groups)))
                return _divided(draft, groups, cuts, fact, other)
    raise UnprovedError("no_need_of_notes")


def _to_keep(draft: Draft, later: Sequence[Sequence[Goal]]) -> Iterator[tuple[Goal, Fact]]:
    """Facts of later goals that stand nowhere else. A wish that the person takes back in part says
    its values itself."""
    values = [fact.value for goal in draft.goals for fact in goal.known]
    for goal in (goal for group in later for goal in group):
        if not goal.possible or goal.form == "corrected":
            continue
        for fact in goal.known:
            is_alone = values.count(fact.value) == 1 and not isinstance(fact.value, bool)
            if fact.needed and fact.when == "opening" and is_alone:
                yield goal, fact


def _can_be_guessed(domain: Domain, goal: Goal, fact: Fact) -> bool:
    """Whether the value is one of a few."""
    program = domain.programs.get(goal.tool)
    param = program.spec.params.get(fact.param) if program else None
    return param is not None and param.type == "enum"


def _divided(
    draft: Draft, groups: Sequence[Sequence[Goal]], cuts: Sequence[int], kept: Fact, other: Any
) -> Draft:
    goals = []
    for number, group in enumerate(groups):
        session = sum(number >= cut for cut in cuts)
        for goal in group:
            known = tuple(
                fact.model_copy(update={"when": "earlier"}) if fact == kept else fact
                for fact in goal.known
            )
            goals.append(goal.model_copy(update={"known": known, "session": session}))
    how = {"sessions": len(cuts) + 1, "kept": {"fact": kept.label, "twin": other}}
    return draft.model_copy(update={"goals": tuple(goals), "proved": draft.proved | how})
