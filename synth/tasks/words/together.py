"""Several wishes in one message: what people write who say at once all that they came for."""

from random import Random

from synth.tasks.goals.goals import Draft
from synth.tasks.words.checks import said_together


def with_goals_together(draft: Draft, share: float, rng: Random) -> Draft:
    """The draft, of this share of the tasks that have several wishes with two or more of them in
    the opening. A wish that takes back an earlier one comes later by its nature."""
    groups = said_together(draft)
    fit = [
        group[0].session == 0 and not any(goal.form == "corrected" for goal in group)
        for group in groups
    ]
    most = fit.index(False) if False in fit else len(fit)
    if most < 2 or rng.random() >= share:
        return draft
    return draft.model_copy(update={"opening_goals": rng.randint(2, most)})
