"""The server's own log counts what came and what was charged, whatever the client made of it."""

from pathlib import Path

import openai

from benchmarks.request_log import read_log
from offline_llm.server.misbehaviour import Misbehaviour
from offline_llm.settings.settings import OfflineSettings
from tests.offline_llm.conftest import served
from tests.offline_llm.test_misbehaviour import body


def test_every_request_is_counted_and_every_answer_charged(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    settings = OfflineSettings(misbehave=Misbehaviour(rate_limit=0.4, retry_after_s=0.01))
    with served(settings, path) as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        spent = asked = 0
        for seed in (1, 2, 3, 3, 3, 4, 5, 6):
            asked += 1
            try:
                usage = client.chat.completions.create(**body(seed)).usage
            except openai.RateLimitError:
                continue
            spent += usage.total_tokens if usage else 0
        list(client.models.list())
    logged = read_log(path)
    assert (logged.requests, len(logged.asked), logged.open_requests) == (asked, 6, 0)
    assert logged.tokens == spent > 0
    assert max(logged.asked.values()) == 3


def test_a_line_that_is_being_written_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "asked", "digest": "a"}\n{"event": "asked", "dig')
    assert read_log(path).asked == {"a": 1}
    assert read_log(tmp_path / "missing").requests == 0
