"""What an evolution costs, before its first round and after some."""

from pathlib import Path

import pytest

from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.estimate import (
    REPAIRS,
    REQUEST_TOKENS,
    TOOL_TOKENS,
    estimate_lines,
    estimated,
)
from tests.synth.catalogue.evolution.boats import MODEL, generator, plain_tools
from tests.synth.catalogue.evolution.work import config_for, rows_of, run_evolution


def hosted(**settings: object) -> EvolveConfig:
    role = {
        "base_url": "http://127.0.0.1:9/v1",
        "models": [MODEL],
        "usd_per_million_prompt": 2.0,
        "usd_per_million_completion": 10.0,
    }
    return EvolveConfig.model_validate({"roles": {"generator": role}, **settings})


def test_before_the_first_round_the_rates_are_those_of_a_measured_run(tmp_path: Path) -> None:
    made = estimated(hosted(count=1000, batch_size=10, derived_share=0.5), tmp_path / "none")
    [cost] = made.overall
    assert (made.kept, made.missing, made.rounds, made.unknown) == (0, 1000, 0, [])
    assert cost.tokens.prompt == pytest.approx(REQUEST_TOKENS * 5 * (1 + REPAIRS) / 10)
    usd = 1000 * (cost.tokens.prompt * 2.0 + TOOL_TOKENS * 10.0) / 1e6
    assert cost.usd == pytest.approx(usd)
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_after_some_rounds_the_rates_are_those_of_the_run_itself(tmp_path: Path) -> None:
    with generator(plain_tools) as url:
        config = config_for(url, count=14)
        run_evolution(tmp_path / "data", config)
        made = estimated(config.model_copy(update={"count": 114}), tmp_path / "data")
    kept = sum(row["tool_id"] is not None for row in rows_of(tmp_path / "data", "proposals"))
    calls = [row for row in rows_of(tmp_path / "data", "llm_calls") if row["stage"] != "probe"]
    [cost] = made.overall
    assert (made.kept, made.missing) == (kept, 114 - kept)
    assert made.rounds > 1
    assert cost.tokens.prompt == pytest.approx(sum(c["prompt_tokens"] for c in calls) / kept)
    assert "tokens in" in "\n".join(estimate_lines(made))
