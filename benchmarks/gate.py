"""What the gate of tools catches and what it refuses wrongly, on a folder of labelled tools.

    python -m benchmarks.gate FOLDER [--jobs 2]

Each `*.yaml` of the folder holds `domain` (the name of one that the package has), `is_faulty`,
`kind`, `fault` (what is wrong, in words) and `tool`. Only code decides: no model is asked.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tool_specs.domains.loading import read_yaml
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.validate import validate_tools


class Verdict(NamedTuple):
    file: str
    is_faulty: bool
    kind: str
    reason: str | None
    """None for a tool that passes."""
    details: tuple[str, ...]
    survivors: tuple[str, ...]

    @property
    def right(self) -> bool:
        return self.is_faulty == (self.reason is not None)


def judged(path: Path) -> Verdict:
    """The tool alone beside the tools of its domain, as one proposal is."""
    labelled = read_yaml(path)
    spec = ToolSpec.model_validate(labelled["tool"])
    [domain] = load_taxonomy([labelled["domain"]])
    found = validate_tools(domain, [spec])[spec.name]
    return Verdict(
        path.name,
        labelled["is_faulty"],
        labelled["kind"],
        found.reason,
        found.details,
        found.survivors,
    )


def report(verdicts: list[Verdict]) -> str:
    """A line for each tool, what is judged wrongly first, and the counts last."""
    lines = []
    for found in sorted(verdicts, key=lambda v: (v.right, v.file)):
        mark = "right" if found.right else "WRONG"
        said = found.reason or f"passes, {len(found.survivors)} survivors"
        lines.append(f"{mark} {found.file} {found.kind}: {said}")
        lines += [f"      {words}" for words in (*found.details, *found.survivors)]
    faulty = [v for v in verdicts if v.is_faulty]
    honest = [v for v in verdicts if not v.is_faulty]
    caught, refused = (sum(v.reason is not None for v in part) for part in (faulty, honest))
    left = sum(bool(v.survivors) for v in honest if v.reason is None)
    lines.append(f"faulty: {caught} of {len(faulty)} caught")
    lines.append(f"honest: {refused} of {len(honest)} refused, {left} kept with a survivor")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs) as pool:
        print(report(list(pool.map(judged, sorted(args.folder.glob("*.yaml"))))))


if __name__ == "__main__":
    main()
