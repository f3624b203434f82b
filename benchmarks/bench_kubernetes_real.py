"""Environments of episodes in real Pods, many held at once, beside the same ones on this machine.

    SYNTH_TEST_DATA=FOLDER python benchmarks/bench_kubernetes_real.py [--count 200] [--servers 20]

The API server is the double of `tests/kubernetes`, the Pods are real: bubblewrap with the limits of
the Pod, as the players' one node runs them. Each is what one episode works in, leased as a run does
it under `sandboxes.backend = "kubernetes"`: programming problems, repositories with a planted bug,
and MCP servers. All are begun and held; then in every one of them the work is done that solves its
task, and of the first ones the graded tests are run, in Pods of their own. Each play is compared
with the same one in sandboxes of this machine.

One JSON line for each part, then the same as a table. Client, API server, controllers, node and
programs share this machine: times say what the way through a cluster's API costs, and nothing of a
cluster.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import machine, show
from records.errors import ConfigError
from sandboxes.code.problems import judge
from sandboxes.code.suite import run_suite
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes.backend import KubernetesBackend
from sandboxes.kubernetes.settings import KubernetesSettings
from sandboxes.lending.leases import available, lease, place_in_use
from sandboxes.lending.places import SandboxesConfig
from sandboxes.mcp.launch import launch_of
from sandboxes.mcp.servers import builtin_servers
from sandboxes.mcp.warm import WarmServers
from synth.render.clusters import figures_of
from tests.kubernetes import environments
from tests.kubernetes.environments import Case, Graded, Plays, Record, reached
from tests.kubernetes.holding import memory, used
from tests.kubernetes.leaks import left, on_the_real_node, pods_made, running
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage, staged

REPOSITORIES = ("coinpurse", "daybook", "textgrid")
MOST_SERVERS = 20
ALONE = 3
"""Plays of each kind that go on one after the other, for how long their calls take."""
STARTS = 5
GONE_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="Pods held at once, 250 at most")
    parser.add_argument("--servers", type=int, default=MOST_SERVERS, help="of them MCP servers")
    parser.add_argument("--at-once", type=int, default=4, help="environments begun, and at work")
    options = parser.parse_args()
    if why := unable() or available():
        raise ConfigError(f"no real Pods and sandboxes here: {why}")
    if not 3 * ALONE <= options.count <= 250 or not 0 <= options.servers <= MOST_SERVERS:
        raise ConfigError(
            f"--count is {3 * ALONE} to 250 and --servers 0 to {MOST_SERVERS}, got "
            f"{options.count} and {options.servers}"
        )
    bugs = {name: asyncio.run(environments.planted(name)) for name in REPOSITORIES}
    cases = chosen(bugs, options.count, options.servers)
    here = asyncio.run(Measured(SandboxesConfig(), None, 2).whole(once_each(cases)))
    show({"what": "here", "plays": len(here.records), **here.figures})
    with staged(nodes="real=1") as stage:
        settings = stage.settings(stream_cpus=1, heartbeat_s=5, owner_dead_s=60)
        there = Measured(on_cluster(settings), stage, options.at_once)
        asyncio.run(there.whole(cases))
        same = asyncio.run(planted_there(on_cluster(settings), bugs))
        show({"what": "there", **there.figures, "bugs_planted_alike": same})
        known = {(record.kind, record.name): record for record in here.records}
        equal = compared(there.records, known)
        show({"what": "equal", **equal})
        candidates = asyncio.run(per_candidate(stage, settings, cases))
        show({"what": "Pods for a graded candidate", **candidates})
    print(table(here, there, equal, candidates))


def on_cluster(settings: KubernetesSettings) -> SandboxesConfig:
    return SandboxesConfig(backend="kubernetes", kubernetes=settings)


def chosen(bugs: dict[str, Any], count: int, servers: int) -> list[Case]:
    """So many cases, those of a kind in turn; the first ones are `ALONE` of each kind."""
    names = [name for name in builtin_servers() if can_start(name)]
    writing = [name for name in names if builtin_servers()[name].may_write]
    reading = [name for name in names if name not in writing]  # shared by episodes: one of each
    of_servers = itertools.chain(reading, itertools.cycle(writing))
    of_code = zip(
        itertools.cycle(environments.problems()),
        itertools.cycle(environments.repository(name, bug) for name, bug in bugs.items()),
        strict=False,
    )
    code = list(itertools.islice(itertools.chain.from_iterable(of_code), count - servers))
    found = [environments.server(name) for name in itertools.islice(of_servers, servers)]
    first = [*code[: 2 * ALONE], *found[:ALONE]]
    return [*first, *code[2 * ALONE :], *found[ALONE:]]


def can_start(name: str) -> bool:
    """Whether this machine has a built-in server's program."""
    try:
        launch_of(builtin_servers()[name])
    except ConfigError:
        return False
    return True


