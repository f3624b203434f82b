"""Commands about where foreign code runs: sandbox doctor, run, bench, faults, accounts, reap."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from flows.cli.shared.options import DatasetOption, Json
from flows.cli.shared.output import print_rows

if TYPE_CHECKING:
    from sandboxes.core.sandbox import ExecResult
    from sandboxes.core.template import SandboxTemplate
    from sandboxes.local.doctor import Enforcement


def register(app: App) -> None:
    sandbox = App(name="sandbox", help="Sandboxes: what runs other people's code here.")
    for command in (doctor, run, bench, faults, accounts, reap):
        sandbox.command(command)
    app.command(sandbox)


def doctor(config: Path | None = None, /, *, kubernetes: bool = False, json_: Json = False) -> None:
    """Say what the sandbox of this machine can enforce and what it cannot.

    With `--kubernetes` it is a cluster's: what is there of what sandboxes need, what is missing and
    the command that mends it. It starts one sandbox and removes it. Exit code 1 where none can run.

    Parameters
    ----------
    config
        A run's configuration, whose table `[sandboxes.kubernetes]` says which cluster; without it
        all its settings are the defaults.
    kubernetes
        Ask the cluster instead of this machine.
    json_
        Print a JSON list of objects.
    """
    from records.errors import ConfigError, SynthError
    from sandboxes.lending.leases import available
    from sandboxes.local.doctor import Enforcement, enforceable

    if kubernetes:
        import asyncio

        rows = asyncio.run(cluster_findings(config))
        print_rows(Enforcement._fields, rows, json_=json_)
        if missing := [row.what for row in rows if row.holds == "no"]:
            raise SynthError(f"no sandbox can run on this cluster: {', '.join(missing)}")
        return
    if config is not None:
        raise ConfigError(f"sandbox doctor reads {config} only with --kubernetes")
    print_rows(Enforcement._fields, enforceable(available()), json_=json_)


async def cluster_findings(config: Path | None) -> "list[Enforcement]":
    """What the doctor finds of the cluster that a configuration names."""
    import tomllib

    from pydantic import ValidationError

    from records.errors import ConfigError
    from sandboxes.kubernetes.settings import KubernetesSettings

    try:
        text = "" if config is None else config.read_text(encoding="utf-8")
        table = tomllib.loads(text).get("sandboxes", {}).get("kubernetes", {})
        settings = KubernetesSettings.model_validate(table)
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigError(f"{config}: {error}") from error
    try:
        from sandboxes.kubernetes.doctor import findings
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"sandboxes on Kubernetes need a client ({error}): pip install 'agentic-synth[k8s]'"
        ) from error
    return await findings(settings)


def run(
    *argv: Annotated[str, Parameter(allow_leading_hyphen=True)],
    timeout_s: float = 30.0,
    memory_mb: int = 512,
    disk_mb: int = 64,
) -> int:
    """Run one command in a fresh sandbox: `synth sandbox run -- ls -la`. No network, no files of
    this machine beside /usr; what it leaves is thrown away.

    Ends with the command's exit code, and 124 when its time ran out. Input is passed on. What would
    steer a terminal is made visible on one, and is passed on as it is to anything else.

    Parameters
    ----------
    argv
        The command and its arguments, after `--`.
    timeout_s
        Wall clock; then everything it started is killed.
    memory_mb
        All its processes together.
    disk_mb
        Size of its workspace, and of its /tmp.
    """
    import asyncio

    from pydantic import ValidationError

    from records.errors import ConfigError
    from sandboxes.core.template import Limits, SandboxTemplate

    if not argv:
        raise ConfigError("sandbox run needs a command: synth sandbox run -- echo hello")
    try:
        limits = Limits(timeout_s=timeout_s, memory_mb=memory_mb, disk_mb=disk_mb)
    except ValidationError as error:
        raise ConfigError(f"sandbox run: {error}") from error
    stdin = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    done = asyncio.run(executed(SandboxTemplate(limits=limits), argv, stdin))
    for stream, said in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
        stream.buffer.write(visible(said) if stream.isatty() else said)
        stream.buffer.flush()
    if done.truncated:
        print("synth: output over the limit was left out", file=sys.stderr)  # noqa: T201
    if done.out_of_memory:
        print("synth: the memory limit was reached", file=sys.stderr)  # noqa: T201
    return 124 if done.timed_out else done.exit_code


def visible(said: bytes) -> bytes:
    """Text that steers no terminal: all but line breaks, tabs and what prints is written out."""
    text = said.decode(errors="backslashreplace")
    shown = (c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
    return "".join(shown).encode()


async def executed(
    template: "SandboxTemplate", argv: tuple[str, ...], stdin: bytes
) -> "ExecResult":
    from sandboxes.lending.leases import lease

    async with lease(template) as sandbox:
        return await sandbox.exec(argv, stdin=stdin)


def bench(*, repeats: int = 30, live: int = 60, json_: Json = False) -> None:
    """Measure sandboxes on this machine, beside a plain subprocess: latencies, rates, memory.

    Run by root it has columns for root, for a normal user and, where one can be made, for a user
    with a range in /etc/subuid; else one.

    Parameters
    ----------
    repeats
        Of every latency, and sandboxes made for the rates.
    live
        Sandboxes alive at once; their memory is measured then.
    json_
        Print a JSON list of objects.
    """
    import asyncio
    import os

    from sandboxes.bench.callers import ThreeCallers, all_three
    from sandboxes.bench.measure import Figure, figures

    check_available()
    if os.geteuid() == 0:
        rows = asyncio.run(all_three(repeats=repeats, live=live))
        print_rows(ThreeCallers._fields, rows, json_=json_)
    else:
        found = asyncio.run(figures(repeats=repeats, live=live))
        print_rows(Figure._fields, found, json_=json_)


def faults(*, json_: Json = False) -> None:
    """Make every fault happen that sandboxes are to survive, and say what became of each lease.

    Parameters
    ----------
    json_
        Print a JSON list of objects.
    """
    import asyncio

    from records.errors import SynthError
    from sandboxes.bench.faults import Survival, survived

    check_available()
    rows = asyncio.run(survived())
    print_rows(Survival._fields, rows, json_=json_)
    if lost := [row.fault for row in rows if not row.survived]:
        raise SynthError(f"not survived: {', '.join(lost)}")


def accounts(*, dataset: DatasetOption = None, json_: Json = False) -> None:
    """What became of every lease of a sandbox in the runs of a dataset, and of every sandbox.

    Each line with dashes is a part of the one above it. Exit code 1 where they do not add up. Of
    sandboxes on a cluster further lines tell claims, waits and failures of infrastructure.

    Parameters
    ----------
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print a JSON list of objects.
    """
    from collections import Counter

    from flows.runtime.settings import open_dataset
    from records.errors import SynthError
    from sandboxes.lending.accounts import Accounts
    from synth.engine.shard_maker import CLUSTER, LEASES

    counts: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for row in open_dataset(dataset).rows("timings", ["name", "count"]):
        for begin, of in ((LEASES, counts), (CLUSTER, there)):
            if row["name"].startswith(begin):
                of[row["name"].removeprefix(begin)] += row["count"]
    found = Accounts.of(counts)
    cluster = [(f"on the cluster: {name}", n) for name, n in sorted(there.items())]
    print_rows(("what", "count"), [*found.rows(), *cluster], json_=json_)
    try:
        found.check()
    except AssertionError as error:
        raise SynthError(str(error)) from error


def reap(*, json_: Json = False) -> None:
    """Remove what killed owners of sandboxes left on this machine, and nothing of living ones.

    Parameters
    ----------
    json_
        Print a JSON list of objects.
    """
    from sandboxes.local.reaper import Reaped
    from sandboxes.local.reaper import reap as reaped

    print_rows(Reaped._fields, [reaped()], json_=json_)


def check_available() -> None:
    from records.errors import ConfigError
    from sandboxes.lending.leases import available

    if (reason := available()) is not None:
        raise ConfigError(f"no sandbox can run here: {reason}")
