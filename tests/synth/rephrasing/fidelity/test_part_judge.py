"""The judge of parts: a difference counts only where the words that it quotes stand in a text."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offline_llm.app import create_app
from offline_llm.server.misbehaviour import Misbehaviour
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply
from offline_llm.server.server import OpenAIServer
from offline_llm.settings.rates import ClaimsErrors
from offline_llm.settings.settings import OfflineSettings
from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from synth.rephrasing.fidelity.embedded import aligned
from synth.rephrasing.fidelity.part_judge import PartToJudge, PartVerdict, judged_parts

SOURCE = "The tower is 34 metres high. Nobody lives in it. It was built of red brick in 1871."
FAITHFUL = (
    "Red brick was used when the tower was built in 1871. It is 34 metres high; nobody lives in it."
)
EXACT = OfflineSettings(claims_errors=ClaimsErrors(misses=0.0, blames=0.0))


def with_llm(tmp_path: Path, app: OpenAIServer, ask: Callable[[LLM], Any]) -> Any:
    tmp_path.mkdir(exist_ok=True)

    async def run() -> Any:
        roles = {"judge": RoleConfig(), "embedder": RoleConfig()}
        async with Gateway(roles, offline_app=lambda: app) as gateway:
            with ShardJournal(tmp_path / "journal.sqlite") as journal:
                llm = LLM(gateway, journal, stage="rephrase", invocation_id="test")
                return await ask(llm), llm.rows()

    return asyncio.run(run())


def judged(
    tmp_path: Path, *parts: tuple[str, str], app: OpenAIServer | None = None
) -> list[PartVerdict]:
    """Numbered from 1."""
    asked = [PartToJudge(n, source, rewrite) for n, (source, rewrite) in enumerate(parts, 1)]

    def ask(llm: LLM) -> Any:
        return judged_parts(llm, asked, form="Letter.", item="d1", step="judge")

    return with_llm(tmp_path, app or create_app(EXACT), ask)[0]


def scripted(*answers: dict[str, Any]) -> OpenAIServer:
    """A judge that answers one after the other so."""
    left = list(answers)

    def answer(request: ChatRequest) -> Reply:
        return Reply(json.dumps(left.pop(0)))

    return OpenAIServer(answer, ["offline-model"], misbehave=Misbehaviour())


def said(verdict: str, *differences: tuple[str, str], number: int = 1) -> dict[str, Any]:
    found = [{"part": a, "rewrite": b, "what": "another year"} for a, b in differences]
    return {"number": number, "differences": found, "verdict": verdict}


def of(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"parts": list(parts)}


STOLEN = "Its bells were stolen by pirates during a war."
UNFAITHFUL = f"The tower is 34 metres high. {STOLEN} Nobody lives in it."


def test_a_faithful_rewrite_has_no_differences(tmp_path: Path) -> None:
    assert judged(tmp_path, (SOURCE, FAITHFUL)) == [PartVerdict("faithful", (), 0)]


def test_what_is_added_and_what_is_lost_is_cited(tmp_path: Path) -> None:
    [verdict] = judged(tmp_path, (SOURCE, UNFAITHFUL))
    assert verdict.verdict == "unfaithful"
    assert [one.rewrite for one in verdict.differences if one.rewrite] == [STOLEN]
    assert [one.part for one in verdict.differences if one.part] == [
        "It was built of red brick in 1871."
    ]
    assert STOLEN in verdict.told()


def test_several_parts_are_judged_each_by_itself(tmp_path: Path) -> None:
    pairs = [(SOURCE, FAITHFUL), (SOURCE, UNFAITHFUL), (FAITHFUL, SOURCE)]
    together = judged(tmp_path / "a", *pairs)
    alone = [judged(tmp_path / f"b{n}", pair)[0] for n, pair in enumerate(pairs)]
    assert together == alone
    assert [one.verdict for one in together] == ["faithful", "unfaithful", "faithful"]


def test_a_difference_whose_words_stand_nowhere_is_asked_for_again(tmp_path: Path) -> None:
    nowhere = said("unfaithful", ("built in 1890", "made in 1890"))
    quoted = said("unfaithful", ("\u201cbuilt of RED brick ... 1871\u201d", ""))
    pair = (SOURCE, FAITHFUL)
    [mended] = judged(tmp_path / "a", pair, app=scripted(of(nowhere), of(quoted)))
    assert (mended.verdict, len(mended.differences)) == ("unfaithful", 1)
    never = judged(tmp_path / "b", pair, app=scripted(of(nowhere), of(nowhere)))
    assert never == [PartVerdict("faithful", (), 1)]


def test_only_the_part_without_words_is_asked_about_again(tmp_path: Path) -> None:
    proved = said("unfaithful", ("", "34 metres"), number=2)
    nowhere = said("unfaithful", ("built in 1890", ""))
    app = scripted(of(proved, nowhere), of(said("faithful", number=7)))
    found = judged(tmp_path, (SOURCE, FAITHFUL), (SOURCE, FAITHFUL), app=app)
    assert [one.verdict for one in found] == ["faithful", "unfaithful"]


def test_an_answer_without_one_of_the_parts_is_asked_for_again(tmp_path: Path) -> None:
    first, second = said("faithful"), said("unfaithful", ("", "34 metres"), number=2)
    app = scripted(of(second), of(first, first), of(first, second))
    found = judged(tmp_path, (SOURCE, FAITHFUL), (SOURCE, FAITHFUL), app=app)
    assert [one.verdict for one in found] == ["faithful", "unfaithful"]


def test_differences_of_a_faithful_rewrite_are_none(tmp_path: Path) -> None:
    kind = said("faithful", ("34 metres", "34 metres"))
    [found] = judged(tmp_path, (SOURCE, FAITHFUL), app=scripted(of(kind)))
    assert found.differences == ()


def test_embeddings_align_sentences_and_are_paid_once(tmp_path: Path) -> None:
    def ask(llm: LLM) -> Any:
        async def twice() -> Any:
            first = await aligned(llm, SOURCE, FAITHFUL, item="d1", step="align")
            assert first == await aligned(llm, SOURCE, FAITHFUL, item="d1", step="align")
            return first

        return twice()

    alignment, rows = with_llm(tmp_path, create_app(), ask)
    assert alignment.method == "embedder"
    assert [match.other for match in alignment.source] == [1, 1, 0]
    assert all(0 < match.score <= 1 for match in (*alignment.source, *alignment.rewrite))
    assert [row["cache_hit"] for row in rows] == [False, True]
    assert rows[0]["prompt_tokens"] > 0
    assert rows[0]["completion_tokens"] == 0
