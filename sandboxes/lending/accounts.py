"""What became of every lease and of every sandbox of a pool: counts that must add up."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

Ending = Literal["clean", "replaced", "dirty", "lost", "expired", "closed"]
"""Of a lease. `clean`: its sandbox was proved clean and waits for the next; `replaced`: the
template, or a pool that is full, says so; `dirty`: not proved clean, so destroyed; `lost`: the
sandbox died or hung meanwhile; `expired`: the lease ran out and was ended; `closed`: the pool was
closed first."""

Death = Literal["replaced", "dirty", "lost", "expired", "closed", "unhealthy", "evicted"]
"""Of a sandbox. As for leases, and `unhealthy`: it did not answer before it was lent; `evicted`:
idle, it made room for another template's."""


@dataclass
class Accounts:
    """Counted as things happen; `check` raises where something is unaccounted for."""

    asked: int = 0
    waiting: int = 0
    given_up: int = 0
    """Cancelled while they waited."""
    refused: int = 0
    """Leases that ended in an error instead of a sandbox: nothing could be started."""
    held: int = 0
    cleaning: int = 0
    endings: Counter[Ending] = field(default_factory=Counter)

    starts: int = 0
    """Tried, and done one way or the other."""
    failed_starts: int = 0
    alive: int = 0
    deaths: Counter[Death] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)
    """Why sandboxes were not clean."""

    @property
    def granted(self) -> int:
        return self.asked - self.waiting - self.given_up - self.refused

    def check(self) -> None:
        """AssertionError, with all counts, unless every lease and sandbox is accounted for."""
        leases = self.granted == self.held + self.cleaning + self.endings.total()
        sandboxes = self.starts - self.failed_starts == self.alive + self.deaths.total()
        if not (leases and sandboxes):
            raise AssertionError(f"the pool's accounts do not add up: {self}")

    def counts(self) -> Counter[str]:
        """Everything that is counted, by name, for adding to those of other processes."""
        plain = ("asked", "waiting", "given_up", "refused", "held", "cleaning")
        plain += ("starts", "failed_starts", "alive")
        found = Counter({name: getattr(self, name) for name in plain})
        found.update({f"ended:{ending}": count for ending, count in self.endings.items()})
        found.update({f"died:{death}": count for death, count in self.deaths.items()})
        return found

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Accounts":
        """The accounts that these counts are."""
        found = cls()
        for name, count in counts.items():
            kind, _, which = name.partition(":")
            if kind == "ended":
                found.endings[cast(Ending, which)] += count
            elif kind == "died":
                found.deaths[cast(Death, which)] += count
            else:
                setattr(found, name, count)
        return found

    def rows(self) -> list[tuple[str, int]]:
        """Name and count, for a table; the parts stand below their sum."""
        return [
            ("leases asked for", self.asked),
            ("- waiting", self.waiting),
            ("- given up while waiting", self.given_up),
            ("- refused", self.refused),
            ("- granted", self.granted),
            ("  - held", self.held),
            ("  - being cleaned", self.cleaning),
            *((f"  - {ending}", count) for ending, count in sorted(self.endings.items())),
            ("starts", self.starts),
            ("- failed", self.failed_starts),
            ("- alive", self.alive),
            *((f"- {death}", count) for death, count in sorted(self.deaths.items())),
        ]
