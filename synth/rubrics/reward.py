"""What code makes of an episode's rows: evidence for the checks, their rule, and the reward.

The same functions serve the running episode and the stored one, so both come to one verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from records.tables.schemas import Row
from synth.rubrics.built_in import Episode, EpisodeCall, PolicyViolation, Verdict, episode_of
from synth.rubrics.criteria import Decision, Rubric, decide


def rubric_of(task: Row) -> Rubric:
    return Rubric.model_validate(task["rubric"])


def evidence_of(
    messages: Sequence[dict[str, Any]],
    calls: Iterable[Mapping[str, Any]],
    tests: Mapping[str, str | None] | None = None,
) -> Episode:
    """What the checks see of an episode, from its messages and its rows of `tool_calls`, and for a
    task on code from its graded tests (`synth.episode.tools.code_bench`)."""
    calls = list(calls)
    return episode_of(
        messages,
        [
            EpisodeCall(
                tool=call["name"],
                arguments=call["arguments"],
                observation=call["observation"],
                is_error=call["is_error"],
                error_code=call.get("error_code"),
                diff=tuple(call["state_diff"] or ()),
                actor=call["actor"],
                turn=call["turn"],
            )
            for call in calls
        ],
        policy_violations=[
            PolicyViolation(rule=rule, call_index=call["call_index"])
            for call in calls
            for rule in call["policy_violations"]
        ],
        tests=tests,
    )


def decide_by_code(rubric: Rubric, verdicts: Mapping[str, Verdict]) -> Decision:
    """The rubric's rule over the criteria that code decides; `nl` ones, and those that code leaves
    open, stand aside."""
    is_open = {i for i, verdict in verdicts.items() if verdict.passed is None}
    checked = [c for c in rubric.criteria if c.kind != "nl" and c.id not in is_open]
    if not checked:
        return Decision(False, 0.0, ())
    part = rubric.model_copy(update={"criteria": tuple(checked)})
    return decide(part, {i: v.score for i, v in verdicts.items() if i not in is_open})


def left_open(rubric: Rubric, verdicts: Mapping[str, Verdict]) -> list[str]:
    """Ids of the mandatory criteria that code checks and cannot decide here."""
    return [
        criterion.id
        for criterion in rubric.criteria
        if criterion.mandatory
        and criterion.id in verdicts
        and verdicts[criterion.id].passed is None
    ]


def objective_reward(rubric: Rubric, verdicts: Mapping[str, Verdict]) -> float:
    """The weighted share of what code checks; 0 when a mandatory criterion of it failed."""
    decision = decide_by_code(rubric, verdicts)
    return 0.0 if decision.failed else decision.share
