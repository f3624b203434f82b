"""A batch endpoint in front of a double: OpenAI's files and batches, whose requests are sent to the
double itself over HTTP, so that it charges for them as for any other.

Given to `serve` as a fault: `serve(double, faults=[batches])`. Nothing goes by the clock: a batch
is run when it has been asked for more than `polls` times.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import aiohttp
from aiohttp import web

from tests.doubles.server import Handler, hang_up

Body = dict[str, Any]
End = Literal["completed", "failed", "limit", "expired", "cancelled"]
"""failed: by validation, and so is limit, because too much waits already. expired and cancelled:
after the first half of its requests, rounded down."""

LineFault = Callable[[int, str], tuple[int, Body] | None]
"""(number of the batch, from 0; custom id) -> status and body instead of running the request."""


class BatchDouble:
    def __init__(
        self,
        *,
        polls: int = 1,
        ends: tuple[End, ...] = (),
        line_fault: LineFault = lambda batch, custom_id: None,
        lost_creations: int = 0,
        page: int = 2,
    ) -> None:
        """`ends` are of the first batches, the others are completed; `lost_creations`: so many are
        made without an answer; `page`: batches of a page of the list at most."""
        self.files: dict[str, bytes] = {}
        self.batches: list[Body] = []
        self.asked: Counter[str] = Counter()
        """By method and path, ids left out."""
        self.polled = threading.Event()
        """Set when somebody has asked for a batch."""
        self.creating = threading.Event()
        """Set when a batch is to be created."""
        self.may_create = threading.Event()
        """While it is not set, who creates a batch waits for it."""
        self.may_create.set()
        self.held = False
        """While it is set, no batch is run."""
        self._polls, self._ends, self._line_fault = polls, ends, line_fault
        self._lost, self._page = lost_creations, page
        self._polled: Counter[str] = Counter()

    @property
    def sizes(self) -> list[int]:
        """Requests of each batch."""
        ours = [batch for batch in self.batches if batch["input_file_id"] in self.files]
        return [len(self.files[batch["input_file_id"]].splitlines()) for batch in ours]

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        base, _, path = request.path.rpartition("/v1")
        match request.method, *path.strip("/").split("/"):
            case "POST", "files":
                return await self._upload(request)
            case "POST", "batches":
                return await self._create(request)
            case "GET", "batches":
                return self._list(request)
            case "GET", "batches", batch_id:
                return await self._show(request, batch_id, f"{base}/v1")
            case "GET", "files", file_id, "content" if file_id in self.files:
                self.asked["GET content"] += 1
                return web.Response(body=self.files[file_id])
            case _:
                return await handler(request)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        self.asked["POST files"] += 1
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        if form["purpose"] != "batch":
            return _refused(f"purpose {form['purpose']!r} is not known")
        return web.json_response({"id": self._keep(file.file.read()), "object": "file"})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        self.asked["POST batches"] += 1
        self.creating.set()
        await asyncio.to_thread(self.may_create.wait)
        asked = await request.json()
        if asked["input_file_id"] not in self.files or asked["completion_window"] != "24h":
            return _refused("no such file, or another window than 24h")
        batch = {
            "id": f"batch_{self.asked['POST batches'] - 1}",
            "object": "batch",
            "status": "validating",
            "errors": None,
            "output_file_id": None,
            "error_file_id": None,
            **{key: asked[key] for key in ("input_file_id", "endpoint", "metadata")},
        }
        self.batches.append(batch)
        if self._lost:
            self._lost -= 1
            hang_up(request)
        return web.json_response(batch)

    def _list(self, request: web.Request) -> web.StreamResponse:
        self.asked["GET batches"] += 1
        newest = list(reversed(self.batches))
        after = (
            [batch["id"] for batch in newest].index(request.query["after"]) + 1
            if ("after" in request.query)
            else 0
        )
        page = newest[after : after + self._page]
        more = after + self._page < len(newest)
        return web.json_response({"object": "list", "data": page, "has_more": more})

    async def _show(self, request: web.Request, batch_id: str, base: str) -> web.StreamResponse:
        self.asked["GET batch"] += 1
        batch = next((one for one in self.batches if one["id"] == batch_id), None)
        if batch is None:
            return _refused(f"no batch {batch_id}", status=404)
        self._polled[batch_id] += 1
        self.polled.set()
        if batch["status"] == "validating":
            batch["status"] = "in_progress"
        elif (
            batch["status"] == "in_progress"
            and not self.held
            and self._polled[batch_id] > self._polls
        ):
            batch["status"] = "finalizing"  # for who asks while it is run
            url = str(request.url.origin()) + base + "/chat/completions"
            await self._run(batch, url, request.headers.get("Authorization", ""))
        return web.json_response(batch)

    async def _run(self, batch: Body, url: str, key: str) -> None:
        number = int(batch["id"].removeprefix("batch_"))
        end: End = self._ends[number] if number < len(self._ends) else "completed"
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        if fault := _fault_of(lines, batch["endpoint"]) or _FAILED.get(end):
            batch["errors"] = {"object": "list", "data": [fault]}
            batch["status"] = "failed"
            return
        run = lines if end == "completed" else lines[: len(lines) // 2]
        answers, errors = [], []
        async with aiohttp.ClientSession(headers={"Authorization": key}) as session:
            for line in run:
                made = self._line_fault(number, line["custom_id"])
                if made is None:
                    async with session.post(url, json=line["body"]) as answer:
                        made = answer.status, await answer.json()
                response = {"status_code": made[0], "request_id": "r", "body": made[1]}
                told = {"custom_id": line["custom_id"], "response": response, "error": None}
                (answers if made[0] == 200 else errors).append(told)
        for line in lines[len(run) :]:
            error = {"code": f"batch_{end}", "message": f"This batch is {end}."}
            errors.append({"custom_id": line["custom_id"], "response": None, "error": error})
        batch["output_file_id"] = self._keep(_lines(answers)) if answers else None
        batch["error_file_id"] = self._keep(_lines(errors)) if errors else None
        batch["status"] = end

    def _keep(self, data: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = data
        return name


_FAILED: dict[End, Body] = {
    "failed": {"code": "invalid_json_line", "message": "Line 1 could not be parsed."},
    "limit": {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."},
}


def _fault_of(lines: list[Body], endpoint: str) -> Body | None:
    """What servers refuse in a file of requests."""
    if len({line["custom_id"] for line in lines}) < len(lines):
        return {"code": "duplicate_custom_id", "message": "a custom_id came twice"}
    if len({line["body"]["model"] for line in lines}) > 1:
        return {"code": "mismatched_model", "message": "a file may hold one model"}
    if any(line["method"] != "POST" or line["url"] != endpoint for line in lines):
        return {"code": "mismatched_endpoint", "message": f"all must POST to {endpoint}"}
    if any(line["body"].get("stream") for line in lines):
        return {"code": "invalid_request", "message": "a batch does not stream"}
    return None


def _refused(message: str, status: int = 400) -> web.Response:
    error = {"message": message, "type": "invalid_request_error"}
    return web.json_response({"error": error}, status=status)


def _lines(told: list[Body]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in told)
