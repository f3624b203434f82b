"""`--price`, `--budget` and `--budget-tokens` are short for settings, wherever a run is started."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.cli.main import app
from flows.cli.shared.money import NO_MONEY, Money
from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import load_config, recorded_config
from tests.records.rows import row

FILE = """
[budget]
tokens = 5000
[roles.all]
base_url = "http://127.0.0.1:9/v1"
usd_per_million_prompt = 9.0
[roles.judge]
usd_per_million_prompt = 1.0
usd_per_million_completion = 1.0
"""


def prices(config: RunConfig, role: str) -> tuple[float | None, float | None]:
    own = {str(name): one for name, one in config.roles.items()}[role]
    return own.usd_per_million_prompt, own.usd_per_million_completion


def test_options_stand_over_a_file_s_all_and_under_a_role_s_own(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(FILE)
    money = Money(price="0.6,2.5", budget=2.0)
    config = load_config(tmp_path / "run.toml", ["budget.usd=3"], options=money.settings())
    assert prices(config, "agent") == (0.6, 2.5)
    assert prices(config, "judge") == (1.0, 1.0)
    assert (config.budget.usd, config.budget.tokens) == (3.0, 5000)
    config.check_roles()
    tokens = load_config(tmp_path / "run.toml", options=Money(budget_tokens=7).settings())
    assert (tokens.budget.usd, tokens.budget.tokens) == (None, 7)


def test_nothing_given_changes_nothing() -> None:
    assert NO_MONEY.settings() == {}


@pytest.mark.parametrize("price", ["0.6", "a,b", "1,2,3", "-1,2", "nan,1", "inf,1", ""])
def test_what_is_no_pair_of_prices_is_refused(price: str) -> None:
    with pytest.raises(ConfigError, match=r"--price 0\.6,2\.5"):
        Money(price=price).settings()


def test_a_run_is_resumed_with_prices_for_the_roles_that_had_none(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(FILE.replace("usd_per_million_prompt = 9.0", ""))
    config = load_config(tmp_path / "run.toml")
    dataset = Dataset.create_or_open(tmp_path / "d")
    started = row(
        "runs",
        invocation_id="one",
        event="started",
        happened_at=datetime(2026, 11, 1, tzinfo=UTC),
        config=config.model_dump(mode="json"),
        kind="run",
    )
    dataset.commit(run_id=config.run_id, stage="run-started", shard=0, tables={"runs": [started]})
    money = Money(price="0.6,2.5", budget=2.0)
    again = recorded_config(
        dataset, config.run_id, ["roles.user.temperature=0.5"], options=money.settings()
    )
    assert isinstance(again, RunConfig)
    assert prices(again, "agent") == prices(again, "user") == (0.6, 2.5)
    assert prices(again, "judge") == (1.0, 1.0)
    assert (again.budget.usd, again.budget.tokens) == (2.0, 5000)
    assert again.roles["user"].temperature == 0.5


@pytest.mark.parametrize(
    "words",
    [
        ("run", "x.toml"),
        ("resume", "run"),
        ("rephrase", "x.toml"),
        ("grade",),
        ("tools", "evolve", "--count", "3"),
    ],
)
def test_commands_that_pay_have_the_options(words: tuple[str, ...]) -> None:
    given = [*words, "--price", "0.6,2.5", "--budget", "2", "--budget-tokens", "100"]
    _, bound, _ = app.parse_args(given, exit_on_error=False, print_error=False)
    assert bound.arguments["money"] == Money("0.6,2.5", 2.0, 100)
