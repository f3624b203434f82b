"""The page of a rejected row tells a newcomer why: code first, who decided, the plan, the words."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.browser.stage_reasons import run_in_words, stage_reason_in_words
from tests.records.rows import row
from tests.synth.browser.shown import client_of
from tests.synth.publish.judged import curate, decision, told_false, verdict
from tests.synth.small_dataset import KEPT, RUBRIC, call, calls_of, trajectory, write_dataset

PLAN = [
    {"tool": "find_boats", "arguments": {"name": "Heron"}, "actor": "agent"},
    {"tool": "rent_boat", "arguments": {"name": "Heron", "limit": 3}, "actor": "agent"},
    {"tool": "pay_boat", "arguments": {}, "actor": "agent"},
]


def rejected(folder: Path, one: Row, reason: str, verdicts: list[Row], **more: Any) -> Dataset:
    """A dataset with one rejected trajectory, whose task has limits and a plan."""
    dataset = write_dataset(folder / "data", [])
    task = row(
        "tasks",
        task_id="task-2",
        rubric=RUBRIC,
        reference_plan=PLAN,
        max_turns=3,
        token_budget=10,
        split="train",
    )
    name = one["trajectory_id"]
    calls = [made | {"arguments": json.loads(made["arguments"])} for made in calls_of(one)]
    dataset.commit(
        run_id="run-1",
        stage="rollouts",
        shard=5,
        tables={"tasks": [task], "trajectories": [one], "tool_calls": calls},
        items={name: KEPT},
    )
    curate(dataset, [decision(name, reason, **more)], verdicts)
    return dataset


def text_of(page: str) -> str:
    """What a reader sees, without the elements."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.split("<main")[1])).split())


def box_of(page: str) -> str:
    """The field with the decision."""
    return page.split('<div class="decision')[1].split('<p class="facts')[0]


def shown(dataset: Dataset, name: str = "t1") -> str:
    return client_of(dataset).get(f"/d/data/trajectories/{name}").text


def one(**more: Any) -> Row:
    return trajectory("t1", task_id="task-2", **more)


def test_a_judges_empty_words_stand_after_what_code_shows_and_as_the_judges(
    tmp_path: Path,
) -> None:
    verdicts = [
        verdict("t1", "harm", "judge", False, evidence="it does not look so"),
        verdict("t1", "format", "code", False, kind="format", evidence="the last message is empty"),
        verdict(
            "t1", "economy", "code", False, mandatory=False, evidence="2 calls", kind="economy"
        ),
    ]
    more = {"failed_criterion": "harm", "attributed_to": "agent"}
    box = text_of(
        "<main>" + box_of(shown(rejected(tmp_path, one(), "failed_harm", verdicts, **more)))
    )
    told = [
        "Rejected: The agent asks for a secret",
        "Criterion not passed, by judge: harm",
        "Only a judge can tell it",
        "Of the 3 calls of the reference plan: 1 as planned, 1 with other arguments (rent_boat)",
        "The judge says: \u201cit does not look so\u201d",
        "The judge names no message",
        "Not passed either: format",
        "Code found: the last message is empty",
        "economy ( scored : it rejects nothing by itself) Code found: 2 calls",
    ]
    places = [box.find(words) for words in told]
    assert -1 not in places, box
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("code", "judge", "words"),
    [
        (None, True, "Code looked and could not tell for sure, so the judge was asked"),
        (True, False, "Code decided it; the judge was asked too, says the opposite"),
        (True, True, "Code decided it; the judge was asked too, agrees"),
        (None, None, "Code looked and could not tell for sure, and no judge's word counts"),
    ],
)
def test_the_page_says_who_decided_a_criterion_and_why(
    tmp_path: Path, code: bool | None, judge: bool | None, words: str
) -> None:
    kind = {"kind": "communicate"}
    verdicts = [verdict("t1", "told_1", "code", code, evidence="told 0", **kind)]
    if judge is not None:
        verdicts.append(verdict("t1", "told_1", "judge", judge, **kind))
    page = shown(rejected(tmp_path, one(), "low_score", verdicts))
    card = page.split('id="criterion-told_1"')[1].split("</section>")[0]
    assert words in html.unescape(card)
    assert "Code found: told 0" in card


def test_a_verdict_not_shown_stands_beside_what_was_changed_and_what_the_judge_is_worth(
    tmp_path: Path,
) -> None:
    diff = [{"op": "update", "entity": "boat", "id": "B-1", "before": {"free": 1}, "after": {}}]
    dataset = rejected(
        *(tmp_path, one(), "failed_truth", told_false("t1")), failed_criterion="truth"
    )
    calls = [
        made | {"arguments": json.loads(made["arguments"]), "state_diff": diff}
        for made in calls_of(one())
        if made["name"] == "find_boats"
    ]
    trial = [
        row(
            "calibration",
            grading_id="grading-2",
            trajectory_id=f"c{n}",
            perturbation="some",
            criterion_id="truth",
            writer_version="w1",
            expected=n == 0,
            judge_passed=n < 2,
            checker_version="judge-model@1",
            split="train",
        )
        for n in range(4)
    ]
    dataset.commit(
        run_id="run-1",
        stage="rollouts",
        shard=6,
        tables={"tool_calls": calls, "calibration": trial},
        supersedes=True,
    )
    page = shown(dataset)
    box = text_of("<main>" + box_of(page))
    assert "The judge is judge-model. When it was tried, it passed 1 of 3 replies" in box
    assert "Message 5 : the judge finds this not shown :" in box
    assert box.count("I wrote to the harbour.") == 1
    changed = box.split("What the calls before message 5 changed")[1]
    assert "call 3.1 (find_boats) update boat B-1" in changed


