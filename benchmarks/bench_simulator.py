"""State accuracy of model-simulated tools against the interpreter, on tools that have both.

    python benchmarks/bench_simulator.py [--sequences 10] [--calls 8] [--domain NAME]...
        [--at-most 100] [--base-url URL --model NAME --api-key-env VAR] [--concurrency 8]
        [--folder FOLDER] [--json]

For each domain, sequences of seeded calls are made by the interpreter, and every call is put to
the simulator model from the same state, too. By number of fields that the interpreter changes: how
often the simulator's state equals the interpreter's row by row, how often it says the same, how
often it agrees on success or failure, how many of its answers had to be repaired and how many were
given up. `exact_after`: the share of sequences whose state, carried on by the simulator alone, is
still exact after so many calls. By kind of call, too: `read` and `write` are what the interpreter
lets succeed with read-only tools and with others, `error` is what it refuses. Shares of exact
states, equal observations and agreed errors have their 95% intervals by Wilson. FOLDER keeps every
answer, so that a run that was killed goes on and pays nothing twice. Beside it the baseline of a
simulator that changes nothing. The default endpoint is the offline model: its figures are those of
the offline model and say nothing of any model.
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


KINDS = ("read", "write", "error")


class Sample(NamedTuple):
    domain: str
    sequence: int
    call: int
    repairs: int
    failed: bool
    kind: str
    """One of `KINDS`, as the interpreter has it."""
    measured: SimulationAccuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=10, help="for each domain")
    parser.add_argument("--calls", type=int, default=8, help="in a sequence")
    parser.add_argument("--at-most", type=int, help="calls in all; later sequences are cut off")
    parser.add_argument("--folder", type=Path, help="where answers are kept")
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
    with tempfile.TemporaryDirectory() as passing:
        folder = given.folder or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        samples = asyncio.run(measured(domains, role, folder, given))
    found = {
        "model": given.model + (" (offline model)" if given.base_url == OFFLINE else ""),
        "sequences": len({(sample.domain, sample.sequence) for sample in samples}),
        "calls": len(samples),
        "seconds": round(time.perf_counter() - begun, 1),
        "all": _figures(samples),
        "by_fields": {name: _figures(_of(samples, name)) for name in BUCKETS},
        "by_kind": {name: _figures([s for s in samples if s.kind == name]) for name in KINDS},
        "exact_after": _survival(samples, given.calls),
        **machine(),
    }
    if given.json:
        print(json.dumps(found))
    else:
        _show(found)


async def measured(
    domains: Sequence[Domain], role: RoleConfig, folder: Path, given: argparse.Namespace
) -> list[Sample]:
    """The samples in order. Answers that `folder` holds are not asked for again."""
    lengths = _lengths(domains, given)
    gate = asyncio.Semaphore(given.concurrency)
    async with Gateway({ROLE: role}, offline_app=create_app) as gateway:
        with ShardJournal(folder / "journal.sqlite") as journal:
            llm = LLM(gateway, journal, stage="bench", invocation_id="bench")

            async def one(domain: Domain, number: int, calls: int) -> list[Sample]:
                async with gate:
                    return await _sequence(domain, number, calls, llm, given.seed)

            made = await asyncio.gather(*(one(*length) for length in lengths))
    return [sample for samples in made for sample in samples]


def _lengths(domains: Sequence[Domain], given: argparse.Namespace) -> list[tuple[Domain, int, int]]:
    """(domain, number of the sequence, its calls), the domains in turn until there are enough."""
    left = given.sequences * len(domains) * given.calls
    left = left if given.at_most is None else min(left, given.at_most)
    lengths = []
    for number in range(given.sequences):
        for domain in domains:
            calls = min(given.calls, left)
            left -= calls
            if calls:
                lengths.append((domain, number, calls))
    return lengths


async def _sequence(domain: Domain, number: int, calls: int, llm: LLM, seed: int) -> list[Sample]:
    """The interpreter goes on from its own state, so that each call is asked about a true one."""
    item = f"{domain.name}-{seed}-{number}"
    rng = rng_of(item, "calls")
    rows: Mapping[str, Row] = {row["name"]: row for row in tool_rows(domain)}
    writing = [name for name, program in domain.programs.items() if not program.read_only]
    reading = [name for name, program in domain.programs.items() if program.read_only]
    answers = ModelAnswers(llm, item=item)
    environment, recent, samples = DomainEnvironment.of(domain), [], []
    while len(samples) < calls:
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
        environment = environment.snapshot()
        result = environment.call(name, arguments)
        if note.measured is not None:
            kind = "error" if result.is_error else "read" if read_only else "write"
            place = (domain.name, number, len(samples), note.repairs, played is None, kind)
            samples.append(Sample(*place, note.measured))
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
        "interval_95": _interval(exact, n),
        "changing_nothing": round(unchanged / n, 3) if n else None,
        "observation": _share(samples, [s.measured.observation_match for s in samples]),
        "observation_95": _interval(sum(s.measured.observation_match for s in samples), n),
        "success_or_failure": _share(samples, [s.measured.error_match for s in samples]),
        "success_or_failure_95": _interval(sum(s.measured.error_match for s in samples), n),
        "repaired": _share(samples, [s.repairs > 0 for s in samples]),
        "given_up": _share(samples, [s.failed for s in samples]),
    }


def _interval(hits: int, n: int) -> list[float] | None:
    return [round(v, 3) for v in wilson(hits, n)] if n else None


def _share(samples: Sequence[Sample], flags: Sequence[bool]) -> float | None:
    return round(sum(flags) / len(samples), 3) if samples else None


def _survival(samples: Sequence[Sample], calls: int) -> list[float]:
    sequences: dict[tuple[str, int], list[bool]] = {}
    for sample in samples:
        own = sequences.setdefault((sample.domain, sample.sequence), [])
        own.append(sample.measured.state_match)
    after = []
    for k in range(calls):
        long = [all(own[: k + 1]) for own in sequences.values() if len(own) > k]
        after += [round(sum(long) / len(long), 3)] if long else []
    return after


def _show(found: Mapping[str, Any]) -> None:
    names = list(found["all"])
    print(f"State accuracy of tools simulated by {found['model']}, {found['calls']} calls")
    print("| changed fields, or kind | " + " | ".join(names) + " |")
    print("|" + " --- |" * (len(names) + 1))
    rows = [*found["by_fields"].items(), *found["by_kind"].items(), ("all", found["all"])]
    for bucket, figures in rows:
        print(f"| {bucket} | " + " | ".join(str(figures[name]) for name in names) + " |")
    print(f"still exact after k calls: {found['exact_after']}")
    print(json.dumps({name: found[name] for name in ("seconds", *machine())}))


if __name__ == "__main__":
    main()
