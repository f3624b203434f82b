"""Weekdays fit the dates that they stand beside: in domain files, their rows, and prompts."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import synth.prompts
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.taxonomy import taxonomy_files

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

_DAY = r"(?P<weekday>" + "|".join(DAYS) + r")"
_MONTH = r"(?P<month>" + "|".join(MONTHS) + r")"
_GAP = r",?\s+(?:the\s+)?(?:on\s+)?"
_WRITTEN = tuple(
    re.compile(rf"\b{_DAY}{_GAP}{day}", re.IGNORECASE)
    for day in (
        r"(?P<iso>\d{4}-\d\d-\d\d)",
        rf"(?P<day>\d\d?)(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH}(?:,?\s+(?P<year>\d{{4}}))?",
        rf"{_MONTH}\s+(?P<day>\d\d?)(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?",
    )
)
_BEHIND = re.compile(rf"(?P<iso>\d{{4}}-\d\d-\d\d)(?:,\s*|\s*\(\s*(?:a\s+)?){_DAY}", re.IGNORECASE)


def wrong_days(text: str, year: int | None) -> list[str]:
    """Dates with a weekday beside them that is another day's; without a year, of `year`, and left
    out where there is none."""
    wrong = []
    for pattern in (*_WRITTEN, _BEHIND):
        for found in pattern.finditer(text):
            parts = found.groupdict()
            if parts.get("iso"):
                day = date.fromisoformat(parts["iso"])
            elif (of_year := parts.get("year") or year) is not None:
                month = MONTHS.index(parts["month"].lower()) + 1
                day = date(int(of_year), month, int(parts["day"]))
            else:
                continue
            if DAYS[day.weekday()] != parts["weekday"].lower():
                wrong.append(found[0])
    return wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("on Friday, 6 March", []),
        ("on Thursday, 6 March", ["Thursday, 6 March"]),
        ("Friday the 6th of March 2026", []),
        ("Friday, March 7, 2026", ["Friday, March 7, 2026"]),
        ("Monday 2026-03-06", ["Monday 2026-03-06"]),
        ("2026-03-06 (a Friday)", []),
        ("2026-03-06, Sunday", ["2026-03-06, Sunday"]),
        ("on Friday, and 6 of them in March", []),
    ],
)
def test_a_weekday_of_another_date_is_found(text: str, wrong: list[str]) -> None:
    assert wrong_days(text, 2026) == wrong


@pytest.mark.parametrize("path", list(taxonomy_files().values()), ids=lambda path: path.stem)
def test_weekdays_in_the_text_of_a_domain_file_are_right(path: Path) -> None:
    text = path.read_text()
    now = re.search(r"^now:\s*[\"']?(\d{4})", text, re.MULTILINE)
    assert wrong_days(text, int(now[1]) if now else None) == []


def test_weekdays_in_prompts_are_right() -> None:
    folder = Path(synth.prompts.__file__).parent
    files = [path for path in folder.rglob("*") if path.suffix in (".md", ".j2", ".toml", ".yaml")]
    assert files
    for path in files:
        assert wrong_days(path.read_text(), None) == [], path.name


def dated_rows(domain: Domain) -> Iterator[tuple[str, dict[str, Any]]]:
    """(weekday, the row's dates) of each row that has one weekday among its choices."""
    environment = DomainEnvironment.of(domain, {})
    for entity, spec in domain.entities.items():
        days = [
            f for f, kind in spec.fields.items() if set(map(str.lower, kind.values)) & set(DAYS)
        ]
        dates = [f for f, kind in spec.fields.items() if kind.type in ("date", "datetime")]
        for row in environment.rows(entity) if len(days) == 1 else ():
            if isinstance(row[days[0]], str):
                yield row[days[0]].lower(), {f: row[f] for f in dates if row[f] is not None}


def test_a_row_that_has_a_weekday_begins_on_it() -> None:
    seen = 0
    for path in taxonomy_files().values():
        for weekday, dates in dated_rows(load_domain(path)):
            first = min((value[:10] for value in dates.values()), default=None)
            if first is not None:
                seen += 1
                assert DAYS[date.fromisoformat(first).weekday()] == weekday, (path.stem, dates)
    assert seen >= 11
