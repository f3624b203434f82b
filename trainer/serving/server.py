"""A model as a server on this machine, until it is stopped."""

import logging
import os
import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn

from offline_llm.server.http import AsgiApp
from records.chat.k2 import END
from records.errors import ConfigError
from trainer.data.chat_format import format_of
from trainer.inference.loading import load_sampler
from trainer.model.exchange import model_folder
from trainer.serving.app import ServedModel
from trainer.serving.decoding import Decoding
from trainer.serving.prompting import Prompting
from trainer.training.devices import Device

log = logging.getLogger(__name__)

GRACE_S = 60
"""How long answers that are being drawn may take once the server is told to stop."""


def served_model(
    model: Path,
    *,
    name: str,
    slots: int,
    slot_tokens: int | None = None,
    most_waiting: int,
    constrained: bool = False,
    key: str | None = None,
    device: Device = "auto",
) -> ServedModel:
    """The application for a training run or an exported model. ConfigError as
    `trainer.inference.loading` has it, and for a tokenizer that cannot be constrained."""
    if most_waiting < 0:
        raise ConfigError(f"waiting = {most_waiting}: no fewer than 0 requests can wait")
    chat = format_of(model)
    folder = model_folder(model)
    sampler, tokenizer = load_sampler(folder, device=device, slots=slots, tokens=slot_tokens)
    capacity = sampler.cache.capacity
    prompting = Prompting(
        tokenizer, chat, capacity=capacity, constrained=constrained, where=str(folder)
    )
    stop = tokenizer.special[END]
    decoding = Decoding(sampler, slots=slots, stop=stop, most_waiting=most_waiting)
    return ServedModel(name, tokenizer, prompting, decoding, capacity=capacity, key=key)


class ModelServer(uvicorn.Server):
    """Told to stop, it takes no more requests and answers those that are there, for GRACE_S at
    most."""

    def __init__(self, app: ServedModel, *, around: AsgiApp | None = None) -> None:
        """`around`: an application that hands its requests on to `app`."""
        super().__init__(
            uvicorn.Config(
                around or app,
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.begin_closing()
        super().handle_exit(sig, frame)


def serve_model(
    app: ServedModel, listener: socket.socket, *, on_ready: Callable[[], None] = lambda: None
) -> None:
    """Answer until the process is told to stop."""
    on_ready()
    try:
        ModelServer(app).run(sockets=[listener])
    except KeyboardInterrupt:
        log.info("stopped")


def listening_at(host: str, port: int, *, has_key: bool) -> socket.socket:
    """A socket; port 0 takes a free one. ConfigError where it cannot be had, and for an address
    that others reach while no key is asked for."""
    if not has_key and not _is_loopback(host):
        raise ConfigError(
            f"--host {host} lets other machines ask: name the variable that holds a key with "
            "--key-env, or leave --host out"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"--host {host} --port {port} cannot be used: {error.strerror or error}; name "
            "another, or port 0 for a free one"
        ) from error
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def key_in(variable: str | None) -> str | None:
    """The key that clients have to show. ConfigError for a variable that is not set or empty."""
    if variable is None:
        return None
    if not (key := os.environ.get(variable, "").strip()):
        raise ConfigError(f"--key-env names {variable}, which is not set; export it with the key")
    return key
