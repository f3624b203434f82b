"""When a person tells what: at once or when asked, wish by wish or together, now or later."""

from random import Random
from typing import Any

from records.seeds import rng_of
from synth.tasks.forms.forms import FormShares
from synth.tasks.goals.goals import Draft, Fact, Goal
from synth.tasks.proof.disclosure import Twins, disclosed, kept_back
from synth.tasks.sessions import in_sessions
from synth.tasks.words.together import with_goals_together
from tool_specs.domains.domain import Domain


def told(
    domain: Domain,
    draft: Draft,
    disclosure: str,
    *,
    item_id: str,
    attempt: int,
    forms: FormShares,
    returns: bool,
) -> Draft:
    """The draft with the moment of each fact and wish. `returns`: in several conversations.
    UnprovedError where nothing can be kept back that has to be."""
    draft = _disclosed(domain, draft, disclosure, item_id)
    if returns:
        draft = in_sessions(domain, draft, rng_of(item_id, "returns", attempt))
    if draft.variant != "normal":
        return draft
    return with_goals_together(draft, forms.together, rng_of(item_id, "together", attempt))


def _disclosed(domain: Domain, draft: Draft, disclosure: str, item_id: str) -> Draft:
    rng = rng_of(item_id, "reveals")
    if draft.variant != "missing_parameter":
        return disclosed(draft, disclosure, rng)
    twins = Twins(domain, draft)
    found: dict[str, Any] = {}

    def is_missing(goal: Goal, fact: Fact) -> bool:
        other = twins.of(goal, fact)
        found["missing"] = {"fact": fact.label, "twin": other}
        return other is not None

    draft = disclosed(draft, disclosure, rng, is_missing)
    return draft.model_copy(update={"proved": draft.proved | found})


def all_when_asked(draft: Draft) -> Draft:
    """Every fact that the agent will ask for is told only then, but for the first of each goal."""
    return kept_back(draft, 1.0, Random(0))  # a share of all of them draws nothing


def at_once(draft: Draft) -> Draft:
    """Every fact is told at once."""

    def told_first(fact: Fact) -> Fact:
        return fact.model_copy(update={"when": "opening"})

    goals = [g.model_copy(update={"known": tuple(map(told_first, g.known))}) for g in draft.goals]
    return draft.model_copy(update={"goals": tuple(goals)})
