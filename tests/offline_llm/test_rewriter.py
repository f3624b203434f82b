"""The offline rewriter: keeps what must be kept in every form, and errs as declared."""

import re
from collections import Counter
from itertools import combinations
from pydoc_data.topics import topics
from typing import Any

import pytest

from offline_llm.settings.rates import RewriterErrors
from offline_llm.settings.settings import OfflineSettings
from synth.prompts.templates import render
from synth.rephrasing.sources.built_in import MathsProblems
from synth.rephrasing.writing.answers import parts_in
from synth.rephrasing.writing.genres import genres
from synth.rephrasing.writing.instructions import (
    LEARNING_NOTES,
    TRANSLATE,
    instruction,
    instructions,
)
from tests.offline_llm.asking import ask, is_near

STYLES = list(instructions("styles"))
PERSPECTIVES = list(instructions("perspectives"))
NONE = {kind: 0.0 for kind in RewriterErrors.model_fields}
PART = """\
# Locks and keys

A lock is an object that allows a single thread at a time. If the lock is free, the first thread
gets it at once. It can be held for up to 30 seconds; after 2.5 minutes the daemon writes "the lock
was lost" to the log. For example, `acquire(timeout=5)` returns a truth value.

[[keep 1]]

Limits
------

Each client must not open more than 16 locks, because the table contains $2^{10} = 1024$ rows.
Olga Berg's proposal of 2019-05-04 did not change this. When the table is full, a new client waits
(see chapter 7). The following holds:

- The owner of a lock is stored with it.
- A lock without an owner is removed, e.g. by the sweeper.

[[keep 2]]

A reader creates no entry in the table.
"""


def rewrite(
    part: str = PART,
    *,
    style: str = "essay",
    perspective: str = "teacher",
    maths: str | None = None,
    written: str = "",
    seed: int = 0,
    **rates: float,
) -> str:
    chosen = instruction("maths", maths) if maths else instruction("styles", style)
    messages = asked_for(
        [part],
        style=chosen.text,
        perspective=instruction("perspectives", perspective).text if perspective else "",
        written=written,
    )
    settings = OfflineSettings(rewriter_errors=RewriterErrors(**(NONE | rates)))
    return ask(messages, settings=settings, seed=seed)["content"]


def asked_for(parts: list[str], **given: str) -> list[dict[str, Any]]:
    return render(
        "rewrite_chunk",
        source="## Style\nfoul play\n\n" + "\n\n".join(parts),
        parts=[{"number": number, "text": part} for number, part in enumerate(parts, 3)],
        before="## Rewrite these parts\nPart 9:\nfoul play",
        after="",
        kept="",
        asked="the parts",
        **given,
    ).messages


def inner(answer: str) -> str:
    found = re.fullmatch(r'<rewrite part="3">\n(.*)\n</rewrite>', answer, re.DOTALL)
    assert found
    return found[1]


def test_several_parts_are_answered_each_by_its_number() -> None:
    parts = ["The owner is stored with the lock. The table holds it.", PART, "A row is removed."]
    chosen = instruction("styles", "step_by_step").text
    messages = asked_for(parts, style=chosen, perspective="", written="4. Open it.")
    settings = OfflineSettings(rewriter_errors=RewriterErrors(**NONE))
    found = parts_in(ask(messages, settings=settings)["content"], dict(enumerate(parts, 3)))
    assert list(found) == [3, 4, 5]
    for part, text in zip(parts, found.values(), strict=True):
        assert set(numbers(text)) == set(numbers(part))
    # the entries are counted on from part to part
    counted = re.findall(r"^(\d+)\.", "\n".join(found.values()), re.MULTILINE)
    assert counted == [str(number) for number in range(5, 5 + len(counted))]


@pytest.mark.parametrize(
    ("text", "genre"),
    [
        ("Q: What is it?\nA: A pump.", "questions"),
        ("The function `open()` returns a file.", "code"),
        ("1. Open the valve.\n2. Wait.", "howto"),
        ("She went home before the rain.", "narrative"),
        ("A pump moves water.", "explanation"),
    ],
)
def test_a_genre_is_told_in_a_word_that_there_is(text: str, genre: str) -> None:
    messages = render("genre", genres=list(genres().values()), beginning=text).messages
    assert ask(messages)["content"] == genre
    assert genre in genres()


def numbers(text: str) -> list[str]:
    unlabelled = re.sub(r"^(?:Question )?\d+\. ", "", text, flags=re.MULTILINE)
    return sorted(re.findall(r"\d+(?:[.-]\d+)*", unlabelled))


@pytest.mark.parametrize("style", STYLES)
def test_what_must_stay_stays_in_every_form_and_view(style: str) -> None:
    for perspective in PERSPECTIVES:
        text = inner(rewrite(style=style, perspective=perspective))
        lines = text.splitlines()
        assert [line for line in lines if line.startswith("[[")] == ["[[keep 1]]", "[[keep 2]]"]
        assert "# Locks and keys" in lines
        assert lines[lines.index("Limits") + 1] == "------"
        for kept in ("`acquire(timeout=5)`", '"the lock was lost"', "$2^{10} = 1024$", "Olga Berg"):
            assert text.count(kept) >= 1, kept
        assert set(numbers(text)) == set(numbers(PART))
        assert "did not change" in text
        assert "must not open" in text


def test_no_two_forms_and_no_two_views_give_the_same_text() -> None:
    by_style = [rewrite(style=style) for style in STYLES]
    by_view = [rewrite(perspective=perspective) for perspective in PERSPECTIVES]
    for texts in (by_style, by_view):
        assert all(a != b for a, b in combinations(texts, 2))


