"""Attributes of personas: drawn at their weights, free of contradictions, repeats found."""

from collections import Counter
from typing import Any

import pytest

from records.errors import ConfigError
from records.settings import validate_as
from records.tables.schemas import Row
from synth.prompts.templates import render
from synth.tasks.agents import population
from synth.tasks.agents.attributes import clashes
from synth.tasks.agents.persona_config import PersonaConfig, suits_age
from synth.tasks.agents.personas import PersonaPlan, plan_personas
from synth.tasks.agents.screening import near_personas, undecided_personas
from tests.synth.authors import GENERATOR
from tests.synth.clinic import PERSONA


def drawn(count: int = 1500, **settings: Any) -> list[PersonaPlan]:
    config = validate_as(PersonaConfig, settings, where="here")
    return plan_personas(config, seed=5, count=count, generator=GENERATOR)


def test_no_persona_contradicts_itself() -> None:
    for plan in drawn():
        own = plan.attributes
        assert suits_age(own.occupation, own.age)
        assert suits_age(own.household, own.age)
        phrases = [
            plan.style, *plan.preferences, own.occupation, own.household, own.mood, own.knowledge,
            own.language_level, own.message_length, *own.habits,
        ]  # fmt: skip
        for i, phrase in enumerate(phrases):
            assert not clashes(phrase, phrases[:i]), (phrase, phrases)


def test_a_pupil_is_young_and_a_pensioner_is_not() -> None:
    ages: dict[str, set[int]] = {}
    for plan in drawn():
        ages.setdefault(plan.attributes.occupation, set()).add(plan.attributes.age)
    assert max(ages["pupil"]) <= 18
    assert min(ages["retired"]) >= 60


def test_weights_are_kept_to() -> None:
    plans = drawn(3000)
    places = Counter(plan.attributes.place for plan in plans)
    whole = sum(population.PLACES.values())
    for place, weight in population.PLACES.items():
        assert abs(places[place] / 3000 - weight / whole) < 0.04
    habits = Counter(habit for plan in plans for habit in plan.attributes.habits)
    assert set(habits) == set(population.HABITS)
    for habit, share in population.HABITS.items():
        assert habits[habit] / 3000 < share + 0.03  # contradictions only take away


def test_languages_bring_their_countries() -> None:
    plans = drawn(400, languages={"German": 0.5, "Greek": 0.5})
    where: dict[str, set[str | None]] = {}
    for plan in plans:
        where.setdefault(plan.attributes.language, set()).add(plan.attributes.country)
    assert where == {"German": {"Germany", "Austria", "Switzerland"}, "Greek": {None}}
    assert {p.attributes.language for p in drawn(50)} == {"English"}


def test_every_table_of_the_settings_is_drawn_from() -> None:
    own: dict[str, dict[str, float]] = {
        "ages": {"30-30": 1.0},
        "places": {"a castle": 1.0},
        "countries": {"Utopia": 1.0},
        "households": {"in a commune": 1.0},
        "occupations": {"jester": 1.0},
        "moods": {"giddy": 1.0},
        "knowledge": {"expert": 1.0},
        "languages": {"Frisian": 1.0},
        "language_levels": {"learner": 1.0},
        "message_lengths": {"three words": 1.0},
        "habits": {"in rhymes": 1.0},
    }
    [plan] = drawn(1, **own, styles=["plain"], preferences=["tea"])
    assert plan.attributes.columns() == {
        "age": 30, "place": "a castle", "country": "Utopia", "household": "in a commune",
        "occupation": "jester", "mood": "giddy", "knowledge": "expert", "language": "Frisian",
        "language_level": "learner", "message_length": "three words", "habits": ["in rhymes"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ages": {"young": 1.0}}, "a band is such as `25-34`"),
        ({"ages": {"40-30": 1.0}}, "a band is such as"),
        ({"moods": {"calm": -1.0}}, "weights are at least 0"),
        ({"moods": {}}, "one of them is above 0"),
        ({"habits": {"emoji": 1.5}}, "less than or equal to 1"),
        ({"occupations": {"pupil": 1.0}}, "occupations have none for a person of 19"),
        ({"knowledge": {"much": 1.0}}, "'none', 'some' or 'expert'"),
    ],
)
def test_what_nobody_can_be_drawn_from_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        validate_as(PersonaConfig, settings, where="here")


WORDS = "grows leeks beside the canal and mends the neighbours bicycles for nothing on Sundays"


def persona(number: int, background: str, **changes: Any) -> Row:
    own = {"persona_id": f"p{number}", "background": background, "occupation": "cook"}
    return PERSONA | own | changes


def test_much_the_same_words_of_much_the_same_person_are_a_repeat() -> None:
    rows = [
        persona(0, f"Ida {WORDS}."),
        persona(1, f"Bo {WORDS}."),
        persona(2, f"Bo {WORDS}.", occupation="baker"),
        persona(3, "Bo keeps bees and teaches the village choir to sing in parts by ear alone."),
        persona(4, f"Cy {WORDS}, often.", sample=None),
    ]
    assert near_personas(rows) == {"p1": "p0", "p4": "p0"}
    assert near_personas(rows[:2]) == {"p1": "p0"}


def test_personas_of_a_pending_ones_attributes_are_undecided() -> None:
    plans = drawn(4, styles=["plain"], occupations={"jester": 1.0})
    first, second, third, _ = (plan.item_id for plan in plans)
    assert undecided_personas(plans, {second}, {}) == {plan.item_id for plan in plans[1:]}
    apart = drawn(4, styles=["plain"], habits={})
    ids = [plan.item_id for plan in apart]
    assert len({plan.attributes.occupation for plan in apart}) == 4
    assert undecided_personas(apart, {ids[1]}, {ids[3]: ids[1]}) == {ids[1], ids[3]}
    assert undecided_personas(plans, set(), {third: first}) == set()


def shown(**columns: Any) -> str:
    brief = {"relation": "", "situation": "", "wishes": ["A"], "facts": []}
    prompt = render(
        "user_turn", persona=PERSONA | columns, own_tools=[], earlier=(), opening_goals=1, **brief
    )
    return prompt.messages[0]["content"]


def test_the_user_is_told_every_attribute() -> None:
    [plan] = drawn(1, habits={"in rhymes": 1.0})
    own = plan.attributes.columns()
    text = shown(**own, sample="rain again")
    for value in (own["age"], own["occupation"], own["household"], own["place"], own["country"]):
        assert str(value) in text
    for value in (own["mood"], own["message_length"], "in rhymes", "rain again", own["language"]):
        assert value in text
    assert "mistakes of grammar" in shown(**(own | {"language_level": "learner"}))
    assert "mistakes of grammar" not in shown(**(own | {"language_level": "native"}))


def test_a_persona_from_before_has_the_lines_that_it_had() -> None:
    assert "None" not in shown()
    assert "Occupation" not in shown()
