"""Dates and times of day in their usual English and ISO spellings, as what they mean."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_NAMES = _MONTH_NAMES.split()
_MONTH = "|".join(f"{name.title()}|{name[:3].title()}" for name in _NAMES) + "|Sept"
_FAST = re.compile(rf"\d[-/.:]\d|\b(?:{_MONTH})\b|\d ?[ap]\.?m\b")
"""Where none of this is, there is no date."""

_DATE = re.compile(
    r"(?<![\d-])(?P<y1>\d{4})-(?P<m1>\d{2})(?:-(?P<d1>\d{2}))?(?![\d-])"
    r"|(?<![\d/.])(?P<a>\d{1,2})(?P<sep>[/.])(?P<b>\d{1,2})(?P=sep)(?P<y2>\d{4})(?![\d/])"
    rf"|\b(?P<n1>{_MONTH})\b\.?(?: (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?"
    r"(?:(?:,| of)? ?(?P<y3>[12]\d{3})(?!\d))?"
    rf"|(?<!\d)(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<n2>{_MONTH})\b\.?"
    r"(?:,? (?P<y4>[12]\d{3})(?!\d))?"
)
_TIME = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2})(?::(?P<m>\d{2})(?::\d{2})?)? ?(?P<half>[ap])\.?m\b\.?"
    r"|(?<![\d:])(?P<h2>[01]?\d|2[0-4]):(?P<m2>[0-5]\d)(?::[0-5]\d)?(?![\d:])",
    re.IGNORECASE,
)


class Moment(NamedTuple):
    """A date, or a time of day (minutes after midnight)."""

    year: int | None
    month: int | None
    day: int | None
    minute: int | None
    text: str
    start: int
    end: int

    def agrees(self, other: "Moment") -> bool:
        """Whether both can be the same: what one leaves open does not part them."""
        if (self.minute is None) != (other.minute is None):
            return False
        if self.minute is not None:
            return self.minute == other.minute
        pairs = (self.year, other.year), (self.month, other.month), (self.day, other.day)
        return all(a is None or b is None or a == b for a, b in pairs) and any(
            a is not None and a == b for a, b in pairs
        )

    @property
    def numbers(self) -> set[int]:
        """What of it a text may also say by itself."""
        return {n for n in (self.year, self.day) if n is not None}


def dates_of(text: str) -> list[Moment]:
    if not _FAST.search(text):
        return []
    dates = [moment for match in _DATE.finditer(text) for moment in _read(match)]
    return dates + [_time(match) for match in _TIME.finditer(text)]


def _read(match: re.Match[str]) -> Iterator[Moment]:
    part, (start, end) = match.groupdict(), match.span()
    name = part["n1"] or part["n2"]
    year, day = part["y3"] or part["y4"], part["d2"] or part["d3"]
    if name == "May" and not (year or day):
        return  # more often the verb
    if name:
        month = next(i for i, full in enumerate(_NAMES, 1) if full.startswith(name[:3].lower()))
    elif part["y1"]:
        year, month, day = part["y1"], int(part["m1"]), part["d1"]
    else:
        year, month, day = part["y2"], int(part["b"]), part["a"]
        if part["sep"] == "/":  # 3/4/2026 is April or March: the day and month in one order
            month, day = sorted((int(part["a"]), int(part["b"])))
    if not 1 <= month <= 12 or (day and not 1 <= int(day) <= 31):
        return
    yield Moment(
        int(year) if year else None,
        month,
        int(day) if day else None,
        None,
        match[0].strip(" ,"),
        start,
        end,
    )


def _time(match: re.Match[str]) -> Moment:
    part = match.groupdict()
    hour, minute = int(part["h"] or part["h2"]), int(part["m"] or part["m2"] or 0)
    if part["half"]:
        hour = hour % 12 + (12 if part["half"].lower() == "p" else 0)
    return Moment(None, None, None, 60 * hour + minute, match[0], *match.span())
