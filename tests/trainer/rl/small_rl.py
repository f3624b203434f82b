"""A run of seconds: a model that says anything, and a reward for digits."""

from pathlib import Path
from typing import Any

import torch

from tests.trainer.configs import small
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import train_tokenizer
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model
from trainer.model.initialization import initialize
from trainer.rl.settings import RLConfig

ENVIRONMENT = """
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.questions import Questions

SPLITS = ["train"] * 6 + ["validation", "heldout"]


class Digits(Questions):
    family = "digits"
    system = "Say a number."

    def tasks(self):
        return [
            GymTask(f"digits-{n}", self.family, SPLITS[n % 8], ("kind:digits",), {"n": n})
            for n in range(16)
        ]

    def question(self, task):
        return f"Number {task.body['n']}?"

    def reward(self, task, answer):
        digits = sum(c.isdigit() for c in answer)
        return Reward(1.0 if digits else 0.0, {"digits": float(digits)})


ENVIRONMENT = Digits()
"""
"""A file of a user's."""


def model_in(folder: Path) -> Path:
    """A model with weights of no meaning, exported."""
    if not (folder / "config.json").exists():
        texts = [f"Number {n}? Say a number. It is {n * 7}." for n in range(200)]
        tokenizer = train_tokenizer(texts, vocab_size=320)
        config = small(vocab_size=320, num_layers=2, num_experts=4, init_std=0.05)
        model = Decoder(config)
        initialize(model, seed=0)
        export_model(model, folder, tokenizer, chat=ChatFormat(system=""))
    return folder


def rl_config(folder: Path, out: str = "run", **other: Any) -> RLConfig:
    """In `folder` lie the model, the environment and the run."""
    torch.set_num_threads(1)
    environment = folder / "digits.py"
    if not environment.exists():
        environment.write_text(ENVIRONMENT)
    settings: dict[str, Any] = {
        "out": str(folder / out),
        "start_from": str(model_in(folder / "start")),
        "iterations": 4,
        "gym": {"files": [str(environment)]},
        "choice": {"tasks": 4, "band": {"k": 2}, "rest": 2},
        "rollouts": {
            "samples": 4,
            "in_flight": 8,
            "token_budget": 12,
            "deterministic": True,
            "repeats": None,
        },
        "learning": {"lr": 5e-3},
        "test": {"every": 2, "tasks": 4},
        "answer_tokens": 16,
        "slots": 8,
        "slot_tokens": 96,
        "device": "cpu",
    }
    return RLConfig.model_validate(settings | other)
