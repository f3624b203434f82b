"""What a language model answered is read as it was meant, and asked for once.

The answers are real (README.md). Each goes over HTTP as a server would send it, also in the other
dresses that models put on the same value.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from records.errors import ItemError
from synth.llm.client import LLM, Completion
from tests.synth.llm.server import Body, answer, serve
from tests.synth.llm.test_client import llm_of, role

FOLDER = Path(__file__).parent


def recorded(*kinds: str) -> list[Body]:
    """Those that a file's name ends with."""
    return [
        json.loads(line)
        for kind in kinds
        for path in sorted(FOLDER.glob(f"*_{kind}.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


FORMS = [record for record in recorded("form") if "mistake" not in record]
MISTAKES = [record for record in recorded("form") if "mistake" in record]
TALK = recorded("calls", "words")

DRESSES: dict[str, Callable[[str], Body]] = {
    "bare": lambda text: answer(text),
    "fence": lambda text: answer(f"```json\n{text}\n```"),
    "FENCE": lambda text: answer(f"```JSON\n{text}\n```\n"),
    "before and after": lambda text: answer(f"Here is what I found:\n\n{text}\n\nAnything else?"),
    "fence and remark": lambda text: answer(f"Sure.\n\n```json\n{text}\n```\nI kept it {{short}}."),
    "think": lambda text: answer(f"<think>\nIt wants a form. {{}}\n</think>\n\n{text}"),
    "end of thinking": lambda text: answer(f"It wants a form.\n</think>\n\n{text}"),
    "all of it as reasoning": lambda text: answer("", reasoning_content=text),
}


def wire(recorded_answer: Body) -> Body:
    """As a server sends it."""
    calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for number, call in enumerate(recorded_answer.get("tool_calls", ()))
    ]
    more: Body = {"tool_calls": calls} if calls else {}
    if reasoning := recorded_answer.get("reasoning_content"):
        more["reasoning_content"] = reasoning
    reason = recorded_answer.get("finish_reason") or ("tool_calls" if calls else "stop")
    return answer(recorded_answer.get("content"), finish_reason=reason, **more)


def asked(sent: Body, folder: Path, ask: Callable[[LLM], Any]) -> tuple[Any, int]:
    """What comes of it, and how many requests it took."""

    async def run() -> tuple[Any, int]:
        async with serve(lambda *_: sent) as server, llm_of(role(server.url), folder) as llm:
            return await ask(llm), len(server.requests)

    return asyncio.run(run())


def form_of(record: Body) -> Body:
    return record["request"]["response_format"]["json_schema"]


def value_of(record: Body, folder: Path, sent: Body) -> Any:
    form, messages = form_of(record), record["request"]["messages"]

    async def ask(llm: LLM) -> Any:
        return await llm.structured(
            "agent", messages, item="i", step="0", name=form["name"], schema=form["schema"]
        )

    value, requests = asked(sent, folder, ask)
    assert requests == 1
    return value


@pytest.mark.parametrize("record", FORMS, ids=lambda r: form_of(r)["name"])
def test_a_form_that_was_filled_in_is_read_at_once(record: Body, tmp_path: Path) -> None:
    value = value_of(record, tmp_path, wire(record["answer"]))
    assert isinstance(value, dict)
    assert value.keys() >= set(form_of(record)["schema"]["required"])


@pytest.mark.parametrize("record", MISTAKES, ids=lambda r: form_of(r)["name"])
def test_a_mistake_is_shown_to_the_model_and_never_taken(record: Body, tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=record["mistake"]) as caught:
        value_of(record, tmp_path, wire(record["answer"]))
    assert caught.value.reason == "invalid_output"


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("record", FORMS[::4], ids=lambda r: form_of(r)["name"])
def test_whatever_stands_around_a_value_it_is_the_same(
    record: Body, dress: str, tmp_path: Path
) -> None:
    meant = value_of(record, tmp_path / "as-it-was", wire(record["answer"]))
    text = json.dumps(meant, ensure_ascii=False, indent=1)
    assert value_of(record, tmp_path / "dressed", DRESSES[dress](text)) == meant


@pytest.mark.parametrize("record", TALK, ids=lambda r: str(len(r["request"]["messages"])))
def test_words_and_calls_are_kept_and_reasoning_is_cut_out(record: Body, tmp_path: Path) -> None:
    request, given = record["request"], record["answer"]

    async def ask(llm: LLM) -> Completion:
        return await llm.chat(
            "agent", request["messages"], item="i", step="0", tools=request.get("tools")
        )

    done, _ = asked(wire(given), tmp_path, ask)
    calls = [
        {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}
        for c in done.tool_calls
    ]
    assert calls == given.get("tool_calls", [])
    content = given.get("content") or ""
    assert "<think>" not in done.content
    assert content.endswith(done.content)
    if "<think>" in content or given.get("reasoning_content"):
        assert done.reasoning
    else:
        assert done.content == content
