"""Real answers to the real prompts, recorded: four parts at once that follow the instructions."""

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rewrites import texts_of
from synth.llm.settings.config import RoleConfig
from synth.rephrasing.structure.chunks import Document
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import instruction
from synth.rephrasing.writing.part_checks import PartChecker
from synth.rephrasing.writing.parts import Writer, Written
from tests.synth.rephrasing.test_writing import read
from tests.synth.scripted import Answer, ScriptedApp, model

GROUPS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("written_groups.toml").read_text()
)["group"]
OF_DOCUMENT = pytest.mark.parametrize("group", GROUPS, ids=[one["document"] for one in GROUPS])


def source_of(group: dict[str, Any]) -> str:
    """The first four parts of the text."""
    name = group["document"]
    parts = {part.part: part.source for part in texts_of("tuning") if part.document == name}
    text = "\n\n".join(parts[number] for number in sorted(parts))
    return text[: Document(text, chunk_tokens=group["chunk_tokens"]).parts[3].span.end]


def rewritten(folder: Path, group: dict[str, Any], answer: Answer) -> tuple[Written, ScriptedApp]:
    app, text = ScriptedApp(answer), source_of(group)

    async def write() -> Written:
        async with model(app, folder, {"rewriter": RoleConfig()}) as llm:
            style = instruction("styles", group["style"])
            check = PartChecker(RephraseConfig(judge="none"), llm, "i", text, "knowledge", style)
            return await Writer(
                Document(text, chunk_tokens=group["chunk_tokens"]),
                llm,
                item="i",
                style=style,
                perspective=instruction("perspectives", group["perspective"]),
                context="neighbours",
                check=check,
                may_replace=False,
                max_tokens=2048,
            ).write()

    return asyncio.run(write()), app


@OF_DOCUMENT
def test_the_prompts_can_be_followed(tmp_path: Path, group: dict[str, Any]) -> None:
    made, app = rewritten(tmp_path, group, lambda body: group["answer"])
    assert [list(read(request).parts) for request in app.requests] == [[1, 2, 3, 4]]
    assert [(chunk.attempts, chunk.faults) for chunk in made.chunks] == [(1, ())] * 4


@OF_DOCUMENT
def test_a_number_that_is_changed_sends_its_part_back_alone(
    tmp_path: Path, group: dict[str, Any]
) -> None:
    right, wrong = {
        "t1d01": ("4.38 days", "4.83 days"),
        "t2d11": ("340 marks", "430 marks"),
        "t2d05": ("2.20 m", "2.40 m"),
    }[group["document"]]

    def answer(body: dict[str, Any]) -> str:
        is_first = len(body["messages"]) == 2
        return group["answer"].replace(right, wrong) if is_first else group["answer"]

    made, app = rewritten(tmp_path, group, answer)
    assert list(read(app.requests[1]).parts) == [3]
    told = app.requests[1]["messages"][-1]["content"]
    assert right.split()[0] in told
    assert wrong.split()[0] in told
    assert [chunk.faults for chunk in made.chunks] == [(), (), ("number_changed",), ()]
    (folder := tmp_path / "again").mkdir()
    assert made.text == rewritten(folder, group, lambda _: group["answer"])[0].text
