"""The generator is told who belongs to the rows of a task, and nothing that is yet to be told."""

from records.digest import digest
from synth.tasks.composing import DomainTasks
from synth.tasks.goals.goals import Draft
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.words.named_rows import named_rows
from tests.synth.task_cases import SHARES, domains
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment


def drafts() -> list[tuple[Domain, Draft]]:
    found = []
    for domain in domains():
        tasks = DomainTasks(domain, list(domain.programs))
        for i in range(6):
            try:
                item = digest("named", domain.name, i)
                _, draft, _ = tasks.make(item, shares=SHARES, disclosure="when_asked")
            except UnprovedError:
                continue
            found.append((domain, draft))
    return found


def test_names_are_those_of_rows_that_the_named_row_refers_to() -> None:
    seen = 0
    for domain, draft in drafts():
        environment = DomainEnvironment.of(domain, draft.initial_state)
        texts = {
            str(value)
            for entity in domain.entities
            for row in environment.rows(entity)
            for value in row.values()
        }
        named = {str(value) for goal in draft.goals for value in goal.arguments.values()}
        for key, told in named_rows(domain, draft).items():
            seen += 1
            assert key in named
            assert set(told.values()) <= texts
    assert seen >= 20


def test_nothing_stands_there_that_is_told_only_when_asked_or_asked_for() -> None:
    for domain, draft in drafts():
        told = {name for row in named_rows(domain, draft).values() for name in row.values()}
        kept = {str(f.value) for goal in draft.goals for f in goal.known if f.when == "asked"}
        wanted = {str(v) for goal in draft.goals for asked in goal.asks for v in asked.values}
        assert told.isdisjoint(kept | wanted)
