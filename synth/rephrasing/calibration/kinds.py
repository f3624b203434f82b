"""The kinds of changes of meaning that the judge of rewrites is tried with.

A kind is words alone: what the change is, and what the model that writes it is told. One more kind
is one more entry.
"""

from typing import NamedTuple

from records.digest import digest
from records.seeds import rng_of

PARAPHRASE = "paraphrase"
"""A control: one sentence of the rewrite in other words."""

UNTOUCHED = "untouched"
"""A control: a part that no judge has been asked about, as it stands."""


class MeaningChange(NamedTuple):
    name: str
    what: str
    """In one line."""
    instruction: str
    """For the model that writes it."""


CHANGES = (
    MeaningChange(
        "negation",
        "what holds is denied, or what does not hold is asserted",
        "Turn one statement into its opposite with a negation, or by taking one away."
        " Change the statement itself and no side remark.",
    ),
    MeaningChange(
        "most_to_all",
        "a part of something has become all of it, or none",
        "Where the part says most, many, some, usually, often or nearly, say all, every,"
        " always or none, or leave the word out so that the statement is general.",
    ),
    MeaningChange(
        "may_to_does",
        "what is possible, planned or presumed has become certain",
        "Where the part says may, can, might, could, is thought to, is planned or seems,"
        " say that it does, is or did.",
    ),
    MeaningChange(
        "condition_dropped",
        "a statement holds without the condition that it depends on",
        "Take out an if, provided that, as long as, only when, or what stands for one,"
        " with all that belongs to it, so that the statement holds without it.",
    ),
    MeaningChange(
        "exception_dropped",
        "a rule has lost its exception",
        "Take out an unless, except, apart from, other than, or what stands for one, with"
        " all that belongs to it, so that the rule holds for the exception, too.",
    ),
    MeaningChange(
        "caveat_dropped",
        "a reservation, a limit or a doubt about a statement is gone",
        "Take out the words that limit how sure, how exact or how far-reaching a"
        " statement is: about, so far, roughly, not guaranteed, according to a few cases."
        " Leave the statement itself.",
    ),
    MeaningChange(
        "cause_of_sequence",
        "what merely follows or accompanies something has become its effect",
        "Join two things that the part tells one after the other, or side by side, by"
        " because, therefore, led to or so that. The part must not say that one causes the"
        " other.",
    ),
    MeaningChange(
        "cause_effect_exchanged",
        "cause and effect, or means and purpose, have changed places",
        "Where the part says that one thing comes about by another, say it the other way round.",
    ),
    MeaningChange(
        "statement_reassigned",
        "a statement, opinion, finding or quotation is somebody else's",
        "Give what somebody says, thinks, found or wrote to another person or body that"
        " the part names, or to nobody in particular where the part names somebody.",
    ),
    MeaningChange(
        "roles_exchanged",
        "who does what to whom, or what acts on what, is exchanged",
        "Let the two persons, bodies or things of one action change places: who gives and"
        " who is given to, what comes from where, what stands above what.",
    ),
    MeaningChange(
        "order_of_events",
        "events or steps are in another order",
        "Say that what comes later in the part comes first, or the reverse. No date or"
        " number may change; where dates show the order, choose other events.",
    ),
    MeaningChange(
        "claim_invented",
        "a claim is added that the part does not make",
        "Add to a sentence one plausible claim of fact about its subject that the part"
        " neither makes nor implies: a reason, a property, a consequence, a further case."
        " No number, no date and no new name.",
    ),
    MeaningChange(
        "fact_left_out",
        "a fact of the part stands nowhere in the rewrite any more",
        "Take one fact out of a sentence that tells several, so that it stands nowhere in"
        " the rewrite, and make the sentence read as if nothing were missing.",
    ),
    MeaningChange(
        "comparison_reversed",
        "more has become less, or two compared things have changed places",
        "Reverse a comparison: larger, earlier, better, as many as, twice. No number may change.",
    ),
    MeaningChange(
        "scope_widened",
        "what is said of one case, group, place or time is said of more",
        "Let a statement about one thing, or a named group of them, hold for all things"
        " of the kind, for the whole of which it is a part, or for other times.",
    ),
    MeaningChange(
        "value_reassigned",
        "a value, a property or a name belongs to another thing of the part",
        "Let two things of the part that each have a value, property, name or place"
        " exchange them. Both values stand in the part; only what they belong to changes.",
    ),
    MeaningChange(
        "time_moved",
        "before has become after, not yet has become already, no longer has become still",
        "Move when something holds in relation to something else: before and after, until"
        " and from, already and not yet, still and no longer. No date or number may"
        " change.",
    ),
    MeaningChange(
        "degree",
        "slightly has become greatly, or the reverse",
        "Change how strong, how large, how frequent or how important something is said to"
        " be, by another adverb or adjective. No number may change.",
    ),
    MeaningChange(
        "exact_value",
        "a number, unit or date is another one",
        "Write another number, unit or date that is as plausible and as exact as the one"
        " that the part has, in the same form.",
    ),
    MeaningChange(
        "opinion_made_fact",
        "what somebody thinks, hopes, fears or claims has become a fact",
        "Take out who thinks, says, hopes, advises or claims it, so that the statement"
        " stands as a fact in the text's own voice.",
    ),
)

BY_NAME = {change.name: change for change in CHANGES}

ORDER = tuple(rng_of("changes", "trial").sample(sorted(BY_NAME), len(BY_NAME)))
"""In which kinds are begun, always the same: mixed, so that few trials are of several sorts."""


def kinds_version() -> str:
    """Digest of all that is said of the kinds."""
    return digest([change._asdict() for change in CHANGES])
