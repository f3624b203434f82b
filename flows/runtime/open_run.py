"""Open a run: hold the dataset, check the endpoints, write down start and end.

Whatever runs inside shares it: one lease, one budget, one invocation.
"""

import math
import platform
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from flows.runtime.progress import StageProgress, log
from flows.runtime.settings import live_servers
from offline_llm.app import create_app
from records.errors import BudgetError, PendingError, UnavailableError
from records.store.dataset import Dataset
from records.store.journal import ShardJournal
from records.store.lease import hold, remove_unused
from records.store.marker import read_marker
from records.tables.schemas import Row
from sandboxes.lending.capacity import machine_live
from sandboxes.mcp.warm import WarmServers
from synth.catalogue.evolution.config import EvolveConfig, check_domains
from synth.curation.evaluation_index import check_decontamination
from synth.engine.context import ConfigT
from synth.engine.job_config import JobConfig
from synth.engine.processes.executor import LocalProcesses
from synth.engine.run import Run
from synth.judging.config import JudgedConfig
from synth.judging.judge_report import judge_report
from synth.judging.labels import commit_waiting_labels
from synth.judging.stages import grading_of
from synth.llm.budget import Amount, Budget
from synth.llm.endpoint.batch import Batches
from synth.llm.endpoint.batch_store import BatchStore
from synth.llm.gateway import Exchange, Gateway
from synth.llm.ledger import journalled_rows, spent_in
from synth.llm.probing.probe import probe
from synth.llm.profiles import Profiles, read_profiles, write_profiles
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import calls_tools, check_sources, install_servers
from synth.rephrasing.stage import sources_of
from synth.rephrasing.writing.config import RephraseConfig

VERSIONS_OF = ("agentic-synth", "prefect", "openai", "pyarrow", "duckdb", "mcp", "pydantic")

STATUSES = (
    (BudgetError, "budget_stop"),
    (UnavailableError, "outage_stop"),
    (PendingError, "pending"),
)
"""How a run's row calls an end that an error made; "failed" for any other."""

UNSEEN_S = 3600.0
"""Seconds that a run waits for an endpoint by itself, where no terminal shows that it does."""

LEDGER = (
    *("call_id", "stage", "cost_usd", "prompt_tokens", "completion_tokens"),
    *("cache_hit", "run_id"),
)
"""What `spent_in` needs of a call."""

_current: ContextVar[Run[Any] | None] = ContextVar("current_run", default=None)


@asynccontextmanager
async def open_run(
    config: ConfigT,
    dataset: str,
    *,
    command: str,
    retry_failed: bool = False,
    on_exchange: Callable[[Exchange], None] | None = None,
) -> AsyncIterator[Run[ConfigT]]:
    """A new run, which holds `dataset` until the block ends. `on_exchange` is shown what is asked
    and answered in this process, so in all of a run with one worker, but for its probe.

    Raises ConfigError before any work: a dataset held by another run, a folder that is no
    dataset, an endpoint that cannot do its role, a cluster that cannot hold the run's sandboxes;
    PendingError at the end, where items were tried in vain for what is around them.
    """
    async with (
        config.sandboxes_in_use(),
        _opened(config, dataset, command, retry_failed, on_exchange) as run,
    ):
        yield run


