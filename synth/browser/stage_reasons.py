"""Why items of a stage were not kept, and how a run ended, in words for somebody who is new."""

import re

_REASONS = {
    "near_duplicate": "another one says nearly the same",
    "brief_incomplete": "the words of the task left out something that they have to say",
    "no_place": "the writer found no place in the conversation for the fault that was to be put in",
    "no_place_by_code": "the conversation has no place for the fault that was to be put in",
    "not_written": "what was written for the fault fits no edit of the conversation",
    "not_confirmed": "neither code nor a second reading found the fault that was put in",
    "unknown_kind": "its rubric has a criterion that this run cannot check",
    "nothing_to_rewrite": "all of the text stands as it is, such as a table",
    "repeated_source": "the same text came before",
    "declined": "the model declined to write it",
    "not_sound": "what was proposed does not hold together",
    "nothing_kept": "no tool of it passed its validation",
    "cut_off": "the answer broke off",
    "moderated": "the server refused the content",
    "invalid_output": "the model's answers did not have the form that was asked for",
    "not_found": "it was not there",
    "source_changed": "a file changed since the run was planned",
    "server_unavailable": "a server did not answer",
    "plan_fails": "the plan that was to reach the goal does not",
    "fails_own_rubric": "its own reference plan does not pass its rubric",
    "infra_error": "a sandbox, server or process was lost",
    "no_answer": "the model gave no answer",
    "ambiguous": "it can be read in two ways",
    "too_short": "it is too short",
    "too_long": "it is too long",
}

_STOPPED = {"CancelledError", "KeyboardInterrupt", "SystemExit"}
"""Errors by which a run is stopped from outside, and which have no words of their own."""

_WITHOUT_WORDS = re.compile(r"\s*(\w+):?\s*")


def stage_reason_in_words(reason: str) -> str:
    """Why an item of a stage was not kept; the reason's own words where it explains itself."""
    return _REASONS.get(reason) or reason.replace("_", " ")


def run_in_words(status: str | None, detail: str) -> str:
    """What a run says of itself, and where an error alone ended it, what that means."""
    if status in ("completed", "running") or not (error := _WITHOUT_WORDS.fullmatch(detail)):
        return detail
    if error[1] in _STOPPED:
        return f"It was stopped before its end ({error[1]}); the same command goes on from there."
    return f"It ended by an error that says no more than its name, {error[1]}."
