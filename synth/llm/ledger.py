"""Rows of the table `llm_calls`: one per request sent, whatever came of it, and one per cache hit.

What may have been billed is also in the shard's journal, so that a run that died knows what it
spent: with the answer, or, where there is none, under a key of its own. Rows with one
`call_id` are about one request; how it ended holds over that it was sent.
"""

import secrets
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from records.store.journal import ShardJournal
from records.tables.columns import renamed_row
from records.tables.schemas import Row
from synth.llm.budget import NOTHING, Amount

PENDING = "unanswered"
"""Status of a request that was sent and, as far as the journal knows, never answered. It counts
with its worst case, because the server may have charged for it."""

_LATER: Row = {"cached_tokens": 0, "reasoning_tokens": 0, "fallback": None, "detail": None}
"""Columns that came later than journals."""


def new_row(
    *,
    invocation_id: str,
    stage: str,
    item: str,
    role: str,
    step: str,
    attempt: int,
    model: str,
    request_hash: str,
) -> Row:
    """A row that has cost nothing yet. `attempt` counts repairs; retries are rows of their own."""
    return {
        "call_id": secrets.token_hex(8),  # measured tables need no stable ids
        "invocation_id": invocation_id,
        "stage": stage,
        "item_id": item,
        "role": role,
        "step": step,
        "attempt": attempt,
        "model": model,
        "request_hash": request_hash,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "cost_usd": 0.0,
        "latency_s": 0.0,
        "cache_hit": False,
        "status": PENDING,
        "started_at": datetime.now(UTC),
        **_LATER,
    }


def to_journal(row: Row) -> dict[str, Any]:
    return row | {"started_at": row["started_at"].isoformat()}


def journalled_rows(journal: ShardJournal) -> list[Row]:
    """What this shard's requests cost so far, one row per request, in the order of sending.

    Complete for what may have been billed; refusals and cache hits of a process that died are
    gone with it.
    """
    rows: dict[str, Row] = {}
    for response in journal.remembered():
        row = response["row"]
        if row["status"] != PENDING or row["call_id"] not in rows:
            started_at = datetime.fromisoformat(row["started_at"])
            rows[row["call_id"]] = {
                **_LATER,  # a journal of an earlier version may lack them
                **renamed_row("llm_calls", row),
                "started_at": started_at,
            }
    return sorted(rows.values(), key=lambda row: row["started_at"])


def spent_in(rows: Iterable[Row]) -> dict[str, Amount]:
    """Spent so far by stage, for `Budget`: committed rows and `journalled_rows` of every journal
    of the run, in any order. A call that is in both counts once."""
    spent: dict[str, Amount] = {}
    for row in _distinct(rows):
        amount = Amount(row["cost_usd"], row["prompt_tokens"] + row["completion_tokens"])
        spent[row["stage"]] = spent.get(row["stage"], NOTHING).plus(amount)
    return spent


def _distinct(rows: Iterable[Row]) -> Iterator[Row]:
    seen: set[str] = set()
    for row in rows:
        if row["call_id"] not in seen and not row["cache_hit"]:
            seen.add(row["call_id"])
            yield row
