"""Which split a value belongs to. Every value has one, by its digest, so that what is generated for
one split is never generated for another, in whatever domain, field or run.
"""

from functools import lru_cache
from hashlib import blake2b

from records.tables.splits import SPLITS, Split

SHARES: dict[Split, float] = {
    "train": 0.6,
    "heldout_document": 0.02,
    "heldout_values": 0.08,
    "heldout_task": 0.1,
    "heldout_tool": 0.1,
    "heldout_domain": 0.1,
}
"""Of all values that there could be. Values of one tenth still make tens of thousands of names."""

_BUCKETS = 1000
_OWNERS: tuple[Split, ...] = tuple(
    split for split in SPLITS for _ in range(round(SHARES[split] * _BUCKETS))
)


@lru_cache(maxsize=100_000)
def split_of_value(value: str | float) -> Split:
    """The one split that may use the value. Case counts for nothing, and 5 is 5.0."""
    text = value.casefold() if isinstance(value, str) else f"{value:.9g}"
    bucket = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) % _BUCKETS
    return _OWNERS[bucket]


def fits(value: str | float, split: Split) -> bool:
    return split_of_value(value) == split
