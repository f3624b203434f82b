"""Narrower domains: what is left is sound, what is not is sent back, and tools are evolved."""

from pathlib import Path
from typing import Any

import pytest

from records.store.dataset import Dataset
from synth.catalogue.evolution.specialise import aims_of
from synth.catalogue.proposals.narrowing import NarrowingError, narrowed
from tests.synth.catalogue.evolution.boats import BOATS, generator, plain_tools, section
from tests.synth.catalogue.evolution.work import config_for, content_of, rows_of, run_evolution
from tool_specs.domains.catalogue import domain_id, domain_of_rows
from tool_specs.domains.domain import Domain, load_domain, load_domains

SAILING: dict[str, Any] = {
    "domain": "sailing_school",
    "title": "Sailing school",
    "description": "A boat hire that teaches sailing and has sailing boats only.",
    "fix": [{"entity": "boat", "field": "kind", "value": "'sailing'"}],
    "add_fields": [
        {
            "entity": "boat",
            "name": "sail_area",
            "type": "number",
            "description": "Sail that a pupil has to handle.",
            "unit": "m2",
            "value": "boat.seats * 3.5",
        }
    ],
    "rules": [
        {
            "id": "small_sails",
            "entity": "boat",
            "that": "boat.sail_area <= 30",
            "text": "No boat has more sail than a pupil can handle.",
        }
    ],
}


@pytest.fixture(scope="module")
def boats() -> Domain:
    return load_domain(BOATS)


def test_a_narrower_domain_keeps_what_fits_and_what_belongs_to_it(boats: Domain) -> None:
    school = narrowed(boats, SAILING, taken=set())
    kept = {row["boat_id"]: row for row in school.seed["boat"]}
    assert {row["kind"] for row in kept.values()} == {"sailing"}
    assert [row["sail_area"] for row in kept.values()] == [21.0, 17.5, 14.0]
    assert {row["boat_id"] for row in school.seed["trip"]} <= kept.keys()
    assert len(school.seed["trip"]) == 3
    assert {"only_kind_sailing", "small_sails"} <= {rule.id for rule in school.file.rules}
    assert school.category == boats.category


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"domain": "boat_hire"}, "is taken"),
        ({"domain": "school2"}, "must not end in a digit"),
        ({"fix": [], "rules": []}, "nothing is narrower"),
        ({"fix": [{"entity": "boat", "field": "mast", "value": "1"}]}, "no such field"),
        ({"fix": [{"entity": "trip", "field": "status", "value": "'over'"}]}, "the status moves"),
        ({"fix": [{"entity": "boat", "field": "kind", "value": "args.x"}]}, "not a constant"),
        ({"fix": [{"entity": "berth", "field": "lit", "value": "false"}]}, "only 1 rows of berth"),
        ({"add_fields": [SAILING["add_fields"][0] | {"value": "boat.keel"}]}, "keel"),
        ({"rules": [SAILING["rules"][0] | {"that": "boat.seats > 5"}]}, "breaks rule"),
    ],
)
def test_what_is_not_sound_is_said(boats: Domain, change: dict[str, Any], words: str) -> None:
    with pytest.raises(NarrowingError) as caught:
        narrowed(boats, SAILING | change, taken={"boat_hire"})
    assert any(words in problem for problem in caught.value.problems), caught.value.problems


def specialising(request: dict[str, Any]) -> Any:
    """Writes an unsound domain first, mends it when told to, and plain tools for any domain."""
    if request["response_format"]["json_schema"]["name"] == "tools":
        return plain_tools(request)
    aim = section(request, "Wanted")["aims"][0]
    where, value = aim.split(" = ")
    entity, field = where.split(".")
    fixed = value if value in ("true", "false") else f"'{value}'"
    answer = SAILING | {
        "domain": f"{value}_{entity}_only",
        "fix": [{"entity": entity, "field": field, "value": fixed}],
        "add_fields": [],
        "rules": [],
    }
    mending = section(request, "Problems") is not None
    return answer if mending else answer | {"domain": "school9"}


@pytest.mark.slow
def test_a_run_makes_narrower_domains_and_evolves_tools_in_them(tmp_path: Path) -> None:
    with generator(specialising) as url:
        one = config_for(url, count=4, batch_size=5, specialise=1, domains=("clinic_desk",))
        run_evolution(tmp_path / "few", one)
        few = content_of(tmp_path / "few")
        assert run_evolution(tmp_path / "few", one)[0].stage == "specialise"
        assert content_of(tmp_path / "few") == few
        two = one.model_copy(update={"specialise": 2, "count": 10})
        run_evolution(tmp_path / "few", two)
        run_evolution(tmp_path / "more", two)
    assert content_of(tmp_path / "few")["domains"] == content_of(tmp_path / "more")["domains"]
    rows = {row["name"]: row for row in rows_of(tmp_path / "more", "domains")}
    parent = domain_id(load_domains(["clinic_desk"])[0])
    children = [row for row in rows.values() if row["parent_id"] == parent]
    assert len(children) == 2
    tools = rows_of(tmp_path / "more", "tools")
    for child in children:
        own = [row for row in tools if row["domain_id"] == child["domain_id"]]
        assert own
        assert domain_id(domain_of_rows(child, own)) == child["domain_id"]
    made = [p for p in rows_of(tmp_path / "more", "proposals") if p["operator"] == "specialise"]
    assert [(p["first_reason"], p["repaired"]) for p in made] == [("not_sound", True)] * 2


def test_aims_leave_rows_of_everything_and_never_fix_a_status_that_moves(boats: Domain) -> None:
    aims = aims_of(boats)
    assert "boat.kind = sailing" in aims
    assert "berth.lit = false" not in aims  # one berth would be left
    assert not any(aim.startswith("trip.status") for aim in aims)


@pytest.mark.slow
def test_no_more_domains_are_made_than_there_are_aims(tmp_path: Path) -> None:
    with generator(specialising) as url:
        run_evolution(tmp_path / "data", config_for(url, count=2, specialise=9))
    dataset = Dataset.open(tmp_path / "data")
    assert len(dataset.item_statuses("specialise")) == len(aims_of(load_domain(BOATS)))