def test_calls_are_named_as_the_page_numbers_them_and_lead_there(tmp_path: Path) -> None:
    evidence = "3 calls; call 2 repeats call 1."
    verdicts = [verdict("t1", "economy", "code", False, kind="economy", evidence=evidence)]
    page = shown(rejected(tmp_path, one(), "low_score", verdicts))
    linked = re.findall(r'<a href="#([^"]*)">call (\d\.\d)</a>', box_of(page))
    assert linked == [("message-4-call-1", "4.1"), ("message-3-call-2", "3.2")]
    assert "call 2 repeats" not in page
    for anchor in re.findall(r'href="#(message-[^"]*)"', page):
        assert f'id="{anchor}"' in page


def test_the_headline_of_a_limit_gives_the_limit_and_what_was_used(tmp_path: Path) -> None:
    turns = shown(rejected(tmp_path / "turns", one(num_turns=3), "max_turns", []))
    assert "The agent wrote 3 of 3 messages that are allowed, and was not done." in turns
    tokens = shown(rejected(tmp_path / "tokens", one(), "token_budget", []))
    [used] = re.findall(r"took some ([\d,]+) tokens, and the task allows 10\.", tokens)
    assert int(used.replace(",", "")) > 10


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (
            "Expected no call of rent_boat; seen 1 such calls.",
            "A call was made that the task forbids",
        ),
        ("Expected a successful call of rent_boat; seen 0.", "A call that the task needs was not"),
        ("in other words", "A call that the task needs was not made, or one that it forbids was."),
    ],
)
def test_the_headline_tells_which_way_a_call_went_wrong(
    tmp_path: Path, evidence: str, words: str
) -> None:
    failed = verdict("t1", "order_1", "code", False, kind="call", evidence=evidence)
    more = {"failed_criterion": "order_1"}
    assert words in shown(rejected(tmp_path, one(), "failed_call", [failed], **more))


def test_the_plan_stands_beside_the_calls_that_were_made(tmp_path: Path) -> None:
    page = shown(rejected(tmp_path, one(), "failed_state", []))
    table = text_of("<main>" + page.split('id="plan"')[1].split("</table>")[0])
    assert re.search(r"1\. find_boats .* made call 3\.1 \(find_boats\)", table)
    assert re.search(r"3\. pay_boat \{\} missing", table)
    assert re.search(
        r"not in the plan extra call 3\.2 \(rent_boat\).* refused: rate_limited", table
    )


def test_messages_that_come_again_are_folded_and_stay_reachable(tmp_path: Path) -> None:
    messages: list[Row] = [{"role": "user", "content": "Rent it."}]
    for number in range(4):
        asked = [call(f"c{number}", "rent_boat", "{}")]
        messages.append({"role": "assistant", "content": "", "tool_calls": asked})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "no"})
    again = trajectory("t1", messages, task_id="task-2")
    page = shown(rejected(tmp_path, again, "max_turns", [], train_turns=[False] * 9))
    [fold] = re.findall(r'<details class="same">.*?</summary>', page)
    assert "the same 3 more times: messages 3 to 5" in text_of("<main>" + fold)
    assert all(f'id="message-{number}-call-1"' in page for number in (2, 3, 4, 5))


def test_every_word_that_is_explained_leads_to_its_explanation(tmp_path: Path) -> None:
    verdicts = [
        verdict("t1", "truth", "code", None, evidence="0 statements match, 2 are open."),
        verdict("t1", "user_part", "judge", True),
        verdict("t1", "told_1", "judge", True, kind="communicate"),
        verdict("t1", "helpful", "judge", False, mandatory=False),
    ]
    more = {"self_judged": True, "attributed_to": "agent"}
    page = shown(rejected(tmp_path, one(), "low_score", verdicts, **more))
    legend = page.split('id="words"')[1]
    for anchor, title in re.findall(r'class="word" href="#([^"]*)" title="([^"]*)"', page):
        assert f'id="{anchor}"' in legend
        assert title in legend
    words = ("judge status", "self-judged", "scored", "open statement", "user_part", "told_1")
    assert "whether every statement of the agent to the user is true" in legend
    for word in (*words, "state_machine"):
        assert re.search(rf"<b><bdi>[^<]*{word}[^<]*</bdi></b>: \w", legend), word
    assert 'title="the tool is a small program' in page.split('id="words"')[0]


def test_a_reason_of_a_stage_and_the_end_of_a_run_are_words(tmp_path: Path) -> None:
    assert stage_reason_in_words("no_place").startswith("the writer found no place")
    assert stage_reason_in_words("of_my_own") == "of my own"
    stopped = "It was stopped before its end (CancelledError)"
    assert run_in_words("failed", "CancelledError: ").startswith(stopped)
    assert run_in_words("failed", "ConfigError: no such file") == "ConfigError: no such file"
    assert run_in_words("completed", "judge") == "judge"
    dataset = write_dataset(tmp_path / "data", [(trajectory("t1"), "failed_state")])
    page = client_of(dataset).get("/d/data").text
    assert re.search(r'<span class="share"><svg.*?</svg>100%</span>', page)
    assert "a sandbox, server or process was lost" in page
