"""`[personas]` of a run: from which marginals the simulated users are drawn."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from records.config import Config
from synth.tasks.agents import population
from synth.tasks.agents.population import AGE_RANGE, WORKING_AGE
from synth.tasks.agents.weights import LANGUAGES, DrawnPhrase, PhraseWeights, drawable

Disclosure = Literal["at_once", "mixed", "when_asked"]
Knowledge = Literal["none", "some", "expert"]
LanguageLevel = Literal["native", "fluent", "learner"]

STYLES = (
    "short messages, lower case, no greeting",
    "polite full sentences",
    "chatty, with a remark on the side",
    "formal, as in a letter",
    "hurried, gets to the point",
    "hesitant, unsure of the right words",
    "precise, lists things in order",
    "warm and informal",
    "a little grumpy but fair",
    "plain and businesslike",
)
PREFERENCES = (
    "exact figures",
    "short answers",
    "a clear yes or no first",
    "to be told what was done",
    "no technical words",
    "no small talk",
    "friendly words",
    "reference numbers to note down",
    "one thing at a time",
    "to know what happens next",
)
DISCLOSURES: tuple[Disclosure, ...] = ("at_once", "at_once", "mixed", "when_asked")
KNOWLEDGE: dict[Knowledge, float] = {"none": 40.0, "some": 47.0, "expert": 13.0}
LEVELS: dict[LanguageLevel, float] = {"native": 78.0, "fluent": 15.0, "learner": 7.0}
MOST_PATIENCE = 20

_AGES = re.compile(r"(\d{1,3})-(\d{1,3})")


class PersonaConfig(Config):
    """What the simulated users are drawn from. Of a list what stands twice is drawn twice as often;
    of a table each entry has its weight, and weights need not add up to 1."""

    RENAMED: ClassVar[dict[str, str]] = {"disclosure": "reveals"}
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "ages": population.AGES,
            "places": population.PLACES,
            "countries": population.COUNTRIES,
            "households": population.HOUSEHOLDS,
            "occupations": population.OCCUPATIONS,
            "moods": population.MOODS,
            "knowledge": KNOWLEDGE,
            "languages": LANGUAGES,
            "language_levels": LEVELS,
            "message_lengths": population.LENGTHS,
            "habits": population.HABITS,
        }
    )

    styles: tuple[DrawnPhrase, ...] = Field(default=STYLES, min_length=1)
    """How they write; one each."""
    preferences: tuple[DrawnPhrase, ...] = Field(default=PREFERENCES, min_length=1)
    """How they like to be served; two each."""
    disclosure: tuple[Disclosure, ...] = Field(default=DISCLOSURES, min_length=1)
    """Whether they tell what they know at once, some of it, or mostly when asked; one each."""
    patience: tuple[int, int] = (3, 7)
    """Fewest and most fruitless answers after which one gives up."""
    ages: PhraseWeights = population.AGES
    """Youngest and oldest of a band, such as `25-34` -> its weight; within a band every age is as
    likely."""
    places: PhraseWeights = population.PLACES
    """What sort of place they live in -> weight."""
    countries: PhraseWeights = population.COUNTRIES
    """Where they live -> weight among the countries of their language."""
    households: PhraseWeights = population.HOUSEHOLDS
    """With whom they live -> weight among the households of their age."""
    occupations: PhraseWeights = population.OCCUPATIONS
    """What they do -> weight among the occupations of their age."""
    moods: PhraseWeights = population.MOODS
    """How they feel as the conversation begins -> weight."""
    knowledge: Annotated[dict[Knowledge, float], AfterValidator(drawable)] = KNOWLEDGE
    """What they know of the field that the assistant serves -> weight."""
    languages: PhraseWeights = LANGUAGES
    """English name of the language in which they write -> weight."""
    language_levels: Annotated[dict[LanguageLevel, float], AfterValidator(drawable)] = LEVELS
    """How well they have that language -> weight."""
    message_lengths: PhraseWeights = population.LENGTHS
    """How long their messages are -> weight."""
    habits: dict[DrawnPhrase, Annotated[float, Field(ge=0.0, le=1.0)]] = population.HABITS
    """Habit of writing -> share of those who have it, where nothing else about them contradicts
    it; four each at most."""

    @field_validator("patience")
    @classmethod
    def _a_range(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= value[0] <= value[1] <= MOST_PATIENCE:
            raise ValueError(f"the fewest and the most, from 1 to {MOST_PATIENCE}, such as [3, 7]")
        return value

    @field_validator("ages")
    @classmethod
    def _bands(cls, value: dict[str, float]) -> dict[str, float]:
        for band in value:
            match = _AGES.fullmatch(band)
            if match is None or not 14 <= int(match[1]) <= int(match[2]) <= 110:
                raise ValueError(f"a band is such as `25-34`, from 14 to 110, got {band!r}")
        return value

    @model_validator(mode="after")
    def _for_every_age(self) -> Self:
        ages = {age for band, weight in self.ages.items() if weight for age in ages_of(band)}
        for name in ("occupations", "households"):
            table: dict[str, float] = getattr(self, name)
            for age in sorted(ages):
                if not any(weight for phrase, weight in table.items() if suits_age(phrase, age)):
                    raise ValueError(f"{name} have none for a person of {age}, whom ages allow")
        return self


def ages_of(band: str) -> range:
    """Every age of a band such as `25-34`."""
    youngest, oldest = band.split("-")
    return range(int(youngest), int(oldest) + 1)


def suits_age(phrase: str, age: int) -> bool:
    """Whether an occupation or household goes with the age; one that the project does not know goes
    with every age."""
    usual = WORKING_AGE if phrase in population.OCCUPATIONS else (0, 120)
    youngest, oldest = AGE_RANGE.get(phrase, usual)
    return youngest <= age <= oldest
