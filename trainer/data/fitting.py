"""What of a tokenised corpus fits into packed rows: whole, cut behind an answer, or not at all."""

from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from trainer.data.documents import end_of_answer
from trainer.data.row_length import RowLength, RowLimits, refuse_what_is_lost, row_length
from trainer.data.tokenising import TokenisedRow
from trainer.data.tokenizer import Tokenizer


class Tokenised:
    """Where the documents of all rows lie, in the order of the rows, with nothing fitted yet."""

    def __init__(self) -> None:
        self.sample_ids: list[str] = []
        """Of each row with a document."""
        self.sources, self.rows, self.lengths = array("i"), array("q"), array("q")
        """Of each document: its source, its row, its tokens."""
        self.is_conversation, self.has_reasoning = array("b"), array("b")
        """Of each row with a document."""

    def add(self, row: TokenisedRow) -> None:
        if not row.documents:
            return
        for document in row.documents:
            self.sources.append(row.source)
            self.rows.append(len(self.sample_ids))
            self.lengths.append(len(document.ids))
        self.sample_ids.append(row.sample_id)
        self.is_conversation.append(row.is_conversation)
        self.has_reasoning.append(row.has_reasoning)


class Fitted(NamedTuple):
    documents: pa.Table
    """A row a document: sample_id, source, row, start, tokens, learnt."""
    tokens: int
    """Of all of them."""
    rows: int
    """That they are of."""
    left_out: Counter[str]
    """Rows with no document left, by reason."""
    cut: int
    """Rows that were cut to fit."""
    with_reasoning: int
    """Rows that have reasoning in their answers, whether or not it was written."""
    row_length: RowLength


def fitted(
    whole: Tokenised, tokens: Path, learnt: Path, tokenizer: Tokenizer, limits: RowLimits
) -> Fitted:
    """Choose the length of a row, and keep in the two files what fits. ConfigError
    where more than `MOST_LEFT_OUT` of the conversations would be left out and nobody said so."""
    rows, lengths = np.asarray(whole.rows), np.asarray(whole.lengths)
    talks = np.asarray(whole.is_conversation, dtype=bool)
    longest = np.zeros(len(talks), np.int64)
    np.maximum.at(longest, rows, lengths)
    chosen = row_length(longest[talks], limits)
    too_long = talks & (longest > chosen.tokens)
    starts = np.cumsum(lengths) - lengths
    kept = np.where(too_long[rows], 0, lengths)
    if limits.longer == "cut":
        ids, flags = _mapped(tokens, np.int32), _mapped(learnt, np.uint8)
        for number in np.flatnonzero(too_long[rows]):
            place = slice(starts[number], starts[number] + lengths[number])
            kept[number] = _beginning(ids[place], flags[place], tokenizer, chosen.tokens)
        del ids, flags  # the files are about to change
    there = np.unique(rows[kept > 0])
    if limits.longer == "cut":
        refuse_what_is_lost(len(talks) - len(there), longest[talks], chosen, limits)
    _keep(tokens, np.int32, starts, kept)
    _keep(learnt, np.uint8, starts, kept)
    return Fitted(
        documents=_table(whole, kept, learnt),
        tokens=int(kept.sum()),
        rows=len(there),
        left_out=Counter({"too_long": gone} if (gone := len(talks) - len(there)) else {}),
        cut=int(too_long[there].sum()),
        with_reasoning=int(np.asarray(whole.has_reasoning, dtype=bool)[there].sum()),
        row_length=chosen,
    )


def _beginning(ids: np.ndarray, learnt: np.ndarray, tokenizer: Tokenizer, most: int) -> int:
    """Tokens of a document that are kept: all, or up to the last answer that fits; 0 where nothing
    of those is learnt."""
    if len(ids) <= most:
        return len(ids)
    end = end_of_answer(ids, tokenizer, most)
    return end if learnt[1:end].any() else 0


def _keep(path: Path, kind: type, starts: np.ndarray, kept: np.ndarray) -> None:
    """Move what is kept together, in place: it moves towards the beginning only."""
    end = int(kept.sum())
    if end * np.dtype(kind).itemsize == path.stat().st_size:
        return
    values = np.memmap(path, kind, mode="r+")
    for at, start, size in _moves(starts, kept):
        values[at : at + size] = values[start : start + size]
    values.flush()
    del values
    with path.open("r+b") as file:
        file.truncate(end * np.dtype(kind).itemsize)


def _moves(starts: np.ndarray, kept: np.ndarray) -> Iterator[tuple[int, int, int]]:
    places = np.cumsum(kept) - kept
    for number in np.flatnonzero((kept > 0) & (places != starts)):
        yield int(places[number]), int(starts[number]), int(kept[number])


def _table(whole: Tokenised, kept: np.ndarray, learnt: Path) -> pa.Table:
    there = kept > 0
    sizes = kept[there]
    starts = np.cumsum(sizes) - sizes
    counts = (
        np.add.reduceat(_mapped(learnt, np.uint8), starts, dtype=np.int64) if len(sizes) else sizes
    )
    rows = np.asarray(whole.rows)[there]
    ids = [whole.sample_ids[row] for row in rows]
    columns = {
        "sample_id": pa.array(ids, pa.utf8()),
        "source": pa.array(np.asarray(whole.sources)[there], pa.int32()),
        "row": pa.array(rows, pa.int64()),  # files of one name have rows of one id
        "start": pa.array(starts, pa.int64()),
        "tokens": pa.array(sizes, pa.int64()),
        "learnt": pa.array(counts, pa.int64()),
    }
    return pa.table(columns)


def _mapped(path: Path, kind: type) -> np.ndarray:
    return np.memmap(path, kind, mode="r") if path.stat().st_size else np.empty(0, kind)
