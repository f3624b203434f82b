"""Every kind of constraint: what meets it and what does not, by hand; its words; its seeds; texts
that nobody expects, long ones in linear time."""

import random
import time
from pathlib import Path

import pytest
import yaml

from records.errors import ConfigError
from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import kind_of
from synth.gym.instructions.kinds import GROUPS, KINDS, constraint_of, summary_of
from synth.gym.instructions.nested import as_json

ROOT = Path(__file__).parents[4]
CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())

STRANGE = {
    "empty": "",
    "space": " \r\n\t\u3000\ufeff",
    "surrogate": "a \ud800 b",
    "zero": "a\x00b\x00\n\x00",
    "marks": "a" + "\u0301\u0323" * 500,
    "fence": "```\n```\n```",
    "table": "|\n|-|\n|\n||",
    "quotes": '"\u201c\u00ab\u300c',
    "brackets": "[[[[{{{{((((<<<<",
    "controls": "\x0b\x0c\x1c\x85\u2028\u2029",
}

REPEATED = {
    "a word": "river ",
    "letters": "a",
    "full stops": ".",
    "short sentences": "a. ",
    "ordinals": "3. Mai ",
    "asterisks": "**a ",
    "quotes": '"',
    "brackets": "[",
    "lists": "- a\n",
    "numbers": "1.1,",
    "headings": "# a #\n",
    "cells": "|-|a|\n",
    "fences": "```\n",
    "Chinese": "\u4eca\u5929\u3002",
    "marks": "a\u0301\u0323",
    "spaces": " " * 50_000 + "b.",
    "json": '{"title": ',
    "yaml": "title:\n  - &a [*a, ",
    "emoji": "\U0001f469\u200d",
}
"""What patterns are slow on, of which long texts are made."""

MILLION = ("a word", "letters", "full stops", "quotes")
"""Texts of a million characters; the others have fewer, on which quadratic time shows as well."""


def test_there_are_many_kinds_and_a_case_for_each() -> None:
    assert len(KINDS) >= 40
    assert CASES.keys() == KINDS.keys()
    assert [name for names in GROUPS.values() for name in names] == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_told_apart(kind: str) -> None:
    case = CASES[kind]
    constraint = constraint_of({"kind": kind, "params": case["params"]})
    assert case["right"]
    assert case["wrong"]
    assert [text for text in case["right"] if not constraint.met(AnswerText(text))] == []
    assert [text for text in case["wrong"] if constraint.met(AnswerText(text))] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_says_itself_and_comes_back_from_json(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(20):
        drawn = KINDS[kind].draw(rng)
        assert constraint_of(as_json(drawn)) == drawn
        said = {drawn.words(variant) for variant in range(6)}
        assert len(said) == len(drawn.wordings) >= 2
        for sentence in said:
            assert "{" not in sentence
            assert sentence[0].isupper()
            assert sentence.endswith((".", '"', "?", "!"))
    assert kind_of(KINDS[kind]) == kind
    assert summary_of(KINDS[kind]).endswith(".")


@pytest.mark.parametrize("kind", KINDS)
def test_draws_hang_on_the_seed_alone(kind: str) -> None:
    first, second = (
        [KINDS[kind].draw(random.Random(seed)) for seed in range(30)] for _ in range(2)
    )
    assert first == second
    with_parameters = bool(KINDS[kind].model_fields)
    assert (len({str(as_json(one)) for one in first}) > 1) == with_parameters


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_strange_texts_raise_nothing(text: str) -> None:
    rng = random.Random(1)
    for kind in KINDS.values():
        kind.draw(rng).met(AnswerText(text))


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_a_long_text_takes_linear_time(name: str) -> None:
    """Quadratic time would take minutes here."""
    size = 1_000_000 if name in MILLION else 100_000
    rng = random.Random(2)
    answer = AnswerText(REPEATED[name] * (size // len(REPEATED[name])))
    begin = time.process_time()
    for kind in KINDS.values():
        kind.draw(rng).met(answer)
    assert time.process_time() - begin < 15


def test_a_kind_that_there_is_not_is_named() -> None:
    with pytest.raises(ConfigError, match="no kind of constraint 'no_such'"):
        constraint_of({"kind": "no_such"})
    with pytest.raises(ConfigError, match="parameters of words_at_least"):
        constraint_of({"kind": "words_at_least", "params": {"most": 3}})
    with pytest.raises(ConfigError, match="stands within others"):
        constraint_of(
            {"kind": "if_question_then", "params": {"then": {"kind": "json_list", "params": {}}}}
        )


def test_the_table_of_the_document_is_that_of_the_kinds() -> None:
    text = (ROOT / "docs" / "gym_instructions.md").read_text()
    rows = [
        f"| {group} | `{kind}` | {summary_of(KINDS[kind])} |"
        for group, names in GROUPS.items()
        for kind in names
    ]
    assert "\n".join(rows) in text
    assert text.count("| `") == len(rows)
    assert f"{len(rows)} kinds" in text
