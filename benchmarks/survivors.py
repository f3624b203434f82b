"""What the gate leaves over on the domain files: tools that it refuses, and tools with a survivor.

    python -m benchmarks.survivors [DOMAIN ...] [--jobs 2]

Domains by name or pattern, as `synth domain list` shows them; all that have tools by default. Every
tool is examined as `synth domain check` examines it. Prints each refused tool and each survivor,
then the survivors by kind of mutant, and tools/s of all processes together.
"""

import argparse
import re
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tool_specs.domains.domain import load_domain
from tool_specs.domains.taxonomy import files_named
from tool_specs.validation.validate import Validation, validate_tools

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\[\d+\]|\bin place of .*|\bit does the same.*")


class ExaminedFile(NamedTuple):
    domain: str
    tools: dict[str, Validation]


def examined_file(path: Path) -> ExaminedFile:
    """All tools of a file, each alone."""
    domain = load_domain(path)
    return ExaminedFile(domain.name, validate_tools(domain, domain.tools))


def kind_of(survivor: str) -> str:
    """The kind of mutant, without what it was made of."""
    member = re.match(r"(?:with |without )?semantics\[\d+\](?:\.(\w+))?", survivor)
    words = " ".join(_QUOTED.sub("", survivor).split())
    words = re.sub(r"semantics[.\w]*", member.group(1) or "statement" if member else "", words)
    return " ".join(words.split())


def report(files: list[ExaminedFile], wall_s: float) -> str:
    """A line for each refusal and each survivor, and the counts last."""
    lines: list[str] = []
    kinds: Counter[str] = Counter()
    found = [(f.domain, name, v) for f in files for name, v in f.tools.items()]
    for domain, name, validation in found:
        place = f"{domain}.{name}"
        if validation.reason is not None:
            lines += [f"REFUSED {place} {validation.reason}: {w}" for w in validation.details]
        lines += [f"survivor {place}: {words}" for words in validation.survivors]
        kinds.update({kind_of(words) for words in validation.survivors})
    lines += [f"{count:5} tools: {kind}" for kind, count in kinds.most_common()]
    refused = sum(v.reason is not None for _, _, v in found)
    left = sum(bool(v.survivors) for _, _, v in found)
    calls, mutants = sum(v.calls for *_, v in found), sum(v.mutants for *_, v in found)
    lines.append(
        f"{len(found)} tools of {len(files)} domains: {refused} refused, {left} kept with a "
        f"survivor ({left / max(len(found), 1):.1%}); {mutants} mutants, {calls} calls of fuzzing"
    )
    lines.append(f"{wall_s:.0f} s, {len(found) / wall_s:.2f} tools/s")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("domains", nargs="*", default=["*/*"])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    paths = {name: path for given in args.domains for name, path in files_named(given).items()}
    with_tools = [path for path in paths.values() if load_domain(path).tools]
    begun = time.monotonic()
    with ProcessPoolExecutor(args.jobs) as pool:
        files = list(pool.map(examined_file, with_tools))
    print(report(files, time.monotonic() - begun))


if __name__ == "__main__":
    main()
