"""What a refusal says: a field that the server does not take, a text that it does not want, or a
request that is too long.

Servers share no codes for it, so that what they say is read: `param` and `code` where they give
them, and the words of the message. A refusal of a field changes the endpoint's profile; everything
else is the request's own fault.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from synth.llm.settings.profile import STRUCTURED, USUAL, Profile
from synth.llm.wire.shape import is_json_object

Fault = Literal["field", "moderated", "context_length", "request"]


class Refusal(NamedTuple):
    fault: Fault
    entry: str = ""
    """For a field: the entry of the profile that changes."""
    value: Any = None
    """Its next value."""
    change: str = ""
    """In words, such as `seed: true -> false`."""


_MODERATED = re.compile(
    r"content[_ ]?(filter|policy|management)|moderation|flagged|responsibleai|safety|"
    r"data_inspection|inappropriate|sensitive|prohibited",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ]?(length|size|window)|maximum context|prompt is too long|too many (input )?tokens|"
    r"input (is )?too long|exceeds? the (model's )?max|reduce the length",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"(?:context (?:length|size|window)|max_model_len)[^0-9]{0,40}?([0-9][0-9,]{2,8})",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"(?:at most|less than or equal to|<=|maximum(?: value)?(?: of| is|:)?|supports up to|"
    r"between \d+ and|limit(?: of| is)?|range of? ?\[\d+,)\s*([0-9][0-9,]{1,8})",
    re.IGNORECASE,
)
_STRUCTURED = re.compile(
    r"response_?format|json_?schema|json_?object|guided|grammar|structured|additionalproperties|"
    r"\bschema\b|text\.format",
    re.IGNORECASE,
)


def read_refusal(
    body: bytes, *, status: int, sent: Mapping[str, Any], profile: Profile, declared: Profile
) -> Refusal:
    """Why the server did not take the request `sent`, in the form of `profile`. What the user has
    `declared` is never changed."""
    said = _everything_in(body)
    place = _place(body)
    change = _changed(place, said, sent, profile)
    if change is not None:
        name, value = change
        if getattr(declared, name) is None:
            return _field(name, value, profile)
    if status == 413 or _TOO_LONG.search(said):
        return Refusal("context_length")
    if (
        declared.call_arguments is None
        and profile.call_arguments != "json"
        and _has_broken_call(sent)
    ):
        return _field("call_arguments", "json", profile)  # few servers say that it is this
    if _MODERATED.search(said):
        return Refusal("moderated")
    return Refusal("request")


def _has_broken_call(sent: Mapping[str, Any]) -> bool:
    return any(
        not is_json_object(call["function"]["arguments"])
        for message in sent.get("messages", ())
        for call in message.get("tool_calls") or ()
    )


def is_moderation(body: bytes) -> bool:
    return _MODERATED.search(_everything_in(body)) is not None


def words_of(body: bytes) -> str:
    """The server's error in words: its message where there is one, else the body."""
    error = _error_in(body)
    if isinstance(error, Mapping):
        for name in ("message", "detail", "error"):
            if isinstance(said := error.get(name), str) and said:
                return said
    if error is None:
        return body.decode("utf-8", "replace")
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def _everything_in(body: bytes) -> str:
    """As it is searched: codes and inner errors, too."""
    error = _error_in(body)
    return words_of(body) if error is None else json.dumps(error, ensure_ascii=False)


