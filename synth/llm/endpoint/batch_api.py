"""OpenAI's batch protocol: a file of requests, a batch of it, and the files of its answers.

Each call takes a slot of the endpoint's gate for as long as it lasts, and is made again, as often
as it takes, when the endpoint is busy or gone.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from pydantic_core import to_json

from records.errors import ConfigError
from synth.llm.endpoint.connection import FILE_CONTENT, Endpoint
from synth.llm.endpoint.failures import SendError, is_out_of_money, outcome_of
from synth.llm.endpoint.gate import Outcome

CHAT_URL = "/v1/chat/completions"
"""The requests' path in the protocol's own spelling, whatever the base URL is."""

OURS = "agentic_synth"
"""The entry of a batch's metadata that holds our name of it."""

UNDER_WAY = frozenset({"validating", "in_progress", "finalizing", "cancelling"})

BAD_BODIES = 4
"""So many answers in a row that are no JSON are no accident."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 30.0
"""Between two tries of one call."""

T = TypeVar("T")


class BatchState(NamedTuple):
    batch_id: str
    status: str
    files: tuple[str, ...]
    """With answers and errors, as far as there are any."""
    words: str
    """What the server says went wrong."""
    is_limit: bool
    """Whether it refused the batch because too much of ours is waiting already."""


class BatchLine(NamedTuple):
    """What came of one request."""

    code: int | None
    """None: it was not run."""
    body: bytes


class BatchApi:
    """Of one endpoint; `role` names the setting in errors."""

    def __init__(self, endpoint: Endpoint, role: str, timeout_s: float) -> None:
        self.endpoint = endpoint
        self._role, self._timeout_s = role, timeout_s

    async def upload(self, requests: Iterable[tuple[str, bytes]]) -> str:
        """Id of a file with these requests: custom id and body."""
        lines = b"".join(
            b'{"custom_id":%s,"method":"POST","url":"%s","body":%s}\n'
            % (to_json(custom_id), CHAT_URL.encode(), raw)
            for custom_id, raw in requests
        )

        async def upload(tries: int) -> str:
            sent = await self.endpoint.upload(
                lines,
                path="/files",
                name="requests.jsonl",
                fields={"purpose": "batch"},
                timeout_s=self._timeout_s,
            )
            return _id(_object(sent.raw))

        return await self._patiently("POST /files", upload)

    async def create(self, file_id: str, name: str) -> str:
        """Id of the one batch of this file."""
        asked = {
            "input_file_id": file_id,
            "endpoint": CHAT_URL,
            "completion_window": "24h",
            "metadata": {OURS: name},
        }

        async def create(tries: int) -> str:
            # a try whose answer was lost may have created it
            if tries and (known := await self._listed(file_id, name)) is not None:
                return known
            raw = to_json(asked)
            sent = await self.endpoint.post(raw, path="/batches", timeout_s=self._timeout_s)
            return _id(_object(sent.raw))

        return await self._patiently("POST /batches", create)

    async def find(self, file_id: str, name: str) -> str | None:
        """Id of the batch of this file, if it was created."""
        return await self._patiently("GET /batches", lambda tries: self._listed(file_id, name))

    async def state(self, batch_id: str) -> BatchState:
        async def ask(tries: int) -> BatchState:
            batch = await self._get(f"/batches/{batch_id}")
            files = (batch.get("output_file_id"), batch.get("error_file_id"))
            errors = batch.get("errors")
            listed = errors.get("data") if isinstance(errors, dict) else None
            faults = [fault for fault in listed or () if isinstance(fault, dict)]
            said = "; ".join(str(fault.get("message") or fault.get("code")) for fault in faults[:3])
            return BatchState(
                batch_id,
                str(batch["status"]).lower(),
                tuple(file for file in files if isinstance(file, str) and file),
                self.endpoint.scrub(said),
                any("limit" in str(fault.get("code")) for fault in faults),
            )

        return await self._patiently(f"GET /batches/{batch_id}", ask)

    async def lines(self, files: Iterable[str]) -> dict[str, BatchLine]:
        """What came of each request that the files name, by custom id."""
        found: dict[str, BatchLine] = {}
        for file in files:
            path = f"/files/{file}{FILE_CONTENT}"

            async def ask(tries: int, path: str = path) -> dict[str, BatchLine]:
                sent = await self.endpoint.get(path, timeout_s=self._timeout_s)
                return dict(_line(line) for line in sent.raw.splitlines() if line.strip())

            found |= await self._patiently(f"GET {path}", ask)
        return found

    def failure(self, line: BatchLine | None, state: BatchState) -> SendError:
        """Of a request that has no answer."""
        where = f"{self.endpoint.url}: batch {state.batch_id}"
        if line is None or line.code is None:
            said = line.body.decode(errors="replace") if line is not None else state.words
            status = "rate_limited" if state.is_limit else "server_error"
            what = f"{where} is {state.status} and did not run this request: {said or 'no reason'}"
            return SendError(status, self.endpoint.scrub(what), billed=False)
        return self.endpoint.refusal(line.code, line.body, where=f"batch {state.batch_id}")

    async def _listed(self, file_id: str, name: str) -> str | None:
        after = ""
        while True:
            page = await self._get(f"/batches?limit=100{after}")
            batches = page["data"]
            for batch in batches:
                ours = (batch.get("metadata") or {}).get(OURS)
                if ours == name or batch.get("input_file_id") == file_id:
                    return _id(batch)
            if not batches or not page.get("has_more"):
                return None
            after = f"&after={_id(batches[-1])}"

    async def _get(self, path: str) -> dict[str, Any]:
        return _object((await self.endpoint.get(path, timeout_s=self._timeout_s)).raw)

    async def _patiently(self, what: str, make: Callable[[int], Awaitable[T]]) -> T:
        """`make` is given the number of the try. Raises UnavailableError when the gate's patience
        is over, and ConfigError for what no wait can help."""
        name = secrets.token_hex(4)
        tries = bad_bodies = 0
        while True:
            async with self.endpoint.gate.slot() as slot:
                try:
                    made = await make(tries)
                    slot.outcome = Outcome("ok", answered=True)
                    return made
                except SendError as error:
                    failure = error
                    # each try is a request of its own here: an outage shows after three of them
                    slot.outcome = outcome_of(failure, f"{name}-{tries}")._replace(hint=None)
                except (ValueError, LookupError, TypeError, AttributeError) as error:
                    said = f"{self.endpoint.url}: no answer of a batch endpoint ({error!r})"
                    failure = SendError("bad_body", said)
                    slot.outcome = outcome_of(failure, name)
            bad_bodies = bad_bodies + 1 if failure.status == "bad_body" else 0
            if failure.status == "refused" or bad_bodies == BAD_BODIES:
                raise self._cannot(what, failure) from None
            await asyncio.sleep(min(FIRST_WAIT_S * 2 ** min(tries, 10), LONGEST_WAIT_S))
            tries += 1

    def _cannot(self, what: str, failure: SendError) -> ConfigError:
        setting = f"roles.{self._role}.batch"
        advice = f"set {setting} to false, or look at what the server says"
        if failure.code in (404, 405, 501):
            advice = f"the endpoint has no batches: set {setting} to false"
            if what.count("/") > 1:  # of a batch or file that was there before
                advice = (
                    "it is of a batch that this run has sent: use the key and base_url that it was "
                    "sent with, or delete the run's file in batches/ to ask, and pay, again"
                )
        elif failure.code in (401, 403):
            advice = f"check that the key of roles.{self._role} may use files and batches"
        elif is_out_of_money(failure.code or 0, failure.body):
            advice = "the account has no credit or quota left"
        return ConfigError(f"{setting} = true, and {what} failed: {failure.detail}; {advice}")


def _object(raw: bytes) -> dict[str, Any]:
    made = json.loads(raw)
    if not isinstance(made, dict):
        raise TypeError(f"an object was expected, got {raw[:60]!r}")
    return made


def _id(made: dict[str, Any]) -> str:
    if not isinstance(made["id"], str) or not made["id"]:
        raise TypeError(f"an id was expected, got {made['id']!r}")
    return made["id"]


def _line(raw: bytes) -> tuple[str, BatchLine]:
    line = json.loads(raw)
    response, error = line.get("response") or {}, line.get("error")
    code = response.get("status_code")
    if isinstance(code, int):
        return line["custom_id"], BatchLine(code, to_json(response.get("body") or error))
    return line["custom_id"], BatchLine(None, to_json(error))
