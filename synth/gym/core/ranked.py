"""Tasks whose answers no code can reward: whoever plays them ranks the answers of a task against
each other (`trainer.rl.critic`).

Such a task has the tag `RANKED`. Its episodes end without a reward of their own, and the rubric in
its body, if there is one, says what an answer is compared by beside what always counts.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from records.errors import ConfigError
from synth.gym.core.environment import GymTask

RANKED = "judge:critic"
"""The tag."""

MOST_RULES = 12
"""Of one task: more would fill the prompt that they are read in."""


class RubricRule(NamedTuple):
    rule: str
    """What is wanted of an answer, in a line."""
    mandatory: bool = False
    """Whether an answer that does not keep it is worse than any that does."""


def is_ranked(task: GymTask) -> bool:
    """Whether the answers of the task are ranked, and never rewarded by code."""
    return RANKED in task.tags


def rubric_of(task: GymTask) -> list[RubricRule]:
    """The task's own rules. ConfigError for a rubric that is none."""
    return rules_in(task.body.get("rubric"), where=f"task {task.task_id} of {task.family}")


def rules_in(value: Any, *, where: str) -> list[RubricRule]:
    """The rules of a text, or of a list of texts and of objects `{"rule": ..., "mandatory": ...}`;
    none of nothing. `where` names the place in errors: ConfigError for anything else."""
    given = value if isinstance(value, list | tuple) else [] if value in (None, "") else [value]
    if len(given) > MOST_RULES:
        raise ConfigError(f"{where}: a rubric has at most {MOST_RULES} rules, got {len(given)}")
    return [_rule(one, where) for one in given]


def _rule(value: Any, where: str) -> RubricRule:
    if isinstance(value, Mapping) and value.keys() <= {"rule", "mandatory"}:
        rule, mandatory = value.get("rule"), value.get("mandatory")
    else:
        rule, mandatory = value, False
    if not (isinstance(rule, str) and rule.strip() and mandatory in (True, False, None)):
        raise ConfigError(
            f"{where}: {value!r} is no rule of a rubric; give a text, or an object such as "
            '{"rule": "names a source", "mandatory": true}'
        )
    return RubricRule(" ".join(rule.split()), bool(mandatory))
