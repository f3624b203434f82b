"""Reasoning in a text is cut out of its beginning, and an answer about the marks stays whole."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synth.llm.wire.reasoning import cut_reasoning
from tests.examples import examples

PLAIN = st.text(alphabet=st.characters(exclude_characters="<>", exclude_categories=["Cs"]))
NAMES = st.sampled_from(("think", "thinking", "Thought", "REASONING"))
MARKS = st.sampled_from(("<think>", "</think>", "</Thinking>", "<reasoning>", "</thought>"))
ABOUT_MARKS = st.lists(PLAIN | MARKS, max_size=5).map("".join)


@settings(max_examples=examples(100))
@given(PLAIN, PLAIN.map(str.strip), NAMES)
def test_reasoning_and_answer_are_told_apart(thought: str, answer: str, name: str) -> None:
    cut = cut_reasoning(f"\n<{name}>\n{thought}\n</{name}>\n\n{answer}")
    assert cut == (answer, thought.strip() or None)
    if not (thought.lstrip()[:1] in '{["`' and '"' in thought):  # the template opened it
        assert cut_reasoning(f"{thought}\n</{name}>\n{answer}") == cut


@settings(max_examples=examples(100))
@given(PLAIN, PLAIN, NAMES)
def test_reasoning_that_never_ends_leaves_no_answer(thought: str, more: str, name: str) -> None:
    assert cut_reasoning(f"<{name}>{thought}") == ("", thought.strip() or None)
    cut = cut_reasoning(f"<{name}>{thought}</{name}>\n<{name}>{more}")
    assert cut.content == ""


@example("</think>[", "Here you go: ", None)
@settings(max_examples=examples(100))
@given(ABOUT_MARKS, st.sampled_from(("", "Here you go: ", "```json\n")), st.sampled_from((None, 1)))
def test_json_about_the_marks_stays_whole(text: str, before: str, indent: int | None) -> None:
    said = before + json.dumps({"text": f"say {text} now", "n": 1}, indent=indent)
    assert cut_reasoning(said) == (said, None)


@settings(max_examples=examples(100))
@given(ABOUT_MARKS)
def test_json_about_the_marks_stays_whole_after_reasoning(text: str) -> None:
    said = json.dumps({"text": text})
    assert cut_reasoning(f"<think>hm</think>\n{said}") == (said, "hm")


@pytest.mark.parametrize(
    "text",
    [
        "Models write <think>so</think> before they answer.",
        "The mark </think> ends their reasoning.",
        "a < b, and c > d",
        "<thinker> is no mark",
    ],
)
def test_words_about_the_marks_stay(text: str) -> None:
    assert cut_reasoning(text) == (text, None)


def test_every_block_at_the_beginning_is_reasoning() -> None:
    text = "<think></think>\n<think>One.</think>\n<thinking>Two </think> and.</thinking>\nFine."
    assert cut_reasoning(text) == ("Fine.", "One.\n\nTwo </think> and.")
    assert cut_reasoning('no line end</think>{"a": 1}').content == '{"a": 1}'
    assert cut_reasoning("opened by the template\n</think>\n<think>x</think>y").content == "y"
