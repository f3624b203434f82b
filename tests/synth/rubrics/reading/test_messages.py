"""What a chat message says, in every form that real data has."""

from typing import Any

import pytest

from synth.rubrics.reading.messages import text_of
from synth.rubrics.statements.statements import statements_of


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "Hi."}, "Hi."),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": []}, ""),
        (
            {"content": [{"type": "text", "text": "Hi."}, {"type": "image_url"}, "Bye."]},
            "Hi.\n\nBye.",
        ),
        ({"content": [{"type": "text", "text": None}]}, ""),
    ],
)
def test_a_message_says_its_text_whatever_its_form(message: dict[str, Any], text: str) -> None:
    assert text_of(message) == text


def test_statements_are_read_from_parts_and_without_content() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": None},
        {"role": "user", "content": None},
        {"role": "assistant", "content": [{"type": "text", "text": "The boat is yours."}]},
    ]
    assert [said.text for said in statements_of(messages, [])] == ["The boat is yours."]
