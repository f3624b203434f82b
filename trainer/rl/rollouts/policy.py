"""What rollouts need of whoever draws: `ModelPolicy` has it, and other engines can."""

from collections.abc import Callable, Sequence
from typing import Protocol

from trainer.data.chat import AssistantAnswer
from trainer.data.tokenizer import Tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.policies import PolicyRequest


class RolloutPolicy(Protocol):
    """Draws answers with tokens in and tokens out. Not for concurrent use, but for `open`."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def sampling(self) -> Sampling:
        """Of the answers drawn from now on."""
        ...

    @property
    def version(self) -> int:
        """Of the weights."""
        ...

    @property
    def slots(self) -> int:
        """Answers that are drawn beside each other."""
        ...

    def checksum(self) -> str:
        """Of the weights."""
        ...

    def forget(self) -> None:
        """Drop what is kept of earlier prompts."""
        ...

    def open(self, asked: PolicyRequest) -> None:
        """Read a request before it is drawn: what is wrong with it is told of it alone. May be
        called while others are drawn."""
        ...

    def draw(
        self,
        asked: Sequence[PolicyRequest],
        *,
        budget: int | None = None,
        paused: Callable[[], bool] | None = None,
    ) -> list[AssistantAnswer | None]:
        """Answers to opened requests; None for one that paused after `budget` tokens, or because
        `paused`, which is asked before every pass, said so. The same request goes on with it."""
        ...
