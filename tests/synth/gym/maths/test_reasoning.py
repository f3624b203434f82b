"""Our own generators: what a question shows leads to its answer, and to no other."""

import random
import re
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import ConfigError
from synth.gym.core.environment import GymTask
from synth.gym.maths.reasoning import (
    GENERATORS,
    OwnKindSettings,
    ReasoningQuestions,
    ReasoningSettings,
)
from synth.gym.maths.riddles import MORSE, WORDS, letter_riddle, morse_decoding, number_riddle
from synth.gym.maths.splits import SplitCounts
from synth.gym.maths.tables import cross_table_aggregation, multi_hop_table

FEW = SplitCounts(train=8, validation=1, heldout=1)

seeds = st.integers(0, 2**32)
levels = st.integers(0, 6)


def tables_in(question: str) -> dict[str, list[dict[str, str]]]:
    """Title -> rows, read from the Markdown that the policy sees."""
    found: dict[str, list[dict[str, str]]] = {}
    for title, body in re.findall(r"Table (.+)\n\n((?:\|.*\n?)+)", question):
        header, _, *rows = [
            [c.strip() for c in line.strip("| ").split(" | ")] for line in body.splitlines()
        ]
        found[title] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


@settings(max_examples=40, deadline=None)
@given(seeds, levels)
def test_hops_over_the_tables_as_shown_lead_to_the_answer(seed: int, level: int) -> None:
    made = multi_hop_table(random.Random(seed), level)
    tables = tables_in(made.question)
    here = re.search(r"\n(.+) is a person", made.question)[1]  # type: ignore[index]
    column = "person"
    hops = 0
    while f"{column}s" in tables:
        (row,) = [row for row in tables[f"{column}s"] if row[column] == here]
        column = next(name for name in row if name != column)
        here = row[column]
        hops += 1
    assert here == made.answer
    assert f"What is the {column} of" in made.question
    assert hops == len(tables) == min(level + 2, 5)


@settings(max_examples=60, deadline=None)
@given(seeds, levels)
def test_sums_over_the_tables_as_shown_are_the_answer(seed: int, level: int) -> None:
    made = cross_table_aggregation(random.Random(seed), level)
    tables = tables_in(made.question)
    city = {row["customer"]: row["city"] for row in tables["customers"]}
    goods = {row["product"]: row for row in tables["products"]}
    asked = made.question.rpartition("\n")[2]
    wanted_city = re.search(r"customers from (\w+)", asked)
    wanted_kind = re.search(r"products of (\w+)", asked)
    met = [
        row
        for row in tables["orders"]
        if (not wanted_city or city[row["customer"]] == wanted_city[1])
        and (not wanted_kind or goods[row["product"]]["category"] == wanted_kind[1])
    ]
    worth = [int(row["quantity"]) * int(goods[row["product"]]["price"]) for row in met]
    if asked.startswith("What is the total value"):
        right = sum(worth)
    elif asked.startswith("What is the largest value"):
        right = max(worth)
    elif asked.startswith("How many pieces"):
        right = sum(int(row["quantity"]) for row in met)
    elif asked.startswith("How many different customers"):
        right = len({row["customer"] for row in met})
    else:
        right = len(met)
    assert int(made.answer) == right > 0


@settings(max_examples=30, deadline=None)
@given(seeds, levels)
def test_a_number_riddle_has_one_solution(seed: int, level: int) -> None:
    made = number_riddle(random.Random(seed), level)
    digits = {"two": 2, "three": 3, "four": 4}[re.search(r"of (\w+) digits", made.question)[1]]  # type: ignore[index]
    fitting = []
    for n in range(10 ** (digits - 1), 10**digits):
        text = str(n)
        truths = {
            r"digits add up to (\d+)": lambda v, t=text: sum(map(int, t)) == v,
            r"first digit is (\d)": lambda v, t=text: int(t[0]) == v,
            r"last digit is (\d)": lambda v, t=text: int(t[-1]) == v,
            r"multiple of (\d+)": lambda v, n=n: n % v == 0,
        }
        holds = all(
            truth(int(value))
            for pattern, truth in truths.items()
            for value in re.findall(pattern, made.question)
        )
        for divisor, rest in re.findall(r"by (\d+) I leave a remainder of (\d+)", made.question):
            holds = holds and n % int(divisor) == int(rest)
        if "square" in made.question:
            holds = holds and any(r * r == n for r in range(101))
        if "No digit" in made.question:
            holds = holds and len(set(text)) == len(text)
        if holds:
            fitting.append(text)
    assert fitting == [made.answer]


