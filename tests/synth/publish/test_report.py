"""The report: counts that add up, nothing from the data that acts, every state of a dataset."""

import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, sync_playwright

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.publish.report import report_html, summary_markdown, write_report
from synth.publish.summary import kappa, summarise
from synth.render.foreign_text import markdown_text, visible
from tests.records.rows import row
from tests.synth.publish.judged import REPLY, curate, decision, verdict
from tests.synth.small_dataset import (
    MODEL,
    START,
    conversation,
    llm_call,
    trajectory,
    write_dataset,
)

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</pre></details></style><a href='javascript:void(0)'>a</a> [link](http://evil.example/x)"
    " ![image](http://evil.example/y.png) http://evil.example/z {{ 7 * 7 }} `code` | pipe"
    " \x1b[31mred\x1b[0m \u202eright to left\u202c\x07"
)
LINKS = "see www.evil.example, HTTPS://evil.example/?a=1 or mail me@evil.example"
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""An independent reader of markdown that lets HTML through."""


def hostile_trajectory(trajectory_id: str) -> Row:
    messages = conversation(HOSTILE)
    messages[0]["content"] = HOSTILE
    messages[2]["reasoning_content"] = HOSTILE
    messages[2]["tool_calls"][0]["function"] = {"name": HOSTILE, "arguments": HOSTILE}
    messages[3]["content"] = HOSTILE
    messages[-1]["content"] = HOSTILE
    return trajectory(trajectory_id, messages, variant=HOSTILE, termination_reason=HOSTILE)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    rows = [(hostile_trajectory("a"), None), (hostile_trajectory("b"), HOSTILE)]
    dataset = write_dataset(
        tmp_path_factory.mktemp("hostile") / "data",
        rows,
        domain=HOSTILE,
        model=HOSTILE,
        words=HOSTILE,
    )
    said = {"id": "s1", "message": REPLY, "says": HOSTILE, "finding": "not_shown"}
    said |= {"evidence": HOSTILE, "quote": HOSTILE, "supported": True}
    words = {"evidence": HOSTILE, "quote": HOSTILE, "details": [said]}
    failed = verdict("b", "truth", "judge", False, **words)
    curate(dataset, [decision("b", HOSTILE, failed_criterion="truth")], [failed])
    return dataset


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    reasons = [None, None, None, "failed_state", "max_turns"]
    rows = [(trajectory(f"t{i}"), reason) for i, reason in enumerate(reasons)]
    return write_dataset(tmp_path_factory.mktemp("small") / "small", rows)


def test_every_requested_item_is_accounted_for(small: Dataset) -> None:
    for stage in summarise(small).yields:
        counted = sum(stage[fate] for fate in ("kept", "dropped", "failed", "pending"))
        assert stage["requested"] == counted
    rollouts = next(s for s in summarise(small).yields if s["stage"] == "rollouts")
    assert (rollouts["requested"], rollouts["failed"], rollouts["pending"]) == (7, 1, 1)


def test_the_words_of_one_failed_item_stand_beside_its_stage(small: Dataset) -> None:
    words = "infra_error: The boat is rented."
    assert [stage["example"] for stage in summarise(small).yields if stage["failed"]] == [words]
    assert words in report_html(small)
    assert markdown_text(words) in summary_markdown(small)


def test_headline_numbers_are_those_of_the_rows(small: Dataset) -> None:
    totals = summarise(small).totals
    assert (totals["trajectories"], totals["accepted"], totals["recovered"]) == (5, 3, 3)
    assert totals["cost_per_accepted"] == pytest.approx(0.5 / 3)
    assert totals["accepted_per_hour"] == pytest.approx(1.5)


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Two accepted trajectories, a request that failed twice and one that had to be changed."""
    rows = [(trajectory(name), None) for name in ("a", "b")]
    dataset = write_dataset(tmp_path_factory.mktemp("spent") / "d", rows)
    bought = llm_call("judge-1", "judge", MODEL, cost=0.25) | {
        "cached_tokens": 60,
        "reasoning_tokens": 12,
        "fallback": f"without `seed`: {HOSTILE}",
    }
    again = llm_call("judge-2", "judge", MODEL, cost=0.0) | {"cache_hit": True}
    again |= {"prompt_tokens": 0, "completion_tokens": 0}
    failed = [
        llm_call(f"failed-{i}", "judge", MODEL, cost=0.0)
        | {"status": "server_error", "detail": words, "started_at": START + timedelta(hours=i)}
        for i, words in enumerate(("the older words", HOSTILE))
    ]
    calls = [bought, again, *failed]
    dataset.commit(run_id="run-1", stage="grading", shard=9, tables={"llm_calls": calls})
    return dataset


def test_what_each_role_took_and_cost_is_that_of_its_requests(spent: Dataset) -> None:
    agent, judge = summarise(spent).spending.roles
    assert (agent["role"], agent["cost_per_accepted"]) == ("agent", 0.25)
    assert (judge["requests"], judge["reused"], judge["not_ok"]) == (3, 1, 2)
    tokens = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
    assert [judge[name] for name in tokens] == [300, 60, 60, 12]
    assert (judge["cost_usd"], judge["cost_per_accepted"]) == (0.25, 0.125)
    assert summarise(spent).totals["cost_per_accepted"] == pytest.approx(0.375)
    assert "$0.38 for each accepted trajectory" in report_html(spent)


def test_failed_requests_and_changed_ones_are_told_in_the_servers_words(spent: Dataset) -> None:
    found = summarise(spent).spending
    assert [(r["status"], r["n"], r["example"]) for r in found.failures] == [
        ("server_error", 2, HOSTILE)
    ]
    assert [row["n"] for row in found.fallbacks] == [1]
    html, shown = report_html(spent), READER.render(summary_markdown(spent))
    for text in (html, shown):
        assert "<script>document" not in text
        assert "\x1b" not in text
        assert text.count("&lt;script&gt;document") == 2
        assert "without `seed`: &lt;script" in text


