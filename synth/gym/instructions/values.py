"""Which values: dates, times, numbers and amounts in a form, placeholders to fill in."""

import random
import re
from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, Self

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, Demand, features

DateForm = Literal["iso", "dotted", "written"]

DATE_FORMS: Mapping[DateForm, str] = MappingProxyType(
    {"iso": "YYYY-MM-DD", "dotted": "DD.MM.YYYY", "written": "31 May 2027"}
)

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_MONTH = "|".join(_MONTHS)
_DATES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "iso": re.compile(r"(?<![\d-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\d-])", re.ASCII),
        "dotted": re.compile(r"(?<![\d.])(?P<d>\d{2})\.(?P<m>\d{2})\.(?P<y>\d{4})(?!\d)", re.ASCII),
        "written": re.compile(
            rf"(?<!\d)(?P<d>\d{{1,2}})\s(?P<n>{_MONTH})\s(?P<y>\d{{4}})(?!\d)", re.ASCII
        ),
    }
)
_OTHER_DATES = re.compile(
    rf"(?<![\d/])\d{{1,4}}/\d{{1,2}}/\d{{1,4}}(?![\d/])|\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?\b"
    rf"|(?<!\d)\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTH})(?! \d{{4}})\b"
    r"|(?<![\d.])\d{1,2}\.\d{1,2}\.\d{4}(?!\d)",
    re.ASCII,
)

_TIME = re.compile(r"(?<![\d:])(?:[01]\d|2[0-3]):[0-5]\d(?![\d:])", re.ASCII)
_TIME_OF_TWELVE = re.compile(r"\d ?[ap]\.?m\b|o'clock", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?!\w)", re.ASCII)
_PLACEHOLDER = re.compile(r"\[[^\[\]\n]{2,60}\](?!\()")

SIGNS: Mapping[str, str] = MappingProxyType({"$": "dollars", "\u20ac": "euros", "\u00a3": "pounds"})


class DatesWritten(Constraint):
    """At least so many dates that exist, and every date in one form."""

    wordings = (
        "Give at least {least} dates, and write every date as {form}.",
        "Every date must have the form {form}; there must be {least} or more.",
    )
    held_by_rest = True
    form: DateForm
    least: int
    """Dates."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(form=rng.choice(list(DATE_FORMS)), least=rng.randint(2, 3))

    def met(self, answer: AnswerText) -> bool:
        own = list(_DATES[self.form].finditer(answer.text))
        others = any(
            pattern.search(answer.text) for form, pattern in _DATES.items() if form != self.form
        )
        rest = _DATES[self.form].sub(" ", answer.text)
        return (
            len(own) >= self.least
            and all(map(_exists, own))
            and not others
            and not _OTHER_DATES.search(rest)
        )

    def demand(self) -> Demand:
        needs = features("digit", "dates") | ({"mark:-"} if self.form == "iso" else set())
        if self.form == "written":
            needs |= features("english", "lower", "upper", "long words")
        return Demand(
            takes=features("dates", "numbers"),
            needs=needs,
            uses={"words": 3 * self.least, "characters": 20 * self.least},
        )

    def shown(self) -> Mapping[str, object]:
        return {"form": DATE_FORMS[self.form], "least": self.least}


def _exists(found: re.Match[str]) -> bool:
    parts = found.groupdict()
    month = _MONTHS.index(parts["n"]) + 1 if "n" in parts else int(parts["m"])
    try:
        date(int(parts["y"]), month, int(parts["d"]))
    except ValueError:
        return False
    return True


class ClockTimes(Constraint):
    """At least so many times of the 24-hour clock, and none of the 12-hour one."""

    wordings = (
        "Give at least {least} times of day, all on the 24-hour clock as in 17:05.",
        "Write times as HH:MM on the 24-hour clock, never with am or pm; give {least} or more.",
    )
    held_by_rest = True
    least: int
    """Times."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(2, 3))

    def met(self, answer: AnswerText) -> bool:
        return len(_TIME.findall(answer.text)) >= self.least and not _TIME_OF_TWELVE.search(
            answer.text
        )

    def demand(self) -> Demand:
        return Demand(
            takes=features("times", "numbers"),
            needs=features("digit", "mark::"),
            uses={"words": self.least, "characters": 8 * self.least},
        )


