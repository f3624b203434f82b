"""What an episode is at one moment, what a step of it shows, and what brings it back."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.episode.delegation import SubConversation
from synth.episode.endings import Reason
from synth.episode.tools.calls import Caller, CallerSnapshot
from synth.episode.users.faults import UserFault
from synth.episode.users.user import User
from synth.llm.wire.request import Message


class EnvironmentStep(NamedTuple):
    observation: list[Message]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    """`turn`, `tokens`, `calls` (records of this step), `session`; at the end `termination_reason`,
    `verdicts` and, where something outside failed, `error`. With a new `session` the observation is
    the beginning of another conversation, to whose agent nothing earlier is shown."""


@dataclass(frozen=True, slots=True)
class EpisodeSnapshot:
    """Everything an episode is at one moment, its place in the journal included. Live servers are
    brought back by replay."""

    task: Row
    seed: int
    messages: tuple[Message, ...]
    turn: int
    tokens: int
    format_errors: int
    caller: CallerSnapshot
    user_faults: tuple[UserFault, ...] = ()
    conversations: tuple[SubConversation, ...] = ()
    session: int = 0
    begins_at: int = 0
    turns_before: int = 0


@dataclass
class EpisodeState:
    """One episode as it goes on. For reading; only the environment writes it."""

    task: Row
    seed: int
    caller: Caller
    user: User | None
    """Of the conversation that is going on."""
    hash_initial: str | None
    """None where the first call starts the server that holds the state."""
    hash_final: str | None = None
    """Set by `close`."""
    messages: list[Message] = field(default_factory=list)
    """Of all conversations, each of which begins with the system prompt."""
    session: int = 0
    """The number of the conversation that is going on."""
    begins_at: int = 0
    """Where it begins among the messages."""
    turns_before: int = 0
    """Assistant messages of the conversations before."""
    turn: int = 0
    """Assistant messages so far."""
    tokens: int = 0
    """Size of all messages but the system prompt, results included."""
    format_errors: int = 0
    reason: Reason | None = None
    error: str | None = None
    hopeless: bool = False
    """What failed outside would fail again in another attempt."""
    drifts: list[str] = field(default_factory=list)
    """Steps whose results came out otherwise than journalled."""
    user_faults: list[UserFault] = field(default_factory=list)
    """What was wrong with turns of the simulated user, the mended ones too."""
    conversations: list[SubConversation] = field(default_factory=list)
    """With sub-agents, in the order in which they began."""

    @property
    def conversation(self) -> list[Message]:
        """The messages of the conversation that is going on: all that the agent may be shown."""
        return self.messages[self.begins_at :]
