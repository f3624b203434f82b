"""Which tasks of a dataset can be played here, and which of them are wanted."""

from collections.abc import Collection, Sequence
from typing import Literal

from records.tables.schemas import Row
from synth.episode.tools.code_environments import is_code
from synth.episode.tools.executors import Catalogue
from synth.llm.wire.request import Message
from synth.rubrics.reward import evidence_of, left_open, objective_reward, rubric_of

GREETING: Sequence[Message] = (
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "Hello."},
)
"""An episode in which nothing is done."""

TaskComplexity = Literal["simple", "moderate", "complex"]
"""Of a task: one user goal, two, three or four."""


def new_tool_of(catalogue: Catalogue, task: Row) -> str | None:
    """The first tool of the plan that is held out, of a task that is so by its tools."""
    if task["split"] != "heldout_tool":
        return None
    ids = catalogue.agents[task["agent_id"]]["tool_ids"]
    mine = {catalogue.tools[i]["name"]: catalogue.tools[i] for i in ids}
    taken = (mine.get(call["tool"]) for call in task["reference_plan"])
    return next((t["tool_id"] for t in taken if t and t["split"] == "heldout_tool"), None)


def why_unfit(
    catalogue: Catalogue,
    task: Row,
    *,
    complexities: Collection[TaskComplexity] = (),
    max_calls: int | None = None,
) -> str | None:
    """Why the task is not played; None where it is. No `complexities` are all of them."""
    tools = catalogue.agents[task["agent_id"]]["tool_ids"]
    if any(tool not in catalogue.tools for tool in (*tools, *(task.get("user_tool_ids") or ()))):
        return "tools_not_here"
    if task["split"] == "heldout_tool" and new_tool_of(catalogue, task) is None:
        return "new_tool_not_needed"
    if complexities and task["complexity"] not in complexities:
        return "other_complexity"
    if max_calls is not None and len(task["reference_plan"]) > max_calls:
        return "more_calls"
    return None


def is_earned_by_nothing(catalogue: Catalogue, task: Row) -> bool:
    """Whether an agent that greets and does nothing earns something by code, as of a task that
    cannot be solved: whether it said why is for a judge to say."""
    if is_code(task):  # its tests fail on what it begins with, which proved it
        return False
    rubric = rubric_of(task)
    verdicts = catalogue.kinds.check_all(rubric, evidence_of(GREETING, []))
    return not left_open(rubric, verdicts) and objective_reward(rubric, verdicts) > 0
