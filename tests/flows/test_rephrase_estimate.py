"""An estimate sends no request and agrees with the run; a pilot is part of the run."""

import json
from pathlib import Path

import pytest

from flows.cli.commands.rephrase import rephrase
from flows.cli.shared.estimating_rephrase import print_rephrase_estimate, run_pilot
from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.llm.settings.config import RoleConfig
from synth.rephrasing.summary import summarise
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from tests.flows.rephrase_work import LENIENT, run_rephrase

TEXT = "The pump moves water to the tank. It stops when the tank is full. Then the lamp is lit."


def config_of(folder: Path, **settings) -> RephraseConfig:
    rows = [json.dumps({"text": f"{TEXT} Pump {n} has {n + 3} valves."}) for n in range(9)]
    (folder / "t.jsonl").write_text("\n".join([*rows, rows[0]]))
    source = SourceConfig(path=str(folder / "t.jsonl"), language="en")
    return RephraseConfig(sources=(source,), fidelity=LENIENT, max_failed=1.0, **settings)


def test_an_estimate_of_all_documents_is_what_the_run_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(tmp_path)
    run_rephrase(tmp_path / "d", config)
    totals = summarise(Dataset.open(tmp_path / "d")).totals
    capsys.readouterr()
    # nobody listens there: a request would fail
    hosted = RoleConfig.model_validate(
        {
            "base_url": "http://127.0.0.1:9/v1",
            "models": ["m"],
            "usd_per_million_prompt": 2.0,
            "usd_per_million_completion": 4.0,
        }
    )
    asked = config.model_copy(update={"roles": config.roles | {"rewriter": hosted}})
    print_rephrase_estimate(asked, command="test", json_=True)
    made = json.loads(capsys.readouterr().out)
    [rewriter] = made["roles"]
    assert made["documents"] == totals["documents"] == 9
    assert not made["at_least"]
    for name in ("requests", "prompt_tokens", "completion_tokens"):
        assert rewriter[name] == pytest.approx(totals[name], rel=0.05), name
    usd = 2e-6 * rewriter["prompt_tokens"] + 4e-6 * rewriter["completion_tokens"]
    assert rewriter["usd"] == pytest.approx(usd)


def test_a_pilot_is_part_of_the_run_and_nothing_of_it_is_paid_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(tmp_path)
    run_pilot(config, tmp_path / "d", documents=3, command="test", json_=True)
    told = json.loads(capsys.readouterr().out)
    assert told["totals"]["documents"] == 3
    assert told["totals"]["kept"] > 0
    assert told["totals"]["kept"] + sum(row["n"] for row in told["drops"]) == 2 * 3
    report, *_ = run_rephrase(tmp_path / "d", config)
    assert report.reused == 2 * 3
    assert report.pending == 0
    run_rephrase(tmp_path / "whole", config)
    whole, parts = (summarise(Dataset.open(tmp_path / name)).totals for name in ("whole", "d"))
    assert parts == whole


def test_one_thing_is_done_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("")
    with pytest.raises(ConfigError, match="give one"):
        rephrase(tmp_path / "a.toml", estimate=True, pilot=3)