@asynccontextmanager
async def _opened(
    config: ConfigT,
    dataset: str,
    command: str,
    retry_failed: bool,
    on_exchange: Callable[[Exchange], None] | None,
) -> AsyncIterator[Run[ConfigT]]:
    if isinstance(config, RunConfig):
        await install_servers(config, say=log.info)
    _check(config)  # before a folder is made for a run that cannot be
    live = config.live_sandboxes(live_servers() or machine_live())
    progress = StageProgress()
    invocation_id = uuid.uuid4().hex[:12]
    with (
        config.prompts_in_use(),
        _dataset_at(dataset) as store,
        hold(store, run_id=config.run_id, what=command),
    ):
        labels = commit_waiting_labels(store)
        if labels.added or labels.changed or labels.refused:
            log.info(
                f"labels from the browser: {labels.added} added, {labels.changed} changed, "
                f"{len(labels.refused)} refused {'; '.join(labels.refused[:3])}"
            )
        budget = Budget(config.budget, _spent(store, config.run_id))
        app = create_app(config.offline.settings())
        path = store.profiles_path(config.run_id)
        profiles = Profiles(read_profiles(path))
        async with (
            Gateway(
                config.roles,
                budget=budget,
                offline_app=lambda: app,
                profiles=profiles,
                patience_s=_patience_s(config),
                on_waiting=progress.waiting,
                batches=Batches(BatchStore(store.batches_path(config.run_id))),
                on_exchange=on_exchange,
            ) as gateway,
            WarmServers(live) as servers,
        ):
            probed = await probe(
                config.roles_asked(),
                calls_tools=[role for role in config.roles if calls_tools(config, role)],
                invocation_id=invocation_id,
                profiles=profiles,
                budget=budget,
                offline_app=lambda: app,
            )
            run = Run(
                config,
                store,
                invocation_id,
                gateway,
                servers,
                progress,
                on_planned=progress.planned,
                on_waiting=progress.waiting,
                retry_failed=retry_failed,
            )
            profiles.on_learned = run.learned
            if profiles.found:
                write_profiles(path, profiles.found)
            _write_event(run, command, "started", "running", "", probed)
            token = _current.set(run)
            try:
                processes = LocalProcesses(run, live_servers=live)
                async with processes as run.executor:
                    yield run
                    run.require_all()
            except BaseException as error:
                status = next((s for kind, s in STATUSES if isinstance(error, kind)), "failed")
                detail = f"{type(error).__name__}: {error}"[:2000]
                _write_event(run, command, "ended", status, detail)
                raise
            else:
                _write_event(run, command, "ended", "completed", _of_the_judge(run))
            finally:
                _current.reset(token)
                progress.close()


def _of_the_judge(run: Run[Any]) -> str:
    """For the run's row: how its judge did on perturbed negatives, if it had one."""
    if not isinstance(run.config, JudgedConfig):
        return ""
    return judge_report(run.dataset, grading_of(run.config)).words


@contextmanager
def _dataset_at(path: str) -> Iterator[Dataset]:
    """A dataset made here does not outlive a run that is refused before its first commit."""
    is_new = read_marker(Path(path).resolve()) is None
    store = Dataset.create_or_open(path)
    try:
        yield store
    finally:
        if is_new and not store.commits():
            remove_unused(store.root)


def _check(config: JobConfig) -> None:
    """ConfigError for a role without an endpoint among others that have one, and for a domain,
    server, source or evaluation that cannot be used."""
    config.check_roles()
    if isinstance(config, JudgedConfig):
        check_decontamination(config.curation.decontamination)
    match config:
        case RunConfig():
            check_sources(config)
        case EvolveConfig():
            check_domains(config)
        case RephraseConfig():
            sources_of(config)


def _patience_s(config: JobConfig) -> float:
    """How long the run waits for an endpoint that is gone: without end where somebody sees it."""
    if config.outage_s is not None:
        return config.outage_s
    return math.inf if sys.stderr.isatty() else UNSEEN_S


def current_run() -> Run[Any] | None:
    """The run that is open around the caller, if there is one."""
    return _current.get()


def _spent(store: Dataset, run_id: str) -> dict[str, Amount]:
    """What the run has spent so far by stage: committed calls, and those of open journals."""
    journals = sorted(store.journal_path(run_id, "tools", 0).parent.glob("*.sqlite"))
    return spent_in(chain(_committed_calls(store, run_id), _journalled_calls(journals)))


def _committed_calls(store: Dataset, run_id: str) -> Iterator[Row]:
    for rows in store.in_commits("llm_calls", LEDGER):
        yield from (row for row in rows if row["run_id"] == run_id)


def _journalled_calls(journals: Sequence[Path]) -> Iterator[Row]:
    for path in journals:
        with ShardJournal(path) as journal:
            yield from journalled_rows(journal)


def _write_event(
    run: Run[Any], command: str, event: str, status: str, detail: str, llm_calls: Sequence[Row] = ()
) -> None:
    """A row of `runs`, in a commit of its own, with the ledger of the probe."""
    row = {
        "invocation_id": run.invocation_id,
        "event": event,
        "command": command,
        "config": run.config.model_dump(mode="json"),
        "versions": {name: _version(name) for name in VERSIONS_OF},
        "happened_at": datetime.now(UTC),
        "status": status,
        "detail": detail,
        "cost_usd": run.gateway.budget.run.spent.usd,
        "host": platform.node(),
        "kind": run.config.KIND,
    }
    run.dataset.commit(
        run_id=run.run_id,
        stage=f"run-{event}",
        shard=len(run.dataset.commits()),
        tables={"runs": [row], "llm_calls": llm_calls},
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
