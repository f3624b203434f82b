"""A conversation that was made elsewhere, in one form for all files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from synth.episode.endings import Reason

ImportFormat = Literal["toucan", "apigen-mt", "tau2", "openai", "sharegpt"]

IMPORT_FORMATS: tuple[ImportFormat, ...] = get_args(ImportFormat)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallByUser:
    """A call that the user made with a tool of its own; the agent did not see it."""

    turn: int
    """Assistant messages before it."""
    call: Mapping[str, Any]
    observation: str | None
    is_error: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConversation:
    """What a row of a file tells."""

    format: ImportFormat
    messages: Sequence[dict[str, Any]]
    """In OpenAI's form, the system prompt first where there is one; ids as far as the file has
    them, and `messages.IS_ERROR` on results of which it says whether they are errors."""
    tools: Sequence[Any] | None
    """As the file lists them; None where it lists none."""
    source: str
    """What stands as the server of its tools."""
    row_id: str | None = None
    """The file's own name for it."""
    task: tuple[str, ...] | None = None
    """What names the task that it is an attempt at; None where the file does not say, so that each
    conversation is of a task of its own."""
    attempt: int = 0
    seed: int | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    """Role -> model, as far as the file says."""
    end: Reason | None = None
    user_calls: Sequence[CallByUser] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    """What else the file says of it, such as somebody's assessments."""
    lacks: Sequence[str] = ()
    """What of it is not in the file, beside what no such file has."""
