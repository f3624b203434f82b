"""An imported conversation as rows: a trajectory with its calls, a task, an agent, its tools.

What a file does not hold is null, or marked: the task's `variant` is `imported`, calls are executed
`elsewhere`, and the row of `imports` lists what it lacks. The rubric asks for nothing but what any
conversation can be asked for by code: its order, and that its calls fit the tools.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from records.digest import canonical_json, digest
from records.tables.columns import given_columns
from records.tables.episode_tables import ELSEWHERE
from records.tables.schemas import Row
from records.tables.splits import own_split
from records.tables.tables import TABLES
from records.tables.task_tables import IMPORTED
from synth.curation.candidates import first_words
from synth.episode.tools.calls import NotJson, openai_tool, parsed_arguments, schema_problem
from synth.importing.conversation import CallByUser, ForeignConversation
from synth.importing.messages import IS_ERROR, Paired, checked, json_text, paired
from synth.importing.offered_tools import OfferedTool
from synth.rubrics.built_in import FIT, FORMAT, TURNS
from synth.rubrics.criteria import FitCheck, FormatCheck, Rubric, TurnsCheck
from synth.rubrics.turns import INVALID_ARGUMENTS, UNKNOWN_TOOL
from tool_specs.importing.licences import UNKNOWN

NO_RESULT = "no_result"
"""Error code of a call that the file answers nowhere."""

LACKS_ALWAYS = ("initial_state", "state_changes", "rubric", "reference_plan", "user_brief")
"""What no file of conversations holds."""

_ERROR = re.compile(
    r"\s*(?:error\b|traceback \(most recent call last\)|exception\b)", re.IGNORECASE
)

_ERROR_KEYS = ("error", "isError", "is_error")


class ImportedRows(NamedTuple):
    trajectory_id: str
    tables: dict[str, list[Row]]
    """`tools`, `agents` and `tasks` may be those of other conversations, too."""
    chars: int
    """Of messages and tools, about as they are stored."""


class _Call(NamedTuple):
    """A call of the agent or the user, as its row tells it."""

    turn: int
    call: Mapping[str, Any]
    observation: str | None
    is_error: bool | None
    actor: str = "agent"


def rows_of(
    conversation: ForeignConversation,
    tools: Sequence[OfferedTool],
    *,
    license: str,
    model: str | None,
    place: Mapping[str, str],
) -> ImportedRows:
    """`model`: who played the agent, where the user says so and the file does not. `place`: the
    columns `path` and `place` of `imports`. ItemError for a conversation that no table can hold."""
    pairs = paired(_renamed(conversation.messages, tools))
    messages = [{k: v for k, v in m.items() if k != IS_ERROR} for m in pairs.messages]
    checked(messages)
    named = conversation.task
    beside = [conversation.row_id, named, dict(conversation.models), dict(conversation.given)]
    by_user = [[one.call, one.observation] for one in conversation.user_calls]
    json_text([*beside, *by_user], "what is told beside the conversation")
    offered = [openai_tool(tool.row) for tool in tools]
    text = canonical_json([list(map(_with_values, messages)), offered])
    trajectory_id = digest("imported", text)
    tool_ids = [tool.row["tool_id"] for tool in tools]
    system = next((m["content"] for m in messages if m["role"] == "system"), None)
    agent_id = digest("imported agent", system, tool_ids)
    # attempts at a task of the file are of one task here where they were shown the same
    attempted = [*named, agent_id] if named else trajectory_id
    task_id = digest("imported task", conversation.format, attempted)
    # conversations that begin alike lie in one split, as those of one task do
    split = own_split("task", digest("imported", named or first_words(messages)))
    calls = _calls(conversation, pairs)
    models = {"agent": model} if model else {}
    shared = {"task_id": task_id, "agent_id": agent_id, "variant": IMPORTED, "split": split}
    rows = [_call_row(one, index, tools, bool(tools)) for index, one in enumerate(calls)]
    own = {"trajectory_id": trajectory_id, "split": split}
    trajectory = _row(
        "trajectories",
        **shared,
        **_counts(messages, rows),
        trajectory_id=trajectory_id,
        episode_id=trajectory_id,
        attempt=conversation.attempt,
        seed=conversation.seed,
        messages=messages,
        tools=offered,
        executed_by=[ELSEWHERE] if rows else [],
        injected_outcomes=[],
        termination_reason=conversation.end,
        models=models | dict(conversation.models),
        prompt_versions={},
        token_counts={},
    )
    agent = {"agent_id": agent_id, "tool_ids": tool_ids, "system_prompt": system, "split": "train"}
    tables = {
        "tools": [tool.row for tool in tools],
        "agents": [_row("agents", **agent)],
        "tasks": [_row("tasks", **shared, rubric=_rubric(has_tools=bool(tools)))],
        "trajectories": [trajectory],
        "tool_calls": [row | own for row in rows],
        "imports": [
            _row(
                "imports",
                **place,
                trajectory_id=trajectory_id,
                format=conversation.format,
                row_id=conversation.row_id,
                license=license,
                lacks=_lacks(conversation, trajectory, pairs, license, has_tools=bool(tools)),
                given=dict(conversation.given),
            )
        ],
    }
    return ImportedRows(trajectory_id, tables, len(text))


def _with_values(message: dict[str, Any]) -> dict[str, Any]:
    """Arguments as what they say: a conversation is the same however they are spaced, and whether a
    file has them as text or as objects."""
    if not (calls := message.get("tool_calls")):
        return message
    texts = [call["function"]["arguments"] for call in calls]
    values = [text if isinstance(v := parsed_arguments(text), NotJson) else v for text in texts]
    names = [call["function"]["name"] for call in calls]
    ids = [call["id"] for call in calls]
    return {**message, "tool_calls": list(zip(ids, names, values, strict=True))}


def _row(table: str, **values: Any) -> Row:
    """What is not known is null, or the table's default."""
    spec = TABLES[table]
    return dict.fromkeys(given_columns(spec)) | spec.defaults | values


