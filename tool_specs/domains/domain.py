"""A domain: entities, seed state, policy and tools, checked and compiled, ready for
environments."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from records.digest import digest
from records.errors import ConfigError
from tool_specs.domains.loading import checked, file_bytes, parse_yaml, refusal
from tool_specs.domains.seed_rows import check_natural, check_refs, seed_rows
from tool_specs.execution.compiler import Compiler
from tool_specs.execution.fields import refs_of
from tool_specs.execution.invariants import (
    Invariants,
    broken_in,
    check_lifecycles,
    compile_invariants,
)
from tool_specs.execution.jobs import CompiledJob, compile_jobs, run_due
from tool_specs.execution.programs import Entities, Problems, Program, compile_rule
from tool_specs.execution.state import EntityRow, State
from tool_specs.growth.grown_seed import Ground, GrownSeed
from tool_specs.language.domain_file import DomainFile, EntitySpec, ParamSpec, PolicyRule, ToolSpec
from tool_specs.language.evaluation import Evaluator
from tool_specs.language.schemas import SchemaError, Validator
from tool_specs.language.values import EvaluationError, show_value

LAST_MOMENT = "9999-12-31T23:59:59"

BUILT_IN = Path(__file__).parent / "builtin"
"""Where the domain files of this package lie."""


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A policy rule that code checks: `violated` holds on a call that must not be made."""

    spec: PolicyRule
    violated: Evaluator


