"""Time: what passes, what falls due meanwhile, in which order, and which files are refused."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ConfigError, ItemError
from tests.tool_specs.conftest import CANTEEN
from tool_specs.domains.domain import Domain, load_domain, load_domains
from tool_specs.domains.interpreter import CallResult, DomainEnvironment, policy_violations
from tool_specs.domains.loading import read_yaml
from tool_specs.growth.grown_seed import GrownSeed

DOMAIN = load_domain(CANTEEN)


def waited(*minutes: int) -> DomainEnvironment:
    environment = DomainEnvironment.of(DOMAIN)
    for part in minutes:
        assert not environment.call("wait_in_kitchen", {"minutes": part}).is_error
    return environment


def runs(result: CallResult) -> list[tuple[str, str, str]]:
    return [(c["at"][11:16], c["job"], c["id"]) for c in result.all_changes if "job" in c]


def test_what_falls_due_in_a_wait_runs_in_order_of_moment_then_name_then_row() -> None:
    result = DomainEnvironment.of(DOMAIN).call("wait_in_kitchen", {"minutes": 15})
    assert result.observation == {"now": "2026-03-02T09:15:00"}
    assert runs(result) == [
        ("09:05", "trolley_charges", "TR-1001"),
        ("09:10", "hold_lapses", "BK-1001"),
        ("09:10", "trolley_charges", "TR-1001"),
        ("09:12", "oven_gets_hot", "OV-1002"),
        ("09:15", "trolley_charges", "TR-1001"),
    ]
    assert result.diff == []


def test_a_job_has_the_clock_at_its_own_moment() -> None:
    """The next charge is five minutes after the last one, however long the wait."""
    environment = waited(12)
    row = environment.get("trolley", "TR-1001")
    assert row is not None
    assert (row["battery"], row["next_charge_at"]) == (60, "2026-03-02T09:15:00")


@given(st.lists(st.integers(1, 90), min_size=1, max_size=8))
def test_it_makes_no_difference_how_a_wait_is_cut(parts: list[int]) -> None:
    whole = DomainEnvironment.of(DOMAIN)
    cut = whole.snapshot()
    at_once = whole.pass_time(60 * sum(parts))
    in_parts = [change for part in parts for change in cut.pass_time(60 * part)]
    assert in_parts == at_once
    assert cut.state_hash == whole.state_hash
    assert cut.state.total == cut.state.total_from_scratch()


@given(st.lists(st.integers(1, 90), min_size=1, max_size=4))
def test_rows_that_are_kept_in_mind_run_as_rows_that_are_looked_for_each_time(
    parts: list[int],
) -> None:
    assert any(job.by_row for job in DOMAIN.jobs)
    searching = replace(DOMAIN, jobs=tuple(replace(job, by_row=False) for job in DOMAIN.jobs))
    mine, other = DomainEnvironment.of(DOMAIN), DomainEnvironment.of(searching)
    for part in parts:
        assert mine.pass_time(60 * part) == other.pass_time(60 * part)
    assert mine.state_hash == other.state_hash


def test_many_rows_pass_a_long_step_as_they_pass_short_ones() -> None:
    at_once, cut = (many_trolleys(400) for _ in range(2))
    changes = at_once.pass_time(60 * 60)
    assert len(changes) > 2_000
    assert [c for _ in range(12) for c in cut.pass_time(60 * 5)] == changes
    assert cut.state_hash == at_once.state_hash


def many_trolleys(number: int) -> DomainEnvironment:
    """Empty ones, all of which charge."""
    environment = DomainEnvironment.of(DOMAIN)
    pattern = environment.get("trolley", "TR-1001")
    assert pattern is not None
    for i in range(number):
        row = {**pattern, "trolley_id": f"TR-{5000 + i}", "name": f"Trolley {i}", "battery": 0}
        environment.state.put("trolley", row["trolley_id"], row)
    environment.state.commit()
    return environment


def test_two_half_waits_are_one_whole_wait() -> None:
    assert waited(30, 30).state_hash == waited(60).state_hash != waited(59).state_hash


def test_the_clock_is_part_of_the_state_and_of_its_snapshots() -> None:
    environment = waited(200)
    later = environment.snapshot()
    assert not later.call("wait_in_kitchen", {"minutes": 1}).diff
    assert (environment.state.now, later.state.now) == (
        "2026-03-02T12:20:00",
        "2026-03-02T12:21:00",
    )
    assert environment.state_hash != later.state_hash


def test_a_call_takes_its_time_once_it_has_run() -> None:
    environment = DomainEnvironment.of(DOMAIN)
    result = environment.call("bake_in_oven", {"oven_id": "OV-1003", "minutes": 10})
    assert result.observation["started_at"] == "2026-03-02T09:00:00"
    assert environment.state.now == "2026-03-02T09:10:00"
    assert [change["id"] for change in result.diff] == ["OV-1003"]
    assert [change["id"] for change in result.jobs_after] == ["TR-1001", "BK-1001", "TR-1001"]


def test_what_a_call_makes_due_is_done_when_the_time_has_come() -> None:
    environment = DomainEnvironment.of(DOMAIN)
    environment.call("heat_oven", {"oven_id": "OV-1001", "target": 100})
    early = environment.snapshot()
    early.call("wait_in_kitchen", {"minutes": 8})
    late = environment.snapshot()
    late.call("wait_in_kitchen", {"minutes": 9})
    statuses = [(e.get("oven", "OV-1001") or {})["status"] for e in (early, late)]
    assert statuses == ["heating", "hot"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("bake_in_oven", {"oven_id": "OV-1001", "minutes": 10}, "not_hot"),
        ("bake_in_oven", {"oven_id": "OV-1003", "minutes": 1}, "invalid_arguments"),
        ("wait_in_kitchen", {"minutes": 0}, "invalid_arguments"),
    ],
)
def test_a_call_that_fails_takes_no_time(tool: str, arguments: dict[str, Any], code: str) -> None:
    environment = DomainEnvironment.of(DOMAIN)
    before = environment.state_hash
    result = environment.call(tool, arguments)
    assert (result.error_code, result.all_changes) == (code, [])
    assert (environment.state_hash, environment.state.now) == (before, DOMAIN.now)
    assert result.hash_before == result.hash_after == before


def test_a_look_leaves_no_trace() -> None:
    environment = DomainEnvironment.of(DOMAIN)
    before = environment.state_hash
    assert environment.look("find_ovens", {}).observation["ovens"]
    assert environment.state_hash == before
    environment.call("find_ovens", {})
    assert environment.state.now == "2026-03-02T09:01:00"


def test_without_durations_jobs_stay_and_time_stands() -> None:
    environment = DomainEnvironment.of(DOMAIN.without_durations())
    assert environment.call("heat_oven", {"oven_id": "OV-1001", "target": 100}).diff
    environment.call("wait_in_kitchen", {"minutes": 60})
    assert environment.state.now == DOMAIN.now


@pytest.mark.parametrize("name", ["home_hub", "clinic_desk"])
def test_a_file_that_says_nothing_of_time_has_none(name: str) -> None:
    [domain] = load_domains([name])
    environment = DomainEnvironment.of(domain)
    assert not domain.has_time
    assert environment.pass_time(0) == []
    assert environment.state_hash == f"{environment.state.total:032x}"


def edited(path: str, value: Any) -> dict[str, Any]:
    """The canteen with the value at a path of names and indexes, or without what stands there."""
    data = copy.deepcopy(read_yaml(CANTEEN))
    *above, last = path.split(".")
    node: Any = data
    for step in above:
        if isinstance(node, list):
            named = [part for part in node if isinstance(part, dict) and part.get("name") == step]
            node = named[0] if named else node[int(step)]
        else:
            node = node[step]
    node[int(last) if isinstance(node, list) else last] = value
    return data


OVERDUE = ["BK-1001", "Ana Ruiz", 4, "held", "2026-03-02T08:59:00"]
STUCK = [{"op": "update", "target": "booking", "set": {"seats": "booking.seats"}}]
NO_ROOM = [{"op": "update", "target": "booking", "set": {"seats": "booking.seats + 17"}}]
ANSWERS = [{"op": "return", "value": {"seats": "booking.seats"}}]
BACK_IN_TIME = [
    {
        "op": "update",
        "target": "booking",
        "set": {"held_until": "add_minutes(booking.held_until, -1)"},
    }
]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("jobs.hold_lapses.entity", "table", "jobs[hold_lapses].entity: unknown entity 'table'"),
        (
            "jobs.hold_lapses.due",
            "booking.guests",
            "jobs[hold_lapses].due: 'booking.guests': booking has no field 'guests'",
        ),
        (
            "jobs.hold_lapses.due",
            "booking.seats",
            "jobs[hold_lapses].due: 'booking.seats': needs datetime, got integer",
        ),
        (
            "jobs.hold_lapses.where",
            "booking.seats",
            "jobs[hold_lapses].where: 'booking.seats': a condition needs true or false",
        ),
        (
            "jobs.hold_lapses.do.0.set.seats",
            "'many'",
            "jobs[hold_lapses].do[0].set.seats: \"'many'\": needs integer",
        ),
        ("jobs.hold_lapses.do", ANSWERS, "do[0] is a return, and nobody hears what a job says"),
        (
            "jobs.hold_lapses.do",
            STUCK,
            "job hold_lapses on booking 'BK-1001' is due at 2026-03-02T09:10:00 again after it ran",
        ),
        (
            "jobs.hold_lapses.do",
            NO_ROOM,
            "job hold_lapses on booking 'BK-1001': booking.seats: must be a whole number",
        ),
        ("jobs.hold_lapses.do", BACK_IN_TIME, "in all in one step of time"),
        (
            "seed.booking.0",
            OVERDUE,
            "jobs[hold_lapses].due: booking 'BK-1001' is due at 2026-03-02T08:59:00",
        ),
        ("jobs.1.name", "oven_gets_hot", "jobs repeat oven_gets_hot"),
        ("user_turn", "1 hour", "slack '20 minutes' is less than the user_turn '1 hour'"),
        ("slack", "half an hour", "slack: write a duration of at most a day, such as 30 minutes"),
        ("tools.find_ovens.takes", "2 days", "tools[find_ovens].takes: '2 days' is too long"),
        ("tools.find_ovens.takes", "args.name", "must be a number of minutes, got string"),
        ("tools.find_ovens.takes", "a while", "or write a duration such as 90 seconds"),
        ("tools.find_ovens.waits", "1 minute", "give takes or waits, not both"),
        (
            "tools.wait_in_kitchen.params.minutes",
            {"type": "integer", "optional": True},
            "tools[wait_in_kitchen].waits: 'args.minutes' may be null",
        ),
    ],
)
def test_a_file_with_a_fault_in_time_is_refused(path: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Domain.of(edited(path, value), origin="canteen.yaml")
    assert words in str(caught.value)


def overfull() -> DomainEnvironment:
    """The seed shows no fault; a guest of eighteen does, when the hold lapses at 09:21."""
    data = edited("jobs.hold_lapses.do.0.set", {"seats": "booking.seats + 4", "held_until": "null"})
    environment = DomainEnvironment.of(Domain.of(data, origin="canteen.yaml"))
    environment.call("hold_table", {"guest": "Ines Boulos", "seats": 18})
    return environment


def test_a_job_that_cannot_run_is_counted_and_fails_no_call() -> None:
    environment = overfull()
    result = environment.call("wait_in_kitchen", {"minutes": 30})
    assert not result.is_error
    assert ("hold_lapses", "BK-1001") in {(c["job"], c["id"]) for c in result.jobs_before}
    row = environment.get("booking", "BK-1005")
    assert row is not None
    assert (row["seats"], row["held_until"] is None) == (18, False)
    [fault] = environment.job_faults
    assert fault.job == "hold_lapses"
    assert "job hold_lapses on booking 'BK-1005': booking.seats" in fault.words


def test_a_row_that_a_job_leaves_is_tried_again_when_time_passes_next() -> None:
    environment = overfull()
    environment.call("wait_in_kitchen", {"minutes": 30})
    assert environment.snapshot().job_faults == environment.job_faults
    row = environment.get("booking", "BK-1005")
    assert row is not None
    environment.state.put("booking", "BK-1005", {**row, "seats": 2})
    environment.state.commit()
    counted = sum(environment.job_faults.values())
    [change] = environment.pass_time(0)
    assert (change["id"], change["after"]["seats"]) == ("BK-1005", 6)
    assert sum(environment.job_faults.values()) == counted > 0


def test_a_patched_state_in_which_a_job_is_due_from_the_start_is_refused() -> None:
    booking = DOMAIN.seed["booking"][0]
    late = {**booking, "held_until": "2026-03-02T08:59:00"}
    with pytest.raises(ConfigError, match="is due at 2026-03-02T08:59:00, and the clock starts"):
        DomainEnvironment.of(DOMAIN, {"booking": {booking["booking_id"]: late}})


def test_no_row_grows_on_which_a_job_is_due_from_the_start() -> None:
    for number in range(4):
        state = DOMAIN.start(GrownSeed(rows=400, number=number))
        assert list(DOMAIN.overdue(state)) == []


def test_a_wait_out_of_its_bounds_is_refused() -> None:
    data = edited("tools.wait_in_kitchen.waits", "args.minutes * 60")
    environment = DomainEnvironment.of(Domain.of(data, origin="canteen.yaml"))
    result = environment.call("wait_in_kitchen", {"minutes": 240})
    assert result.error_code == "invalid_arguments"
    assert "wait_in_kitchen waits 0 to 10080 minutes, got 14400" in str(result.observation)


def test_a_rule_is_judged_when_the_wait_is_over() -> None:
    """The oven is hot at 09:12, and nobody may wait for more then."""
    rule = {
        "id": "no_wait_for_hot_ovens",
        "text": "Do not wait where an oven is hot.",
        "tool": "wait_in_kitchen",
        "forbids": "now() >= '2026-03-02T09:12:00'",
    }
    data = copy.deepcopy(read_yaml(CANTEEN)) | {"policy": [rule]}
    environment = DomainEnvironment.of(Domain.of(data, origin="canteen.yaml"))
    before = environment.state_hash
    assert policy_violations(environment, "wait_in_kitchen", {"minutes": 5}) == []
    assert policy_violations(environment, "wait_in_kitchen", {"minutes": 12}) == [rule["id"]]
    assert environment.state_hash == before


def test_a_rule_that_cannot_be_evaluated_on_a_call_that_succeeds_is_an_error() -> None:
    rule = {
        "id": "few",
        "text": "Do not wait long.",
        "tool": "wait_in_kitchen",
        "forbids": "100 / (args.minutes - 5) > 90",
    }
    data = copy.deepcopy(read_yaml(CANTEEN)) | {"policy": [rule]}
    environment = DomainEnvironment.of(Domain.of(data, origin="canteen.yaml"))
    assert policy_violations(environment, "wait_in_kitchen", {"minutes": 6}) == ["few"]
    with pytest.raises(ItemError, match=r"policy\[few\].forbids: division"):
        policy_violations(environment, "wait_in_kitchen", {"minutes": 5})