@settings(max_examples=40, deadline=None)
@given(seeds, levels)
def test_a_letter_riddle_fits_one_word_of_its_list(seed: int, level: int) -> None:
    made = letter_riddle(random.Random(seed), level)
    lines = re.findall(r"is in (\w+) but not in (\w+)", made.question)
    listed = re.search(r"these words: (.+)\. Which", made.question)[1].split(", ")  # type: ignore[index]
    fitting = [
        word
        for word in listed
        if all(c in a and c not in b for c, (a, b) in zip(word, lines, strict=True))
    ]
    assert fitting == [made.answer]
    assert len(lines) == 5


def test_the_words_of_letter_riddles_are_different_and_of_five_letters() -> None:
    assert len(set(WORDS)) == len(WORDS)
    assert {len(word) for word in WORDS} == {5}


@settings(max_examples=40, deadline=None)
@given(seeds, levels)
def test_a_message_decodes_to_its_words(seed: int, level: int) -> None:
    made = morse_decoding(random.Random(seed), level)
    coded = made.question.split("\n\n")[1]
    letters = {signs: letter for letter, signs in MORSE.items()}
    words = ["".join(letters[signs] for signs in word.split()) for word in coded.split(" / ")]
    assert " ".join(words) == made.answer


def test_no_two_signs_of_morse_are_alike_and_some_are_as_in_the_standard() -> None:
    assert len(set(MORSE.values())) == 36
    sos = {"S": "...", "O": "---", "E": ".", "T": "-", "Q": "--.-", "0": "-----", "5": "....."}
    assert {letter: MORSE[letter] for letter in sos} == sos
    lengths = Counter(map(len, MORSE.values()))
    assert lengths == {1: 2, 2: 4, 3: 8, 4: 12, 5: 10}
    assert not set(MORSE.values()) - {
        "".join(s) for n in range(1, 6) for s in product(".-", repeat=n)
    }


@pytest.fixture(scope="module")
def environment() -> ReasoningQuestions:
    kinds = [
        OwnKindSettings(kind=kind, counts=FEW, level=level)
        for kind in GENERATORS
        for level in (0, 2)
    ]
    return ReasoningQuestions(ReasoningSettings(seed=4, kinds=tuple(kinds)))


def reply(answer: str) -> str:
    return f"I worked it out.\n<answer>{answer}</answer>"


def test_right_answers_are_worth_1_and_others_nothing(environment: ReasoningQuestions) -> None:
    tasks = environment.tasks()
    for task, other in zip(tasks, [*tasks[1:], tasks[0]], strict=True):
        right = task.body["answer"]
        assert environment.reward(task, reply(right)).value == 1.0
        assert environment.reward(task, reply(right.lower())).value == 1.0
        wrong = ["", right, f"It is {right}", reply(""), reply("0"), reply(f"{right} or 7")]
        wrong += [reply(f"{right}{right}"), reply(task.body["question"]), reply("17*23")]
        wrong += [reply(right) + reply("7"), reply(f"about {right}"), reply("all of them")]
        if other.body["answer"] != right:
            wrong.append(reply(other.body["answer"]))
        for text in wrong:
            assert environment.reward(task, text).value == 0.0, (task.body, text)


def test_naming_every_candidate_is_worth_nothing(environment: ReasoningQuestions) -> None:
    for task in environment.tasks():
        if task.body["kind"] == "letter_riddle":
            listed = re.search(r"these words: (.+)\. Which", task.body["question"])[1]  # type: ignore[index]
            assert environment.reward(task, reply(listed)).value == 0.0


def test_a_seed_makes_the_same_tasks_and_splits_share_no_question(
    environment: ReasoningQuestions,
) -> None:
    again = ReasoningQuestions(environment._settings).tasks()
    assert again == environment.tasks()
    other = ReasoningQuestions(environment._settings.model_copy(update={"seed": 5})).tasks()
    by_split: dict[str, set[str]] = {}
    for task in (*again, *other):
        by_split.setdefault(task.split, set()).add(task.body["question"])
    assert not by_split["train"] & by_split["heldout"]
    assert not by_split["train"] & by_split["validation"]
    assert not by_split["validation"] & by_split["heldout"]
    assert len({task.task_id for task in again}) == len(again)


def test_tags_say_kind_category_and_level(environment: ReasoningQuestions) -> None:
    task: GymTask = environment.tasks()[0]
    assert task.tags == ("kind:cross_table_aggregation", "category:tables", "level:0")


def test_more_questions_than_there_are_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synth.gym.maths.reasoning.FEWEST_DRAWS", 20)
    monkeypatch.setattr("synth.gym.maths.reasoning.DRAWS_FOR_ONE", 0)
    kinds = (OwnKindSettings(kind="number_riddle", counts=SplitCounts(train=21)),)
    with pytest.raises(ConfigError, match=r"gym\.reasoning, kind 'number_riddle': 20 draws"):
        ReasoningQuestions(ReasoningSettings(kinds=kinds)).tasks()
