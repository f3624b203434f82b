"""An endpoint that is answered through files, and what answers it here.

Such a server writes every request to QUEUE/NNNNNN.request.json and sends what is then put into
QUEUE/NNNNNN.answer.json; it is started as `python SERVE.py QUEUE --port PORT`.
"""

import contextlib
import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.foreign.features import HELLO
from benchmarks.foreign.processes import free_port, serving


@contextlib.contextmanager
def answered_by_hand(program: Path) -> Iterator[str]:
    """The base URL of the server in the file `program`, whose queue is answered meanwhile."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    with tempfile.TemporaryDirectory(prefix="by-hand-") as folder:
        queue, end = Path(folder) / "queue", threading.Event()
        queue.mkdir()
        command = [sys.executable, str(program), str(queue), "--port", str(port)]
        log = Path(folder) / "log"
        with serving("by hand", command, ready_url=f"{url}/models", log=log):
            writer = threading.Thread(target=_answer_all, args=(queue, end), daemon=True)
            writer.start()
            try:
                yield url
            finally:
                end.set()
                writer.join()


def _answer_all(queue: Path, end: threading.Event) -> None:
    while not end.wait(0.05):
        for request in sorted(queue.glob("[0-9]*.request.json")):
            answer = queue / request.name.replace("request", "answer")
            if not answer.exists():
                part = answer.with_suffix(".part")
                part.write_text(json.dumps(_answer(json.loads(request.read_text()))))
                part.rename(answer)


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    """As a model would that does what it is asked to."""
    last = body["messages"][-1] if body["messages"] else HELLO
    if body.get("tools") and last["role"] == "user":
        return {"tool_calls": [{"name": "get_weather", "arguments": {"city": "Lisbon"}}]}
    if body.get("response_format"):
        return {"content": json.dumps({"text": "Hello, Rome!"})}
    return {"content": "Hello, Rome!"}
