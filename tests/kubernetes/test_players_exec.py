"""Exec at a played node: channels and Status, and a simulated Pod's end of the agent's frames."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from sandboxes.core.agent.frames import HEADER, VERSION, frame, lengths
from tests.kubernetes.asking import Asking, asking, state_of
from tests.kubernetes.players.exec_session import ended_with
from tests.kubernetes.players.simulated import SimulatedAgent, frames_in, linger_of
from tests.kubernetes.staging import Stage

SIMULATED = {"synth.dev/played": "simulated"}
RELAY = ["python3", "-c", "relay"]


class Owner:
    """The host's end of a stream over an exec, frame by frame."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self._in = bytearray()

    async def send(self, header: dict[str, Any], body: bytes = b"", *, pieces: int = 1) -> None:
        """A frame in one message or in several."""
        whole = frame(json.dumps(header).encode(), body)
        step = -(-len(whole) // pieces)
        for at in range(0, len(whole), step):
            await self.socket.send_bytes(b"\0" + whole[at : at + step])

    async def read(self) -> tuple[dict[str, Any], bytes]:
        while True:
            if len(self._in) >= HEADER:
                head, body = lengths(self._in)
                if len(self._in) >= HEADER + head + body:
                    return next(frames_in(self._in))
            message = await self.socket.receive()
            if not isinstance(message.data, bytes):
                raise EOFError
            if message.data[0] == 1:
                self._in += message.data[1:]

    async def greet(
        self, token: str = "secret", holder: str = "me", *, adopt: bool = False, seen: int = 0
    ) -> dict[str, Any]:
        hello = {"op": "hello", "version": VERSION, "token": token, "holder": holder}
        await self.send({**hello, "adopt": adopt, "seen": seen})
        return (await self.read())[0]


def with_pod(stage: Stage, test: Callable[[Asking, str], Awaitable[None]], **spec: Any) -> None:
    async def run() -> None:
        async with asking(stage) as cluster:
            name = f"pod-{uuid.uuid4().hex[:8]}"
            container = {"name": "sandbox", "image": "image:1", "command": ["agent"]}
            await cluster.make_pod(name, {"containers": [container | spec]}, labels=SIMULATED)
            await cluster.running(name)
            await test(cluster, name)
            await cluster.delete_pod(name)

    asyncio.run(run())


@contextlib.asynccontextmanager
async def owner(cluster: Asking, name: str) -> AsyncIterator[Owner]:
    async with cluster.stream(name, RELAY) as socket:
        yield Owner(socket)


def test_the_status_of_a_command_is_a_kubelets() -> None:
    assert ended_with(0) == {"status": "Success"}
    failed = ended_with(3)
    assert failed["reason"] == "NonZeroExitCode"
    assert failed["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


def test_how_long_an_agent_lingers_is_read_from_its_pod() -> None:
    settings = json.dumps({"token": None, "linger_s": 7.5})
    for place in ({"command": ["a", settings]}, {"args": [settings]}):
        assert linger_of({"metadata": {}, "spec": {"containers": [place]}}) == 7.5
    noted = {"annotations": {"synth.dev/template": settings}}
    assert linger_of({"metadata": noted, "spec": {"containers": [{}]}}) == 7.5


def test_a_command_without_stdin_answers_its_words(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        answer = await cluster.exec(name, ["echo", "two words"])
        assert answer.stdout == b"echo two words\n"
        assert answer.status == {"metadata": {}, "status": "Success"}

    with_pod(stage, test)


def test_requests_are_answered_by_id_over_one_stream(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        async with owner(cluster, name) as me:
            assert await me.greet() == {"event": "hello", "version": 1, "seen": 0, "jobs": []}
            await me.send({"n": 1, "seen": 0, "op": "ping", "id": 11})
            assert await me.read() == ({"n": 1, "seen": 1, "id": 11, "event": "ok"}, b"")
            request = {"op": "exec", "id": 12, "argv": ["a", "b"], "output_bytes": 1000}
            await me.send({"n": 2, "seen": 1, **request}, pieces=7)
            header, body = await me.read()
            assert (header["event"], header["exit_code"], body) == ("exit", 0, b"a b\n")
            data = bytes(range(256)) * 1000
            await me.send({"n": 3, "seen": 2, "op": "write", "id": 13, "path": "/f"}, data)
            await me.read()
            await me.send(
                {"n": 4, "seen": 3, "op": "read", "id": 14, "path": "/f", "limit": 1 << 20}
            )
            header, body = await me.read()
            assert (header["whole"], body) == (True, data)
            await me.send({"n": 5, "seen": 4, "op": "read", "id": 15, "path": "/g", "limit": 1})
            assert (await me.read())[0]["errno"] == 2

    with_pod(stage, test)


def test_the_first_greetings_token_counts(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        async with owner(cluster, name) as me:
            await me.greet("mine")
            async with owner(cluster, name) as other:
                assert (await other.greet("other"))["event"] == "refused"
            await me.send({"n": 1, "seen": 0, "op": "ping", "id": 1})
            assert (await me.read())[0]["event"] == "ok"

    with_pod(stage, test)


def test_what_a_broken_stream_lost_is_repeated_on_the_next(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        async with owner(cluster, name) as me:
            await me.greet()
            await me.send({"n": 1, "seen": 0, "op": "ping", "id": 1})
            await me.read()
            stage.fault(fault="drop_streams", namespace=cluster.namespace, pod=name)
            with pytest.raises(EOFError):
                await me.read()
        async with owner(cluster, name) as again:
            greeting = await again.greet(seen=0)  # as if the answer had not arrived
            assert greeting["seen"] == 1
            assert (await again.read())[0]["id"] == 1
            await again.send({"n": 1, "seen": 1, "op": "ping", "id": 1})  # got already: no answer
            await again.send({"n": 2, "seen": 1, "op": "ping", "id": 2})
            assert (await again.read())[0]["id"] == 2

    with_pod(stage, test)


def test_who_adopts_a_sandbox_takes_the_former_holders_place(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        async with owner(cluster, name) as first:
            await first.greet(holder="first")
            open_it = {"op": "open", "id": 5, "argv": ["server"], "output_bytes": 10}
            await first.send({"n": 1, "seen": 0, **open_it})
            assert (await first.read())[0]["event"] == "started"
            async with owner(cluster, name) as second:
                greeting = await second.greet(holder="second", adopt=True)
                assert greeting["jobs"] == [5]
                with pytest.raises(EOFError):
                    await first.read()
                async with owner(cluster, name) as late:
                    assert (await late.greet(holder="first"))["event"] == "refused"
                assert (await second.read())[0]["event"] == "started"  # nobody had confirmed it
                await second.send({"n": 2, "seen": 1, "op": "stdin", "id": 5}, b"words")
                assert (await second.read())[1] == b"words"

    with_pod(stage, test)


def test_an_agent_that_nobody_comes_back_to_ends_its_pod(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        async with owner(cluster, name) as me:
            await me.greet()
        pod = await cluster.over(name)
        assert pod["status"]["phase"] == "Succeeded"
        assert state_of(pod)["terminated"]["exitCode"] == 0

    with_pod(stage, test, args=[json.dumps({"linger_s": 0.2})])


def test_a_frozen_pod_answers_once_it_goes_on(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        place = {"namespace": cluster.namespace, "pod": name}
        async with owner(cluster, name) as me:
            await me.greet()
            stage.fault(fault="freeze", **place)
            await me.send({"n": 1, "seen": 0, "op": "ping", "id": 1})
            answer = asyncio.create_task(me.read())
            await asyncio.sleep(0.2)
            assert not answer.done()
            stage.fault(fault="thaw", **place)
            assert (await answer)[0]["event"] == "ok"

    with_pod(stage, test)


def test_an_exec_into_what_is_not_there_is_refused(stage: Stage) -> None:
    async def test(cluster: Asking, name: str) -> None:
        for pod, container in ((name, "other"), ("nobody", "sandbox")):
            with pytest.raises(Exception, match=r"\b(400|404|500)\b"):
                await cluster.exec(pod, ["true"], container=container)

    with_pod(stage, test)


def test_an_agent_without_a_greeting_takes_no_request() -> None:
    """A stream's first frame is a greeting or nothing is done."""

    class Session:
        sent: list[bytes]
        ended: int | None = None

        def __init__(self) -> None:
            self.sent = []

        async def incoming(self) -> AsyncIterator[bytes]:
            yield frame(json.dumps({"op": "ping", "id": 1, "n": 1, "seen": 0}).encode())

        async def send(self, channel: int, data: bytes) -> None:
            self.sent.append(data)

        async def exit(self, code: int) -> None:
            self.ended = code

    session = Session()
    agent = SimulatedAgent(1.0, lambda: None)
    asyncio.run(agent.serve(session))  # pyright: ignore[reportArgumentType]
    ((header, _),) = frames_in(bytearray(b"".join(session.sent)))
    assert header["event"] == "refused"
    assert session.ended == 0