def once_each(cases: Sequence[Case]) -> list[Case]:
    """The first cases, which are timed, and those of other names once."""
    found = {(case.kind, case.name): case for case in reversed(cases)}
    first = list(cases[: 3 * ALONE])
    known = {(case.kind, case.name) for case in first}
    return [*first, *(case for key, case in found.items() if key not in known)]


class Measured:
    """The plays in one place, and what they took."""

    def __init__(self, place: SandboxesConfig, stage: Stage | None, at_once: int) -> None:
        self._place, self._stage, self._at_once = place, stage, at_once
        self.records: list[Record] = []
        self.took: dict[str, list[float]] = {}
        self.figures: dict[str, Any] = {}

    async def whole(self, cases: Sequence[Case]) -> "Measured":
        owner = None
        async with self._place.in_use(), WarmServers(len(cases)) as servers:
            plays = Plays(
                servers, begun_at_once=self._at_once, at_once=self._at_once,
                alone=3 * ALONE, graded=3 * ALONE if self._stage else None,
            )  # fmt: skip
            self.took = plays.took
            plays.took["start of a sandbox"] = [await started() for _ in range(STARTS)]
            begun, cpu, size = time.monotonic(), used(), memory()

            async def held() -> None:
                took = time.monotonic() - begun
                self.figures |= {"held": len(cases), "held_after_s": round(took, 1)}
                if self._stage is not None:
                    pods = await asyncio.to_thread(running, self._stage)
                    self.figures |= {
                        "pods_running": len(pods),
                        "containers": on_the_real_node(self._stage),
                        "client_cpu_ms_each": round(1000 * (used() - cpu) / len(cases), 1),
                        "client_kib_each": round((memory() - size) / len(cases) / 1024, 1),
                    }

            self.records = await plays.run(cases, held)
            self.figures["worked_after_s"] = round(time.monotonic() - begun, 1)
            self.figures["begun_again"] = plays.begun_again
            backend = place_in_use().backend
            if isinstance(backend, KubernetesBackend):
                owner = (await backend.held()).session.owner.name
                self.figures["counts"] = dict(await backend.figures())
            servers.pool.accounts.check()
            self.figures["leases"] = {k: n for k, n in servers.pool.accounts.counts().items() if n}
        self.figures["kinds"] = dict(Counter(record.kind for record in self.records))
        self.figures["reached"] = sum(map(reached, self.records))
        if owner is not None and self._stage is not None:
            self.figures |= gone(self._stage, owner)
        self.figures["ms"] = {what: ms(values) for what, values in self.took.items()}
        return self


async def started() -> float:
    """Seconds until a fresh sandbox, which shows nothing, has run a program."""
    begun = time.monotonic()
    async with lease(SandboxTemplate()) as sandbox:
        await sandbox.exec(["true"])
        return time.monotonic() - begun


def gone(stage: Stage, owner: str) -> dict[str, int]:
    """What is left of the owner in the API, and of containers on the node, once nothing is or
    `GONE_S` are over."""
    end = time.monotonic() + GONE_S
    while True:
        found = {
            "objects_left": len(left(stage, owner)),
            "containers_left": on_the_real_node(stage),
        }
        if not any(found.values()) or time.monotonic() > end:
            return found
        time.sleep(0.5)


