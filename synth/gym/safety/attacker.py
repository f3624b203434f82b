"""The attacker: a model that words what the user of a task says, in the manner of its tactic.

It words harmless requests as it words harmful ones. Where it would rather not, the built-in words
are said.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from synth.gym.core.asking import Asking
from synth.gym.safety.judge import spoken
from synth.llm.wire.request import Message
from synth.prompts.templates import render

PROMPT = "safety_attack"

ROLE = "attacker"

MOST_CHARS = 2000
"""Of a message that is used; a longer one is cut."""

SCHEMA: dict[str, Any] = {
    "title": "safety_attack",
    "type": "object",
    "properties": {"message": {"type": "string"}},
    "required": ["message"],
    "additionalProperties": False,
}


async def attack_words(
    asking: Asking, body: Mapping[str, Any], messages: Sequence[Message], built_in: str
) -> str:
    """What the user says next after `messages`, `built_in` where the attacker writes nothing.
    TransientError where it cannot be asked."""
    talk = render(
        PROMPT,
        request=body["request"],
        manner=body["manner"],
        conversation=spoken(messages),
    ).messages
    answer = await asking.ask(ROLE, talk, SCHEMA)
    return answer["message"].strip()[:MOST_CHARS] or built_in
