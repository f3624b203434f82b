"""What an evolution costs: from what its own rounds took, else from a run that was measured.

A later tool costs more than an earlier one, since each request shows what exists and novelty falls.
So there are two rates: that of all rounds, and that of the last one.
"""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.evolution.batch import ON_TOOLS
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.rounds import read_rounds, rounds_path
from synth.llm.settings.config import TokenUsage


class ToolTokens(NamedTuple):
    """Tokens for each kept tool, repairs and tools that are dropped included."""

    prompt: float
    completion: float


REQUEST_TOKENS = 12_000
"""Of the prompt of a request, in a run with a language model: docs/results/evolution_202611.md. The
judge of descriptions was not asked in it, so that only rounds of a run tell what it takes."""
TOOL_TOKENS = 342
"""Written for each kept tool there, repairs included."""
REPAIRS = 0.14
"""Requests to mend tools, for each other request there."""

_CALL = ["item_id", "role", "prompt_tokens", "completion_tokens"]


class EvolutionCost(NamedTuple):
    """What one role takes for the tools that are missing."""

    role: str
    tokens: ToolTokens
    """For each tool."""
    prompt_tokens: float
    completion_tokens: float
    usd: float


class EvolutionEstimate(NamedTuple):
    kept: int
    """Tools of the run's rounds so far."""
    missing: int
    rounds: int
    """That the rates are from; 0: they are from another run."""
    overall: list[EvolutionCost]
    """At the rate of all rounds."""
    at_last: list[EvolutionCost]
    """At the rate of the last round."""
    unknown: list[str]
    """Roles that are asked and of which nothing is known yet."""


def estimated(config: EvolveConfig, path: Path) -> EvolutionEstimate:
    """Of the run of this config in a dataset, or in none yet. Asks nobody, and writes nothing."""
    rounds: list[list[str]] = []
    tools: list[str] = []
    calls: list[Row] = []
    if path.exists():
        dataset = Dataset.open(path)
        rounds = read_rounds(rounds_path(dataset, config.run_id))
        proposals = dataset.rows("proposals", ["item_id", "tool_id"])
        tools = [row["item_id"] for row in proposals if row["tool_id"] is not None]
        calls = dataset.rows("llm_calls", _CALL)
    fruitful = set(tools)
    made = [set(items) for items in rounds if fruitful & set(items)]
    every = {item for items in made for item in items}
    kept = sum(item in every for item in tools)
    overall = _rates(every, tools, calls) if made else _measured(config)
    last = _rates(made[-1], tools, calls) if made else overall
    missing = max(0, config.count - kept)
    return EvolutionEstimate(
        kept,
        missing,
        len(made),
        _costs(config, overall, missing),
        _costs(config, last, missing),
        sorted(config.roles_asked().keys() - overall.keys()),
    )


def estimate_lines(made: EvolutionEstimate) -> list[str]:
    """For a person."""
    source = (
        f"by {made.rounds} rounds of this run, which kept {made.kept} tools"
        if made.rounds
        else "by a measured run, since this one has no round yet"
    )
    lines = [f"{made.missing} tools are missing; what they take, {source}:"]
    for words, costs in (("as all rounds", made.overall), ("as the last", made.at_last)):
        for cost in costs:
            lines.append(
                f"{words:<14} {cost.role:<10} {cost.tokens.prompt:,.0f} tokens in and "
                f"{cost.tokens.completion:,.0f} out a tool; in all {cost.prompt_tokens:,.0f} in, "
                f"{cost.completion_tokens:,.0f} out, {cost.usd:,.2f} USD"
            )
    if made.unknown:
        lines.append(f"not known yet, and not counted: {', '.join(made.unknown)}")
    return lines


def told_plainly(made: EvolutionEstimate) -> dict[str, Any]:
    """As JSON: numbers by name."""
    plain = made._asdict()
    for name in ("overall", "at_last"):
        plain[name] = [cost._asdict() | {"tokens": cost.tokens._asdict()} for cost in plain[name]]
    return plain


def _measured(config: EvolveConfig) -> dict[str, ToolTokens]:
    """Of a later batch, which asks for derived tools and for those of each operator on tools."""
    size = config.batch_size
    requests = 1 + min(len(ON_TOOLS), size - round(size * config.derived_share))
    prompt = REQUEST_TOKENS * requests * (1 + REPAIRS) / size
    return {"generator": ToolTokens(prompt, TOOL_TOKENS)}


def _rates(items: Set[str], tools: Sequence[str], calls: Sequence[Row]) -> dict[str, ToolTokens]:
    """By role, over the tools that these items made."""
    number = sum(item in items for item in tools)
    found: dict[str, ToolTokens] = {}
    for call in calls:
        if call["item_id"] in items:
            known = found.get(call["role"], ToolTokens(0.0, 0.0))
            found[call["role"]] = ToolTokens(
                known.prompt + call["prompt_tokens"] / number,
                known.completion + call["completion_tokens"] / number,
            )
    return found


def _costs(
    config: EvolveConfig, rates: Mapping[str, ToolTokens], missing: int
) -> list[EvolutionCost]:
    found = []
    for role, own in config.roles_asked().items():
        if role in rates:
            prompt, completion = (tokens * missing for tokens in rates[role])
            usd = own.cost_usd(TokenUsage(round(prompt), round(completion)))
            found.append(EvolutionCost(role, rates[role], prompt, completion, usd))
    return found