@cache
def _rubric(*, has_tools: bool) -> dict[str, Any]:
    """Without a list of tools nobody can tell whether a call fits one."""
    asked = [
        TURNS.criterion(
            "turns",
            "Every call is answered once, before anything else is said, and the assistant has the "
            "last word.",
            TurnsCheck(),
            weight=1.0,
            mandatory=True,
        ),
        FORMAT.criterion(
            "form",
            "The assistant ends with words to the user, and writes plain words throughout.",
            FormatCheck(),
            weight=1.0,
            mandatory=True,
        ),
    ]
    if has_tools:
        asked.append(
            FIT.criterion(
                "fit",
                "Every call that was carried out names a tool that was offered, with arguments "
                "that fit its schema.",
                FitCheck(),
                weight=1.0,
                mandatory=True,
            )
        )
    return Rubric(criteria=tuple(asked)).model_dump(mode="json")


def _renamed(
    messages: Sequence[dict[str, Any]], tools: Sequence[OfferedTool]
) -> list[dict[str, Any]]:
    """With names of tools and parameters as their rows have them."""
    by_name = {tool.own_name: tool for tool in tools}
    changed = any(t.renamed or t.own_name != t.row["name"] for t in tools)
    return [_with_names(m, by_name) for m in messages] if changed else list(messages)


def _with_names(message: dict[str, Any], tools: Mapping[str, OfferedTool]) -> dict[str, Any]:
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [_call_with_names(call, tools) for call in calls]}
    if tool := tools.get(message.get("name", "")):
        return {**message, "name": tool.row["name"]}
    return message


