"""A model on command: an ASGI application that answers as the test says, behind the real client."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig

Answer = Callable[[dict[str, Any]], str | dict[str, Any]]
"""Body of a chat request -> content of the answer, or its whole message."""

ROLES = {role: RoleConfig() for role in ("agent", "user", "judge")}


class ScriptedApp:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = json.loads((await receive())["body"])
        self.requests.append(body)
        said = self._answer(body)
        message = said if isinstance(said, dict) else {"content": said}
        finish = message.pop("finish_reason", "stop")
        reply = {
            "id": "x",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": {"role": "assistant"} | message,
                         "finish_reason": finish}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2},
        }  # fmt: skip
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(reply).encode()})


@asynccontextmanager
async def model(app: Any, folder: Path, roles: dict[str, RoleConfig] = ROLES) -> AsyncIterator[LLM]:
    """The client of one shard with `app` behind it and its journal in `folder`."""
    async with Gateway(roles, offline_app=lambda: app) as gateway:
        with ShardJournal(folder / "journal.sqlite") as journal:
            yield LLM(gateway, journal, stage="test", invocation_id="test")
