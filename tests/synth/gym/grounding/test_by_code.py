"""What code finds of a sentence: copies hold, changed values do not, and words only leave open."""

import re
from typing import Any

import pytest

from synth.gym.grounding.by_code import SentenceFinding, decided
from synth.gym.grounding.material import Material
from synth.gym.grounding.silence import is_silence, states_nothing

DOCUMENTS = [
    "The ferry to Skarholm leaves at 07:45 and returns at 18:20. A single ticket costs 34 kroner. "
    "Bicycles travel free of charge on weekdays. The crossing takes 25 minutes.",
    "The line was opened on 3 May 1962 by the Nordby Shipping Company. It carried 118,000 "
    "passengers in 2025. Dogs are not allowed in the saloon.",
]
QUESTION = "When does the ferry to Skarholm leave, and what does a ticket cost?"
RESULT = {"loan_id": "LN-40771", "member": "Ida Roos", "late_fee": 4.5, "due_date": "2026-04-18"}
OTHER = {"loan_id": "LN-40772", "member": "Per Lind", "late_fee": 0.0, "due_date": "2026-05-02"}


def material(**changes: Any) -> Material:
    return Material({"question": QUESTION, "documents": DOCUMENTS, "results": []} | changes)


def of_records(*fields: str, **changes: Any) -> Material:
    results = [{"name": "get_loan", "result": one} for one in (RESULT, OTHER)]
    asked = {"question": f"What is the {' and the '.join(fields)} of LN-40771?"}
    given = asked | {"documents": [], "results": results, "record": "LN-40771", "fields": fields}
    return Material(given | changes)


def finding(said: str, of: Material | None = None, answers: tuple[str, ...] = ()) -> str:
    return decided(said, of or material(), answers).finding


SENTENCES = [one.text for one in material().sentences]
NUMBERED = [one for one in SENTENCES if any(map(str.isdigit, one))]


@pytest.mark.parametrize("said", SENTENCES)
@pytest.mark.parametrize("form", ["{}", "**{}**", "According to the documents, {}"])
def test_a_sentence_of_a_document_holds_however_it_is_set(said: str, form: str) -> None:
    assert finding(form.format(said)) == "supported"


@pytest.mark.parametrize("said", NUMBERED)
def test_another_number_in_it_never_holds(said: str) -> None:
    for place in re.finditer(r"\d+", said):
        other = str(int(place[0]) + 13).zfill(len(place[0]))
        assert finding(said[: place.start()] + other + said[place.end() :]) != "supported"


def test_most_changed_numbers_are_found_out_by_code() -> None:
    changed = [
        "A single ticket costs 43 kroner.",
        "The crossing takes 52 minutes.",
        "It carried 181,000 passengers in 2025.",
        "The line was opened on 9 May 1962 by the Nordby Shipping Company.",
    ]
    assert [finding(one) for one in changed] == ["contradicted"] * len(changed)


@pytest.mark.parametrize("said", SENTENCES)
def test_a_denial_of_it_never_holds(said: str) -> None:
    assert finding(f"It is not true that {said[0].lower()}{said[1:]}") != "supported"
    verbs = ("leaves", "costs", "travel", "takes", "carried", "was", "are not")
    verb = next(one for one in verbs if f" {one} " in said)
    other = "are" if verb == "are not" else f"never {verb}"
    assert finding(said.replace(f" {verb} ", f" {other} ")) == "open"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("The ferry to Skarholm leaves at 07:45.", "supported"),
        ("The ferry returns at 18:20.", "open"),  # true, in other words: for the judge
        ("The ferry to Skarholm leaves at 18:20.", "open"),  # a value of the material
        ("Bicycles travel free of charge.", "open"),  # a limit is left out
        ("The ferry leaves from pier 93.", "unsupported"),
        ("There is a sauna on board.", "open"),
        ("A single ticket does not cost 43 kroner.", "open"),
        ("Two single tickets cost 68 kroner.", "open"),  # reckoned
    ],
)
def test_what_is_told_in_part_or_otherwise(said: str, found: SentenceFinding) -> None:
    assert finding(said) == found


