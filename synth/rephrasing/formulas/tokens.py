"""Tokens of formulas: a subset of LaTeX, plain ASCII, and the usual signs of Unicode.

Bounded: a formula of more than MAX_TOKENS tokens or with a number of more than MAX_DIGITS digits is
no formula here (FormulaError), and every scan is linear.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

MAX_TOKENS = 1_000
MAX_DIGITS = 40


class FormulaError(Exception):
    """Not in the grammar, or beyond its bounds; says where."""


class FormulaToken(NamedTuple):
    kind: str
    """number, symbol, function, operator, open, close, relation, comma, row, cell, begin, end."""
    text: str
    value: Fraction | None = None


_TOKEN = re.compile(
    r"(?P<skip>\s+|\\[,;:!> $]|~|\\(?:left|right|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|displaystyle"
    r"|textstyle|limits|nolimits|quad|qquad|thinspace)(?![A-Za-z])"
    r"|\\(?:text|textrm|textbf|textit|mbox|label|tag|quad)\*?\{[^{}]{0,500}\})"
    r"|(?P<env>\\(?:begin|end)\{[A-Za-z]{1,20}\*?\}(?:\{[clr|]{0,20}\})?)"
    r"|(?P<number>\d+(?:(?:\{,\}|\\,|,)\d{3})*(?!\d)(?:(?:\{,\}|[.,])\d+)?|\d+)"
    r"|(?P<row>\\\\)"
    r"|(?P<named>\\(?:mathrm|operatorname|mathbb|mathcal|mathbf|mathit|mathsf)\*?"
    r"\{[A-Za-z]{1,20}\})"
    r"|(?P<command>\\[A-Za-z]+|\\[{}|%$&#_])"
    r"|(?P<word>[A-Za-z]{1,20})"
    r"|(?P<sign>[<>!:]=|<=>|=>|->|==|.)",
    re.DOTALL,
)
_RELATIONS = {
    "=": "=",
    "==": "=",
    ":=": ":=",
    "<": "<",
    ">": ">",
    "<=": "<=",
    ">=": ">=",
    "!=": "!=",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u2248": "~",
    "\u2208": "in",
    "\u2192": "to",
    "=>": "implies",
    "<=>": "iff",
    "->": "to",
    ":": ":",
    "\u21d2": "implies",
    "\u21d4": "iff",
    "\u2261": "equiv",
} | {
    "\\" + name: relation
    for names, relation in (
        ("le leq leqslant", "<="),
        ("ge geq geqslant", ">="),
        ("lt", "<"),
        ("gt", ">"),
        ("ne neq", "!="),
        ("approx simeq", "~"),
        ("equiv", "equiv"),
        ("cong", "cong"),
        ("sim", "sim"),
        ("propto", "propto"),
        ("in", "in"),
        ("notin", "notin"),
        ("subset subseteq", "subset"),
        ("supset supseteq", "supset"),
        ("to rightarrow longrightarrow mapsto", "to"),
        ("Rightarrow implies Longrightarrow", "implies"),
        ("iff Leftrightarrow Longleftrightarrow", "iff"),
        ("mid", "mid"),
        ("nmid", "nmid"),
        ("perp", "perp"),
        ("parallel", "parallel"),
        ("colon", ":"),
    )
    for name in names.split()
}
_OPERATORS = {
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "^": "^",
    "_": "_",
    "!": "!",
    "'": "'",
    "%": "%",
    "\\%": "%",
    "\u2212": "-",
    "\u2013": "-",
    "\u00d7": "*",
    "\u00b7": "*",
    "\u00f7": "/",
    "\u2044": "/",
    "\u00b1": "pm",
    "\\cdot": "*",
    "\\times": "*",
    "\\ast": "*",
    "\\div": "/",
    "\\pm": "pm",
    "\\mp": "mp",
    "\\cup": "cup",
    "\\cap": "cap",
    "\\setminus": "setminus",
    "\\land": "and",
    "\\wedge": "and",
    "\\lor": "or",
    "\\vee": "or",
    "\\bmod": "mod",
    "\\circ": "circ",
    "\\prime": "'",
    "\u00b0": "deg",
}
_OPEN = {"(": "(", "[": "[", "{": "{", "\\{": "\\{", "\\lfloor": "floor", "\\lceil": "ceil"} | {
    "\\langle": "angle"
}
_CLOSE = {")": "(", "]": "[", "}": "{", "\\}": "\\{", "\\rfloor": "floor", "\\rceil": "ceil"} | {
    "\\rangle": "angle"
}
_ASCII_NAMES = "sin cos tan cot arcsin arccos arctan log ln exp lim max min gcd lcm sqrt abs det"
_LATEX_NAMES = (
    "sec csc sinh cosh tanh lg sup inf dim ker deg arg frac dfrac tfrac binom dbinom overline bar"
    " vec hat tilde widehat overrightarrow underline boxed sum prod int oint iint bigcup bigcap"
    " pmod mod not neg phantom Re Im Pr ggT kgV mdc mmc"
)
_ASCII_FUNCTIONS = frozenset(_ASCII_NAMES.split())
_FUNCTIONS = _ASCII_FUNCTIONS | frozenset(_LATEX_NAMES.split())
_ASCII_SYMBOLS = frozenset(["pi", "alpha", "beta", "gamma", "delta", "theta", "lambda", "infinity"])
_SIGNS = {
    "\u03c0": "pi",
    "\u221e": "infty",
    "\u2026": "...",
    "\u00b0": "circ",
    "\u2205": "emptyset",
}
_POWERS = {"\u00b2": 2, "\u00b3": 3, "\u00b9": 1}
_COMMANDS = {
    "\\ldots": "...",
    "\\dots": "...",
    "\\cdots": "...",
    "\\vdots": "...",
    "\\ddots": "...",
}
_COMMANDS |= {"\\varnothing": "emptyset", "\\varepsilon": "epsilon", "\\varphi": "phi"}


def tokens_of(text: str, *, commas: bool) -> list[FormulaToken]:
    """`commas`: a comma between digits is a decimal one, as in most of Europe."""
    tokens: list[FormulaToken] = []
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            tokens += _token(match, commas=commas)
            if len(tokens) > MAX_TOKENS:
                raise FormulaError(f"more than {MAX_TOKENS} tokens")
    return tokens


def _token(match: re.Match[str], *, commas: bool) -> Iterator[FormulaToken]:
    kind, text = match.lastgroup, match[0]
    if kind == "number":
        yield from _number(text, commas=commas)
    elif kind == "row":
        yield FormulaToken("row", text)
    elif kind == "env":
        name = text[text.index("{") + 1 : text.index("}")].rstrip("*")
        yield FormulaToken("begin" if text.startswith("\\b") else "end", name)
    elif kind == "named":
        style, name = text[1:-1].split("{")
        known = name in _FUNCTIONS
        yield FormulaToken(
            "function" if known else "symbol", name if known else f"{style[:6]} {name}"
        )
    elif kind == "word":
        yield from _word(text)
    else:
        yield _sign(text)


def _number(text: str, *, commas: bool) -> Iterator[FormulaToken]:
    plain = text.replace("{,}", ",").replace("\\,", "")
    if len(plain) > MAX_DIGITS:
        raise FormulaError(f"a number of {len(plain)} digits")
    groups = re.fullmatch(r"\d{1,3}(?:,\d{3})+(\.\d+)?", plain)
    if "," in plain and (groups is None or commas):
        decimal = commas or "{,}" in text
        if decimal and plain.count(",") == 1 and "." not in plain:
            plain = plain.replace(",", ".")
        else:  # several numbers with commas between them
            for index, piece in enumerate(plain.split(",")):
                if index:
                    yield FormulaToken("comma", ",")
                yield FormulaToken("number", piece, Fraction(piece))
            return
    yield FormulaToken("number", text, Fraction(plain.replace(",", "")))


def _word(text: str) -> Iterator[FormulaToken]:
    if text in _ASCII_FUNCTIONS:
        yield FormulaToken("function", text)
    elif text in _ASCII_SYMBOLS:
        yield FormulaToken("symbol", text)
    else:
        for letter in text:
            yield FormulaToken("symbol", letter)


def _sign(text: str) -> FormulaToken:
    for table, kind in (
        (_RELATIONS, "relation"),
        (_OPERATORS, "operator"),
        (_OPEN, "open"),
        (_CLOSE, "close"),
    ):
        if text in table:
            return FormulaToken(kind, table[text])
    if text in (",", ";"):
        return FormulaToken("comma", ",")
    if text == "&":
        return FormulaToken("cell", "&")
    if text in ("|", "\\|", "\\vert", "\\lvert", "\\rvert"):
        return FormulaToken("bar", "|")
    if text in _POWERS:
        return FormulaToken("power", text, Fraction(_POWERS[text]))
    if text == "\u221a":
        return FormulaToken("function", "sqrt")
    if text in _SIGNS:
        return FormulaToken("symbol", _SIGNS[text])
    if text[0] == "\\" and text[1:] in _FUNCTIONS:
        return FormulaToken("function", text[1:])
    if text[0] == "\\" and len(text) > 2:
        return FormulaToken("symbol", _COMMANDS.get(text, text[1:]))
    if text.isalpha():
        return FormulaToken("symbol", text)
    if text == ".":
        return FormulaToken("stop", ".")
    raise FormulaError(f"no sign of a formula: {text!r}")
