"""Columns that exports take over from the dataset, and what they mean."""

import pyarrow as pa

from records.tables.schemas import JSON, STR, STRS
from records.tables.tables import TABLES

_STORED = TABLES["trajectories"].schema
AS_STORED = (
    "task_id",
    "server",
    "variant",
    "attempt",
    "seed",
    "num_messages",
    "num_turns",
    "num_user_turns",
    "num_tool_calls",
    "num_errors",
    "num_recovered",
    "executed_by",
    "injected_outcomes",
    "termination_reason",
    "outcome",
    "objective_reward",
    "models",
    "prompt_versions",
    "run_id",
    "episode_id",
    "session",
    "parent_call_id",
)
"""Columns of the table `trajectories`."""

BOOLS = pa.list_(pa.bool_())

HF_COLUMNS: dict[str, pa.DataType] = {
    "trajectory_id": STR,
    "split": STR,
    "messages": JSON,
    "tools": JSON,
    "train_turns": BOOLS,
    "weight": pa.float64(),
    "domain": STR,
    "category": STR,
    "complexity": STR,
    "score": pa.float64(),
    "tool_licenses": STRS,
    "judge_mark": STR,
    "decided_by": STR,
    "self_judged": pa.bool_(),
    **{name: _STORED.field(name).type for name in AS_STORED},
}
"""Of the form `hf`, in order."""

ABOUT = {
    name: HF_COLUMNS[name]
    for name in (
        *("trajectory_id", "task_id", "split", "domain", "score", "tool_licenses"),
        *("judge_mark", "decided_by", "self_judged", "episode_id", "session", "parent_call_id"),
    )
}
"""What every row of the other tables says of itself."""

MARKS = (
    "split",
    "trajectory_id",
    "judge_mark",
    "decided_by",
    "self_judged",
    "episode_id",
    "parent_call_id",
)
"""Columns of `marks.csv`: a line a row, in the order of the splits' files."""

MEANINGS = {
    "trajectory_id": "Digest of everything that decided the row",
    "split": "train, or what is held out: heldout_values, heldout_task, heldout_tool, "
    "heldout_domain",
    "messages": "Chat messages in OpenAI form; arguments of calls as objects, or as JSON text with "
    "`--arguments text`",
    "tools": "Tools in OpenAI form, as the agent was shown them",
    "train_turns": "One flag a message: whether it carries loss",
    "weight": "Weight of the row in training",
    "domain": "Synthetic domain; null where the tools are an MCP server's",
    "category": "Category of the domain",
    "complexity": "How many steps the task was drawn with",
    "score": "Share of the rubric's weight that was reached, 0 to 1",
    "tool_licenses": "Licences of the tools that are shown",
    "judge_mark": "What the judge's word on criteria without a check is worth: calibrated, "
    "not_calibrated, uncertain (its rate is good enough, its interval is not), below_minimum "
    "(it counted for nothing), unmeasured; null where it was not asked",
    "decided_by": "Whose verdicts the acceptance rests on: code_and_judge, or code, where no "
    "judge's word counted; null where it was not noted",
    "self_judged": "Whether the judge is the model that played the agent; null where it was not "
    "noted",
    "task_id": "Attempts at one task share it",
    "server": "MCP server that executed the calls; null for synthetic tools",
    "variant": "normal, or why the task cannot be done as asked",
    "attempt": "Which attempt at the task, from 0",
    "seed": "Seed of every draw in the episode",
    "num_messages": "Messages",
    "num_turns": "Assistant messages",
    "num_user_turns": "User messages",
    "num_tool_calls": "Calls",
    "num_errors": "Calls that returned an error",
    "num_recovered": "Errors after which the same tool succeeded",
    "executed_by": "How calls were executed: state_machine, mcp, code, llm, cassette, sub_agent, "
    "notes; elsewhere where the row was imported, and what ran them is not known",
    "episode_id": "The trajectory that decides about this one: itself (also null), or its agent's",
    "session": "Which of the episode's conversations with the user it belongs to, from 0",
    "parent_call_id": "The call whose sub-agent speaks here; null for the agent itself",
    "injected_outcomes": "Failures drawn on purpose, in call order",
    "termination_reason": "Why the episode ended",
    "outcome": "What the code-checked criteria said at the end",
    "objective_reward": "Share of the code-checked criteria's weight, 0 to 1",
    "models": "Model of each role",
    "prompt_versions": "Digest of each prompt template",
    "run_id": "Digest of the run's settings",
}
"""Of every column above."""
