"""Tasks on one bug stand in one split, whatever run, seed, words or order they are made in."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from math import sqrt
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from records.digest import canonical_json, digest
from records.seeds import rng_of
from records.tables.schemas import Row
from sandboxes.code.mutations import Mutation, in_rounds, mutations_of
from sandboxes.code.projects import builtin_projects
from sandboxes.code.swe import bug_id
from sandboxes.lending.leases import available
from synth.episode.tools.code_environments import (
    CODE_DOMAIN,
    CodeEnvironment,
    bug_of,
    code_environments,
    start_files,
)
from synth.tasks.code_tasks import CodeTask, CodeTasks
from synth.tasks.composing import DomainTasks
from synth.tasks.config import TaskConfig
from synth.tasks.goals.goals import Draft, Proof
from synth.tasks.sources import TaskSources
from synth.tasks.stage import TaskPlan, make_task
from tests.examples import examples
from tests.sandboxes.code.code_cases import project
from tests.synth.authors import GENERATOR, FixedWords
from tests.synth.task_cases import SHARES, cases
from tests.synth.tasks.test_task_settings import NORMAL
from tests.synth.tasks.test_task_stage import agent, persona

needs_sandbox = pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}")

REPOSITORIES = [CodeEnvironment(project) for project in builtin_projects().values()]


@cache
def mutations_in(name: str) -> tuple[Mutation, ...]:
    sources = sorted(builtin_projects()[name].sources.items())
    return tuple(mutation for path, text in sources for mutation in mutations_of(path, text))


class Unproved(CodeTasks):
    """Tasks on the first bug drawn for each item, of a kind that no sandbox has looked at: which
    of the drawn bugs the tests notice makes no difference to the split of any."""

    def __init__(self, environments: Sequence[CodeEnvironment], draft: Draft, proof: Proof) -> None:
        super().__init__({e.project.name: e for e in environments})
        self.draft, self.proof = draft, proof

    async def make(self, item_id: str) -> CodeTask:
        drawn_from = self.environment_for(item_id).project
        mutation = next(in_rounds(mutations_in(drawn_from.name), rng_of(item_id, "bug").shuffle))
        mutated = mutation.apply(drawn_from.files[mutation.path])
        own = bug_id(drawn_from, mutation.path, mutated)
        state = {"bug": own, "start": digest(drawn_from.name, mutation.path, mutated)}
        draft = self.draft.model_copy(update={"initial_state": state})
        return CodeTask("simple", draft, self.proof, [], (), own)


@cache
def unproved() -> Unproved:
    case = cases(4)[0]
    _, draft, proof = DomainTasks(case.domain, case.tools, variants=NORMAL).make(
        "on code", shares=SHARES, disclosure="at_once"
    )
    return Unproved(REPOSITORIES, draft, proof)


def tasks_of(code: CodeTasks, items: Iterable[str], **config: Any) -> list[Row]:
    """A row for each item, each told in words of its own, as the stage makes them."""
    on_code, somebody = agent(domain_id=CODE_DOMAIN, tool_ids=[]), persona()

    async def made(item_id: str) -> Row:
        words = FixedWords({"title": f"Issue {item_id}", "body": "It does not do what it says."})
        return cast(
            Row,
            await make_task(
                TaskPlan(item_id, on_code, somebody),
                words.llm,
                config=TaskConfig(**config),
                sources=TaskSources(tools={}, domains={}, servers={}, code=code),
                generator=GENERATOR,
            ),
        )

    async def every() -> list[Row]:
        return [await made(item_id) for item_id in items]

    return asyncio.run(every())


def items_of(seed: int, count: int) -> list[str]:
    return [digest("task", seed, number) for number in range(count)]


def splits_by_bug(rows: Iterable[Row]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        found[row["initial_state"]["bug"]].add(row["split"])
    return found


@hypothesis_settings(max_examples=examples(10), deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=4, unique=True), st.randoms())
def test_no_bug_is_in_two_splits(seeds: list[int], order: Any) -> None:
    items = [item for seed in seeds for item in items_of(seed, 40)]
    order.shuffle(items)
    rows = tasks_of(unproved(), items, heldout_share=0.3)
    assert len({canonical_json(row["user_brief"]) for row in rows}) == len(rows)
    # the start is told apart by its text, so this rests on no id of a bug
    by_start: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        by_start[row["initial_state"]["start"]].add(row["split"])
    assert {len(splits) for splits in by_start.values()} == {1}
    assert len(by_start) < len(rows)  # some bugs are drawn again, or this showed nothing
    assert {row["split"] for row in rows} == {"train", "heldout_task", "heldout_domain"}


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_declared_share_of_bugs_is_held_out(share: float) -> None:
    """Within four standard deviations of what chance makes of the bugs that were drawn."""
    rows = tasks_of(unproved(), items_of(7, 700), heldout_share=share)
    splits = splits_by_bug(row for row in rows if row["split"] != "heldout_domain")
    assert len(splits) > 150, len(splits)
    held = sum(split == {"heldout_task"} for split in splits.values())
    assert abs(held - share * len(splits)) < 4 * sqrt(len(splits) * share * (1 - share))
    counts = Counter(row["initial_state"]["bug"] for row in rows)
    assert max(counts.values()) > 5  # whatever its number of tasks, a bug counts once


def test_two_mutations_that_leave_the_same_text_are_one_bug() -> None:
    text = "def run(a):\n    a.add(1)\n    a.add(1)\n    return a\n"
    twice = project(text)
    removed = [m for m in mutations_of("shop/price.py", text) if m.operator == "removed_call"]
    assert len({m.start for m in removed}) == 2
    one = {bug_id(twice, m.path, m.apply(text)) for m in removed}
    assert len(one) == 1
    retold = twice.model_copy(update={"title": "Shop", "description": "A shop.", "license": "MIT"})
    assert bug_id(retold, removed[0].path, removed[0].apply(text)) in one


def test_another_place_text_file_or_project_is_another_bug() -> None:
    text = "def run(a):\n    b = a + 1\n    c = a + 1\n    return b, c\n"
    files = {"shop/price.py": text, "shop/cost.py": text}
    shops = [project().model_copy(update={"name": n, "files": files}) for n in ("shop", "stall")]
    changed = {m.apply(text) for m in mutations_of("a.py", text)}
    ids = {bug_id(shop, path, new) for shop in shops for path in files for new in changed}
    assert len(ids) == len(shops) * len(files) * len(changed)
    assert len(changed) >= 6


def check_real(code: CodeTasks, rows: Sequence[Row]) -> None:
    """That bugs of rows are one exactly where episodes start from the same files."""
    starts: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        state = row["initial_state"]
        base = code.environments[state["world"]].project
        files = start_files(base, state["edits"])
        starts[bug_of(row) or ""].add(digest(base.name, files))
    assert {len(found) for found in starts.values()} == {1}
    assert len(set.union(*starts.values())) == len(starts)
    assert {len(splits) for splits in splits_by_bug(rows).values()} == {1}


@pytest.mark.slow
@needs_sandbox
def test_proved_tasks_on_one_bug_have_its_id_and_its_split() -> None:
    code = CodeTasks({e.project.name: e for e in (CodeEnvironment(project()), a_problem())})
    rows = tasks_of(code, items_of(1, 4) + items_of(2, 4), heldout_share=0.5)
    check_real(code, rows)
    counts = Counter(bug_of(row) for row in rows)
    assert max(counts.values()) > 1
    problems = {bug_of(row) for row in rows if row["initial_state"]["world"] != "shop"}
    assert len(problems) == 1


def a_problem() -> CodeEnvironment:
    return code_environments(["basics"])["change_of_weight"]


@pytest.mark.scale
@needs_sandbox
def test_real_projects_over_several_seeds() -> None:
    code = CodeTasks(code_environments(["all"]))
    rows = tasks_of(code, [i for seed in (1, 2, 3) for i in items_of(seed, 8)], heldout_share=0.3)
    check_real(code, rows)
    assert {"train", "heldout_domain"} <= {row["split"] for row in rows}
