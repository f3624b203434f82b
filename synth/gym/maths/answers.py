r"""The final answer in a reply, and when two short texts or numbers are the same.

A reply says its answer between `<answer>` and `</answer>`, or in `\boxed{}`. It says it once, or
says the same each time: whoever offers several answers has given none.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, NamedTuple

INSTRUCTION = (
    "You solve problems. Think first if you need to, then give the final answer alone, "
    "once, between <answer> and </answer>."
)
"""System prompt of the environments that read answers with this module."""

LONGEST_ANSWER = 20_000
"""Characters; the longest of the puzzles' solutions has a few thousand."""

MOST_BOXES = 50
"""Boxes that are read of a reply; more of them are several answers."""

LONGEST_NUMBER = 400
"""Characters: longer ones are no answer, and Python refuses to read them from 4,300 digits on."""

AnswerFault = Literal["no_answer", "several_answers", "too_long"]

_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_MATHS_SIGNS = re.compile(r"^(?:\$\$(.*)\$\$|\$(.*)\$|\\\((.*)\\\)|\\\[(.*)\\\])$", re.DOTALL)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_PLAIN = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))")
_QUOTIENT = re.compile(r"([+-]?)\s*(?:\\[dt]?frac\s*\{(.+)\}\s*\{(.+)\}|([^/{}]+)/([^/{}]+))")


class FinalAnswer(NamedTuple):
    text: str
    """Empty where there is none."""
    fault: AnswerFault | None = None


def final_answer(reply: str) -> FinalAnswer:
    """What the reply gives as its answer, without what is only there to mark it."""
    if len(_BOX.findall(reply)) > MOST_BOXES:
        return FinalAnswer("", "several_answers")
    found = list(dict.fromkeys(_given(reply)))
    if not found:
        return FinalAnswer("", "no_answer")
    if len(found) > 1:
        return FinalAnswer("", "several_answers")
    if len(found[0]) > LONGEST_ANSWER:
        return FinalAnswer("", "too_long")
    return FinalAnswer(found[0]) if found[0] else FinalAnswer("", "no_answer")


def _given(reply: str) -> Iterator[str]:
    spans = list(_tagged(reply))
    for start, end in spans:
        yield _unmarked(reply[start:end])
    for match in _BOX.finditer(reply):
        if not any(start <= match.start() < end for start, end in spans):
            content = _in_braces(reply, match.end())
            if content is not None:
                yield _unmarked(content)


def _tagged(reply: str) -> Iterator[tuple[int, int]]:
    """Where the texts between the tags stand: each from the first that opens to the next that
    closes."""
    opened: int | None = None
    for tag in _TAG.finditer(reply):
        if not tag.group(1):
            opened = tag.end() if opened is None else opened
        elif opened is not None:
            yield opened, tag.start()
            opened = None


def _in_braces(text: str, start: int) -> str | None:
    """From behind an opening brace to the one that closes it; None where none does so near enough
    for an answer."""
    depth = 1
    for place in range(start, min(len(text), start + LONGEST_ANSWER)):
        if text[place] == "\\":
            continue
        escaped = text[place - 1] == "\\"
        depth += 0 if escaped else (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return text[start:place]
    return None


def _unmarked(text: str) -> str:
    """Without the box, the signs of mathematics or the space around it."""
    before = None
    while text != before:
        before = text
        # Lines keep the space before them: in a grid it may be a part of it.
        text = "\n".join(line.rstrip() for line in text.strip("\r\n").splitlines())
        stripped = text.strip()
        if match := _MATHS_SIGNS.match(stripped):
            inner = next(group for group in match.groups() if group is not None)
            text = inner if "$" not in inner else text
        elif (box := _BOX.match(stripped)) and _in_braces(stripped, box.end()) == stripped[
            box.end() : -1
        ]:
            text = stripped[box.end() : -1]
        elif "\n" not in stripped:
            text = stripped
    return text


def one_space(text: str) -> str:
    """The text with one space between words and no empty line, in the lines that it has."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def exact_number(text: str) -> Fraction | None:
    """The number that the text is, and nothing but that: a whole or decimal number, with commas
    between thousands if it likes, or a quotient of two. ASCII digits, no exponents. None for
    anything else, and for a quotient by zero."""
    text = re.sub(r"^([+-])\s+", r"\1", text.strip().replace("\N{MINUS SIGN}", "-"))
    if len(text) > LONGEST_NUMBER:
        return None
    number = _decimal(text)
    if number is not None:
        return number
    match = _QUOTIENT.fullmatch(text)
    if match is None:
        return None
    sign, *parts = match.groups()
    above, below = (part.strip() for part in parts if part is not None)
    if sign and above[:1] in "+-":
        return None
    over, under = _decimal(above), _decimal(below)
    if over is None or not under:
        return None
    return -over / under if sign == "-" else over / under


def _decimal(text: str) -> Fraction | None:
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    sign, whole, behind, alone = match.groups()
    digits = behind or alone or ""
    value = Fraction(int((whole or "0") + digits), 10 ** len(digits))
    return -value if sign == "-" else value
