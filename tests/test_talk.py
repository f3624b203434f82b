"""The figures about conversations are those of their definitions."""

import json
from pathlib import Path

import pytest

from benchmarks.talk import distinct_pairs, first_words, foreign_talk, repeated_sentences


def test_pairs_are_counted_within_a_text_and_over_all_of_them() -> None:
    assert distinct_pairs([["a", "b", "a", "b"]]) == pytest.approx(2 / 3)
    assert distinct_pairs([["a", "b"], ["b", "a"]]) == 1.0
    assert distinct_pairs([["a"], []]) == 0.0


def test_texts_are_cut_at_the_same_number_of_words() -> None:
    assert first_words(["One two.", "Three, four five", "six"], 4) == [
        ["one", "two"],
        ["three", "four"],
    ]


def test_a_sentence_repeats_whatever_its_case_and_marks_and_short_ones_do_not_count() -> None:
    texts = ["Here is the bill. Thanks.", "here is the bill!\nThanks."]
    assert repeated_sentences(texts, 100) == 0.5
    assert repeated_sentences(texts, 3) == 0.0


def test_published_conversations_are_read_in_either_form(tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    call = {"role": "assistant", "content": "One moment.", "tool_calls": [{}, {}]}
    openai = {"messages": [{"role": "user", "content": "Hello"}, call]}
    share_gpt = {"conversations": json.dumps([{"from": "human", "value": "Hi"}])}
    path.write_text("\n".join(map(json.dumps, (openai, share_gpt))))
    talk = foreign_talk(path)
    assert (talk.name, talk.conversations, talk.user) == ("theirs", 2, ["Hello", "Hi"])
    assert (talk.calls, talk.parallel, talk.thoughts) == (2, 1, 1)
