"""The judge on trial: the meter measures declared rates, results are used again, and a trial is of
a judge, its prompt and the checks."""

import asyncio
import json
from pathlib import Path
from typing import Any

from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.engine.stages import Item, ItemResult
from synth.judging.calibration import (
    JudgingConfig,
    trial_id_of,
    tried_before,
    try_judge,
    writer_version,
)
from synth.judging.judge_rates import MinimumQuality, as_table, judge_rates
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
from tests.synth.judging.trial_work import ALL, kind_of, pair_of, planned
from tests.synth.scripted import ScriptedApp, model

ROLES = {role: RoleConfig() for role in ("generator", "judge")}

BY_ID = {source.trajectory["trajectory_id"]: source for source in sources()}


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
