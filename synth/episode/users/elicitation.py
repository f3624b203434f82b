"""Forms that a server puts before the user in the middle of a call, filled in by the simulated one.

The user sees the form, the conversation and its own part. What it fills in must fit the form's
schema and come from what it knows; what does not is shown to it with its faults, and in the end the
form is declined: a server that asks is no reason to end an episode.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from records.errors import ItemError
from records.tables.schemas import Row
from sandboxes.mcp.protocol.questions import ServerAnswer, ServerQuestion, form_problems, refused
from synth.episode.tools.calls import CallRecord
from synth.episode.users.facts import Grounds, invented
from synth.episode.users.user import cast_in, known_texts
from synth.llm.client import LLM, Completion
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import render
from synth.rubrics.values import mentions
from tool_specs.language.schemas import SchemaError

PROMPT = "user_form"

REPAIRS = 2
"""How often the user is shown what is wrong with what it filled in."""

SENTENCE_WORDS = 5
"""A value of fewer words is a name, a number or another thing that one knows or does not."""

_WORD = re.compile(r"[^\W\d_]+|\d+")

FILLED_IN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"enum": ["accept", "decline"]},
        "content": {"type": "object"},
    },
    "required": ["action", "content"],
    "additionalProperties": False,
}
"""Schema of the answer that a user model gives."""


async def fill_form(
    llm: LLM,
    question: ServerQuestion,
    *,
    item: str,
    step: str,
    persona: Row,
    brief: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    calls: Sequence[CallRecord],
    on_answer: Callable[[Completion], None],
) -> ServerAnswer:
    """The user's answer. `messages`: the conversation as the agent sees it; `calls`: those that the
    user made itself. Raises what `LLM.structured` raises but for an answer that is of no use."""
    persona = cast_in(persona, brief)
    said = [
        {"who": "you" if message["role"] == "user" else "assistant", "words": words}
        for message in messages
        if message["role"] in ("user", "assistant") and (words := message.get("content") or "")
    ]
    shown = [call.observation for call in calls]
    form = {key: question.params[key] for key in ("message", "requestedSchema")}
    prompt = render(
        PROMPT,
        persona=persona,
        relation=brief.get("relation", ""),
        situation=brief.get("situation", ""),
        goals=brief["wishes"],
        facts=brief["facts"],
        said=said,
        shown=shown,
        form=form,
    )
    spoken = [one["words"] for one in said]
    texts = [*known_texts(persona, brief), *spoken, *shown, str(form["message"])]
    fields = form["requestedSchema"].get("properties", {})

    def check(value: dict[str, Any]) -> None:
        if value["action"] == "accept":
            faults = form_problems(question.params, value["content"])
            if not faults:
                made_up = made_up_in(value["content"], fields, texts)
                faults = [f"you do not know {words!r}" for words in made_up]
            if faults:
                raise InvalidOutputError("content: " + "; ".join(faults))

    try:
        filled = await llm.structured(
            "user",
            prompt.messages,
            item=item,
            step=step,
            name=PROMPT,
            schema=FILLED_IN,
            repairs=REPAIRS,
            on_answer=on_answer,
            check=check,
        )
    except (ItemError, SchemaError) as error:
        return refused(question, str(error))
    if filled["action"] == "decline":
        return refused(question, "the user declines")
    return ServerAnswer({"action": "accept", "content": filled["content"]})


def made_up_in(
    content: Mapping[str, Any], fields: Mapping[str, Any], texts: list[str]
) -> list[str]:
    """What was filled in and nobody has told the user. Yes and no, and what the form itself gives
    to choose from, are the user's to say; so are sentences, but for what they state."""
    grounds = Grounds(texts, last=texts[-1])
    return [
        str(value)
        for name, value in content.items()
        if not (isinstance(value, bool | list) or value is None)
        if value not in _choices(fields.get(name, {}))
        and not any(mentions(text, value) for text in texts)
        and not _is_well_put(value, grounds)
    ]


def _choices(field: Mapping[str, Any]) -> list[Any]:
    given = [one.get("const") for one in (*field.get("oneOf", ()), *field.get("anyOf", ()))]
    return [*field.get("enum", ()), *given, *([field["default"]] if "default" in field else [])]


def _is_well_put(value: Any, grounds: Grounds) -> bool:
    """Whether the words are the user's own, or hold nothing that somebody must have told it."""
    if not isinstance(value, str) or invented(value, grounds, answering=True, acting=True):
        return False
    words = _WORD.findall(value)
    return len(words) >= SENTENCE_WORDS or all(map(grounds.has_word, words))
