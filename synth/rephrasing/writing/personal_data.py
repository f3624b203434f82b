"""Personal data in a text: what points at one person and can be told by form and check digits.

Addresses of mail, telephone numbers, bank accounts, cards, national identity numbers, addresses of
the Internet. Telephone numbers are those of `phonenumbers`, check digits those of `python-stdnum`.
Where a form is shared with numbers of other kinds, a word beside it has to say what it is: nine
digits are no social security number by being nine. Numbers and names that are reserved for examples
do not count. Names, street addresses and dates of birth are not looked for.
"""

import ipaddress
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from itertools import islice

import phonenumbers
from phonenumbers import Leniency, PhoneNumberMatcher, PhoneNumberType
from stdnum import iban, luhn

from synth.rephrasing.writing.identity_numbers import has_identity_number

LOOKED_BACK = 60
"""Characters before a number among which a word may say what it is."""

AFTER_WORD = 40
"""Characters in which a number after a word for a telephone ends."""

MAX_TRIES = 200
"""Words for a telephone with a number after them that are tried in one text: bounds the work."""

REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "PL", "BR", "IN", "AU", "SE", "CH", "JP")
"""Whose national forms of telephone numbers are read after a word for a telephone."""

_SIGN = re.compile(r"[\d@]")
_MAIL = re.compile(r"(?<![\w.+-])([\w.+-]{1,64})@((?:[a-z0-9-]{1,63}\.){1,4}[a-z]{2,24})\b", re.I)
_EXAMPLE_DOMAIN = re.compile(
    r"(?:.*\.)?(?:example(?:\.(?:com|net|org|edu))?|test|invalid|localhost|local|python\.org"
    r"|(?:foo|bar|(?:your|my|some)?-?(?:domain|company|site|host|server|provider))"
    r"\.(?:com|net|org))",
    re.IGNORECASE,
)
_NO_PERSON = re.compile(r"git|no-?reply|do-?not-?reply|postmaster|mailer-daemon", re.IGNORECASE)

_PHONE_WORD = re.compile(
    r"\b(?:tele(?:phone|fono|fon|foon)|t\u00e9l(?:\u00e9phone)?|tel(?:\u00e9fono)?|phone|mobile"
    r"|cell|fax|handy|mobil|portable|celular|cellulare|m\u00f3vil|whatsapp|call|text|ring|reach"
    r"|dial|rufen|anrufen|rufnummer|appele[rz]|llam\w{1,4}|bel|zadzwo\u0144)\b",
    re.IGNORECASE,
)
_LONG = re.compile(r"\d[\d ().\-/]{5,}\d")
_GAP = re.compile(r"(?:(?! of )[^\d;={}(]){0,30}(?=\(?\d[\d ().\-/]{5,}\d)")
"""Between a word for a telephone and what may be its number."""
_NORTH_AMERICAN = re.compile(r"(?<![\w(])\(\d{3}\) ?\d{3}-\d{4}(?![\w-])")
_PERSONAL_LINES = frozenset(
    (
        PhoneNumberType.FIXED_LINE,
        PhoneNumberType.MOBILE,
        PhoneNumberType.FIXED_LINE_OR_MOBILE,
        PhoneNumberType.PERSONAL_NUMBER,
        PhoneNumberType.VOIP,
    )
)
_FICTIONAL = re.compile(
    r"1\d{3}55501\d\d|44(?:207946|161496|1134960|1632960|7700900|1214960)\d*"
    r"|49(?:3023125|6990009|4066969|8999998)\d*|33(?:19900|26191|35301|46571|53649|63998)\d*"
    r"|61(?:[2378](?:5550|7010)|491570)\d*"
)
"""Country code and number: those that authorities keep for stories."""

_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")

_CARD = re.compile(
    r"(?<![\w.-])(?:([3-6]\d{3}([ -])\d{4}\2\d{4}\2\d{4})|(3[47]\d{2}([ -])\d{6}\4\d{5})"
    r"|([3-6]\d{12,18}))(?![\w-]|\.\d)"
)
_CARD_WORD = re.compile(
    r"\b(?:card|visa|master ?card|amex|american express|credit|debit|karte\w*|kreditkarte\w*"
    r"|carte|tarjeta|carta|kaart|kart\w{1,3})\b",
    re.IGNORECASE,
)
_CARDS_IN_MANUALS = (
    "4242424242424242 4111111111111111 4012888888881881 4000056655665556 4000002500003155"
    " 4000000000000002 4000000000009995 4917610000000000 4539578763621486 4007000000027"
    " 5555555555554444 5105105105105100 5200828282828210 2223003122003222 5454545454545454"
    " 5424000000000015 378282246310005 371449635398431 378734493671000 370000000000002"
    " 6011111111111117 6011000990139424 6011000000000004 3530111333300000 3566002020360505"
    " 30569309025904 38520000023237 36227206271667 6200000000000005 6304000000000000"
)
_TEST_CARDS = frozenset(_CARDS_IN_MANUALS.split())
"""Which providers of payments print in their manuals."""

