"""National identity numbers in a text, by form, check digits and, mostly, a word beside them.

    "SSN 536-90-4399", "Steuer-ID 36 574 261 809", "CPF 390.533.447-05"

A number counts without a word only where hardly anything else has its form and its check digits.
"""

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import NamedTuple

BESIDE = 70
"""Characters before a number among which a word may say what it is."""

AFTER = 30
"""The same after it: "536904399 (SSN)"."""


class IdentityNumber(NamedTuple):
    module: str | None
    """Of `stdnum`, which knows the check digits; None: the form is all there is."""
    form: re.Pattern[str]
    words: re.Pattern[str] | None
    """One of which stands beside the number; None: the form is enough."""


def _by_words(module: str | None, form: str, words: str) -> IdentityNumber:
    return IdentityNumber(
        module,
        re.compile(rf"(?<![\w.-])(?:{form})(?![\w-]|\.\d)"),
        re.compile(rf"\b(?:{words})\b", re.IGNORECASE),
    )


def _by_form(module: str, form: str) -> IdentityNumber:
    return IdentityNumber(module, re.compile(rf"(?<![\w.-])(?:{form})(?![\w-]|\.\d)"), None)


_TAX = r"tax (?:id|number|identification number)|tin"
_PERSONAL = (
    r"(?:personal|national) (?:identity|identification|id) (?:number|code|no\.?)|national id"
)

NUMBERS: tuple[IdentityNumber, ...] = (
    _by_form("us.ssn", r"\d{3}-\d{2}-\d{4}"),
    _by_words("us.ssn", r"\d{3} ?\d{2} ?\d{4}", rf"ssn|social security|{_TAX}"),
    _by_words("us.itin", r"9\d{2}[- ]?\d{2}[- ]?\d{4}", rf"itin|{_TAX}"),
    _by_words(
        None,
        r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]",
        r"national insurance|nino|ni (?:number|no)",
    ),
    _by_words("gb.nhs", r"\d{3}[ -]?\d{3}[ -]?\d{4}", r"nhs"),
    _by_words(
        "de.idnr",
        r"\d{2} ?\d{3} ?\d{3} ?\d{3}",
        r"steuer-?id\w*|steuerliche identifikationsnummer|idnr|identifikationsnummer|german tax id",
    ),
    _by_words(
        "fr.nir",
        r"[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}",
        r"s\u00e9curit\u00e9 sociale|s\u00e9cu|nir|insee",
    ),
    _by_words("es.dni", r"\d{2}\.?\d{3}\.?\d{3}-?[A-Z]", r"dni|nif|documento|identidad"),
    _by_words("es.nie", r"[XYZ]-?\d{7}-?[A-Z]", r"nie|nif|documento|identidad"),
    _by_form("it.codicefiscale", r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]"),
    _by_words("nl.bsn", r"\d{9}|\d{4}[. ]\d{2}[. ]\d{3}", r"bsn|burgerservicenummer|sofinummer"),
    _by_words(
        "be.nn",
        r"\d{2}\.?\d{2}\.?\d{2}[- ]?\d{3}[. ]?\d{2}",
        r"rijksregister\w*|registre national|niss|insz|national number",
    ),
    _by_words("se.personnummer", r"(?:\d{2})?\d{6}[-+]?\d{4}", rf"personnummer|{_PERSONAL}"),
    _by_words("dk.cpr", r"\d{6}[- ]?\d{4}", rf"cpr(?:-?(?:nummer|nr))?|personnummer|{_PERSONAL}"),
    _by_words(
        "no.fodselsnummer", r"\d{6} ?\d{5}", rf"f\u00f8dselsnummer\w*|personnummer|{_PERSONAL}"
    ),
    _by_words("fi.hetu", r"\d{6}[-+A]\d{3}[0-9A-Z]", rf"hetu|henkil\u00f6tunnus|{_PERSONAL}"),
    _by_words("pl.pesel", r"\d{11}", rf"pesel|{_PERSONAL}"),
    _by_words("cz.rc", r"\d{6}/?\d{3,4}", r"rodn\u00e9 \u010d\u00edslo|birth number"),
    _by_words("ro.cnp", r"\d{13}", r"cnp|cod(?:ul)? numeric personal"),
    _by_words("bg.egn", r"\d{10}", r"\u0435\u0433\u043d|egn"),
    _by_words("pt.nif", r"\d{3} ?\d{3} ?\d{3}", r"nif|contribuinte"),
    _by_words("hr.oib", r"\d{11}", r"oib"),
    _by_form("ch.ssn", r"756\.\d{4}\.\d{4}\.\d{2}"),
    _by_words("at.vnr", r"\d{4} ?\d{6}", r"svnr|sv-nummer|sozialversicherungsnummer"),
    _by_form("br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d{2}"),
    _by_words("br.cpf", r"\d{11}", r"cpf"),
    _by_words("ca.sin", r"\d{3}[- ]?\d{3}[- ]?\d{3}", r"sin|social insurance"),
    _by_words("au.tfn", r"\d{3} ?\d{3} ?\d{3}", r"tfn|tax file"),
    _by_words("in_.aadhaar", r"\d{4}[ -]?\d{4}[ -]?\d{4}", r"aadhaar|aadhar|uidai"),
    _by_words("in_.pan", r"[A-Z]{5}\d{4}[A-Z]", r"pan|permanent account"),
    _by_form("cn.ric", r"\d{6}(?:19|20)\d{2}[01]\d[0-3]\d{4}[\dX]"),
    _by_form("kr.rrn", r"\d{6}-[1-8]\d{6}"),
    _by_form("mx.curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z\d]\d"),
    _by_words("cl.rut", r"\d{1,2}\.?\d{3}\.?\d{3}-[\dKk]", r"rut"),
    _by_words("tr.tckimlik", r"\d{11}", r"t\.?c\.? kimlik|tckn|kimlik"),
    _by_words("za.idnr", r"\d{13}", r"id number|identity number|south african id"),
    _by_words("ee.ik", r"\d{11}", rf"isikukood|{_PERSONAL}"),
    _by_words("lt.asmens", r"\d{11}", rf"asmens kod\w*|{_PERSONAL}"),
    _by_words(
        "il.idnr", r"\d{9}", r"\u05ea\u05e2\u05d5\u05d3\u05ea \u05d6\u05d4\u05d5\u05ea|teudat"
    ),
    _by_words("ie.pps", r"\d{7}[A-W][A-IW]?", r"pps(?:n)?"),
)

