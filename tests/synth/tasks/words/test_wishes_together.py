"""Tasks whose first message brings several wishes: how they are drawn, worded and stored."""

from functools import cache
from typing import Any

from records.digest import digest
from records.seeds import rng_of
from synth.episode.sessions import part_of
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.forms import ALL_PLAIN, FormShares
from synth.tasks.goals.goals import Draft
from synth.tasks.goals.variants import VariantShares
from synth.tasks.lengths import Complexity
from synth.tasks.words.brief import prompt_for, user_brief
from synth.tasks.words.checks import faults_of, opening_goals, said_together
from synth.tasks.words.together import with_goals_together
from tests.synth.clinic import PERSONA
from tool_specs.domains.domain import load_domains

NORMAL = VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0))
ABOUT = {"title": "A desk", "description": "It serves people."}


@cache
def drafts(share: float) -> list[Draft]:
    forms = FormShares.model_validate(ALL_PLAIN.model_dump() | {"together": share})
    shares, found = Complexity(0.2, 0.4, 0.4), []
    for domain in load_domains(["clinic_desk", "web_shop"]):
        tasks = DomainTasks(domain, set(domain.programs), variants=NORMAL, forms=forms)
        for number in range(12):
            item = digest("together", domain.name, number)
            found.append(tasks.make(item, shares=shares, disclosure="mixed")[1])
    return found


def text_of(draft: Draft) -> str:
    prompt = prompt_for(draft, item_id="i", domain=ABOUT, persona=PERSONA)
    return prompt.messages[-1]["content"]


def words_for(draft: Draft, wishes: int) -> dict[str, Any]:
    """Words whose opening holds what is told at once with so many wishes."""
    groups = said_together(draft)
    said = [
        ", ".join(f"{f.value}" for goal in group for f in goal.known if f.when == "opening")
        for group in groups
    ]
    asks = [f"tell me {asked.label}" for goal in draft.goals for asked in goal.asks]
    told = [
        " ".join([text, *(f"tell me {asked.label}" for goal in group for asked in goal.asks)])
        for text, group in zip(said, groups, strict=True)
    ]
    return {
        "implausible": "",
        "person": PERSONA["name"],
        "relation": "the one whose affair it is",
        "situation": "You need something.",
        "opening": "Hello. " + " And: ".join(said[:wishes]),
        "wishes": [text or "This." for text in told],
        "asks": asks,
    }


def test_the_same_tasks_are_drawn_and_only_their_opening_differs() -> None:
    for one, several in zip(drafts(0.0), drafts(1.0), strict=True):
        assert one.opening_goals == 1
        assert several.model_copy(update={"opening_goals": 1}) == one
        possible = len(said_together(one)) > 1
        assert (several.opening_goals > 1) is possible
        assert several.opening_goals <= len(said_together(one))
    assert {draft.opening_goals for draft in drafts(1.0)} >= {1, 2, 3}


def test_a_task_that_brings_one_wish_after_the_other_is_told_as_before() -> None:
    for draft in drafts(0.0):
        assert "the first wish and holds those" in text_of(draft)
        assert "opening_goals" not in user_brief(draft, words_for(draft, 1))


def test_the_opening_holds_what_is_told_at_once_with_all_of_them() -> None:
    tried = 0
    for draft in drafts(1.0):
        number = draft.opening_goals
        if number == 1:
            continue
        assert f"the first {number} wishes, all in this one message" in text_of(draft)
        whole, short = words_for(draft, number), words_for(draft, number - 1)
        found = {
            name: "; ".join(faults_of(draft, words, persona=PERSONA["name"], descriptions=()))
            for name, words in (("whole", whole), ("short", short))
        }
        assert "in the opening is missing" not in found["whole"]
        last = said_together(draft)[number - 1]
        values = {f.value for goal in last for f in goal.known if f.when == "opening"}
        if any(isinstance(v, str) and v not in short["opening"] for v in values):
            tried += 1
            assert "in the opening is missing" in found["short"]
        assert user_brief(draft, whole)["opening_goals"] == number
    assert tried >= 5


def test_a_wish_that_takes_back_another_comes_later() -> None:
    draft = next(d for d in drafts(0.0) if len(said_together(d)) > 2)
    goals = list(draft.goals)
    goals[1] = goals[1].model_copy(update={"form": "corrected"})
    changed = draft.model_copy(update={"goals": tuple(goals)})
    assert with_goals_together(changed, 1.0, rng_of("item", "together")).opening_goals == 1


def test_wishes_of_a_later_conversation_do_not_stand_in_the_first_opening() -> None:
    draft = next(d for d in drafts(0.0) if len(said_together(d)) > 2)
    last = draft.goals[-1].model_copy(update={"session": 1})
    changed = draft.model_copy(update={"goals": (*draft.goals[:-1], last), "opening_goals": 9})
    assert opening_goals(changed) == len(said_together(draft)) - 1
    part = {"opening": "Hello.", "situation": "You come.", "wishes": 1, "keeps": 0}
    brief = {"wishes": ["a", "b"], "facts": [], "sessions": [part, part], "opening_goals": 2}
    assert "opening_goals" in part_of(brief, 0)
    assert "opening_goals" not in part_of(brief, 1)
