"""`synth demo --endpoint ...`: what is asked of whom, for how many tasks, and what is refused."""

import shlex
from pathlib import Path

import pytest

from flows.cli.main import app
from flows.cli.shared.hosted_demo import (
    MOST_TASKS,
    PLANNED_SHARE,
    TOKENS_PER_TASK,
    UNLIMITED_TASKS,
    hosted_demo,
)
from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.next_steps import with_more
from offline_llm.app import create_app
from offline_llm.settings.settings import OfflineSettings
from records.model_names import OFFLINE_MODEL
from records.store.dataset import Dataset
from synth.llm.settings.endpoints import endpoint_settings
from synth.tasks.forms.forms import FormShares
from tests.flows.conftest import Synth
from tests.offline_llm.test_same_request import served

URL = "http://127.0.0.1:9/v1"
PRICED = Money(price="0.6,2.5", budget=2.0)
USUAL = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL")


@pytest.fixture(autouse=True)
def no_usual_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in USUAL:
        monkeypatch.delenv(name, raising=False)


def test_every_role_is_played_by_the_model_there() -> None:
    config = hosted_demo(URL, "Org/My Model:v1", "KEY", PRICED, []).config
    assert not config.asks_embedder
    for own in (own for role, own in config.roles.items() if role != "embedder"):
        assert (own.base_url, own.api_key_env, own.models[0].name) == (
            URL,
            "KEY",
            "Org/My Model:v1",
        )
        assert (own.usd_per_million_prompt, own.usd_per_million_completion) == (0.6, 2.5)
    assert config.budget.usd == 2.0
    assert config.stage_seconds == {}  # the budget is the limit


@pytest.mark.parametrize(
    ("model", "folder"),
    [
        ("Org/My Model:v1", "demo-org-my-model-v1"),
        ("../..", "demo-model"),
        ("gpt-9.5", "demo-gpt-9.5"),
        ("m" * 90, "demo-" + "m" * 40),
    ],
)
def test_the_dataset_is_named_for_the_model(model: str, folder: str) -> None:
    demo = hosted_demo(URL, model, None, PRICED, [])
    assert demo.dataset == Path("data") / folder
    assert demo.config.name == folder


def tasks(money: Money, *overrides: str) -> int:
    return hosted_demo(URL, "m", None, money, overrides).config.num_tasks


def test_the_number_of_tasks_follows_the_budget() -> None:
    each = sum(TOKENS_PER_TASK)
    assert tasks(Money(budget_tokens=10 * each)) == int(10 * PLANNED_SHARE)
    assert tasks(Money(price="1,1", budget=10 * each / 1e6)) == int(10 * PLANNED_SHARE)
    both = Money(price="1,1", budget=10 * each / 1e6, budget_tokens=4 * each)
    assert tasks(both) == int(4 * PLANNED_SHARE)
    assert tasks(Money(price="0,0", budget=1)) == tasks(NO_MONEY) == UNLIMITED_TASKS
    assert tasks(Money(price="0.01,0.01", budget=1000)) == MOST_TASKS
    assert tasks(PRICED, "num_tasks=3") == 3
    dearer = tasks(PRICED, "roles.judge.usd_per_million_completion=250")
    assert dearer < tasks(PRICED)


def test_the_number_and_its_reason_are_told() -> None:
    demo = hosted_demo(URL, "m", None, PRICED, [])
    assert demo.words.startswith(f"{demo.config.num_tasks} tasks: ")
    assert "2 USD" in demo.words


def test_the_command_that_goes_on_is_the_one_that_was_given() -> None:
    demo = hosted_demo(URL, "a model", "KEY", PRICED, ["concurrency=4", "servers=[]"])
    [_, line] = with_more(demo.config, demo.command)
    words = shlex.split(line)
    _, bound, _ = app.parse_args(words[words.index("demo") :], exit_on_error=False)
    given = bound.arguments
    assert (given["endpoint"], given["model"], given["key_env"]) == (URL, "a model", "KEY")
    assert given["money"] == PRICED
    again = hosted_demo(URL, "a model", "KEY", PRICED, given["set_"])
    assert again.config.num_tasks == 4 * demo.config.num_tasks
    assert (again.config.run_id, again.dataset) == (demo.config.run_id, demo.dataset)


