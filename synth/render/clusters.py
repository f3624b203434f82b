"""What happened to sandboxes on a cluster: claims, waits and failures, of a dataset's `timings`."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import duckdb

from synth.engine.shard_maker import CLUSTER

CLAIMS, WAITS, FAILURES = "claims", "waits", "infrastructure failures"

WORDS = {
    "asked": (CLAIMS, "sandboxes asked for"),
    "claimed": (CLAIMS, "claimed, or made as a Pod"),
    "pools": (CLAIMS, "warm pools made"),
    "filled": (CLAIMS, "Pods that took in the files of a template"),
    "streams": (CLAIMS, "streams opened"),
    "over_program": (CLAIMS, "ended by the program inside, and scored"),
    "waited_unschedulable": (WAITS, "claims that waited for a node"),
    "waited_quota": (WAITS, "Pods that waited for a quota"),
    "api_throttled": (WAITS, "requests that the API server throttled (429)"),
    "duplicate_claims": (FAILURES, "claims that got another one's Pod"),
    "fill_failed": (FAILURES, "Pods that could not be filled at once"),
    "not_gone": (FAILURES, "Pods that were not gone in time"),
    "api_unreached": (FAILURES, "requests that reached no API server"),
    "api_errors": (FAILURES, "requests that the API server failed (5xx)"),
    "failed_otherwise": (FAILURES, "did not start: its agent did not answer"),
}
"""What is counted -> where it stands and how it is called. Watches that resume are no failures."""

BEGINNINGS = (
    ("no_room_", WAITS, "no room in time"),
    ("failed_", FAILURES, "did not start"),
    ("over_", FAILURES, "lost while in use"),
)
"""Of names that end with a cause."""


class ClusterFigure(NamedTuple):
    group: str
    name: str
    value: str


def cluster_figures(db: duckdb.DuckDBPyConnection) -> list[ClusterFigure]:
    """Of all runs of a dataset; empty where none had sandboxes on a cluster."""
    rows = db.execute(_COUNTS, [CLUSTER]).fetchall()
    return figures_of({name.removeprefix(CLUSTER): int(n) for name, n in rows})


def figures_of(counts: Mapping[str, int]) -> list[ClusterFigure]:
    if not counts:
        return []
    found = [ClusterFigure(*_called(name), f"{n:,}") for name, n in _named(counts)]
    if asked := counts.get("asked"):
        waited = counts.get("waited_ms", 0) / 1000
        mean = f"{waited / asked:.2f} s ({waited:,.0f} s in all)"
        found.append(ClusterFigure(WAITS, "mean time until a sandbox answered", mean))
    if paced := counts.get("paced_ms"):
        words = "creations held back by `creations_per_s`"
        found.append(ClusterFigure(WAITS, words, f"{paced / 1000:,.1f} s in all"))
    lost = Counter(figure.group for figure in found)[FAILURES]
    if not lost:
        found.append(ClusterFigure(FAILURES, "none", "0"))
    order = (CLAIMS, WAITS, FAILURES)
    return sorted(found, key=lambda figure: order.index(figure.group))


def _named(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Those that have words, in their order, then those with a cause."""
    yield from ((name, counts[name]) for name in WORDS if counts.get(name))
    for begin, *_ in BEGINNINGS:
        yield from (
            (name, n)
            for name, n in sorted(counts.items())
            if name.startswith(begin) and name not in WORDS and n
        )


def _called(name: str) -> tuple[str, str]:
    if name in WORDS:
        return WORDS[name]
    begin, group, words = next(each for each in BEGINNINGS if name.startswith(each[0]))
    return group, f"{words}: {name.removeprefix(begin).replace('_', ' ')}"


_COUNTS = """
SELECT name, sum(count)::BIGINT AS n FROM timings WHERE starts_with(name, $1)
GROUP BY ALL HAVING n != 0 ORDER BY name"""
