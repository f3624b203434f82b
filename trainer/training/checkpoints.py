"""Checkpoints: tensors as safetensors by torch's distributed checkpoint, everything else as JSON.

No pickle is written or read. A checkpoint is a folder `step-00000100`; it gets its name when all of
it is on disk, so that a folder of that name is whole, and its files carry digests, so that one that
was damaged later is told.
"""

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from records.errors import ConfigError
from records.files import sync_folder, write_atomic
from trainer.model.decoder import Decoder
from trainer.optim.muon import MuonAdamW

STATE = "state.json"
_NAME = re.compile(r"step-(\d{8})")


def save_checkpoint(
    folder: Path, model: Decoder, optimizer: MuonAdamW, state: Mapping[str, Any], *, step: int
) -> Path:
    """Write `folder/step-NNNNNNNN`; `state` is what a run needs besides tensors, as JSON values."""
    target = checkpoint_of(folder, step)
    if target.exists():
        return target
    unfinished = folder / f".{target.name}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    tensors, counts = _tensors(model, optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one process is no group of processes
        save(tensors, storage_writer=HuggingFaceStorageWriter(str(unfinished)), no_dist=True)
    content = {"state": dict(state), "optimizer_steps": counts}
    digests = {p.name: _digest(p) for p in sorted(unfinished.iterdir())}
    content |= {"sha256": digests | {STATE: _digest_of(content)}}
    write_atomic(unfinished / STATE, json.dumps(content, indent=2).encode())
    unfinished.rename(target)
    sync_folder(folder)
    return target


def checkpoint_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is, or would be."""
    return folder / f"step-{step:08d}"


def checkpoints_in(folder: Path) -> list[Path]:
    """All checkpoints, oldest first."""
    found = folder.glob("step-*") if folder.is_dir() else ()
    return sorted(path for path in found if _NAME.fullmatch(path.name))


def remove_old(folder: Path, *, keep: int, spare: Path | None = None) -> None:
    """All but the last `keep` checkpoints, and but the one that is spared."""
    for left in folder.glob(".step-*.removed"):
        shutil.rmtree(left)
    for path in checkpoints_in(folder)[:-keep]:
        if path != spare:
            going = folder / f".{path.name}.removed"  # a kill leaves no half of one by its name
            path.rename(going)
            shutil.rmtree(going)


def load_checkpoint(path: Path, model: Decoder, optimizer: MuonAdamW) -> dict[str, Any]:
    """Fill the model and the optimiser; returns the state that was saved.

    ConfigError for a checkpoint that is damaged or of another model; it names the one before.
    """
    content = checked(path)
    stored = json.loads((path / "model.safetensors.index.json").read_text())["weight_map"]
    begun = {key.rpartition(".")[0] for key in stored if key.startswith("optimizer.")}
    for name, parameter in model.named_parameters():  # it has no buffers before its first step
        if f"optimizer.{name}" in begun:
            optimizer.prepare(parameter)
    tensors, _ = _tensors(model, optimizer)
    if differing := sorted(stored.keys() ^ tensors.keys()):
        raise ConfigError(
            f"{path} is of another model or optimiser: {', '.join(differing[:3])} are in one only"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            load(tensors, storage_reader=HuggingFaceStorageReader(str(path)), no_dist=True)
        except (CheckpointException, ValueError) as error:
            raise ConfigError(f"{path} is of another model: {error}") from error
    torch.set_rng_state(tensors["rng"])
    names = dict(model.named_parameters())
    for name, count in content["optimizer_steps"].items():
        optimizer.state[names[name]]["step"] = count
    return content["state"]


def checked(path: Path) -> dict[str, Any]:
    """The content of `state.json`, when every file is as it was written; else ConfigError."""
    try:
        content = json.loads((path / STATE).read_text())
        digests = content.pop("sha256")
        wrong = [STATE] if digests.pop(STATE) != _digest_of(content) else []
        wrong += [name for name, known in digests.items() if _digest(path / name) != known]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(_damaged(path, str(error))) from error
    if wrong:
        raise ConfigError(_damaged(path, f"{', '.join(wrong)} changed since"))
    return content


def _damaged(path: Path, why: str) -> str:
    earlier = [other for other in checkpoints_in(path.parent) if other.name < path.name]
    way_on = f"remove it to go on from {earlier[-1].name}" if earlier else "there is none before it"
    return f"checkpoint {path} is damaged ({why}); {way_on}"


def _tensors(model: Decoder, optimizer: MuonAdamW) -> tuple[dict[str, Tensor], dict[str, int]]:
    """(tensors by name, steps of parameters that count them); the tensors are the live ones."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors["rng"] = torch.get_rng_state()
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        for what, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{name}.{what}"] = value
            else:
                counts[name] = value
    return tensors, counts


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
