"""Golden output: who changes what the stage makes of the same texts and answers is told so."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from records.sizes import count_tokens
from synth.llm.settings.config import RoleConfig
from synth.rephrasing import stage
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from tests.synth.golden import assert_golden
from tests.synth.rephrasing.test_structure import MIXED
from tests.synth.rephrasing.test_writing import LONG, answered
from tests.synth.scripted import ScriptedApp, model

GOLDEN = Path(__file__).parent / "golden/rephrase.yaml"


def reworded(part: str) -> str:
    return re.sub(r"\bopens\b", "is opened", part)


async def _rows(folder: Path, **settings: Any) -> list[dict]:
    (folder / "t.md").write_text(MIXED)
    (folder / "u.md").write_text(LONG)
    config = RephraseConfig(
        sources=(SourceConfig(path=str(folder), language="en", genre="reference"),),
        rewrites=1,
        max_document_tokens=700,
        chunk_tokens=128,
        fidelity=FidelityConfig(max_copied=1.0),
        **settings,
    )
    made = RephraseStage(SimpleNamespace(config=config))  # type: ignore[arg-type]
    rows = []
    roles = {"rewriter": RoleConfig()}
    async with model(ScriptedApp(answered(reworded)), folder, roles) as llm:
        for item in made.plan():
            result = await made.make(item, SimpleNamespace(llm=llm))  # type: ignore[arg-type]
            rows += result.tables["rephrasings"]
    return rows


SHOWN = ("source_id", "source_hash", "source_part", "source_parts", "source_span", "text", "chunks")
"""Ids and versions hang on the prompts, paths on the machine; fidelity has tests of its own."""


def test_golden(tmp_path: Path) -> None:
    rows = asyncio.run(_rows(tmp_path))
    assert len(rows) == 4
    assert all(count_tokens(row["source_text"]) <= 770 for row in rows)
    made = [{name: row[name] for name in SHOWN} for row in rows]
    assert_golden(GOLDEN, stage.STAGE_VERSION, made)


def test_the_share_of_held_out_texts(tmp_path: Path) -> None:
    splits = {
        share: {row["split"] for row in asyncio.run(_rows(tmp_path, heldout_share=share))}
        for share in (0.0, 1.0)
    }
    assert splits == {0.0: {"train"}, 1.0: {"heldout_document"}}
