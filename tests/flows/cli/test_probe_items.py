"""`synth probe CONFIG --items` makes one item of each stage, within a budget, and shows them."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main as cli
from flows.cli.shared.going_on import BEGINS_ANEW
from flows.cli.shared.items import BUDGET_TOKENS, FILE
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.tasks.forms.forms import ALL_PLAIN
from tests.doubles.catalogue import DOUBLES
from tests.doubles.double import KEY
from tests.doubles.loop_thread import LoopThread
from tests.doubles.server import DoubleServer, serve
from tests.flows.endpoint_work import WORDS, Endpoint, first_of
from tests.synth.llm.server import Server
from tests.synth.llm.server import serve as serve_script

STAGES = {"agents", "personas", "tasks", "rollouts", "grading"}
"""In which a model is asked; it is asked in the calibration, too, where an item passed by code."""

HEAD = f"""
domains = ["clinic_desk"]
servers = []
code = []
num_tasks = 300
tasks.forms = {{ {", ".join(f"{form} = {share}" for form, share in ALL_PLAIN)} }}
"""
"""Goals with structure are beyond the offline model."""


def config_at(server: DoubleServer, folder: Path, head: str = HEAD) -> str:
    role = server.role("DOUBLE_KEY")
    lines = [f"{name} = {json.dumps(value)}" for name, value in role.items() if name != "query"]
    (folder / "own.toml").write_text("\n".join([head, "[roles.all]", *lines]))
    return str(folder / "own.toml")


def calls(folder: Path) -> list[Row]:
    return Dataset.open(folder).rows("llm_calls")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOUBLE_KEY", KEY)


@pytest.mark.parametrize("name", ["vllm", "deepseek"])
def test_the_first_request_of_each_stage_and_role_is_shown_as_the_server_got_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    with serve(DOUBLES[name]) as server:
        own = config_at(server, tmp_path)
        asked = ["probe", own, "--items", "--keep", str(kept), "--price", "1,2"]
        assert cli.run([*asked, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        arrived = server.requests
    shown = printed["exchanges"]
    assert json.loads((kept / FILE).read_text()) == shown
    assert {one["stage"] for one in shown} - {"calibration"} == STAGES
    assert {one["role"] for one in shown} == {"generator", "agent", "user", "judge"}
    places = [(one["stage"], one["role"]) for one in shown]
    assert len(places) == len(set(places))
    for one in shown:
        assert one["request"] in arrived
        assert one["answer"]["content"] or one["answer"]["tool_calls"]
    ledger = calls(kept)
    assert printed["tokens"] == sum(r["prompt_tokens"] + r["completion_tokens"] for r in ledger)
    assert printed["usd"] == pytest.approx(sum(row["cost_usd"] for row in ledger))
    assert 0 < printed["tokens"] <= BUDGET_TOKENS
    assert [model["model"] for model in printed["models"]]
    made = {row["stage"]: row for row in printed["yields"]}
    assert made["rollouts"]["kept"] == 1
    assert made["tasks"]["kept"] == 1


def test_people_read_requests_answers_items_and_what_it_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(DOUBLES["vllm"]) as server:
        assert cli.run(["probe", config_at(server, tmp_path), "--items"]) == 0
    out, err = capsys.readouterr()
    for stage in STAGES:
        assert f"\n{stage}, " in out
    assert "What came of the items" in out
    assert "You put tasks for an assistant into the words" in out
    assert "the probe took" in err
    assert "the items took" in err
    assert err.count("no prices known") == 2


def test_the_items_keep_to_their_own_budget_and_what_there_is_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, limit = tmp_path / "kept", 12_000
    with serve(DOUBLES["vllm"]) as server:
        own = config_at(server, tmp_path, HEAD + "budget = {tokens = 1}\n")
        asked = ["probe", own, "--items", "--budget-tokens", str(limit), "--keep", str(kept)]
        assert cli.run(asked) == 3
    out, err = capsys.readouterr()
    assert f"of {limit}, the next request may need" in err
    assert "\nagents, generator" in out
    assert "What came of the items" in out
    assert sum(r["prompt_tokens"] + r["completion_tokens"] for r in calls(kept)) <= limit


def test_a_stop_is_no_stop_of_a_run_that_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(DOUBLES["vllm"]) as server:
        own = config_at(server, tmp_path)
        asked = ["probe", own, "--items", "--budget-tokens", "12000", "--json"]
        assert cli.run([*asked, "--keep", str(tmp_path / "kept")]) == 3
    out, err = capsys.readouterr()
    made = json.loads(out)
    assert made["exchanges"]
    assert made["models"]
    assert "of 12000, the next request may need" in made["stopped"]
    assert made["stopped"] in err
    assert BEGINS_ANEW in err
    assert "give the items another folder" in err
    assert "Nothing is lost" not in err


@contextmanager
def failing() -> Iterator[tuple[Endpoint, Server]]:
    endpoint = Endpoint()
    with LoopThread() as thread:
        serving = serve_script(endpoint.script)
        try:
            yield endpoint, thread.run(serving.__aenter__())
        finally:
            thread.run(serving.__aexit__(None, None, None))


def test_an_item_that_fails_is_told_in_the_servers_words_made_harmless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with failing() as (endpoint, server):
        endpoint.broken = first_of("agents")
        own = tmp_path / "own.toml"
        own.write_text(f'{HEAD}[roles.all]\nbase_url = "{server.url}"\nmodels = "m"\nretries = 0\n')
        assert cli.run(["probe", str(own), "--items"]) == 1
    out, err = capsys.readouterr()
    words = WORDS.replace("\x1b", "[U+001B]").replace("\u202e", "[U+202E]")
    assert words in out
    assert "\x1b[31m" not in out + err
    assert "\u202e" not in out + err


def test_ctrl_c_shows_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    is_first = first_of("personas")

    def interrupted(body: dict[str, Any]) -> bool:
        if is_first(body):
            os.kill(os.getpid(), signal.SIGINT)
        return False

    with failing() as (endpoint, server):
        endpoint.broken = interrupted
        own = tmp_path / "own.toml"
        own.write_text(f'{HEAD}[roles.all]\nbase_url = "{server.url}"\nmodels = "m"\n')
        assert cli.run(["probe", str(own), "--items", "--json"]) == 1
    out, err = capsys.readouterr()
    made = json.loads(out)
    assert made["stopped"] == "interrupted"
    assert {row["stage"] for row in made["requests"]} == {"probe", "agents"}
    assert BEGINS_ANEW in err
    assert "goes on" not in err


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        (
            'count = 300\nspecialise = 3\ndomains = ["clinic_desk", "web_shop"]\n',
            {("specialise", "generator"), ("evolve-0", "generator")},
        ),
        ("rewrites = 2\n", {("rephrase", "rewriter")}),
    ],
)
def test_other_kinds_of_runs_make_one_item_a_stage(
    text: str,
    roles: set[tuple[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "own.toml").write_text(text)
    assert cli.run(["probe", str(tmp_path / "own.toml"), "--items", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert {(one["stage"], one["role"]) for one in made["exchanges"]} == roles
    assert all(row["kept"] == row["requested"] == 1 for row in made["yields"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--keep", "new"], "give --items, too"),
        (["--budget", "1"], "give --items, too"),
        (["--items", "--keep", "."], "empty or new"),
    ],
)
def test_wrong_use_is_told_before_anything_is_asked(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(HEAD)
    assert cli.run(["probe", "own.toml", *words]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


def test_a_budget_in_usd_needs_prices_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(DOUBLES["vllm"]) as server:
        own = config_at(server, tmp_path)
        assert cli.run(["probe", own, "--items", "--budget", "0.5"]) == 2
        assert server.requests == []
    assert "--price IN,OUT" in capsys.readouterr().err
