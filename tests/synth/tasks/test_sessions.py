"""Tasks over several conversations: each hangs on a value that nothing but a note can tell."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from records.digest import digest
from synth.episode.sessions import num_sessions, part_of
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.forms import FormShares
from synth.tasks.goals.goals import Draft, Fact, Goal
from synth.tasks.goals.variants import VariantShares
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.words.brief import prompt_for, schema_for, steps_for_words, user_brief
from synth.tasks.words.checks import KEEP, faults_of, said_together
from tests.synth.clinic import PERSONA
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment

NAMES = ("clinic_desk", "letting_office", "web_shop")
NORMAL = VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0))


@cache
def made() -> list[tuple[Domain, Draft]]:
    return [
        (domain, draft)
        for domain in load_domains(NAMES)
        for number in range(12)
        if (draft := drafted(domain, number, 1.0)) is not None
    ]


def drafted(domain: Domain, number: int, share: float) -> Draft | None:
    forms = FormShares(sessions=share)
    tasks = DomainTasks(domain, set(domain.programs), variants=NORMAL, forms=forms)
    try:
        item = digest("sessions", domain.name, number)
        shares = Complexity(0.2, 0.4, 0.4)
        return tasks.make(item, shares=shares, disclosure="mixed")[1]
    except UnprovedError:
        return None


def in_several() -> list[tuple[Domain, Draft]]:
    return [(domain, draft) for domain, draft in made() if draft.num_sessions > 1]


def kept_of(draft: Draft) -> tuple[Goal, Fact]:
    [kept] = [(g, f) for g in draft.goals for f in g.known if f.when == "earlier"]
    return kept


def test_nearly_every_task_that_is_drawn_can_be_divided() -> None:
    assert len(in_several()) >= 0.8 * len(made()) > 20
    assert {draft.num_sessions for _, draft in in_several()} == {2, 3}


def test_goals_are_brought_in_order_and_one_wish_in_one_conversation() -> None:
    for _, draft in in_several():
        sessions = [goal.session for goal in draft.goals]
        assert sessions == sorted(sessions)
        assert set(sessions) == set(range(draft.num_sessions))
        assert all(len({goal.session for goal in group}) == 1 for group in said_together(draft))


def test_nothing_that_can_be_read_tells_what_was_to_be_kept() -> None:
    """With the twin's value the same call is granted before the same state, and comes to something
    else: the readings of both are the same, so that they cannot tell which one is meant."""
    for domain, draft in in_several():
        goal, fact = kept_of(draft)
        assert goal.session > 0
        environment = DomainEnvironment.of(domain, draft.initial_state)
        for earlier in draft.goals[: draft.goals.index(goal)]:
            if earlier.possible and earlier.tool in domain.programs:
                environment.call(earlier.tool, earlier.arguments)
        other = goal.arguments | {fact.param: draft.proved["kept"]["twin"]}
        right = environment.snapshot().call(goal.tool, goal.arguments)
        twin = environment.snapshot().call(goal.tool, other)
        assert not right.is_error
        assert not twin.is_error
        assert right.diff != twin.diff or right.observation != twin.observation


def test_a_share_of_none_draws_what_was_drawn_before() -> None:
    domain = load_domains(["clinic_desk"])[0]
    for number in range(4):
        draft = drafted(domain, number, 0.0)
        assert draft is not None
        assert draft.num_sessions == 1
        assert "keep" not in schema_for(draft)["properties"]
        assert all("conversation" not in step for step in steps_for_words(draft))


def honest_words(draft: Draft) -> dict[str, Any]:
    """Words that say what is to be said where it is to be said, and no more."""

    def telling(facts: Iterator[Fact]) -> str:
        return ", ".join(f"{fact.label}: {fact.value}" for fact in facts if fact.when == "opening")

    groups = said_together(draft)
    openings = [
        telling(f for g in next(gr for gr in groups if gr[0].session == n) for f in g.known)
        for n in range(draft.num_sessions)
    ]
    _, kept = kept_of(draft)
    wishes = [telling(f for goal in group for f in goal.known) or "This." for group in groups]
    asks = []
    for number, group in enumerate(groups):
        for asked in (asked for goal in group for asked in goal.asks):
            wishes[number] += f" Tell me {asked.label}."
            asks.append(f"Tell me {asked.label}")
    returns = [{"situation": "You come back.", "opening": text} for text in openings[1:]]
    return {
        "implausible": "",
        "person": PERSONA["name"],
        "relation": "the one whose affair it is",
        "situation": "You need something.",
        "opening": openings[0] or "Hello.",
        "wishes": wishes,
        "asks": asks,
        "keep": f"Keep this for later: {kept.value}.",
        "returns": returns,
    }


def faults(draft: Draft, words: dict[str, Any]) -> str:
    return "; ".join(faults_of(draft, words, persona=PERSONA["name"], descriptions=()))


def test_words_tell_what_is_to_be_kept_in_one_place_alone() -> None:
    for _, draft in in_several():
        words, (_, kept) = honest_words(draft), kept_of(draft)
        assert "is missing" not in faults(draft, words)
        assert "alone tells" not in faults(draft, words)
        assert f"in {KEEP}" in faults(draft, words | {"keep": "Keep it."})
        if len(str(kept.value)) <= 3:
            continue  # may stand anywhere by chance
        again = [back | {"opening": f"{back['opening']} {kept.value}"} for back in words["returns"]]
        for told in (
            {"opening": f"{words['opening']} {kept.value}"},
            {"returns": again},
            {"wishes": [f"{wish} {kept.value}" for wish in words["wishes"]]},
            {"situation": f"You gave {kept.value}."},
        ):
            assert "alone tells" in faults(draft, words | told), told


def test_values_are_said_in_the_conversation_that_they_belong_to() -> None:
    for _, draft in in_several():
        words = honest_words(draft)
        silent = [back | {"opening": "Hello again."} for back in words["returns"]]
        for number, back in enumerate(words["returns"], 2):
            if back["opening"] and any(letter.isdigit() for letter in back["opening"]):
                found = faults(draft, words | {"returns": silent})
                assert f"in the opening of conversation {number} is missing" in found


def test_the_brief_gives_each_conversation_its_wishes_and_facts() -> None:
    for _, draft in in_several():
        goal, kept = kept_of(draft)
        brief = user_brief(draft, honest_words(draft))
        assert num_sessions(brief) == draft.num_sessions
        parts = [part_of(brief, number) for number in range(draft.num_sessions)]
        assert [wish for part in parts for wish in part["wishes"]] == brief["wishes"]
        assert sum(len(part["facts"]) for part in parts) == len(brief["facts"])
        for part in parts:
            assert all(0 <= fact["goal"] < len(part["wishes"]) for fact in part["facts"])
        assert kept.value in [fact["value"] for fact in parts[0]["facts"]]
        assert brief["wishes"][len(parts[0]["wishes"]) - 1].startswith("Keep this for later")
        for part in parts[1:]:
            assert kept.value not in [fact["value"] for fact in part["facts"]]
            assert not any(wish.startswith("Keep this") for wish in part["earlier"])
        own = [f.value for f in goal.known if f.when != "earlier"]
        told = [fact["value"] for fact in brief["facts"]]
        assert all(value in told for value in own)


def test_the_generator_is_told_of_conversations_only_where_there_are_several() -> None:
    domain, draft = in_several()[0]
    one = draft.model_copy(
        update={"goals": tuple(goal.model_copy(update={"session": 0}) for goal in draft.goals)}
    )
    about = {"title": domain.title, "description": domain.description}
    for given, expected in ((draft, True), (one, False)):
        prompt = prompt_for(given, item_id="i", domain=about, persona=PERSONA)
        text = prompt.messages[-1]["content"]
        assert ("`returns`" in text) is expected
        assert ('"conversation": 2' in text) is expected


@pytest.mark.parametrize("number", range(3))
def test_the_same_item_is_divided_alike(number: int) -> None:
    domain = load_domains(["clinic_desk"])[0]
    assert drafted(domain, number, 1.0) == drafted(domain, number, 1.0)
