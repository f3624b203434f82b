"""Episodes on a server that asks back: who answers, who pays, what is on record, and its replay.

The server is written with the official package and runs in a sandbox; the models say what the test
says, behind the real client.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from records.errors import BudgetError
from records.store.journal import ShardJournal
from records.tables.columns import decode, encode
from records.tables.schemas import Row
from records.tables.tables import TABLES
from sandboxes.lending.leases import available
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import McpServer, ServerLostError, open_server
from synth.engine.stages import ItemResult
from synth.episode.environment import EpisodeEnvironment
from synth.episode.replay import replay_rows
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.episode.server_answers import messages_of
from synth.episode.tools.executors import Catalogue, OpenServer
from synth.episode.users.elicitation import made_up_in
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import BudgetConfig
from tests.synth.clinic import PERSONA, QUIET, calls, says
from tests.synth.scripted import ROLES, ScriptedApp
from tool_specs.importing.tool_lists import rows_of_answer

pytestmark = pytest.mark.skipif(bool(available()), reason=str(available()))

SERVER = Path(__file__).parents[2] / "sandboxes/mcp/asking_server.py"
DESK = server_of_command(f"python {SERVER} handshake").model_copy(update={"name": "desk"})

BOOK = ("book", {"room": "7"})
SHORTEN = ("shorten", {"text": "a long one"})
FORM = {"action": "accept", "content": {"guest": "Ingrid Solheim", "nights": 2}}
MADE_UP = {"action": "accept", "content": {"guest": "Bruno Keller", "nights": 2}}

TASK: Row = {
    "task_id": "task",
    "agent_id": "agent",
    "persona_id": "persona",
    "domain_id": None,
    "server": "desk",
    "variant": "normal",
    "solvable": True,
    "user_brief": {
        "opening": "Please book room 7 for me. My name is Ingrid Solheim.",
        "wishes": ["Book room 7."],
        "facts": [
            {"label": "name", "value": "Ingrid Solheim", "when": "opening", "goal": 0},
            {"label": "number of nights", "value": 2, "when": "asked", "goal": 0},
        ],
    },
    "rubric": {
        "criteria": [
            {"id": "close", "kind": "format", "words": "Closes.", "weight": 1.0, "mandatory": False}
        ]
    },
    "initial_state": {"fixture": "default"},
    "token_budget": 50_000,
    "max_turns": 20,
    "split": "train",
}


@pytest.fixture(scope="module")
def tools() -> list[Row]:
    async def listed() -> list[dict[str, Any]]:
        async with open_server(DESK) as server:
            return await server.list_tools()

    return rows_of_answer(asyncio.run(listed()), source_of(DESK))


def catalogue_of(
    tools: list[Row], config: ServerConfig = DESK, opened: OpenServer = open_server
) -> Catalogue:
    ids = [tool["tool_id"] for tool in tools]
    agent = {"agent_id": "agent", "tool_ids": ids, "system_prompt": "You keep a desk."}
    return Catalogue(
        agents={"agent": agent},
        personas={"persona": PERSONA},
        tools={tool["tool_id"]: tool for tool in tools},
        domains={},
        servers={"desk": config},
        open_server=opened,
    )


class Models:
    """Agent, user and what the agent's model writes for a server, each asked in its own way."""

    def __init__(self, *actions: dict[str, Any], forms: tuple[dict[str, Any], ...] = (FORM,)):
        self._actions, self._forms = [*actions], [*forms]
        self.app = ScriptedApp(self._answer)

    def _answer(self, body: dict[str, Any]) -> str | dict[str, Any]:
        name = body.get("response_format", {}).get("json_schema", {}).get("name")
        if name == "user_form":
            return json.dumps(self._forms.pop(0))
        if name == "user_turn":
            return json.dumps({"message": "Thanks.", "done": True})
        if "tools" not in body:
            return "abcdefghijklmnop"
        return self._actions.pop(0)

    def asked(self, words: str) -> list[dict[str, Any]]:
        return [one for one in self.app.requests if words in json.dumps(one["messages"])]


