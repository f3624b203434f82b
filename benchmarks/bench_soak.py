"""A run through outages, a quota, faults and a proxy that cuts silent connections.

    python benchmarks/bench_soak.py [--minutes 20] [--in-flight 64]

The pipeline asks one endpoint in a process of its own (`soak_server.py`). From its rollouts on the
endpoint allows so many requests a window of time, and says so in headers in the second half only;
is gone for 15% of the time, twice: nobody listens, then everything is answered 503; and spoils 5%
of the requests (500, reset, cut stream, malformed JSON). Some answers take longer than the proxy
bears silence, which only streaming survives.

Printed are, as one line of JSON each, what was found and whether it is as it must be: every item is
accounted for and none failed for what was around it; the ledger has the server's tokens for every
answer that arrived, and those cut off are bounded by their reservations; the server was asked as
often as it allowed, within a tenth. Exit code 1 if not. A short soak (`--minutes 3`) has
everything in short.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from benchmarks.soak_server import SILENT_S, Books, SoakServer, Timetable, soak_server
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.engine.plans import StageReport
from synth.llm.endpoint.failures import MEANINGS
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES

REQUESTS_PER_ROLLOUT = 10.8
"""With the offline model and these domains, measured."""

ATTEMPTS = 4
WITHIN = 0.1
"""Of the rate that the server allowed."""

AT_ONCE_S = 3.0
"""After the server went away, the last connection is lost."""


class Finding(NamedTuple):
    name: str
    holds: bool
    figures: dict[str, Any]


def config_of(url: str, timetable: Timetable, in_flight: int) -> RunConfig:
    """Enough rollouts to last until the timetable is through."""
    rollouts = timetable.up_s * timetable.per_second / REQUESTS_PER_ROLLOUT + in_flight
    role = {"base_url": url, "profile": {"stream": True}, "max_in_flight": in_flight}
    return RunConfig.model_validate(
        {
            "name": "soak",
            "roles": {"all": role},
            "domains": ["clinic_desk", "web_shop"],
            "servers": [],
            "code": [],
            "num_tasks": round(rollouts / ATTEMPTS),
            "rollouts": {"attempts": ATTEMPTS},
            "concurrency": in_flight + in_flight // 8,
            "workers": 1,
            "shard_size": 10_000,  # one shard after another would drain the endpoint in between
            "max_failed": 1.0,
            "outage_s": 3600.0,
        }
    )


async def soak(folder: Path, config: RunConfig, server: SoakServer) -> list[StageReport]:
    reports = []
    async with open_run(config, str(folder), command="soak") as run:
        for make_stage in STAGES:
            stage = make_stage(run)
            if stage.name == "rollouts":
                server.begin()
            reports.append(await run.run_stage(stage))
    return reports


def accounted(reports: list[StageReport]) -> Finding:
    counts = Counter[str]()
    for report in reports:
        row = {name: getattr(report, name) for name in ("kept", "dropped", "failed", "pending")}
        counts.update(row | {"requested": report.requested})
    whole = counts["kept"] + counts["dropped"] + counts["failed"] + counts["pending"]
    vain = {report.stage: report.vain for report in reports if report.vain}
    troubles = {report.stage: report.troubles for report in reports if report.troubles}
    holds = whole == counts["requested"] and not counts["pending"] and not troubles
    return Finding("items", holds, {**counts, "vain": vain, "troubles": troubles})


def tokens(rows: list[Row], books: Books) -> Finding:
    """A row for each answer that arrived, with the tokens that the server charges for it; and for
    each that did not, a row with its worst case."""
    answered = Counter((r["prompt_tokens"], r["completion_tokens"]) for r in rows if _is_ok(r))
    arrived = Counter((bill.prompt, bill.completion) for bill in books.arrived)
    cut = [bill.prompt + bill.completion for bill in books.cut]
    reserved = sorted(_tokens(r) for r in rows if r["status"] in MEANINGS and _is_billed(r))
    bounded = len(cut) <= len(reserved) and sum(cut) <= sum(reserved)
    figures = {
        "answers": answered.total(),
        "server_tokens": sum((p + c) * n for (p, c), n in arrived.items()),
        "ledger_tokens": sum((p + c) * n for (p, c), n in answered.items()),
        "only_server_has": (arrived - answered).total(),
        "only_ledger_has": (answered - arrived).total(),
        "cut_answers": len(cut),
        "cut_tokens": sum(cut),
        "billed_failures": len(reserved),
        "their_reserved_tokens": sum(reserved),
    }
    return Finding("tokens", answered == arrived and bounded, figures)


def rate(rows: list[Row], books: Books, timetable: Timetable) -> Finding:
    """While there was more to ask than the server allowed: until the last rollout began."""
    first: dict[str, float] = {}
    for row in rows:
        if row["stage"] == "rollouts":
            at = row["started_at"].timestamp()
            first[row["item_id"]] = min(at, first.get(row["item_id"], at))
    begin, end = books.begun, max(first.values())
    down_s = sum(max(0.0, min(end, back) - gone) for gone, back in books.outages if gone < end)
    up_s = end - begin - down_s
    asked = sum(begin <= at <= end for at in books.admitted)
    share = asked / (timetable.per_second * up_s)
    refused = sum(begin <= at <= end for at in books.over_quota)
    figures = {
        "allowed_per_s": timetable.per_second,
        "asked_per_s": round(asked / up_s, 2),
        "share_of_allowed": round(share, 3),
        "up_s": round(up_s),
        "over_quota_per_answer": round(refused / max(1, asked), 3),
        "most_in_flight": books.most_in_flight,
    }
    holds = abs(share - 1) <= WITHIN and all(back < end for _, back in books.outages)
    return Finding("rate", holds and len(books.outages) == len(timetable.outages), figures)


def outages(rows: list[Row], books: Books) -> Finding:
    """How long each lasted, and until an answer began after it."""
    starts = sorted(row["started_at"].timestamp() for row in rows if _is_ok(row))
    found = [
        {
            "lasted_s": round(back - gone, 1),
            "went_on_after_s": round(min(at for at in starts if at >= back) - back, 1),
            "requests_meanwhile": sum(gone <= r["started_at"].timestamp() < back for r in rows),
        }
        for gone, back in books.outages
    ]
    return Finding("outages", True, {"outages": found})


def faults(rows: list[Row], books: Books) -> Finding:
    """That what was to happen did, and that the proxy cut nothing that was streamed."""
    silent = [
        row
        for row in rows
        if row["status"] == "connection_lost"
        and row["latency_s"] >= SILENT_S - 1.0
        and not any(abs(_end(row) - gone) < AT_ONCE_S for gone, _ in books.outages)
    ]
    figures = {
        "faults": books.faults,
        "long_answers": books.long,
        "lost_in_silence": len(silent),
        "server_statuses": books.statuses,
        "ledger_statuses": dict(Counter(row["status"] for row in rows)),
    }
    return Finding("faults", bool(books.faults and books.long) and not silent, figures)


def memory() -> Finding:
    """The most that the run's process held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Finding("memory", True, {"run_mib": round(most)})


