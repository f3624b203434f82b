"""The error in the body of a refusal, whose form every vendor has its own of. Pure."""

import json
from collections.abc import Mapping
from typing import Any

_ECHOES = frozenset({"input", "flagged_input", "failed_generation", "ctx"})
"""Where servers repeat a request's own text, which may say anything."""


def words_of(body: bytes) -> str:
    """The server's error in words: its message where there is one, else the body."""
    error = _error_in(body)
    if isinstance(error, Mapping):
        metadata = error.get("metadata")  # OpenRouter: what the server behind it said
        raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
        for name in ("message", "detail", "error"):
            if isinstance(said := error.get(name), str) and said:
                return f"{said}: {raw}" if isinstance(raw, str) and raw else said
    if error is None:
        return body.decode("utf-8", "replace")
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def everything_in(body: bytes) -> str:
    """As it is searched: codes and inner errors, too, and nothing that repeats the request."""
    error = _error_in(body)
    if error is None:
        return words_of(body)
    return json.dumps(_without_echoes(error), ensure_ascii=False)


def _without_echoes(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: inner for key, inner in value.items() if key not in _ECHOES}
        return {key: _without_echoes(inner) for key, inner in kept.items()}
    return [_without_echoes(inner) for inner in value] if isinstance(value, list) else value


def _error_in(body: bytes) -> Any:
    """The error in the body of a refusal; None for what is no JSON."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, list) and data:  # Gemini
        data = data[0]
    if not isinstance(data, dict):
        return data
    error = data.get("error")
    # some give the status or its name there, and their words beside it
    beside = not isinstance(error, dict | list) and (data.get("message") or data.get("detail"))
    return data if beside else error or data


def place_in(body: bytes) -> str:
    """The field that the server names: OpenAI's `param`, or pydantic's `loc`."""
    error = _error_in(body)
    if not isinstance(error, dict):
        return ""
    if isinstance(error.get("param"), str):
        return error["param"]
    details = error.get("detail") or error.get("message")
    if isinstance(details, dict):  # Mistral
        details = details.get("detail")
    if isinstance(details, list) and details and isinstance(details[0], dict):
        loc = details[0].get("loc")
        return ".".join(map(str, loc)) if isinstance(loc, list) else str(loc or "")
    return ""
