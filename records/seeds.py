"""Seeded draws. Every random choice hangs on (item, purpose, index), never on order or time."""

import hashlib
import random


def seed_of(item: str, purpose: str, index: int = 0) -> int:
    """63-bit seed from sha256(item, purpose, index): fits Arrow's int64, same on every machine."""
    text = f"{item}\x1f{purpose}\x1f{index}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def rng_of(item: str, purpose: str, index: int = 0) -> random.Random:
    """A generator of its own for one purpose, so that adding a draw elsewhere shifts nothing."""
    return random.Random(seed_of(item, purpose, index))


def share_of(item: str, purpose: str) -> float:
    """A fixed number in [0, 1) for the item: for splits and samples that must not move."""
    return seed_of(item, purpose) / 2**63
