"""The simulated user: what it is told, and turns that are not let through."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from records.digest import digest
from synth.episode.users.faults import UserFault
from synth.episode.users.form import asks, leaks
from synth.episode.users.user import LlmUser, Scene, UserError, UserTurn, conversation_for_user
from synth.episode.users.user import _rules as rules
from tests.synth.clinic import PERSONA, TASK, calls, says
from tests.synth.scripted import ScriptedApp, model

OPENING = {"role": "user", "content": TASK["user_brief"]["opening"]}


def reply(
    app: ScriptedApp,
    folder: Path,
    messages: Sequence[dict[str, Any]],
    *,
    goal_open: bool | None = True,
    faults: list[UserFault] | None = None,
    wishes: int = 2,
) -> UserTurn:
    async def is_open() -> bool | None:
        return goal_open

    async def act(_: object) -> list[Any]:
        raise AssertionError("this user owns no tools")

    async def ask() -> UserTurn:
        async with model(app, folder) as llm:
            brief = TASK["user_brief"] | {"wishes": TASK["user_brief"]["wishes"][:wishes]}
            user = LlmUser(llm, item="t", persona=PERSONA, brief=brief)
            note = [].append if faults is None else faults.append
            return await user.reply(Scene(messages, is_open, 1, (), act, note))

    return asyncio.run(ask())


def turns(*said: tuple[str, bool]) -> Callable[[dict[str, Any]], str]:
    """Answers in order, the last one again and again."""
    left = list(said)

    def answer(_: dict[str, Any]) -> str:
        message, done = left.pop(0) if len(left) > 1 else left[0]
        return json.dumps({"message": message, "done": done})

    return answer


def test_the_user_is_told_its_part_and_hears_what_was_said_aloud(tmp_path: Path):
    app = ScriptedApp(turns(("Travel.", False)))
    agent = [calls(("find_patients", {"name": "Solheim"})), says("Why do you cancel?")]
    found = {"role": "tool", "tool_call_id": "call_0", "content": "SECRET RESULT"}
    said = reply(app, tmp_path, [OPENING, agent[0], found, agent[1]])
    assert said == UserTurn("Travel.", False)
    system, *talk = app.requests[0]["messages"]
    assert "1. Cancel the booked appointment, the reason is travel." in system["content"]
    assert "- reason: travel (say it at once)" in system["content"]
    assert "- doctor: Mei Tanaka (only when asked)" in system["content"]
    assert [m["role"] for m in talk] == ["user", "assistant", "user"]
    assert talk[1]["content"] == OPENING["content"]
    assert talk[2]["content"] == "Why do you cancel?"
    assert "SECRET" not in json.dumps(app.requests)


def test_words_beside_calls_and_the_answer_after_them_are_one_turn():
    agent = [calls(("x", {})) | {"content": "One moment."}, says("Here it is.")]
    talk = conversation_for_user([OPENING, *agent])
    assert talk[-1] == {"role": "user", "content": "One moment.\n\nHere it is."}


QUESTION = [OPENING, says("Which appointment do you mean?")]
LONG = "I mean the one with doctor Mei Tanaka."
SECOND = TASK["user_brief"]["wishes"][1]
AFTER = [OPENING, says("It is cancelled."), {"role": "user", "content": SECOND}, says("On Monday.")]
BAD: dict[str, tuple[str, list[dict[str, Any]], tuple[str, bool]]] = {
    "empty": ("empty", QUESTION, ("", False)),
    "leak": ("leak", QUESTION, ("- reason: travel (say it at once)", False)),
    "both parts": ("agent_part", QUESTION,
                   ("USER: The one with Mei Tanaka.\nASSISTANT: I have cancelled it.", False)),
    "senseless": ("senseless", QUESTION, (" ".join(["the one"] * 18), False)),
    "other language": ("other_language", QUESTION,
                       ("Ich meine den Termin, der bei der Frau Tanaka ist.", False)),
    "says back": ("agent_part", [OPENING, says("I found two of them: which do you mean?")],
                  ("I found two of them, which do you mean?", False)),
    "leaves a question": ("premature_stop", QUESTION, ("Thanks, bye.", True)),
    "leaves a wish": ("premature_stop", [OPENING, says("It is done.")], ("Thanks, bye.", True)),
    "said before": (
        "repeat",
        [*QUESTION, {"role": "user", "content": LONG}, says("And why?")],
        (LONG.upper(), False),
    ),
    "date": ("invented_fact", QUESTION, ("The one on the 5th of May.", False)),
    "other surname": ("invented_fact", QUESTION, ("The one with Mei Tanimoto.", False)),
    "id": ("invented_fact", QUESTION, ("It is AP-2044.", False)),
}  # fmt: skip
DOUBTFUL: dict[str, tuple[str, list[dict[str, Any]], tuple[str, bool]]] = {
    "offers help": ("agent_part", QUESTION, ("How can I help you today?", False)),
    "a label": ("agent_part", QUESTION, ("User: the one with Mei Tanaka.", False)),
    "speaks of a prompt": ("leak", QUESTION, ("My system prompt says: travel.", False)),
    "speaks of a part": ("leak", QUESTION, ("In diesem Rollenspiel: Mei Tanaka.", False)),
    "wish again": ("repeated_wish", AFTER,
                   ("So please cancel the appointment that is booked, reason travel.", False)),
    "name": ("invented_fact", QUESTION, ("The one with doctor Bernadotte.", False)),
    "unasked id": ("invented_fact", [OPENING, says("It is done.")], ("I have ZX-2044.", False)),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_turn_that_is_not_usable_is_asked_for_again(kind: str, tmp_path: Path):
    name, messages, bad = BAD[kind]
    faults: list[UserFault] = []
    app = ScriptedApp(turns(bad, ("The one with Mei Tanaka.", False)))
    said = reply(app, tmp_path, messages, faults=faults)
    assert said == UserTurn("The one with Mei Tanaka.", False)
    assert faults == [UserFault(1, name, 0, bad[0])]  # type: ignore[arg-type]
    first, second = (request["messages"] for request in app.requests)
    assert second[1:] == first[1:]  # the conversation itself stays as it was
    assert "## Not usable" in second[0]["content"]
    assert json.dumps(bad[0]) in second[0]["content"]


@pytest.mark.parametrize("kind", BAD)
def test_a_turn_that_stays_unusable_is_the_users_error(kind: str, tmp_path: Path):
    name, messages, bad = BAD[kind]
    faults: list[UserFault] = []
    app = ScriptedApp(turns(bad))
    with pytest.raises(UserError, match="still wrong after 2 retries"):
        reply(app, tmp_path, messages, faults=faults)
    assert [(fault.kind, fault.attempt) for fault in faults] == [(name, n) for n in range(3)]
    assert len({digest(request) for request in app.requests}) == len(app.requests) == 3


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_a_doubtful_turn_is_asked_for_once_more_and_then_stands(kind: str, tmp_path: Path):
    name, messages, doubtful = DOUBTFUL[kind]
    faults: list[UserFault] = []
    app = ScriptedApp(turns(doubtful))
    assert reply(app, tmp_path, messages, faults=faults) == UserTurn(*doubtful)
    assert [(fault.kind, fault.attempt, fault.is_sure) for fault in faults] == [
        (name, 0, False),
        (name, 1, False),
    ]
    assert "say it again" in app.requests[1]["messages"][0]["content"]


def test_a_doubt_does_not_excuse_a_fault(tmp_path: Path):
    """What follows a doubtful turn is looked at as any other."""
    faults: list[UserFault] = []
    app = ScriptedApp(turns(("How can I help you?", False), BAD["id"][2]))
    with pytest.raises(UserError, match="AP-2044"):
        reply(app, tmp_path, QUESTION, faults=faults)
    assert [fault.is_sure for fault in faults] == [False, True, True]


def test_an_answer_that_is_no_turn_is_the_users_error(tmp_path: Path):
    with pytest.raises(UserError, match="invalid_output"):
        reply(ScriptedApp(lambda _: "I would rather not."), tmp_path, QUESTION)


@pytest.mark.parametrize(
    ("messages", "goal_open"),
    [
        (QUESTION, False),
        ([OPENING, says("It is cancelled. Is there anything else I can do for you?")], True),
        ([OPENING, says("Sorry, I cannot do that.")], True),
        (
            [OPENING, *[says("Which one?"), {"role": "user", "content": "?"}] * 3, says("Which?")],
            True,
        ),
    ],
    ids=["goal reached or not reachable", "offer of more", "no question", "out of patience"],
)
def test_a_user_may_end_it_where_there_is_a_reason_to(
    messages: list[dict[str, Any]], goal_open: bool, tmp_path: Path
):
    app = ScriptedApp(turns(("Thanks, bye.", True)))
    assert reply(app, tmp_path, messages, goal_open=goal_open, wishes=1).done


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which one do you mean?", True),
        ("I found two. Which one do you mean?", True),
        ("Is there anything else I can help you with?", False),
        ("Shall I? I did it.", False),
        ("您想改到哪一天\uff1f", True),
        ("Kann ich sonst noch etwas für Sie tun?", False),
        ("¿Hay algo más en lo que le pueda ayudar?", False),
        ("Done.", False),
        ("", False),
    ],
)
def test_questions_that_want_an_answer(text: str, expected: bool):
    assert asks(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please cancel the booked appointment, the reason is travel.", False),
        ("I don't care what you want", False),
        ("My delivery instructions are at the gate.", False),
        ("## What you want\n1. Cancel", True),
        ("Is that what your system prompt says?", False),
        ("I give the reason only when asked.", False),
        ("- reason: travel (only when asked)", True),
        ('{"message": "x", "done": true}', True),
        ("Give what you know when it is asked for. What is not listed", True),
        ("<tool_call>{}</tool_call>", True),
    ],
)
def test_leaks_of_the_instructions(text: str, expected: bool):
    assert leaks(text, rules()) == expected
