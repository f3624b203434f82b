"""Every trajectory of a dataset looked through for evaluations, and the rows that tell of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation.embedding import KindedPassage, NearestPassages, passage_id
from synth.curation.evaluation_index import EvaluationIndex, Leak
from synth.curation.passages import TrajectoryText, passages_in, trajectory_texts
from synth.matching.word_runs import CharSpan

TABLE = "contaminations"

SHOWN_CHARS = 800
"""Of a text around what it shares; the rest of it is in the trajectory."""

_COLUMNS = ("trajectory_id", "task_id", "episode_id", "messages", "tools", "split")


class LookedThrough(NamedTuple):
    """A row of `trajectories`, and what is compared of it."""

    trajectory_id: str
    episode_id: str
    split: str
    texts: list[TrajectoryText]


def looked_through(dataset: Dataset, tasks: Mapping[str, Row]) -> Iterator[LookedThrough]:
    """Every conversation of the dataset, those of sub-agents too."""
    for row in chain.from_iterable(dataset.in_commits("trajectories", _COLUMNS)):
        own = row["trajectory_id"]
        task = tasks.get(row["task_id"]) or {}
        texts = list(trajectory_texts(row, task.get("user_brief")))
        yield LookedThrough(own, row["episode_id"] or own, row["split"], texts)


def embedded_passages(many: Iterable[LookedThrough]) -> Iterator[KindedPassage]:
    """What the embedder is asked about, each once."""
    seen: set[str] = set()
    for one in many:
        for text in one.texts:
            for passage in _passages(text):
                key = passage_id(text.kind, passage)
                if key not in seen:
                    seen.add(key)
                    yield text.kind, passage


def leaks_of(
    one: LookedThrough, index: EvaluationIndex, nearest: NearestPassages | None, *, cosine: float
) -> list[Row]:
    """Rows of `contaminations` but for their curation: the strongest of each method."""
    best: dict[str, tuple[TrajectoryText, Leak]] = {}
    for text in one.texts:
        is_shared = text.part in ("system", "tools")
        search = index.remembered_leaks_in if is_shared else index.leaks_in
        found = list(search(text.text, text.kind, text.is_passage))
        if nearest is not None:
            alike = (nearest.leak(text.kind, p, cosine=cosine) for p in _passages(text))
            found += [leak for leak in alike if leak]
        for leak in found:
            if leak.method not in best or leak.score > best[leak.method][1].score:
                best[leak.method] = (text, leak)
    return [_row(one, text, leak) for _, (text, leak) in sorted(best.items())]


def _passages(text: TrajectoryText) -> Sequence[str]:
    if not text.is_passage:
        return ()
    return [text.text] if text.kind == "tool" else passages_in(text.text)


def _row(one: LookedThrough, text: TrajectoryText, leak: Leak) -> Row:
    shown, spans = _around(text.text, leak.spans)
    theirs, their_spans = _around(leak.evaluation.text, leak.evaluation_spans)
    return {
        "trajectory_id": one.trajectory_id,
        "method": leak.method,
        "part": text.part,
        "place": text.place,
        "score": leak.score,
        "file": leak.evaluation.file,
        "item": leak.evaluation.item,
        "text": shown,
        "spans": spans,
        "evaluation_text": theirs,
        "evaluation_spans": their_spans,
        "split": one.split,
    }


def _around(text: str, spans: Sequence[CharSpan]) -> tuple[str, list[list[int]]]:
    """The part of a text around what it shares, and where the shared spans stand in it."""
    first = spans[0][0] if spans else 0
    begin = max(0, min(first - SHOWN_CHARS // 4, len(text) - SHOWN_CHARS))
    shown = text[begin : begin + SHOWN_CHARS]
    moved = ((max(0, start - begin), min(end - begin, len(shown))) for start, end in spans)
    return shown, [[start, end] for start, end in moved if start < end]
