"""Which rows may train and which are held out, and how that passes from parents to children."""

from collections.abc import Iterable
from typing import Literal

from records.seeds import share_of

Split = Literal[
    "train",
    "heldout_document",
    "heldout_values",
    "heldout_task",
    "heldout_tool",
    "heldout_domain",
]

SPLITS: tuple[Split, ...] = (
    "train",
    "heldout_document",
    "heldout_values",
    "heldout_task",
    "heldout_tool",
    "heldout_domain",
)
"""From weakest to strongest: a stronger one says that more of the row is new to a model."""

HELDOUT_SHARE = 0.1
"""Share of tools, tasks and source texts that their own digest holds out. Runs may set another for
their tasks and texts. Of tools it is fixed: a tool is one row for all runs of a dataset."""

_HELD_OUT: dict[str, Split] = {
    "document": "heldout_document",
    "task": "heldout_task",
    "tool": "heldout_tool",
}


def own_split(
    kind: Literal["document", "tool", "task"], item_id: str, *, heldout_share: float = HELDOUT_SHARE
) -> Split:
    """What the digest of a text, tool or task says of it, whatever its parents say."""
    held_out = share_of(item_id, f"heldout_{kind}") < heldout_share
    return _HELD_OUT[kind] if held_out else "train"


def split_of(own: str, parents: Iterable[str] = ()) -> Split:
    """The strongest of a row's own split and its parents' splits."""
    return SPLITS[max(SPLITS.index(_known(split)) for split in (own, *parents))]


def _known(split: str) -> Split:
    for known in SPLITS:
        if split == known:
            return known
    raise ValueError(f"unknown split {split!r}; allowed: {', '.join(SPLITS)}")
