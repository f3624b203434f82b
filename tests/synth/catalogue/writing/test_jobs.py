"""Jobs of devices are asked for first, tried, and written with the fields that they bring along."""

from pathlib import Path

import pytest

from synth.catalogue.proposals.examining import packed
from synth.catalogue.proposals.wire import spec_of, wire_of
from synth.catalogue.writing.config import WriteConfig
from synth.catalogue.writing.jobs import added_fields, examine_jobs, with_jobs
from synth.catalogue.writing.parts import PartsJob, PartWire
from synth.catalogue.writing.stage import plans_of
from synth.prompts.templates import render
from tests.synth.catalogue.writing.test_writing import written
from tool_specs.domains.domain import load_domain
from tool_specs.domains.rewriting import with_additions
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.checking import check_domain

LAPSES: PartWire = {
    "name": "booking_lapses",
    "text": "A booking that nobody starts in time is released.",
    "entity": "booking",
    "fields": [
        {
            "name": "lapses_at",
            "description": "When the booking is released.",
            "value": "if(booking.status == 'booked', add_minutes(now(), 15), null)",
        }
    ],
    "where": "booking.status == 'booked' and booking.starts_at < now()",
    "due": "booking.lapses_at",
    "do": [
        {"op": "let", "as": "household", "be": "booking.household"},
        {
            "op": "update",
            "target": "booking",
            "set": [
                {"name": "status", "value": "'forfeited'"},
                {"name": "lapses_at", "value": "null"},
            ],
        },
        {
            "op": "update",
            "target": "household",
            "set": [{"name": "active_bookings", "value": "max(0, household.active_bookings - 1)"}],
        },
    ],
}
BARE = Path(__file__).parents[2] / "fixtures/bare_laundry.yaml"
"""A world of a device category that has neither tools nor jobs."""

LAUNDRY = load_domain(BARE)


def changed(**members: object) -> PartWire:
    return LAPSES | members


def field(**members: str) -> list[dict[str, str]]:
    return [LAPSES["fields"][0] | members]


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        (changed(fields=field(name="status")), "has a field 'status' already"),
        (changed(fields=field(value="booking.colour")), "fields[lapses_at].value"),
        (changed(fields=field(value="now()")), "the clock starts at"),
        (changed(entity="robot"), "unknown 'robot'"),
        (changed(due="booking.remark"), "due"),
        (changed(fields=[]), "lapses_at"),
        (changed(where=f"{LAPSES['where']} and booking.laundry >= 0"), "is it needed"),
    ],
)
def test_a_job_that_cannot_be_used_is_told_why(wire: PartWire, words: str) -> None:
    [finding] = examine_jobs(PartsJob(packed(LAUNDRY), (wire,)))
    assert any(words in problem for problem in finding.problems), finding.problems


def test_a_job_is_tried_with_the_good_ones_before_it() -> None:
    found = examine_jobs(PartsJob(packed(LAUNDRY), (LAPSES, LAPSES)))
    assert [bool(finding.problems) for finding in found] == [False, True]
    [again] = examine_jobs(PartsJob(packed(LAUNDRY), (LAPSES,), (LAPSES,)))
    assert again.problems == ("name: 'booking_lapses' is taken",)


def test_a_job_and_its_field_stand_in_the_file_with_a_value_for_each_row() -> None:
    text = BARE.read_text()
    after = with_jobs(LAUNDRY, [LAPSES])
    fields = added_fields(LAUNDRY, after)
    new = with_additions(text, jobs=after.file.jobs, fields=fields, origin="file")
    lines = new.splitlines()
    assert any(
        line.startswith("    - [BK-1001,") and line.endswith("null, '2026-10-24T18:25:00']")
        for line in lines
    )
    left = iter(lines)
    assert all(line in left for line in text.splitlines() if line and "- [BK-" not in line)


def test_files_of_devices_get_jobs_and_tools_that_prove(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "laundry_room.yaml"
    path.write_text(BARE.read_text())
    options = [str(path), "--tools", "3", "--dataset", str(tmp_path / "data")]
    [found] = written(*options, "--set", "policy_rules=0", capsys=capsys)
    domain = load_domain(path)
    assert found["jobs"] == len(domain.file.jobs) > 0
    assert set(check_domain(domain).jobs.values()) == {()}
    [plan] = plans_of(WriteConfig(domains=(str(path),)))
    assert not plan.jobs


def test_only_devices_without_tools_are_asked_for_jobs() -> None:
    names = (str(BARE), "aquarium_keeper", "seed_bank")
    plans = plans_of(WriteConfig(domains=names, tools=40))
    assert {plan.domain.name: plan.jobs for plan in plans} == {
        "laundry_room": True,
        "aquarium_keeper": False,
        "seed_bank": False,
    }
    assert not any(p.jobs for p in plans_of(WriteConfig(domains=names, tools=40, jobs=0)))


def test_durations_have_a_wire_form() -> None:
    spec = ToolSpec.model_validate(
        {
            "name": "wait_for_cycle",
            "description": "Wait for a cycle. Returns now.",
            "params": {"minutes": {"type": "integer", "min": 1, "max": 60}},
            "waits": "args.minutes",
            "semantics": [{"op": "return", "value": {"now": "now()"}}],
        }
    )
    assert spec_of(wire_of(spec)) == spec


def test_the_prompt_of_devices_speaks_of_time() -> None:
    [message] = [
        m["content"]
        for m in render(
            "tools_write_device", operator="write_device", domain="D", existing="E", wanted={}
        ).messages
        if m["role"] == "user"
    ]
    assert "`waits`" in message
