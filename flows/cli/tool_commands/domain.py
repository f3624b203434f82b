"""Commands about domains: domain new, write, check, grow, join, list."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from flows.cli.shared.options import Json
from flows.cli.shared.output import print_rows, say
from flows.cli.tool_commands.domain_write import write
from records.errors import ConfigError

if TYPE_CHECKING:
    from records.store.dataset import Dataset
    from tool_specs.domains.domain import Domain
    from tool_specs.validation.checking import DomainReport


def register(app: App) -> None:
    domain = App(
        name="domain", help="Write a domain of your own, validate it, and list what there is."
    )
    domain.command(new)
    domain.command(write)
    domain.command(check)
    domain.command(lookups)
    domain.command(grow)
    domain.command(join)
    domain.command(list_, name="list")
    app.command(domain)


def new(file: Path, /) -> None:
    """Write a small, complete domain to start your own from; its comments explain the format.

    Parameters
    ----------
    file
        Where to write it, such as night_market.yaml; the domain takes its name. Never overwrites.
    """
    from tool_specs.domains.taxonomy import EXAMPLE

    _check_new(file)
    _write_new(file, EXAMPLE.read_text().replace("DOMAIN_NAME", file.stem))
    say(f"wrote {file}; prove it with: synth domain check {file}")


def check(file: Path, /, *, seed: int = 0, json_: Json = False) -> None:
    """Prove a domain by running it, and show a task that would be made of it.

    Every tool runs until it has succeeded, changed or depended on the state, and reached each
    error it declares; then each of its parts is left out to see that something changes. Exit code
    1 if anything is left to mend.

    Parameters
    ----------
    file
        The domain file, or the name of a domain of `synth domain list`.
    seed
        Another seed draws other calls, and another example.
    json_
        Print a JSON object.
    """
    from tool_specs.domains.taxonomy import load_taxonomy
    from tool_specs.execution.invariants import idle_parts
    from tool_specs.execution.programs import Entities
    from tool_specs.validation.checking import check_domain

    (domain,) = load_taxonomy([str(file)])
    idle = idle_parts(domain.file, Entities.of(domain.file), domain.seed_state)
    report = check_domain(domain, seed=seed)
    problems = [*report.problems, *idle]
    task = _example_task(file, domain, seed) if domain.tools and not problems else None
    if json_:
        print(json.dumps(_as_json(report, problems, task), indent=2))  # noqa: T201
    else:
        _print(domain, report, problems, task)
    if problems:
        raise SystemExit(1)


def _as_json(
    report: "DomainReport", problems: list[str], task: dict[str, Any] | None
) -> dict[str, Any]:
    tools = [
        {
            "name": t.name,
            "read_only": t.read_only,
            "calls": t.calls,
            "errors": dict(t.errors),
            "mutants": t.num_mutants,
            "example": t.example,
        }
        for t in report.tools.values()
    ]
    return {
        "domain": report.domain,
        "problems": problems,
        "tools": tools,
        "policy": {rule: bool(trial.broken) for rule, trial in report.rules.items()},
        "example_task": task,
    }


def _print(
    domain: "Domain", report: "DomainReport", problems: list[str], task: dict[str, Any] | None
) -> None:
    rows = [
        (
            t.name,
            "reads" if t.read_only else "writes",
            t.calls,
            ", ".join(sorted(t.errors)),
            t.num_mutants,
            "ok" if not t.defects else t.defects[0].reason,
        )
        for t in report.tools.values()
    ]
    from synth.catalogue.writing.lookups import lacking

    names = ["tool", "kind", "calls", "errors_seen", "parts_left_out", "proof"]
    if rows:
        print_rows(names, rows, json_=False)
    else:
        say(
            f"{domain.name} has no tools of its own; some are made of it by: "
            f"synth tools evolve --domains {domain.name} --count 40 --dataset data/mine"
        )
    for rule, trial in report.rules.items():
        if trial.broken:
            say(f"policy {rule}: a call that would succeed can break it, and code sees it")
    for problem in problems:
        say(f"mend: {problem}")
    if any(d.reason.startswith("dead_") for t in report.tools.values() for d in t.defects):
        say(
            "What does the same without a part of it: give the seed rows for which the part "
            "matters, or leave it out; another --seed draws other calls."
        )
    if task is not None:
        say("\nA task of it (worded by the offline model):")
        print(_task_words(task))  # noqa: T201
    if domain.tools and (hidden := lacking(domain)):
        say(
            f"\nNo read leads from what people know to the id of: {', '.join(hidden)}. Users would "
            "have to say ids; synth domain lookups FILE writes reads for them."
        )
    say(f"\n{domain.name}: {'proved' if not problems else f'{len(problems)} problems'}")


def _task_words(task: dict[str, Any]) -> str:
    calls = [f"    {step['tool']}({json.dumps(step['arguments'])})" for step in task["plan"]]
    criteria = [f"    [{c['kind']}] {c['words']}" for c in task["rubric"]["criteria"]]
    return "\n".join(
        [f"  user: {task['opening']}", "  reference plan:", *calls, "  rubric:", *criteria]
    )


def _example_task(file: Path, domain: "Domain", seed: int) -> dict[str, Any] | None:
    """The first task that the pipeline proves in this domain; None if it proves none."""
    import asyncio
    import tempfile

    from synth.pipeline.config import RunConfig

    with tempfile.TemporaryDirectory(prefix="synth-domain-") as folder:
        source = domain.name if not file.is_file() else str(file)
        config = RunConfig(domains=(source,), servers=(), num_tasks=6, seed=seed)
        dataset = asyncio.run(_tasks_of(config, str(Path(folder) / "check")))
        for row in dataset.rows("tasks"):
            if row["reference_plan"]:
                return {
                    "opening": row["user_brief"]["opening"],
                    "plan": row["reference_plan"],
                    "rubric": row["rubric"],
                }
    return None


async def _tasks_of(config: Any, dataset: str) -> "Dataset":
    """The pipeline up to its tasks, played by the offline model, without Prefect."""
    from flows.runtime.open_run import open_run
    from synth.pipeline.stages import STAGES, TaskStage

    async with open_run(config, dataset, command="synth domain check") as run:
        for kind in STAGES[: STAGES.index(TaskStage) + 1]:
            await run.run_stage(kind(run))
        return run.dataset


def grow(
    file: str,
    /,
    *,
    rows: int = 1000,
    seed: int = 0,
    split: str = "train",
    out: Path | None = None,
    json_: Json = False,
) -> None:
    """Grow a domain's seed to a size, as tasks with `tasks.growth` do, and show what it comes to.

    The file's own rows stay as they are; further ones are like them and keep the domain's rules.

    Parameters
    ----------
    file
        The domain file, or the name of a domain of `synth domain list`.
    rows
        Of all entities together, the file's among them: 10 to 50000.
    seed
        Another number grows other rows.
    split
        Whose values are used: train, heldout_values, heldout_task, heldout_tool, heldout_domain.
        No text or amount that grows for one grows for another.
    out
        Where to write the rows, as a JSON object of lists by entity.
    json_
        Print a JSON list of objects.
    """
    from tool_specs.domains.taxonomy import load_taxonomy
    from tool_specs.growth.grown_seed import GROWN, grown_seed_of
    from tool_specs.growth.summary import EntitySummary, summary_of

    (domain,) = load_taxonomy([file])
    name = grown_seed_of({GROWN: {"rows": rows, "number": seed, "split": split}})
    state = domain.start(name)
    print_rows(
        EntitySummary._fields, summary_of(domain.file, domain.seed_state, state), json_=json_
    )
    if out is not None:
        tables = {name: list(table.rows()) for name, table in state.tables.items()}
        try:
            out.write_text(json.dumps(tables, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None
    grown = sum(1 for table in state.tables.values() for _ in table.rows())
    if grown < rows:
        say(f"{grown} of {rows} rows: no further ones are left that people could tell apart")
    say(f"{domain.name}: {grown} rows, hash {state.hash}")


def join(file: Path, /, *parts: str) -> None:
    """Make one domain of two or three whose people are the same, for tasks that span them.

    The joint domain has all tools, rules and rows of its parts, the latest of their clocks, and the
    people of the first part in all of them. It is a domain file like any other: name it in
    `domains` of a config, and an agent's tools span its parts.

    Parameters
    ----------
    file
        Where to write it, such as clinic_and_broker.yaml; the domain takes its name. Never
        overwrites.
    parts
        Two or three, each a domain by name or file, and the entity that holds its people:
        clinic_desk:patient brokerage_desk:client.
    """
    import yaml

    from tool_specs.domains.domain import Domain
    from tool_specs.domains.joining import JoinedPart, joined
    from tool_specs.domains.taxonomy import load_taxonomy

    _check_new(file)
    read = []
    for part in parts:
        name, colon, person = part.rpartition(":")
        if not colon:
            raise ConfigError(f"{part!r}: write NAME:ENTITY, such as clinic_desk:patient")
        (domain,) = load_taxonomy([name])
        read.append(JoinedPart(domain, person))
    content = joined(file.stem, read)
    Domain.of(content, origin=str(file))
    _write_new(file, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110))
    say(
        f"wrote {file}: {len(content['tools'])} tools, {len(content['policy'])} rules, now "
        f"{content['now']}; prove it with: synth domain check {file}"
    )


def _check_new(file: Path) -> None:
    if file.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"{file}: a domain file ends in .yaml")
    if not file.stem.isidentifier() or file.stem != file.stem.lower():
        raise ConfigError(
            f"{file}: name it by lower-case words with underscores, night_market.yaml"
        )


def lookups(file: Path, /) -> None:
    """Add the reads that a domain lacks, so that users can name its rows and need not say ids.

    For each kind of row that a tool takes by its id, and that no read leads to from the fields by
    which people know it (`natural`), one read is added to the file: by those fields, with a few
    others in its answer. Fields on which a policy rule hangs and that no read shows are among them.

    Parameters
    ----------
    file
        A domain file of your own, which is changed. Prove it again afterwards.
    """
    from records.files import write_atomic
    from synth.catalogue.writing.lookups import lacking, written_lookups
    from tool_specs.domains.domain import load_domain
    from tool_specs.domains.rewriting import with_additions

    domain = load_domain(file)
    tools = written_lookups(domain)
    if tools:
        text = with_additions(file.read_text(), tools=tools, origin=str(file))
        write_atomic(file, text.encode())
        say(f"{file}: added {', '.join(tool.name for tool in tools)}")
        say(f"prove it with: synth domain check {file}")
    if left := lacking(load_domain(file)):
        say(f"still without a look-up: {', '.join(left)}; what people know is no value to ask for")
    elif not tools:
        say(f"{file}: reads lead to every kind of row that a tool takes by id")


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x") as out:
            out.write(text)
    except FileExistsError:
        raise ConfigError(f"{file} exists already; choose another name") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from None


def list_(*, category: str | None = None, json_: Json = False) -> None:
    """List the domains that come with the project: what synthetic tools are made from.

    Parameters
    ----------
    category
        Only domains of this category.
    json_
        Print a JSON list of objects.
    """
    from tool_specs.domains.taxonomy import TAXONOMY, load_taxonomy, taxonomy_files
    from tool_specs.language.domain_file import CATEGORIES

    if category is not None and category not in CATEGORIES:
        raise ConfigError(f"--category {category}: no such category; {', '.join(CATEGORIES)}")
    others = [TAXONOMY / other for other in CATEGORIES if category not in (None, other)]
    files = [path for path in taxonomy_files().values() if path.parent not in others]
    rows = [
        (d.category, d.name, len(d.entities), len(d.tools), d.split, d.title)
        for d in load_taxonomy(files)
        if category in (None, d.category)
    ]
    names = ["category", "domain", "entities", "own_tools", "split", "title"]
    print_rows(names, sorted(rows), json_=json_)
