"""Simulated Pods: no process, but the agent's end of its frames, as far as 10,000 of them need it.

An exec with stdin is the owner's stream and speaks frames; one without answers its own words. The
agent greets as the real one does (the first greeting's token is the sandbox's), repeats what a
broken stream may have lost, is adopted, and ends when nobody has come back for `linger_s`; all
containers of its Pod end with it. A command ends at once with exit code 0 and its argv as output;
files are kept as they are written; a server (`open`) writes back what it reads.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from sandboxes.core.agent.frames import HEADER, VERSION, lengths, loaded
from sandboxes.core.agent.stream import Ledger
from tests.kubernetes.players.exec_session import STDOUT, ExecSession
from tests.kubernetes.players.objects import Obj, annotations_of, now
from tests.kubernetes.players.statuses import PodStatus, address, terminated, waiting_containers

TEMPLATE = "synth.dev/template"
LINGER_S = 3600.0
"""Of an agent whose Pod says nothing about it."""

ENOENT = 2


class SimulatedAgent:
    __slots__ = ("_end", "_files", "_jobs", "_ledger", "_linger_s", "_session", "_timer", "thawed")

    def __init__(self, linger_s: float, end: Callable[[], None]) -> None:
        self._linger_s, self._end = linger_s, end
        self._ledger: Ledger | None = None
        self._session: ExecSession | None = None
        self._files: dict[str, bytes] = {}
        self._jobs: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.thawed: asyncio.Event | None = None
        """Set once it may go on; None while nobody has stopped it."""

    @property
    def session(self) -> ExecSession | None:
        return self._session

    async def serve(self, session: ExecSession) -> None:
        """One stream of the owner's, from its greeting to its end."""
        pending = bytearray()
        try:
            async for data in session.incoming():
                pending += data
                for header, body in frames_in(pending):
                    if self.thawed is not None:
                        await self.thawed.wait()
                    if self._session is session:
                        await self._take(header, body)
                    elif not await self._greet(header, session):
                        await session.exit(0)
                        return
        except ConnectionError:
            pass
        finally:
            if self._session is session:
                self._session = None
                self._timer = asyncio.get_running_loop().call_later(self._linger_s, self._end)

    async def _greet(self, hello: dict[str, Any], session: ExecSession) -> bool:
        if self._ledger is None and hello.get("op") == "hello" and hello.get("version") == VERSION:
            self._ledger = Ledger(str(hello.get("token")))
        ledger = self._ledger or Ledger("")
        answer, repeated = ledger.greeting(hello, sorted(self._jobs))
        await session.send(STDOUT, answer)
        if repeated is None:
            return False
        before, self._session = self._session, session
        if before is not None:
            before.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for whole in repeated:
            await session.send(STDOUT, whole)
        return True

    async def _take(self, header: dict[str, Any], body: bytes) -> None:
        assert self._ledger is not None
        if self._ledger.accept(header, body):
            for answer, content in self._answers(header, body):
                await self._put(self._ledger.number({"id": header["id"], **answer}, content))
        if (owed := self._ledger.owes()) is not None:
            await self._put(owed)

    async def _put(self, whole: bytes) -> None:
        """What does not arrive is kept by the ledger for the next stream."""
        if self._session is not None:
            with contextlib.suppress(ConnectionError):
                await self._session.send(STDOUT, whole)

    def _answers(
        self, header: dict[str, Any], body: bytes
    ) -> Iterator[tuple[dict[str, Any], bytes]]:
        match header["op"]:
            case "exec":
                echo = (" ".join(header["argv"]) + "\n").encode()
                kept = echo[: header["output_bytes"]]
                yield exited(0, truncated=len(kept) < len(echo), size=len(kept)), kept
            case "open":
                self._jobs.add(header["id"])
                yield {"event": "started"}, b""
            case "stdin" if header["id"] in self._jobs and body:
                yield {"event": "stdout"}, body
            case "kill" if header["id"] in self._jobs:
                self._jobs.discard(header["id"])
                yield exited(-9), b""
            case "write":
                self._files[header["path"]] = body
                yield {"event": "ok"}, b""
            case "read":
                data = self._files.get(header["path"])
                if data is None:
                    reason = "No such file or directory"
                    yield {"event": "error", "errno": ENOENT, "reason": reason}, b""
                else:
                    limit = header["limit"]
                    yield {"event": "ok", "whole": len(data) <= limit}, data[:limit]
            case "wipe":
                self._jobs.clear()
                self._files.clear()
                yield {"event": "ok", "ipc": 0}, b""
            case "ping" | "pause" | "resume":
                yield {"event": "ok"}, b""

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self._session.abort()


