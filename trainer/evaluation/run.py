"""Score a model and write down what came out: `scores.json`, `scores.md`, `episodes.jsonl`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from records.files import write_atomic
from trainer.data.chat_format import format_of
from trainer.data.declarations import Style
from trainer.evaluation.play import EvalConfig, Evaluated, evaluate
from trainer.evaluation.scores import SplitScores, as_json, scores_of, table
from trainer.inference.policies import ModelPolicy, Policy
from trainer.inference.sampler import Sampling
from trainer.model.exchange import model_folder
from trainer.training.devices import Device

SCORES, TABLE, EPISODES, JOURNAL = (
    "scores.json",
    "scores.md",
    "episodes.jsonl",
    "journal.sqlite",
)


class ScoreSettings(EvalConfig):
    """The tasks that a model is scored on, and how it answers."""

    declarations: Style | None = None
    """How tools are declared; None: as in the model's training run, else JSON."""
    constrained: bool = False
    """Only answers that keep the template and call declared tools with arguments of their types can
    be written: see `trainer.inference.json_prefix` for what is left to the tools."""
    sampling: Sampling = Sampling()
    """How tokens are drawn; by default the likeliest is taken."""
    slots: int = Field(default=32, ge=1, le=1024)
    """Conversations whose cache is kept at a time."""
    slot_tokens: int | None = Field(default=None, ge=2)
    """Tokens that a conversation may have; None: what the model takes."""
    device: Device = "auto"
    """auto: a GPU where torch sees one."""


class ScoreConfig(ScoreSettings):
    """One model, scored."""

    model: str
    """Folder of a training run, or of an exported model."""
    out: str
    """Folder for the scores and the conversations behind them."""


class Scored(NamedTuple):
    folder: Path
    scores: list[SplitScores]
    left_out: dict[str, int]
    """Tasks that were not played, by reason."""


def score(config: ScoreConfig, *, on_played: Callable[[int, int], None] | None = None) -> Scored:
    """ConfigError for a folder without a model, or a dataset without tasks."""
    out = Path(config.out)
    return score_policy(policy_of(config), config, out, about=config.model, on_played=on_played)


def policy_of(config: ScoreConfig) -> ModelPolicy:
    """The model that is to be scored."""
    chat = format_of(Path(config.model))
    if config.declarations is not None:
        chat = chat.model_copy(update={"declarations": config.declarations})
    return ModelPolicy(
        model_folder(Path(config.model)),
        config.sampling,
        chat=chat,
        constrained=config.constrained,
        slots=config.slots,
        slot_tokens=config.slot_tokens,
        device=config.device,
    )


def score_policy(
    policy: Policy,
    config: EvalConfig,
    out: Path,
    *,
    about: str,
    on_played: Callable[[int, int], None] | None = None,
) -> Scored:
    """Any policy on the same tasks; `about` says in the files whose scores they are."""
    done = evaluate(policy, config, journal=out / JOURNAL, on_played=on_played)
    scores = scores_of(done.played)
    _write(out, config, done, scores, about)
    return Scored(out, scores, done.left_out)


def _write(
    out: Path, config: EvalConfig, done: Evaluated, scores: list[SplitScores], about: str
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        "of": about,
        "config": config.model_dump(mode="json"),
        "scores": as_json(scores),
        "left_out": done.left_out,
        "episodes": [one._asdict() for one in done.played],
    }
    write_atomic(out / SCORES, json.dumps(found, indent=1).encode())
    write_atomic(out / TABLE, (table(scores) + "\n").encode())
    lines = (json.dumps(c, ensure_ascii=False) for c in done.conversations)
    write_atomic(out / EPISODES, ("\n".join(lines) + "\n").encode())
