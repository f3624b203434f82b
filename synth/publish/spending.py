"""What models were asked and what it cost, from the ledger: by role, and what did not go well.

The server's words are foreign text: whoever shows them makes them safe
(synth.render.foreign_text, autoescape).
"""

from dataclasses import dataclass

import duckdb

from records.tables.schemas import Row
from synth.publish.rows import rows_of


@dataclass(frozen=True, slots=True)
class Spending:
    roles: list[Row]
    """By role and model: `requests` that were sent, `reused` answers of the journal, `not_ok`;
    `prompt_tokens` and `cached_tokens` among them, `completion_tokens` and `reasoning_tokens` among
    them; `cost_usd`, `cost_per_accepted`, and the median of `latency_s`."""
    failures: list[Row]
    """Requests whose status is not `ok` by role and status: `n`, and `example`, the server's words
    about the newest."""
    fallbacks: list[Row]
    """What changed in the form of requests because a server refused a field, by model: `n`, and
    `first_at`."""

    @property
    def cost_usd(self) -> float:
        return sum(row["cost_usd"] for row in self.roles)

    @property
    def tokens(self) -> int:
        return sum(row["prompt_tokens"] + row["completion_tokens"] for row in self.roles)


def spending(db: duckdb.DuckDBPyConnection, *, accepted: int) -> Spending:
    """Of everything that the dataset's runs asked; `accepted` trajectories share the cost."""
    roles = [
        row | {"cost_per_accepted": row["cost_usd"] / accepted if accepted else None}
        for row in rows_of(db, _ROLES)
    ]
    return Spending(roles, rows_of(db, _FAILURES), rows_of(db, _FALLBACKS))


_ROLES = """
SELECT role, model, count(*) FILTER (NOT cache_hit) AS requests,
  count(*) FILTER (cache_hit) AS reused,
  coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens,
  coalesce(sum(cached_tokens), 0)::BIGINT AS cached_tokens,
  coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens,
  coalesce(sum(reasoning_tokens), 0)::BIGINT AS reasoning_tokens,
  coalesce(sum(cost_usd), 0.0) AS cost_usd, median(latency_s) FILTER (NOT cache_hit) AS latency_s,
  count(*) FILTER (status != 'ok') AS not_ok
FROM llm_calls GROUP BY ALL ORDER BY role, model"""

_FAILURES = """
SELECT role, status, count(*) AS n,
  coalesce(arg_max(detail, started_at) FILTER (detail IS NOT NULL), '') AS example
FROM llm_calls WHERE status != 'ok' GROUP BY ALL ORDER BY n DESC, role, status"""

_FALLBACKS = """
SELECT model, fallback, count(*) AS n, min(started_at) AS first_at
FROM llm_calls WHERE coalesce(fallback, '') != '' GROUP BY ALL ORDER BY model, first_at, fallback"""
