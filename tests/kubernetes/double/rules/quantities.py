"""Quantities: `100m`, `1Gi`, `1.5`, `1e3`, exactly."""

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse_quantity(value: Any) -> Decimal:
    """The exact number; ValueError for what is no quantity."""
    return _parsed(str(value))


@lru_cache(10_000)
def _parsed(text: str) -> Decimal:
    match = _FORM.fullmatch(text)
    if not match:
        raise ValueError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    try:
        number = Decimal(match[1])
    except InvalidOperation as e:
        raise ValueError(f"no number: {match[1]}") from e
    suffix = match[2]
    if not suffix:
        return number
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:]))


def written(number: Decimal, like: str = "") -> str:
    """A number as a quantity: whole ones as they are, in Mi, Gi where `like` is and it fits."""
    if number != number.to_integral_value():
        return f"{int((number * 1000).to_integral_value())}m"
    whole = int(number)
    if like.endswith("i"):
        for suffix in ("Gi", "Mi", "Ki"):
            if whole and whole % (1 << _BINARY[suffix]) == 0:
                return f"{whole >> _BINARY[suffix]}{suffix}"
    return str(whole)
