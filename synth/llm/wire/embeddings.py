"""The wire format of embeddings: one request as bytes, vectors read from bytes. Pure.

Vectors travel and are kept as base64 of 32-bit floats: a quarter of the same numbers as JSON.
"""

import base64
import binascii
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from records.errors import ItemError
from synth.llm.settings.config import RoleConfig
from synth.llm.wire.answer import BadBodyError, ChatAnswer

PATH = "/embeddings"


def embedding_body(config: RoleConfig, role: str, texts: Sequence[str], *, item: str) -> bytes:
    """Raises ItemError("unsendable_request") for text that UTF-8 cannot hold."""
    body = {"model": config.model_of(item, role), "input": texts, "encoding_format": "base64"}
    try:
        return to_json(body | config.extra_body)
    except ValueError as error:
        raise ItemError("unsendable_request", f"{role} for {item}: {error}") from error


def read_embeddings(raw: bytes, *, count: int, fallback_tokens: int) -> ChatAnswer:
    """Its content is a JSON list of the vectors as base64, in the order of the texts.

    Raises BadBodyError where there are not `count` vectors of one size and finite numbers.
    """
    try:
        data = json.loads(raw)
        listed = sorted(data["data"], key=lambda entry: entry["index"])
        kept = [_kept(entry["embedding"]) for entry in listed]
        indexes = [entry["index"] for entry in listed]
    except (ValueError, LookupError, TypeError, RecursionError, struct.error) as error:
        raise BadBodyError(f"no embeddings ({error!r}); starts {raw[:60]!r}") from None
    if indexes != list(range(count)) or len({len(vector) for vector in kept}) > 1:
        raise BadBodyError(f"not {count} vectors of one size; starts {raw[:60]!r}")
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    tokens = usage.get("prompt_tokens")
    tokens = tokens if type(tokens) is int and tokens >= 0 else fallback_tokens
    return ChatAnswer(json.dumps(kept), [], None, "stop", tokens, 0)


def vectors_of(content: str) -> list[list[float]]:
    """From the content that `read_embeddings` made."""
    return [_floats(base64.b64decode(text)) for text in json.loads(content)]


def _kept(value: Any) -> str:
    """Some servers send numbers whatever they are asked for."""
    if isinstance(value, str):
        try:
            packed = base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from None
    else:
        packed = struct.pack(f"<{len(value)}f", *value)
    if not packed or len(packed) % 4 or not all(map(math.isfinite, _floats(packed))):
        raise ValueError("a vector is empty, cut off or not finite")
    return base64.b64encode(packed).decode()


def _floats(packed: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))
