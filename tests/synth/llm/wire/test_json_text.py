"""JSON in a model's text: found wherever it stands whole, and never made of pieces."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.llm.structured import validator_of
from synth.llm.wire.json_text import NotJsonError, value_in
from tests.examples import examples

WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters='{}[]"`~'))
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from('{}[]"\\`'))
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
ANSWERS = st.fixed_dictionaries({"answer": VALUES})
FORM = validator_of(
    {"type": "object", "required": ["answer"], "properties": {}, "minProperties": 1}
)
FENCES = ("```", "````", "~~~")
LANGUAGES = ("", "json", "JSON", " json ", "json5", "javascript", "c++")
INDENTS = (None, 1, 4)
REMARKS = ("", "I chose {this}.", "See [1].", "{x} and {y: 2}", "Done. ``` is a fence.", "[the end")


@settings(max_examples=examples(80))
@given(ANSWERS, WORDS, st.sampled_from(REMARKS), st.sampled_from(INDENTS), st.booleans())
def test_value_among_words_is_read_unchanged(
    value: Any, before: str, after: str, indent: int | None, escaped: bool
) -> None:
    said = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert value_in(f"{before}{said}\n{after}", FORM) == value


@settings(max_examples=examples(80))
@given(ANSWERS, ANSWERS, st.sampled_from(FENCES), st.sampled_from(LANGUAGES), WORDS, st.data())
def test_value_in_a_fence_goes_before_others(
    value: Any, other: Any, fence: str, language: str, words: str, data: st.DataObject
) -> None:
    said, beside = json.dumps(value), json.dumps(other)
    before, after = (data.draw(st.sampled_from((words, beside, ""))) for _ in range(2))
    line_end = data.draw(st.sampled_from(("\n", "\r\n")))
    fenced = line_end.join((f"{fence}{language}", said, fence))
    assert value_in(f"{before}\n{fenced}\n{after}", FORM) == value


@settings(max_examples=examples(80))
@given(st.lists(ANSWERS, min_size=1, max_size=3), WORDS)
def test_of_several_values_the_last_is_read(values: list[Any], words: str) -> None:
    assert value_in(f"\n{words}\n".join(map(json.dumps, values)) + " .", FORM) == values[-1]


@settings(max_examples=examples(80))
@given(ANSWERS, ANSWERS, WORDS, st.booleans(), st.data())
def test_cut_value_is_never_an_answer_nor_the_example_before_it(
    example: Any, value: Any, words: str, in_fence: bool, data: st.DataObject
) -> None:
    # pieces of it would fit: each entry is an answer of its own
    said = json.dumps({"entries": [value, value, {"answer": example}]})
    cut = said[: data.draw(st.integers(min_value=len('{"'), max_value=len(said) - 1))]
    head = "```json\n" if in_fence else ""
    with pytest.raises(NotJsonError):
        value_in(f"Such as {json.dumps(example)}: {words}\n{head}{cut}", FORM)


@pytest.mark.parametrize(
    "broken",
    [
        '{"entries": [{"answer": 1} {"answer": 2}]}',
        '{"entries": [{"answer": 1}, {"answer": 2},]}',
        '{"entries": [{"answer": 1}], "more": NaN}',
        '{"entries": [{"answer": 1}], more: 2}',
        '[{"answer": 1}; {"answer": 2}]',
        '{"entries": {"answer": 1}, "size": 1e999}',
        '{"entries": {"answer": 1}, "half": "\\ud800"}',
    ],
)
def test_piece_of_a_broken_value_is_no_answer(broken: str) -> None:
    for text in (broken, f"Here:\n```json\n{broken}\n```\nDone."):
        with pytest.raises(NotJsonError):
            value_in(text, FORM)
    corrected = f'{broken}\nThat was wrong. Here it is:\n{{"answer": 7}}'
    assert value_in(corrected, FORM) == {"answer": 7}


def test_value_that_does_not_fit_is_given_for_its_error_to_be_told() -> None:
    text = 'Such as {}: {"reply": {"answer": [1, 2, 3]}} - see [1].'
    assert value_in(text, FORM) == {"reply": {"answer": [1, 2, 3]}}


def test_number_that_no_float_holds_is_refused() -> None:
    assert math.isinf(json.loads("1e999"))
    with pytest.raises(NotJsonError):
        value_in('{"answer": 1e999}', FORM)


N = 300_000
HOSTILE = {
    "opening brackets": "[" * N,
    "opening objects": '{"a":' * N,
    "closed brackets": "[]" * N,
    "brackets and a quote": '["' * N,
    "a fence with an endless language": "```" + "a" * N,
    "fences": "```\n" * N,
    "spaces in a fence": "```" + " " * N + "x",
    "broken objects within each other": '{"a": [' * N + "1 1" + "]}" * N,
    "a broken list of lists": "[" * 500 + "1," * N + "x" + "]" * 500,
    "escapes": '{"a": "' + "\\" * N,
    "keys": '{"' + "a" * N + '" ' * 9,
    "backslashes in words": '"\\' * N + "{",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_bounded_work(text: str) -> None:
    """What takes quadratic time would not end within a suite at this length."""
    try:
        value = value_in(text, FORM)
    except NotJsonError:
        return
    assert not FORM.is_valid(value)
