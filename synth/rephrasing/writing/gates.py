"""Gates: simple rules by which a rewrite is dropped, whatever its fidelity.

`toxicity`: threats, slurs and wishes of harm by a short list of words of our own, in English. It
finds the plain cases; context, irony, other languages and everything implied it does not.
`personal_data`: what identifies a person by its form alone: addresses of mail, telephone numbers in
international form or after a word that says so, bank accounts and cards whose check digits are
right, addresses of the Internet. Ranges and names that are reserved for examples do not count.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Literal

GateName = Literal["toxicity", "personal_data"]

TextGate = Callable[[str], str | None]
"""Text -> what was found, in a word, or None."""

_HARM = re.compile(
    r"\b(?:kill|hang|shoot|cut|hurt) (?:yourself|yourselves|your self)\b"
    r"|\b(?:go|just) die\b|\bdeserves? to (?:die|be (?:raped|beaten|killed))\b"
    r"|\bi(?:'ll| will| am going to|'m going to) (?:kill|rape|murder|beat) (?:you|them|her|him)\b"
    r"|\b(?:gas|exterminate|lynch) (?:all|every|the) \w+s\b"
    r"|\bsubhumans?\b|\bdegenerate (?:race|people|scum)\b|\bfilthy (?:race|people|scum|vermin)\b"
    r"|\b(?:fuck|screw) (?:you|off|them|him|her)\b|\bpiece of shit\b|\bmotherfuck\w*|\bcunts?\b"
    r"|\b(?:stupid|dumb|worthless) (?:bitch|whore|slut)(?:es|s)?\b|\bfagg?ots?\b|\bretards?\b"
    r"|\bnigg(?:er|a)s?\b|\bkikes?\b|\bspics?\b|\bwetbacks?\b|\btrann(?:y|ies)\b",
    re.IGNORECASE,
)

_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@((?:[a-z0-9-]{1,63}\.){1,4}[a-z]{2,24})\b", re.I)
_EXAMPLES = re.compile(
    r"(?:.*\.)?(?:example(?:\.(?:com|net|org))?|test|invalid|localhost|local|domain\.com|foo\.com"
    r"|bar\.com|python\.org)",
    re.I,
)
_PHONE = re.compile(
    r"(?<![\w+])\+\d{1,3}[ .\-/]?(?:\(?\d{1,5}\)?[ .\-/]?){1,5}\d{2,4}\b"
    r"|\b(?:tel|telephone|phone|mobile|fax|cell)\b\.?:?\s{0,3}\(?\d(?:[\d ().\-/]{6,18})\d\b",
    re.I,
)
_FEWEST_DIGITS, _MOST_DIGITS = 8, 15
"""Of a telephone number; E.164 allows 15."""
_FICTIONAL = re.compile(r"555-?0?1\d\d")
"""North American numbers kept for stories."""
_CARD = re.compile(r"(?<![\d.])[3-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}(?!\.?\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_IPV4 = re.compile(r"(?<![\d.])(?<!ersion )(?<!\bv)(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)")


def toxicity(text: str) -> str | None:
    """Anything on the list."""
    return "toxicity" if _HARM.search(text) else None


def personal_data(text: str) -> str | None:
    """The first kind of personal data that is found."""
    return next((kind for kind, found in _KINDS if any(map(found, _spans(kind, text)))), None)


GATES: Mapping[GateName, TextGate] = {"toxicity": toxicity, "personal_data": personal_data}


def _spans(kind: str, text: str):
    return (match[0] for match in _PATTERNS[kind].finditer(text))


def _is_mail(found: str) -> bool:
    return not _EXAMPLES.fullmatch(found.rpartition("@")[2])


def _is_phone(found: str) -> bool:
    digits = re.sub(r"\D", "", found)
    return _FEWEST_DIGITS <= len(digits) <= _MOST_DIGITS and not _FICTIONAL.search(found)


def _is_card(found: str) -> bool:
    """Luhn: of the digits from the right, every second counts double, by the sum of its digits."""
    digits = [int(c) for c in found if c.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) < 3:
        return False
    doubled = (sum(divmod(2 * d, 10)) if n % 2 else d for n, d in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


def _is_iban(found: str) -> bool:
    """ISO 13616: the first four characters moved to the end, letters as 10 to 35, modulo 97."""
    bare = found.replace(" ", "")
    if not 15 <= len(bare) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def _is_address(found: str) -> bool:
    try:
        return ipaddress.ip_address(found).is_global
    except ValueError:
        return False


_PATTERNS = {"email": _MAIL, "iban": _IBAN, "card": _CARD, "phone": _PHONE, "ip_address": _IPV4}
_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("email", _is_mail),
    ("iban", _is_iban),
    ("card", _is_card),
    ("phone", _is_phone),
    ("ip_address", _is_address),
)
