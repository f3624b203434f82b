"""Samples as rows of a forward pass: packed like documents, with what their objective needs.

A pass holds whole samples, whatever it takes, since an objective may be of all tokens of one.

Shape suffixes in this file: B = rows, T = tokens, N = drawn tokens, S = samples, L = layers with
experts, K = experts of a token.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from records.errors import ConfigError
from trainer.data.packing import IGNORE, PADDING
from trainer.optim.loss import learnt_places
from trainer.rl.objective.baseline import WeighedSample
from trainer.rl.objective.rows import LearntSequence
from trainer.training.batches import sent

FILLER = 0
"""Token of padding: every model has it, and nothing of it is seen or learnt."""


class LearntRows(NamedTuple):
    """Rows of one forward pass, each sequence a document of its own (`PackedBatch`), and their
    drawn tokens in the order in which they are targets."""

    ids_BT: Tensor
    targets_BT: Tensor
    """The token after each one, IGNORE where it was not drawn."""
    documents_BT: Tensor
    learnt_N: Tensor
    """Places of the drawn tokens in the flattened targets."""
    old_N: Tensor
    sampled_N: Tensor
    versions_N: Tensor
    sample_N: Tensor
    """Of which sample each is, as a number from 0."""
    advantages_S: Tensor
    shares_S: Tensor
    lengths_S: Tensor
    routes_BTLK: Tensor | None
    """int16, negative where a token's experts are not known; None: nowhere are they."""

    def on(self, device: torch.device) -> "LearntRows":
        """The same where the model is; the host does not wait."""
        return LearntRows(*(None if t is None else sent(t, device) for t in self))  # type: ignore[arg-type]


class _Placed(NamedTuple):
    sequence: LearntSequence
    sample: int
    row: int
    at: int
    """Its first token's place in the row."""


def rows_of(
    samples: Sequence[WeighedSample], *, row_tokens: int | None, micro_rows: int, routes: bool
) -> Iterator[LearntRows]:
    """Passes of so many rows at most, or of more where one sample fills more, longest samples
    first. `row_tokens`: None for the longest sequence's. `routes`: bring those that are known.

    ConfigError for a sequence that is longer than a row.
    """
    longest = max((len(q.ids_T) for one in samples for q in one.sample.sequences), default=1)
    width = row_tokens or longest
    if longest > width:
        raise ConfigError(
            f"row_tokens = {width}, and a sequence has {longest} tokens: leave row_tokens out, or "
            "let rollouts have no more"
        )
    left = sorted(samples, key=lambda one: -sum(len(q.ids_T) for q in one.sample.sequences))
    while left:
        rooms: list[int] = []
        taken: list[WeighedSample] = []
        placed: list[_Placed] = []
        passed_over: list[WeighedSample] = []
        for one in left:
            fitted = _fitted(one, rooms, width, micro_rows if taken else None)
            if fitted is None:
                passed_over.append(one)
                continue
            rooms, places = fitted
            for sequence, (row, at) in zip(one.sample.sequences, places, strict=True):
                placed.append(_Placed(sequence, len(taken), row, at))
            taken.append(one)
        yield _rows(taken, placed, (len(rooms), width), routes=routes)
        left = passed_over


def _fitted(
    one: WeighedSample, rooms: Sequence[int], width: int, most: int | None
) -> tuple[list[int], list[tuple[int, int]]] | None:
    """The rooms that rows have when the sample's sequences are in them, and the row and place of
    each; None where they do not all fit into `most` rows."""
    rooms = [*rooms]
    places: list[tuple[int, int]] = []
    for sequence in one.sample.sequences:
        length = len(sequence.ids_T)
        fits = [row for row, room in enumerate(rooms) if room >= length]
        if not fits:
            if most is not None and len(rooms) >= most:
                return None
            fits = [len(rooms)]
            rooms.append(width)
        row = min(fits, key=rooms.__getitem__)
        places.append((row, width - rooms[row]))
        rooms[row] -= length
    return rooms, places


def _rows(
    samples: Sequence[WeighedSample],
    placed: Sequence[_Placed],
    shape: tuple[int, int],
    *,
    routes: bool,
) -> LearntRows:
    ids, targets, documents = (torch.full(shape, v) for v in (FILLER, IGNORE, PADDING))
    versions, numbers = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    old, sampled = (torch.zeros(shape, dtype=torch.double) for _ in range(2))
    known = [p.sequence.routes_TLK for p in placed if p.sequence.routes_TLK is not None]
    given = known[0].new_full((*shape, *known[0].shape[1:]), -1) if routes and known else None
    for number, (sequence, sample, row, at) in enumerate(placed):
        end = at + len(sequence.ids_T)
        ids[row, at:end] = sequence.ids_T
        documents[row, at:end] = number  # rises within a row, since rows are filled in this order
        if given is not None and sequence.routes_TLK is not None:
            given[row, at:end] = sequence.routes_TLK
        before, drawn = (
            slice(at, end - 1),
            sequence.drawn_T[1:],
        )  # a token is told by the one before
        targets[row, before] = torch.where(drawn, sequence.ids_T[1:], IGNORE)
        numbers[row, before] = sample
        for column, own in (
            (old, sequence.old_T),
            (sampled, sequence.sampled_T),
            (versions, sequence.versions_T),
        ):
            column[row, before] = own[1:]
    learnt_N = learnt_places(targets)
    return LearntRows(
        ids_BT=ids,
        targets_BT=targets,
        documents_BT=documents,
        learnt_N=learnt_N,
        old_N=old.flatten()[learnt_N],
        sampled_N=sampled.flatten()[learnt_N],
        versions_N=versions.flatten()[learnt_N],
        sample_N=numbers.flatten()[learnt_N],
        advantages_S=torch.tensor([one.advantage for one in samples], dtype=torch.double),
        shares_S=torch.tensor([one.share for one in samples], dtype=torch.double),
        lengths_S=torch.tensor([one.sample.num_drawn for one in samples]),
        routes_BTLK=given,
    )
