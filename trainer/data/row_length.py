"""How long a packed row is: chosen from the lengths of conversations, or checked against them."""

import math
from typing import Literal, NamedTuple

import numpy as np

from records.errors import ConfigError

STEP = 64
"""Row lengths are multiples of it."""

TEXT_ROW = 1024
"""Tokens of a row where there are texts alone, which are cut into rows."""

KEPT = 0.99
"""Of the conversations at least, where rows for the few longest would be waste."""

LONG_TAIL = 2.0
"""The longest is so many times the length that `KEPT` have: an extreme tail."""

MOST_LEFT_OUT = 0.1
"""Of the conversations, for their length, unless somebody wants it so."""

Longer = Literal["refuse", "cut", "leave_out"]
"""What becomes of conversations that are longer than a row: they are left out; they are cut behind
an answer, and left out where none fits; they are left out, however many. The first two are refused
where more than a tenth of all would be left out."""


class RowLimits(NamedTuple):
    tokens: int | None = None
    """Of a row; None: chosen from the lengths."""
    most: int | None = None
    """That may be chosen; None: without end."""
    why_most: str = ""
    """What it comes from, as a part of a sentence."""
    longer: Longer = "refuse"


class RowLength(NamedTuple):
    tokens: int
    why: str
    """As the end of a sentence."""


def row_length(lengths: np.ndarray, limits: RowLimits) -> RowLength:
    """The given one, or the smallest multiple of `STEP` that holds all conversations, or `KEPT` of
    them where the tail is extreme. `lengths`: tokens of each conversation; none: texts alone.

    ConfigError where more than `MOST_LEFT_OUT` of them would be left out and nobody said so.
    """
    chosen = RowLength(limits.tokens, "as set") if limits.tokens else _chosen(lengths, limits)
    if limits.longer == "refuse":
        refuse_what_is_lost(int((lengths > chosen.tokens).sum()), lengths, chosen, limits)
    return chosen


def refuse_what_is_lost(
    lost: int, lengths: np.ndarray, chosen: RowLength, limits: RowLimits
) -> None:
    """ConfigError where so many are more than `MOST_LEFT_OUT` of the conversations."""
    if lost <= MOST_LEFT_OUT * len(lengths):
        return
    cuts = limits.longer == "cut"
    without = ", without an answer that ends within it," if cuts else ""
    instead = "" if cuts else "'cut' (behind an answer that fits) or "
    raise ConfigError(
        f"data: {lost} of {len(lengths)} conversations ({lost / len(lengths):.0%}) have more "
        f"tokens than a row of {chosen.tokens}{without} and would be left out; the longest has "
        f"{lengths.max():,}, 90% have {_quantile(lengths, 0.9):,} at most. "
        f"{_advice(lengths, limits)}, or set data.longer = {instead}'leave_out'"
    )


def _chosen(lengths: np.ndarray, limits: RowLimits) -> RowLength:
    if not len(lengths):
        most = min(TEXT_ROW, limits.most or TEXT_ROW)
        return RowLength(most, "there are texts alone, which are cut into rows")
    wanted, why = _wanted(lengths)
    if limits.most is not None and lengths.max() <= limits.most:
        wanted = min(wanted, limits.most)
    if limits.most is not None and limits.most < wanted:
        return RowLength(limits.most, f"{limits.why_most}; {why} would take {wanted:,}")
    return RowLength(wanted, f"it holds {why}")


def _wanted(lengths: np.ndarray) -> tuple[int, str]:
    longest, usual = int(lengths.max()), _quantile(lengths, KEPT)
    if longest > LONG_TAIL * usual:
        told = (
            f"{KEPT:.0%} of {len(lengths):,} conversations, the longest having {longest:,} tokens"
        )
        return _up(usual), told
    told = f"all {len(lengths):,} conversations, the longest having {longest:,} tokens"
    return _up(longest), told


def _advice(lengths: np.ndarray, limits: RowLimits) -> str:
    wanted, _ = _wanted(lengths)
    if limits.tokens is None:
        return f"Rows of {wanted:,} would hold them, but {limits.why_most}"
    return f"Leave data.row_tokens out, and it is chosen from the lengths ({wanted:,} wanted)"


def _quantile(lengths: np.ndarray, share: float) -> int:
    return int(np.quantile(lengths, share, method="higher"))


def _up(tokens: int) -> int:
    return STEP * math.ceil(tokens / STEP)
