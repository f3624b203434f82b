"""What a phase came to: every episode accounted for, and where the time went."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trainer.rl.rollouts.outcomes import LOST
from trainer.rl.rollouts.samples import RolloutSample


class PhaseAccount(NamedTuple):
    """begun = finished + carried + lost."""

    begun: int
    """Episodes at hand: those carried in, and those that were asked for."""
    finished: int
    """Ended by what the policy did or did not do."""
    carried: int
    """Paused, or not yet begun; they go on in the next iteration."""
    lost: int
    """Ended by what says nothing about the policy."""
    outcomes: Mapping[str, int]
    """Outcome -> episodes of the phase that ended so."""


class PhaseFigures(NamedTuple):
    """Times are those of the process that played to the phase's end: one that was resumed tells
    nothing of what was played before."""

    account: PhaseAccount
    seconds: float
    decode_s: float
    """In which the model drew."""
    waiting_s: float
    """In which it could not, since every episode was with its environment."""
    passes: int
    """Of the model."""
    slots: int
    tokens: int
    """That were drawn."""
    env_steps: int
    """Answers that environments played."""
    env_s: float
    """In calls of environments, those beside each other added up."""

    @property
    def occupancy(self) -> float:
        """Share of the slots that a pass drew a token for."""
        return self.tokens / max(1, self.passes * self.slots)

    @property
    def waiting_share(self) -> float:
        """Share of the time in which the model waited for environments."""
        return self.waiting_s / max(self.seconds, 1e-9)

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / max(self.seconds, 1e-9)

    @property
    def env_steps_per_s(self) -> float:
        return self.env_steps / max(self.seconds, 1e-9)


def account_of(begun: int, ended: Sequence[RolloutSample], carried: int) -> PhaseAccount:
    """RuntimeError where episodes are missing, or counted twice."""
    outcomes = Counter(sample.outcome for sample in ended)
    lost = sum(outcomes[outcome] for outcome in LOST)
    account = PhaseAccount(begun, len(ended) - lost, carried, lost, dict(sorted(outcomes.items())))
    if begun != account.finished + account.carried + account.lost:
        raise RuntimeError(f"the episodes of this phase do not add up: {account}")
    return account


def figures_to_json(figures: PhaseFigures) -> dict[str, Any]:
    return {**figures._asdict(), "account": figures.account._asdict()}


def figures_of_json(told: Mapping[str, Any]) -> PhaseFigures:
    return PhaseFigures(**{**told, "account": PhaseAccount(**told["account"])})
