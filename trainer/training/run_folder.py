"""The folder of a training run: what lies where, whose it is, and one writer at a time."""

import fcntl
import json
import logging
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from records.errors import ConfigError
from records.files import TEMPORARY, make_folder, write_atomic
from trainer.training.settings import TrainConfig

log = logging.getLogger(__name__)

CONFIG, CHECKPOINTS, MODEL, TOKENIZER, TOKENS, LOCK = (
    "config.json",
    "checkpoints",
    "model",
    "tokenizer",
    "tokens",
    "run.lock",
)

BEFORE_CONFIG = {TOKENS, TOKENIZER, LOCK}
"""What a run has written when it is killed before its settings are."""

FREE = {
    "out", "device", "steps", "extend", "checkpoint_every", "keep",
    "bad_step", "max_bad_steps", "spike", "recompute", "data.micro_rows",
    "validation.every", "validation.early_stop",
}  # fmt: skip
"""What a run may change on its way: where it is and how far it goes, what it costs, and what to do
with a bad step, which may be why it stopped."""


CHOSEN = ("row_tokens", "micro_rows")
"""Settings of `data` that a run chooses where they are left out, and then keeps."""

MOST_TOLD = 4
"""Settings that a refusal names."""


class RunSettings(Protocol):
    """Settings of a run with a folder: pretraining, fine-tuning, reinforcement learning."""

    out: str

    @property
    def folder(self) -> Path: ...

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


def check_folder(config: TrainConfig) -> None:
    """ConfigError for a folder with another run, or with files that are no run's."""
    chosen = {f"data.{name}" for name in CHOSEN if getattr(config.data, name) is None}
    refuse_another_run(config, free=FREE | chosen, before=BEFORE_CONFIG)


def refuse_another_run(
    config: RunSettings, *, free: Collection[str], before: Collection[str]
) -> None:
    """ConfigError for a folder with a run whose settings, but for those that are `free`, are
    others, and for one without settings that has other files than those in `before`."""
    path = config.folder / CONFIG
    if path.exists():
        known = _settled(known_settings(config.folder))
        wanted = _settled(config.model_dump(mode="json"))
        names = (known.keys() | wanted.keys()) - set(free)
        differing = sorted(k for k in names if known.get(k) != wanted.get(k))
        if differing:
            told = [f"{k}: {known.get(k)!r} there, {wanted.get(k)!r} here" for k in differing]
            raise ConfigError(
                f"{config.out} holds a run with other settings ({'; '.join(told[:MOST_TOLD])}); "
                "choose another `out`, or the settings in its config.json"
            )
    elif foreign := sorted(_files(config.folder) - set(before)):
        raise ConfigError(
            f"out = {config.out!r} is a folder with other files ({', '.join(foreign[:3])}); choose "
            "another"
        )


def as_before(config: TrainConfig) -> TrainConfig:
    """The settings with what the run in the folder has chosen for those that were left out."""
    if not (config.folder / CONFIG).exists():
        return config
    known = known_settings(config.folder)["data"]
    before = {n: known[n] for n in CHOSEN if getattr(config.data, n) is None and known.get(n)}
    return config.model_copy(update={"data": config.data.model_copy(update=before)})


def write_settings(config: RunSettings) -> None:
    """From here on the folder is this run's."""
    content = json.dumps(config.model_dump(mode="json"), indent=2)
    write_atomic(config.folder / CONFIG, content.encode())


def known_settings(folder: Path) -> dict[str, Any]:
    """As the run in a folder had them when it was last started; ConfigError where they cannot be
    read."""
    path = folder / CONFIG
    try:
        settings = json.loads(path.read_text())
        if not isinstance(settings, dict):
            raise ValueError("it holds no settings")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is damaged ({error}); choose another `out`") from error
    return settings


def put_model_aside(folder: Path, step: int) -> None:
    """Rename the model of an end at `step`, for a run that goes on from there."""
    if (folder / MODEL).exists():
        aside = folder / f"{MODEL}-at-step-{step:08d}"
        shutil.rmtree(aside, ignore_errors=True)
        (folder / MODEL).rename(aside)
        log.info("the model of the end at step %d is kept in %s", step, aside)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """One run at a time: ConfigError while another process trains into the folder. The system lets
    go of it when a process dies."""
    make_folder(folder)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(
                f"another process is training into {folder}; wait for it, or choose another `out`"
            ) from error
        yield
    finally:
        os.close(handle)


def _files(folder: Path) -> set[str]:
    if not folder.exists():
        return set()
    return {path.name for path in folder.iterdir() if not path.name.startswith(TEMPORARY)}


def _settled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted name."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": v for inner, v in value.items()}
        else:
            flat[name] = value
    return flat