def _is_ok(row: Row) -> bool:
    return row["status"] == "ok" and not row["cache_hit"]


def _end(row: Row) -> float:
    return row["started_at"].timestamp() + row["latency_s"]


def _is_billed(row: Row) -> bool:
    return MEANINGS[row["status"]].billed


def _tokens(row: Row) -> int:
    return row["prompt_tokens"] + row["completion_tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--in-flight", type=int, default=64)
    args = parser.parse_args()
    timetable = Timetable(args.minutes)
    with tempfile.TemporaryDirectory() as name, soak_server(timetable) as server:
        folder = Path(name) / "dataset"
        config = config_of(server.url, timetable, args.in_flight)
        reports = asyncio.run(soak(folder, config, server))
        books = server.end()
        rows = Dataset.open(folder).rows("llm_calls")
    parameters = {"in_flight": args.in_flight, **timetable._asdict()}
    findings = [
        accounted(reports),
        tokens(rows, books),
        rate(rows, books, timetable),
        outages(rows, books),
        faults(rows, books),
        memory(),
    ]
    for name, holds, figures in findings:
        show({"name": f"soak/{name}", "holds": holds, **figures, "parameters": parameters})
    raise SystemExit(not all(finding.holds for finding in findings))


if __name__ == "__main__":
    main()
