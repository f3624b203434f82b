"""The judge on trial: the meter measures declared rates, results are used again, and the minimum
quality catches a useless judge."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.tables.schemas import TABLES, Row
from synth.engine.stages import Item, ItemResult
from synth.judging.calibration import (
    JudgingConfig,
    num_perturbed,
    plan_calibration,
    trial_id_of,
    tried_before,
    try_judge,
    writer_version,
)
from synth.judging.judge_rates import (
    MinimumQuality,
    Rates,
    as_table,
    judge_rates,
    judge_status_of,
    rates_of,
    warning_of,
)
from synth.judging.perturbation.planning import MOST_ATTEMPTS, Pair, TriedBefore
from synth.judging.perturbation.registry import CONTROL, PARAPHRASE, PERTURBATIONS
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.render.intervals import wilson
from synth.rubrics.built_in import BUILT_IN
from synth.rubrics.standing import STANDING
from tests.synth.judging.perturbation_work import (
    JudgeAtRates,
    asked_for,
    players,
    reads,
    sources,
    writes,
)
from tests.synth.scripted import ScriptedApp, model

ROLES = {role: RoleConfig() for role in ("generator", "judge")}
BY_ID = {source.trajectory["trajectory_id"]: source for source in sources()}
ALL = JudgingConfig(perturbed_share=1.0)


def planned(
    passed: list[str] | None = None,
    *,
    accepted: list[str] | None = None,
    config: JudgingConfig = ALL,
    before: TriedBefore = TriedBefore(),
    trial_id: str = "t",
    graded: int | None = None,
) -> list[Item]:
    passed = sorted(BY_ID) if passed is None else passed
    return plan_calibration(
        set(passed if accepted is None else accepted),
        set(passed),
        before,
        grading_id="g",
        trial_id=trial_id,
        writer="w",
        graded=len(passed) if graded is None else graded,
        config=config,
    )


def known(items: Iterable[Item], done: Collection[Item], vain: Collection[str] = ()) -> TriedBefore:
    """After so many of the items were made; those of the kinds `vain` came to nothing."""
    ids = {i.item_id for i in done}
    pairs = {pair_of(i) for i in items if i.item_id in ids and kind_of(i) != CONTROL}
    lost = {pair for pair in pairs if pair.perturbation in vain}
    closed = pairs.__contains__
    return TriedBefore(pairs - lost, lost, closed)


def pair_of(item: Item) -> Pair:
    return Pair(**item.data)


def kind_of(item: Item) -> str:
    return item.data["perturbation"]


def sorts(items: list[Item]) -> Counter[str]:
    return Counter(k if (k := kind_of(i)) in (CONTROL, PARAPHRASE) else "negative" for i in items)


def tried(
    folder: Path,
    items: list[Item],
    judge: Any,
    *,
    stored: list[Row] | None = None,
    trial_id: str = "t",
    writer: str = "w",
    scored_only: tuple[str, ...] = (),
    **more: Any,
) -> tuple[list[ItemResult], list[str]]:
    """What the items come to, and the forms of answers that were asked for."""
    app = ScriptedApp(players(judge=judge, **more))

    async def run() -> list[ItemResult]:
        made = []
        async with model(app, folder, ROLES) as llm:
            for item in items:
                source = BY_ID[item.data["trajectory_id"]]
                earlier = [
                    r for r in stored or [] if r["trajectory_id"] == item.data["trajectory_id"]
                ]
                made.append(
                    await try_judge(
                        item,
                        llm,
                        source,
                        place={"grading_id": "g", "trial_id": trial_id},
                        stored=earlier,
                        judge_role=ROLES["judge"],
                        kinds=BUILT_IN,
                        writer=writer,
                        scored_only=scored_only,
                    )
                )
        return made

    return asyncio.run(run()), [asked_for(body) for body in app.requests]


def rows_of(made: list[ItemResult]) -> list[Row]:
    return [row for result in made for row in result.tables.get("calibration", ())]


def test_measured_rates_agree_with_declared_ones(tmp_path: Path) -> None:
    judge = JudgeAtRates(false_accept=0.2, false_reject=0.1)
    made, _ = tried(tmp_path, planned(), judge)
    rows = rows_of(made)
    columns = set(TABLES["calibration"].schema.names) - {"run_id", "schema_version"}
    assert all(set(row) == columns for row in rows)
    marked = [row for row in rows if row["edit"] and not row["expected"]]
    rates = judge_rates(marked + [row for row in rows if row["expected"]])
    assert rates.num_failures >= 60
    assert rates.num_fine >= 60
    low, high = wilson(rates.false_accepts, rates.num_failures)
    assert low <= 0.2 <= high
    low, high = wilson(rates.num_fine - rates.true_accepts, rates.num_fine)
    assert low <= 0.1 <= high
    rejected = [row for row in marked if row["judge_passed"] is False]
    assert all(row["named"] for row in rejected)
    assert not any(row["named"] for row in marked if row["judge_passed"])


def test_what_nothing_confirms_is_dropped_and_counted_and_tries_no_judge(tmp_path: Path) -> None:
    judge = JudgeAtRates(false_accept=0.0, false_reject=0.0)
    made, _ = tried(tmp_path, planned(), judge)
    dropped = [result for result in made if result.status.status == "dropped"]
    rows = rows_of(made)
    out = [row for row in rows if row["outcome"] == "not_confirmed"]
    assert out  # phrases that hold no mark and no told value
    reasons = {result.status.reason for result in dropped}
    assert {"not_confirmed", "no_place_by_code"} <= reasons
    assert reasons <= {"not_confirmed", "no_place_by_code", "not_written"}
    assert all(row["judge_passed"] is None and row["confirmed_by"] is None for row in out)
    assert judge_rates(rows) == judge_rates([r for r in rows if r["outcome"] == "tried"])
    lines = {(row["who"], row["kind"]): row for row in as_table(rows, MinimumQuality())}
    by_fault = sum(n["num_not_confirmed"] for (who, _), n in lines.items() if who.endswith("fault"))
    assert by_fault == lines["judge", "all"]["num_not_confirmed"] == len(out)


def test_the_next_judge_is_tried_with_the_same_words_and_pays_for_nothing_else(
    tmp_path: Path,
) -> None:
    items = planned()[::3]
    first, asked = tried(tmp_path, items, JudgeAtRates(false_accept=0.0, false_reject=0.0))
    assert {"written_fault", "paraphrase", "second_reading", "judgement"} == set(asked)
    (again_folder := tmp_path / "again").mkdir()
    again, then = tried(
        again_folder,
        items,
        JudgeAtRates(false_accept=1.0, false_reject=0.0),
        stored=rows_of(first),
        trial_id="t2",
    )
    assert set(then) == {"judgement"}
    same = ("trajectory_id", "perturbation", "outcome", "edit", "confirmed_by", "expected")
    assert [[r[k] for k in same] for r in rows_of(first)] == [
        [r[k] for k in same] for r in rows_of(again)
    ]
    assert judge_rates(rows_of(first)).false_accepts < judge_rates(rows_of(again)).false_accepts


def test_a_trial_belongs_to_judge_prompt_and_checks_and_not_to_a_grading() -> None:
    one, other = (
        {i.item_id for i in planned(trial_id=t) if kind_of(i) != CONTROL} for t in ("t1", "t2")
    )
    assert not one & other
    judge = RoleConfig()
    warmer = judge.model_copy(update={"temperature": 0.7})
    renamed = judge.model_copy(update={"models": (ModelConfig(name="another"),)})
    elsewhere = judge.model_copy(update={"max_in_flight": 3, "timeout_s": 5.0})
    hosted, moved = (judge.model_copy(update={"base_url": f"http://{n}/v1"}) for n in "ab")
    roles = (judge, warmer, renamed, hosted)
    trials = [trial_id_of(role, BUILT_IN, ALL) for role in roles]
    added = {"add": [{"id": "brief", "words": "It is brief."}]}
    for other in ({"rubric": added}, {"decision": {"scored_only": ["manners"]}}):
        trials.append(trial_id_of(judge, BUILT_IN, JudgingConfig.model_validate(other)))
    assert len(set(trials)) == len(trials)
    assert trial_id_of(elsewhere, BUILT_IN, ALL) == trials[0]
    assert trial_id_of(moved, BUILT_IN, ALL) == trial_id_of(hosted, BUILT_IN, ALL)
    again = JudgingConfig(judge_failed=True, max_of_one=3)
    assert trial_id_of(judge, BUILT_IN, again) == trials[0]


@given(st.integers(1, 60), st.floats(0.05, 1.0), st.data())
def test_a_trial_that_is_broken_off_goes_on_with_the_same_items(
    num: int, share: float, data: st.DataObject
) -> None:
    passed = [f"t{i}" for i in range(num)]
    config = JudgingConfig(perturbed_share=share)
    items = planned(passed, config=config)
    assert len({item.item_id for item in items}) == len(items)
    done = data.draw(st.lists(st.sampled_from(items)))
    again = planned(passed, config=config, before=known(items, done))
    assert {i.item_id for i in again} == {i.item_id for i in items}


def test_later_trajectories_top_up_what_was_tried() -> None:
    config = JudgingConfig(perturbed_share=0.2)
    few = planned([f"t{i}" for i in range(50)], config=config)
    before = known(few, few)
    more = planned([f"t{i}" for i in range(100)], config=config, before=before)
    assert sorts(few)["negative"] == 10
    assert sorts(more)["negative"] == 20
    assert {i.item_id for i in few} <= {item.item_id for item in more}
    same = planned([f"t{i}" for i in range(50)], config=config, before=before)
    assert {item.item_id for item in same} == {i.item_id for i in few}


def test_kinds_are_spread_evenly_and_bounded() -> None:
    passed = [f"t{i}" for i in range(400)]
    items = planned(passed, config=JudgingConfig(perturbed_share=0.2))
    kinds = Counter(kind_of(i) for i in items if kind_of(i) in PERTURBATIONS)
    assert set(kinds) == set(PERTURBATIONS)
    assert max(kinds.values()) - min(kinds.values()) <= 1
    bounded = planned(passed, config=JudgingConfig(perturbed_share=1.0, max_of_one=2))
    assert sorts(bounded)["negative"] == 2 * len(PERTURBATIONS)
    assert num_perturbed(10_000, JudgingConfig(max_of_one=2)) == 2 * len(PERTURBATIONS)


def in_rounds(passed: list[str], config: JudgingConfig, vain: Collection[str]) -> list[TriedBefore]:
    """What a trial has come to after each of its plans, until one asks for nothing new."""
    rounds = [TriedBefore()]
    while True:
        items = planned(passed, config=config, before=rounds[-1])
        now = known(items, items, vain)
        if now.confirmed == rounds[-1].confirmed and now.in_vain == rounds[-1].in_vain:
            return rounds
        rounds.append(now)


def num_negatives(pairs: Iterable[Pair]) -> int:
    return sum(pair.perturbation != PARAPHRASE for pair in pairs)


def test_what_nothing_confirms_is_replaced_until_there_are_as_many_as_wanted() -> None:
    passed, config = [f"t{i}" for i in range(200)], JudgingConfig(perturbed_share=0.5)
    vain = PERTURBATIONS[::5]
    rounds = in_rounds(passed, config, vain)
    assert len(rounds) > 2
    assert num_negatives(rounds[1].confirmed) < 100
    assert num_negatives(rounds[-1].confirmed) == 100
    of_each = Counter(pair.perturbation for pair in rounds[-1].confirmed)
    assert all(of_each[name] >= 3 for name in PERTURBATIONS if name not in vain)
    assert num_negatives(rounds[-1].in_vain) <= 200


@given(st.integers(1, 80), st.floats(0.05, 1.0), st.integers(1, 40))
def test_a_writer_whom_nothing_confirms_is_asked_a_bounded_number_of_times(
    num: int, share: float, most: int
) -> None:
    config = JudgingConfig(perturbed_share=share, max_of_one=most)
    passed = [f"t{i}" for i in range(num)]
    rounds = in_rounds(passed, config, (*PERTURBATIONS, PARAPHRASE))
    wanted = num_perturbed(num, config)
    assert rounds[-1].confirmed == set()
    assert 0 < num_negatives(rounds[-1].in_vain) <= MOST_ATTEMPTS * wanted


def test_a_third_as_many_episodes_are_told_in_other_words_as_are_perturbed() -> None:
    items = planned([f"t{i}" for i in range(30)], config=JudgingConfig(perturbed_share=0.5))
    assert sorts(items) == {"negative": 15, PARAPHRASE: 5, CONTROL: 1}


def test_negatives_are_of_accepted_episodes_and_controls_also_of_others() -> None:
    passed = [f"t{i}" for i in range(200)]
    accepted = passed[::4]
    items = planned(passed, accepted=accepted, config=JudgingConfig(perturbed_share=0.3))
    negatives = {i.data["trajectory_id"] for i in items if kind_of(i) in PERTURBATIONS}
    controls = [i.data["trajectory_id"] for i in items if kind_of(i) == PARAPHRASE]
    assert negatives <= set(accepted)
    assert len(controls) == 20
    assert 5 <= sum(i not in accepted for i in controls) <= 10
    nothing = planned(passed, accepted=[], config=JudgingConfig(perturbed_share=0.3))
    assert sorts(nothing) == {"negative": 60, PARAPHRASE: 20, CONTROL: 1}


def test_what_is_only_scored_rejects_nothing_and_is_no_failure_to_try_with(tmp_path: Path) -> None:
    fair = JudgeAtRates(false_accept=0.0, false_reject=0.0)

    def strict(body: dict[str, Any]) -> str:
        answer = json.loads(fair(body))
        for verdict in answer["verdicts"]:
            verdict["passed"] = verdict["criterion_id"] != "manners"
        return json.dumps(answer)

    paraphrases = [i for i in planned() if kind_of(i) == PARAPHRASE][:1]
    many = planned(config=ALL, graded=9 * len(PERTURBATIONS))
    rude = [i for i in many if kind_of(i) == "rude"][:3]
    tried_with: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for number, aside in enumerate(((), ("manners",), ("nl",))):
        (folder := tmp_path / str(number)).mkdir()
        made, _ = tried(folder, [*paraphrases, *rude], strict, scored_only=aside)
        rows = rows_of(made)
        words = {r["judge_passed"] for r in rows if r["perturbation"] == PARAPHRASE}
        tried_with[aside] = words, "rude" in [r["perturbation"] for r in rows]
    assert tried_with[()] == ({False}, True)
    assert tried_with["manners",] == ({True}, False)
    assert tried_with["nl",] == ({True}, False)


def test_few_episodes_give_several_negatives_each_and_none_twice() -> None:
    assert sorts(planned(["t1", "t2"]))["negative"] == 2
    many = [pair_of(i) for i in planned(["t1", "t2"], graded=50) if kind_of(i) in PERTURBATIONS]
    assert len(set(many)) == len(many) == 50
    assert Counter(i for i, _ in many).most_common()[-1][1] >= 15


def test_another_writer_is_asked_again_and_other_checks_confirm_anew(tmp_path: Path) -> None:
    def declines(body: dict[str, Any]) -> str:
        return json.dumps(json.loads(writes(body)) | {"has_place": False, "reply": "", "wrong": ""})

    judge = JudgeAtRates(false_accept=0.0, false_reject=0.0)
    items = [i for i in planned() if kind_of(i) == "rude"][:2]

    def asks(name: str, stored: list[Row], writer: str, **more: Any) -> tuple[list[Row], list[str]]:
        (folder := tmp_path / name).mkdir()
        made, asked = tried(folder, items, judge, stored=stored, writer=writer, **more)
        return rows_of(made), asked

    declined, _ = asks("1", [], "w", write=declines)
    assert [row["outcome"] for row in declined] == ["no_place"] * 2
    same, asked = asks("2", declined, "w")
    assert ([row["outcome"] for row in same], asked) == (["no_place"] * 2, [])
    written, asked = asks("3", declined, "another")
    assert [row["outcome"] for row in written] == ["tried"] * 2
    assert "written_fault" in asked
    assert set(asks("4", [*declined, *written], "third")[1]) == {"judgement"}
    older = [row | {"checks_version": "older"} for row in written]
    assert "second_reading" in asks("5", older, "another")[1]
    before = tried_before(
        [*declined, *written], trial_id="t", writer="w", done=[i.item_id for i in items]
    )
    assert before.confirmed == {pair_of(i) for i in items}
    assert not before.in_vain
    for_third = tried_before(declined, trial_id="t", writer="third", done=[])
    assert not for_third.in_vain
    assert all(for_third.is_open(pair_of(i)) for i in items)


def test_the_version_of_a_writer_is_that_of_model_server_and_prompts() -> None:
    one = RoleConfig()
    other = one.model_copy(update={"models": (ModelConfig(name="another"),)})
    assert writer_version(one) == writer_version(one.model_copy(update={"max_in_flight": 3}))
    assert writer_version(one) != writer_version(other)


def test_without_negatives_the_judge_is_unmeasured() -> None:
    assert planned(config=JudgingConfig(perturbed_share=0.0)) == []
    assert planned([]) == []
    nothing = judge_rates([])
    assert judge_status_of(nothing, MinimumQuality()) == "unmeasured"
    assert as_table([], MinimumQuality()) == []
    assert judge_status_of(Rates(9, 0, 9, 9), MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(10, 0, 9, 9), MinimumQuality()) == "uncertain"
    assert judge_status_of(Rates(16, 0, 9, 9), MinimumQuality()) == "measured"
    assert "unmeasured (9 perturbed" in (warning_of("unmeasured", Rates(9, 0, 9, 9)) or "")


def test_a_rate_within_the_minimum_by_chance_is_uncertain_and_said() -> None:
    few, many = Rates(20, 3, 40, 38), Rates(400, 60, 40, 38)
    assert judge_status_of(few, MinimumQuality()) == "uncertain"
    assert judge_status_of(many, MinimumQuality()) == "measured"
    assert "95% interval 5% to 36%" in (warning_of("uncertain", few) or "")


@pytest.mark.parametrize(
    "rates", [Rates(30, 30, 30, 30), Rates(30, 0, 30, 0)], ids=["passes all", "passes nothing"]
)
def test_a_judge_that_passes_everything_or_nothing_is_caught(rates: Rates) -> None:
    status = judge_status_of(rates, MinimumQuality())
    assert status == "below_minimum"
    assert "BELOW ITS MINIMUM QUALITY" in (warning_of(status, rates) or "")


def trial(perturbation: str, *, passed: bool | None, **more: Any) -> Row:
    row = {
        "perturbation": perturbation,
        "expected": perturbation in (CONTROL, PARAPHRASE),
        "judge_passed": passed,
        "outcome": "tried",
        "confirmed_by": None,
        "channel": None,
        "named": None,
        "language": "en",
        "checker_version": "m@p",
    }
    return row | more


def test_the_status_is_decided_over_all_kinds_together() -> None:
    fine = [trial(CONTROL, passed=True)] * 30 + [trial(PARAPHRASE, passed=True)] * 10
    rude = [trial("rude", passed=False)] * 40
    hedge = [trial("hedge", passed=True)] * 9  # nine of nine wrong, and too few to stand alone
    table = as_table(fine + rude + hedge, MinimumQuality())
    assert [row["judge_status"] for row in table if row["judge_status"]] == ["uncertain"]
    assert table[0]["who"] == "judge"
    worse = as_table(fine + rude + hedge * 2, MinimumQuality())
    assert worse[0]["judge_status"] == "below_minimum"


Passes = Callable[[str, str, bool, float], bool]
"""Kind, language, whether something is wrong and a draw -> whether a scripted judge passes it."""


@pytest.mark.parametrize(
    ("passes", "status"),
    [
        (lambda kind, language, is_wrong, draw: True, "below_minimum"),
        (lambda kind, language, is_wrong, draw: False, "below_minimum"),
        (lambda kind, language, is_wrong, draw: draw < 0.5, "below_minimum"),
        (lambda kind, language, is_wrong, draw: draw < (0.04 if is_wrong else 0.9), "measured"),
        (lambda kind, language, is_wrong, draw: not is_wrong and draw < 0.1, "below_minimum"),
        (lambda kind, language, is_wrong, draw: not is_wrong or kind == "hedge", "measured"),
        (lambda kind, language, is_wrong, draw: not is_wrong or language == "de", "below_minimum"),
        (lambda kind, language, is_wrong, draw: not is_wrong and language != "de", "measured"),
    ],
    ids=[
        *("passes everything", "rejects everything", "random", "good", "rejects most controls"),
        *("blind to one kind", "passes German", "rejects German"),
    ],
)
def test_scripted_judges_come_out_as_what_they_are(passes: Passes, status: str) -> None:
    draws, languages = Random(7), ("en", "de", "fr", "es")
    kinds = [*PERTURBATIONS * 4, *[PARAPHRASE] * 44]
    rows: list[Row] = []
    for number, kind in enumerate(kinds):
        language = languages[number % 4]
        passed = passes(kind, language, kind != PARAPHRASE, draws.random())
        rows.append(trial(kind, passed=passed, language=language))
    assert judge_status_of(judge_rates(rows), MinimumQuality()) == status
    table = {(row["who"], row["kind"]): row for row in as_table(rows, MinimumQuality())}
    if status == "measured":  # what is weak in part stands in the lines of that part
        hedge, german = table["judge, by fault", "hedge"], table["judge, by language", "de"]
        weak = (hedge["fpr"] == 1.0) + (german["tpr"] == 0.0)
        assert weak == (passes("hedge", "de", True, 0.5) or not passes("", "de", False, 0.5))


def test_few_tries_suffice_where_the_whole_interval_lies_beyond_a_limit() -> None:
    assert judge_status_of(Rates(5, 5, 1, 1), MinimumQuality()) == "below_minimum"
    assert judge_status_of(Rates(5, 0, 5, 0), MinimumQuality()) == "below_minimum"
    assert judge_status_of(Rates(5, 0, 2, 0), MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(30, 0, 3, 3), MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(30, 0, 9, 6), MinimumQuality()) == "uncertain"


def test_rates_are_told_by_fault_by_language_and_by_model() -> None:
    rows = [
        trial("rude", passed=False, named=True),
        trial("rude", passed=True, language="de", checker_version="n/x@p"),
        trial("rude", passed=None, outcome="not_confirmed"),
        trial("hedge", passed=None, outcome="no_place"),
        trial("attack_file", passed=True, channel="file"),
        trial(CONTROL, passed=True, language="de"),
        trial(PARAPHRASE, passed=False),
    ]
    table = {(row["who"], row["kind"]): row for row in as_table(rows, MinimumQuality())}

    def counts(who: str, kind: str) -> tuple[int, ...]:
        row = table[who, kind]
        names = ("num_failures", "false_accepts", "num_fine", "true_accepts")
        return tuple(row[name] for name in names)

    assert counts("judge", "all") == (3, 2, 2, 1)
    assert counts("judge, nothing aimed at it", "all") == (2, 1, 2, 1)
    assert counts("judge, aimed at", "all") == (1, 1, 0, 0)
    assert counts("judge, by fault", "rude") == (2, 1, 0, 0)
    assert counts("judge, by control", PARAPHRASE) == (0, 0, 1, 0)
    assert counts("judge, by language", "de") == (1, 1, 1, 1)
    assert counts("judge, by language", "en") == (2, 1, 1, 0)
    assert counts("judge, by model", "n/x") == (1, 1, 0, 0)
    assert table["judge, by fault", "rude"]["fpr_interval"] == wilson(1, 2)
    assert table["judge, by fault", "rude"]["num_named"] == 1
    assert table["judge, by fault", "rude"]["num_not_confirmed"] == 1
    assert table["judge, by fault", "hedge"]["num_no_place"] == 1
    assert table["judge", "all"]["num_attempts"] == 7


def test_failures_with_text_aimed_at_the_judge_stand_apart_from_plain_ones() -> None:
    rows = [trial("rude", passed=False)] * 30
    rows += [trial("attack_file", passed=True, channel="file")] * 5
    table = {row["who"]: row for row in as_table(rows, MinimumQuality()) if row["kind"] == "all"}
    counts = {who: (row["false_accepts"], row["num_failures"]) for who, row in table.items()}
    assert counts == {
        "judge": (5, 35),
        "judge, nothing aimed at it": (0, 30),
        "judge, aimed at": (5, 5),
    }


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_the_status_is_what_the_minimum_quality_says(fa: int, tr: int, ta: int, fr: int) -> None:
    rates, floor = Rates(fa + tr, fa, ta + fr, ta), MinimumQuality()
    status = judge_status_of(rates, floor)
    low, high = wilson(fa, fa + tr) if fa + tr else (0.0, 1.0)
    fine_low, fine_high = wilson(ta, ta + fr) if ta + fr else (0.0, 1.0)
    if low > floor.max_false_accept or fine_high < floor.min_control_accept:
        assert status == "below_minimum"
    elif fa + tr < floor.min_perturbed or 3 * (ta + fr) < floor.min_perturbed:
        assert status == "unmeasured"
    elif ta < floor.min_control_accept * (ta + fr) or fa > floor.max_false_accept * (fa + tr):
        assert status == "below_minimum"
    elif status != "below_minimum":
        assert rates.kappa is not None
        assert rates.kappa >= floor.min_kappa
        sure = high <= floor.max_false_accept and fine_low >= floor.min_control_accept
        assert (status == "measured") == sure


@pytest.mark.parametrize(
    ("rates", "calibrated"),
    [
        (Rates(25, 0, 24, 24), False),  # 49 labels
        (Rates(25, 0, 25, 25), True),
        (Rates(25, 3, 25, 22), True),  # kappa 0.76, from 0.52 on
        (Rates(25, 5, 25, 21), False),  # kappa 0.64, from 0.38 on
        (Rates(250, 50, 250, 210), True),  # the same agreement, and labels enough to be sure
        (Rates(40, 15, 40, 26), False),  # kappa 0.27
        (Rates(0, 0, 60, 60), False),  # nothing to tell apart
    ],
)
def test_only_agreement_worth_the_word_is_called_calibrated(rates: Rates, calibrated: bool) -> None:
    assert rates.is_calibrated is calibrated


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80))
def test_the_lower_bound_of_kappa_lies_below_it(outcomes: list[tuple[bool, bool]]) -> None:
    rates = rates_of(outcomes)
    assert (rates.kappa_low is None) == (rates.kappa is None)
    if rates.kappa is not None and rates.kappa_low is not None:
        assert rates.kappa_low <= rates.kappa + 1e-9


def test_the_judge_is_asked_for_its_own_word_on_what_code_decides(tmp_path: Path) -> None:
    asked: list[Any] = []
    judge = JudgeAtRates(false_accept=0.0, false_reject=0.0)

    def recording(body: dict[str, Any]) -> str:
        asked.append(body)
        return judge(body)

    source = next(s for s in sources() if any(c.kind == "communicate" for c in s.rubric.criteria))
    item = next(
        i for i in planned([source.trajectory["trajectory_id"]]) if kind_of(i) == PARAPHRASE
    )
    app = ScriptedApp(players(judge=recording, write=writes, read=reads))

    async def run() -> ItemResult:
        async with model(app, tmp_path, ROLES) as llm:
            return await try_judge(
                item,
                llm,
                source,
                place={"grading_id": "g", "trial_id": "t"},
                stored=(),
                judge_role=ROLES["judge"],
                kinds=BUILT_IN,
                writer="w",
            )

    asyncio.run(run())
    [body] = asked
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    ids = set(schema["verdicts"]["items"]["properties"]["criterion_id"]["enum"])
    told = {c.id for c in source.rubric.criteria if c.kind == "communicate"}
    assert told <= ids
    assert {c.id for c in STANDING} - ids == {"truth"}
