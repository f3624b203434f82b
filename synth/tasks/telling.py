"""When a person tells what: at once or when asked, wish by wish or together, now or later."""

from typing import Any

from records.seeds import rng_of
from synth.tasks.forms.forms import FormShares
from synth.tasks.goals.goals import Draft, Fact, Goal
from synth.tasks.proof.disclosure import Twins, disclosed
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
