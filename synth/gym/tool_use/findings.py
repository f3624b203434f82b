"""What code finds of an episode that is over: success, statements, calls. No judge is asked."""

from collections.abc import Mapping
from typing import NamedTuple

from synth.episode.episode_state import EpisodeState
from synth.episode.tools.calls import FORMAT_ERRORS, CallRecord
from synth.rubrics.episode import Verdict
from synth.rubrics.reward import decide_by_code, left_open, rubric_of
from synth.rubrics.statements.statements import statements_of
from synth.rubrics.statements.unshown import plainly_told, unshown_values


class EpisodeFindings(NamedTuple):
    success: bool
    """Every mandatory criterion that code checks is found to be met, the weighted share is enough,
    and nothing false was told."""
    left_open: bool
    """A success but for a mandatory criterion that code cannot decide, such as whether words that
    it cannot read tell the user a value."""
    undecided: tuple[str, ...]
    """Ids of the mandatory criteria that code cannot decide, whatever else was found."""
    false_statements: int
    """Statements to the user that the records contradict, as far as code can tell."""
    unshown_values: int
    """Values told to the user that nothing shows (`synth.rubrics.statements.unshown`)."""
    calls: tuple[CallRecord, ...]
    """Of the agent."""
    valid_calls: tuple[CallRecord, ...]
    """Those of them that name a tool that is there, with arguments that its schema takes."""
    policy_violations: int
    """Calls that violated a policy."""


def findings_of(
    state: EpisodeState, verdicts: Mapping[str, Verdict] | None, *, plain_retelling: bool = False
) -> EpisodeFindings:
    """`verdicts` of the rubric's criteria; None where the episode says nothing about the agent.
    With `plain_retelling` an unshown value counts as false, and what stands in the answers word for
    word as told."""
    rubric = rubric_of(state.task)
    records = [record._asdict() for record in state.caller.records]
    contradicted = sum(s.outcome == "contradicted" for s in statements_of(state.messages, records))
    unshown = len(unshown_values(state.messages, records))
    is_false = bool(contradicted or (plain_retelling and unshown))
    accepted = verdicts is not None and decide_by_code(rubric, verdicts).accepted
    undecided = [] if verdicts is None else left_open(rubric, verdicts)
    if plain_retelling and plainly_told(rubric, undecided, state.messages):
        undecided = []
    calls = tuple(record for record in state.caller.records if record.actor == "agent")
    return EpisodeFindings(
        success=accepted and not undecided and not is_false,
        left_open=bool(accepted and undecided and not is_false),
        undecided=tuple(undecided),
        false_statements=contradicted,
        unshown_values=unshown,
        calls=calls,
        valid_calls=tuple(call for call in calls if call.error_code not in FORMAT_ERRORS),
        policy_violations=sum(bool(call.policy_violations) for call in calls),
    )
