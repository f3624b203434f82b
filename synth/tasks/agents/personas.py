"""Personas: who the simulated user is. Attributes are drawn, the words are the generator's."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator

from records.config import Config
from records.digest import digest
from records.seeds import rng_of
from records.tables.schemas import Row
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import render, version_of

STAGE_VERSION = 1
PROMPT = "gen_persona"

Disclosure = Literal["at_once", "mixed", "when_asked"]

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
MOST_PATIENCE = 20

PersonaPhrase = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120, pattern=r"^[^\n]*$")
]
"""A line of the prompts."""


class PersonaConfig(Config):
    """What the simulated users are drawn from; what stands twice is drawn twice as often."""

    RENAMED: ClassVar[dict[str, str]] = {"disclosure": "reveals"}

    styles: tuple[PersonaPhrase, ...] = Field(default=STYLES, min_length=1)
    """How they write; one each."""
    preferences: tuple[PersonaPhrase, ...] = Field(default=PREFERENCES, min_length=1)
    """How they like to be served; two each."""
    disclosure: tuple[Disclosure, ...] = Field(default=DISCLOSURES, min_length=1)
    """Whether they tell what they know at once, some of it, or mostly when asked; one each."""
    patience: tuple[int, int] = (3, 7)
    """Fewest and most fruitless answers after which one gives up."""

    @field_validator("patience")
    @classmethod
    def _a_range(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= value[0] <= value[1] <= MOST_PATIENCE:
            raise ValueError(f"the fewest and the most, from 1 to {MOST_PATIENCE}, such as [3, 7]")
        return value


DEFAULT = PersonaConfig()


@dataclass(frozen=True, slots=True)
class PersonaPlan:
    item_id: str
    """Becomes the persona's id."""

    style: str
    preferences: tuple[str, ...]
    patience: int
    """Fruitless answers after which the person gives up."""

    disclosure: str


def plan_personas(
    config: PersonaConfig = DEFAULT, *, seed: int, count: int, generator: RoleConfig
) -> list[PersonaPlan]:
    """Personas 0 to count - 1. Persona i is the same whatever the count."""
    own = () if config == DEFAULT else (config.identity(),)  # the defaults go with STAGE_VERSION
    base = digest("persona", STAGE_VERSION, seed, generator.identity(), version_of(PROMPT), *own)
    return [_plan(digest(base, i), config) for i in range(count)]


def _plan(item_id: str, config: PersonaConfig) -> PersonaPlan:
    rng = rng_of(item_id, "persona")
    return PersonaPlan(
        item_id=item_id,
        style=rng.choice(config.styles),
        preferences=tuple(rng.sample(config.preferences, min(2, len(config.preferences)))),
        patience=rng.randint(*config.patience),
        disclosure=rng.choice(config.disclosure),
    )


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 80},
        "background": {"type": "string", "minLength": 1, "maxLength": 600},
        "preferences": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 120},
            "minItems": 1,
            "maxItems": 6,
        },
    },
    "required": ["name", "background", "preferences"],
    "additionalProperties": False,
}


async def make_persona(plan: PersonaPlan, llm: LLM, *, generator: RoleConfig) -> Row:
    """The row of one persona. Raises ItemError when the generator writes nothing usable."""
    prompt = render(
        PROMPT,
        wanted={
            "style": plan.style,
            "patience": f"gives up after {plan.patience} answers that do not help",
            "reveals": plan.disclosure.replace("_", " "),
            "preferences": list(plan.preferences),
        },
    )
    words = await llm.structured(
        "generator",
        prompt.messages,
        item=plan.item_id,
        step="persona",
        name="persona",
        schema=SCHEMA,
    )
    return {
        "persona_id": plan.item_id,
        "name": words["name"].strip(),
        "background": words["background"].strip(),
        "communication_style": plan.style,
        "preferences": [p.strip() for p in words["preferences"]],
        "patience": plan.patience,
        "disclosure": plan.disclosure,
        "model": generator.model_of(plan.item_id, "generator"),
        "prompt_version": prompt.version,
        "split": "train",
    }
