"""The built-in kinds of criteria: each checks what an episode left behind.

A check never sees the reference plan, so any way to the goal counts. `nl` criteria have no code
check: there is no verdict on them, and the judge decides.
"""

import json
import re

from synth.rubrics.criteria import (
    ANY_TOOL,
    CallCheck,
    CommunicateCheck,
    FitCheck,
    FormatCheck,
    PolicyCheck,
    StateCheck,
    TestCheck,
    TurnsCheck,
)
from synth.rubrics.episode import (
    Episode,
    EpisodeCall,
    PolicyViolation,
    StateChange,
    Verdict,
    episode_of,
    net_changes,
    own_changes,
    state_changes,
)
from synth.rubrics.kinds import Kind, Kinds
from synth.rubrics.reading.messages import text_of
from synth.rubrics.state import check_state
from synth.rubrics.telling import check_communicate, words_to_user
from synth.rubrics.turns import check_fit, check_turns
from synth.rubrics.values import mentions, same_value

__all__ = [
    "BUILT_IN",
    "CALL",
    "CHECKS_VERSION",
    "COMMUNICATE",
    "FIT",
    "FORMAT",
    "POLICY",
    "STATE",
    "TEST",
    "TURNS",
    "Episode",
    "EpisodeCall",
    "Kind",
    "Kinds",
    "PolicyViolation",
    "StateChange",
    "Verdict",
    "episode_of",
    "mentions",
    "net_changes",
    "same_value",
    "state_changes",
    "words_to_user",
]

CHECKS_VERSION = "3"
"""Raised when a verdict on a stored episode can come out differently; stored with verdicts."""

_MARKUP = re.compile(
    r"</?(?:tool_call|tool_response|tools?|function_call|function)\b[^>]*>"
    r"|<\|[a-z_]+\|>|<function=|\bfunctions\.\w+:\d+|\[TOOL_CALLS\]",
    re.IGNORECASE,
)
"""Ways in which models spell a tool call that their server failed to parse."""


def _matches(check: CallCheck, call: EpisodeCall) -> bool:
    if check.tool not in (call.tool, ANY_TOOL) or check.actor != call.actor:
        return False
    given = call.arguments if isinstance(call.arguments, dict) else {}
    wanted = check.arguments or {}
    return all(
        key in given and same_value(value, given[key], ordered=False)
        for key, value in wanted.items()
    )


def _check_call(check: CallCheck, episode: Episode) -> Verdict:
    """`occur` wants a successful call; `not_occur` forbids even the attempt."""
    considered = list(episode.calls)
    if check.before is not None:
        done = (i for i, c in enumerate(considered) if c.tool == check.before and not c.is_error)
        considered = considered[: next(done, len(considered))]
    if check.before_turn is not None:
        latest = _turns_before(episode, check.before_turn)
        considered = [call for call in considered if call.turn <= latest]
    if check.changing:
        considered = [call for call in considered if own_changes(call.diff)]
    what = "any tool" if check.tool == ANY_TOOL else check.tool
    if check.arguments:
        what += f" with {json.dumps(check.arguments, ensure_ascii=False, sort_keys=True)}"
    if check.actor == "user":
        what += " by the user"
    if check.changing:
        what += " that changes something"
    when = f" before {check.before}" if check.before else ""
    if check.before_turn is not None:
        when += f" before message {check.before_turn} of the user"
    found = [c for c in considered if _matches(check, c)]
    if check.must == "not_occur":
        seen = f"seen {len(found)} such calls" if found else "seen none"
        return _verdict(not found, f"Expected no call of {what}{when}; {seen}.")
    succeeded = [c for c in found if not c.is_error]
    others = sum(check.tool in (c.tool, ANY_TOOL) for c in episode.calls)
    seen = f"seen {len(succeeded)}, of {others} calls of the tool in all"
    return _verdict(bool(succeeded), f"Expected a successful call of {what}{when}; {seen}.")


