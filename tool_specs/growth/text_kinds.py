"""What the texts of a field look like, inferred from its name and from the seed rows that have it.

A field's own `like` decides where it is given. Otherwise the values decide before the name does:
a field called `owner` may hold a person, a team or a machine.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tool_specs.language.domain_file import TextLike


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOTE_FIELDS = _words(
    "note notes remark remarks comment comments reason finding summary message body"
)
_TOWN_FIELDS = _words("city town municipality")
_KINDS_OF_THINGS = _words(
    "country currency language time_zone unit strength paper_size form colour color"
)

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
_PHONE = re.compile(r"\+?[\d][\d ()/-]{5,}\d")
_NAME = re.compile(
    r"(Dr |Prof )?[A-Z][\w'-]+( (de|da|van|von|el|al|bin|[A-Z]\.?))*( [A-Z][\w'-]+)+"
)
_ADDRESS = re.compile(r"(\d+\w? [A-Z][\w' -]+|[A-Z][\w.' -]+ \d+\w?)(, [A-Z][\w' -]+)?")
_CODE = re.compile(r"[A-Za-z]{0,6}[A-Z0-9./:_# -]*\d[A-Z0-9./:_# -]*[A-Z0-9]?|[A-Z]+\d+[A-Z]*")
_SLUG = re.compile(r"[\w./:*~\\-]*[./:_\\-][\w./:*~\\-]*")
_AMOUNT = re.compile(r"[\d.,]+ ?[a-z%]+( per \w+)?", re.IGNORECASE)

_PERSON_FIELDS = _words(
    "owner contact author technician guide spotter guest manager pilot holder witness lead "
    "director attorney juror editor mentor doctor prescriber pharmacist driver inspector officer "
    "buyer seller assignee requester reviewer approver handler keeper planner head boss captain "
    "operator surgeon visitor patient tenant customer learner pupil student employee engineer "
    "nurse winder signer clerk agent adviser trainer gardener by person member client"
)
"""Last words of fields, or names of entities, that stand for people where the values look so."""

_MOST = 0.7
"""Share of the values that must have a form for the field to have it."""


class TextShape(NamedTuple):
    kind: TextLike
    pooled: bool
    """Values stand in several rows, as the names of those who do the work."""


@cache
def words() -> Mapping[str, tuple[str, ...]]:
    """The lists of `words.toml`: names and clauses."""
    data = tomllib.loads((Path(__file__).parent / "words.toml").read_text())
    by_line = ("clauses",)
    return {
        name: tuple(text.strip().splitlines() if name in by_line else text.split())
        for name, text in data.items()
    }


def shape_of(
    entity: str, field: str, values: Sequence[str], like: TextLike | None = None
) -> TextShape:
    """`values`: what the seed rows hold, without nulls and with repeats."""
    counts = Counter(values)
    pooled = len(values) >= 3 and len(counts) <= 0.85 * len(values)
    if like is not None:
        return TextShape(like, pooled)
    return TextShape(_kind(entity, field, list(counts), pooled=pooled), pooled)


def _kind(entity: str, field: str, values: list[str], *, pooled: bool) -> TextLike:
    last = field.rsplit("_", 1)[-1]
    if _most(_EMAIL.fullmatch(v) is not None for v in values):
        return "email"
    if _most(_PHONE.fullmatch(v) is not None and sum(map(str.isdigit, v)) > 6 for v in values):
        return "phone"
    if field in _KINDS_OF_THINGS or _most(_AMOUNT.fullmatch(v) is not None for v in values):
        return "category"
    about = entity.rsplit("_", 1)[-1] if field in ("name", "full_name") else last
    if _most(_is_person(v, known=about not in _PERSON_FIELDS) for v in values):
        return "person"
    if _most(len(v) <= 2 for v in values):
        return "category"
    if _most(_CODE.fullmatch(v) is not None for v in values):
        return "code"
    if last in _NOTE_FIELDS or _most(_is_sentence(v) for v in values):
        return "note"
    if pooled:
        return "category"
    if last in _TOWN_FIELDS:
        return "town"
    if _most(_ADDRESS.fullmatch(v) is not None for v in values) and "address" in field:
        return "address"
    if _most(" " not in v and _SLUG.fullmatch(v) is not None for v in values):
        return "slug"
    return "title"


def _most(tests: Iterable[bool]) -> bool:
    found = list(tests)
    return bool(found) and sum(found) >= _MOST * len(found)


@cache
def _known_names() -> frozenset[str]:
    return frozenset(words()["first_names"])


_NO_PERSON = _words(
    "Bank Capital Securities Ltd Inc Group Partners House Hall Room Street Lane Road Foods Works "
    "Energy Hotel Shop School Team Studio Press Records Airlines Shipping Line Pack Track"
)


def _is_person(text: str, *, known: bool) -> bool:
    """`known`: only with a first or last name that we know."""
    parts = text.split()
    if not _NAME.fullmatch(text) or len(parts) > 4 or parts[-1] in _NO_PERSON:
        return False
    return not known or parts[0] in _known_names() or parts[-1] in words()["last_names"]


def _is_sentence(text: str) -> bool:
    parts = text.split()
    return len(parts) >= 4 and sum(part[:1].islower() for part in parts) >= len(parts) / 2
