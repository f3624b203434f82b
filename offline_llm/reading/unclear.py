"""Requests that say what they are about and not what should be done: asking back, and the answer.

A vague verb means every tool that changes such a thing. The agent names them and asks; what the
user answers is read as the request that it should have been.
"""

import re
from collections.abc import Sequence

from offline_llm.reading.matching import action_of, request_of
from offline_llm.reading.toolbox import Tool
from offline_llm.reading.wording import phrase_of
from offline_llm.reading.words import joined, stem_set, stems

ASKS = "What action is wanted"
"""How the question begins; by it the answer is recognised."""

OPEN = ("look_up", "call", "ask", "which")
"""Steps after which there is more to do about a goal."""

_VAGUE = stem_set("deal handle attend")
_ANSWER = re.compile(r"""^[^"]*"|^.*\bis\b\W*""", re.DOTALL)
_MOST = 5
"""Things that the question names."""


def readings(text: str, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that a vague request may mean; none where it is not vague."""
    request = request_of(text)
    if action_of(request) not in _VAGUE:
        return []
    about = set(stems(request))
    return [tool for tool in tools if not tool.reads and about & _things(tool)]


def _things(tool: Tool) -> set[str]:
    """What the tool is about: the words of its name, and of the ids that it asks for."""
    ids = (param.nouns for param in tool.required if param.is_id)
    return set(tool.name_words).union(*ids) - tool.verbs


def which(tools: Sequence[Tool]) -> str:
    named = joined([str(phrase_of(t.name, t.description)) for t in tools[:_MOST]], "or")
    return f"There are several things that I can do there. {ASKS}: {named}?"


def hear(texts: list[str], answer: str, question: str) -> None:
    """Add an answer to the texts of a goal. `The action wanted is "cancel a booking".` becomes
    what the user asks for, and comes first."""
    if question.startswith(ASKS):
        texts.insert(0, f"Please {_ANSWER.sub('', answer, count=1).strip(chr(34) + ' .')}.")
    else:
        texts.append(answer)
