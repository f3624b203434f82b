"""The benchmark of tools that a model plays: what it counts, and that it pays nothing twice."""

import asyncio
from argparse import Namespace
from collections import Counter
from pathlib import Path

from benchmarks.bench_simulator import KINDS, Sample, _figures, measured
from synth.episode.tools.simulator import SimulationAccuracy
from synth.llm.settings.config import RoleConfig
from tool_specs.domains.domain import load_domains

GIVEN = Namespace(sequences=3, calls=5, at_most=22, concurrency=4, seed=0)
NOWHERE = "http://127.0.0.1:1/v1"


def run(folder: Path, given: Namespace = GIVEN, **role: str) -> list[Sample]:
    domains = load_domains(["clinic_desk", "home_hub"])
    return asyncio.run(measured(domains, RoleConfig.model_validate(role), folder, given))


def test_every_call_is_measured_and_a_second_run_asks_nobody(tmp_path: Path) -> None:
    samples = run(tmp_path)
    assert len(samples) == GIVEN.at_most
    lengths = Counter((sample.domain, sample.sequence) for sample in samples)
    assert sorted(lengths.values()) == [2, 5, 5, 5, 5]
    kinds = Counter(sample.kind for sample in samples)
    assert set(kinds) <= set(KINDS)
    assert kinds["read"]
    assert kinds["write"]
    assert not any(s.measured.changed_fields for s in samples if s.kind != "write")
    assert run(tmp_path, base_url=NOWHERE) == samples


def test_more_calls_are_those_of_before_and_further_ones(tmp_path: Path) -> None:
    fewer = run(tmp_path, Namespace(**vars(GIVEN) | {"at_most": 8}))
    assert len(fewer) == 8
    assert set(fewer) < set(run(tmp_path))


def test_shares_have_their_intervals() -> None:
    right, wrong = (
        SimulationAccuracy(1, True, True, True),
        SimulationAccuracy(1, False, False, True),
    )
    samples = [Sample("d", i, 0, 0, False, "write", m) for i, m in enumerate([right] * 9 + [wrong])]
    figures = _figures(samples)
    assert (figures["state_exact"], figures["observation"], figures["n"]) == (0.9, 0.9, 10)
    assert figures["interval_95"] == figures["observation_95"] == [0.596, 0.982]
    assert figures["success_or_failure_95"][1] == 1.0
    assert _figures([])["success_or_failure_95"] is None
