"""What an endpoint and a model on it can do: one record for each pair of them.

An entry that is None is not known yet: the probe finds it out, and until then `USUAL` holds. What
a user sets is never found out. A profile decides how a request travels and nothing about what it
asks, so it is no part of a run's identity; the run keeps it with the dataset.
"""

from typing import Literal

from pydantic import Field

from records.config import Config

Structured = Literal["json_schema_strict", "json_schema", "json_object", "tool", "prompt"]
"""How the form of an answer is asked for, the surest first: a JSON Schema that the server enforces,
one that it is given, any JSON object, the arguments of a forced call, and words alone."""

STRUCTURED: tuple[Structured, ...] = (
    "json_schema_strict",
    "json_schema",
    "json_object",
    "tool",
    "prompt",
)


class Profile(Config):
    """Every entry may be set under `roles.NAME.profile`; what is left out is found by the probe."""

    structured: Structured | None = None
    """How the form of an answer is asked for. Whatever it is, the answer is validated here."""
    seed: bool | None = None
    """Whether requests carry a seed."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The name under which the server expects the most tokens of an answer."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of an answer that the server lets one ask for; requests ask for no more."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Tokens of prompt and answer together that the model can hold."""
    sampling: bool | None = None
    """Whether the server takes `temperature` and `top_p`; models that always reason may not."""
    tool_choice: Literal["named", "required", "auto"] | None = None
    """How a call can be forced: by the tool's name, by any name, or not at all."""
    parallel_tool_calls: bool | None = None
    """Sent as `parallel_tool_calls` with tools where it is set; None leaves it to the server."""
    stream: bool | None = None
    """Whether answers are streamed, so that no proxy cuts a silent connection."""
    stream_usage: bool | None = None
    """Whether a stream is asked for its usage at its end (`stream_options`)."""
    reasoning_field: Literal["reasoning_content", "reasoning", "think", "none"] | None = None
    """Where the model's reasoning stands in an answer, and so where earlier reasoning is sent back
    if `send_reasoning` is set. Answers are read from all of these places."""
    reasoning_back: bool | None = None
    """Whether the server wants the reasoning of earlier turns with calls back, whatever
    `send_reasoning` says."""
    call_ids: Literal["any", "nine"] | None = None
    """Which ids of calls the server takes; `nine` are nine letters and digits."""
    call_arguments: Literal["any", "json"] | None = None
    """What earlier calls may hold: `json` sends `{}` for arguments that are no JSON object, which
    some chat templates fail on; the dataset keeps what the model wrote."""
    effort_field: (
        Literal["reasoning_effort", "reasoning.effort", "enable_thinking", "thinking", "none"]
        | None
    ) = None
    """How a role's `reasoning_effort` is told to the server: `enable_thinking` is an argument of
    the chat template (`chat_template_kwargs`), `thinking` an object with a type."""
    alternation: bool | None = None
    """Whether the chat template wants turns of user and assistant to alternate: neighbours of one
    role are then sent as one message."""
    system_role: Literal["system", "developer", "user"] | None = None
    """Under which role the system prompt is sent; `user` puts it before the first
    message, into it where that is a user's."""
    cached_usage: str | None = None
    """Dotted path in `usage` of the prompt tokens that came from the server's cache. None looks in
    the places that are known."""
    rate_headers: bool | None = None
    """Whether the server's headers say how many requests and tokens a minute has left, and are
    heeded."""

    def over(self, other: "Profile") -> "Profile":
        """This one's entries, and the other's where this one has none."""
        known = {
            name: value
            for name in type(self).model_fields
            if (value := getattr(self, name)) is not None
        }
        return other.model_copy(update=known)


USUAL = Profile(
    structured="json_schema",
    seed=True,
    max_tokens_field="max_tokens",
    sampling=True,
    tool_choice="named",
    stream=False,
    stream_usage=True,
    reasoning_field="reasoning_content",
    reasoning_back=False,
    call_ids="any",
    call_arguments="any",
    effort_field="reasoning_effort",
    alternation=False,
    system_role="system",
    rate_headers=True,
)
"""What holds for an entry that nobody has set and no probe has found."""
