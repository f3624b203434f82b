"""The first request of each role while somebody wants to see them, such as a dry run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_kept: ContextVar[dict[str, Mapping[str, Any]] | None] = ContextVar("first_requests", default=None)


@contextmanager
def first_requests() -> Iterator[dict[str, Mapping[str, Any]]]:
    """Role -> body of its first chat request, before a profile shapes it, or the texts of its first
    request of vectors as `input`, of those that are made inside; tasks that are begun there are
    inside, other processes are not."""
    kept: dict[str, Mapping[str, Any]] = {}
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


def note_request(role: str, body: Mapping[str, Any]) -> None:
    """Keeps the body if it is the role's first and somebody wants it."""
    kept = _kept.get()
    if kept is not None:
        kept.setdefault(role, body)
