"""The browser as a server on this machine, until it is stopped."""

import socket
from collections.abc import Callable, Sequence

import uvicorn

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.browser.app import BrowserApp

HOST = "127.0.0.1"
"""The only address that is listened on."""


def serve_browser(
    datasets: Sequence[Dataset],
    *,
    port: int,
    labeller: str,
    on_ready: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    """Serve until interrupted. `on_ready` is given the address to open once every dataset has been
    read; `say` hears of the wait. `port` 0 takes a free one."""
    with listening(port) as listener:
        app = BrowserApp(datasets, port=listener.getsockname()[1], labeller=labeller)
        for name, shown in app.datasets.items():
            say(f"reading {name}: {len(shown.dataset.commits()):,} commits ...")
            shown.newest()
            shown.yields.rows()
        config = uvicorn.Config(
            app.asgi, log_level="warning", access_log=False, server_header=False, ws="none"
        )
        on_ready(app.address)
        uvicorn.Server(config).run(sockets=[listener])


def listening(port: int) -> socket.socket:
    """A socket of this machine alone; 0 takes a free port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)  # whoever has the address may ask before the server has begun
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"--port {port} cannot be used: {error.strerror}; name another, or 0 for a free one"
        ) from error
    return listener
