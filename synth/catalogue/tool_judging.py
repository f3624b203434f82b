"""A judge's word on imported tools whose texts may instruct the model that reads them.

Rules and a small classifier say which tools are worth a look; where the run has a language model as
its judge, the judge decides on each of them, and its verdict stands in the tool's row.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from records.errors import ItemError
from records.tables.schemas import Row
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import render, version_of
from tool_specs.importing.instructing.finding import ToolDecision
from tool_specs.importing.instructing.rules import readings
from tool_specs.importing.instructing.texts import texts_in
from tool_specs.importing.tool_lists import decision_of

PROMPT = "judge_tool"

MAX_DECODED = 8
"""Decoded or folded texts that are shown beside the tool."""

DECODED_CHARS = 2_000
"""Of each of them."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "evidence": {"type": "string", "maxLength": 400},
        "quote": {"type": "string", "maxLength": 1_000},
        "verdict": {"type": "string", "enum": ["instructing", "harmless"]},
    },
    "required": ["evidence", "quote", "verdict"],
    "additionalProperties": False,
}


def judged_by(judge: RoleConfig) -> list[Any]:
    """What decides the verdicts, for ids of items; nothing where the offline model would judge,
    whose rules are no second opinion."""
    return [] if judge.is_offline else [version_of(PROMPT), judge.identity()]


def is_for_a_judge(row: Row) -> bool:
    """Whether the tool was found to be worth a look, and nobody has decided on it."""
    is_open = row["drop_reason"] in (None, "not_read_only", "instructing_description")
    found = row["annotations"].keys() & {"quarantine", "instructingScore"}
    return is_open and bool(found) and decision_of(row) is None


async def verdicts_on(rows: Sequence[Row], llm: LLM, *, item: str) -> dict[str, ToolDecision]:
    """Name of the tool -> the judge's decision, for each that is worth a look. A tool on which the
    judge gives no valid answer is left to what was found."""
    asked = [row for row in rows if is_for_a_judge(row)]
    found = await asyncio.gather(*(_verdict(row, llm, item) for row in asked))
    return {row["name"]: one for row, one in zip(asked, found, strict=True) if one is not None}


async def _verdict(row: Row, llm: LLM, item: str) -> ToolDecision | None:
    try:
        answer = await llm.structured(
            "judge",
            prompt_on(row),
            item=item,
            step=f"tool {row['name']}",
            name=PROMPT,
            schema=SCHEMA,
        )
    except ItemError:
        return None
    return "judged_instructing" if answer["verdict"] == "instructing" else "judged_harmless"


def prompt_on(row: Row) -> list[dict[str, Any]]:
    """The messages in which the judge is shown the tool."""
    shown = {
        "name": row["name"],
        "description": row["description"],
        "input_schema": row["input_schema"],
        "output_schema": row["output_schema"],
        "title": row["annotations"].get("title"),
    }
    texts = list(texts_in(list(shown.values())))
    other = (reading for text in texts for reading in list(readings(text))[1:])
    decoded = [text[:DECODED_CHARS] for text in dict.fromkeys(other)]
    return render(PROMPT, tool=shown, decoded=decoded[:MAX_DECODED]).messages
