"""Rows to tokens, in the order of the rows, on as many processes as there are cores."""

import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import NamedTuple

import numpy as np

from records.errors import SynthError
from records.processes import end_with_parent
from trainer.data.conversations import TrainingConversation
from trainer.data.documents import RowEncoder, has_reasoning

ALONE_TOKENS = 1_000_000
"""Are made in this process first: a small source is done before others have started."""

BATCH_ROWS = 64
"""Of one piece of work."""

WAITING = 3
"""Pieces of work for each process that are read ahead."""


class UntokenisedRow(NamedTuple):
    source: int
    """Number of the source that it is from."""
    sample_id: str
    body: TrainingConversation | str


class TokenisedDocument(NamedTuple):
    ids: np.ndarray
    """int32."""
    learnt: np.ndarray
    """uint8, 1 where the token is to be learnt."""


class TokenisedRow(NamedTuple):
    source: int
    sample_id: str
    is_conversation: bool
    has_reasoning: bool
    documents: list[TokenisedDocument]
    """Empty where there is nothing to learn."""


def tokenised(
    rows: Iterable[UntokenisedRow], encoder: RowEncoder, *, processes: int
) -> Iterator[TokenisedRow]:
    """Every row in its order, the same from any number of processes. SynthError where one of them
    is killed."""
    left = iter(rows)
    made = 0
    for row in left:
        yield (one := _tokenised(row, encoder))
        made += sum(len(document.ids) for document in one.documents)
        if processes > 1 and made >= ALONE_TOKENS:
            break
    if (first := next(left, None)) is not None:
        yield from _in_processes(first, left, encoder, processes)


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tokenised(row: UntokenisedRow, encoder: RowEncoder) -> TokenisedRow:
    return TokenisedRow(
        row.source,
        row.sample_id,
        not isinstance(row.body, str),
        has_reasoning(row.body),
        [
            TokenisedDocument(np.asarray(made.ids, np.int32), np.asarray(made.learnt, np.uint8))
            for made in encoder.documents(row.body)
        ],
    )


def _in_processes(
    first: UntokenisedRow, left: Iterator[UntokenisedRow], encoder: RowEncoder, processes: int
) -> Iterator[TokenisedRow]:
    # not forked: torch and tokenizers have threads here, which a fork would leave in the middle
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (encoder,))
    waiting: deque[Future[list[TokenisedRow]]] = deque()
    batch = [first, *islice(left, BATCH_ROWS - 1)]
    try:
        while batch or waiting:
            while batch and len(waiting) < WAITING * processes:
                waiting.append(pool.submit(_work, batch))
                batch = list(islice(left, BATCH_ROWS))
            yield from waiting.popleft().result()
    except BrokenProcessPool as error:
        raise SynthError(
            "a process that tokenises has ended early: killed, perhaps for want of memory (start "
            "again on fewer cores, with taskset), or started by a script whose own work does not "
            "stand under `if __name__ == '__main__'`"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_ENCODERS: list[RowEncoder] = []
"""Of a process that was started to tokenise: the one that it was given."""


def _begin(encoder: RowEncoder) -> None:
    end_with_parent()
    _ENCODERS[:] = [encoder]


def _work(rows: Sequence[UntokenisedRow]) -> list[TokenisedRow]:
    return [_tokenised(row, _ENCODERS[0]) for row in rows]
