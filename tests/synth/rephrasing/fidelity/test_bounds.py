"""Any text is read in time that grows with its length and no faster.

Counted in steps of the interpreter (lines run in our modules), since clocks lie on a busy machine.
What happens inside one call of `re` has no steps to count: a pattern that runs away would not end.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from synth.rephrasing.exact.faults import MOST_EVIDENCE, MOST_FAULTS, ExactFault, exact_faults
from synth.rephrasing.fidelity.checks import fidelity_of

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
    "nested brackets": "(([[{{",
    "parts": "\u00bd",
    "powers": "2x10^9 ",
    "rates": "5 km a day ",
    "halves": "six and a half ",
    "times in words": "ten to five ",
    "fractions": "1/2 ",
    "grouped digits": "1 234 567 ",
    "long rows": "| a | b | c ",
    "numerals": "XIV ",
}


def text_of(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def steps(work: Callable[[], object]) -> int:
    """Lines of our own modules that are run."""
    lines = 0

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return local

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        return local if "rephrasing" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("name", HOSTILE)
def test_steps_grow_with_the_length_alone(name: str) -> None:
    short, long = (text_of(HOSTILE[name], size) for size in (UNIT, 8 * UNIT))
    few, many = (steps(lambda t=t: fidelity_of(t, t, kind="maths")) for t in (short, long))
    assert many <= 16 * few + 2_000


@pytest.mark.parametrize("name", HOSTILE)
def test_patterns_do_not_run_away(name: str) -> None:
    text = text_of(HOSTILE[name], 30_000)
    assert fidelity_of(text, text[::-1], kind="maths").length_ratio >= 0.0


def _changed(piece: str, size: int) -> tuple[str, str]:
    text = text_of(piece, size)
    return text, f"{text[::-1]} x"


def _series(form: str, size: int) -> tuple[str, str]:
    """Two texts of as many pieces, each with another number, name or row than the other."""
    words = ["".join(chr(97 + n // 26**at % 26) for at in range(3)) for n in range(size // 10)]
    source, rewrite = (
        "".join(form.format(n=n * 7919 % 99_991 + more, name=f"N{word}{end}")
                for n, word in enumerate(words))
        for more, end in ((1_000, "ola"), (500_000, "iku"))
    )  # fmt: skip
    return source[:size], rewrite[:size]


SERIES = {
    "numbers": "It has {n} cats. ",
    "quantities": "It weighs {n} kg. ",
    "names": "He met Mr {name} again. ",
    "rows": "| {name} | {n} |\n",
    "code": "Run `{name} {n}`. ",
    "quotations": '"The {name} sat on {n}." ',
    "dates": "In {n} on 4 May {n}. ",
}
CHANGED = {name: (_changed, piece) for name, piece in HOSTILE.items()}
CHANGED |= {f"series of {name}": (_series, form) for name, form in SERIES.items()}


@pytest.mark.parametrize("name", CHANGED)
def test_exact_faults_are_bounded_in_work_and_number(name: str) -> None:
    make, piece = CHANGED[name]
    counts = []
    for size in (UNIT, 8 * UNIT):
        source, rewrite = make(piece, size)
        faults: list[ExactFault] = []
        counts.append(steps(lambda s=source, r=rewrite, f=faults: f.extend(exact_faults(s, r))))
        assert len(faults) <= MOST_FAULTS
        assert all(len(fault.evidence) <= MOST_EVIDENCE + 30 for fault in faults)
    assert counts[1] <= 24 * counts[0] + 10_000


def test_a_very_long_number_is_compared_as_it_is_written() -> None:
    digits = "7" * 100_000
    assert exact_faults(f"It is {digits}.", f"It is {digits}.") == []