def ms(values: Sequence[float]) -> dict[str, float]:
    found = [1000 * value for value in values]
    return {"median": round(statistics.median(found), 1), "n": len(found)}


async def planted_there(place: SandboxesConfig, bugs: dict[str, Any]) -> bool:
    """Whether the first repository's bug is found on the cluster as it is here."""
    name = REPOSITORIES[0]
    async with place.in_use():
        return await environments.planted(name) == bugs[name]


def compared(records: Sequence[Record], known: dict[tuple[str, str], Record]) -> dict[str, Any]:
    """How many plays are the same in both places, of those that the infrastructure did not fail;
    what was graded in one place alone is not compared."""
    lost = [record for record in records if record.lost is not None]
    same = graded = 0
    for record in records:
        other = known[record.kind, record.name]
        same += record.answers == other.answers
        if record.in_the_end is not None:
            graded += (record.at_first, record.in_the_end) == (other.at_first, other.in_the_end)
    return {
        "plays": len(records), "same_answers": same,
        "graded": sum(record.in_the_end is not None for record in records), "same_grades": graded,
        "lost": len(lost), "why": [record.lost for record in lost][:5],
    }  # fmt: skip


async def per_candidate(
    stage: Stage, settings: KubernetesSettings, cases: Sequence[Case]
) -> dict[str, Any]:
    """Pods made for the graded tests of one candidate, with two spare Pods for each template."""
    found: dict[str, Any] = {}
    async with on_cluster(settings.model_copy(update={"warm": 2})).in_use():
        for kind in ("problem", "repository"):
            graded = next(case.graded for case in cases if case.kind == kind)
            assert graded is not None
            before, begun = await asyncio.to_thread(pods_made, stage), time.monotonic()
            await tests_run(graded)
            took = time.monotonic() - begun
            await asyncio.sleep(2)  # for spare ones to come
            made = await asyncio.to_thread(pods_made, stage) - before
            found[kind] = {"pods": made, "tests": len(graded.tests), "s": round(took, 1)}
    return found


async def tests_run(graded: Graded) -> None:
    environment, start, tests = graded
    if environment.problem is not None:
        await judge(environment.problem, start, tests)
    else:
        await run_suite(environment.project, start, tests)


def table(here: Measured, there: Measured, equal: dict[str, Any], pods: dict[str, Any]) -> str:
    """For a page of figures."""
    found, kinds = there.figures, there.figures["kinds"]
    counted = [f"{name}: {value}" for _, name, value in figures_of(found["counts"])]
    whole = [
        ("environments held at once", ", ".join(f"{n} {kind}" for kind, n in kinds.items())),
        (
            "Pods that ran then, and their containers",
            f"{found['pods_running']}, {found['containers']}",
        ),
        ("time until all were held", f"{found['held_after_s']} s"),
        ("plays that did what they are for", f"{found['reached']} of {equal['plays']}"),
        ("plays answered as on this machine", f"{equal['same_answers']} of {equal['plays']}"),
        ("graded candidates with the same grades", f"{equal['same_grades']} of {equal['graded']}"),
        (
            "plays lost to the infrastructure; begun again",
            f"{equal['lost']}; {found['begun_again']}",
        ),
        ("processor of the client until held, each", f"{found['client_cpu_ms_each']} ms"),
        ("memory of the client, each", f"{found['client_kib_each']} KiB"),
        (
            "objects and containers left after",
            f"{found['objects_left']}, {found['containers_left']}",
        ),
    ]
    lines = ["", f"{machine()}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in whole]
    lines += ["", *(f"- {each}" for each in counted), ""]
    lines += ["| median, ms | here | there | added | n |", "|---|---|---|---|---|"]
    for what, values in there.figures["ms"].items():
        was, now = here.figures["ms"][what]["median"], values["median"]
        lines.append(f"| {what} | {was} | {now} | {round(now - was, 1)} | {values['n']} |")
    lines += [f"- Pods for a graded {kind}: {each}" for kind, each in pods.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
