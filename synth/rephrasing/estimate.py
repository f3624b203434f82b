"""What a rephrasing will take: of a sample by the offline model, or of a pilot that is part of it.

The estimate asks nobody: the beginning of every source is read and cut into documents, some of them
are rewritten by the offline model, with the prompts of the run, and what that took is scaled by the
characters of all. How often a model must be asked again, only a pilot shows.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

from records.seeds import share_of
from synth.engine.job_config import OfflineConfig, Role
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Item
from synth.llm.settings.config import BudgetConfig, TokenUsage
from synth.rephrasing.repeats import TextCounts
from synth.rephrasing.stage import NAME, At, RephraseStage
from synth.rephrasing.writing.config import RephraseConfig

SAMPLE = 24
"""Documents that the offline model rewrites for an estimate."""

WINDOWS_READ = 2
"""Of each source, for an estimate or a pilot: its beginning stands for the rest."""


class RoleUsage(NamedTuple):
    role: str
    requests: float
    prompt_tokens: float
    completion_tokens: float
    usd: float


class RephraseEstimate(NamedTuple):
    documents: int
    source_tokens: float
    at_least: bool
    """A source that does not say how large it is goes on: there is more than this."""
    roles: list[RoleUsage]


class ReadBeginning(NamedTuple):
    """The first windows of every source."""

    windows: list[RephraseStage]
    factors: list[float]
    """Of each window: how many times as large its source is as what was read of it."""
    at_least: bool


def beginning_of(stage: RephraseStage) -> ReadBeginning:
    """Reads up to `WINDOWS_READ` windows of each source."""
    windows: list[RephraseStage] = []
    factors: list[float] = []
    at_least, seen = False, TextCounts()
    for number, source in enumerate(stage.sources):
        read = list(islice(stage.windows_of(number, seen), WINDOWS_READ))
        factor = 1.0
        if len(read) == WINDOWS_READ:
            texts = len({_at(i).place for window in read for i in window.plan() if _is_document(i)})
            most = stage.config.sources[number].max_documents
            in_bytes = source.bytes_read()
            factors_known = [most / texts] if most and texts else []
            factors_known += [in_bytes[1] / in_bytes[0]] if in_bytes and in_bytes[0] else []
            at_least |= not factors_known
            factor = max(1.0, min(factors_known, default=1.0))
        windows += read
        factors += [factor] * len(read)
    return ReadBeginning(windows, factors, at_least)


def drawn(windows: Sequence[RephraseStage], number: int) -> set[str]:
    """Ids of all rewrites of so many documents, drawn by the items themselves."""
    by_document: dict[tuple[int, tuple[int, int], int], list[str]] = defaultdict(list)
    for window in windows:
        for item in window.plan():
            if _is_document(item):
                at = _at(item)
                by_document[at.source, at.place, at.part].append(item.item_id)
    ranked = sorted(by_document.values(), key=lambda ids: share_of(ids[0], "pilot"))
    return {item for ids in ranked[:number] for item in ids}


async def make_some(
    run: Run[RephraseConfig], windows: Sequence[RephraseStage], items: Collection[str]
) -> StageReport:
    """Rewrite these items alone; the run goes on from them."""
    for window in windows:
        plan = await asyncio.to_thread(run.plan, window, only=lambda _, i: i.item_id in items)
        made = [report async for report in run.run_shards(window, plan, plan.open_shards)]
        run.stage_report(window, plan, made)
    return run.reports[NAME]


def as_offline(config: RephraseConfig) -> RephraseConfig:
    """The run as the offline model plays it, asked by the same roles."""
    judged: tuple[Role, ...] = ("judge",) if config.asks_judge else ()
    return config.model_copy(
        update={
            "roles": dict(config.DEFAULT_ROLES),
            "offline": OfflineConfig(roles=judged),
            "budget": BudgetConfig(),
            "workers": 1,
        }
    )


async def estimate_of(config: RephraseConfig, run: Run[RephraseConfig]) -> RephraseEstimate:
    """`run`: of `as_offline(config)`, in a dataset of its own."""
    beginning = await asyncio.to_thread(beginning_of, RephraseStage(run))
    await make_some(run, beginning.windows, drawn(beginning.windows, SAMPLE))
    chars = documents = 0.0
    for window, factor in zip(beginning.windows, beginning.factors, strict=True):
        for at in map(_at, filter(_is_document, window.plan())):
            chars += factor * (at.span.end - at.span.start)
            documents += factor * (at.rewrite == 0)
    rows = [
        row
        for rows in run.dataset.in_commits("rephrasings", ["source_text", "source_tokens"])
        for row in rows
    ]
    made_chars = max(1, sum(len(row["source_text"]) for row in rows))
    scale = chars / made_chars
    used: dict[Role, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    columns = ("role", "prompt_tokens", "completion_tokens", "cache_hit")
    for calls in run.dataset.in_commits("llm_calls", columns):
        for call in calls:
            if call["cache_hit"]:  # a genre that another rewrite of the document has asked for
                continue
            for place, n in enumerate((1, call["prompt_tokens"], call["completion_tokens"])):
                used[call["role"]][place] += n * scale
    roles = []
    for role, (requests, prompt, completion) in used.items():
        usd = config.roles[role].cost_usd(TokenUsage(round(prompt), round(completion)))
        roles.append(RoleUsage(role, requests, prompt, completion, usd))
    tokens = sum(row["source_tokens"] for row in rows) * scale / config.rewrites
    return RephraseEstimate(round(documents), tokens, beginning.at_least, roles)


def _at(item: Item) -> At:
    return item.data["at"]


def _is_document(item: Item) -> bool:
    """Whether somebody is asked about it."""
    return "at" in item.data and not _at(item).again
