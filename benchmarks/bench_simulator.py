"""State accuracy of model-simulated tools against the interpreter, on tools that have both.

    python benchmarks/bench_simulator.py [--sequences 10] [--calls 8] [--domain NAME]...
        [--base-url URL --model NAME --api-key-env VAR] [--concurrency 8] [--json]

For each domain, sequences of seeded calls are made by the interpreter, and every call is put to
the simulator model from the same state, too. By number of fields that the interpreter changes: how
often the simulator's state equals the interpreter's row by row, how often it says the same, how
often it agrees on success or failure, how many of its answers had to be repaired and how many were
given up. `exact_after`: the share of sequences whose state, carried on by the simulator alone, is
still exact after so many calls. Beside it the baseline of a simulator that changes nothing. The
default endpoint is the offline model: its figures are those of the offline model and say nothing
of any model.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import machine
from offline_llm.app import create_app
from records.seeds import rng_of
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.episode.tools.simulator import ROLE, ModelAnswers, Question, SimulationAccuracy, text_of
from synth.episode.tools.state_accuracy import BUCKETS, bucket_of
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import OFFLINE, ModelConfig, RoleConfig
from synth.render.intervals import wilson
from tool_specs.domains.catalogue import tool_rows
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.validation.drawing import draw_arguments, draw_success

FAILING = 0.15
"""Share of calls that are drawn without regard to whether they succeed."""


class Sample(NamedTuple):
    domain: str
    sequence: int
    call: int
    repairs: int
    failed: bool
    measured: SimulationAccuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=10, help="for each domain")
    parser.add_argument("--calls", type=int, default=8, help="in a sequence")
    parser.add_argument("--domain", action="append", default=[])
    parser.add_argument("--base-url", default=OFFLINE)
    parser.add_argument("--model", default="offline-model")
    parser.add_argument("--api-key-env")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    domains = load_domains(given.domain or None)
    role = RoleConfig(
        base_url=given.base_url,
        models=(ModelConfig(name=given.model),),
        api_key_env=given.api_key_env,
        max_in_flight=given.concurrency,
    )
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        samples = asyncio.run(_all(domains, role, Path(folder), given))
    found = {
        "model": given.model + (" (offline model)" if given.base_url == OFFLINE else ""),
        "sequences": given.sequences * len(domains),
        "calls": len(samples),
        "seconds": round(time.perf_counter() - begun, 1),
        "all": _figures(samples),
        "by_fields": {name: _figures(_of(samples, name)) for name in BUCKETS},
        "exact_after": _survival(samples, given.calls),
        **machine(),
    }
    if given.json:
        print(json.dumps(found))
    else:
        _show(found)


async def _all(
    domains: Sequence[Domain], role: RoleConfig, folder: Path, given: argparse.Namespace
) -> list[Sample]:
    gate = asyncio.Semaphore(given.concurrency)
    async with Gateway({ROLE: role}, offline_app=create_app) as gateway:
        with ShardJournal(folder / "journal.sqlite") as journal:
            llm = LLM(gateway, journal, stage="bench", invocation_id="bench")

            async def one(domain: Domain, number: int) -> list[Sample]:
                async with gate:
                    return await _sequence(domain, number, llm, given)

            made = await asyncio.gather(
                *(one(domain, i) for domain in domains for i in range(given.sequences))
            )
    return [sample for samples in made for sample in samples]


async def _sequence(
    domain: Domain, number: int, llm: LLM, given: argparse.Namespace
) -> list[Sample]:
    """The interpreter goes on from its own state, so that each call is asked about a true one."""
    item = f"{domain.name}-{given.seed}-{number}"
    rng = rng_of(item, "calls")
    rows: Mapping[str, Row] = {row["name"]: row for row in tool_rows(domain)}
    writing = [name for name, program in domain.programs.items() if not program.read_only]
    reading = [name for name, program in domain.programs.items() if program.read_only]
    answers = ModelAnswers(llm, item=item)
    environment, recent, samples = DomainEnvironment.of(domain), [], []
    while len(samples) < given.calls:
        name = rng.choice(writing if rng.random() < 0.6 or not reading else reading)
        if rng.random() < FAILING:
            arguments = draw_arguments(environment, name, rng)
        else:
            drawn = draw_success(environment, name, rng)
            arguments = drawn.arguments if drawn else None
        if arguments is None:
            continue
        read_only = domain.programs[name].read_only
        question = Question(
            rows[name], arguments, read_only, environment, tuple(recent), len(samples)
        )
        played = await answers.answer(question)
        note = answers.notes[-1]
        if note.measured is not None:
            place = (domain.name, number, len(samples), note.repairs, played is None)
            samples.append(Sample(*place, note.measured))
        environment = environment.snapshot()
        result = environment.call(name, arguments)
        seen = {"tool": name, "arguments": arguments, "observation": text_of(result.observation)}
        recent.append(seen | {"is_error": result.is_error})
    return samples


def _of(samples: Sequence[Sample], bucket: str) -> list[Sample]:
    return [s for s in samples if bucket_of(s.measured.changed_fields) == bucket]


def _figures(samples: Sequence[Sample]) -> dict[str, Any]:
    n = len(samples)
    exact = sum(s.measured.state_match for s in samples)
    unchanged = sum(s.measured.changed_fields == 0 for s in samples)
    return {
        "n": n,
        "state_exact": round(exact / n, 3) if n else None,
        "interval_95": [round(v, 3) for v in wilson(exact, n)] if n else None,
        "changing_nothing": round(unchanged / n, 3) if n else None,
        "observation": _share(samples, [s.measured.observation_match for s in samples]),
        "success_or_failure": _share(samples, [s.measured.error_match for s in samples]),
        "repaired": _share(samples, [s.repairs > 0 for s in samples]),
        "given_up": _share(samples, [s.failed for s in samples]),
    }


def _share(samples: Sequence[Sample], flags: Sequence[bool]) -> float | None:
    return round(sum(flags) / len(samples), 3) if samples else None


def _survival(samples: Sequence[Sample], calls: int) -> list[float]:
    sequences: dict[tuple[str, int], list[bool]] = {}
    for sample in samples:
        own = sequences.setdefault((sample.domain, sample.sequence), [])
        own.append(sample.measured.state_match)
    return [
        round(sum(all(own[: k + 1]) for own in sequences.values()) / len(sequences), 3)
        for k in range(calls)
    ]


def _show(found: Mapping[str, Any]) -> None:
    names = list(found["all"])
    print(f"State accuracy of tools simulated by {found['model']}, {found['calls']} calls")
    print("| changed fields | " + " | ".join(names) + " |")
    print("|" + " --- |" * (len(names) + 1))
    for bucket, figures in [*found["by_fields"].items(), ("all", found["all"])]:
        print(f"| {bucket} | " + " | ".join(str(figures[name]) for name in names) + " |")
    print(f"still exact after k calls: {found['exact_after']}")
    print(json.dumps({name: found[name] for name in ("seconds", *machine())}))


if __name__ == "__main__":
    main()
