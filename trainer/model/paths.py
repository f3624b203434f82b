"""The two ways in which a model computes, and which one a device takes.

Both compute the same. They part at the norm, the rotation, attention with its mask and the experts;
layers are compiled on a device only, and there a bad step is told without asking the host.
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
