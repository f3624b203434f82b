"""Perturbations: each fault has its words and its place, and stored rows stay as they were."""

import copy
import json
from pathlib import Path

import pytest

from records.seeds import rng_of
from records.tables.schemas import Row
from synth.judging.perturbation.attacks import CHANNELS
from synth.judging.perturbation.edited_words import edited_words
from synth.judging.perturbation.episodes import PassedEpisode, reported_in, said_in
from synth.judging.perturbation.faults import BY_NAME, FAULTS, EditedResult, call_to_edit
from synth.judging.perturbation.registry import (
    BY_PHRASE,
    PERTURBATIONS,
    attacked,
    base_of,
    perturb,
)
from synth.judging.perturbation.writing import WrittenEdit, with_edit
from synth.rubrics.built_in import BUILT_IN
from synth.rubrics.reward import evidence_of
from synth.rubrics.standing import STANDING
from tests.synth.judging.perturbation_work import sources

RECORDED = json.loads((Path(__file__).parent / "recorded_faults.json").read_text())
"""Faults and readings as a careful writer answered the requests, by fault."""


def test_the_sources_pass_by_code() -> None:
    for source in sources():
        seen = evidence_of(source.trajectory["messages"], source.calls)
        assert all(v.passed is not False for v in BUILT_IN.check_all(source.rubric, seen).values())


def test_every_fault_has_words_and_a_criterion_that_rejects() -> None:
    rejects = {criterion.id for criterion in STANDING if criterion.mandatory}
    assert len(FAULTS) == len(BY_NAME) >= 24
    for fault in FAULTS:
        assert fault.criterion_id in rejects, fault.name
        assert len(fault.what.split()) >= 8, fault.name
        assert fault.keep, fault.name
    assert {fault.criterion_id for fault in FAULTS} == rejects
    assert len(set(PERTURBATIONS)) == len(PERTURBATIONS)


@pytest.mark.parametrize("name", BY_PHRASE)
def test_a_failure_by_phrase_changes_what_the_agent_did_or_said(name: str) -> None:
    rejects = {criterion.id for criterion in STANDING if criterion.mandatory}
    made = [(s, negative) for s in sources() if (negative := perturb(name, s))]
    assert len(made) >= 5
    for source, negative in made:
        before = source.trajectory["messages"]
        words = edited_words(said_in(before), said_in(negative.messages), negative.wrong)
        assert words.added or words.removed
        assert negative.criterion_id in rejects


def test_faults_have_no_place_where_an_episode_has_nothing_for_them() -> None:
    silent = [s for s in sources() if not any(call["state_diff"] for call in s.calls)]
    assert silent
    assert not any(BY_NAME["work_denied"].fits(s) for s in silent)
    assert not any(BY_NAME["pretended_after_failure"].fits(s) for s in silent)
    assert not any(BY_NAME["result_invented"].fits(s) for s in sources() if not s.calls)
    wordless = with_reply(sources()[0], "All right.")
    assert not BY_NAME["wrong_value"].fits(wordless)
    done = next(s for s in sources() if any(call["state_diff"] for call in s.calls))
    tried_twice = [done.calls[-1] | {"is_error": True, "state_diff": []}, *done.calls]
    assert not BY_NAME["wrong_reason"].fits(PassedEpisode(
        done.trajectory, tried_twice, done.task, done.tools
    ))  # fmt: skip
    assert BY_NAME["wrong_reason"].fits(silent[0])
    assert not BY_NAME["swapped"].fits(with_reply(sources()[0], "It costs 5."))
    assert BY_NAME["swapped"].fits(with_reply(sources()[0], "It costs 5, not 6."))


def with_reply(source: PassedEpisode, text: str) -> PassedEpisode:
    messages, calls = with_edit(source, WrittenEdit(text))
    return PassedEpisode(
        source.trajectory | {"messages": messages}, calls, source.task, source.tools
    )


def test_a_farewell_is_not_the_reply_that_is_edited() -> None:
    source = next(s for s in sources() if s.calls)
    told = reported_in(source.trajectory["messages"])
    more = [{"role": "user", "content": "Thanks."}, {"role": "assistant", "content": "Bye!"}]
    messages = [*source.trajectory["messages"], *more]
    assert reported_in(messages) == told
    assert reported_in([m for m in messages if m["role"] == "user"]) == ""


@pytest.mark.parametrize("result", ["failed", "empty"])
def test_an_edited_result_stands_in_the_row_and_in_the_messages(result: EditedResult) -> None:
    edit = WrittenEdit("Done.", result='{"error": {"code": "x"}}', wrong="Done")
    for source in sources():
        if (call := call_to_edit(result, source)) is None:
            continue
        messages, calls = with_edit(source, edit, result)
        [(old, new)] = [(a, b) for a, b in zip(source.calls, calls, strict=True) if a != b]
        assert old == call
        shown = [m for m in messages if m.get("tool_call_id") == new["tool_call_id"]]
        assert [m["content"] for m in shown] == [new["observation"]] == [edit.result]
        assert new["is_error"] is (result == "failed")
        assert new["state_diff"] == []
        asked = [m for m in messages if m.get("tool_calls")]
        assert asked == [m for m in source.trajectory["messages"] if m.get("tool_calls")]


def test_a_call_that_is_taken_out_leaves_neither_row_nor_message() -> None:
    source = next(s for s in sources() if call_to_edit("taken_out", s))
    messages, calls = with_edit(source, WrittenEdit("It is under way."), "taken_out")
    assert calls == list(source.calls[:-1])
    assert source.calls[-1]["tool_call_id"] not in json.dumps(messages)
    assert reported_in(messages) == "It is under way."


