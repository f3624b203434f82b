"""What a generator of ours makes: a question with its one answer."""

from typing import Literal, NamedTuple


class OwnQuestion(NamedTuple):
    question: str
    answer: str
    check: Literal["number", "words"]
    """How an answer is judged, a name of `puzzle_checks.CHECKS`."""