_EXAMPLES = frozenset(
    ("078051120", "219099999", "12345678909", "7561234567897", "7569217076985", "QQ123456C")
)
"""Which authorities and text books print, without signs."""

_PART_WORD = re.compile(
    r"\b(?:part|model|catalogue?|serial|sku|article|item|order|lot|ref)\b[^.;]{0,20}$", re.I
)

_MAY_BE_ONE = re.compile(r"(?:\d[ ./+-]?){6}|[A-Z]{5}\d{4}[A-Z]|[A-Z]{6}\d\d")
"""Every form holds one of these. Most texts do not, and are done with."""

_BY_FORM = tuple(one for one in NUMBERS if one.words is None)
_BY_WORDS = tuple((one, one.words) for one in NUMBERS if one.words is not None)
_ANY_WORD = re.compile("|".join(dict.fromkeys(words.pattern for _, words in _BY_WORDS)), re.I)


def has_identity_number(text: str) -> bool:
    """Whether one stands in the text."""
    if not _MAY_BE_ONE.search(text):
        return False
    for one in _BY_FORM:
        for found in one.form.finditer(text):
            before = text[max(0, found.start() - BESIDE) : found.start()]
            if _is_valid(one, found[0]) and not _PART_WORD.search(before):
                return True
    return any(_has_one_near(text, word) for word in _ANY_WORD.finditer(text))


def _has_one_near(text: str, word: re.Match[str]) -> bool:
    start, end = max(0, word.start() - AFTER), word.end() + BESIDE
    near = text[start:end]
    return any(
        _is_valid(one, found[0])
        for one, words in _BY_WORDS
        if words.fullmatch(word[0])
        for found in one.form.finditer(near)
    )


def _is_valid(one: IdentityNumber, found: str) -> bool:
    bare = re.sub(r"[^\dA-Z]", "", found)
    if bare in _EXAMPLES:
        return False
    return one.module is None or _check(one.module)(found.replace(" ", ""))


@cache
def _check(module: str) -> Callable[[str], bool]:
    """Loaded when a number of the form is met: most runs meet few."""
    return import_module(f"stdnum.{module}").is_valid
