"""Datasets of rewrites, and a generator and judges by rule, for trials of a judge."""

import asyncio
import json
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.rewrites import texts_of
from records.store.dataset import Dataset
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.llm.settings.config import RoleConfig
from synth.rephrasing.calibration.stage import RephrasingTrialStage
from synth.rephrasing.fidelity.part_judge import FAITHFUL, VERDICTS, verdict_row
from synth.rephrasing.structure.sentences import sentences
from synth.rephrasing.writing.config import RephraseConfig, RephrasingTrialConfig
from tests.synth.scripted import ScriptedApp, model

HOSTED = {"base_url": "http://127.0.0.1:9/v1"}
PLAYED = {"generator": RoleConfig(), "judge": RoleConfig()}

_BLOCK = re.compile(r"^(`{4,})text\n(.*?)\n?\1$", re.MULTILINE | re.DOTALL)

Body = dict[str, Any]


def config_of(judge: str = "a", **calibration: Any) -> RephraseConfig:
    """A run with endpoints, whose judge has a name."""
    return RephraseConfig.model_validate(
        {
            "roles": {
                "rewriter": HOSTED,
                "judge": HOSTED | {"models": judge},
                "generator": HOSTED,
            },
            "calibration": RephrasingTrialConfig(**calibration),
        }
    )


def rewrites(*, judged: Callable[[int], bool] = lambda number: number % 2 == 0) -> list[Row]:
    """Rows of `rephrasings` of real texts; of their parts those are judged that `judged` names."""
    honest = [part for part in texts_of("tuning") if part.change is None and part.language == "en"]
    rows: list[Row] = []
    number = 0
    for (document, style), group in groupby(honest, lambda part: (part.document, part.style)):
        source, text = "", ""
        chunks: list[Row] = []
        for part in group:
            gap = "\n\n" if chunks else ""
            source, text = f"{source}{gap}{part.source}", f"{text}{gap}{part.rewrite}"
            chunks.append(
                {
                    "source": [len(source) - len(part.source), len(source)],
                    "text": [len(text) - len(part.rewrite), len(text)],
                    "attempts": 1,
                    "faults": [],
                    "replaced": False,
                    "flags": [],
                    "verdict": "faithful" if judged(number) else None,
                }
            )
            number += 1
        rows.append(
            dict.fromkeys(TABLES["rephrasings"].schema.names)
            | {
                "rephrasing_id": f"{document}-{style}",
                "source_language": "en",
                "style": style,
                "source_text": source,
                "text": text,
                "model": "m",
                "chunks": chunks,
                "kind": "knowledge",
                "split": "train",
            }
        )
        for name in ("run_id", "schema_version"):
            del rows[-1][name]
    return rows


def dataset_of(folder: Path, rows: list[Row]) -> Dataset:
    dataset = Dataset.create_or_open(folder)
    tables = {"rephrasings": rows, VERDICTS: verdict_rows(rows)}
    dataset.commit(run_id="r", stage="rephrase", shard=0, tables=tables)
    return dataset


def verdict_rows(rows: list[Row]) -> list[Row]:
    """Of the parts of `rewrites` that were judged."""
    return [
        verdict_row("judge", row, number, FAITHFUL)
        for row in rows
        for number, chunk in enumerate(row["chunks"])
        if chunk["verdict"]
    ]


def blocks(body: Body) -> list[str]:
    """What the request shows, in order."""
    return [found[2] for found in _BLOCK.finditer(body["messages"][1]["content"])]


def kind_of(body: Body) -> str:
    """Which of the prompts it is."""
    system = body["messages"][0]["content"]
    kinds = {
        "perturbation": "You write test material for reviewers",
        "paraphrase": "You put one sentence",
        "reading": "You compare two sentences",
        "judge": "You compare parts of a text with rewrites",
    }
    return next(kind for kind, words in kinds.items() if system.startswith(words))


CHANGED, KEPT = " or so they say", " as told"


def by_rule(body: Body) -> str:
    """A generator that hangs words on the first sentence that stands in the rewrite once, and a
    second reader that looks for these words."""
    shown = blocks(body)
    if kind_of(body) == "reading":
        source, a, b = shown
        changed = {name for name, text in (("a", a), ("b", b)) if CHANGED in text}
        agrees = ({"a", "b"} - changed).pop() if changed else "both"
        return json.dumps({"quote": source[:20], "why": "it is so", "agrees": agrees})
    _, rewrite = shown
    lines = [line for line in rewrite.splitlines() if not line.startswith("#")]
    said = (line[start:end].strip() for line in lines for start, end in sentences(line))
    old = next(one for one in said if rewrite.count(one) == 1 and len(one) > 20)
    new = f"{old}{CHANGED if kind_of(body) == 'perturbation' else KEPT}"
    return json.dumps({"why": "it is so", "has_place": True, "old": old, "new": new})


def one_part(judged: dict[str, Any]) -> str:
    """The judge's answer on a single part."""
    return json.dumps({"parts": [{"number": 1} | judged]})


def judging(body: Body, *, accepts: bool) -> str:
    """A judge that says the same of every part, and quotes the rewrite as a whole."""
    quoted = {"part": "", "rewrite": blocks(body)[-1][:390], "what": "other"}
    differences = [] if accepts else [quoted]
    verdict = "faithful" if accepts else "unfaithful"
    return one_part({"differences": differences, "verdict": verdict})


def knowing(body: Body) -> str:
    """A judge that finds the words that `by_rule` hangs on."""
    rewrite = blocks(body)[-1]
    found = [{"part": "", "rewrite": CHANGED.strip(), "what": "not in the part"}]
    if CHANGED not in rewrite:
        return one_part({"differences": [], "verdict": "faithful"})
    return one_part({"differences": found, "verdict": "unfaithful"})


def app_of(judge: Callable[[Body], str] = knowing) -> ScriptedApp:
    return ScriptedApp(lambda body: judge(body) if kind_of(body) == "judge" else by_rule(body))


def tried(
    dataset: Dataset, folder: Path, app: ScriptedApp, config: RephraseConfig, *, shard: int = 1
) -> list[Row]:
    """The rows of the items that were open, made one after another and committed together."""
    return asyncio.run(_tried(dataset, folder, app, config, shard))


async def _tried(
    dataset: Dataset, folder: Path, app: ScriptedApp, config: RephraseConfig, shard: int
) -> list[Row]:
    run: Any = SimpleNamespace(config=config, dataset=dataset)
    stage = RephrasingTrialStage(run)
    done = dataset.item_statuses(stage.name)
    rows: list[Row] = []
    items = {}
    async with model(app, folder, PLAYED) as llm:
        for item in stage.plan():
            if item.item_id not in done:
                context: Any = SimpleNamespace(llm=llm)
                result = await stage.make(item, context)
                rows += result.tables["rephrasing_calibration"]
                items[item.item_id] = result.status
    dataset.commit(
        run_id="r",
        stage=stage.name,
        shard=shard,
        tables={"rephrasing_calibration": rows},
        items=items,
    )
    return rows