def _error_in(body: bytes) -> Any:
    """The error in the body of a refusal; None for what is no JSON."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, list) and data:  # Gemini
        data = data[0]
    return data.get("error") or data if isinstance(data, dict) else data


def _place(body: bytes) -> str:
    """The field that the server names: OpenAI's `param`, or pydantic's `loc`."""
    error = _error_in(body)
    if not isinstance(error, dict):
        return ""
    if isinstance(error.get("param"), str):
        return error["param"]
    details = error.get("detail") or error.get("message")
    if isinstance(details, dict):  # Mistral
        details = details.get("detail")
    if isinstance(details, list) and details and isinstance(details[0], dict):
        return ".".join(map(str, details[0].get("loc", ())))
    return ""


def _changed(
    place: str, said: str, sent: Mapping[str, Any], profile: Profile
) -> tuple[str, Any] | None:
    """An entry of the profile, and its next value. The field that the server names goes first: a
    message about one often mentions others."""
    for text in filter(None, (place, said)):
        for field in _FIELDS:
            if field.pattern.search(text) and (found := field.next_of(text, said, sent, profile)):
                return found
    return None


class _Field(NamedTuple):
    pattern: re.Pattern[str]
    next_of: Any
    """(text, everything said, request, profile) -> entry and value, or None: not its matter."""


def _seed(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    return ("seed", False) if "seed" in sent else None


def _stream_options(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    return ("stream_usage", False) if "stream_options" in sent else None


def _stream(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    return ("stream", False) if sent.get("stream") else None


def _max_tokens(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    field = "max_completion_tokens" if "max_completion_tokens" in sent else "max_tokens"
    if field not in sent:
        return None
    other = "max_tokens" if field == "max_completion_tokens" else "max_completion_tokens"
    if context := _CONTEXT.search(said):
        number = int(context[1].replace(",", ""))
        if profile.context_tokens is None or number < profile.context_tokens:
            return "context_tokens", number
        return None
    most = [int(n.replace(",", "")) for n in _AT_MOST.findall(said)]
    smaller = [n for n in most if 16 <= n < sent[field]]
    if smaller:
        return "max_output_tokens", min(smaller)
    if re.search(r"too large|too big|exceed|greater than|less than", said, re.IGNORECASE):
        return "max_output_tokens", max(16, sent[field] // 2)
    if field == (profile.max_tokens_field or "max_tokens"):
        return "max_tokens_field", other
    return None


def _sampling(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    return ("sampling", False) if "temperature" in sent or "top_p" in sent else None


def _tool_choice(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    if "tool_choice" not in sent:
        return None
    steps = ("named", "required", "auto")
    at = steps.index(profile.tool_choice or "named")
    return ("tool_choice", steps[at + 1]) if at + 1 < len(steps) else ("structured", "prompt")


def _structured(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    asked = "response_format" in sent or "tool_choice" in sent
    if not asked:
        return None
    at = STRUCTURED.index(profile.structured or "json_schema")
    if at == 0 and not sent.get("response_format", {}).get("json_schema", {}).get("strict"):
        at = 1  # this schema went without being enforced
    return ("structured", STRUCTURED[at + 1]) if at + 1 < len(STRUCTURED) else None


def _effort(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    named = ("reasoning_effort", "reasoning", "thinking", "chat_template_kwargs")
    return ("effort_field", "none") if any(name in sent for name in named) else None


def _alternation(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    return ("alternation", True) if not profile.alternation else None


def _reasoning_back(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    return None if profile.reasoning_back else ("reasoning_back", True)


def _call_ids(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    has = any(m.get("tool_calls") or "tool_call_id" in m for m in sent.get("messages", ()))
    return ("call_ids", "nine") if has and profile.call_ids != "nine" else None


def _system(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    has = any(m.get("role") in ("system", "developer") for m in sent.get("messages", ()))
    return ("system_role", "user") if has and profile.system_role != "user" else None


def _field_of(pattern: str, next_of: Any) -> _Field:
    return _Field(re.compile(pattern, re.IGNORECASE), next_of)


_FIELDS = (
    _field_of(r"reasoning_content.{0,60}(passed back|required|missing|must)", _reasoning_back),
    _field_of(r"(tool[_ ]call[_ ])?id.{0,60}a-z, ?A-Z, ?0-9|length of 9", _call_ids),
    _field_of(r"\bstream_options\b|include_usage", _stream_options),
    _field_of(r"\bseed\b", _seed),
    _field_of(
        r"roles? must alternate|alternat(e|ing|ion)|consecutive (user|assistant)", _alternation
    ),
    _field_of(
        r"system (role|message|prompt|instruction)s? (is |are )?not (supported|allowed|enabled)|"
        r"(does not|doesn't) support (the )?(system|developer)|"
        r"(only|supported roles).{0,40}user.{0,20}(assistant|model).{0,20}role|"
        r"developer instruction is not enabled",
        _system,
    ),
    _field_of(
        r"max_(completion_|new_)?tokens|max_?output_?tokens|maximum context|context length",
        _max_tokens,
    ),
    _field_of(r"\btemperature\b|\btop_p\b", _sampling),
    _field_of(r"\btool_choice\b|forced? (tool|function)", _tool_choice),
    _field_of(r"reasoning_effort|\breasoning\b|\bthinking\b|chat_template_kwargs", _effort),
    _field_of(_STRUCTURED.pattern, _structured),
    _field_of(r"\bstream(ing)?\b", _stream),
)


def _field(name: str, value: Any, profile: Profile) -> Refusal:
    before = getattr(profile, name)
    before = getattr(USUAL, name) if before is None else before
    return Refusal("field", name, value, f"{name}: {_plain(before)} -> {_plain(value)}")


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value or "unknown")