_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-f]{1,4}:){2,7}:?(?:[0-9a-f]{1,4}:?){1,5}(?![\w:])", re.I)
_NET_WORD = re.compile(
    r"\b(?:ips?|ipv[46]|address\w*|adress\w*|hosts?|servers?|clients?|log(?:in|ged)?|visitor|users?"
    r"|connect\w*|requests?|pinged|from|gateway|router|dns|peer)\b",
    re.IGNORECASE,
)
_VERSION_WORD = re.compile(
    r"(?:\b(?:version|release|section|chapter|clause|rule|kapitel|abschnitt|table|figure|build"
    r"|firmware|driver|patch|update|v)\b[ .:]*|\bv|\u00a7 ?)$",
    re.IGNORECASE,
)
_KNOWN_HOSTS = frozenset(
    ("8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "2001:4860:4860::8888")
)
"""Public name servers."""


def personal_data(text: str) -> str | None:
    """The first kind of personal data that is found, such as "email"; None: none is. The work grows
    with the text's length."""
    if not _SIGN.search(text):
        return None
    for kind, is_in in _KINDS:
        if is_in(text):
            return kind
    return None


@cache
def personal_data_version() -> str:
    """Changes when another text may be found to hold personal data."""
    libraries = (f"{name}-{version(name)}" for name in ("phonenumbers", "python-stdnum"))
    return "+".join(("2", *libraries))


def _has_mail(text: str) -> bool:
    return "@" in text and any(
        not _EXAMPLE_DOMAIN.fullmatch(found[2]) and not _NO_PERSON.fullmatch(found[1])
        for found in _MAIL.finditer(text)
    )


def _has_iban(text: str) -> bool:
    return any(iban.is_valid(found[0]) for found in _IBAN.finditer(text))


def _has_card(text: str) -> bool:
    for found in _CARD.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        is_bare = found[5] is not None
        if is_bare and not _CARD_WORD.search(_before(text, found.start())):
            continue
        if len(set(digits)) > 3 and digits not in _TEST_CARDS and luhn.is_valid(digits):
            return True
    return False


def _has_phone(text: str) -> bool:
    return any(
        phonenumbers.number_type(number) in _PERSONAL_LINES
        and not _FICTIONAL.fullmatch(f"{number.country_code}{number.national_number}")
        for number in _phone_numbers(text)
    )


def _phone_numbers(text: str) -> Iterator[phonenumbers.PhoneNumber]:
    if "+" in text:
        for found in PhoneNumberMatcher(text, None, leniency=Leniency.VALID):
            yield found.number
    for found in _NORTH_AMERICAN.finditer(text):
        for match in PhoneNumberMatcher(found[0], "US", leniency=Leniency.VALID):
            yield match.number
    if not _LONG.search(text):
        return
    gaps = (_GAP.match(text, word.end()) for word in _PHONE_WORD.finditer(text))
    for gap in islice(filter(None, gaps), MAX_TRIES):
        after = text[gap.end() : gap.end() + AFTER_WORD].partition("\n")[0]
        for region in REGIONS:
            # strict grouping: years, prices and ranges after "call" are written otherwise
            match = next(
                iter(PhoneNumberMatcher(after, region, leniency=Leniency.STRICT_GROUPING)), None
            )
            if match is not None:
                yield match.number
                break


def _has_address(text: str) -> bool:
    for found in (*_IPV4.finditer(text), *(_IPV6.finditer(text) if ":" in text else ())):
        address = _address(found[0])
        if address is None or not address.is_global or str(address) in _KNOWN_HOSTS:
            continue
        before = _before(text, found.start())
        if not _VERSION_WORD.search(before) and _NET_WORD.search(
            before + text[found.end() : found.end() + LOOKED_BACK]
        ):
            return True
    return False


def _address(found: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(found)
    except ValueError:
        return None


def _before(text: str, start: int) -> str:
    return text[max(0, start - LOOKED_BACK) : start]


_KINDS = (
    ("email", _has_mail),
    ("iban", _has_iban),
    ("card", _has_card),
    ("identity_number", has_identity_number),
    ("phone", _has_phone),
    ("ip_address", _has_address),
)
