"""The two ways in which a model computes, and which one a device takes.

Both compute the same; they part in five places: the norm, attention and its mask, the products of
experts, whether layers are compiled, and whether a bad step is told by the host or on the device.
"""

from enum import Enum

import torch


class ComputePath(Enum):
    CPU = "cpu"
    """Backward passes written out (`trainer.model.cpu`); the host reads sizes as it goes."""
    DEVICE = "device"
    """Operations that a compiler fuses, none of which makes the host wait for a number."""


def path_of(device: torch.device) -> ComputePath:
    return ComputePath.CPU if device.type == "cpu" else ComputePath.DEVICE
