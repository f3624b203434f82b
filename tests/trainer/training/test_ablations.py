"""The ablations' own logic: sweeps that grow, crossings, facts that keep what they tell, and a
driver that runs no cell twice."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.ablations import growth, optimisers, rephrasing, sparsity
from benchmarks.ablations.cells import Cell, Done, Results
from benchmarks.ablations.facts import VALUES, people, question, raw, rewritten
from benchmarks.ablations.learning import Plan, shape
from trainer.model.size import size_of

ROOT = Path(__file__).parents[3]
PLAN = Plan(shape=shape(300), peak_lr=1.0, steps=1, corpus="none")


def plan_of(cell: Cell) -> Plan:
    return Plan.model_validate(cell.settings["plan"])


def finished(best: dict[bool, float]) -> Done:
    """A sweep in which the loss grows with the distance from the best rate of Muon and AdamW."""
    done: Done = {}
    for _ in range(10):
        done = {
            cell.name: (cell, {"loss": 2 + abs(plan.peak_lr - best[plan.optimizer.muon])})
            for cell in optimisers.wanted(PLAN, 1.0, done)
            for plan in [plan_of(cell)]
        }
    return done


def test_a_sweep_grows_until_its_best_is_inside() -> None:
    best = {True: 0.024, False: 0.003}
    cells = [cell for cell, _ in finished(best).values()]
    whole = max(plan_of(cell).steps for cell in cells)
    for muon, rate in best.items():
        own = [p for p in map(plan_of, cells) if p.optimizer.muon == muon and p.steps == whole]
        rates = sorted(p.peak_lr for p in own)
        assert rates[0] < rate < rates[-1]
        assert all(b / a == pytest.approx(2) for a, b in pairwise(rates))
    shorter = [p for p in map(plan_of, cells) if p.steps < whole]
    assert {p.peak_lr for p in shorter} == {0.024}
    assert len(shorter) == len(optimisers.SHARES)


def test_the_crossing_is_on_the_line_between_two_runs() -> None:
    points = [(100, 3.0), (200, 2.0), (400, 1.0)]
    assert optimisers.steps_to(points, 2.5) == pytest.approx(150)
    assert optimisers.steps_to(points, 1.0) == pytest.approx(400)
    assert optimisers.steps_to(points, 0.5) is None
    assert optimisers.steps_to(points, 3.5) is None


def test_sparser_models_have_the_same_active_size() -> None:
    plans = [plan_of(cell) for cell in sparsity.wanted(PLAN, 1.0, {})]
    sizes = {p.shape.num_experts: size_of(p.shape) for p in plans}
    routers = {
        e: p.shape.num_moe_layers * e * (p.shape.hidden_size + 1)
        for p in plans
        for e in [p.shape.num_experts]
    }
    assert len({size.active - routers[e] for e, size in sizes.items()}) == 1
    assert sorted(sizes) == sorted(sizes, key=lambda e: sizes[e].total)


def test_growth_differs_by_the_clip_alone() -> None:
    plans = [plan_of(cell) for cell in growth.wanted(PLAN, 1.0, {})]
    assert len({p.qk_clip_tau for p in plans}) == len(plans)
    assert len({p.at(qk_clip_tau=1.0).model_dump_json() for p in plans}) == 1


def test_every_telling_tells_every_fact_and_no_question() -> None:
    town = people(40, seed=3)
    assert town == people(40, seed=3) != people(40, seed=4)
    assert len({p.name for p in town}) == 40
    for person in town:
        texts = [raw(person), *(rewritten(person, n) for n in range(10))]
        assert len(set(texts)) > 8
        for text in texts:
            assert all(f" {value}" in f" {text}" for value in person.facts.values())
            assert text.count(person.name) == len(VALUES)
            assert "uestion" not in text
        assert all(person.facts[kind] not in question(person, kind) for kind in VALUES)


def test_unseen_people_are_never_asked_about() -> None:
    town = people(20, seed=0)
    for form in rephrasing.FORMS:
        asked = [text for text in rephrasing.texts_of(town, form) if "Question:" in text]
        assert asked
        assert all(not any(p.name in text for text in asked) for p in town if not p.practised)


def test_a_result_is_of_its_settings(tmp_path: Path) -> None:
    cell = growth.wanted(PLAN, 1.0, {})[0]
    Results(tmp_path).put(cell, {"loss": 1.5}, 3.0)
    again = Results(tmp_path)
    assert again.get(cell) == {"loss": 1.5}
    assert again.seconds(cell) == 3.0
    assert again.get(growth.wanted(PLAN, 0.5, {})[0]) is None
    assert again.get(cell.model_copy(update={"seed": 1})) is None


@pytest.mark.slow
def test_a_second_start_runs_nothing_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.ablations", "--scale", "0.01", "--out", "made"]
    command += ["--only", "growth", "rephrasing"]
    environment = {"PYTHONPATH": str(ROOT)}
    told = [
        subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    cells = list((tmp_path / "made" / "cells").iterdir())
    assert told[0].count("\n") == len(cells) + 1
    assert told[1] == "made/ablations.md\n"
    assert all(json.loads(path.read_text())["result"] for path in cells)
    report = (tmp_path / "made" / "ablations.md").read_text()
    for words in (growth.TITLE, rephrasing.TITLE, "--scale 0.01", "by rule"):
        assert words in report
