"""Episodes of several conversations: what each is about, and their rows of `trajectories`.

One person comes back to one agent. The state is carried over; of what was said the agent keeps what
it wrote into its notes. The row of the first conversation stands for the whole episode: it has the
episode's id, and grading reads the later ones behind it. All of them carry the one outcome.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from records.digest import digest
from records.tables.schemas import Row
from synth.llm.wire.request import Message


def num_sessions(brief: Mapping[str, Any] | None) -> int:
    """Conversations that the words of a task are for."""
    return len((brief or {}).get("sessions") or ()) or 1


def part_of(brief: Mapping[str, Any], session: int) -> dict[str, Any]:
    """The brief of one conversation: its wishes, with the facts that the person knows in it, its
    opening and situation; `earlier` are the wishes of those before, but for what was only to be
    kept: the person has lost it since."""
    if num_sessions(brief) == 1:
        return dict(brief)
    parts = brief["sessions"]
    first = sum(part["wishes"] for part in parts[:session])
    after = first + parts[session]["wishes"]
    earlier: list[str] = []
    for number, part in enumerate(parts[:session]):
        begin = sum(other["wishes"] for other in parts[:number])
        earlier += brief["wishes"][begin : begin + part["wishes"] - part["keeps"]]
    facts = [
        fact | {"goal": fact["goal"] - first}
        for fact in brief["facts"]
        if first <= fact["goal"] < after
    ]
    of_first = ("sessions",) if session == 0 else ("sessions", "opening_goals")
    return {
        **{key: value for key, value in brief.items() if key not in of_first},
        "opening": parts[session]["opening"],
        "situation": parts[session]["situation"],
        "wishes": brief["wishes"][first:after],
        "facts": facts,
        "earlier": earlier,
        "session": session,
    }


def situations_of_return(brief: Mapping[str, Any]) -> list[str]:
    """Why the person comes back, for each later conversation."""
    return [part["situation"] for part in (brief.get("sessions") or ())[1:]]


def is_episode(trajectory: Mapping[str, Any]) -> bool:
    """Whether the row stands for a whole episode: it tells the first conversation with the user."""
    return trajectory.get("parent_call_id") is None and not trajectory.get("session")


def session_id(episode_id: str, session: int) -> str:
    """Id of the row of `trajectories` that tells the conversation, numbered from 0."""
    return digest("session", episode_id, session) if session else episode_id


def conversations_in(messages: Sequence[Message]) -> list[list[Message]]:
    """An episode's messages by conversation: each begins with the system prompt."""
    starts = [at for at, message in enumerate(messages) if message["role"] == "system"]
    if len(starts) < 2:
        return [list(messages)]
    return [list(messages[begin:end]) for begin, end in pairwise([*starts, len(messages)])]


def whole_episode(first: Row, rows: Mapping[str, Row], task: Row) -> Row:
    """The row of the first conversation with the messages of all. `rows`: by id."""
    messages = list(first["messages"])
    for session in range(1, num_sessions(task.get("user_brief"))):
        later = rows.get(session_id(first["trajectory_id"], session))
        messages += later["messages"] if later else []
    return first | {"messages": messages}