def played(
    models: Models, folder: Path, catalogue: Catalogue, tokens: int | None = None
) -> tuple[ItemResult, list[Row]]:
    """The rows of one rollout and those of its requests."""
    config = RolloutConfig(episode=QUIET)
    (item,) = plan_rollouts([TASK], config=config, roles=ROLES)

    async def run() -> tuple[ItemResult, list[Row]]:
        budget = Budget(BudgetConfig(tokens=tokens))
        async with Gateway(ROLES, budget=budget, offline_app=lambda: models.app) as gateway:
            with ShardJournal(folder / "journal.sqlite") as journal:
                llm = LLM(gateway, journal, stage="rollouts", invocation_id="test")
                made = await run_rollout(
                    item, llm, journal, catalogue=catalogue, config=config, roles=ROLES
                )
                return made, llm.rows()

    return asyncio.run(run())


def test_the_user_fills_in_forms_the_model_writes_texts_and_all_is_kept(
    tools: list[Row], tmp_path: Path
) -> None:
    actions = calls(BOOK, SHORTEN), says("Room 7 is yours.")
    models = Models(*actions)
    result, requests = played(models, tmp_path, catalogue_of(tools))
    (row,), made = result.tables["trajectories"], result.tables["tool_calls"]
    booked, shortened = made
    assert booked["observation"] == ('Room 7: {"guest":"Ingrid Solheim","nights":2,"board":"none"}')
    (form,) = booked["exchanges"]
    assert form["params"]["message"] == "Who stays in room 7?"
    assert form["result"] == FORM
    text = json.loads(shortened["observation"])
    assert (text["content"]["text"], text["stop_reason"]) == ("abcdefghijkl", "maxTokens")
    (written,) = shortened["exchanges"]
    assert written["params"]["maxTokens"] == 3

    # paid by those who answered, under places of their own
    paid = [(one["role"], one["step"].split("-")[0]) for one in requests]
    of_agent = [("agent", "agent"), ("agent", "agent"), ("agent", "server")]
    assert sorted(paid) == [*of_agent, ("user", "server"), ("user", "user")]
    assert row["token_counts"]["agent"] == {"prompt": 30, "completion": 6}
    assert row["token_counts"]["user"] == {"prompt": 20, "completion": 4}
    assert "user_form" in row["prompt_versions"]
    assert not models.asked("Who stays in room 7?")[0].get("tools")

    # the agent sees none of it
    assert "Who stays" not in json.dumps(row["messages"])

    # stored and read back
    stored = decode(TABLES["tool_calls"], encode("tool_calls", made, run_id="r"))
    assert [one["exchanges"] for one in stored] == [one["exchanges"] for one in made]

    # run again after a death: nothing is asked twice
    again = Models()
    repeated, _ = played(again, tmp_path, catalogue_of(tools))
    assert again.app.requests == []
    assert repeated.tables["tool_calls"] == made
    assert repeated.noted == {}

    # replayed without a model, on a live server and from the record
    for cassette in (False, True):
        report = asyncio.run(
            replay_rows(row, made, TASK, catalogue_of(tools), QUIET, cassette=cassette)
        )
        assert report.differences == []


def test_what_the_user_does_not_know_is_asked_for_again_and_then_declined(
    tools: list[Row], tmp_path: Path
) -> None:
    actions = calls(BOOK), says("Done.")
    mended = Models(*actions, forms=(MADE_UP, FORM))
    result, _ = played(mended, tmp_path / "a", catalogue_of(tools))
    assert result.tables["tool_calls"][0]["observation"].startswith('Room 7: {"guest":"Ingrid')
    assert len(mended.asked("you do not know 'Bruno Keller'")) == 1

    stubborn = Models(*actions, forms=(MADE_UP,) * 3)
    result, _ = played(stubborn, tmp_path / "b", catalogue_of(tools))
    (call,) = result.tables["tool_calls"]
    assert call["observation"] == "Room 7 stays free: decline"
    assert call["exchanges"][0]["result"] == {"action": "decline"}
    assert "you do not know" in call["exchanges"][0]["refusal"]
    assert result.tables["trajectories"][0]["termination_reason"] == "user_done"


