"""What a persona is before a word of it is written, drawn so that nothing contradicts the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from synth.tasks.agents.persona_config import PersonaConfig, ages_of, suits_age
from synth.tasks.agents.population import CLASHES, LANGUAGES_OF, MOST_HABITS
from synth.tasks.agents.weights import clash_check, drawn

_contradict = clash_check(CLASHES)

INITIALS = "AAABBBCCCDDDEEFFGGHHIIJJJKKKLLMMMMNNNOPPRRRSSSSTTTUVWYZ"
"""First letters of names, about as often as names begin with them: a writer left to itself gives
many people the same few names."""


@dataclass(frozen=True, slots=True)
class PersonaAttributes:
    """Columns of `personas` by name."""

    age: int
    """In years."""
    household: str
    occupation: str
    place: str
    country: str | None
    """None where no country of the settings has the language."""
    mood: str
    knowledge: str
    language: str
    language_level: str
    message_length: str
    habits: tuple[str, ...]

    def columns(self) -> dict[str, Any]:
        return asdict(self) | {"habits": list(self.habits)}


def draw_attributes(
    config: PersonaConfig, rng: Random, *, style: str, preferences: Sequence[str]
) -> PersonaAttributes:
    """The attributes of one person with this style and these preferences.

    Age comes first, then what the age allows, so the weights of occupations and households hold
    within an age. A phrase that contradicts one drawn before it is left out, unless nothing else
    is there.
    """
    taken = [style, *preferences]

    def draw(weights: Mapping[Any, float]) -> str:
        fitting = {p: w for p, w in weights.items() if w and not clashes(p, taken)}
        chosen = drawn(rng, fitting or weights)
        taken.append(chosen)
        return chosen

    age = rng.choice(ages_of(drawn(rng, config.ages)))
    occupation, household = (
        draw({phrase: weight for phrase, weight in table.items() if suits_age(phrase, age)})
        for table in (config.occupations, config.households)
    )
    language = draw(config.languages)
    return PersonaAttributes(
        age=age,
        household=household,
        occupation=occupation,
        place=drawn(rng, config.places),
        country=_country(config, rng, language),
        language=language,
        language_level=draw(config.language_levels),
        knowledge=draw(config.knowledge),
        mood=draw(config.moods),
        message_length=draw(config.message_lengths),
        habits=_habits(config, rng, taken),
    )


def draw_initials(rng: Random) -> str:
    """First letters of given name and surname."""
    return f"{rng.choice(INITIALS)}. {rng.choice(INITIALS)}."


def clashes(phrase: str, others: Sequence[str]) -> bool:
    """Whether the phrase contradicts one of the others."""
    return any(_contradict(phrase, other) for other in others)


def _country(config: PersonaConfig, rng: Random, language: str) -> str | None:
    spoken = {
        country: weight
        for country, weight in config.countries.items()
        if weight and language in LANGUAGES_OF.get(country, (language,))
    }
    return drawn(rng, spoken) if spoken else None


def _habits(config: PersonaConfig, rng: Random, taken: Sequence[str]) -> tuple[str, ...]:
    """In a drawn order, so that no habit takes the place of those that stand after it."""
    found: list[str] = []
    for habit in rng.sample(list(config.habits), len(config.habits)):
        wanted = rng.random() < config.habits[habit]
        if wanted and len(found) < MOST_HABITS and not clashes(habit, [*taken, *found]):
            found.append(habit)
    return tuple(found)
