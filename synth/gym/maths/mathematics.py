r"""Whether two mathematical answers are the same: math-verify, and what it must not be asked.

math-verify works out what it is given, so `17*23` is the same to it as `391`, and a question
repeated is its own answer. Before it is asked, `refusal` sorts out what has not been worked out:

* A number must be written as one: digits, a quotient, a percentage, a power of ten.
* No other answer may be much larger than the right one, have an operation that is left to do
  (an integral, a sum, a limit, a factorial) where the right one has none, or be a passage of the
  question.

It is asked in a process that can be ended (`worker.py`), with its own limits of time off: these use
signals, which work in the main thread of a process alone.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from synth.gym.maths.answers import exact_number

AnswerRefusal = Literal["unevaluated", "several_answers", "repeats_question", "too_long"]

LONGEST_MATHS = 500
"""Characters of an answer."""

LARGER_BY = 8
"""Parts that an answer may have beyond twice those of the right one: ours."""

LEFT_TO_DO = (
    *("int", "iint", "iiint", "oint", "sum", "prod", "lim", "limsup", "liminf", "binom", "det"),
    *("frac{d}", "partial", "gcd", "lcm", "max", "min", "operatorname"),
)
"""Commands of LaTeX for what is still to be worked out."""

_TEXT = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|textit)\s*\{([^{}]*)\}")
_SPACING = re.compile(
    r"\\(?:[,;:!]|(?:left|right|quad|qquad|displaystyle|limits|big|Big)(?![a-zA-Z]))"
)
_NAMED = re.compile(r"^\s*[a-zA-Z](?:_\{?\w+\}?)?\s*=\s*")
_UNITS = re.compile(
    r"""(?: \\?% | ² | ³ | ° | \^?\s*\{?\\circ\}?
          | (?<=[\s0-9})]) [a-zA-Z][a-zA-Z ./]{0,30} (?:\^\{?[23]\}?|²|³)?
        ) \s*\.?$""",
    re.VERBOSE,
)
_MONEY = re.compile(r"^\s*(?:\\?\$|€|£|¥|USD|EUR)\s*")
_POWER_OF_TEN = re.compile(
    r"""\s*(?: \\times | \\cdot | \* | \N{MULTIPLICATION SIGN} | x )
        \s*10\s*(?:\^|\*\*)\s*(?: \{\s*(-?\d{1,3})\s*\} | (-?\d{1,3}) )$""",
    re.VERBOSE,
)
_E_NOTATION = re.compile(r"[eE][+-]?\d{1,3}$")
_PARTS = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[a-zA-Z]|[-+*/^!=<>_|]")
_SEVERAL = re.compile(r"(?<![a-zA-Z\\])(?:or|either|maybe|possibly|and)(?![a-zA-Z])", re.IGNORECASE)


def is_number(text: str) -> bool:
    """Whether the text is one number, however it is written: with a name before it, a unit behind
    it, as a percentage, as money, or times a power of ten."""
    text = _SPACING.sub("", _TEXT.sub(r" \1", text)).replace("{,}", ",")
    text = _MONEY.sub("", _NAMED.sub("", text)).strip().strip("$").strip()
    text = _UNITS.sub("", text).strip()
    text = _E_NOTATION.sub("", _POWER_OF_TEN.sub("", text)).strip()
    return exact_number(_plain_fraction(text)) is not None


def _plain_fraction(text: str) -> str:
    r"""`\frac12` as `1/2`, and a number in parentheses without them."""
    text = re.sub(r"\\[dt]?frac\s*(\d)\s*(\d)$", r"\1/\2", text)
    match = re.fullmatch(r"\((-?[0-9./]+)\)", text)
    return match.group(1) if match else text


def refusal(right: str, answer: str, question: str) -> AnswerRefusal | None:
    """Why the answer is none, whatever it is worth; None where it can be compared."""
    if len(answer) > LONGEST_MATHS:
        return "too_long"
    if _SEVERAL.search(answer) and not _SEVERAL.search(right):
        return "several_answers"
    if is_number(right):
        return None if is_number(answer) else "unevaluated"
    commands = set(re.findall(r"\\([a-zA-Z]+)", answer)) - set(re.findall(r"\\([a-zA-Z]+)", right))
    if commands & set(LEFT_TO_DO) or ("!" in answer and "!" not in right):
        return "unevaluated"
    if len(_PARTS.findall(answer)) > 2 * len(_PARTS.findall(right)) + LARGER_BY:
        return "unevaluated"
    given, asked = _squeezed(answer), _squeezed(question)
    has_operation = len(_PARTS.findall(answer)) > 1
    if has_operation and given in asked and given != _squeezed(right):
        return "repeats_question"
    return None


def _squeezed(text: str) -> str:
    """Without space and whatever only looks after the layout."""
    text = _SPACING.sub("", text).replace("**", "^").replace("\\cdot", "*")
    return re.sub(r"[\s${}]|\\(?=[dt]frac)", "", text).replace("dfrac", "frac").casefold()


@cache
def _warmed() -> None:
    import logging

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    # Texts of ours, which bring in the grammar and what sympy imports and remembers as it works.
    for right, given in ((r"\frac{\sqrt{2}}{2}", r"1/\sqrt{2}"), ("1+x^2", "x+2"), ("1/3", "0.3")):
        answer({"right": right, "answer": given})


def prepare(arguments: Mapping[str, Any]) -> None:
    """What children inherit: the library as it is after some comparisons."""
    _warmed()


def answer(arguments: Mapping[str, Any]) -> bool:
    """Whether `answer` is the same as `right`. Both are read as mathematics, whole; what cannot be
    read is the same as nothing."""
    import math_verify

    right, given = _parsed(arguments["right"]), _parsed(arguments["answer"])
    if not right or not given:
        return False
    return bool(math_verify.verify(right, given, timeout_seconds=None))


def _parsed(text: str) -> list[Any]:
    import math_verify

    config = math_verify.LatexExtractionConfig(boxed_match_priority=0)
    return math_verify.parse(
        "\\boxed{" + text + "}",
        extraction_config=[config],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,  # type: ignore[arg-type]
    )
