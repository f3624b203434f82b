"""Economy of calls: whether the agent made a call that brought nothing. It is scored and ranks.

Code tells it from the rows of `tool_calls` alone, so every dataset can be graded for it. Two things
are waste: a call that repeats an earlier one and gets the same answer while nothing was changed in
between, and a call that is refused in the very words in which it was refused before. Nothing else
is: a look-up informs even where it finds nothing, and pages, tries after an error that passes and
looks after a change are no repeats; notes do not count. Where a repeat may have had a reason (the
user spoke since, or the tool reads a world that others change), or where more calls were made than
are known to do and nothing used what some of them found, code cannot tell.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.digest import canonical_json
from records.tables.schemas import Row
from synth.rubrics.episode import Verdict, is_read_only
from synth.rubrics.reading.messages import text_of
from synth.rubrics.refused import LASTING

PASSING = frozenset({"timeout", "unavailable", "rate_limited", "connection_error"}) | {
    "internal",
    "server_ended",
}
"""Codes of errors that say nothing of what was asked, so that trying again is right."""

MOST_NAMED = 3
"""Calls that the evidence names."""

_WORD = re.compile(r"\w[\w.:/@-]*\w|\w")


def known_to_do(reference_plan: Iterable[Mapping[str, Any]] | None) -> int | None:
    """How many calls of the agent are known to reach the goal; None where no plan says so."""
    steps = sum(step.get("actor", "agent") == "agent" for step in reference_plan or ())
    return steps or None


def economy_of(
    messages: Sequence[Mapping[str, Any]],
    calls: Sequence[Row],
    tools: Iterable[Row],
    known: int | None = None,
) -> Verdict:
    """The share of the agent's calls that are no waste; passed where none is, open where code
    cannot tell. `calls`: rows of `tool_calls`, in call order; `tools`: what the agent was offered;
    `known`: so many calls are known to do, which by itself makes no further call a waste.
    """
    calls = [call for call in calls if call.get("executed_by") != "notes"]
    own = [call for call in calls if call["actor"] == "agent"]
    found = _in_vain(calls, _spoken_before(messages), {tool["name"]: tool for tool in tools})
    enough = f" where {known} are known to do" if known and len(own) > known else ""
    seen = f"{len(own)} calls{enough}"
    if found.wasted:
        share = 1 - len(found.wasted) / len(own)
        return Verdict(False, share, f"{seen}; {_named(found.wasted)}.")
    doubtful = found.doubtful
    if not doubtful and known and sum(not _passes(call) for call in own) > known:
        doubtful = _unused(messages, own)
    if doubtful:
        return Verdict(None, 0.0, f"{seen}; {_named(doubtful)}, which may have its reason.")
    return Verdict(True, 1.0, f"{seen}, none in vain.")


def _named(found: Mapping[int, str]) -> str:
    words = [f"call {index} {what}" for index, what in found.items()]
    more = len(words) - MOST_NAMED
    return "; ".join([*words[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])


def _spoken_before(messages: Iterable[Mapping[str, Any]]) -> list[int]:
    """How often the user has spoken before the assistant's message of each number, from 1."""
    spoken, users = [0], 0
    for message in messages:
        users += message["role"] == "user"
        if message["role"] == "assistant":
            spoken.append(users)
    return spoken


def _passes(call: Row) -> bool:
    """Whether the answer says nothing of what was asked: trying again is right."""
    return call["error_code"] in PASSING or call["injected_outcome"] not in (None, *LASTING)


class _InVain(NamedTuple):
    wasted: dict[int, str]
    doubtful: dict[int, str]
    """What is wrong with calls, by `call_index`: surely, and perhaps."""


def _in_vain(calls: Iterable[Row], spoken: Sequence[int], tools: Mapping[str, Row]) -> _InVain:
    found = _InVain({}, {})
    first: dict[tuple[str, ...], Row] = {}
    """Since the last change, the first call that was answered so."""
    refused: dict[tuple[str, ...], list[int]] = {}
    """Since the last change, the calls in vain that were refused, by what was asked."""
    for call in calls:
        tool, index = tools.get(call["name"]), call["call_index"]
        asked = (call["name"], canonical_json(call["arguments"]))
        answer = (call["name"] if call["is_error"] else canonical_json(asked), call["observation"])
        earlier = first.get(answer)
        if not call["is_error"]:  # what was refused was to be had, so trying again was right
            for passing in refused.pop(asked, ()):
                found.wasted.pop(passing, None)
                found.doubtful.pop(passing, None)
        if _changes(call, tool):
            first.clear()
            refused.clear()
        if call["actor"] != "agent" or _passes(call):
            continue
        first.setdefault(answer, call)
        if earlier is None or call["state_diff"]:
            continue
        same_turn = spoken[call["turn"]] == spoken[earlier["turn"]]
        sure = same_turn and (call["is_error"] or _reads(tool)) and _is_closed(tool)
        what = "is refused as was" if call["is_error"] else "repeats"
        (found.wasted if sure else found.doubtful)[index] = f"{what} call {earlier['call_index']}"
        if call["is_error"]:
            refused.setdefault(asked, []).append(index)
    return found


def _changes(call: Row, tool: Row | None) -> bool:
    """Whether something may be otherwise after it: all that the user does, and what a tool that
    does not say that it only reads did with success."""
    done = not call["is_error"] and not _reads(tool)
    return bool(call["state_diff"]) or call["actor"] == "user" or done


def _reads(tool: Row | None) -> bool:
    return tool is not None and is_read_only(tool)


def _is_closed(tool: Row | None) -> bool:
    """Whether nobody outside changes what the tool works on; a tool that is not there stays so."""
    return tool is None or (tool["annotations"] or {}).get("openWorldHint") is False


def _unused(messages: Iterable[Mapping[str, Any]], own: Iterable[Row]) -> dict[int, str]:
    """Calls that found what stood nowhere before and what no later word of the agent names. Words
    are compared as they are written, so one that is listed may have been of use all the same."""
    heard: dict[str, int] = {}  # a word -> assistant messages before it first stood there
    said: dict[str, int] = {}  # a word -> number of the assistant's last message with it
    turn = 0
    for message in messages:
        words = _words(text_of(message))
        by_agent = message["role"] == "assistant"
        if by_agent:
            words |= _words(json.dumps(message.get("tool_calls") or [], ensure_ascii=False))
            said.update(dict.fromkeys(words, turn + 1))
        for word in words:
            heard.setdefault(word, turn)
        turn += by_agent
    found: dict[int, str] = {}
    for call in own:
        if call["is_error"] or call["state_diff"]:
            continue
        place = call["turn"]
        new = [word for word in _words(call["observation"]) if heard.get(word, place) >= place]
        if new and all(said.get(word, 0) <= place for word in new):
            found[call["call_index"]] = "finds nothing that is used later"
    return found


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
