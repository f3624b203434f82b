"""Blocks, sentences, parts: every character of a text is accounted for, whatever the text."""

import re
from pydoc_data.topics import topics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.sizes import count_tokens
from synth.rephrasing.structure.blocks import VERBATIM, blocks_of, heading_of
from synth.rephrasing.structure.chunks import Document, documents_of
from synth.rephrasing.structure.sentences import pieces, sentences
from tests.examples import examples

MIXED = """# Pumps

A pump moves 40 litres a minute. It costs 120 EUR, as of 2024-05-01.

## Wiring

- Red is live.
  It carries 230 V.
- Black is neutral.

```python
volts = 230

print(volts)
```

| part | price |
|------|-------|
| seal | 3.50  |

The flow is

$$
Q = \\frac{V}{t}
$$

and no more.

Title below
-----------

>>> 1 + 1
2

It ends here:

    total = a + b
    return total
"""

PARTS = [
    *("word ", "Word. ", "\n", "\n\n", "# H\n", "- x\n", "```\n", "| a |\n", "$$\n", "   b = 1;\n"),
    *("===\n", "1. y ", "\u3042\u3002", "...  ", ">>> f()\n", "[[keep 1]]", "\\[ ", "+--+\n"),
]
messy = st.lists(st.sampled_from(PARTS), max_size=60).map("".join)


def test_blocks_of_markdown() -> None:
    found = [(b.kind, MIXED[b.start : b.end].splitlines()[0].strip()) for b in blocks_of(MIXED)]
    assert found == [
        ("heading", "# Pumps"),
        ("paragraph", "A pump moves 40 litres a minute. It costs 120 EUR, as of 2024-05-01."),
        ("heading", "## Wiring"),
        ("item", "- Red is live."),
        ("item", "- Black is neutral."),
        ("code", "```python"),
        ("table", "| part | price |"),
        ("paragraph", "The flow is"),
        ("formula", "$$"),
        ("paragraph", "and no more."),
        ("heading", "Title below"),
        ("code", ">>> 1 + 1"),
        ("paragraph", "It ends here:"),
        ("code", "total = a + b"),
    ]


def test_prose_that_is_indented_is_no_code() -> None:
    found = blocks_of(topics["customization"])
    text = topics["customization"]
    said = [b for b in found if "Called to create a new instance" in text[b.start : b.end]]
    assert [block.kind for block in said] == ["paragraph"]
    assert any(block.kind == "code" for block in blocks_of(topics["assert"]))


def test_headings_without_their_marks() -> None:
    assert [heading_of(t) for t in ("## A b ##", "A b\n===", "===\nA b\n===")] == ["A b"] * 3


@given(messy)
def test_between_blocks_lies_white_space_alone(text: str) -> None:
    at = 0
    for block in blocks_of(text):
        assert block.start >= at
        assert not text[at : block.start].strip()
        assert text[block.start : block.end].strip()
        at = block.end
    assert not text[at:].strip()


@given(messy, st.integers(8, 40))
def test_pieces_put_together_are_the_text(text: str, most: int) -> None:
    assert "".join(text[a:b] for a, b in pieces(text, most)) == text
    assert all(count_tokens(text[a:b]) <= most for a, b in pieces(text, most))
    assert "".join(text[a:b] for a, b in sentences(text)) == text


def test_sentences_end_where_people_end_them() -> None:
    text = 'Dr. Lee paid 3.50 EUR, e.g. Tuesday. "It works." Really? See Fig. 3. ok then.'
    text += " \u3042\u3002\u3044\u3002"
    assert [text[a:b].strip() for a, b in sentences(text)] == [
        "Dr. Lee paid 3.50 EUR, e.g. Tuesday.",
        '"It works."',
        "Really?",
        "See Fig. 3. ok then.",
        "\u3042\u3002",
        "\u3044\u3002",
    ]


