"""The tasks: rows of users' files, then questions on the results of datasets."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from records.digest import digest
from records.errors import ConfigError
from synth.gym.core.environment import GymSplit, GymTask
from synth.gym.grounding.looked_up import questions_on
from synth.gym.grounding.settings import GroundingFile, GroundingSettings
from synth.gym.maths.splits import placed
from synth.matching.evaluations import EvaluationRow, evaluation_rows

FAMILY = "grounding"


def tasks_of(settings: GroundingSettings) -> list[GymTask]:
    """Of all files and datasets, each task once."""
    found: dict[str, GymTask] = {}
    for file in settings.files:
        for task in islice(_of_file(file, settings), file.tasks):
            found.setdefault(task.task_id, task)
    for dataset in settings.datasets:
        for asked in questions_on(dataset, seed=settings.seed, shares=settings.shares):
            task = _task(asked.split, (f"source:{asked.tool}", *asked.tags), asked.body)
            found.setdefault(task.task_id, task)
    return list(found.values())


def _task(split: GymSplit, tags: Sequence[str], body: Mapping[str, Any]) -> GymTask:
    return GymTask(digest(FAMILY, body), FAMILY, split, tuple(dict.fromkeys(tags)), body)


def _of_file(file: GroundingFile, settings: GroundingSettings) -> Iterator[GymTask]:
    setting = "gym.families.grounding.files"
    for row in evaluation_rows(file.path, setting=setting):
        where = f"{setting}: row {row.number + 1} of {row.path}"
        values = _columns(row, where)
        documents = _texts(values, file.documents, where)
        (question,) = _texts(values, file.question, where, one=True)
        answerable = values.get(file.answerable)
        if answerable is not None and not isinstance(answerable, bool):
            raise ConfigError(
                f"{where}: column {file.answerable!r} is {answerable!r}; it is true or false"
            )
        answerable = answerable is not False
        answers = _texts(values, file.answers, where) if values.get(file.answers) else []
        body = {
            "question": question,
            "documents": documents,
            "results": [],
            "answerable": answerable,
            "answers": answers if answerable else [],
        }
        tags = [f"{name}:{values[name]}" for name in file.tags if values.get(name) is not None]
        kind = "question" if answerable else "unanswerable"
        # by the documents: nothing that is learnt from is asked about again
        split = placed("\n".join(documents), settings.shares).split
        yield _task(split, (f"kind:{kind}", *tags), body)


def _columns(row: EvaluationRow, where: str) -> Mapping[str, Any]:
    if not isinstance(row.value, Mapping):
        raise ConfigError(f"{where} is no object with columns, but {type(row.value).__name__}")
    return row.value


def _texts(values: Mapping[str, Any], column: str, where: str, *, one: bool = False) -> list[str]:
    """What a column holds, as texts."""
    value = values.get(column)
    given = [value] if one or not isinstance(value, list) else value
    texts = [
        str(text).strip()
        for text in given
        if isinstance(text, str | int | float) and not isinstance(text, bool)
    ]
    if not texts or len(texts) < len(given) or not all(texts):
        wanted = "a text" if one else "a text or a list of texts"
        raise ConfigError(
            f"{where}: column {column!r} is {value!r}, and {wanted} is wanted; its columns are "
            f"{', '.join(values) or 'none'}. Name the columns in {where.partition(':')[0]}"
        )
    return texts
