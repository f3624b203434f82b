"""Values of perturbations: others of the same kind."""

import json
import re
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

_ID = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)


def parsed(text: str) -> Any:
    """The JSON value that a text is, or the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def spellings(value: str | int | float) -> Iterable[tuple[str, str]]:
    """Ways in which a value is written, each with the same of another value."""
    if not isinstance(value, str):
        for form in ("{:,.2f}", "{:.2f}", "{:,}", "{}"):
            yield form.format(value), form.format(value + 1)
    elif day := _next_day(value):
        yield value, day
        yield value[:10], day[:10]
    elif found := _ID.fullmatch(value):
        yield value, f"{found[1]}{int(found[2]) + 1:0{len(found[2])}d}"


def _next_day(value: str) -> str | None:
    if not re.match(r"\d{4}-\d\d-\d\d", value):
        return None
    try:
        moved = date.fromisoformat(value[:10]) + timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return moved.isoformat() + value[10:]
