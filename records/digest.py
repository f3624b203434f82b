"""Content addresses: one canonical JSON form and one digest over it, used for every id."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """The same text for equal values: sorted keys, no spaces, non-ASCII kept, NaN refused."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def ordered_json(value: Any) -> str:
    """Canonical JSON but for keys, which stay in their order: equal values may differ in text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(*parts: Any, length: int = 16) -> str:
    """The first `length` hex digits (4 bits each) of the sha256 of the parts' canonical JSON."""
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:length]
