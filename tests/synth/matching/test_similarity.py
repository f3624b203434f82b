"""Similarity of texts: sketches estimate it, near repeats are those of the definition."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.matching.evaluations import short_names
from synth.matching.similarity import HASHES, near_repeats, shared_spans, shingles, sketch
from synth.matching.word_runs import length_in_words, word_runs, words_of
from tool_specs.coverage.duplicates import jaccard


def texts(number: int) -> str:
    return " ".join(f"word{(k * (number + 3)) % 97} and{k}" for k in range(60 + number))


def test_every_near_pair_is_found_and_no_other() -> None:
    base = [texts(n) for n in range(40)]
    near = [text.replace("word0 ", "wordx ") for text in base[:20]]
    many = [*base, *near, "", "short text", "short text"]
    found = near_repeats([sketch(t) for t in many], lambda n: many[n], near=0.8)
    expected: dict[int, int] = {}
    for later in range(len(many)):
        for earlier in range(later):
            alike = jaccard(shingles(many[later]), shingles(many[earlier])) >= 0.8
            if alike and earlier not in expected:
                expected[later] = earlier
                break
    assert found == expected
    assert len(found) >= 15


@pytest.mark.parametrize("words", [8, 20, 200])
def test_sketches_agree_as_often_as_texts_are_alike(words: int) -> None:
    """Within what so many independent hashes may be off, for short texts as for long ones."""
    rng = random.Random(words)
    off = []
    for _ in range(60):
        one = [f"w{rng.randrange(400)}" for _ in range(words)]
        other = [word if rng.random() > 0.1 else f"z{rng.randrange(99)}" for word in one]
        alike = jaccard(shingles(" ".join(one)), shingles(" ".join(other)))
        pair = [np.frombuffer(sketch(" ".join(text)), np.uint32) for text in (one, other)]
        if 0 < alike < 1:
            sigma = (alike * (1 - alike) / HASHES) ** 0.5
            off.append(((pair[0] == pair[1]).mean() - alike) / sigma)
        else:
            assert (pair[0] == pair[1]).mean() == alike
    assert abs(np.mean(off)) < 0.5
    assert np.std(off) < 1.3


def test_a_long_text_is_sketched_as_its_set_of_pieces() -> None:
    words = [f"w{n}" for n in range(5_000)]
    assert sketch(" ".join([*words, *words])) == sketch(" ".join([*words, *words, *words]))


@settings(max_examples=60)
@given(st.lists(st.sampled_from("abcde"), max_size=14), st.integers(3, 5))
def test_runs_are_equal_where_their_words_are(words: list[str], length: int) -> None:
    text = ", ".join(words)
    hashes = word_runs(text.upper(), length).hashes.tolist()
    runs = [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
    assert len(hashes) == len(runs)
    for one, run in zip(hashes, runs, strict=True):
        assert [h == one for h in hashes] == [r == run for r in runs]


def test_each_character_is_a_word_where_no_spaces_are_written() -> None:
    text = "订 Heron 号帆船"
    assert words_of(text) == ["订", "heron", "号", "帆", "船"]
    assert length_in_words(text) == 3
    ours, theirs = shared_spans(text, f"请{text}。")
    assert [text[s:e] for s, e in ours] == [text]
    assert len(theirs) == 1


def test_a_letter_that_grows_in_lower_case_is_the_same_everywhere() -> None:
    """The Turkish dotted I has two characters in lower case."""
    text = "İki kişilik bir oda istiyorum"
    [(start, end)], _ = shared_spans(text, text)
    assert text[start:end] == text


def test_files_are_named_by_as_little_as_tells_them_apart() -> None:
    paths = ["/e/air/tasks.json", "/e/rail/tasks.json", "/e/rail/policy.md", "x.json", "/e/x.json"]
    named = ["air/tasks.json", "rail/tasks.json", "policy.md", "x.json", "e/x.json"]
    assert short_names(paths) == dict(zip(paths, named, strict=True))
