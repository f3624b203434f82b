"""What a call costs in a large environment, counted in rows looked at and not in seconds."""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest

from tests.tool_specs.environments import grown
from tool_specs.domains.domain import Domain, compile_tools, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution import statements as execution
from tool_specs.execution.programs import Entities, Problems
from tool_specs.execution.statements import MAX_ROWS, PageRead
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.drawing import draw_arguments


@cache
def domains() -> list[Domain]:
    return load_domains()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PageRead, int, int]]:
    """(read, rows looked at, rows that matched) of every page read from here on."""
    done: list[tuple[PageRead, int, int]] = []
    candidates, matches = execution.candidates, execution._matches

    def counted(env: Any, read: PageRead) -> Iterator[Any]:
        for row in candidates(env, read):
            looked[0] += 1
            yield row

    looked = [0]

    def recorded(env: Any, read: PageRead, stop: int) -> list[Any]:
        looked[0] = 0
        found = matches(env, read, stop)
        done.append((read, looked[0], len(found)))
        return found

    monkeypatch.setattr(execution, "candidates", counted)
    monkeypatch.setattr(execution, "_matches", recorded)
    return done


@pytest.mark.parametrize("domain", domains(), ids=lambda domain: domain.name)
def test_reads_without_a_scan_look_at_what_they_give(
    domain: Domain, reads: list[tuple[PageRead, int, int]]
) -> None:
    """And the others at no more than there is, once each."""
    rng = Random(1)
    small, large = DomainEnvironment.of(domain), DomainEnvironment(domain, grown(domain, 40))
    for name, program in domain.programs.items():
        for _ in range(12):
            arguments = draw_arguments(small, name, rng)
            reads.clear()
            large.snapshot().call(name, arguments)
            for read, looked, matched in reads:
                assert looked <= len(large.rows(read.entity))
                if not program.scans:
                    assert looked == matched <= MAX_ROWS + 1


def test_a_grown_world_is_the_seed_many_times_over() -> None:
    for domain in domains():
        state = grown(domain, 3)
        for entity, rows in domain.seed.items():
            assert len(list(state.tables[entity].rows())) == 3 * len(rows)
        assert state.total == state.total_from_scratch()


@pytest.mark.parametrize(
    ("where", "scans"),
    [
        (None, False),
        ("bike.kind == args.kind", False),
        ("args.kind == null or bike.kind == args.kind", False),
        ("bike.kind == args.kind and bike.station == args.station", False),
        ("bike.kind == args.kind and args.tag in bike.tags", False),
        ("bike.bike_id == args.station", False),
        ("bike.daily_price < 20", True),
        ("bike.kind == args.kind and bike.daily_price < 20", True),
        ("bike.kind == args.kind or bike.station == args.station", True),
        ("bike.kind != args.kind", True),
        ("args.tag in bike.tags and 'blue' in bike.tags", True),
    ],
)
def test_what_scans_is_known_before_it_runs(bikes: Domain, where: str | None, scans: bool) -> None:
    """Pages of equal fields are served by an index, whatever their order; nothing else is."""
    used = [name for name in ("kind", "station", "tag") if f"args.{name}" in (where or "")]
    read = {"op": "read", "entity": "bike", "order_by": ["-daily_price"], "limit": 3, "as": "found"}
    spec = {
        "name": "look",
        "description": "Look for bikes that match.",
        "params": {name: {"type": "string", "optional": True} for name in used},
        "semantics": [
            read | ({"where": where} if where else {}),
            {"op": "return", "value": {"found": "found"}},
        ],
    }
    problems = Problems()
    compiled = compile_tools([ToolSpec.model_validate(spec)], Entities.of(bikes.file), problems)
    assert not problems.found
    assert compiled["look"].scans == ((0,) if scans else ())


def test_making_ids_looks_at_the_last_row_only(bikes: Domain) -> None:
    state = grown(bikes, 200)
    table = state.tables["rental"]
    keys = [row["rental_id"] for row in table.rows()]
    looked: list[str] = []

    class Watched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            looked.append(key)
            return super().get(key, default)

    table.base.rows = Watched(table.base.rows)
    assert table.last_number("RE-") == int(keys[-1].removeprefix("RE-"))
    assert len(looked) == 1
