"""Iterations of which nothing is learnt since every episode was lost: a server that stays down, an
environment that always raises. They are told as they come, and end a run before it exports what it
began with as if it had learnt."""

import logging
from collections import Counter
from collections.abc import Iterable

from trainer.rl.rollouts.samples import Group

log = logging.getLogger(__name__)


class LostIterations:
    """Those in a row, up to the last one."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.words = ""
        """What the last one was lost by."""

    def note(self, iteration: int, groups: Iterable[Group]) -> None:
        """One that was played; iterations without an episode say nothing."""
        samples = [sample for group in groups for sample in group.samples]
        lost = [sample for sample in samples if sample.lost]
        if not samples:
            return
        if not lost:
            self.number = 0
            return
        outcome, count = Counter(sample.outcome for sample in lost).most_common(1)[0]
        details = Counter(s.detail for s in lost if s.outcome == outcome and s.detail)
        detail = f", such as: {details.most_common(1)[0][0]}" if details else ""
        self.words = (
            f"{len(lost)} of {len(samples)} episodes of iteration {iteration} were lost, {count} "
            f"of them as {outcome}{detail}"
        )
        log.warning("%s", self.words)
        self.number = self.number + 1 if len(lost) == len(samples) else 0
