"""A training run of seconds: its rows, its shape, its settings."""

from pathlib import Path
from typing import Any

from tests.trainer.configs import small
from trainer.data.sources import CorpusConfig
from trainer.training.settings import DataConfig, TrainConfig

SHAPE = small(vocab_size=320, init_std=0.05)


def rows(count: int = 60) -> list[dict[str, Any]]:
    return [
        {
            "messages": [
                {"role": "user", "content": f"What is twice {n}?"},
                {"role": "assistant", "content": f"Twice {n} is {2 * n}."},
            ]
        }
        for n in range(count)
    ]


def config_of(data: Path, out: Path, **other: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "out": str(out),
        "preset": None,
        "shape": SHAPE,
        "data": DataConfig(
            sources=(CorpusConfig(path=str(data)),),
            system="",
            row_tokens=64,
            batch_rows=4,
            micro_rows=2,
        ),
        "steps": 12,
        "peak_lr": 5e-3,
        "checkpoint_every": 5,
        "device": "cpu",
    }
    return TrainConfig(**(settings | other))
