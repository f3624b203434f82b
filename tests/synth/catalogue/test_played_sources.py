"""Imported tools without a server: an environment is written for them, tasks are proved in it, and
whole runs go through."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from offline_llm.app import create_app
from records.errors import ConfigError, ItemError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.played_sources import PLAYED, PlayedSource, sources_to_play, write_environment
from synth.episode.tools.simulator import ModelAnswers, SimulateConfig
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import RunConfig
from synth.rubrics.reward import rubric_of
from synth.tasks.lengths import Complexity
from synth.tasks.played import make_played
from synth.tasks.proof.proving import UnprovedError
from tests.flows.pipeline_work import content_of, run_pipeline
from tests.synth.episode.test_state_patch import DESK
from tests.synth.scripted import ScriptedApp, model
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer

ROLES = {role: RoleConfig() for role in ("generator", "simulator")}
TEXT = {"type": "string"}


def listed(name: str, description: str, required: list[str], **params: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": params, "required": required}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    listed("create_invoice", "Create an invoice.", ["recipient", "amount"], recipient=TEXT,
           amount={"type": "integer"}, note=TEXT),
    listed("get_invoice", "Get an invoice by its id.", ["invoice_id"], invoice_id=TEXT),
    listed("list_invoices", "List the invoices of a recipient.", [], recipient=TEXT,
           limit={"type": "integer"}),
    listed("update_invoice", "Update the amount of an invoice.", ["invoice_id", "amount"],
           invoice_id=TEXT, amount={"type": "integer", "minimum": 10}),
    listed("delete_invoice", "Delete an invoice for good.", ["invoice_id"], invoice_id=TEXT),
]  # fmt: skip
BILLING = ToolListSource(server="acme/billing-mcp", category="finance_tools", may_write=True)
ROWS = rows_of_answer(TOOLS, BILLING)
SOURCE = PlayedSource("acme/billing-mcp", tuple(sorted(ROWS, key=lambda row: row["tool_id"])))
WORLD = {name: DESK[name] for name in ("title", "description", "now", "entities", "seed", "rules")}


def world_of(app: Any, folder: Path) -> dict[str, list[Row]]:
    async def work() -> dict[str, list[Row]]:
        async with model(app, folder, ROLES) as llm:
            item_id = SOURCE.item_id(ROLES["generator"])
            made = await write_environment(
                SOURCE, llm, item_id=item_id, generator=ROLES["generator"]
            )
            return {name: list(rows) for name, rows in made.tables.items()}

    return asyncio.run(work())


def test_a_world_is_written_once_and_its_tools_descend_from_the_imported(tmp_path: Path) -> None:
    made = world_of(create_app(), tmp_path)
    [row], tools = made["domains"], made["tools"]
    domain = domain_of_rows(row)
    assert "invoice" in domain.entities
    assert {"recipient", "amount"} <= domain.entities["invoice"].fields.keys()
    assert len(domain.seed["invoice"]) > 2
    assert {tool["parent_id"] for tool in tools} == {row["tool_id"] for row in ROWS}
    for tool in tools:
        assert (tool["domain_id"], tool["server"]) == (row["domain_id"], None)
        assert (tool["evolve_op"], tool["semantics_json"]) == (PLAYED, None)
        assert tool["category"] == "finance_tools"
    assert world_of(create_app(), tmp_path) == made


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"entities": {"thing": {"key": "nothing", "fields": {}}}}, "key 'nothing'"),
        ({"seed": {"thing": [], "loan": []}}, "no rows of thing, loan"),
        ({"rules": [{**DESK["rules"][0], "that": "thing.lent > 9"}]}, "breaks rule enough"),
        ({"now": "yesterday"}, "now"),
    ],
)
def test_a_world_that_is_not_sound_is_shown_its_faults(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    said = iter([json.dumps(WORLD | change), json.dumps(WORLD)])
    app = ScriptedApp(lambda body: next(said))
    made = world_of(app, tmp_path)
    assert words in app.requests[1]["messages"][-1]["content"]
    assert [set(row["entities"]) for row in made["domains"]] == [{"thing", "loan"}]


def test_a_world_that_stays_unsound_fails_the_item(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match="invalid_output"):
        world_of(ScriptedApp(lambda body: "{}"), tmp_path)


def test_tasks_are_proved_by_the_simulator_and_hold_to_what_was_said(tmp_path: Path) -> None:
    """State criteria leave free what the simulator made up; told values stand in the
    environment."""
    (tmp_path / "world").mkdir()
    made = world_of(create_app(), tmp_path / "world")
    domain = domain_of_rows(made["domains"][0])

    async def work() -> list[Any]:
        found = []
        async with model(create_app(), tmp_path, ROLES) as llm:
            for number in range(30):
                item = f"task-{number}"
                answers = ModelAnswers(llm, item=item)
                with suppress(UnprovedError):
                    found.append(
                        await make_played(
                            item, domain, made["tools"], answers, shares=Complexity(0.5, 0.5, 0.0)
                        )
                    )
        return found

    tasks = asyncio.run(work())
    assert len(tasks) > 15
    assert {len(draft.goals) for _, draft, _ in tasks} == {1, 2}
    assert {goal.writes for _, draft, _ in tasks for goal in draft.goals} == {True, False}
    values = {str(v) for rows in domain.seed.values() for row in rows for v in row.values()}
    for _, draft, proof in tasks:
        rubric = rubric_of({"rubric": proof.rubric.model_dump(mode="json")})
        kinds = [criterion.kind for criterion in rubric.criteria]
        assert kinds.count("call") == len(draft.goals)
        assert kinds[0] == "state"
        said = {str(fact.value) for goal in draft.goals for fact in goal.known}
        check = rubric.criteria[0].check
        assert check is not None
        for change in check["changes"]:
            assert {str(value) for value in change["match"].values() if value} <= said
        told = [str(v) for goal in draft.goals for asked in goal.asks for v in asked.values]
        assert set(told) <= values | said


def imported(folder: Path) -> Path:
    """A dataset with the imported tools, as `synth tools import --file` leaves it."""
    dataset = Dataset.create_or_open(folder)
    dataset.commit(run_id="import", stage="import", shard=0, tables={"tools": ROWS})
    return folder


def config(**settings: Any) -> RunConfig:
    return RunConfig(
        name="played",
        domains=(),
        servers=(),
        code=(),
        num_tasks=12,
        shard_size=6,
        max_failed=0.9,
        simulate=SimulateConfig(sources=("all",)),
        **settings,
    )


@pytest.mark.slow
def test_a_run_over_imported_tools_has_accepted_trajectories(tmp_path: Path) -> None:
    """And the same rows again, whatever the number in flight and the size of a shard."""
    folder = imported(tmp_path / "a")
    run_pipeline(folder, config(concurrency=4))
    dataset = Dataset.open(folder)
    with dataset.connect() as db:
        executed_by, n = db.execute(
            "select any_value(executed_by), count(*) from trajectories where accepted"
        ).fetchall()[0]
        worlds = db.execute("select count(*) from domains where name like 'played_%'").fetchall()
    assert n > 0
    assert executed_by == ["llm"]
    assert worlds == [(1,)]
    assert {row["changed_fields"] for row in dataset.rows("simulations")} == {None}
    before = content_of(folder)
    run_pipeline(folder, config(concurrency=4))
    assert content_of(folder) == before
    other = imported(tmp_path / "b")
    again = config(concurrency=32).model_copy(update={"shard_size": 5})
    run_pipeline(other, again)
    assert content_of(other) == before


def test_a_dry_run_needs_no_imported_tools() -> None:
    small = config().in_small()
    assert (small.domains, small.simulate.sources) == (("builtin/*",), ())


def test_a_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    dataset = Dataset.open(imported(tmp_path / "d"))
    with pytest.raises(ConfigError, match=r"names 'other'.*sources there: acme/billing-mcp"):
        sources_to_play(dataset, ["other"], run_id="run")
    assert sources_to_play(dataset, [], run_id="run") == []
    [source] = sources_to_play(dataset, ["all"], run_id="run")
    assert source.server == "acme/billing-mcp"
    assert sources_to_play(dataset, ["all"], run_id="run", served=["acme/billing-mcp"]) == []
