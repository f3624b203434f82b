"""Time in a domain file: how long calls take, and jobs, which run by themselves when due.

The clock stands still but for what a file declares: the duration of a call (`takes`) and the length
of a wait (`waits`). A job changes rows by itself, at a moment that each row tells. Nothing here
runs.
"""

import re
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from tool_specs.language.statements import AnyStatement, Expr, Identifier, Spec

MOST_TAKEN_S = 24 * 3600
"""Seconds that one call may take."""

MOST_WAITED_S = 7 * 24 * 3600
"""Seconds that one wait may last."""

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_DURATION = re.compile(r"(\d{1,6}) (second|minute|hour|day)s?")


def seconds_in(text: str) -> int | None:
    """Of a duration such as `90 seconds`; None for any other text."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def later(moment: str, seconds: int) -> str:
    """The date-time so many seconds after another. OverflowError past the year 9999."""
    return (datetime.fromisoformat(moment) + timedelta(seconds=seconds)).isoformat()


def _is_duration(text: str) -> str:
    seconds = seconds_in(text)
    if seconds is None or seconds > MOST_TAKEN_S:
        raise ValueError(f"write a duration of at most a day, such as 30 minutes; got {text!r}")
    return text


Duration = Annotated[str, AfterValidator(_is_duration)]
"""A number of seconds, minutes, hours or days, such as `90 seconds`."""


class JobSpec(Spec):
    """What becomes of a row by itself at the moment that the row tells."""

    name: Identifier
    text: str = Field(min_length=10)
    """One sentence that says what happens."""
    entity: Identifier
    where: Expr = "true"
    """Which rows; the row stands under its entity's name, here and in what follows."""
    due: Expr
    """The moment, a date-time; null for a row for which there is none."""
    do: list[AnyStatement] = Field(min_length=1, max_length=20)
    """What changes, with the clock at that moment. Afterwards the row is no longer due then: `do`
    changes what `where` or `due` reads."""

    @field_validator("do")
    @classmethod
    def _answers_nobody(cls, statements: list[AnyStatement]) -> list[AnyStatement]:
        for place, statement in enumerate(statements):
            if statement.op in ("return", "require"):
                raise ValueError(
                    f"do[{place}] is a {statement.op}, and nobody hears what a job says; "
                    "say in `where` which rows it concerns"
                )
        return statements
