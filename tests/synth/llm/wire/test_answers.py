"""Answers as models give them, and what each of them says: `answers.jsonl`, decided by hand.

A value of null is an answer that has to be asked for again: it says nothing, or only a part.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from synth.llm.structured import validator_of
from synth.llm.wire.json_text import NotJsonError, value_in
from synth.llm.wire.reasoning import cut_reasoning

TEXT = {"type": "string"}
FORMS = {
    "pet": {"name": TEXT, "age": {"type": "integer"}},
    "code": {"path": TEXT, "text": TEXT},
    "quiz": {
        "questions": {
            "type": "array",
            "items": {"type": "object", "properties": {"q": TEXT, "a": TEXT}},
        }
    },
}
SCHEMAS: dict[str, Any] = {
    name: {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }
    for name, members in FORMS.items()
} | {"list": {"type": "array", "items": TEXT}}
LINES = (Path(__file__).parent / "answers.jsonl").read_text().splitlines()
ANSWERS = [json.loads(line) for line in LINES]


def read(text: str, schema: dict[str, Any]) -> Any:
    """The value that fits, or None."""
    validator = validator_of(schema)
    try:
        value = value_in(cut_reasoning(text).content, validator)
    except NotJsonError:
        return None
    return value if validator.is_valid(value) else None


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer["why"] for answer in ANSWERS])
def test_an_answer_is_read_as_a_person_reads_it(answer: dict[str, Any]) -> None:
    assert read(answer["text"], SCHEMAS[answer["schema"]]) == answer["value"]