def exited(code: int, *, truncated: bool = False, size: int = 0) -> dict[str, Any]:
    return {
        "event": "exit",
        "exit_code": code,
        "timed_out": False,
        "truncated": truncated,
        "stdout_bytes": size,
    }


def frames_in(pending: bytearray) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The whole frames at the start of `pending`, which loses them."""
    while len(pending) >= HEADER:
        head, body = lengths(pending)
        end = HEADER + head + body
        if len(pending) < end:
            return
        whole = bytes(pending[HEADER:end])
        del pending[:end]
        yield loaded(whole[:head]), whole[head:]


def linger_of(pod: Obj) -> float:
    """From the agent's settings, which its Pod carries as JSON somewhere, or from its template."""
    texts = [annotations_of(pod).get(TEMPLATE, "")]
    for container in pod["spec"]["containers"]:
        texts += [*(container.get("command") or []), *(container.get("args") or [])]
        texts += [each.get("value", "") for each in container.get("env") or []]
    for text in reversed(texts):
        if text.startswith("{") and '"linger_s"' in text:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                return float(orjson.loads(text)["linger_s"])
    return LINGER_S


class SimulatedRun:
    """A simulated Pod on its node; see `kubelet.Run`."""

    __slots__ = ("_changed", "_main", "agent", "pod", "status", "stopped", "version")

    def __init__(self, pod: Obj, number: int, changed: Callable[[], None]) -> None:
        self.pod, self._changed = pod, changed
        self.version, self.stopped = 1, False
        spec = pod["spec"]
        init = terminated(0, None)
        self.status = PodStatus(
            waiting_containers(spec.get("initContainers") or [], init),
            waiting_containers(spec["containers"], {}),
            ip=address(number),
        )
        self._main = 0
        self._begin()

    def _begin(self) -> None:
        self.status.phase = "Running"
        self._main += 1
        for each in self.status.all():
            each.number = f"simulated://{self.pod['metadata']['uid']}/{each.name}/{self._main}"
        for each in self.status.main:
            each.state = {"running": {"startedAt": now()}}
        self.agent = SimulatedAgent(linger_of(self.pod), self._agent_ended)

    def _agent_ended(self) -> None:
        self.end_container(self.status.main[0].name, 0)

    def end_container(self, name: str, code: int, *, reason: str = "") -> None:
        """Its first process has ended, and with it the agent and all others. Policy Always starts
        them again at once, Never ends the Pod."""
        if not any(each.name == name and each.running for each in self.status.main):
            return
        self.agent.close()
        policy = self.pod["spec"].get("restartPolicy", "Always")
        again = policy == "Always" or (policy == "OnFailure" and code != 0)
        for each in self.status.main:
            started = each.state["running"]["startedAt"]
            ended = (code, reason) if each.name == name else (0, "")
            each.state = terminated(ended[0], started, reason=ended[1], container=each.number)
            if again:
                each.last, each.restarts = each.state, each.restarts + 1
        if again:
            self._begin()
        else:
            self.status.phase = "Failed" if code else "Succeeded"
        self._tell()

    def fail(self, reason: str, message: str, disruption: Obj | None) -> None:
        for each in self.status.main:
            if each.running:
                started = each.state["running"]["startedAt"]
                each.state = terminated(137, started, container=each.number)
        self.agent.close()
        self.status.phase, self.status.reason = "Failed", reason
        self.status.message, self.status.disruption = message, disruption
        self._tell()

    def _tell(self) -> None:
        self.version += 1
        self._changed()

    async def stop(self, grace_s: float) -> None:
        self.stopped = True
        self.agent.close()

    def freeze(self, stopped: bool) -> None:
        if stopped and self.agent.thawed is None:
            self.agent.thawed = asyncio.Event()
        elif not stopped and self.agent.thawed is not None:
            self.agent.thawed.set()
            self.agent.thawed = None

    async def exec(self, container: str, session: ExecSession) -> None:
        if session.stdin:
            await self.agent.serve(session)
        else:
            await session.send(STDOUT, (" ".join(session.command) + "\n").encode())
            await session.exit(0)

    def log(self, container: str) -> bytes:
        return b""