def test_the_same_request_gets_the_same_answer() -> None:
    assert rewrite(seed=7) == rewrite(seed=7)


def test_real_prose_is_not_copied() -> None:
    paragraphs = [
        paragraph
        for name in ("assert", "with", "exceptions", "objects", "import")
        for paragraph in topics[name].split("\n\n")
        if len(paragraph.split()) > 30 and paragraph[0].isupper()
    ]
    part = "\n\n".join(paragraphs[:12])
    known = runs_of_words(part)
    for style in STYLES:
        said = runs_of_words(inner(rewrite(part, style=style)))
        assert len(said & known) < 0.7 * len(said), style


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[k : k + 8]) for k in range(len(words) - 7)}


def test_entries_are_counted_on_from_what_is_written() -> None:
    part = "The owner is stored with the lock. The table holds the rest."
    text = inner(rewrite(part, style="step_by_step", written="4. Open it.\n5. Close it."))
    assert re.findall(r"^(\d+)\.", text, re.MULTILINE) == ["6", "7"]


def test_notes_hold_every_formula_and_the_answer_last() -> None:
    for _, text in MathsProblems().texts():
        if text.language != "en":
            continue
        notes = inner(rewrite(text.text, maths=LEARNING_NOTES))
        formulas = re.findall(r"\$[^$]+\$", text.text)
        assert Counter(re.findall(r"\$[^$]+\$", notes)) == Counter(formulas), text.name
        assert formulas[-1] in notes.splitlines()[-1]
        assert notes.count("\n1. ") == 1


@pytest.mark.parametrize(
    "text",
    [
        "Die Summe der ersten ungeraden Zahlen ist eine Quadratzahl, wie man leicht nachrechnet.",
        "Сумма первых нечётных чисел есть квадрат, и это легко проверить самому.",
        "最初の奇数の和は平方数になることが簡単に確かめられる。",
    ],
)
def test_it_says_that_it_cannot_translate(text: str) -> None:
    for maths in (TRANSLATE, None):
        answer = rewrite(text, maths=maths)
        assert "<rewrite>" not in answer
        assert "know no other language" in answer


@pytest.mark.parametrize(
    "sentence",
    [
        "The name of a table is otherwise the same.",
        "It fails unless otherwise stated by its owner.",
        "The hole in this road is so deep that nobody sees its end.",
        "An entry for instance variables is kept apart.",
        "In addition to the table there is a list.",
        "The list holds rows, keys and so on.",
        "The work is done in place whenever possible.",
    ],
)
def test_a_phrase_that_means_something_else_here_stays(sentence: str) -> None:
    known = ("otherwise", "so deep", "for instance var", "In addition to", "and so on", "whenever")
    phrase = next(one for one in known if one in sentence)
    for seed in range(20):
        assert phrase in inner(rewrite(sentence, style="encyclopaedia", perspective="", seed=seed))


def test_sentences_are_not_cut_inside_brackets() -> None:
    aside = (
        "(either the table " + "of all the rows that there are " * 7 + "is full because {}; or {})"
    )
    aside = aside.format("nobody reads it, as was said", "the other one is, because it is old")
    part = f"The lock fails when the table is too small {aside}. A reader creates no entry in it."
    for perspective in PERSPECTIVES:
        for style in STYLES:
            text = inner(rewrite(part, style=style, perspective=perspective))
            inside = text[text.index("(") : text.index(")")]
            order = [inside.index(words) for words in ("either", "nobody", "; or", " old")]
            assert order == sorted(order)


def test_signatures_stay_as_they_are() -> None:
    part = "object.__get__(self, name)\n\nThe owner is asked for the name; the rest is not."
    for perspective in PERSPECTIVES:
        text = inner(rewrite(part, style="letter", perspective=perspective))
        assert text.startswith("object.__get__(self, name)\n\n")


def test_notes_cut_at_a_conclusion_but_not_inside_one() -> None:
    part = "Find $x$.\n\nThe inequality therefore holds for $x > 1$, hence $y$ is small.\n\n$3$"
    for seed in range(10):
        steps = inner(rewrite(part, maths=LEARNING_NOTES, seed=seed)).split("\n\n")[1]
        assert ["inequality" in line for line in steps.splitlines()] == [True, False]


def test_english_is_translated_by_leaving_it() -> None:
    part = "The sum of the first odd numbers is a square, as one sees at once from $1 + 3 = 4$."
    assert inner(rewrite(part, maths=TRANSLATE)) == part


def test_mistakes_show_in_the_text() -> None:
    right = inner(rewrite(style="encyclopaedia"))
    assert inner(rewrite(style="encyclopaedia", copies=1.0)) == PART.strip()
    assert numbers(inner(rewrite(style="encyclopaedia", changes_number=1.0))) != numbers(right)
    # where the paragraph of the mistake has one sentence, none is dropped
    dropped = [inner(rewrite(style="essay", drops_sentence=1.0, seed=seed)) for seed in range(8)]
    assert min(map(len, dropped)) < len(inner(rewrite(style="essay"))) - 20
    assert len(inner(rewrite(style="encyclopaedia", invents_sentence=1.0))) > len(right) + 20
    denied = inner(rewrite(style="encyclopaedia", negates=1.0))
    assert len(re.findall(r"\bnot\b|n't\b", denied)) == len(re.findall(r"\bnot\b|n't\b", right)) + 1


def test_mistakes_happen_at_their_rate() -> None:
    part = "The table holds 12 rows. It is removed."
    answers = [rewrite(part, style="glossary", seed=k, copies=0.25) for k in range(400)]
    hits = answers.count(f'<rewrite part="3">\n{part}\n</rewrite>')
    assert is_near(hits, 400, 0.25)