def test_switched_off_nobody_is_asked(tools: list[Row], tmp_path: Path) -> None:
    models = Models(calls(BOOK, SHORTEN), says("Done."))
    off = DESK.model_copy(update={"elicitation": False, "sampling": False})
    result, _ = played(models, tmp_path, catalogue_of(tools, off))
    booked, shortened = result.tables["tool_calls"]
    assert booked["observation"] == "Room 7 stays free: decline"
    assert "sampling/createMessage is switched off" in shortened["observation"]
    assert shortened["is_error"]
    assert booked["exchanges"] is shortened["exchanges"] is None
    assert models.asked("Who stays") == models.asked("Shorten:") == []


def test_an_environment_without_models_declines(tools: list[Row]) -> None:
    async def run() -> str:
        env = EpisodeEnvironment(catalogue_of(tools), QUIET)
        await env.reset(TASK, 1)
        try:
            step = await env.step(calls(BOOK))
        finally:
            await env.close()
        return step.observation[0]["content"]

    assert asyncio.run(run()) == "Room 7 stays free: decline"


def test_a_text_that_the_budget_does_not_hold_stops_the_run(
    tools: list[Row], tmp_path: Path
) -> None:
    """The agent's own turn fits, the text that the server wants does not."""
    models = Models(calls(("shorten", {"text": "x" * 45_000})), says("Done."))
    with pytest.raises(BudgetError):
        played(models, tmp_path, catalogue_of(tools), tokens=30_000)
    assert len(models.app.requests) == 1


def test_a_fresh_server_is_told_what_the_lost_one_was(tools: list[Row], tmp_path: Path) -> None:
    """The second call loses the first server; the first call is made again without a model."""
    lost = []

    @asynccontextmanager
    async def fragile(config: ServerConfig, fixture: Any) -> AsyncIterator[McpServer]:
        async with open_server(config, fixture) as server:
            call = server.call

            async def once(name: str, arguments: Any, answers: Any) -> Any:
                if name == "noisy" and not lost:
                    lost.append(name)
                    raise ServerLostError("gone")
                return await call(name, arguments, answers)

            server.call = once  # type: ignore[method-assign]
            yield server

    models = Models(calls(BOOK, ("noisy", {"order": ["log"]})), says("Done."))
    result, _ = played(models, tmp_path, catalogue_of(tools, opened=fragile))
    assert lost
    assert [one["observation"] for one in result.tables["tool_calls"]][1] == "log"
    assert len(models.asked("Who stays in room 7?")) == 1


def test_only_text_is_given_to_a_model() -> None:
    text, image = {"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "x/y"}
    said = {"messages": [{"role": "user", "content": [text, text]}], "systemPrompt": "s"}
    assert messages_of(said) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a\na"},
    ]
    assert messages_of({"messages": [{"role": "user", "content": image}]}) is None


@pytest.mark.parametrize(
    ("content", "made_up"),
    [
        ({"guest": "Ingrid Solheim", "nights": 2, "board": "breakfast"}, []),
        ({"guest": "solheim", "nights": 2.0, "sure": True}, []),
        ({"guest": "Bruno Keller", "nights": 2}, ["Bruno Keller"]),
        ({"guest": "Ingrid Solheim", "nights": 3}, ["3"]),
        ({"day": "2026-03-04"}, []),
        ({"day": "2026-03-05", "mail": "i@solheim.no"}, ["2026-03-05", "i@solheim.no"]),
        ({"notes": "A quiet room would be lovely, please."}, []),
        (
            {"notes": "My card is AB-1234-XY and it is new."},
            ["My card is AB-1234-XY and it is new."],
        ),
    ],
)
def test_a_form_holds_what_the_user_knows(content: dict[str, Any], made_up: list[str]) -> None:
    fields = {"board": {"enum": ["none", "breakfast"]}}
    texts = ["I am Ingrid Solheim and stay for two nights from March 4, 2026.", "Who stays?"]
    assert made_up_in(content, fields, texts) == made_up
