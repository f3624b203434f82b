"""How the weights of an iteration reach whoever draws: in place, checked, with a larger version.

The one implementation copies them within this process. One for another engine has the same
`take`: it sends the tensors, and says the checksum of what arrived.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from torch import Tensor

from trainer.inference.policies import ModelPolicy


class WeightSync(NamedTuple):
    version: int
    checksum: str
    """Of the weights as they are where they are drawn from (`trainer.inference.weights`)."""
    seconds: float


class PolicyWeights(Protocol):
    """Answers that are paused go on under the new weights: what was drawn stays, with the version
    that drew it, and is read again by the new ones."""

    @property
    def version(self) -> int: ...

    def take(
        self, weights: Path | Mapping[str, Tensor], version: int, *, checksum: str | None = None
    ) -> WeightSync:
        """Other weights in place of those that are there; `version` is larger than before.
        `checksum`: what the weights must have on arrival. ConfigError for weights that are refused;
        those that were there stand then."""
        ...


class LocalWeights:
    """Into a policy of this process."""

    def __init__(self, policy: ModelPolicy) -> None:
        self._policy = policy

    @property
    def version(self) -> int:
        return self._policy.version

    def take(
        self, weights: Path | Mapping[str, Tensor], version: int, *, checksum: str | None = None
    ) -> WeightSync:
        began = time.monotonic()
        found = self._policy.load(weights, version, checksum=checksum)
        return WeightSync(version, found, time.monotonic() - began)