@settings(max_examples=examples(60))
@given(messy, st.integers(32, 80))
def test_every_word_is_in_one_part_and_parts_are_bounded(text: str, chunk: int) -> None:
    document = Document(text, chunk_tokens=chunk)
    at = 0
    for part in document.parts:
        assert not text[at : part.span.start].strip()
        at = part.span.end
        assert part.tokens <= chunk * 9 / 8 + 1
    assert not text[at:].strip()
    kept = [u for p in document.parts for u in p.units if u.kind in VERBATIM]
    markers = [m for part in document.parts for m in document.markers(part)]
    assert len(set(markers)) == len(kept)


@settings(max_examples=examples(60))
@given(messy)
def test_parts_that_are_handed_back_make_the_text_again(text: str) -> None:
    """Up to white space: a rewriter that changes nothing loses nothing and says nothing twice."""
    document = Document(text, chunk_tokens=32)
    said, before = "", ""
    for number, part in enumerate(document.parts):
        work = document.work(part).strip()
        gap = document.gap_before(number, before, work) if number else ""
        said, before = said + gap + document.restored(work), work
    assert re.sub(r"\s+", "", said) == re.sub(r"\s+", "", text)


@pytest.mark.parametrize(
    ("before", "here", "gap"),
    [
        ("The pump runs.", "It is red.", " "),
        ("Asker: Does it run?\n\nExpert: It does.", "Asker: Is it red?\n\nExpert: Yes.", "\n\n"),
        ("**A:** It does.", "**Q:** Is it red?\n\n**A:** Yes.", "\n\n"),
        ("**Pump**: it runs.", "**Colour**: red.", "\n\n"),
        ("- It runs.", "- It is red.", "\n\n"),
        ("\u554f\uff1a\u3042\u3002", "\u7b54\uff1a\u3044\u3002", "\n\n"),
        ("\u3042\u3002", "\u3044\u3002", ""),
    ],
)
def test_a_seam_inside_a_paragraph_is_what_the_form_wants(before: str, here: str, gap: str) -> None:
    document = Document("One rule of the pump is this. " * 30, chunk_tokens=64)
    assert len(document.parts) > 2
    assert document.gap_before(1, before, here) == gap


@settings(max_examples=examples(40))
@given(messy, st.integers(64, 200))
def test_long_texts_become_documents_that_cover_them(text: str, most: int) -> None:
    spans = documents_of(text, most=most)
    assert "".join(text[a:b] for a, b in spans) == text
    for start, end in spans:
        whole = {b.kind for b in blocks_of(text[start:end])} <= VERBATIM
        assert count_tokens(text[start:end].strip()) <= most * 1.1 + 1 or whole


def test_a_reference_of_cpython_is_cut_at_its_structure() -> None:
    text = "\n\n".join(topics[name] for name in sorted(topics))
    spans = documents_of(text, most=4096)
    assert len(spans) > 20
    assert all(count_tokens(text[a:b]) <= 4300 for a, b in spans)
    document = Document(text[slice(*spans[3])], chunk_tokens=256)
    assert all(part.tokens <= 288 for part in document.parts)
    assert len(document.parts) < 40


@pytest.mark.parametrize(
    "hostile",
    ["- " * 20_000, "  x\n\n" * 20_000, "(" * 50_000, "a. " * 20_000, "|" * 50_000, "=" * 50_000,
     "- a\n\n  b c d e.\n" * 10_000, ">>> \n" * 10_000, "$$" * 20_000, "\n" * 50_000,
     "\\begin{a}\n" * 5_000, "." * 50_000, " " * 50_000 + "x", "```\n" * 10_000],
)  # fmt: skip
def test_hostile_texts_are_cut_too(hostile: str) -> None:
    spans = documents_of(hostile, most=1024)
    assert "".join(hostile[a:b] for a, b in spans) == hostile
    for start, end in spans[:3]:
        Document(hostile[start:end][:20_000], chunk_tokens=64)
