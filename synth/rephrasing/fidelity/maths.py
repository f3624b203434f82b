"""Mathematics kept: every formula of the source, as a tree, and its final answer.

Formulas stand between marks of LaTeX, or plainly in the prose ("x^2 + 3x = 10"). One that the
grammar does not read is compared as it is written. A rewrite may work out more than its source, so
new formulas are listed and not blamed, unless they are closed equations that are false.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from synth.rephrasing.facts.quantities import quantities_of
from synth.rephrasing.facts.text import ReadText, squeeze
from synth.rephrasing.fidelity.layers import LayerCounts
from synth.rephrasing.formulas.parser import parse
from synth.rephrasing.formulas.tokens import FormulaError
from synth.rephrasing.formulas.trees import Tree, directed, num, pairs, sides, subtrees, value_of

COMMA_LANGUAGES = frozenset(["de", "fr", "es", "it", "pt", "pl", "ru"])

MAX_ANSWER = 300
"""Characters after the mark of a final answer that are read."""

ROUNDED = Fraction(1, 200)
"""Relative difference up to which an equation with a fraction in it may be rounded."""

_PLAIN = re.compile(
    r"(?<![\w.()$])(?:[\w.()]{1,40} ?[-+*/=<>^\u00d7\u00b7\u2212\u2264\u2265\u2260]{1,2} ?){1,40}"
    r"[\w.()]{1,40}"
)
_TELLS = re.compile(r"[=<>^*/+\u00d7\u00b7\u2264\u2265\u2260]")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_KNOWN = frozenset(
    ["sin", "cos", "tan", "log", "ln", "exp", "sqrt", "pi", "gcd", "lcm", "max", "min"]
)
_ANSWER = re.compile(
    r"(?:final answer|answer|antwort|ergebnis|l\u00f6sung|r\u00e9ponse|r\u00e9sultat|respuesta"
    r"|resultado|risposta|risultato|resposta|odpowied\u017a|wynik|\u7b54\u6848|\u7b54\u3048"
    r"|\u89e3\u7b54|\u7b54|\u043e\u0442\u0432\u0435\u0442)[*_]{0,2}\s{0,2}(?::|\uff1a|=|is\b)",
    re.IGNORECASE,
)


class Formula(NamedTuple):
    text: str
    tree: Tree | None
    """None where the grammar does not read it."""


class MathsFidelity(NamedTuple):
    formulas: LayerCounts
    unread: int
    """Formulas of the source that the grammar does not read."""
    false: tuple[str, ...]
    """Closed equations of the rewrite that do not hold and are none of the source's."""
    answer: str | None
    """The final answer that was looked for."""
    answer_kept: bool | None
    """None where the source has no final answer that can be told."""


@lru_cache(maxsize=32)
def maths_kept(
    source: ReadText, rewrite: ReadText, *, languages: tuple[str, str], answer: str | None = None
) -> MathsFidelity:
    """`languages`: of source and rewrite; `answer`: the final one, where it is known apart."""
    known_before, known = _known_of(source, languages[0]), _known_of(rewrite, languages[1])
    ours, theirs = known_before.formulas, known.formulas
    telling = {f.text: f for f in ours if not _is_bare(f)}
    lost = [f.text for f in telling.values() if not known.holds(f)]
    added = {f.text: None for f in theirs if not _is_bare(f) and not known_before.holds(f)}
    false = [
        shown(pair)
        for f in theirs
        if f.tree is not None
        for pair in pairs(f.tree)
        if pair not in known_before.pairs and holds(pair) is False
    ]
    answer = answer if answer is not None else answer_of(source)
    return MathsFidelity(
        LayerCounts(len(telling), tuple(lost), tuple(added)),
        sum(f.tree is None for f in ours),
        tuple(dict.fromkeys(false)),
        answer,
        None if answer is None else _answer_kept(answer, rewrite, theirs, languages),
    )


def formulas_of(text: ReadText, language: str) -> list[Formula]:
    """In marks first, then the plain ones."""
    commas = language in COMMA_LANGUAGES
    return [Formula(written, _read(written, commas)) for written in (*text.formulas, *_plain(text))]


def holds(pair: Tree) -> bool | None:
    """Whether a relation of two closed trees is true; None where that cannot be told."""
    _, left, sign, right = pair
    a, b = value_of(left), value_of(right)
    if a is None or b is None or sign not in ("=", "<", "<=", "!="):
        return None
    if sign == "=":
        near = (
            abs(a - b) <= ROUNDED * max(abs(a), abs(b)) and max(a.denominator, b.denominator) != 1
        )
        return a == b or near
    return {"<": a < b, "<=": a <= b, "!=": a != b}[sign]


def answer_of(text: ReadText) -> str | None:
    """What stands in the last box, or after the last mark of an answer, up to the line's end."""
    at = text.text.rfind("\\boxed{")
    if at >= 0:
        return _braced(text.text, at + len("\\boxed"))
    marks = list(_ANSWER.finditer(text.text))
    if not marks:
        return None
    rest = text.text[marks[-1].end() : marks[-1].end() + MAX_ANSWER].lstrip(" *_\n")
    return rest.split("\n", 1)[0].strip(" *_") or None


