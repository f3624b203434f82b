"""A dry run shows what would be sent: the role's own model and form, and no value of a key."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli.shared.requests import FILE, tell_requests
from records.settings import validate_as
from synth.llm.first_requests import first_requests, note_request
from synth.llm.settings.config import RoleConfig
from synth.llm.wire.request import chat_request
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig
from tests.flows.pipeline_work import SMALL, run_pipeline
from tests.flows.rephrase_work import SMALL as SMALL_REPHRASING
from tests.flows.rephrase_work import run_rephrase

SCHEMA = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
LONG = "word " * 200
TALK = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": LONG}]


def tool(number: int) -> dict[str, Any]:
    function = {"name": f"tool_{number}", "parameters": {"type": "object", "properties": {}}}
    return {"type": "function", "function": function}


def plain(role: str, **given: Any) -> dict[str, Any]:
    """As the dry run makes it, for the offline model."""
    return chat_request(RoleConfig(), role, TALK, item="i", **given).body


def told(roles: dict[str, Any], bodies: dict[str, Any], folder: Path) -> dict[str, Any]:
    tell_requests(validate_as(RunConfig, {"roles": roles}, where="here"), bodies, folder)
    return json.loads((folder / FILE).read_text()) if (folder / FILE).exists() else {}


SHARED = {
    "base_url": "https://llm.example/v1/",
    "api_key_env": "LLM_KEY",
    "headers": {"api-key": "OTHER_KEY"},
    "query": {"api-version": "2024-10-21"},
    "models": "theirs",
    "temperature": 0.3,
    "max_tokens": 77,
    "profile": {"structured": "json_object", "seed": False, "max_tokens_field": "max_tokens"},
}


def test_a_request_is_shown_as_the_endpoint_would_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LLM_KEY", "sk-4711")
    monkeypatch.setenv("OTHER_KEY", "sk-4712")
    bodies = {
        "generator": plain("generator", form=("answer", SCHEMA)),
        "agent": plain("agent", tools=[tool(n) for n in range(5)]),
    }
    made = told({"all": SHARED}, bodies, tmp_path)
    shown = capsys.readouterr().out
    written = (tmp_path / FILE).read_text()
    assert "4711" not in shown + written
    assert "4712" not in shown + written
    assert made.keys() == bodies.keys()
    url = "https://llm.example/v1/chat/completions?api-version=2024-10-21"
    assert f"generator: POST {url}" in shown
    assert "api-key: (value of OTHER_KEY)" in shown
    assert "authorization: Bearer (value of LLM_KEY)" in shown
    body = made["generator"]["body"]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("theirs", 0.3, 77)
    assert body["response_format"] == {"type": "json_object"}
    assert "seed" not in body
    assert LONG in body["messages"][-1]["content"]
    assert LONG not in shown
    assert "more characters)" in shown
    assert [one["function"]["name"] for one in made["agent"]["body"]["tools"]][4] == "tool_4"
    assert '"(3 more)"' in shown


def test_only_hosted_roles_with_something_to_do_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = {role: plain(role) for role in ("generator", "simulator", "judge")}
    roles = {"all": SHARED, "judge": {"base_url": "offline"}}
    assert told(roles, bodies, tmp_path).keys() == {"generator"}
    assert "no request of agent, user was needed" in capsys.readouterr().err


def test_requests_of_vectors_and_those_that_go_by_batch_are_shown_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"base_url": "https://llm.example/v1", "models": "theirs", "batch": True}
    config = RephraseConfig.model_validate(
        {
            "roles": {"rewriter": own, "embedder": own | {"batch": False, "models": "vectors"}},
            "align": "embedder",
        }
    )
    bodies = {"rewriter": plain("rewriter"), "embedder": {"input": ["one", LONG]}}
    tell_requests(config, bodies, tmp_path)
    made, shown = json.loads((tmp_path / FILE).read_text()), capsys.readouterr().out
    assert "rewriter, a line of a batch: POST https://llm.example/v1/chat/completions" in shown
    assert "embedder: POST https://llm.example/v1/embeddings" in shown
    assert {role: one["batch"] for role, one in made.items()} == {
        "rewriter": True,
        "embedder": False,
    }
    assert made["embedder"]["body"] == {
        "model": "vectors",
        "input": ["one", LONG],
        "encoding_format": "base64",
    }


def test_a_run_without_an_endpoint_has_nothing_to_show(tmp_path: Path) -> None:
    assert told({}, {"generator": plain("generator")}, tmp_path) == {}


def test_the_first_of_each_role_is_kept_while_it_is_wanted() -> None:
    async def ask(role: str, text: str) -> None:
        note_request(role, {"text": text})

    async def run() -> None:
        await asyncio.gather(ask("agent", "one"), ask("user", "other"))
        await ask("agent", "two")

    with first_requests() as kept:
        asyncio.run(run())
    asyncio.run(ask("judge", "late"))
    assert kept == {"agent": {"text": "one"}, "user": {"text": "other"}}


@pytest.mark.slow
def test_a_run_notes_every_role_that_it_asks(tmp_path: Path) -> None:
    with first_requests() as kept:
        run_pipeline(tmp_path / "d", SMALL.model_copy(update={"workers": 1}))
    assert kept.keys() == SMALL.roles_asked().keys()
    assert all(body["messages"] for body in kept.values())


def test_a_rephrasing_notes_the_texts_whose_vectors_it_asks_for(tmp_path: Path) -> None:
    config = SMALL_REPHRASING.model_copy(update={"workers": 1, "align": "embedder"})
    with first_requests() as kept:
        run_rephrase(tmp_path / "d", config)
    assert kept.keys() == config.roles_asked().keys()
    texts = kept["embedder"]["input"]
    assert texts
    assert all(isinstance(text, str) for text in texts)
