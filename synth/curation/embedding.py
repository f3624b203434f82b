"""Which passages say the same as one of an evaluation in other words: by the role `embedder`.

What is found of a passage is kept in the table `embedded_passages`, so that a curation with another
threshold asks nothing again: the nearest passage of the evaluations and the cosine, no vector.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from records.digest import digest
from records.tables.schemas import Row
from synth.curation.evaluation_index import EvaluationText, Leak
from synth.curation.passages import PassageKind
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig

ROLE = "embedder"

TABLE = "embedded_passages"

AT_ONCE = 64
"""Passages a request."""

IN_FLIGHT = 8
"""Requests at once, so that no more vectors than theirs are held."""

KindedPassage = tuple[PassageKind, str]

T = TypeVar("T")


def embedded_by(role: RoleConfig, evaluations: Sequence[EvaluationText]) -> str:
    """Whose vectors, and of which evaluations: what is nearest hangs on both."""
    return digest(TABLE, role.identity(), [one.evaluation_id for one in evaluations])


def passage_id(kind: PassageKind, passage: str) -> str:
    return digest("passage", kind, passage)


class NearestPassages:
    """The nearest evaluation of each passage, as far as it is known."""

    def __init__(
        self, role: RoleConfig, evaluations: Sequence[EvaluationText], stored: Iterable[Row]
    ) -> None:
        """`stored`: rows of `embedded_passages`, of any evaluations and embedders."""
        self.embedded_by = embedded_by(role, evaluations)
        self._evaluations = evaluations
        self._place = {one.evaluation_id: n for n, one in enumerate(evaluations)}
        self._nearest: dict[str, tuple[float, int]] = {}
        self.new: list[Row] = []
        """What was asked for since, as rows of `embedded_passages`."""
        for row in stored:
            if row["embedded_by"] == self.embedded_by:
                found = (row["cosine"], self._place[row["evaluation_id"]])
                self._nearest[row["passage_id"]] = found

    def leak(self, kind: PassageKind, passage: str, *, cosine: float) -> Leak | None:
        """None also for a kind that the evaluations have nothing of."""
        found = self._nearest.get(passage_id(kind, passage))
        if found is None or found[0] < cosine:
            return None
        return Leak("embedder", found[0], self._evaluations[found[1]])

    async def ask(self, llm: LLM, passages: Iterable[KindedPassage], *, item: str) -> None:
        """Have every passage embedded that is not known yet, and of whose kind the evaluations have
        something. Raises what `LLM.embed` raises; what was paid for is in the journal then."""
        kinds = {one.kind for one in self._evaluations}
        known = self._nearest.keys()
        missing = (one for one in passages if one[0] in kinds and passage_id(*one) not in known)
        theirs: np.ndarray | None = None
        for number, many in enumerate(_in_parts(missing, AT_ONCE * IN_FLIGHT)):
            if theirs is None:
                texts = [one.text for one in self._evaluations]
                theirs = await _vectors(llm, texts, item=item, step="evaluations")
            ours = await _vectors(llm, [p for _, p in many], item=item, step=f"passages.{number}")
            self._add(many, ours @ theirs.T)

    def _add(self, many: Sequence[KindedPassage], cosines: np.ndarray) -> None:
        is_tool = np.array([one.kind == "tool" for one in self._evaluations], bool)
        for (kind, passage), row in zip(many, cosines, strict=True):
            place = int(np.where(is_tool == (kind == "tool"), row, -2.0).argmax())
            found = (round(float(row[place]), 6), place)
            own = passage_id(kind, passage)
            self._nearest[own] = found
            self.new.append(
                {
                    "embedded_by": self.embedded_by,
                    "passage_id": own,
                    "cosine": found[0],
                    "evaluation_id": self._evaluations[place].evaluation_id,
                }
            )


async def _vectors(llm: LLM, texts: Sequence[str], *, item: str, step: str) -> np.ndarray:
    """Of length 1, a row a text."""
    parts = list(_in_parts(texts, AT_ONCE))
    limit = asyncio.Semaphore(IN_FLIGHT)

    async def embedded(number: int, part: Sequence[str]) -> list[list[float]]:
        async with limit:
            return await llm.embed(ROLE, part, item=item, step=f"{step}.{number}")

    found = await asyncio.gather(*(embedded(n, part) for n, part in enumerate(parts)))
    unit = np.array([vector for part in found for vector in part], dtype=np.float32)
    return unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)


def _in_parts(values: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(values)
    while part := list(islice(left, size)):
        yield part
