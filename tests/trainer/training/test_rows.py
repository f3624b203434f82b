"""Rows that the settings leave open: chosen from the data, the model and the memory, and kept."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from records.errors import ConfigError
from tests.trainer.configs import small
from tests.trainer.small_run import config_of, rows
from trainer.data.chat_format import format_of
from trainer.model.exchange import import_model
from trainer.model.hf_config import config_of_hf
from trainer.training import rows as rows_module
from trainer.training.account import account_of, as_lines
from trainer.training.loop import train
from trainer.training.metrics import read_metrics
from trainer.training.rows import MEMORY_SHARE, limits_of, new_model, settled
from trainer.training.settings import TrainConfig, bytes_needed

CPU = torch.device("cpu")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


def left_open(data: Path, out: Path, **other: Any) -> TrainConfig:
    """Settings without a word on the length of rows."""
    config = config_of(data, out, **other)
    own = config.data.model_dump() | {"row_tokens": None, "micro_rows": None}
    return TrainConfig.model_validate(config.model_dump() | {"data": own})


def test_a_run_keeps_the_rows_that_it_chose(data: Path, tmp_path: Path) -> None:
    config = left_open(data, tmp_path / "run", steps=2)
    train(config)
    known = json.loads((tmp_path / "run" / "config.json").read_text())["data"]
    assert (known["row_tokens"], known["micro_rows"]) == (64, 4)
    told = json.loads((tmp_path / "run" / "tokens" / "corpus.json").read_text())
    assert told["row_tokens_why"].startswith("it holds all 60 conversations")
    longer_row = json.dumps(rows(1)[0]).replace("twice", "twice " * 50) + "\n"
    data.write_text(data.read_text() + longer_row * 3)
    longer = config.model_copy(update={"steps": 4, "extend": "hold"})
    assert train(longer).steps == 4
    whole = train(left_open(data, tmp_path / "whole", steps=4)).folder
    assert json.loads((whole / "config.json").read_text())["data"]["row_tokens"] > 64
    wider = longer.data.model_copy(update={"row_tokens": 128})
    with pytest.raises(ConfigError, match=r"data.row_tokens: 64 there, 128 here"):
        train(longer.model_copy(update={"data": wider}))


def test_a_run_that_chooses_is_the_run_that_is_told(data: Path, tmp_path: Path) -> None:
    own = train(left_open(data, tmp_path / "own", steps=3)).folder
    told = left_open(data, tmp_path / "told", steps=3)
    rows = told.data.model_copy(update={"row_tokens": 64, "micro_rows": 4})
    same = train(told.model_copy(update={"data": rows})).folder
    losses = [[line["loss"] for line in read_metrics(folder)] for folder in (own, same)]
    assert losses[0] == losses[1]


def test_a_preset_gets_the_positions_that_its_rows_need(data: Path, tmp_path: Path) -> None:
    tiny = left_open(data, tmp_path / "run", shape=None, preset="tiny")
    assert new_model(tiny, 300).max_positions == 2048
    assert limits_of(tiny, new_model(tiny, 300), CPU).most != 2048
    wide = settled(tiny, 4096, new_model(tiny, 300), CPU)
    assert new_model(wide, 300).max_positions == 4096
    stretched = left_open(data, tmp_path / "run", shape=None, preset="k2-1t")
    assert new_model(stretched, 300).max_positions == 131_072
    own = left_open(data, tmp_path / "run")
    assert new_model(settled(own, 4096, own.new_shape, CPU), 320).max_positions == 256


def test_a_model_that_is_started_from_keeps_its_positions(data: Path, tmp_path: Path) -> None:
    shape = small(vocab_size=320, max_positions=24)
    config = left_open(data, tmp_path / "first", steps=1, shape=shape)
    with pytest.raises(ConfigError, match="the model takes no more than 24 positions"):
        train(config)
    cut = config.data.model_copy(update={"longer": "leave_out"})
    silent = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    data.write_text(data.read_text() + json.dumps({"messages": silent}) + "\n")
    first = train(config.model_copy(update={"data": cut})).folder
    assert as_lines(account_of(first))[0] == "rows: 1 learnt from; left out: 60 too_long"
    theirs = json.loads((first / "model" / "config.json").read_text())
    assert config_of_hf(theirs, where="").max_positions == 24
    second = left_open(
        data, tmp_path / "second", steps=1, shape=None, start_from=str(first / "model")
    )
    assert limits_of(second, import_model(first / "model").config, CPU).most == 24


def test_memory_takes_rows_off_a_pass_before_it_takes_tokens_off_a_row(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = left_open(data, tmp_path / "run", shape=None, preset="tiny")
    model = new_model(config, 300)
    together = {
        n: bytes_needed(rows_module._with_rows(config, 1024, micro=n), model, CPU) / MEMORY_SHARE
        for n in (1, 2, 4)
    }
    for free, micro in ((together[4] + 1, 4), (together[4] - 1, 2), (together[1] + 1, 1)):
        monkeypatch.setattr(rows_module, "free_bytes", lambda _, free=free: free)
        assert settled(config, 1024, model, CPU).micro_rows == micro
    assert limits_of(config, model, CPU).most == 1024
    monkeypatch.setattr(rows_module, "free_bytes", lambda _: together[1] - 1)
    limits = limits_of(config, model, CPU)
    assert limits.most == 1024 - 64
    assert "the free memory takes no rows of more than 960" in limits.why_most


def test_reasoning_and_the_system_message_travel_with_the_model(data: Path, tmp_path: Path) -> None:
    said = {"role": "assistant", "reasoning": "twice 1", "content": "2"}
    row = {"messages": [{"role": "user", "content": "What is twice 1?"}, said]}
    data.write_text(data.read_text() + json.dumps(row) + "\n")
    config = left_open(data, tmp_path / "run", steps=1)
    told = config.data.model_copy(update={"system": "Count."})
    done = train(config.model_copy(update={"data": told}))
    chat = format_of(done.folder)
    assert (chat.system, chat.thinking) == ("Count.", True)
    assert format_of(done.folder / "model") == chat
    assert as_lines(account_of(done.folder))[0] == "rows: 60 learnt from; left out: 1 validation"
    config = left_open(data, tmp_path / "cut", steps=1)
    without = config.data.model_copy(update={"reasoning": "cut"})
    done = train(config.model_copy(update={"data": without}))
    assert (
        as_lines(account_of(done.folder))[0]
        == "rows: 60 learnt from; left out: 1 validation; cut: 1 reasoning"
    )
    assert not format_of(done.folder).thinking
