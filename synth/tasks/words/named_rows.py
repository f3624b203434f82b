"""Who and what belongs to the rows that a task names, so that its story is true of them."""

from collections.abc import Iterator

from synth.rubrics.values import moment_of
from synth.tasks.goals.goals import Draft
from synth.tasks.goals.knowledge import leaves, words_of
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment


def named_rows(domain: Domain, draft: Draft) -> dict[str, dict[str, str]]:
    """Id of a row that a goal names -> what the rows are called that it refers to, by what they are
    to it: `{"SB-1001": {"learner": "Tariku Bekele", "reviewer": "Isabela Nogueira"}}`. What the
    user tells only when asked, or wants to be told, is left out."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    yet_to_tell = {str(f.value) for g in draft.goals for f in g.known if f.when != "opening"}
    yet_to_tell |= {str(v) for g in draft.goals for asked in g.asks for v in asked.values}
    found = {}
    for entity, key in _named(domain, draft):
        told = {
            what: name
            for what, name in _referred(environment, domain, entity, key)
            if name not in yet_to_tell
        }
        if told:
            found[key] = told
    return found


def _named(domain: Domain, draft: Draft) -> Iterator[tuple[str, str]]:
    for goal in draft.goals:
        if goal.tool in domain.programs:
            for name, param in domain.programs[goal.tool].spec.params.items():
                if param.ref and isinstance(key := goal.arguments.get(name), str):
                    yield param.ref, key


def _referred(
    environment: DomainEnvironment, domain: Domain, entity: str, key: str
) -> Iterator[tuple[str, str]]:
    """What the row refers to, and what that does in turn: whose parcel the claim is about."""
    for name, to, other in _references(environment, domain, entity, key):
        if called := _called(environment, domain, to, other):
            yield words_of(name), called
        for further, next_to, another in _references(environment, domain, to, other):
            if called := _called(environment, domain, next_to, another):
                yield f"{words_of(name)}'s {words_of(further)}", called


def _references(
    environment: DomainEnvironment, domain: Domain, entity: str, key: str
) -> Iterator[tuple[str, str, str]]:
    """(field, entity, key) of the rows that the row refers to."""
    row = environment.get(entity, key) or {}
    for name, field in domain.entities[entity].fields.items():
        if field.type == "ref" and field.to and row.get(name):
            yield name, field.to, row[name]


def _called(environment: DomainEnvironment, domain: Domain, entity: str, key: str) -> str | None:
    names = (
        leaf.value
        for leaf in leaves(environment, domain, entity, key)
        if isinstance(leaf.value, str) and moment_of(leaf.value) is None
    )
    return next(names, None)
