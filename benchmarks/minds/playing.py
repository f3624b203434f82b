"""A piece through the product's own review: code's checks, the judge, the decision."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.minds.pieces import Piece
from records.errors import ItemError
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.judging.decision import DecisionConfig, decide_rows
from synth.judging.review import ReviewedEpisode, review
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import BUILT_IN

NO_ANSWER = "no answer"
LOW_SCORE = "score"


@dataclass(frozen=True, slots=True)
class Played:
    """What the product makes of a piece."""

    piece: Piece
    accepted: bool
    failed: Row | None
    """The verdict that rejects, or is left undecided; None where the piece is accepted, the score
    is too low, or no judge's answer could be used."""
    verdicts: tuple[Row, ...]
    problem: str | None = None
    """Why no answer of the judge could be used: such a piece is neither accepted nor rejected."""

    @property
    def by(self) -> str:
        """Who rejected: `code`, `judge`, `score` or `nobody`; `no answer` where nothing decided."""
        if self.problem is not None:
            return NO_ANSWER
        if self.accepted:
            return "nobody"
        return self.failed["checked_by"] if self.failed else LOW_SCORE

    @property
    def left_open(self) -> bool:
        """Whether code alone leaves something to a judge."""
        return any(r["passed"] is None for r in self.verdicts if r["checked_by"] == "code")


def play_by_code(pieces: Sequence[Piece]) -> list[Played]:
    """Without a judge: what code rejects, and what it leaves open."""
    return asyncio.run(_play_all(pieces, None, RoleConfig()))


def play(pieces: Sequence[Piece], judge: RoleConfig, folder: Path) -> list[Played]:
    """With a judge; its answers are kept in `folder`, so that a second time costs nothing."""

    async def run() -> list[Played]:
        folder.mkdir(parents=True, exist_ok=True)
        async with Gateway({"judge": judge}) as gateway:
            with ShardJournal(folder / "answers.sqlite") as journal:
                llm = LLM(gateway, journal, stage="minds", invocation_id="minds")
                return await _play_all(pieces, llm, judge)

    return asyncio.run(run())


async def _play_all(pieces: Sequence[Piece], llm: LLM | None, judge: RoleConfig) -> list[Played]:
    return list(await asyncio.gather(*(_play(piece, llm, judge) for piece in pieces)))


async def _play(piece: Piece, llm: LLM | None, judge: RoleConfig) -> Played:
    verdicts = BUILT_IN.check_all(piece.rubric, piece.episode)
    episode = ReviewedEpisode(piece.messages, piece.calls, piece.tools, piece.rubric)
    try:
        rows = await review(
            llm, episode, verdicts, item=piece.name, judge_role=judge, version=BUILT_IN.version
        )
    except ItemError as error:
        return Played(piece, accepted=False, failed=None, verdicts=(), problem=str(error))
    threshold = piece.rubric.pass_threshold
    decision = decide_rows(rows, pass_threshold=threshold, config=DecisionConfig())
    failed = decision.failed or decision.undecided
    return Played(piece, decision.accepted, failed, tuple(rows))


def deciding_words(played: Played) -> str:
    """The quote or value that the rejection rests on."""
    row = played.failed
    if row is None:
        return played.problem or ""
    return str(row["quote"] or row["evidence"] or "")
