"""How many system prompts are one text with other things filled in.

    python -m benchmarks.agent_prompts FOLDER --roles FILE [--agents 200]
    python -m benchmarks.agent_prompts --dataset DATASET

Plans agents over the taxonomy and has them written by the role `generator` of FILE, or reads those
of a dataset, and prints how they share skeletons (`synth/tasks/agents/skeletons.py`), lengths and
beginnings. FOLDER keeps the answers and `agents.jsonl`.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.asking import asking, roles_of, write_lines
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.llm.settings.config import RoleConfig
from synth.tasks.agents.agents import AgentConfig, make_agent, plan_agents, sources_of
from synth.tasks.agents.skeletons import count_skeletons
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.domains.taxonomy import load_taxonomy, taxonomy_files

SEED = 11


def catalogue(names: Sequence[str] | None) -> tuple[list[Row], list[Row]]:
    """Rows of domains and of their tools; without names of every domain of the taxonomy."""
    domains = load_taxonomy(names or list(taxonomy_files()))
    return [*map(domain_row, domains)], [t for domain in domains for t in tool_rows(domain)]


async def made(
    folder: Path, generator: RoleConfig, domains: list[Row], tools: list[Row], count: int
) -> list[Row]:
    plans = plan_agents(
        AgentConfig(), sources_of(domains, tools, {}), seed=SEED, count=count, generator=generator
    )
    async with asking({"generator": generator}, folder, "benchmark") as llm:
        work = (make_agent(plan, llm, generator=generator) for plan in plans)
        rows = list(await asyncio.gather(*work))
    write_lines(folder / "agents.jsonl", rows)
    return rows


def report(agents: Sequence[Row], tools: Mapping[str, Row], domains: Mapping[str, Row]) -> str:
    count = count_skeletons(agents, tools, domains)
    words = sorted(len(row["system_prompt"].split()) for row in agents)
    begins = Counter(" ".join(row["system_prompt"].split()[:2]) for row in agents)
    [(most, times)] = begins.most_common(1)
    return "\n".join(
        [
            f"{count.prompts} prompts, {count.skeletons} skeletons",
            f"the largest skeleton has {count.largest} ({count.largest_share:.1%})",
            f"{count.sharing} have two sentences in common with an earlier one "
            f"({count.sharing / count.prompts:.1%})",
            f"words: {words[0]} to {words[-1]}, median {words[len(words) // 2]}",
            f"{times} begin with {most!r} ({times / len(agents):.1%})",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--roles", type=Path, help="TOML file with the table `generator`")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--domains", nargs="+", help="names of domains; else the whole taxonomy")
    parser.add_argument("--dataset", type=Path, help="count its agents and ask nobody")
    args = parser.parse_args()
    if args.dataset:
        dataset = Dataset.open(args.dataset)
        agents = list(dataset.rows("agents"))
        domains, tools = list(dataset.rows("domains")), list(dataset.rows("tools"))
    elif args.folder and args.roles:
        domains, tools = catalogue(args.domains)
        generator = roles_of(args.roles)["generator"]
        agents = asyncio.run(made(args.folder, generator, domains, tools, args.agents))
    else:
        parser.error("either FOLDER with --roles, or --dataset")
    if not agents:
        parser.error("there are no agents")
    by_tool = {row["tool_id"]: row for row in tools}
    print(report(agents, by_tool, {row["domain_id"]: row for row in domains}))


if __name__ == "__main__":
    main()
