"""Domains joined by their people: nothing of a part is lost, and the people are the same."""

from datetime import date
from pathlib import Path

import pytest

from records.errors import ConfigError
from tests.tool_specs.conftest import BIKE_RENTAL, CANTEEN
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.joining import JoinedPart, joined
from tool_specs.domains.taxonomy import load_taxonomy

PEOPLE = {"clinic_desk": "patient", "brokerage_desk": "client", "orchard_coop": "grower"}


def part(name: str) -> JoinedPart:
    [domain] = load_taxonomy([name])
    return JoinedPart(domain, PEOPLE[name])


def joint(*names: str) -> tuple[list[JoinedPart], Domain]:
    parts = [part(name) for name in names]
    return parts, Domain.of(joined("joint", parts), origin="joint")


@pytest.mark.parametrize("names", [("clinic_desk", "brokerage_desk"), tuple(PEOPLE)])
def test_tools_policy_and_rows_are_those_of_the_parts(names: tuple[str, ...]) -> None:
    parts, domain = joint(*names)
    files = [p.domain.file for p in parts]
    assert set(domain.programs) == {tool.name for file in files for tool in file.tools}
    assert [rule.id for rule in domain.file.policy] == [r.id for file in files for r in file.policy]
    for file in files:
        for name, rows in file.seed.items():
            key = file.entities[name].key
            assert [row[key] for row in domain.file.seed[name]] == [row[key] for row in rows]


def test_the_people_of_all_parts_are_those_of_the_first() -> None:
    parts, domain = joint(*PEOPLE)
    people = domain.file.seed[parts[0].person]
    by_key = {row["patient_id"]: row for row in people}
    for other in parts[1:]:
        rows = domain.file.seed[other.person]
        linked = [row for row in rows if row.get("patient_id")]
        assert len(linked) == min(len(people), len(rows))
        for row in linked:
            assert row["name"] == by_key[row["patient_id"]]["name"]
        before = {row["name"] for row in other.domain.file.seed[other.person][: len(people)]}
        kept = {row["name"] for row in people}
        every = (row for rows in domain.file.seed.values() for row in rows)
        texts = {value for row in every for value in row.values() if isinstance(value, str)}
        assert texts.isdisjoint(before - kept - {r["name"] for r in rows if r not in linked})


def test_the_clock_is_the_latest_and_dates_move_by_whole_weeks() -> None:
    parts, domain = joint("clinic_desk", "brokerage_desk")
    assert domain.now == max(p.domain.now for p in parts)
    before = parts[0].domain.file.seed["slot"]
    moved = {
        (date.fromisoformat(new["starts_at"][:10]) - date.fromisoformat(old["starts_at"][:10])).days
        for old, new in zip(before, domain.file.seed["slot"], strict=True)
    }
    [days] = moved
    assert days % 7 == 0
    behind = date.fromisoformat(domain.now[:10]) - date.fromisoformat(parts[0].domain.now[:10])
    assert 0 <= behind.days - days < 7
    assert domain.file.seed["order"] == parts[1].domain.file.seed["order"]  # the latest part's


def test_joining_again_gives_the_same_and_leaves_the_parts_alone() -> None:
    parts = [part(name) for name in PEOPLE]
    before = [p.domain.file.model_dump() for p in parts]
    assert joined("joint", parts) == joined("joint", parts)
    assert [p.domain.file.model_dump() for p in parts] == before


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([("clinic_desk", "patient")], "two or three domains can be joined, got 1"),
        ([("clinic_desk", "patient")] * 2, "a tool named 'add_allergy' stands in another part"),
        (
            [("clinic_desk", "person"), ("orchard_coop", "grower")],
            "clinic_desk: has no entity 'person', only doctor, patient",
        ),
        ([(BIKE_RENTAL, "customer"), (CANTEEN, "guest")], "time passes in it"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_words(
    parts: list[tuple[str | Path, str]], words: str
) -> None:
    read = [
        JoinedPart(
            load_domain(name) if isinstance(name, Path) else load_taxonomy([name])[0], person
        )
        for name, person in parts
    ]
    with pytest.raises(ConfigError, match=words):
        joined("joint", read)
