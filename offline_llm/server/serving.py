"""The application as an HTTP server of its own, for other programs and processes."""

from pathlib import Path

from offline_llm.server.request_log import RequestLog
from offline_llm.server.server import OpenAIServer


def serve(app: OpenAIServer, host: str, port: int, *, log: Path | None = None) -> None:
    """Serve until interrupted, with every chat request in the file `log`. Needs uvicorn, which
    the core does without."""
    import uvicorn

    uvicorn.run(RequestLog(app, log) if log else app, host=host, port=port, log_level="warning")
