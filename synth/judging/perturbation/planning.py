"""Which kinds of faults are tried on which episodes, until enough of each kind are confirmed.

An attempt is one kind on one episode. What came to nothing is replaced by the same kind on another
episode, within a bounded number of attempts; a kind that no episode has a place for, or that the
writer cannot write, leaves its share to the others.
"""

import heapq
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from math import ceil
from typing import NamedTuple

from records.seeds import rng_of
from synth.judging.perturbation.registry import PARAPHRASE, PERTURBATIONS

PARAPHRASED_SHARE = 1 / 3
"""Paraphrases, for each perturbed negative: rejections of what is fine in other words."""

MOST_ATTEMPTS = 3
"""Attempts at most for each negative and each paraphrase that is wanted, over all kinds together;
one kind may take twice its part of them."""

_LOOKED_AT = 16
"""Episodes that are looked at for each negative that is wanted of a kind: code alone may find that
most have no place for it, which costs nothing."""

_ORDER = tuple(rng_of("kinds", "trial").sample(PERTURBATIONS, len(PERTURBATIONS)))
"""In which kinds are begun where as many were confirmed of each: always the same, so that the next
judge is tried with the same words, and mixed, so that few negatives are of several sorts."""


class Pair(NamedTuple):
    """A kind of fault, or a paraphrase, on an episode."""

    trajectory_id: str
    perturbation: str


@dataclass(frozen=True)
class TriedBefore:
    """What a trial has come to so far."""

    confirmed: Collection[Pair] = frozenset()
    """Each tried the judge, whoever wrote it."""
    in_vain: Collection[Pair] = frozenset()
    """Attempts of the writer of now that nothing confirmed."""
    is_closed: Callable[[Pair], bool] = lambda pair: False
    """Whether a further pair is not to be begun: it failed, or code finds no place."""

    def is_open(self, pair: Pair) -> bool:
        return not (pair in self.confirmed or pair in self.in_vain or self.is_closed(pair))

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Confirmed and vain ones by kind."""
        return _by_kind(self.confirmed), _by_kind(self.in_vain)


def pairs_to_try(
    accepted: Collection[str],
    sound: Collection[str],
    before: TriedBefore,
    *,
    wanted: int,
    most_of_one: int,
) -> list[Pair]:
    """New pairs that a trial still lacks, perturbed negatives and paraphrases; none where it has
    what is `wanted`, or its attempts are spent.

    `sound`: trajectories that pass by code and that the judge has looked at; `accepted`: those of
    them that it accepts, of which negatives are made first, since nothing else is wrong with them.
    """
    negatives = _negatives(accepted, sound, before, wanted=wanted, most_of_one=most_of_one)
    confirmed, _ = before.counts()
    there = confirmed.total() - confirmed[PARAPHRASE]
    paraphrases = ceil((there + len(negatives)) * PARAPHRASED_SHARE)
    return negatives + _paraphrases(accepted, sound, before, wanted=paraphrases)


def _by_kind(pairs: Iterable[Pair]) -> Counter[str]:
    return Counter(pair.perturbation for pair in pairs)


def _negatives(
    accepted: Collection[str],
    sound: Collection[str],
    before: TriedBefore,
    *,
    wanted: int,
    most_of_one: int,
) -> list[Pair]:
    part = min(most_of_one, ceil(wanted / len(_ORDER)))
    confirmed, vain = before.counts()
    confirmed.pop(PARAPHRASE, None)
    vain.pop(PARAPHRASE, None)
    missing = wanted - confirmed.total()
    left = MOST_ATTEMPTS * wanted - confirmed.total() - vain.total()
    able = {
        name: filter(before.is_open, _pairs_of(name, accepted, sound, _LOOKED_AT * part))
        for name in _ORDER
    }
    begun: list[Pair] = []
    while able and len(begun) < min(missing, left):
        # the first of equals; what came to nothing twice waits as if one were confirmed
        name = min(able, key=lambda name: confirmed[name] + vain[name] // 2)
        attempts = confirmed[name] + vain[name]
        is_enough = confirmed[name] >= most_of_one or attempts >= 2 * MOST_ATTEMPTS * part
        found = None if is_enough else next(able[name], None)
        if found is None:
            del able[name]
            continue
        begun.append(found)
        confirmed[name] += 1  # it is hoped for
    return begun


def _paraphrases(
    accepted: Collection[str], sound: Collection[str], before: TriedBefore, *, wanted: int
) -> list[Pair]:
    confirmed, vain = (counts[PARAPHRASE] for counts in before.counts())
    num = min(wanted - confirmed, MOST_ATTEMPTS * wanted - confirmed - vain)
    looked_at = _LOOKED_AT * max(1, wanted)
    ranked = (
        heapq.nsmallest(looked_at, ids, key=lambda i: _draw(PARAPHRASE, i))
        for ids in (accepted, sound)
    )
    # Every second one whatever the judge said of it: a judge that rejects what is fine would be
    # tried with nothing that it rejects, else.
    mixed = dict.fromkeys(i for i in chain(*zip_longest(*ranked)) if i is not None)
    fresh = (pair for i in mixed if before.is_open(pair := Pair(i, PARAPHRASE)))
    return list(islice(fresh, max(0, num)))


def _pairs_of(
    name: str, accepted: Collection[str], sound: Iterable[str], most: int
) -> Iterator[Pair]:
    """Episodes in the order in which a kind is tried on them: accepted ones first. The same for any
    judge, as far as it accepts the same."""
    ranked = heapq.nsmallest(most, accepted, key=lambda i: _draw(name, i))
    yield from (Pair(i, name) for i in ranked)
    if len(ranked) < most:
        rest = (i for i in sound if i not in accepted)
        others = heapq.nsmallest(most - len(ranked), rest, key=lambda i: _draw(name, i))
        yield from (Pair(i, name) for i in others)


def _draw(name: str, trajectory_id: str) -> tuple[int, str]:
    """A cheap draw: a plan of a large run makes millions."""
    return zlib.crc32(f"{name} {trajectory_id}".encode()), trajectory_id
