"""Prompts of users' files that have no verifiable answer (family `open`): one answer each, ranked
against the others of its prompt.

All of them are learnt from. What they are worth is told against each other alone, so none chooses a
checkpoint or is scored at the end.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from synth.gym.core.environment import GymStep, GymTask
from synth.gym.core.ranked import RANKED, rules_in
from synth.llm.wire.request import Message
from synth.matching.evaluations import EvaluationRow, evaluation_rows

FAMILY = "open"


class OpenPromptsFile(Config):
    """Rows of prompts: Parquet, JSON lines or JSON, a file, a folder or a pattern."""

    path: str
    """Where the rows are."""
    prompt: str = "prompt"
    """Column of what the user says."""
    system: str = "system"
    """Column of the system message; a row may have none."""
    rubric: str = "rubric"
    """Column of what an answer to the prompt is compared by, beside what always counts: a text, or
    a list of texts and of objects with `rule` and `mandatory`. A row may have none."""
    tags: tuple[str, ...] = ()
    """Columns whose values become tags, `column:value`."""
    most: int = Field(default=1000, ge=1)
    """Prompts that are taken, from the beginning of the files."""


class OpenPromptsSettings(Config):
    """The family `open`."""

    files: tuple[OpenPromptsFile, ...] = Field(min_length=1)
    """Where the prompts are."""


class OpenPrompts:
    """`synth.gym.core.environment.GymEnvironment` of the prompts; each once, whatever file it is
    in."""

    family = FAMILY

    def __init__(self, settings: OpenPromptsSettings) -> None:
        self._settings = settings

    @cached_property
    def _tasks(self) -> list[GymTask]:
        tasks: dict[str, GymTask] = {}
        for own in self._settings.files:
            taken = 0
            for task in _tasks_in(own):
                if taken < own.most and task.task_id not in tasks:
                    tasks[task.task_id] = task
                    taken += 1
        return list(tasks.values())

    def tasks(self) -> Sequence[GymTask]:
        """Read when they are asked for first. ConfigError for a row without a prompt, or with a
        rubric that is none."""
        return self._tasks

    async def begin(self, task: GymTask, seed: int) -> "OpenEpisodeOfPrompt":
        del seed  # nothing is drawn in an episode of one answer
        return OpenEpisodeOfPrompt(task)

    async def close(self) -> None:
        """Nothing runs."""


class OpenEpisodeOfPrompt:
    """One prompt being answered (`synth.gym.core.environment.GymEpisode`)."""

    tools: Sequence[Mapping[str, Any]] = ()

    def __init__(self, task: GymTask) -> None:
        self._over = False
        self.messages: list[Message] = []
        if system := task.body.get("system"):
            self.messages.append({"role": "system", "content": system})
        self.messages.append({"role": "user", "content": task.body["prompt"]})

    async def step(self, action: Message) -> GymStep:
        if self._over:
            raise ValueError("the episode has ended")
        self._over = True
        self.messages.append(action)
        return GymStep([], done=True)

    async def close(self) -> None:
        """Nothing runs."""


def _tasks_in(own: OpenPromptsFile) -> Iterator[GymTask]:
    for row in evaluation_rows(own.path, setting="gym.open.files"):
        yield _task(own, row)


def _task(own: OpenPromptsFile, row: EvaluationRow) -> GymTask:
    where = f"gym.open.files, path {own.path!r}: row {row.number + 1} of {row.path}"
    if not isinstance(row.value, Mapping):
        raise ConfigError(f"{where} is no object with columns, but {type(row.value).__name__}")
    prompt, system = row.value.get(own.prompt), row.value.get(own.system)
    if not isinstance(prompt, str) or not prompt.strip():
        raise ConfigError(
            f"{where}: column {own.prompt!r} is {prompt!r}, and a text is wanted; its columns are "
            f"{', '.join(row.value) or 'none'}. Name the column by `prompt`"
        )
    if not isinstance(system, str | None):
        raise ConfigError(f"{where}: column {own.system!r} is {system!r}, and no text")
    rules = rules_in(row.value.get(own.rubric), where=f"{where}, column {own.rubric!r}")
    body: dict[str, Any] = {"prompt": prompt, "system": system or None}
    body["rubric"] = [rule._asdict() for rule in rules]
    tags = [f"{name}:{row.value[name]}" for name in own.tags if row.value.get(name) is not None]
    return GymTask(digest(FAMILY, body), FAMILY, "train", (RANKED, "kind:open", *tags), body)