def _turns_before(episode: Episode, number: int) -> int:
    """Assistant messages before the user's message of this number; all where there is none."""
    users = turns = 0
    for message in episode.messages:
        users += message["role"] == "user"
        if users == number:
            break
        turns += message["role"] == "assistant"
    return turns


def _check_policy(check: PolicyCheck, episode: Episode) -> Verdict:
    broken = [b for b in episode.breaches if b.rule in check.rules]
    rules = ", ".join(check.rules)
    if not broken:
        return _verdict(True, f"Expected no breach of {rules}; seen none.")
    seen = ", ".join(f"{b.rule} by call {b.call_index}" for b in broken)
    return _verdict(False, f"Expected no breach of {rules}; seen {seen}.")


def _check_test(check: TestCheck, episode: Episode) -> Verdict:
    """Score: share of the tests that were to be mended, times share of those that were to stay.

    Raises ValueError when the tests were not run: that is nobody's failure to be scored.
    """
    if episode.tests is None:
        raise ValueError("a test criterion needs the results of its tests")
    shares, words = [], []
    for what, names in (("mended", check.fail_to_pass), ("kept", check.pass_to_pass)):
        passed = sum(episode.tests[name] is None for name in names)
        shares.append(passed / len(names) if names else 1.0)
        words.append(f"{what} {passed} of {len(names)}")
    failed = [f"{name}: {why}" for name, why in episode.tests.items() if why is not None]
    first = f"; first failure: {failed[0].splitlines()[0]}" if failed else ""
    score = shares[0] * shares[1]
    evidence = f"Expected every test to pass; {', '.join(words)}{first}."
    return Verdict(score == 1.0, score, evidence)


def _check_format(_: FormatCheck, episode: Episode) -> Verdict:
    fault = _format_fault(episode)
    expected = "Expected a closing message to the user and plain words throughout"
    return _verdict(fault is None, f"{expected}; {fault or 'seen'}.")


def _format_fault(episode: Episode) -> str | None:
    if not episode.messages:
        return "the conversation is empty"
    last = episode.messages[-1]
    if last["role"] != "assistant":
        return f"the last message is the {last['role']}'s"
    if last.get("tool_calls"):
        return "the last message is a tool call"
    if not text_of(last).strip():
        return "the last message is empty"
    for i, text in enumerate(words_to_user(episode), 1):
        if leaked := _MARKUP.search(text):
            return f"reply {i} shows tool markup {leaked[0]!r}"
        if _is_json(text):
            return f"reply {i} is raw JSON"
    return None


def _is_json(text: str) -> bool:
    """An object or a list and nothing else, fenced or not."""
    text = re.sub(r"\A```(?:json)?\s*|\s*```\Z", "", text.strip())
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _verdict(passed: bool, evidence: str) -> Verdict:
    return Verdict(passed, float(passed), evidence)


STATE = Kind(
    "state",
    "exactly the expected changes happened to the state, and no other",
    StateCheck,
    lambda check, episode: check_state(check, episode.changes),
)
CALL = Kind("call", "a call was made, or was not made", CallCheck, _check_call)
COMMUNICATE = Kind(
    "communicate", "the agent told the user certain values", CommunicateCheck, check_communicate
)
POLICY = Kind("policy", "no call broke a rule of the policy", PolicyCheck, _check_policy)
FORMAT = Kind("format", "the agent has the last word, in plain words", FormatCheck, _check_format)
TEST = Kind("test", "graded tests pass on the code that the agent left", TestCheck, _check_test)
TURNS = Kind(
    "turns", "every call is answered once, before anything else is said", TurnsCheck, check_turns
)
FIT = Kind(
    "fit",
    "calls that were carried out name an offered tool and fit its schema",
    FitCheck,
    check_fit,
)
BUILT_IN = Kinds(
    [STATE, CALL, COMMUNICATE, POLICY, FORMAT, TEST, TURNS, FIT], version=CHECKS_VERSION
)
"""What a run checks that names no extension."""
