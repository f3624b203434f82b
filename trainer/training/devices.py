"""Where tensors live, and whether what is planned fits there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

from records.errors import ConfigError
from trainer.model.config import TransformerConfig
from trainer.model.paths import ComputePath, path_of

Device = Literal["auto", "cpu", "cuda"]
"""auto: a GPU where torch sees one."""

EXPERT_MULTIPLE = 8
"""Grouped products on a GPU take rows of whole 16 bytes: 8 numbers in bf16."""

NARROWEST_HEAD = 16
"""Features of a head that flex attention takes on a GPU, at least."""


def device_of(name: Device) -> torch.device:
    """ConfigError for a GPU that is not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda', but torch sees no GPU here")
    found = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(found if name == "auto" else name)


def weight_dtype(device: torch.device) -> torch.dtype:
    """Of a model that trains or answers there."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


@contextmanager
def cpu_threads(number: int | None) -> Iterator[None]:
    """As many threads of the CPU for what is computed within, in all threads of the process; None:
    as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def refuse_widths(config: TransformerConfig, device: torch.device) -> None:
    """ConfigError for a shape that the kernels of a GPU do not take."""
    if path_of(device) is ComputePath.CPU:
        return
    wrong = [
        f"{name} = {width} must be a multiple of {EXPERT_MULTIPLE}"
        for name in ("hidden_size", "moe_intermediate_size")
        if (width := getattr(config, name)) % EXPERT_MULTIPLE
    ]
    heads = {"qk_nope_head_dim + qk_rope_head_dim": config.qk_head_dim}
    heads["v_head_dim"] = config.v_head_dim
    wrong += [
        f"{name} = {width} must be {NARROWEST_HEAD} at least"
        for name, width in heads.items()
        if width < NARROWEST_HEAD
    ]
    if wrong:
        raise ConfigError(f"{'; '.join(wrong)} on {device}; this shape runs on a CPU only")


def refuse_what_does_not_fit(needed: int, device: torch.device, *, what: str, instead: str) -> None:
    """ConfigError, with the estimate in it and what to do instead, when the device has less."""
    free = free_bytes(device)
    if free is not None and needed > free:
        raise ConfigError(
            f"{what} needs about {needed / 2**30:.1f} GiB and {device} has {free / 2**30:.1f} GiB "
            f"free; {instead}"
        )


def free_bytes(device: torch.device) -> int | None:
    """Of a GPU, or of the machine; None where it does not say."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else _free_memory()


def _free_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
