"""What one vendor's server does in its own way: a record of quirks, and nothing that acts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

KEY = "double-key"
"""The API key that every double with keys takes."""

FLAGGED = "[[flagged]]"
"""A request with this text in a message is what moderation refuses."""

ErrorForm = Literal["openai", "flat", "llama_cpp", "mistral", "gemini", "openrouter"]
"""openai: an object `error` with message, type, param, code. flat: these at the top, as SGLang
sends them. llama_cpp: an object `error` with a number as code. mistral: the top, `object` first.
gemini: a list of one object with a number and a status. openrouter: a number and metadata."""

ModelsForm = Literal["openai", "max_model_len", "n_ctx", "prefixed", "none"]
"""How `/models` lists a model: plainly, with its context length (vLLM, SGLang; llama.cpp), under
the name `models/NAME`, or not at all."""

ReasoningPlace = Literal["none", "hidden", "reasoning_content", "reasoning", "think", "chunks"]
"""hidden: it is only counted. think: `<think>` in the text. chunks: the content is a list of parts,
the first of the type `thinking`."""

UsageForm = Literal["plain", "cached", "openai", "deepseek", "sglang", "outside", "openrouter"]
"""plain: three counts. cached: tokens of the cache as a detail. openai: those and the reasoning's.
deepseek: the cache's hits and misses at the top, too. sglang: reasoning tokens at the top. outside:
reasoning is in the total and not in the completion. openrouter: openai's with a price."""

RateForm = Literal["none", "openai", "azure", "mistral", "anthropic"]
"""openai: times as `6m0s` and `120ms`. azure: whole seconds, `retry-after-ms`. mistral: names that
end in `-minute`, no times. anthropic: openai's and its own names, times as dates."""

Obeyed = Literal["yes", "ignored", "refused"]
Dressing = Literal["bare", "fence", "FENCE", "prose", "remark"]


@dataclass(frozen=True, kw_only=True)
class Words:
    """How a server words one refusal; `{field}`, `{value}`, `{limit}`, `{tokens}`, `{model}`,
    `{role}` and `{schema}` stand for what was refused."""

    message: str
    status: int = 400
    type: str | None = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of the error object."""


@dataclass(frozen=True, kw_only=True)
class StreamForm:
    comments: str | None = None
    """A comment line before the first event and between others."""
    usage: Literal["asked", "always", "never"] = "asked"
    """When the stream tells its usage: if `stream_options` asks for it, always, or never."""
    usage_with_choice: bool = False
    """The usage stands in the chunk with the finish reason, not in one with empty choices."""
    whole_calls: bool = False
    """A call comes in one chunk, not name first and arguments in pieces."""
    call_index: bool = True
    """Whether a call's chunks say which call they belong to."""
    calls_finish: str = "tool_calls"
    """The finish reason of an answer with calls."""
    empty_choices_first: bool = False
    """The first chunk has no choice (Azure: what the filters found)."""
    done: bool = True
    """Whether `[DONE]` ends it."""


@dataclass(frozen=True, kw_only=True)
class Double:
    name: str
    base_path: str = "/v1"
    api_key: str | None = KEY
    key_header: Literal["authorization", "api-key"] = "authorization"
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters that the URL must have, with the values that are known."""
    models: ModelsForm = "openai"

    errors: ErrorForm = "openai"
    words: Mapping[str, Words] = field(default_factory=dict[str, Words])
    """Kind of refusal -> its words; `errors.USUAL_WORDS` has those of the kinds left out."""

    known_fields: frozenset[str] | None = None
    """The request's fields; any other is refused. None: what is unknown is ignored."""
    refused_fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """Field -> the kind of refusal that it meets."""
    ignored_fields: frozenset[str] = frozenset()
    """Fields that this project sends to others and that this server does not look at."""
    fixed_values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Field -> the only value that it may have."""
    message_fields: frozenset[str] | None = None
    """The fields of messages; any other is refused. None: ignored."""

    json_schema: Obeyed = "yes"
    json_object: Obeyed = "yes"
    strict_schemas: bool = False
    """A strict schema must close its objects and require all their members."""
    needs_word_json: bool = False
    """`json_object` is refused if no message says "json"."""
    forced_choice: bool = True
    """Whether `tool_choice` may force a call. The offline model calls the one tool that it is given
    with a `tool_choice`, whatever that is."""

    alternation: bool = False
    """Turns of user and assistant must alternate, as many chat templates want."""
    system_role: bool = True
    user_after_tool: bool = True
    """Whether a user's message may follow a tool's."""
    empty_messages: bool = True
    """Whether a message without calls may be empty."""
    call_id: str | None = None
    """Regular expression of the ids of calls."""
    reasoning_back: bool = False
    """An assistant's message with calls must bring its reasoning back."""

    max_output_tokens: int | None = None
    context_tokens: int | None = None
    cuts_prompts: bool = False
    """What does not fit into the context is left out in silence."""

    dressings: tuple[Dressing, ...] = ("bare",)
    """What stands around JSON that nothing enforces; the request's digest picks one."""
    reasoning: ReasoningPlace = "none"
    reasoning_tokens: int = 24
    """Where the model reasons at all."""
    empty_content: Literal["null", "empty", "absent"] = "null"
    """How a message without words says so."""
    object_arguments: bool = False
    """A call's arguments are an object, not its text."""
    usage: UsageForm = "plain"
    rate_headers: RateForm = "none"
    stream: StreamForm = field(default_factory=StreamForm)
    blank_lines: bool = False
    """Empty lines before an unstreamed answer, which keep a connection alive."""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of every answer."""
