"""A new rubric for stored tasks: criteria dropped, changed and added, for all tasks or by variant.

pass_threshold: 0.8       # if given, of every rubric
drop: [never_1]           # ids of criteria; a rubric without one is left as it is
change:                   # fields of criteria that a rubric has; some rubric must have it
  - {id: manner, weight: 2, mandatory: true}
add:                      # whole criteria, as a task's rubric holds them
  - id: brief
    kind: nl
    words: The assistant says no more than the user needs.
    weight: 1
    mandatory: false
    variants: [normal]    # only tasks of these variants; of all if not given
"""

from collections.abc import Set
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from records.tables.schemas import Row
from synth.rubrics.built_in import Kinds
from synth.rubrics.criteria import NAME, Criterion, Rubric
from tool_specs.domains.loading import load_definition


class CriterionChange(Config):
    id: str = Field(pattern=NAME)
    """Of the criterion that is changed."""
    words: str | None = None
    """What the judge reads."""
    weight: float | None = Field(default=None, gt=0)
    """Its part of the weighted share."""
    mandatory: bool | None = None
    """Whether an episode that fails it fails."""
    check: dict[str, Any] | None = None
    """What the code of its kind checks."""


class Addition(Config):
    id: str = Field(pattern=NAME)
    """Of the new criterion."""
    kind: str = Field(default="nl", pattern=NAME)
    """Which code checks it; nl: only the judge can."""
    words: str = Field(min_length=1)
    """What the judge reads."""
    weight: float = Field(default=1.0, gt=0)
    """Its part of the weighted share."""
    mandatory: bool = False
    """Whether an episode that fails it fails."""
    check: dict[str, Any] | None = None
    """What the code of its kind checks."""
    variants: tuple[str, ...] = ()
    """Of the tasks that get it; all if empty."""

    def criterion(self) -> Criterion:
        return Criterion.model_validate(self.model_dump(exclude={"variants"}))


class RubricPatch(Config):
    RENAMED: ClassVar[dict[str, str]] = {"pass_threshold": "accept_at"}

    pass_threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Weighted share from which an episode passes, of every rubric; None: each keeps its own."""
    drop: tuple[str, ...] = ()
    """Ids of criteria that the rubrics lose."""
    change: tuple[CriterionChange, ...] = ()
    """Criteria that are put otherwise; what is not given stays."""
    add: tuple[Addition, ...] = ()
    """Criteria that the rubrics get; one of the same id is replaced."""

    def of(self, task: Row) -> Row:
        """The task's row with the rubric that it gets. ConfigError where nothing would be left."""
        old = Rubric.model_validate(task["rubric"])
        changes = {c.id: c.model_dump(exclude_none=True) for c in self.change}
        added = [a.criterion() for a in self.add if not a.variants or task["variant"] in a.variants]
        gone = {*self.drop, *(criterion.id for criterion in added)}
        kept = [
            criterion.model_copy(update=changes.get(criterion.id, {}))
            for criterion in old.criteria
            if criterion.id not in gone
        ]
        if not (criteria := (*kept, *added)):
            raise ConfigError(f"the rubric leaves task {task['task_id']} without any criterion")
        pass_threshold = old.pass_threshold if self.pass_threshold is None else self.pass_threshold
        rubric = Rubric(pass_threshold=pass_threshold, criteria=criteria)
        return task | {"rubric": rubric.model_dump(mode="json")}

    def check_ids(self, known: Set[str]) -> None:
        """ConfigError for a criterion to be changed that no rubric has. `known`: the ids of all
        rubrics that the patch is for. One to be dropped may be missing: then it is gone."""
        if unknown := sorted({change.id for change in self.change} - known):
            raise ConfigError(
                f"rubric: change names {', '.join(unknown)}, which no rubric of the dataset has; "
                f"its criteria: {', '.join(sorted(known))}"
            )

    def check(self, kinds: Kinds) -> None:
        """ConfigError for an added criterion that nobody could check."""
        for addition in self.add:
            if problem := kinds.problem_with(addition.criterion()):
                raise ConfigError(f"rubric: {problem}")


def load_rubric(path: Path) -> RubricPatch:
    """ConfigError naming the file and the field, its value and what is allowed."""
    return load_definition(RubricPatch, path)
