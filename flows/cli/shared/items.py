"""`synth probe CONFIG --items`: one item of each stage on a config's endpoints, and what was said.

The first request of each stage and role stands beside its answer, then what came of the items, in
the server's words where something went wrong.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from flows.cli.shared.money import Money
from flows.cli.shared.output import print_rows, say
from flows.cli.shared.requests import in_short
from flows.runtime.open_run import open_run
from records.errors import ConfigError, SynthError
from records.reading.query import run_sql
from records.store.dataset import Dataset
from records.store.marker import read_marker
from synth.engine.job_config import JobConfig
from synth.llm.gateway import Exchange
from synth.llm.settings.config import BudgetConfig
from synth.pipeline.first_items import make_first_items, with_one_of_each
from synth.publish.spending import spending
from synth.render.foreign_text import one_line, visible
from synth.render.yields import yields

BUDGET_TOKENS = 200_000
"""Prompt and completion tokens that the items may take where no budget is given: several times what
they take of the offline model."""

FILE = "exchanges.json"
"""In a dataset that is kept: the requests and answers uncut."""

ASKED = """
select stage, role, count(*) as requests, count(*) filter (status != 'ok') as failed,
  count(*) filter (attempt > 0) as repairs, sum(prompt_tokens)::bigint as prompt_tokens,
  sum(completion_tokens)::bigint as completion_tokens, round(sum(cost_usd), 6) as usd
from llm_calls where not cache_hit group by all order by min(started_at)
"""


def items_of(config: JobConfig, money: Money, keep: Path | None) -> JobConfig:
    """The settings that the items are made by. ConfigError, before anything is asked, for a config
    that has none, a budget that could not bind, and a folder to keep that holds something."""
    tokens = BUDGET_TOKENS if money.budget is None else None
    budget = BudgetConfig(
        usd=money.budget,
        tokens=tokens if money.budget_tokens is None else money.budget_tokens,
    )
    small = with_one_of_each(config, budget)
    small.check_roles()
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise ConfigError(
            f"--keep {keep}: the items are made in a folder of their own, and this holds something "
            "already; name one that is empty or new"
        )
    return small


class MadeItems(NamedTuple):
    found: dict[str, Any]
    """What was asked, answered and made, as values."""
    stopped: SynthError | KeyboardInterrupt | None
    """What ended the making before its time."""

    def as_json(self) -> dict[str, Any]:
        words = None if self.stopped is None else str(self.stopped) or "interrupted"
        return self.found | {"stopped": words}


def probe_items(small: JobConfig, keep: Path | None, *, json_: bool) -> MadeItems:
    """Make the items and, unless for programs, tell them: what there is, too, where something
    stopped the making."""
    seen: dict[tuple[str, str], Exchange] = {}

    def keep_first(exchange: Exchange) -> None:
        seen.setdefault((exchange.stage, exchange.role), exchange)

    async def make(folder: Path) -> None:
        at = str(folder)
        async with open_run(
            small, at, command="synth probe --items", on_exchange=keep_first
        ) as run:
            await make_first_items(run)

    with _folder(keep) as folder:
        stopped: SynthError | KeyboardInterrupt | None = None
        try:
            asyncio.run(make(folder))
        except ConfigError:
            raise
        except (SynthError, KeyboardInterrupt) as error:
            if read_marker(folder.resolve()) is None:  # refused before anything was asked
                raise
            stopped = error
        found = _found(Dataset.open(folder), list(seen.values()))
        if keep is not None:
            text = json.dumps(found["exchanges"], ensure_ascii=False, indent=2)
            (folder / FILE).write_text(text, encoding="utf-8")
        if not json_:
            _tell(found, small, keep)
        if stopped is not None and keep is not None:
            stopped.add_note(f"{keep} keeps what was made; give the items another folder")
    return MadeItems(found, stopped)


def is_done(made: MadeItems) -> bool:
    """Whether no item failed or was left."""
    return not any(row["failed"] or row["pending"] for row in made.found["yields"])


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="synth-probe-") as temporary:
            yield Path(temporary) / "items"
        return
    yield keep


def _found(dataset: Dataset, exchanges: Sequence[Exchange]) -> dict[str, Any]:
    asked = run_sql(dataset, ASKED)
    with dataset.connect() as db:
        spent = spending(db, accepted=0)
    return {
        "exchanges": [
            {
                "stage": one.stage,
                "role": one.role,
                "item": one.item,
                "step": one.step,
                "path": one.path,
                "request": json.loads(one.body),
                "answer": one.answer._asdict(),
            }
            for one in exchanges
        ],
        "requests": [dict(zip(asked.columns, row, strict=True)) for row in asked.rows],
        "yields": yields(dataset),
        "failures": spent.failures,
        "tokens": spent.tokens,
        "usd": spent.cost_usd,
    }


def _tell(found: dict[str, Any], config: JobConfig, keep: Path | None) -> None:
    for one in found["exchanges"]:
        for line in _exchange(one):
            print(visible(line))  # noqa: T201
    heard = {one["role"] for one in found["exchanges"]}
    if silent := [role for role in config.roles_asked() if role not in heard]:
        say(f"no answer of {', '.join(silent)} came or was needed for these few items")
    print("\nWhat was asked:")  # noqa: T201
    columns = [name for row in found["requests"][:1] for name in row]
    print_rows(columns, [list(row.values()) for row in found["requests"]], json_=False)
    print("\nWhat came of the items:")  # noqa: T201
    head = ("stage", "requested", "kept", "dropped", "failed", "pending")
    rows = [
        (
            *(row[name] for name in head),
            ", ".join(f"{one_line(reason)} {number}" for reason, number in row["reasons"]),
            one_line(row["example"]),
        )
        for row in found["yields"]
    ]
    print_rows((*head, "reasons", "for example"), rows, json_=False)
    for row in found["failures"]:
        words = f"{row['role']}, {row['n']} x {row['status']}: {one_line(row['example'])}"
        print(f"problem: {words}")  # noqa: T201
    priced = all(own.has_prices for own in config.roles_asked().values())
    cost = f"{found['usd']:.4f} USD" if priced else "no prices known (--price IN,OUT)"
    say(f"the items took {found['tokens']:,} tokens, {cost}")
    if keep is not None:
        say(f"kept in {keep}; requests and answers uncut: {keep / FILE}")


def _exchange(one: dict[str, Any]) -> Iterator[str]:
    answer = one["answer"]
    yield f"\n{one['stage']}, {one['role']} ({one['step']}): POST {one['path']}"
    yield json.dumps(in_short(one["request"]), ensure_ascii=False, indent=2)
    yield (
        f"answer, {answer['prompt_tokens']:,} tokens of prompt ({answer['cached_tokens']:,} "
        f"cached) and {answer['completion_tokens']:,} of completion "
        f"({answer['reasoning_tokens']:,} of reasoning):"
    )
    said = ("content", "tool_calls", "reasoning", "finish_reason")
    shown = {name: answer[name] for name in said if answer[name]}
    yield json.dumps(in_short(shown), ensure_ascii=False, indent=2)
