"""Whether readers who know nothing of a task take its words for what is meant.

Asked of every wish with structure: each reader sees what the person says and knows, and for each
such wish what is meant among what a hasty reader could take it for. Two readers see the choices in
different orders.
"""

from random import Random
from string import ascii_lowercase
from typing import Any, NamedTuple

from records.seeds import rng_of
from synth.llm.client import LLM
from synth.prompts.templates import Prompt, render
from synth.tasks.goals.goals import Draft
from synth.tasks.words.checks import said_together

PROMPT = "read_brief"

READERS = 2

UNCLEAR = "unclear"
"""What a reader says of words that fit several choices alike, or none."""


class ReadingQuestion(NamedTuple):
    wish: int
    """Its number, from 1."""
    choices: dict[str, str]
    """Letter -> what may be meant."""
    meant: str
    """The letter."""


def questions_about(draft: Draft, rng: Random) -> list[ReadingQuestion]:
    """One for each goal that can be misread, its choices in an order of this reader's own."""
    found = []
    for number, group in enumerate(said_together(draft), 1):
        for goal in group:
            if goal.misreadings:
                texts = [goal.wish, *goal.misreadings]
                rng.shuffle(texts)
                choices = dict(zip(ascii_lowercase, texts, strict=False))
                found.append(
                    ReadingQuestion(number, choices, ascii_lowercase[texts.index(goal.wish)])
                )
    return found


def prompt_for_reading(draft: Draft, words: dict[str, Any], asked: list[ReadingQuestion]) -> Prompt:
    shown = [
        {"wish": question.wish, "said": words["wishes"][question.wish - 1]}
        | {"choices": question.choices}
        for question in asked
    ]
    return render(
        PROMPT,
        opening=words["opening"],
        facts=_known(draft),
        questions=shown,
    )


def _known(draft: Draft) -> dict[str, Any]:
    """What the person knows, by labels that name one value each."""
    known: dict[str, Any] = {}
    for fact in (fact for goal in draft.goals for fact in goal.known):
        label, number = fact.label, 1
        while known.get(label, fact.value) != fact.value:
            number += 1
            label = f"{fact.label} ({number})"
        known[label] = fact.value
    return known


def schema_of(asked: list[ReadingQuestion]) -> dict[str, Any]:
    answer = {
        "type": "object",
        "properties": {
            "why": {"type": "string", "minLength": 1, "maxLength": 400},
            "choice": {"enum": [*max((q.choices for q in asked), key=len), UNCLEAR]},
        },
        "required": ["why", "choice"],
        "additionalProperties": False,
    }
    answers = {"type": "array", "items": answer, "minItems": len(asked), "maxItems": len(asked)}
    return {
        "type": "object",
        "properties": {"answers": answers},
        "required": ["answers"],
        "additionalProperties": False,
    }


async def misread(
    draft: Draft, words: dict[str, Any], llm: LLM, *, item_id: str, attempt: int
) -> list[str]:
    """What readers take otherwise than it is meant, a sentence each; empty where all agree."""
    found: list[str] = []
    for reader in range(READERS):
        asked = questions_about(draft, rng_of(item_id, "reader", reader))
        if not asked:
            return []
        answer = await llm.structured(
            "generator",
            prompt_for_reading(draft, words, asked).messages,
            item=item_id,
            step=f"reading-{attempt}-{reader}",
            name="brief_reading",
            schema=schema_of(asked),
        )
        for question, given in zip(asked, answer["answers"], strict=True):
            if given["choice"] != question.meant:
                taken = question.choices.get(given["choice"], "nothing certain")
                found.append(
                    f"wish {question.wish} means: {question.choices[question.meant]} "
                    f"A reader took it for: {taken} ({given['why']})"
                )
    return list(dict.fromkeys(found))
