"""What the gate of tools catches and what it refuses wrongly, on a folder of labelled tools.

    python -m benchmarks.gate FOLDER [--jobs 2]                      code alone
    python -m benchmarks.gate FOLDER --judge FILE --work FOLDER      and the judge of descriptions

Each `*.yaml` of the folder holds `domain` (the name of one that the package has), `is_faulty`,
`kind`, `fault` (what is wrong, in words) and `tool`. FILE is TOML with the settings of the judge's
role, which is asked about what passes code, as evolution and `synth domain write` ask it. Its
answers are kept in the folder of `--work`.
"""

import argparse
import asyncio
import tomllib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from records.store.journal import ShardJournal
from synth.catalogue.proposals.describing import AcceptedTool, hints_of, judged
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from synth.render.intervals import wilson
from tool_specs.domains.loading import read_yaml
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.doubts import doubts_of
from tool_specs.validation.validate import validate_tools


class Verdict(NamedTuple):
    file: str
    is_faulty: bool
    kind: str
    spec: ToolSpec
    domain: str
    example: dict[str, Any] | None
    reason: str | None
    """None for a tool that passes."""
    details: tuple[str, ...]
    survivors: tuple[str, ...]
    by: str = "code"
    """Who refused it: `code` or `judge`."""

    @property
    def right(self) -> bool:
        return self.is_faulty == (self.reason is not None)


def examined(path: Path) -> Verdict:
    """The tool alone beside the tools of its domain, as one proposal is."""
    labelled = read_yaml(path)
    spec = ToolSpec.model_validate(labelled["tool"])
    [domain] = load_taxonomy([labelled["domain"]])
    found = validate_tools(domain, [spec])[spec.name]
    return Verdict(
        path.name,
        labelled["is_faulty"],
        labelled["kind"],
        spec,
        labelled["domain"],
        found.example,
        found.reason,
        found.details,
        found.survivors,
    )


def read_by_judge(verdicts: Sequence[Verdict], judge: RoleConfig, work: Path) -> list[Verdict]:
    """Those that pass code are held against their descriptions."""

    async def read() -> list[Verdict]:
        work.mkdir(parents=True, exist_ok=True)
        async with Gateway({"judge": judge}) as gateway:
            with ShardJournal(work / "answers.sqlite") as journal:
                llm = LLM(gateway, journal, stage="gate", invocation_id="gate")
                return list(await asyncio.gather(*(_read(v, llm) for v in verdicts)))

    return asyncio.run(read())


async def _read(verdict: Verdict, llm: LLM) -> Verdict:
    if verdict.reason is not None:
        return verdict
    spec = verdict.spec
    [domain] = load_taxonomy([verdict.domain])
    hints = [*hints_of(spec), *doubts_of(spec, domain.file)]
    tool = AcceptedTool(spec, {"example": verdict.example, "hints": hints})
    [answer] = (await judged(llm, verdict.file, "describe", [tool], domain.file)).values()
    if not answer.answered:
        return verdict._replace(details=("the judge gave no answer of use",))
    if not answer.broken:
        return verdict
    details = tuple(promise.words for promise in answer.broken)
    return verdict._replace(reason=answer.broken[0].kind, details=details, by="judge")


def report(verdicts: Sequence[Verdict]) -> str:
    """A line for each tool, what is judged wrongly first, and the counts last."""
    lines: list[str] = []
    for found in sorted(verdicts, key=lambda v: (v.right, v.file)):
        mark = "right" if found.right else "WRONG"
        passed = f"passes, {len(found.survivors)} survivors"
        said = f"{found.reason} ({found.by})" if found.reason else passed
        lines.append(f"{mark} {found.file} {found.kind}: {said}")
        lines += [f"      {words}" for words in (*found.details, *found.survivors)]
    for name, faulty in (("faulty", True), ("honest", False)):
        own = [v for v in verdicts if v.is_faulty is faulty]
        refused = [v for v in own if v.reason is not None]
        by_code = sum(v.by == "code" for v in refused)
        lines.append(
            f"{name}: {len(refused)} of {len(own)} refused ({by_code} by code, "
            f"{len(refused) - by_code} by the judge; {_interval(len(refused), len(own))})"
        )
    kept = [v for v in verdicts if not v.is_faulty and v.reason is None]
    lines.append(f"honest, kept with a survivor: {sum(bool(v.survivors) for v in kept)}")
    return "\n".join(lines)


def _interval(hits: int, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{low:.0%} to {high:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--judge", type=Path, help="TOML file with the judge's role settings")
    parser.add_argument("--work", type=Path, help="folder that keeps the judge's answers")
    args = parser.parse_args()
    if args.judge and not args.work:
        parser.error("--judge needs --work, a folder that keeps the judge's answers")
    with ProcessPoolExecutor(args.jobs) as pool:
        verdicts = list(pool.map(examined, sorted(args.folder.glob("*.yaml"))))
    if args.judge:
        judge = RoleConfig.model_validate(tomllib.loads(args.judge.read_text(encoding="utf-8")))
        verdicts = read_by_judge(verdicts, judge, args.work)
    print(report(verdicts))


if __name__ == "__main__":
    main()
