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
    talk, tools = body["messages"], body.get("tools") or []
    if tools and talk and talk[-1]["role"] == "user":
        function = tools[0]["function"]
        call = {"name": function["name"], "arguments": _value(function["parameters"])}
        return {"tool_calls": [call]}
    asked = body.get("response_format") or {}
    if asked:
        schema = asked.get("json_schema", {}).get("schema", {"type": "object"})
        return {"content": json.dumps(_value(schema))}
    return {"content": "Hello, Rome!"}


def _value(schema: dict[str, Any]) -> Any:
    """The plainest one of the types that are used here."""
    if schema["type"] == "object":
        fields = schema.get("properties", {})
        return {name: _value(fields[name]) for name in schema.get("required", [])}
    return {"string": "Lisbon", "integer": 21, "boolean": False}[schema["type"]]
