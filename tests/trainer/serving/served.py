"""A tiny model behind real HTTP, in a thread of the test's process."""

import http.client
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn.functional import cross_entropy

from offline_llm.server.request_log import RequestLog
from records.chat.k2 import ChatMessage
from tests.trainer.configs import small
from trainer.data.chat import encode_chat
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.model.exchange import export_model
from trainer.model.initialization import new_decoder
from trainer.serving.app import ServedModel
from trainer.serving.server import ModelServer, listening_at, served_model

CHAT = ChatFormat(declarations="typescript", system="")

Talk = tuple[list[ChatMessage], list[dict[str, Any]]]
"""Messages and tools."""


def untaught(folder: Path, texts: Sequence[str], **shape: Any) -> Path:
    """An exported model of first weights."""
    tokenizer = train_tokenizer(texts, vocab_size=320)
    config = small(vocab_size=tokenizer.size, max_positions=1024, **{"init_std": 0.1, **shape})
    export_model(new_decoder(config).eval(), folder, tokenizer, chat=CHAT)
    return folder


def taught(folder: Path, talks: Sequence[Talk], *, loss: float = 0.02, steps: int = 400) -> Path:
    """An exported model that knows the answers of these conversations by heart: none of them costs
    more than `loss` a token."""
    texts = [json.dumps(talk, ensure_ascii=False) for talk in talks]
    texts += [str(message.get("content") or "") for messages, _ in talks for message in messages]
    tokenizer = train_tokenizer(texts * 2, vocab_size=700)
    shape = {"hidden_size": 64, "num_layers": 2, "num_dense_layers": 2, "init_std": 0.05}
    model = new_decoder(small(vocab_size=tokenizer.size, max_positions=16_384, **shape))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    ids_BT, targets_BT = _batch([_row(tokenizer, talk) for talk in talks])
    for _ in range(steps):
        logits_BTV = model.logits(model(ids_BT).hidden_BTD)
        losses_BT = cross_entropy(logits_BTV.mT, targets_BT, reduction="none")
        losses_B = losses_BT.sum(1) / (targets_BT != -100).sum(1)
        if losses_B.max().item() < loss:
            break
        losses_B.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    else:
        raise AssertionError(f"{steps} steps were too few")
    export_model(model.eval(), folder, tokenizer, chat=CHAT)
    return folder


def _row(tokenizer: Tokenizer, talk: Talk) -> tuple[list[int], list[int]]:
    """(tokens, the learnt ones of those that follow)."""
    messages, tools = talk
    ids, learnt = encode_chat(tokenizer, messages, tools, chat=CHAT)
    targets = [n if is_learnt else -100 for n, is_learnt in zip(ids, learnt, strict=True)]
    return ids[:-1], targets[1:]


def _batch(rows: Sequence[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of one length: what is behind a row's end is not looked at before it."""
    length = max(len(ids) for ids, _ in rows)
    padded = [
        (ids + [0] * (length - len(ids)), targets + [-100] * (length - len(ids)))
        for ids, targets in rows
    ]
    return torch.tensor([ids for ids, _ in padded]), torch.tensor([t for _, t in padded])


class Gate:
    """Holds the model's passes up, and counts them."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.opened.set()
        self.passes = 0


class Served(NamedTuple):
    url: str
    port: int
    app: ServedModel
    server: ModelServer
    gate: Gate
    thread: threading.Thread

    def tell_to_stop(self) -> None:
        """As a signal does."""
        self.server.handle_exit(signal.SIGTERM, None)

    def post(self, body: Any, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """(status, body, headers) of a chat request; bytes are sent as they are."""
        connection = self.ask(body, **headers)
        try:
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, json.loads(answer.read()), told
        finally:
            connection.close()

    def ask(self, body: Any, **headers: str) -> http.client.HTTPConnection:
        """Send a chat request and wait for nothing."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        known = {"content-type": "application/json", **headers}
        connection.request("POST", "/v1/chat/completions", raw, known)
        return connection


@contextmanager
def served(model: Path, *, log: Path | None = None, **settings: Any) -> Iterator[Served]:
    """`settings` of `served_model`; the model is called `tiny`."""
    given = {"name": "tiny", "slots": 2, "most_waiting": 16, "device": "cpu"}
    gate = Gate()
    app = served_model(model, **{**given, **settings})
    _hold(app, gate)
    server = ModelServer(app, around=RequestLog(app, log) if log else None)
    with listening_at("127.0.0.1", 0, has_key=False) as listener:
        port = listener.getsockname()[1]
        arguments = {"sockets": [listener]}
        thread = threading.Thread(target=server.run, kwargs=arguments, daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield Served(f"http://127.0.0.1:{port}/v1", port, app, server, gate, thread)
        finally:
            gate.opened.set()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def _hold(app: ServedModel, gate: Gate) -> None:
    """Faults are injected here: a pass of the model waits for the gate."""
    model = app.decoding.sampler.model
    extend = model.extend

    def held(*arguments: Any) -> torch.Tensor:
        gate.opened.wait(60)
        gate.passes += 1
        return extend(*arguments)

    model.__dict__["extend"] = held


def until(condition: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Wait; fail where it does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)