def test_a_dataset_in_which_all_went_well_tells_of_no_failure(small: Dataset) -> None:
    for text in (report_html(small), summary_markdown(small)):
        assert "Requests that failed" not in text
        assert "wanted otherwise" not in text


def test_a_run_that_has_not_ended_lasted_until_its_last_model_call(tmp_path: Path) -> None:
    dataset = Dataset.create_or_open(tmp_path / "d")
    begun = row("runs", invocation_id="invocation-1", event="started", happened_at=START)
    call = llm_call("call-1", "agent", MODEL, cost=0.0)
    call |= {"started_at": START + timedelta(hours=3)}
    tables = {"runs": [begun], "llm_calls": [call]}
    dataset.commit(run_id="run-1", stage="rollouts", shard=0, tables=tables)
    assert summarise(dataset).totals["hours"] == pytest.approx(3.0)


def test_errors_are_counted_with_their_recoveries(small: Dataset) -> None:
    [injected] = summarise(small).errors
    assert injected["kind"] == "rate_limit"
    assert injected["injected"]
    assert injected["errors"] == injected["recovered"] == 5


def test_a_judge_who_passes_everything_has_no_kappa_to_speak_of(small: Dataset) -> None:
    told, goal = summarise(small).agreement
    assert (told["kind"], told["tpr"], told["tnr"], told["kappa"]) == ("communicate", 1, None, None)
    assert (goal["kind"], goal["tpr"], goal["tnr"], goal["kappa"]) == ("state", 1, 0, 0)


def test_kappa_of_agreement_chance_and_contradiction() -> None:
    assert kappa(10, 0, 0, 10) == 1
    assert kappa(5, 5, 5, 5) == 0
    assert kappa(0, 10, 10, 0) == -1
    assert kappa(0, 0, 0, 0) is None
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5
    assert kappa(20, 5, 10, 15) == pytest.approx(0.4)


@pytest.mark.slow
def test_offline_numbers_carry_their_label(small: Dataset, tmp_path: Path) -> None:
    assert "offline model" in report_html(small)
    assert "offline model" in summary_markdown(small)
    models = {"agent": "big-model", "user": "big-model"}
    hosted = write_dataset(
        tmp_path / "hosted", [(trajectory("t", models=models), None)], model="big-model"
    )
    assert "offline model" not in report_html(hosted)


def test_rejected_conversations_show_the_failed_criterion_first(small: Dataset) -> None:
    html = report_html(small)
    rejected = html[html.index("failed_state</bdi>") :]
    assert rejected.index("code looked at goal") < rejected.index("code looked at told")


def test_a_dataset_without_trajectories_has_a_report(tmp_path: Path) -> None:
    empty = Dataset.create_or_open(tmp_path / "empty")
    path = write_report(empty)
    assert path == empty.root / "report.html"
    assert "No trajectories yet" in path.read_text()
    assert "none" in summary_markdown(empty)


@pytest.mark.slow
def test_the_same_dataset_gives_the_same_report(small: Dataset) -> None:
    assert report_html(small) == report_html(small)


def test_control_characters_are_spelt_out() -> None:
    assert (
        visible("a\x1b[31m\u202eb\r\n\tc\U000e0041")
        == "a[U+001B][31m[U+202E]b[U+000D]\n\tc[U+E0041]"
    )


def test_markdown_of_hostile_names_is_text(hostile: Dataset) -> None:
    html = READER.render(summary_markdown(hostile))
    for tag in ("<script", "<img", "<a ", "<code"):
        assert tag not in html
    assert "\x1b" not in html
    assert "\u202e" not in html


@pytest.mark.parametrize(
    "text", [HOSTILE, "*a* _b_ ~c~ # d", "1. x", "- y", "a\n\nb", "\\*", "&amp;", LINKS]
)
def test_markdown_text_renders_as_itself(text: str) -> None:
    html = READER.render(f"x {markdown_text(text)}")
    plain = visible(" ".join(text.split()))
    for character, entity in {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}.items():
        plain = plain.replace(character, entity)
    assert html.replace("\u2060", "") == f"<p>x {plain}</p>\n"
    # what readers of GitHub's markdown look for in text when all else is parsed
    assert not re.search(r"https?://|www\.|\w@\w", html, re.IGNORECASE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_a_hostile_dataset_is_text_in_a_browser(hostile: Dataset, browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("dialog", lambda dialog: complaints.append("dialog"))
    path = write_report(hostile)
    page.goto(path.as_uri())
    assert asked == [path.as_uri()]
    assert complaints == []
    assert page.title() == "data: dataset report"
    elements = page.evaluate(
        "() => [...document.querySelectorAll('script, img, a, iframe, link, object')].length"
    )
    assert elements == 0
    style = page.evaluate("() => getComputedStyle(document.querySelector('.card')).borderRadius")
    assert style == "12px"  # the policy's hash is that of the style sheet
    page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
    text = page.inner_text("body")
    assert text.count("<script>document.title='owned'</script>") >= 10
    assert "[U+202E]right to left" in text
    assert "{{ 7 * 7 }}" in text
    page.close()


def test_the_policy_would_stop_what_escaping_let_through(
    hostile: Dataset, browser: Browser
) -> None:
    html = report_html(hostile).replace(
        "<main>", "<main><img src='http://evil.example/i.png' onerror='document.title=1'>"
    )
    page = browser.new_page()
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text))
    page.set_content(html)
    assert page.title() == "data: dataset report"
    assert any("Content Security Policy" in text for text in blocked)
    page.close()
