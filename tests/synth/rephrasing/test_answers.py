"""Answers taken apart: parts by number, whatever stands around them, and never any reasoning."""

import json
import re

import pytest

from synth.llm.wire.answer import read_answer
from synth.rephrasing.writing.answers import declines, parts_in

SOURCES = {3: "The pump runs.", 4: "The valve is shut.", 5: "Nobody is there."}


def tag(number: int, text: str) -> str:
    return f'<rewrite part="{number}">\n{text}\n</rewrite>'


def heard(content: str, sources: dict[int, str]) -> dict[int, str]:
    """As it comes from an endpoint: what the client cuts is cut first."""
    body = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    raw = json.dumps(body).encode()
    return parts_in(read_answer(raw, call_prefix="", fallback_usage=(1, 1)).content, sources)


@pytest.mark.parametrize(
    "content",
    [
        "\n".join((tag(3, "a"), tag(4, "b"), tag(5, "c"))),
        "\n".join((tag(5, "c"), tag(3, "a"), tag(4, "b"))),
        f"Gladly.\n{tag(3, 'a')} Then: {tag(4, 'b')}{tag(5, 'c')}\nThat is all.",
        f"{tag(3, 'draft')}\n{tag(4, 'b')}\n{tag(5, 'c')}\nBetter:\n{tag(3, 'a')}",
        f"<rewrite part='3'>a</rewrite><Rewrite part = 4 >b</rewrite>{tag(5, 'c')}{tag(6, 'd')}",
    ],
)
def test_parts_are_told_by_their_numbers(content: str) -> None:
    assert heard(content, SOURCES) == {3: "a", 4: "b", 5: "c"}


@pytest.mark.parametrize(
    "content",
    ["<rewrite>\na\n</rewrite>", tag(3, "a"), tag(1, "a"), f"It is\n{tag(1, 'a')}\nas wished."],
)
def test_the_number_of_a_single_part_may_be_missing_or_another(content: str) -> None:
    assert heard(content, {3: "The pump runs."}) == {3: "a"}


def test_without_numbers_nobody_knows_which_of_several_it_is() -> None:
    assert heard("<rewrite>a</rewrite><rewrite>b</rewrite><rewrite>c</rewrite>", SOURCES) == {}


def test_a_part_without_end_is_none() -> None:
    assert heard(f'{tag(3, "a")}\n<rewrite part="4">\nb', SOURCES) == {3: "a"}


NAMES = ("think", "thinking", "reasoning", "thought")
DRAFT = tag(3, "a draft")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "form",
    [
        "<N>Hm. {draft}</N>\n{a}\n{b}",
        "Well.\n<N>Hm. {draft}</N>\n{a}\n{b}",
        "{a}\n<N>Hm. {draft}</N>\n{b}",
        "{a}\n{b}\n<N>Did I keep it? {draft}</N>",
        "{a}\n{b}\n<N>Did I keep it? {draft}",
        "Hm. {draft}\n</N>\n\n{a}\n{b}",
        '<rewrite part="3">\n<N>Short? {draft}</N>\na\n</rewrite>\n{b}',
        '<rewrite part="3">\na\n<N>Was </rewrite> it? {draft}\n</N></rewrite>\n{b}',
    ],
)
def test_reasoning_is_no_text_and_its_tags_are_no_answer(name: str, form: str) -> None:
    a, b = tag(3, "a"), tag(4, "b")
    content = form.replace("N>", f"{name}>").format(draft=DRAFT, a=a, b=b)
    assert heard(content, {3: "The pump runs.", 4: "The valve is shut."}) == {3: "a", 4: "b"}


def test_reasoning_that_begins_in_a_part_and_never_ends_takes_the_part_along() -> None:
    content = f'{tag(3, "a")}\n<rewrite part="4">\nb <think>or c?\n</rewrite>'
    assert heard(content, SOURCES) == {3: "a"}


ABOUT = "Models write `<think>` before they answer, and </think> after it."


@pytest.mark.parametrize(
    "text",
    [
        "Before an answer models put `<think>`.",
        "Whatever stands between `<think>` and `</think>` is `<reasoning>` too.",
        "They say <think> first and </think> when they are done.",
        "First <think>, then <think> again.",
    ],
)
def test_a_text_about_the_marks_survives(text: str) -> None:
    sources = {3: ABOUT, 4: "Nothing of the kind."}
    assert parts_in(tag(3, text) + tag(4, "b"), sources) == {3: text, 4: "b"}
    thinking = f"{tag(3, text)}\n<think>{DRAFT}</think>\n{tag(4, 'b')}"
    assert parts_in(thinking, sources) == {3: text, 4: "b"}


def test_a_mark_in_code_survives_where_the_source_has_none() -> None:
    text = "The tag `<think>` is one."
    assert heard(tag(3, text), {3: "The tag of thoughts is one."}) == {3: text}


def test_who_cannot_says_so_after_thinking() -> None:
    cannot = "<cannot>I know no Latin.</cannot>"
    assert declines(cannot)
    assert declines(f"\n<think>{DRAFT}</think>\n{cannot}\n")
    assert not declines(f"{tag(3, 'a')}{cannot}")
    assert not declines(f"<think>{cannot}</think>{tag(3, 'a')}")


def test_many_marks_cost_no_more_than_they_are_long() -> None:
    """A degenerate answer is read, and holds nothing."""
    assert heard("<think>" * 4000, SOURCES) == {}
    assert heard(tag(3, "<think></think>" * 2000), SOURCES) == {3: ""}
    assert re.search("<think>", str(heard(tag(3, "x <think>"), SOURCES))) is None
