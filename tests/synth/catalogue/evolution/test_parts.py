"""Cells of a domain, repeated tools, worker processes."""

from typing import Any

import pytest

from records.seeds import rng_of
from synth.catalogue.evolution.batch import RequestGroup, base_of, groups_of
from synth.catalogue.evolution.cells import EvolutionCell, cell_of, cells_of, emptiest
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.snapshot import KnownTool
from synth.catalogue.proposals.screening import Screen, ToolFingerprint, jaccard, shingles
from synth.catalogue.proposals.wire import spec_of
from tests.synth.catalogue.evolution.boats import BOATS, FIND, RAISE, SHORTEN, Tool
from tool_specs.domains.catalogue import tool_rows
from tool_specs.domains.domain import Domain, load_domain, load_domains


@pytest.fixture(scope="module")
def boats() -> Domain:
    return load_domain(BOATS)


@pytest.mark.parametrize(
    ("tool", "cell"),
    [
        (FIND, EvolutionCell("boat", "search")),
        (RAISE, EvolutionCell("boat", "update")),
        (SHORTEN, EvolutionCell("trip", "update")),
    ],
)
def test_a_tool_falls_into_the_cell_of_what_it_does(
    boats: Domain, tool: Tool, cell: EvolutionCell
) -> None:
    semantics = [
        s.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for s in spec_of(tool).semantics
    ]
    assert cell_of(boats, semantics) == cell
    assert cell in cells_of(boats)


def test_the_emptiest_cells_come_first_and_each_counts_as_it_is_given_out(boats: Domain) -> None:
    cells = cells_of(boats)
    taken = [cell for cell in cells if cell.entity == "boat"]
    chosen = emptiest(cells, taken, len(cells) - len(taken), rng_of("x", "test"))
    assert set(chosen) == set(cells) - set(taken)
    assert EvolutionCell("trip", "move", "start").aim == "trip: move one on (start)"


def test_similarity_is_that_of_its_definition() -> None:
    one, other = shingles("look_up", "Look it up now."), shingles("look_up", "Look it up then.")
    assert jaccard(one, one) == 1.0
    assert jaccard(one, other) == len(one & other) / len(one | other)
    assert jaccard(shingles("a", ""), shingles("b", "")) == 0.0


def test_a_third_tool_of_a_skeleton_is_one_too_many() -> None:
    def known(name: str, skeleton: str = "same") -> ToolFingerprint:
        return ToolFingerprint(
            name, f"Does {name} to something. Returns {name}.", f"key {name}", skeleton
        )

    screen = Screen([known("open"), known("shut")], per_skeleton=2)
    assert screen.fault(known("lock")) == "skeleton_quota"
    assert screen.fault(known("lock", "another")) is None
    assert screen.fault(known("open", "another")) == "duplicate_name"
    assert screen.fault(known("lock9", "another")) == "numbered_name"
    more = Screen([known("open"), known("shut")], per_skeleton=3)
    assert more.fault(known("lock")) is None


def test_batches_follow_their_settings() -> None:
    (domain,) = load_domains(["web_shop"])
    rows = [tool | {"generation": i % 3} for i, tool in enumerate(tool_rows(domain))]
    known = [KnownTool(row, 0, "item", None, None) for row in rows]

    def groups(**settings: Any) -> list[RequestGroup]:
        config = EvolveConfig.model_validate({"batch_size": 20} | settings)
        return groups_of("item", domain, 1, known, config)

    def derived(made: list[RequestGroup]) -> int:
        return sum(group.size for group in made if group.operator == "derive")

    def generations(made: list[RequestGroup]) -> set[int]:
        return {tool.row["generation"] for g in made for some in g.parents for tool in some}

    assert sum(group.size for group in groups()) == 20
    assert [derived(groups(derived_share=share)) for share in (0.2, 1.0)] == [4, 20]
    assert derived(groups(max_generation=0)) == 20
    assert generations(groups(max_generation=1)) == {0}
    assert generations(groups(max_generation=3)) == {0, 1, 2}


def test_ids_of_batches_hang_on_newer_settings_only_where_they_are_changed() -> None:
    assert base_of(EvolveConfig()) == base_of(EvolveConfig(per_skeleton=2))
    own = EvolveConfig.ADDED_LATER.keys() - {"prompts"}  # whose versions tell by themselves
    others = {name: {"on": False} if name == "quotas" else 1 for name in own}
    changed = {base_of(EvolveConfig.model_validate({name: v})) for name, v in others.items()}
    assert len(changed | {base_of(EvolveConfig())}) == len(own) + 1
