"""The mutations of a project, found in a sandbox.

Source that was written for it makes a parser take all memory, or no end of time. Only offsets and
new text come back; what a mutation replaces is read from the project itself.
"""

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from records.digest import digest
from records.errors import ItemError
from sandboxes.code import mutations
from sandboxes.code.mutations import Mutation, MutationOperator
from sandboxes.code.projects import Project
from sandboxes.core.programs import last_words, program
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.leases import lease

FIND = Path(__file__).parents[1] / "inside" / "find_mutations.py"

TEMPLATE = SandboxTemplate(
    hostname="finder",
    limits=Limits(timeout_s=600, memory_mb=1024, processes=16, output_bytes=16_000_000),
)

FINDER_MEMORY = 768 << 20
"""Bytes that the program in the sandbox may take; less than the sandbox has."""

MOST_KEPT = 64
"""Projects whose mutations are kept: every task on a project draws from all of its files."""

FoundMutations = TypeAdapter(list[tuple[int, MutationOperator, int, int, int, str]])

_kept: dict[str, tuple[Mutation, ...]] = {}


async def find_mutations(project: Project) -> tuple[Mutation, ...]:
    """Every mutation of the project's sources, in the order of their paths and of their text; none
    of a file that cannot be parsed. ItemError("no_mutations") where finding them takes too long or
    too much, TransientError where a sandbox fails by itself."""
    sources = sorted(project.sources.items())
    key = digest("mutations", json.dumps(sources))
    if key not in _kept:
        found = await _find(project, sources)
        while len(_kept) >= MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = found
    return _kept[key]


async def _find(project: Project, sources: list[tuple[str, str]]) -> tuple[Mutation, ...]:
    finder = Path(mutations.__file__).read_text(encoding="utf-8")
    request = {"finder": finder, "files": sources, "memory": FINDER_MEMORY}
    async with lease(TEMPLATE) as sandbox:
        done = await sandbox.exec(program(FIND), stdin=json.dumps(request).encode())
    if done.exit_code or done.truncated:
        why = "out of time" if done.timed_out else last_words(done.stderr)
        raise ItemError("no_mutations", f"project {project.name}: {why or 'they are too many'}")
    try:
        rows = FoundMutations.validate_json(done.stdout)
        return tuple(_mutation(sources, *row) for row in rows)
    except (ValidationError, IndexError) as error:
        raise ItemError("no_mutations", f"project {project.name}: no list of them") from error


def _mutation(
    sources: list[tuple[str, str]],
    number: int,
    operator: MutationOperator,
    line: int,
    start: int,
    length: int,
    new: str,
) -> Mutation:
    path, text = sources[number]
    if not 0 <= start <= start + length <= len(text) or number < 0:
        raise IndexError(f"{path} has no text at {start}")
    return Mutation(operator, path, line, start, text[start : start + length], new)