def test_a_result_that_a_later_call_needed_cannot_have_been_empty() -> None:
    source = sources()[0]

    def call(index: int, name: str, arguments: Row, observation: str, **more: object) -> Row:
        row = {"call_index": index, "tool_call_id": f"c{index}", "name": name, "is_error": False}
        row |= {"arguments": arguments, "observation": observation, "actor": "agent"}
        return row | {"state_diff": []} | more

    found = call(0, "find", {"name": "Ann"}, '{"id": "P-17"}')
    stock = call(1, "stock", {}, '{"tents": 40}')
    book = call(2, "book", {"id": "P-17"}, "{}", state_diff=[{"op": "create"}])
    talk = [
        {"role": "user", "content": "Book for Ann."},
        *({"role": "tool", "tool_call_id": c["tool_call_id"], "content": c["observation"]}
          for c in (found, stock, book)),
        {"role": "assistant", "content": "Booked."},
    ]  # fmt: skip
    tools = [{"name": n, "annotations": {"readOnlyHint": True}} for n in ("find", "stock")]

    def episode(*calls: Row) -> PassedEpisode:
        trajectory = source.trajectory | {"messages": talk}
        return PassedEpisode(trajectory, calls, source.task, tools)

    assert call_to_edit("empty", episode(found, stock, book)) == stock
    assert call_to_edit("empty", episode(found, book)) is None
    assert call_to_edit("empty", episode(found)) == found
    assert call_to_edit("failed", episode(found, stock, book)) == book
    assert call_to_edit("failed", episode(found, stock)) is None


@pytest.mark.parametrize("channel", CHANNELS)
def test_text_aimed_at_the_judge_stands_in_its_channel_only(channel: str) -> None:
    role = {"agent_message": "assistant", "user_turn": "user"}.get(channel, "tool")
    made = 0
    for source in sources()[:60]:
        base = base_of(f"attack_{channel}", source)
        negative = perturb(base, source) if base else None
        if negative is None:
            continue
        before = copy.deepcopy(negative.messages)
        aimed = attacked(f"attack_{channel}", negative, rng_of("x", channel))
        if aimed is None:
            continue
        made += 1
        changed = [m for m, old in zip(aimed.messages, before, strict=True) if m != old]
        assert [m["role"] for m in changed] == [role]
        assert aimed.perturbation == f"attack_{channel}"
    assert made


def test_the_same_episode_is_perturbed_alike_and_stays_as_it_is() -> None:
    for source in sources()[:40]:
        before = copy.deepcopy((source.trajectory, list(source.calls), source.task))
        for name in BY_PHRASE:
            assert perturb(name, source) == perturb(name, source)
        with_edit(
            source, WrittenEdit("Other words.", result="{}"), "failed" if source.calls else None
        )
        assert (source.trajectory, list(source.calls), source.task) == before


@pytest.mark.parametrize(
    ("before", "after", "wrong", "quote", "named"),
    [
        ("It costs 25 in all.", "It costs 65 in all.", "", "It costs 65", True),
        ("It costs 25 in all.", "It costs 65 in all.", "", "in all", False),
        ("It costs 25. Bye.", "Bye.", "", "It costs 25", True),
        ("It costs 25. Bye.", "Bye.", "", "Bye", False),
        ("All is done.", "All is done.", "is done", "ALL IS *done*", True),
        ("All is done.", "All is done.", "", "All is done", False),
        ("Am 5. Mai, 9 Uhr.", "Am 6. Mai, 9 Uhr.", "", "Am ... 6. Mai", True),
        ("您的预约在三月。", "您的预约在五月。", "", "在五月", True),
        ("您的预约在三月。", "您的预约在五月。", "", "您的预约", False),
        ("It costs 25.", "It costs 65.", "", "", False),
        ("It costs 25.", "It costs 65.", "", "nothing of the kind", False),
    ],
)
def test_a_quotation_names_an_edit_where_it_meets_it(
    before: str, after: str, wrong: str, quote: str, named: bool
) -> None:
    assert edited_words(before, after, wrong).are_named_in(quote) is named


def test_an_edit_that_only_leaves_words_out_is_told_apart() -> None:
    assert edited_words("It costs 25. Bye.", "Bye.").only_removed
    assert not edited_words("It costs 25.", "It costs 65.").only_removed
    assert not edited_words("Bye.", "Bye.").only_removed


def test_a_text_that_breaks_off_is_named_by_its_last_words() -> None:
    words = edited_words("It costs 25 in all. Bye.", "It costs 25 in")
    assert words.only_removed
    assert words.are_named_in("costs 25 in")
    assert not words.are_named_in("It costs")
    assert not edited_words("It costs 25. Bye.", "It costs 25.").are_named_in("It costs 25")
    assert not edited_words("It costs 25", "").are_named_in("")


def test_every_fault_was_written_and_read_once_in_earnest() -> None:
    confirmed = {one["fault"] for one in RECORDED if one["reading"]["faulty"] != "neither"}
    assert confirmed == set(BY_NAME)


@pytest.mark.parametrize("one", RECORDED, ids=lambda one: one["fault"])
def test_recorded_readings_name_the_recorded_edits(one: dict[str, dict[str, str]]) -> None:
    written, reading = one["written"], one["reading"]
    words = edited_words(str(one["reply"]), written["reply"], written["wrong"])
    assert words.are_named_in(written["wrong"]) is bool(written["wrong"])
    assert words.are_named_in(reading["quote"]) is (reading["faulty"] != "neither")
    kept = "Let me know if you need anything else"
    assert words.are_named_in(kept) is (kept in str(one["reply"]) and kept not in written["reply"])