class NumbersAtLeast(Constraint):
    """At least so many different numbers stand in digits."""

    wordings = (
        "Mention at least {least} different numbers, in digits.",
        "Use {least} or more different numbers, written in digits.",
    )
    held_by_rest = True
    least: int
    """Different numbers; those of a numbered list are none."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(2, 5))

    def met(self, answer: AnswerText) -> bool:
        return len(set(_NUMBER.findall(answer.said))) >= self.least

    def demand(self) -> Demand:
        return Demand(
            takes=features("numbers"),
            needs=features("digit"),
            uses={"words": self.least, "characters": 4 * self.least},
        )


class NumbersRising(Constraint):
    """At least so many whole numbers stand in digits, each greater than the one before it."""

    wordings = (
        "Use at least {least} whole numbers in digits, each greater than the one before it.",
        "Numbers in digits must rise from one to the next; give {least} or more whole numbers.",
    )
    held_by_rest = True
    least: int
    """Numbers; those of a numbered list are none."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(3, 5))

    def met(self, answer: AnswerText) -> bool:
        written = _NUMBER.findall(answer.said)
        if len(written) < self.least or any(len(n) > 15 or not n.isdigit() for n in written):
            return False
        return all(one < other for one, other in pairwise(map(int, written)))

    def demand(self) -> Demand:
        return Demand(
            takes=features("numbers"),
            needs=features("digit"),
            uses={"words": self.least, "characters": 4 * self.least},
        )


class Amounts(Constraint):
    """At least so many amounts of money, the sign before the number and two decimals behind it."""

    wordings = (
        "Give at least {least} amounts in {currency}, each written as in {example}.",
        "Write every amount in {currency} with the sign before it and two decimals, as in"
        " {example}; give {least} or more.",
    )
    held_by_rest = True
    sign: str
    """One of `SIGNS`."""
    least: int
    """Amounts."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(sign=rng.choice(sorted(SIGNS)), least=rng.randint(2, 3))

    def met(self, answer: AnswerText) -> bool:
        pattern = re.escape(self.sign) + r"(?:\d{1,3}(?:,\d{3})+|\d+)\.\d{2}(?![\d]|[.,]\d)"
        found = re.findall(pattern, answer.text, re.ASCII)
        return self.least <= len(found) == answer.letters_as_written[self.sign]

    def demand(self) -> Demand:
        beyond = set() if self.sign.isascii() else {"beyond ascii"}
        return Demand(
            takes=features("amounts", "numbers"),
            needs=features("digit") | beyond,
            uses={"words": self.least, "characters": 8 * self.least},
        )

    def shown(self) -> Mapping[str, object]:
        return {"currency": SIGNS[self.sign], "least": self.least, "example": f"{self.sign}12.50"}


class Placeholders(Constraint):
    """At least so many placeholders in square brackets, to be filled in by the reader."""

    wordings = (
        "Leave at least {least} placeholders in square brackets, such as [name].",
        "Use {least} or more placeholders like [address] for the reader to fill in.",
    )
    held_by_rest = True
    least: int
    """Different placeholders."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(2, 3))

    def met(self, answer: AnswerText) -> bool:
        found = {found.lower() for found in _PLACEHOLDER.findall(answer.text)}
        return sum(any(map(str.isalpha, one)) for one in found) >= self.least

    def demand(self) -> Demand:
        return Demand(
            takes=features("placeholders"),
            needs=features("prose"),
            uses={"words": self.least, "characters": 12 * self.least},
        )


KINDS: tuple[type[Constraint], ...] = (
    DatesWritten,
    ClockTimes,
    NumbersAtLeast,
    NumbersRising,
    Amounts,
    Placeholders,
)
