"""What became of the tools that a batch asked for, as rows of `tools` and `proposals`."""

from collections.abc import Sequence
from typing import NamedTuple

from records.tables.schemas import Row
from synth.catalogue.evolution.batch import EvolutionBatch, RequestGroup, prompt_version
from synth.catalogue.evolution.snapshot import KnownTool
from synth.catalogue.proposals.examining import ProposalFinding
from synth.catalogue.proposals.wire import ProposalWire
from synth.engine.job_config import JobConfig
from synth.llm.settings.config import OFFLINE


class ToolOutcome(NamedTuple):
    """Of one tool that was asked for or answered."""

    group: int
    place: int
    """In the answer to the group's request."""
    tool: ProposalWire | None
    """None where the answer had fewer tools than were asked for."""
    first_reason: str | None
    """What was wrong with the first form; None if nothing was."""
    finding: ProposalFinding
    """Of the last form."""

    @property
    def repaired(self) -> bool:
        """Accepted, after it was sent back."""
        return self.first_reason is not None and self.finding.reason is None


def rows_of(
    batch: EvolutionBatch, outcomes: Sequence[ToolOutcome], config: JobConfig
) -> dict[str, list[Row]]:
    """Tables -> rows: every outcome is a proposal, an accepted one a tool as well."""
    ordered = sorted(outcomes, key=lambda outcome: (outcome.group, outcome.place))
    proposals = [_proposal(batch, n, outcome, config) for n, outcome in enumerate(ordered)]
    tools = [_tool(batch, outcome, config) for outcome in ordered if outcome.finding.row]
    return {"proposals": proposals, "tools": tools}


def _tool(batch: EvolutionBatch, outcome: ToolOutcome, config: JobConfig) -> Row:
    row = outcome.finding.row
    assert row is not None, "only accepted tools become rows"
    group = batch.groups[outcome.group]
    parents = _parents(outcome, group)
    generator = config.roles["generator"]
    return row | {
        "evolve_op": group.operator,
        "generation": max((p.row["generation"] + 1 for p in parents), default=0),
        "parent_id": parents[0].tool_id if parents else None,
        "license": row["license"] if generator.base_url == OFFLINE else generator.license,
        "proof": row["proof"] | {"repaired": outcome.repaired},
    }


def _proposal(batch: EvolutionBatch, number: int, outcome: ToolOutcome, config: JobConfig) -> Row:
    group, finding, tool = batch.groups[outcome.group], outcome.finding, outcome.tool
    return {
        "item_id": batch.item_id,
        "number": number,
        "operator": group.operator,
        "batch": batch.number,
        "domain_id": batch.domain_id,
        "category": batch.domain.category,
        "model": config.roles["generator"].model_of(batch.item_id, "generator"),
        "prompt_version": prompt_version(group.operator),
        "name": tool and tool["name"],
        "parents": [parent.tool_id for parent in _parents(outcome, group)],
        "first_reason": outcome.first_reason,
        "drop_reason": finding.reason,
        "problems": list(finding.problems),
        "repaired": outcome.repaired,
        "tool_id": finding.row and finding.row["tool_id"],
        "semantics_key": finding.semantics_key,
        "skeleton": finding.skeleton,
        "split": finding.row["split"] if finding.row else batch.domain.split,
    }


def _parents(outcome: ToolOutcome, group: RequestGroup) -> tuple[KnownTool, ...]:
    """The parent that the tool names, and the other of its pair, if it is of a pair."""
    name = outcome.tool and outcome.tool["parent"]
    for some in group.parents:
        if name in [parent.name for parent in some]:
            return tuple(sorted(some, key=lambda parent: parent.name != name))
    return ()