@pytest.mark.parametrize(
    ("money", "overrides", "is_limited"),
    [
        (PRICED, [], True),
        (NO_MONEY, [], False),
        (NO_MONEY, ["budget.stages.tasks.tokens=90000"], True),
    ],
)
def test_a_budget_is_to_be_raised_only_where_one_was_given(
    money: Money, overrides: list[str], is_limited: bool
) -> None:
    demo = hosted_demo(URL, "m", None, money, overrides)
    [head, _] = with_more(demo.config, demo.command)
    assert ("budget" in head) == is_limited


def test_the_usual_variables_are_read_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", URL)
    monkeypatch.setenv("OPENAI_MODEL", "theirs")
    agent = hosted_demo("env", None, None, NO_MONEY, []).config.roles["agent"]
    assert (agent.base_url, agent.api_key_env, agent.models[0].name) == (URL, None, "theirs")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.delenv("OPENAI_BASE_URL")
    agent = hosted_demo("env", "mine", None, NO_MONEY, []).config.roles["agent"]
    assert (agent.base_url, agent.api_key_env) == ("https://api.openai.com/v1", "OPENAI_API_KEY")
    assert agent.models[0].name == "mine"
    agent = hosted_demo(URL, "mine", None, NO_MONEY, []).config.roles["agent"]
    assert (agent.base_url, agent.api_key_env) == (URL, None)


def test_a_ready_endpoint_is_enough_by_its_name() -> None:
    free = Money(price="0,0", budget=1)
    agent = hosted_demo("deepseek", "m", None, free, []).config.roles["agent"]
    ready = endpoint_settings("deepseek")
    assert (agent.base_url, agent.api_key_env) == (ready["base_url"], ready["api_key_env"])
    assert agent.models[0].name == "m"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--endpoint", URL), "--model NAME"),
        (("--endpoint", URL, "--model", "m", "--budget", "2"), "--price IN,OUT"),
        (
            ("--endpoint", URL, "--model", "m", "--budget", "0.0001", "--price", "9,9"),
            "too small for the demo",
        ),
        (("--endpoint", "nowhere", "--model", "m"), "ready endpoints: "),
        (("--endpoint", "offline", "--model", "m"), "ready endpoints: "),
        (("--endpoint", "env", "--model", "m"), "OPENAI_BASE_URL"),
        (("--model", "m"), "give --endpoint"),
        (("--key-env", "KEY"), "give --endpoint"),
    ],
)
def test_what_is_missing_is_told_before_any_work(
    refusal: Synth, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = refusal("demo", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_model_and_its_key_s_name_are_never_read_as_the_key(refusal: Synth) -> None:
    done = refusal("demo", "--endpoint", URL, "--model", "m", "--key-env", "sk-4711")
    assert done.returncode == 2
    assert "4711" not in done.stderr
    assert "api_key_env must be the name" in done.stderr


def test_tokens_of_a_task_are_measured() -> None:
    assert TOKENS_PER_TASK.prompt > TOKENS_PER_TASK.completion > 0
    assert 0 < PLANNED_SHARE < 1


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url")
def test_a_url_a_model_and_a_budget_are_enough_for_accepted_trajectories(
    synth: Synth, tmp_path: Path
) -> None:
    """The endpoint is the offline model, served over HTTP."""
    money = ("--price", "0.6,2.5", "--budget", "0.45")
    planned = hosted_demo(URL, "m", None, Money("0.6,2.5", 0.45), []).config.num_tasks
    small = ("--set", 'domains=["ticket_board", "home_hub"]', "--set", "servers=[]")
    with served(create_app(OfflineSettings())) as url:
        plain = [
            part for form in FormShares.model_fields for part in ("--set", f"tasks.forms.{form}=0")
        ]
        given = ("--endpoint", url, "--model", OFFLINE_MODEL, *money, *small, "--set", "code=[]")
        given = (*given, *plain)
        done = synth("demo", *given)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "data" / f"demo-{OFFLINE_MODEL}"
    dataset = Dataset.open(folder)
    assert {row["model"] for row in dataset.rows("llm_calls")} == {OFFLINE_MODEL}
    assert len(dataset.rows("tasks")) == planned
    assert any(row["accepted"] for row in dataset.rows("curation"))
    assert not dataset.rows("rephrasings")

    assert f"{planned} tasks: " in done.stderr
    assert "tokens for each accepted trajectory" in done.stderr
    commands = [line for line in done.stderr.splitlines() if line.startswith("  ")]
    of_the_dataset = [line for line in commands if " serve " not in line]
    assert len(of_the_dataset) >= 4
    assert all(f"--dataset data/{folder.name}" in line for line in of_the_dataset)
    assert f"--endpoint {url} --model {OFFLINE_MODEL}" in commands[-1]