class _Known:
    """What the formulas of a text hold, part by part."""

    def __init__(self, formulas: list[Formula], text: ReadText) -> None:
        self.formulas = formulas
        trees = [f.tree for f in formulas if f.tree is not None]
        self.parts = {part for tree in trees for part in subtrees(tree)}
        self.pairs = {pair for tree in trees for part in _items(tree) for pair in pairs(part)} | {
            pair for tree in trees for part in subtrees(tree) for pair in pairs(part)
        }
        self._squeezed = _stripped(text.text)

    def holds(self, formula: Formula) -> bool:
        if formula.tree is None:
            return _stripped(formula.text) in self._squeezed
        return all(self._has(item) for item in _items(formula.tree))

    def _has(self, tree: Tree) -> bool:
        if tree in self.parts:
            return True
        if tree[0] != "chain":
            return False
        terms, signs = tree[1::2], tree[2::2]
        steps = (directed(terms[i], sign, terms[i + 1]) for i, sign in enumerate(signs))
        return all(step in self.pairs for step in steps)


@lru_cache(maxsize=128)
def _known_of(text: ReadText, language: str) -> _Known:
    return _Known(formulas_of(text, language), text)


def _answer_kept(
    answer: str, rewrite: ReadText, theirs: list[Formula], languages: tuple[str, str]
) -> bool:
    wanted = _values(answer, languages[0])
    if not wanted:
        return squeeze(answer).strip(".") in rewrite.squeezed
    stated = answer_of(rewrite)
    given = _values(stated, languages[1]) if stated else set()
    if given:
        return wanted <= given or wanted >= given
    written = [f for f in theirs if f.tree is not None][-6:]
    last = {part for f in written if f.tree for part in subtrees(f.tree)}
    ending = " ".join(sentence.text for sentence in rewrite.sentences[-4:])
    last |= {num(q.value) for q in quantities_of(ending) if not isinstance(q.value, str)}
    return wanted <= last


def _values(answer: str, language: str) -> set[Tree]:
    """The last sides of its formulas; without formulas its numbers, else its only formula."""
    text = ReadText(answer)
    trees = [f.tree for f in formulas_of(text, language) if f.tree is not None]
    values = {sides(item)[-1] for tree in trees for item in _items(tree)}
    if values:
        return values
    numbers = quantities_of(text.stated, language=language)
    values = {num(q.value) for q in numbers if not isinstance(q.value, str)}
    if values and _LETTERS.search(answer):
        return values
    tree = _read(answer.strip(" .$"), language in COMMA_LANGUAGES)
    return {sides(tree)[-1]} if tree is not None and len(answer) < 80 else values


@lru_cache(maxsize=512)
def _read(written: str, commas: bool) -> Tree | None:
    try:
        return parse(written, commas=commas)
    except FormulaError:
        return None


def _plain(text: ReadText) -> list[str]:
    """Formulas in the prose without marks: what holds an operator and no word."""
    found = []
    for match in _PLAIN.finditer(text.stated):
        written = match[0].strip(" .")
        words = _LETTERS.findall(written)
        if _TELLS.search(written) and all(word.lower() in _KNOWN for word in words):
            found.append(written + ")" * max(0, written.count("(") - written.count(")")))
    return found


def _is_bare(formula: Formula) -> bool:
    """A lone symbol or number is no formula that could be lost: the numbers' layer has it."""
    tree = formula.tree
    if tree is None:
        return False
    opposite = tree[0] == "*" and tree[1] == num(-1) and len(tree) == 3
    return opposite or tree[0] in ("num", "sym", "sub")


def _items(tree: Tree) -> tuple[Tree, ...]:
    return tree[1:] if tree[0] == "list" else (tree,)


def _stripped(text: str) -> str:
    for mark in ("\\left", "\\right", "\\,", "\\;", "\\!", "\\quad", "\\displaystyle"):
        text = text.replace(mark, "")
    return squeeze(text)


def _braced(text: str, at: int) -> str | None:
    """What the braces that open at `at` hold."""
    level = 0
    for index in range(at, min(len(text), at + MAX_ANSWER)):
        level += (text[index] == "{") - (text[index] == "}")
        if level == 0:
            return text[at + 1 : index] or None
    return None


def shown(tree: Tree) -> str:
    """A tree for a reader: near enough to how people write."""
    kind, parts = tree[0], tree[1:]
    if kind == "num":
        return str(parts[0])
    if kind == "sym":
        return parts[0]
    if kind == "chain":
        return " ".join(part if isinstance(part, str) else shown(part) for part in parts)
    inner = [part if isinstance(part, str) else shown(part) for part in parts]
    if kind in ("+", "*", "/", "^"):
        return "(" + f" {kind} ".join(inner) + ")"
    return f"{kind}({', '.join(inner)})"
