"""Mutations of a stranger's source: found in a sandbox, whatever the source does to a parser."""

import asyncio
import json
from pathlib import Path

import pytest

from records.errors import ItemError
from sandboxes.code import mutation_search
from sandboxes.code.mutation_search import find_mutations
from sandboxes.code.mutations import mutations_of
from sandboxes.code.projects import Project, builtin_projects
from tests.sandboxes.code.code_cases import project

pytestmark = pytest.mark.usefixtures("sandboxed")

UNREADABLE = {
    "deep.py": "x = " + "-" * 150_000 + "1\n",
    "long.py": "x = 1" + "+1" * 90_000 + "\n",
    "dots.py": "a" + ".b" * 90_000 + "\n",
    "cases.py": "if a: pass\n" + "elif a: pass\n" * 14_000,
}
"""Each of them raises something else than a SyntaxError in Python's own parser."""


def with_source(files: dict[str, str]) -> Project:
    return project().model_copy(update={"files": project().files | files})


def test_mutations_are_those_of_the_text_in_their_order() -> None:
    odd = {
        "a.py": 'x = "\u00e4" + y if a < b else 3\r\nif not x:\n    f(1, 2)\n',
        "b.py": "no Python",
    }
    for one in (with_source(odd), next(iter(builtin_projects().values()))):
        expected = [m for p, text in sorted(one.sources.items()) for m in mutations_of(p, text)]
        assert len(expected) > 3
        assert list(asyncio.run(find_mutations(one))) == expected


def test_source_that_breaks_a_parser_has_no_mutations() -> None:
    for path, text in UNREADABLE.items():
        with pytest.raises((MemoryError, RecursionError)):
            mutations_of(path, text)  # the control
    assert asyncio.run(find_mutations(with_source(UNREADABLE))) == asyncio.run(
        find_mutations(project())
    )


def test_source_that_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = mutation_search.TEMPLATE.limits.model_copy(update={"timeout_s": 2.0})
    short = mutation_search.TEMPLATE.model_copy(update={"limits": limits})
    monkeypatch.setattr(mutation_search, "TEMPLATE", short)
    with pytest.raises(ItemError, match=r"no_mutations.*out of time"):
        asyncio.run(find_mutations(with_source({"many.py": "x = 1 < 2\n" * 15_000})))


@pytest.mark.parametrize(
    "rows",
    [
        [[99, "constant", 1, 0, 1, ""]], [[-1, "constant", 1, 0, 1, ""]],
        [[0, "constant", 1, -5, 1, ""]], [[0, "constant", 1, 0, 10_000, ""]],
        [[0, "constant", 1, 5, -3, ""]], [[0, "evil", 1, 0, 1, ""]], [{}], {},
    ],
)  # fmt: skip
def test_forged_mutations_are_refused(
    rows: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forger = tmp_path / "forger.py"
    forger.write_text(f"print({json.dumps(rows)!r})")
    monkeypatch.setattr(mutation_search, "FIND", forger)
    with pytest.raises(ItemError, match="no list of them"):
        asyncio.run(find_mutations(with_source({"a.py": "x = 4\n"})))
