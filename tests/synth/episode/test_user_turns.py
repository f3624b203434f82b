"""Turns of users in five languages, written by hand: what code refuses, doubts and lets pass.

The turns are those of `benchmarks/user_turns.json`; a kind there that is no kind of code's is what
the turn does wrong in the words of a reader.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bench_user_control import HAND_WRITTEN, judged
from synth.episode.users.acts import was_spoken_of
from synth.episode.users.facts import Grounds, invented
from synth.episode.users.faults import TurnFault
from synth.episode.users.form import is_foreign, is_senseless, labelled_roles

CERTAIN = {
    "role_labels": "agent_part",
    "other_language": "other_language",
    "contradicts_brief": "invented_fact",
    "empty_or_gibberish": "senseless",
    "repeat": "repeat",
}
"""Kinds of which every turn of the file is refused -> the kind that code gives it."""

DOUBTED = {"out_of_role": "leak", "plays_assistant": "agent_part"}
"""Kinds whose turns are doubtful at most: meanings give them away, not marks."""

LANGUAGES = ("en", "de", "es", "fr", "zh")


def answers(language: str) -> Iterator[tuple[str, str, TurnFault | None]]:
    """(kind, words, what code makes of them)."""
    for scene in json.loads(Path(HAND_WRITTEN).read_text()):
        for kind, texts in scene["answers"].items() if scene["language"] == language else ():
            for text in texts:
                yield kind, text, asyncio.run(judged(scene, text, done=kind == "premature_stop"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_good_turn_is_refused_in_any_language(language: str) -> None:
    good = [(text, fault) for kind, text, fault in answers(language) if kind == "good"]
    assert len(good) >= 10
    assert [(text, fault) for text, fault in good if fault and fault.is_sure] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_certain_is_refused_and_what_is_not_is_doubted(language: str) -> None:
    wrong: list[Any] = []
    for kind, text, fault in answers(language):
        if kind in CERTAIN and (not fault or (fault.kind, fault.is_sure) != (CERTAIN[kind], True)):
            wrong.append((kind, text, fault))
        if kind in DOUBTED and (not fault or (fault.kind, fault.is_sure) != (DOUBTED[kind], False)):
            wrong.append((kind, text, fault))
        if kind == "new_wish" and fault:  # left to the judge of the trajectory
            wrong.append((kind, text, fault))
    assert wrong == []


GROUNDS = Grounds(
    [
        "The 45-minute lesson is 28 EUR, the hour 41 EUR, on 2026-04-14 at 16:00. Order PD-7184.",
        "name: Tobias Wren",
    ],
    last="The lesson is on 2026-04-14 at 16:00. When would you like it?",
    unsaid=["2026-04-21T10:00:00", "Tobias Wren", 7],
)


@pytest.mark.parametrize(
    "text",
    [
        "That is 13 euros less, 69 for both, 14 for half of it.",
        "The 45-minute one. 16:45 is when it ends, then.",
        "April 15 is fine, the day after.",
        "Dos personas, cinco minutos, y son 13 euros menos.",
        "Das sind 13 Euro weniger, und zwar am 15. April um 16 Uhr.",
        "28欧元\uff0c四月十五日下午四点。",
        "PD 7184 and pd-7184 and 7184.",
        "Since 2011, about 40 euros.",
    ],
)
def test_what_follows_from_what_is_known_is_no_invention(text: str) -> None:
    assert invented(f"{text} I am Tobias Wren, 7.", GROUNDS, answering=True) == []


@pytest.mark.parametrize(
    ("text", "is_sure"),
    [
        ("My number is CU-88213.", True),
        ("It is 884213.", True),
        ("The code is b.k@post.example.", True),
        ("May 5, please.", True),
        ("Am 5. Mai, bitte.", True),
        ("Es fueron 29,45 euros.", True),
        ("It was at 11:20.", True),
        ("I am Tobias Wrenfield.", True),
        ("I am Marta Klein.", False),
        ("At most 500 euros.", False),
        ("There are 19 of us.", False),
    ],
)
def test_what_comes_from_nowhere_is_sure_where_it_is_exact(text: str, is_sure: bool) -> None:
    assert {i.is_sure for i in invented(text, GROUNDS, answering=True)} == {is_sure}


@pytest.mark.parametrize(
    "text",
    [
        "Tobias Wren. It cost me 1.50 to call you!",
        "I am 1,80 m tall, Tobias Wren.",
        "It is my 40th birthday on 3 December, Tobias Wren.",
    ],
)
def test_a_day_or_price_beside_the_answer_is_doubted_and_certain_in_a_call(text: str) -> None:
    grounds = Grounds(["name: Tobias Wren"], unsaid=["Tobias Wren"])
    assert {i.is_sure for i in invented(text, grounds, answering=True)} == {False}
    assert {i.is_sure for i in invented(text, grounds, answering=True, acting=True)} == {True}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Können Sie mir bitte sagen, wann der Termin ist und was er kostet?", True),
        ("My order is still not here, can you have a look at it?", False),
        ('The sign said "Bitte nicht in der Einfahrt parken, auch nicht am Sonntag".', False),
        ("Gracias!", False),
        ("好的\uff0c请帮我取消这个订单\uff0c谢谢。", True),
        ("It is for Wang Xiaoming (王小明).", False),
        ("Пожалуйста, отмените мой заказ", True),
    ],
)
def test_another_language_is_told_by_script_and_function_words(message: str, expected: bool):
    texts = ["I would like to know where my order is, please.", "It is on its way to you."]
    assert is_foreign(message, texts, []) == expected


def test_a_language_that_somebody_names_may_be_gone_over_to():
    texts = ["I would like to know where my order is. Do you speak German?"]
    assert not is_foreign("Ich möchte wissen, wann die Ware bei mir ist.", texts, [])


@pytest.mark.parametrize(
    ("message", "roles"),
    [
        ("**USER:** I want it back.\n**ASSISTANT:** I have done that.", {"user", "assistant"}),
        ("Kunde: Ich will es zurück.\nAssistent: Gern, ist erledigt.", {"user", "assistant"}),
        ("Customer: Ingrid Solheim\nAgent: Mia Kern", set()),
        ("As the user of this account: I want it back.", set()),
    ],
)
def test_labels_of_roles_are_told_from_entries_of_a_form(message: str, roles: set[str]):
    assert labelled_roles(message) == roles


def test_a_message_is_senseless_only_where_it_says_little_over_and_over():
    assert is_senseless("again and again " * 10)
    assert is_senseless("订单订单订单订单订单订单订单订单订单订单订单订单订单")
    assert not is_senseless("no no no no no no, not that one")
    assert not is_senseless("ha " * 12)


def test_an_assistant_of_another_language_may_have_meant_any_act():
    tool = {"name": "device_restart", "description": "Restarts the device of the household."}
    heard = ["Hallo.", "Drücken Sie bitte die Taste, bis das Licht an dem Stecker blinkt."]
    assert was_spoken_of(tool, "{}", heard)
    assert not was_spoken_of(tool, "{}", ["Hello.", "The weather is nice at the lake today."])
    assert not was_spoken_of(tool, "{}", ["Hello."])
