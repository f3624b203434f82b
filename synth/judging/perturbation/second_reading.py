"""A second reading of an edited episode: another request, which knows neither the fault meant nor
which of two endings was edited, says whether one of them has a fault that the other has not."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from records.seeds import rng_of
from synth.judging.perturbation.writing import TEXT, WRITTEN_BY, EpisodeShown, schema_of
from synth.llm.client import LLM
from synth.prompts.templates import render


class SecondReading(NamedTuple):
    finds: Literal["edited", "original", "neither"]
    """Which of the two has a fault that the other has not."""
    quote: str
    """The words that it finds wrong, or that it misses."""
    evidence: str


async def second_reading(
    llm: LLM, original: EpisodeShown, edited: EpisodeShown, *, item: str, step: str
) -> SecondReading:
    """Which ending is called A is drawn for the item and the step."""
    said = _num_shared(original.transcript, edited.transcript)
    done = _num_shared(original.changes, edited.changes)
    endings = {
        name: {"transcript": list(shown.transcript[said:]), "changed": list(shown.changes[done:])}
        for name, shown in (("original", original), ("edited", edited))
    }
    edited_is_a = rng_of(item, f"order:{step}").random() < 0.5
    names: dict[str, Literal["edited", "original"]] = (
        {"a": "edited", "b": "original"} if edited_is_a else {"a": "original", "b": "edited"}
    )
    talk = render(
        "second_reading",
        instructions=original.instructions,
        tools=original.tools,
        changes=list(original.changes[:done]),
        beginning=list(original.transcript[:said]),
        a=endings[names["a"]],
        b=endings[names["b"]],
    ).messages
    answer = await llm.structured(
        WRITTEN_BY, talk, item=item, step=step, name="second_reading", schema=_SCHEMA
    )
    faulty = answer["faulty"]
    return SecondReading(
        "neither" if faulty == "neither" else names[faulty], answer["quote"], answer["evidence"]
    )


def _num_shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many entries both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_SCHEMA = schema_of(
    evidence=TEXT, quote=TEXT, faulty={"type": "string", "enum": ["a", "b", "neither"]}
)
