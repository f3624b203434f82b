"""A user's prompts replace the project's by name, are checked first, and are part of a run's id."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.settings import validate_as
from synth.catalogue.evolution.config import EvolveConfig
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.judging.stages import grading_of
from synth.pipeline.config import RunConfig
from synth.prompts import templates
from synth.prompts.folder import replaceable
from synth.prompts.templates import render, version_of

BRIEF = (templates.FOLDER / "gen_brief.md").read_text()
JUDGE = (templates.FOLDER / "judgement.md").read_text()
SEMANTICS = (templates.FOLDER / "shared" / "semantics.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    (path / "shared").mkdir(parents=True)
    (path / "judgement.md").write_text(JUDGE.replace("You judge", "You coolly judge"))
    return path


def of(folder: Path, kind: type[JobConfig] = RunConfig) -> JobConfig:
    return validate_as(kind, {"prompts": str(folder)}, where="here")


def test_a_prompt_is_replaced_within_its_run_and_nowhere_else(folder: Path) -> None:
    names = ("instructions", "tools", "changes", "transcript", "statements", "rubric", "standing")
    values: dict[str, Any] = dict.fromkeys((*names, "user"), "")
    before = {name: version_of(name) for name in ("judgement", "gen_brief")}
    with of(folder).prompts_in_use():
        assert "You coolly judge" in render("judgement", **values).messages[0]["content"]
        assert version_of("judgement") != before["judgement"]
        assert version_of("gen_brief") == before["gen_brief"]
        with RunConfig().prompts_in_use():
            assert version_of("judgement") == before["judgement"]
    assert {name: version_of(name) for name in before} == before


def test_tasks_and_threads_of_a_run_have_its_prompts(folder: Path) -> None:
    async def versions() -> list[str]:
        with of(folder).prompts_in_use():
            task = asyncio.create_task(asyncio.to_thread(version_of, "judgement"))
        return [await task, version_of("judgement")]

    inside, outside = asyncio.run(versions())
    assert inside != outside


def test_shared_text_is_replaced_in_every_prompt_that_includes_it(folder: Path) -> None:
    (folder / "shared" / "semantics.md").write_text(f"{SEMANTICS}\nBe brief.\n")
    names = [name for name in replaceable() if not name.startswith("shared/")]
    before = {name: version_of(name) for name in names}
    with of(folder).prompts_in_use():
        changed = {name for name in names if version_of(name) != before[name]}
    including = {name for name in names if "shared/semantics" in text_of(name)}
    assert changed == including | {"judgement"}
    assert including


def text_of(name: str) -> str:
    return (templates.FOLDER / f"{name}.md").read_text()


@pytest.mark.parametrize("kind", [RunConfig, GradeConfig, EvolveConfig])
def test_the_content_is_part_of_the_id_and_the_place_is_not(
    kind: type[JobConfig], folder: Path
) -> None:
    first = of(folder, kind)
    assert first.run_id != kind().run_id
    moved = folder.rename(folder.with_name("moved"))
    assert of(moved, kind).run_id == first.run_id
    (moved / "judgement.md").write_text(JUDGE.replace("You judge", "You hotly judge"))
    assert of(moved, kind).run_id != first.run_id


def test_a_grading_is_known_by_its_prompt_after_the_run_too(folder: Path) -> None:
    config = of(folder, GradeConfig)
    assert isinstance(config, GradeConfig)
    assert grading_of(config) != grading_of(GradeConfig())


def test_every_prompt_of_the_project_may_stand_in_for_itself(folder: Path) -> None:
    for name in replaceable():
        (folder / f"{name}.md").write_text((templates.FOLDER / f"{name}.md").read_text())
    names = [name for name in replaceable() if not name.startswith("shared/")]
    before = [version_of(name) for name in names]
    with of(folder).prompts_in_use():
        assert [version_of(name) for name in names] == before


def test_a_variable_may_be_left_unused(folder: Path) -> None:
    (folder / "judgement.md").write_text("# system\nJudge.\n\n# user\n{{ rubric | fenced }}\n")
    with of(folder).prompts_in_use():
        said = render("judgement", instructions="x", rubric=["y"], transcript=[]).messages
    assert [message["role"] for message in said] == ["system", "user"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("judgment", JUDGE, ("judgment.md is the name of no prompt", "judgement, paraphrase")),
        ("rephrase/styles/plain", "Plain.", ("plain.md is the name of no prompt",)),
        (
            "judgement",
            JUDGE.replace("rubric |", "rubrik |"),
            ("uses rubrik", "rubric, standing, statements, tools"),
        ),
        ("judgement", "Judge.\n", ("judgement.md", "must begin with a line '# system'")),
        ("judgement", "# user\nJudge.\n", ("judgement.md", "in this order: # system, # user")),
        ("judgement", "# system\na\n# user\n{% if %}\n", ("judgement.md, line",)),
        ("judgement", "# system\n{% if rubric %}\n# user\n{% endif %}\n", ("judgement.md, line",)),
        ("judgement", "# system\na\n# user\n{{ rubric | tabled }}\n", ("tabled",)),
        ("judgement", "# system\na\n# user\n{% include 'b.md' %}\n", ("'b.md'", "shared/")),
        ("shared/semantics", "{{ rubric }}", ("semantics.md uses rubric", "none")),
    ],
)
def test_a_file_that_cannot_stand_in_is_named_before_any_work(
    folder: Path, name: str, text: str, words: tuple[str, ...]
) -> None:
    file = folder / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        of(folder)
    for word in words:
        assert word in str(caught.value)


def test_a_folder_that_is_none_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        of(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="holds no prompt"):
        of(tmp_path)
    with pytest.raises(ConfigError, match="is the path of a folder"):
        validate_as(RunConfig, {"prompts": 3}, where="here")


def test_a_run_is_not_resumed_with_other_prompts(folder: Path) -> None:
    config = of(folder)
    recorded = config.model_dump(mode="json")
    assert validate_as(RunConfig, recorded, where="recorded") == config
    (folder / "judgement.md").write_text(JUDGE)
    with pytest.raises(ConfigError, match=r"mine/judgement\.md changed since; put back"):
        validate_as(RunConfig, recorded, where="recorded")


def test_a_prompt_edited_under_a_run_is_noticed(folder: Path) -> None:
    config = of(folder)
    (folder / "judgement.md").write_text(f"{JUDGE}\nMore.\n")
    with (
        config.prompts_in_use(),
        pytest.raises(ConfigError, match=r"judgement\.md was edited after the run"),
    ):
        version_of("judgement")


def test_a_user_s_prompt_runs_nothing(folder: Path) -> None:
    hostile = "# system\na\n# user\n{{ rubric.__class__.__mro__ }}\n"
    (folder / "judgement.md").write_text(hostile)
    with of(folder).prompts_in_use(), pytest.raises(Exception, match="unsafe"):
        render("judgement", instructions="", rubric="", transcript="")