def _call_with_names(call: dict[str, Any], tools: Mapping[str, OfferedTool]) -> dict[str, Any]:
    function = call["function"]
    tool = tools.get(function["name"])
    if tool is None:
        return call
    arguments = function["arguments"]
    if tool.renamed and not isinstance(given := parsed_arguments(arguments), NotJson):
        arguments = json.dumps(tool.arguments(given), ensure_ascii=False)
    return {**call, "function": {"name": tool.row["name"], "arguments": arguments}}


def _calls(conversation: ForeignConversation, pairs: Paired) -> list[_Call]:
    """In the order in which they were made."""
    found: list[_Call] = []
    own = list(conversation.user_calls)
    turn = 0
    for message in pairs.messages:
        if message["role"] == "assistant":
            found += map(_of_user, (one for one in own if one.turn == turn))
            turn += 1
        for call in message.get("tool_calls", ()):
            place = pairs.results.get(call["id"])
            result = {} if place is None else pairs.messages[place]
            found.append(_Call(turn, call, result.get("content"), result.get(IS_ERROR)))
    return [*found, *map(_of_user, (one for one in own if one.turn >= turn))]


def _of_user(one: CallByUser) -> _Call:
    return _Call(one.turn, one.call, one.observation, one.is_error, actor="user")


def _call_row(one: _Call, index: int, tools: Sequence[OfferedTool], has_tools: bool) -> Row:
    name, text = one.call["function"]["name"], one.call["function"]["arguments"]
    arguments = parsed_arguments(text)
    by_agent = one.actor == "agent"
    tool = next((t.row for t in tools if by_agent and t.row["name"] == name), None)
    code = None
    if isinstance(arguments, NotJson):
        code = INVALID_ARGUMENTS
    elif by_agent and has_tools and tool is None:
        code = UNKNOWN_TOOL
    elif tool is not None and schema_problem(tool["input_schema"], arguments):
        code = INVALID_ARGUMENTS
    is_error = looks_like_error(one.observation) if one.is_error is None else one.is_error
    if one.observation is None:
        is_error, code = True, NO_RESULT
    return _row(
        "tool_calls",
        turn=one.turn,
        call_index=index,
        tool_call_id=one.call.get("id"),
        tool_id=tool["tool_id"] if tool else None,
        name=name,
        executed_by=ELSEWHERE,
        arguments=text if isinstance(arguments, NotJson) else arguments,
        observation=one.observation or "",
        is_error=is_error,
        error_code=code,
        policy_violations=[],
    ) | {"actor": one.actor}


def looks_like_error(observation: str | None) -> bool:
    """Whether a result tells of an error, where no flag says so: a text that begins with the word,
    or an object whose error is not empty."""
    text = (observation or "").lstrip()
    if not text.startswith("{"):
        return _ERROR.match(text) is not None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and any(found.get(key) for key in _ERROR_KEYS)


def _counts(messages: Sequence[Mapping[str, Any]], calls: Sequence[Row]) -> dict[str, int]:
    roles = [message["role"] for message in messages]
    made = [call for call in calls if call["actor"] == "agent"]
    return {
        "num_messages": len(messages),
        "num_turns": roles.count("assistant"),
        "num_user_turns": roles.count("user"),
        "num_tool_calls": len(made),
        "num_errors": sum(call["is_error"] for call in made),
    }


def _lacks(
    conversation: ForeignConversation,
    trajectory: Row,
    pairs: Paired,
    license: str,
    *,
    has_tools: bool,
) -> list[str]:
    has_system = any(message["role"] == "system" for message in pairs.messages)
    lacking = {
        "tools": not has_tools,
        "system_prompt": not has_system,
        "model": "agent" not in trajectory["models"],
        "license": license == UNKNOWN,
        "termination_reason": trajectory["termination_reason"] is None,
        "call_ids": not pairs.has_own_ids,
        "error_flags": any(IS_ERROR not in pairs.messages[at] for at in pairs.results.values()),
    }
    found = (name for name, is_so in lacking.items() if is_so)
    return sorted({*LACKS_ALWAYS, *conversation.lacks, *found})
