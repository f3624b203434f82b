"""Episodes of answers from given material: rewards, and none where nobody decides."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from synth.gym.core.asking import Asking
from synth.gym.core.environment import GymStep, GymTask, checked
from synth.gym.grounding.environment import MOST_COUNTED, GroundedAnswers
from synth.gym.grounding.settings import GroundingSettings
from synth.llm.settings.config import RoleConfig
from tests.synth.llm.server import Body, answer, in_thread

DOCUMENT = (
    "The library in Torvik lends books for four weeks. A late book costs 2 euros a week. The "
    "reading room has 48 seats. Music scores are kept on the second floor. The branch in Ulsby "
    "closed in 2019. New members need a proof of address. Children borrow up to ten books. Every "
    "Thursday evening volunteers read aloud from old travel reports in the small hall beside the "
    "entrance, and everybody who wants to listen is welcome to bring a cushion and a cup of tea. "
    "The lift is out of order until the spring, so wheelchairs reach the first floor by the ramp."
)
SETTINGS = GroundingSettings.model_validate({"files": [{"path": "rows.jsonl"}]})
COPIED = "A late book costs 2 euros a week."
RETOLD = "You pay two euros for every week that a book is late."
INVENTED = "Fines can be paid by card."


def task(**changes: Any) -> GymTask:
    body = {
        "question": "What does a late book cost?",
        "documents": [DOCUMENT],
        "results": [],
        "answerable": True,
        "answers": ["2 euros"],
    }
    return GymTask("t", "grounding", "train", ("kind:question",), body | changes)


UNANSWERABLE = task(question="When was the library built?", answerable=False, answers=[])
SILENT = "The document does not say when the library was built."


def play(text: str, of: GymTask, asking: Asking | None = None) -> GymStep:
    async def work() -> GymStep:
        episode = await GroundedAnswers(SETTINGS, asking=asking or Asking()).begin(of, 0)
        return await episode.step({"role": "assistant", "content": text})

    return asyncio.run(work())


def value(
    text: str, of: GymTask, asking: Asking | None = None
) -> tuple[float, Mapping[str, float]]:
    step = play(text, of, asking)
    assert step.reward is not None, step.outside
    reward = checked(step.reward)
    return reward.value, reward.parts


def judge(findings: Mapping[str, tuple[str, str]], *, answered: bool = True) -> Any:
    """A server that judges by words of the sentence: (finding, quote)."""

    def script(number: int, body: Body) -> Body:
        text = body["messages"][-1]["content"].partition("## Sentences to judge")[2]
        shown = json.loads(text.split("```")[1].removeprefix("json"))
        sentences = {}
        for one in shown:
            said, quote = next(own for words, own in findings.items() if words in one["says"])
            sentences[one["id"]] = {"evidence": "", "quote": quote, "finding": said}
        given = {"sentences": sentences, "answered": {"evidence": "", "passed": answered}}
        return answer(json.dumps(given))

    return in_thread(script)


def asking_of(url: str) -> Asking:
    return Asking({"judge": RoleConfig.model_validate({"base_url": url, "models": ["m"]})})


def test_the_policy_reads_the_material_and_the_question() -> None:
    async def work() -> str:
        return (await GroundedAnswers(SETTINGS).begin(task(), 0)).messages[-1]["content"]

    shown = asyncio.run(work())
    assert DOCUMENT in shown
    assert shown.endswith("Question: What does a late book cost?")


def test_without_a_judge_what_nobody_decides_has_no_reward() -> None:
    for text in (RETOLD, f"{COPIED} {INVENTED}"):
        step = play(text, task())
        assert step.reward is None
        assert step.outside is not None
        assert "nobody plays the role judge" in step.outside


def test_without_a_judge_what_code_decides_has_one() -> None:
    assert value(COPIED, task())[0] == 1
    assert value(SILENT, UNANSWERABLE)[0] == 1


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("", task()),
        ("...", task()),
        (SILENT, task()),
        ("The reading room has 48 seats.", task()),  # true, and no answer
        ("A late book costs 7 euros a week.", task(answers=["7 euros"])),
        (DOCUMENT, task()),
        ("The library was built in 1874.", UNANSWERABLE),
        (COPIED, UNANSWERABLE),
        (f"{SILENT} It opened in 1874.", UNANSWERABLE),
    ],
)
def test_what_is_worth_nothing_whatever_a_judge_would_say(text: str, of: GymTask) -> None:
    assert value(text, of)[0] == 0


def test_the_judge_is_asked_for_what_is_open_alone_and_counted_apart() -> None:
    words = {"You pay": ("supported", "2 euros a week"), "Fines": ("unsupported", "")}
    with judge(words) as server:
        asking = asking_of(server.url)
        found, parts = value(f"{COPIED} {RETOLD} {INVENTED}", task(), asking)
        asking.close_now()
        asked = server.requests[0]["messages"][-1]["content"].partition("## Sentences")[2]
    assert COPIED not in asked.partition("Read each")[0]
    assert found == pytest.approx(2 / 3)
    assert parts["code_supported"] == parts["judge_supported"] == parts["judge_unsupported"] == 1


@pytest.mark.parametrize(
    ("finding", "quote", "found"),
    [
        ("supported", "2 euros a week", 1),
        ("supported", "two euros weekly", 0),  # stands nowhere
        ("supported", "", 0),
        ("contradicted", "2 euros", 0),
        ("unsupported", "", 0),
        ("no_claim", "", 0),
    ],
)
def test_a_finding_counts_by_the_words_that_it_quotes(
    finding: str, quote: str, found: float
) -> None:
    with judge({"You pay": (finding, quote)}) as server:
        asking = asking_of(server.url)
        assert value(RETOLD, task(), asking)[0] == found
        asking.close_now()


def test_one_contradiction_costs_everything() -> None:
    with judge({"Fines": ("contradicted", "A late book costs 2 euros")}) as server:
        asking = asking_of(server.url)
        assert value(f"{COPIED} {INVENTED}", task(), asking)[0] == 0
        asking.close_now()


def test_true_sentences_do_not_water_down_an_invented_one() -> None:
    many = [f"{one}." for one in DOCUMENT.split(". ")[:7]]
    assert len(many) > MOST_COUNTED
    with judge({"Fines": ("unsupported", "")}) as server:
        asking = asking_of(server.url)
        found, _ = value(" ".join([*many, *[COPIED] * 20, INVENTED]), task(), asking)
        asking.close_now()
    assert found == pytest.approx(MOST_COUNTED / (MOST_COUNTED + 1))


def test_the_judge_tells_whether_it_is_an_answer_where_the_task_does_not() -> None:
    for answered in (True, False):
        with judge({"": ("supported", "")}, answered=answered) as server:
            asking = asking_of(server.url)
            found, _ = value("The reading room has 48 seats.", task(answers=[]), asking)
            asking.close_now()
        assert found == float(answered)


def test_text_that_is_no_answer_at_all_costs_no_time() -> None:
    for text in ("a " * 20_000, "A late book costs 2 euros. " * 400, "\u4e2d" * 5000, "1 " * 3000):
        step = play(text, task())
        assert step.reward is None or 0 <= step.reward.value <= 1
