"""Claims: what the judge says counts only where the words that it quotes stand in the text."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offline_llm.app import create_app
from offline_llm.server.misbehaviour import Misbehaviour
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply
from offline_llm.server.server import OpenAIServer
from offline_llm.settings.rates import ClaimsErrors
from offline_llm.settings.settings import OfflineSettings
from records.errors import ItemError
from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from synth.rephrasing.fidelity.claims import Claims, judged_claims
from synth.rephrasing.fidelity.embedded import aligned

SOURCE = "The tower is 34 metres high. Nobody lives in it. It was built of red brick in 1871."
FAITHFUL = (
    "Red brick was used when the tower was built in 1871. It is 34 metres high; nobody lives in it."
)
EXACT = OfflineSettings(claims_errors=ClaimsErrors(misses=0.0, blames=0.0))


def with_llm(tmp_path: Path, app: OpenAIServer, ask: Callable[[LLM], Any]) -> Any:
    async def run() -> Any:
        roles = {"judge": RoleConfig(), "embedder": RoleConfig()}
        async with Gateway(roles, offline_app=lambda: app) as gateway:
            with ShardJournal(tmp_path / "journal.sqlite") as journal:
                llm = LLM(gateway, journal, stage="rephrase", invocation_id="test")
                return await ask(llm), llm.rows()

    return asyncio.run(run())


def judged(tmp_path: Path, source: str, rewrite: str, app: OpenAIServer | None = None) -> Claims:
    def ask(llm: LLM) -> Any:
        return judged_claims(llm, source, rewrite, item="d1", step="claims")

    return with_llm(tmp_path, app or create_app(EXACT), ask)[0]


def scripted(verdict: Callable[[str, str], dict[str, str]]) -> OpenAIServer:
    """A judge that answers each sentence (text, sentence) so."""

    def answer(request: ChatRequest) -> Reply:
        prompt = request.messages[1]["content"]
        blocks = [part.split("\n```")[0] for part in prompt.split("```json\n")[1:]]
        text, sentences = map(json.loads, blocks)
        made = [{"id": i, **verdict(text, s)} for i, s in sentences.items()]
        return Reply(json.dumps({"verdicts": made}))

    return OpenAIServer(answer, ["offline-model"], misbehave=Misbehaviour())


def test_a_faithful_rewrite_adds_and_loses_nothing(tmp_path: Path) -> None:
    claims = judged(tmp_path, SOURCE, FAITHFUL)
    assert (claims.added, claims.lost, claims.sentences) == ((), (), 5)


def test_added_and_lost_sentences_are_cited(tmp_path: Path) -> None:
    stolen = "Its bells were stolen by pirates during a war."
    rewrite = f"The tower is 34 metres high. {stolen} Nobody lives in it."
    claims = judged(tmp_path, SOURCE, rewrite)
    assert [f.sentence for f in claims.added] == ["Its bells were stolen by pirates during a war."]
    assert [f.sentence for f in claims.lost] == ["It was built of red brick in 1871."]


def test_a_quote_that_is_not_there_proves_nothing(tmp_path: Path) -> None:
    app = scripted(lambda text, sentence: {"verdict": "said", "quote": "words of nobody at all"})
    claims = judged(tmp_path, SOURCE, FAITHFUL, app)
    assert claims.unproved == claims.sentences == len(claims.added) + len(claims.lost)


def test_a_quote_may_leave_words_out_and_differ_in_marks(tmp_path: Path) -> None:
    def verdict(text: str, sentence: str) -> dict[str, str]:
        first = text.split(".")[0]
        return {
            "verdict": "said",
            "quote": f"\u201c{first.split()[0].upper()} ... {first[-12:]}\u201d",
        }

    claims = judged(tmp_path, SOURCE, FAITHFUL, scripted(verdict))
    assert (claims.added, claims.lost) == ((), ())


def test_a_judge_that_leaves_sentences_out_is_no_judge(tmp_path: Path) -> None:
    def answer(request: ChatRequest) -> Reply:
        verdict = {"id": "1", "verdict": "absent", "quote": ""}
        return Reply(json.dumps({"verdicts": [verdict] * 3}))

    app = OpenAIServer(answer, ["offline-model"], misbehave=Misbehaviour())
    with pytest.raises(ItemError, match="sentences 2"):
        judged(tmp_path, SOURCE, FAITHFUL, app)


def test_long_texts_are_judged_in_parts(tmp_path: Path) -> None:
    source = " ".join(f"The gate number {n} opens at {n} in the morning." for n in range(101, 131))
    claims = judged(tmp_path, source, source)
    assert (claims.sentences, claims.added, claims.lost) == (60, (), ())


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
