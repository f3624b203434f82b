"""Forms that a server puts before the user in the middle of a call, filled in by the simulated one.

The user sees the form, the conversation and its own part. What it fills in must fit the form's
schema and come from what it knows; what does not is shown to it with its faults, and in the end the
form is declined: a server that asks is no reason to end an episode.
"""

import json
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
from tool_specs.language.schemas import SchemaError

PROMPT = "user_form"

REPAIRS = 2
"""How often the user is shown what is wrong with what it filled in."""

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
        wishes=brief["wishes"],
        facts=brief["facts"],
        said=said,
        shown=shown,
        form=form,
    )
    words = [one["words"] for one in said]
    asked = json.dumps(form, ensure_ascii=False)
    grounds = Grounds([*known_texts(persona, brief), *words, *shown, asked], last=asked)

    def check(value: dict[str, Any]) -> None:
        if value["action"] == "accept":
            faults = [*form_problems(question.params, value["content"])]
            faults += [f"you do not know {words}" for words in _made_up(value["content"], grounds)]
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


def _made_up(content: Mapping[str, Any], grounds: Grounds) -> list[str]:
    """What was filled in and nobody has told the user. Yes and no are the user's to say."""
    values = [value for value in content.values() if not isinstance(value, bool)]
    text = json.dumps(values, ensure_ascii=False)
    found = invented(text, grounds, answering=True, acting=True)
    return [invention.words for invention in found if invention.is_sure]
