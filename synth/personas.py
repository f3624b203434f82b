"""Personas: who the simulated user is. Attributes are drawn, the words are the generator's."""

from dataclasses import dataclass
from typing import Any

from records.digest import digest
from records.schemas import Row
from records.seeds import rng_of
from synth.llm.client import LLM
from synth.llm.config import RoleConfig
from synth.prompts import render, version_of

STAGE_VERSION = 1
PROMPT = "gen_persona"

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
REVEALS = ("at_once", "at_once", "mixed", "when_asked")
"""Whether the person tells what it knows at once, some of it, or mostly when asked."""


@dataclass(frozen=True, slots=True)
class PersonaPlan:
    item_id: str
    """Becomes the persona's id."""

    style: str
    preferences: tuple[str, ...]
    patience: int
    """Fruitless answers after which the person gives up."""

    reveals: str


def plan_personas(*, seed: int, count: int, generator: RoleConfig) -> list[PersonaPlan]:
    """Personas 0 to count - 1. Persona i is the same whatever the count."""
    base = digest("persona", STAGE_VERSION, seed, generator.identity(), version_of(PROMPT))
    return [_plan(digest(base, i)) for i in range(count)]


def _plan(item_id: str) -> PersonaPlan:
    rng = rng_of(item_id, "persona")
    return PersonaPlan(
        item_id=item_id,
        style=rng.choice(STYLES),
        preferences=tuple(rng.sample(PREFERENCES, 2)),
        patience=rng.randint(3, 7),
        reveals=rng.choice(REVEALS),
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
            "reveals": plan.reveals.replace("_", " "),
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
        "reveals": plan.reveals,
        "model": generator.model_of(plan.item_id, "generator"),
        "prompt_version": prompt.version,
        "split": "train",
    }
