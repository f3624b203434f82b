"""A weekday and a date of one call fit each other: who moves a course to Tuesdays does not let it
begin on a Monday.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from tool_specs.language.domain_file import ParamSpec

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def with_fitting_days(params: Mapping[str, ParamSpec], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with dates and moments moved on to the weekday that they name, by six days at
    most; as they are where they name none or several."""
    named = [
        WEEKDAYS.index(value.lower())
        for name, value in arguments.items()
        if params[name].type == "enum" and str(value).lower() in WEEKDAYS
    ]
    if len(named) != 1:
        return arguments
    return {
        name: _on(value, named[0]) if params[name].type in ("date", "datetime") else value
        for name, value in arguments.items()
    }


def _on(moment: str, weekday: int) -> str:
    day = date.fromisoformat(moment[:10])
    return (day + timedelta(days=(weekday - day.weekday()) % 7)).isoformat() + moment[10:]
