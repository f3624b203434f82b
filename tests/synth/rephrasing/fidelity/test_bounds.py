"""Any text is read in time that grows with its length and no faster.

Counted in steps of the interpreter (lines run in our modules), since clocks lie on a busy machine.
What happens inside one call of `re` has no steps to count: a pattern that runs away would not end.
"""

import sys
from types import FrameType
from typing import Any

import pytest

from synth.rephrasing.fidelity.checks import TextKind, fidelity_of

UNIT = 500
"""Characters of the short form; the long form has eight times as many."""

HOSTILE = {
    "dollars": "$",
    "dollar formulas": "$a$",
    "open brackets": "\\[ \\( ",
    "begin": "\\begin{align}",
    "backticks": "`a``b",
    "fences": "```\n",
    "quotes": '"a',
    "open quotes": "\u201ca b c ",
    "digits": "7",
    "separated digits": "1,234,",
    "dotted digits": "1.2.",
    "number words": "one hundred and two ",
    "capitals": "Ab ",
    "capital joints": "Ab of ",
    "dots": "a.",
    "stops": "A. ",
    "marks": "?! ",
    "spaces": " ",
    "line ends": "\n",
    "blank lines": "\n \n",
    "pipes": "|",
    "tables": "| a | b |\n",
    "items": "- a\n",
    "underlines": "====\n",
    "one letter": "a",
    "underscores": "_a_",
    "operators": "1+",
    "equations": "x=1 ",
    "brackets": "((",
    "doctests": ">>> a\n",
    "same sentence": "The cat sat on the mat with a hat. ",
    "negations": "not good, never bad. ",
    "units": "5 km, ",
    "dates": "4 May 2020 ",
    "chinese": "\u6c34\u3002",
    "combining": "e\u0301",
    "hyphens": "a-",
    "apostrophes": "a'",
}


def text_of(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def steps(source: str, rewrite: str, kind: TextKind) -> int:
    """Lines of our own modules that are run."""
    lines = 0

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return local

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        return local if "fidelity" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        fidelity_of(source, rewrite, kind=kind)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("name", HOSTILE)
def test_steps_grow_with_the_length_alone(name: str) -> None:
    short, long = (text_of(HOSTILE[name], size) for size in (UNIT, 8 * UNIT))
    few, many = steps(short, short, "maths"), steps(long, long, "maths")
    assert many <= 16 * few + 2_000


@pytest.mark.parametrize("name", HOSTILE)
def test_patterns_do_not_run_away(name: str) -> None:
    text = text_of(HOSTILE[name], 30_000)
    assert fidelity_of(text, text[::-1], kind="maths").length_ratio >= 0.0