@dataclass(frozen=True, eq=False)
class Domain:
    """Consistent by construction: `Domain.of` refuses anything else."""

    file: DomainFile
    programs: Mapping[str, Program]
    rules: Mapping[str, tuple[CheckedRule, ...]]
    """By tool name; rules that only a judge can check are in `policy` alone."""
    seed_state: State
    """Never changed: environments start from snapshots of it."""
    referrers: Mapping[str, tuple[tuple[str, str], ...]]
    """Entity -> (entity, field) of the fields that point at it."""
    invariants: Invariants
    """What holds for every row of an entity, always."""
    jobs: tuple[CompiledJob, ...] = ()
    """What changes by itself."""

    @classmethod
    def of(cls, data: Any, *, origin: str) -> "Domain":
        """From a domain file's content. Raises ConfigError that lists every problem found.

        `origin` is how messages name the content, such as the file's name.
        """
        file = checked(DomainFile, data, origin=origin)
        problems = Problems()
        _check_entities(file, problems)
        if problems.found:
            raise refusal(origin, problems.found)
        state = State.of(seed_rows(file, problems), file.now)
        for name, entity in file.entities.items():
            check_refs(state, name, entity, "seed", state.tables[name].rows(), problems)
        check_natural(file, state, problems)
        entities = Entities.of(file)
        check_lifecycles(file, entities, problems)
        invariants = compile_invariants(file, entities, problems)
        if not problems.found:
            for path, words in broken_in(state, file, invariants):
                problems.add(path, words)
        programs = compile_tools(file.tools, entities, problems)
        rules = _rules(file, entities, problems)
        jobs = compile_jobs(file.jobs, entities, problems)
        if problems.found:
            raise refusal(origin, problems.found)
        made = cls(file, programs, rules, state, _referrers(file), invariants, jobs)
        if problems := _restless(made):
            raise refusal(origin, problems)
        return made

    def with_tools(self, programs: Iterable[Program]) -> "Domain":
        """The same environment with these tools, compiled for it, in place of its own. A rule stays
        where its tool does: another tool of that name may have other parameters."""
        chosen = {program.spec.name: program for program in programs}
        file = self.file.model_copy(update={"tools": [p.spec for p in chosen.values()]})
        rules = {
            name: rules
            for name, rules in self.rules.items()
            if name in chosen and chosen[name].spec == self.programs[name].spec
        }
        return replace(self, file=file, programs=chosen, rules=rules)

    def without_durations(self) -> "Domain":
        """The same, but that calls and waits take no time."""
        timeless = {n: replace(program, takes=None) for n, program in self.programs.items()}
        return replace(self, programs=timeless)

    @cached_property
    def has_time(self) -> bool:
        """Whether the clock can move, or anything can change by itself."""
        passes = self.file.user_turn or any(p.takes for p in self.programs.values())
        return bool(self.jobs or passes)

    @property
    def name(self) -> str:
        return self.file.domain

    @property
    def title(self) -> str:
        return self.file.title

    @property
    def category(self) -> str:
        return self.file.category

    @property
    def description(self) -> str:
        return self.file.description

    @property
    def split(self) -> str:
        return self.file.split

    @property
    def now(self) -> str:
        return self.file.now

    @property
    def entities(self) -> Mapping[str, EntitySpec]:
        return self.file.entities

    @property
    def seed(self) -> Mapping[str, list[EntityRow]]:
        """The seed as whole rows, in the order in which reads give them."""
        return {name: list(table.rows()) for name, table in self.seed_state.tables.items()}

    @property
    def policy(self) -> Sequence[PolicyRule]:
        return self.file.policy

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return self.file.tools

    @cached_property
    def ground(self) -> Ground:
        """What the seed grows from."""
        about = {"entities", "rules", "now"}
        file = self.file.model_dump(mode="json", by_alias=True, include=about)
        key = digest(self.name, file, self.seed_state.hash)
        return Ground(key, self.file, self.seed_state, self.invariants)

    def start(self, grown: GrownSeed | None = None) -> State:
        """The seed, or what it grows to; shared, and not to be changed.

        Raises ConfigError where it does not grow, or not as it did.
        """
        return self.seed_state if grown is None else self.ground.grown(grown)

    def dangling(self, state: State) -> str | None:
        """Words for a row that still refers to one deleted since the state's last commit."""
        for entity, key in state.deleted():
            for other, field in self.referrers[entity]:
                for row in state.tables[other].matching({field: key}):
                    name = show_value(row[self.entities[other].key])
                    return f"{other} {name} still refers to {entity} {show_value(key)}"
        return None

    def overdue(self, state: State) -> Iterator[str]:
        """Words for every row of a state on which a job is due from its start, and for every job
        that cannot tell."""
        for job in self.jobs:
            path = f"jobs[{job.spec.name}].due"
            try:
                due_rows = job.due_rows(state, state.now)
            except EvaluationError as error:
                yield f"{path}: {error}"
                continue
            for due in due_rows:
                yield (
                    f"{path}: {job.spec.entity} {show_value(due.row[1])} is due at {due.at}, and "
                    f"the clock starts at {state.now}; make it later, or leave the row out by "
                    "`where`"
                )

    def openai_tools(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Tool definitions as the chat completions API takes them; all tools without `names`."""
        chosen = [t.name for t in self.tools] if names is None else list(names)
        return [_openai_tool(self.programs[name].spec) for name in chosen]


def _openai_tool(spec: ToolSpec) -> dict[str, Any]:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.input_schema(),
    }
    return {"type": "function", "function": function}


def load_domain(path: str | Path) -> Domain:
    """One domain file. Raises ConfigError naming the file, the path inside it and the value."""
    return built_domain(str(path), file_bytes(Path(path)))


@lru_cache(maxsize=64)
def built_domain(origin: str, content: bytes) -> Domain:
    """As `load_domain`, of what a file holds. The last ones are kept, 0.9 MB each."""
    return Domain.of(parse_yaml(content, origin=origin), origin=origin)


def builtin_names() -> list[str]:
    """Names of the domains that come with the package."""
    return sorted(path.stem for path in BUILT_IN.glob("*.yaml"))


def load_domains(names: Iterable[str | Path] | None = None) -> list[Domain]:
    """Domains by built-in name or by path of a .yaml file; all built-in ones without `names`."""
    domains: dict[str, Domain] = {}
    for name in builtin_names() if names is None else names:
        domain = load_domain(_path_of(name))
        if domain.name in domains:
            raise ConfigError(f"domains: {domain.name!r} is given twice")
        domains[domain.name] = domain
    return list(domains.values())


def _path_of(name: str | Path) -> Path:
    if isinstance(name, Path) or name.endswith((".yaml", ".yml")):
        return Path(name)
    if name not in builtin_names():
        known = ", ".join(builtin_names()) or "none"
        raise ConfigError(
            f"domains: no built-in domain {name!r}; known: {known}; or give a .yaml file"
        )
    return BUILT_IN / f"{name}.yaml"


def _check_entities(file: DomainFile, problems: Problems) -> None:
    """Names that everything else rests on."""
    known = ", ".join(file.entities)
    for name, entity in file.entities.items():
        if name == "args":
            problems.add("entities.args", "args names the arguments; choose another name")
        for field, target in refs_of(entity).items():
            if target not in file.entities:
                path = f"entities.{name}.fields.{field}.to"
                problems.add(path, f"unknown entity {target!r}; known: {known}")
    for name in file.seed:
        if name not in file.entities:
            problems.add(f"seed.{name}", f"unknown entity; known: {known}")
    for tool in file.tools:
        for path, param in _params(f"tools[{tool.name}].params", tool.params):
            if param.ref is not None and param.ref not in file.entities:
                problems.add(f"{path}.ref", f"unknown entity {param.ref!r}; known: {known}")
            if param.default is not None:
                _check_default(path, param, problems)


def _params(path: str, params: Mapping[str, ParamSpec]) -> Iterable[tuple[str, ParamSpec]]:
    for name, param in params.items():
        yield f"{path}.{name}", param
        if param.properties:
            yield from _params(f"{path}.{name}.properties", param.properties)
        if param.items:
            yield from _params(f"{path}.{name}", {"items": param.items})


def _check_default(path: str, param: ParamSpec, problems: Problems) -> None:
    try:
        found = Validator(param.json_schema()).problems(param.default)
    except SchemaError as error:
        found = [str(error)]
    for problem in found:
        problems.add(f"{path}.default", problem.removeprefix("arguments: "))


def compile_tools(
    specs: Iterable[ToolSpec], entities: Entities, problems: Problems
) -> dict[str, Program]:
    """By name; a tool with problems may be missing."""
    found: dict[str, Program] = {}
    for spec in specs:
        try:
            found[spec.name] = Compiler(spec, entities, problems).compile()
        except SchemaError as error:
            problems.add(f"tools[{spec.name}].params", str(error))
    return found


def _rules(
    file: DomainFile, entities: Entities, problems: Problems
) -> dict[str, tuple[CheckedRule, ...]]:
    tools = {tool.name: tool for tool in file.tools}
    rules: dict[str, tuple[CheckedRule, ...]] = {}
    for rule in file.policy:
        path = f"policy[{rule.id}]"
        if rule.tool is None:
            if "forbids" in rule.model_fields_set:
                problems.add(f"{path}.forbids", "needs tool: the call that it forbids")
        elif rule.tool not in tools:
            problems.add(f"{path}.tool", f"unknown tool {rule.tool!r}; known: {', '.join(tools)}")
        else:
            run = compile_rule(
                rule.forbids, tools[rule.tool], entities, f"{path}.forbids", problems
            )
            rules[rule.tool] = (*rules.get(rule.tool, ()), CheckedRule(rule, run))
    return rules


FORESEEN = 200
"""Runs of jobs that are tried on the seed when a domain is loaded."""


def _restless(domain: Domain) -> list[str]:
    """What is wrong with jobs on the seed: due from the start, unable to run, without end at one
    moment, or breaking a rule."""
    state = domain.seed_state.snapshot()
    try:
        found = list(domain.overdue(state))
        for _ in range(FORESEEN):
            following = [d.at for job in domain.jobs for d in job.due_rows(state, LAST_MOMENT)]
            if found or not following:
                break
            run_due(domain.jobs, state, min(following), domain.dangling, most=FORESEEN)
            found = [
                f"jobs: at {state.now} {path.removeprefix('seed.')} {words}"
                for path, words in broken_in(state, domain.file, domain.invariants)
            ]
    except EvaluationError as error:
        return [f"jobs: tried on the seed, {error}"]
    return found


def _referrers(file: DomainFile) -> dict[str, tuple[tuple[str, str], ...]]:
    pairs = [
        (target, (name, field))
        for name, entity in file.entities.items()
        for field, target in refs_of(entity).items()
    ]
    return {name: tuple(pair for t, pair in pairs if t == name) for name in file.entities}