def test_a_part_of_a_sentence_does_not_hold_where_the_rest_limits_it() -> None:
    limited = material(
        documents=[
            "Members swim free and pay nothing, but only before 9:00. Tea is sold, or coffee."
        ]
    )
    assert finding("Members swim free.", limited) == "open"
    assert finding("Members swim free and pay nothing.", limited) == "open"
    assert finding("Tea is sold.", limited) == "open"


@pytest.mark.parametrize(
    ("said", "fields", "found"),
    [
        ("The late fee of LN-40771 is 4.50.", ["late_fee"], "supported"),
        ("The late fee is 4.50.", ["late_fee"], "supported"),
        ("Late fee: 4.5", ["late_fee"], "supported"),
        ("Its due date is April 18, 2026.", ["due_date"], "supported"),
        ("The late fee is 4.50 and the due date is 2026-04-18.", ["late_fee"], "supported"),
        ("4.50", ["late_fee"], "supported"),
        ("4.50", ["late_fee", "due_date"], "open"),
        ("The late fee is 9.75.", ["late_fee"], "contradicted"),
        ("The due date is 2026-05-02.", ["due_date"], "contradicted"),  # the other loan's
        ("The late fee is not 9.75.", ["late_fee"], "open"),
        ("The late fee is 4.50 or 9.75.", ["late_fee"], "unsupported"),
        ("The late fee of LN-40772 is 4.50.", ["late_fee"], "open"),
        ("The late fee of LN-99981 is 4.50.", ["late_fee"], "unsupported"),
        ("The late fee was waived.", ["late_fee"], "open"),
    ],
)
def test_values_of_records(said: str, fields: list[str], found: SentenceFinding) -> None:
    assert finding(said, of_records(*fields)) == found


def test_the_answer_that_a_task_names_holds_alone_where_the_material_has_it() -> None:
    assert finding("34 kroner", answers=("34 kroner",)) == "supported"
    assert finding("88 kroner", answers=("88 kroner",)) != "supported"
    assert finding("34 kroner or so", answers=("34 kroner",)) == "open"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("The postage of LN-40771 is 3.20.", "unsupported"),
        ("Postage: paid by card", "unsupported"),
        ("3.20", "unsupported"),
        ("There is no postage for LN-40771.", "open"),
        ("The result does not list the postage of LN-40771.", "abstains"),
    ],
)
def test_a_field_that_no_result_has_cannot_be_told(said: str, found: SentenceFinding) -> None:
    asked = {"question": "What is the postage of LN-40771?", "missing": "postage"}
    assert finding(said, of_records(**asked, record=None)) == found


ASKED = material().question_words
SILENT = [
    "The documents do not say what a ticket costs.",
    "I'm sorry, but the provided context does not contain this information.",
    "There is no information about the ferry in the text.",
    "I cannot answer that from the documents.",
    "Neither document mentions the ticket.",
    "What a ticket costs is not stated.",
    "I couldn't find when the ferry leaves.",
]
NOT_SILENT = [
    "The documents do not say what a ticket costs, but it is 40 kroner.",
    "The documents do not mention that the ferry sank.",
    "The ferry to Skarholm does not leave.",
    "The documents say that there is no ferry to Skarholm.",
    "The documents do not say it; probably it leaves at noon.",
    "The document does not give the price of 40 kroner.",
    "A ticket costs nothing.",
    "The ferry leaves when the ticket is shown.",
]


@pytest.mark.parametrize("said", SILENT)
def test_what_says_that_nothing_is_said(said: str) -> None:
    assert is_silence(said, ASKED, QUESTION)


@pytest.mark.parametrize("said", NOT_SILENT)
def test_what_says_more_than_that(said: str) -> None:
    assert not is_silence(said, ASKED, QUESTION)


@pytest.mark.parametrize(
    "said",
    [
        "Sure, happy to help!",
        "Is there anything else you need?",
        "Thank you.",
        "Here is the answer:",
    ],
)
def test_what_states_nothing(said: str) -> None:
    assert states_nothing(said)


@pytest.mark.parametrize(
    "said",
    [
        "Yes.",
        "No, sure.",
        "Happy to help 3 more people.",
        "Sure, the ferry sank.",
        "It left. Really?",
    ],
)
def test_what_states_something(said: str) -> None:
    assert not states_nothing(said)
