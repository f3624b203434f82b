"""Personas: who the simulated user is. Attributes are drawn, the words are the generator's."""

from dataclasses import dataclass
from typing import Any

from records.digest import digest
from records.seeds import rng_of
from records.tables.schemas import Row
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import render, version_of
from synth.tasks.agents.attributes import (
    PersonaAttributes,
    clashes,
    draw_attributes,
    draw_initials,
)
from synth.tasks.agents.persona_config import PersonaConfig

STAGE_VERSION = 2
PROMPT = "gen_persona"

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
    initials: str
    """That the name has."""

    attributes: PersonaAttributes


def plan_personas(
    config: PersonaConfig = DEFAULT, *, seed: int, count: int, generator: RoleConfig
) -> list[PersonaPlan]:
    """Personas 0 to count - 1. Persona i is the same whatever the count."""
    own = () if config == DEFAULT else (config.identity(),)  # the defaults go with STAGE_VERSION
    base = digest("persona", STAGE_VERSION, seed, generator.identity(), version_of(PROMPT), *own)
    return [_plan(digest(base, i), config) for i in range(count)]


def _plan(item_id: str, config: PersonaConfig) -> PersonaPlan:
    rng = rng_of(item_id, "persona")
    style = rng.choice(config.styles)
    fitting = [p for p in config.preferences if not clashes(p, [style])] or config.preferences
    first, *others = rng.sample(fitting, len(fitting))
    preferences = (first, *[p for p in others if not clashes(p, [first])][:1])
    return PersonaPlan(
        item_id=item_id,
        style=style,
        preferences=preferences,
        patience=rng.randint(*config.patience),
        disclosure=rng.choice(config.disclosure),
        initials=draw_initials(rng),
        attributes=draw_attributes(config, rng, style=style, preferences=preferences),
    )


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 80},
        "background": {"type": "string", "minLength": 1, "maxLength": 1000},
        "sample": {"type": "string", "minLength": 1, "maxLength": 1200},
        "preferences": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 120},
            "minItems": 1,
            "maxItems": 6,
        },
    },
    "required": ["name", "background", "sample", "preferences"],
    "additionalProperties": False,
}


async def make_persona(plan: PersonaPlan, llm: LLM, *, generator: RoleConfig) -> Row:
    """The row of one persona. Raises ItemError when the generator writes nothing usable."""
    prompt = render(
        PROMPT,
        wanted={
            "initials": plan.initials,
            **plan.attributes.columns(),
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
        "sample": words["sample"].strip(),
        **plan.attributes.columns(),
    }
