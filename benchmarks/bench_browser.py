"""How long the browser's pages take over many trajectories.

    python benchmarks/bench_browser.py DATASET [--trajectories 100000] [--repeats 5] [--keep DIR]

The trajectories of a dataset (such as the demo's) with their tasks, calls, verdicts and decisions
are written again under other ids until there are enough, four commits a copy, into a dataset in a
temporary folder (`--keep DIR` for another, used again where it is there). Then the
server is started as `synth browse` starts it, in a process of its own, and asked over HTTP. One
JSON line for each page: seconds from the request to the last byte, median of the repeats and their
range. The first line is the start: from the command to the printed address.
"""

import argparse
import contextlib
import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.marked_rows import commit, marked  # noqa: E402
from benchmarks.measured import show, spread  # noqa: E402
from records.store.commits import ItemStatus  # noqa: E402
from records.store.dataset import Dataset  # noqa: E402

STAGES = {
    "tasks": ("tasks",),
    "rollouts": ("trajectories", "tool_calls"),
    "grading": ("verdicts",),
    "curation": ("curation",),
}
"""Stage -> tables that a commit of it brings."""

ONCE = ("domains", "tools", "agents", "personas", "runs")
BY_SQL = "select trajectory_id from trajectories where num_errors > 2"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--trajectories", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = args.keep or Path(folder) / "many"
        if not root.exists():
            multiply(Dataset.open(args.dataset), root, args.trajectories)
        measure(root, args.repeats)


def multiply(source: Dataset, root: Path, wanted: int) -> None:
    """Write the source's trajectories again and again under other ids."""
    target = Dataset.create_or_open(root)
    once = {table: source.rows(table) for table in ONCE}
    target.commit(run_id="many", stage="tools", shard=0, tables=once)
    stored = {table: source.arrow(table) for tables in STAGES.values() for table in tables}
    ids = stored["trajectories"]["trajectory_id"].to_pylist()
    for copy in range(-(-wanted // len(ids))):
        mark = f"{copy:05x}"
        for stage, tables in STAGES.items():
            parts = {table: marked(stored[table], mark) for table in tables}
            done = {f"{mark}-{i}": ItemStatus("kept", None) for i in ids}
            commit(target, stage, copy, parts, done if stage == "rollouts" else {})
        print(f"{(copy + 1) * len(ids):,} of {wanted:,}", file=sys.stderr)


def measure(root: Path, repeats: int) -> None:
    with served(root) as (address, started):
        ask = Asked(address)
        [trajectory_id] = ask.first_ids(1)
        at = f"/d/{root.name}"
        pages = {
            "datasets": "/",
            "overview": at,
            "first page of trajectories": f"{at}/trajectories",
            "filter by a facet": f"{at}/trajectories?decision=rejected",
            "filter by three facets": f"{at}/trajectories?decision=rejected"
            "&variant=normal&drop_reason=failed_state",
            "the beginning of an id": f"{at}/trajectories?id=00012",
            "the last page": f"{at}/trajectories?page=1900",
            "filter by SQL": f"{at}/trajectories?sql={quote(BY_SQL)}",
            "a conversation": f"{at}/trajectories/{quote(trajectory_id)}",
            "costs": f"{at}/costs",
        }
        with Dataset.open(root).connect() as db:
            [counts] = db.execute("SELECT count(*) FROM trajectories").fetchall()
        size = {"trajectories": counts[0], "commits": len(Dataset.open(root).commits())}
        show({"page": "start", **size, "seconds": round(started, 2)})
        for words, path in pages.items():
            seconds = [ask.seconds(path) for _ in range(repeats + 1)]
            line = {"page": words, **size, "first_s": round(seconds[0], 3)}
            show(line | spread(seconds[1:], digits=3))


@contextlib.contextmanager
def served(root: Path) -> Iterator[tuple[str, float]]:
    """The printed address, and the seconds until it was printed."""
    command = [sys.executable, "-m", "flows.cli", "browse", str(root), "--port", "0"]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


class Asked:
    """A client with the key."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host = parts.netloc
        answer, _ = self._get(f"{parts.path}?{parts.query}", {})
        self._cookie = (answer.headers["set-cookie"] or "").partition(";")[0]

    def seconds(self, path: str) -> float:
        began = time.perf_counter()
        answer, _ = self._get(path, {"cookie": self._cookie})
        assert answer.status == 200, f"{path}: {answer.status}"
        return time.perf_counter() - began

    def first_ids(self, number: int) -> list[str]:
        at = self._get("/", {"cookie": self._cookie})[1].split('href="/d/')[1].split('"')[0]
        page = self._get(f"/d/{at}/trajectories", {"cookie": self._cookie})[1]
        return [p.split('"')[0] for p in page.split(f"/d/{at}/trajectories/")[1 : number + 1]]

    def _get(self, path: str, headers: dict[str, str]) -> tuple[Any, str]:
        connection = http.client.HTTPConnection(self._host, timeout=600)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text


if __name__ == "__main__":
    main()
