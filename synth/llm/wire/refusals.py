"""What a refusal says: a field that the server does not take, a text that it does not want, or a
request that is too long.

Servers share no codes for it, so that what they say is read: `param` and `code` where they give
them, and the words of the message. A refusal of a field changes the endpoint's profile; everything
else is the request's own fault.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from synth.llm.settings.profile import STRUCTURED, USUAL, Profile
from synth.llm.wire.error_body import everything_in, place_in
from synth.llm.wire.shape import is_json_object

LEAST_TOKENS = 16
"""Of an answer, below which no limit is learned."""

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
    r"content[_ ]?(filter|policy|management|moderation)|moderation|\bflagged\b|responsibleai|"
    r"data_inspection|usage polic(y|ies)|invalid_prompt|(safety|harm)[_ ]?(reason|filter|setting|"
    r"polic|system|check|block)|(due to|for|by|blocked.{0,20}) safety|"
    r"(inappropriate|sensitive|prohibited|harmful|unsafe)[_ ](content|information|material|words?|"
    r"text|topic)|不安全|敏感",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ]?(length|size|window|limit)|maximum context|prompt is too long|"
    r"too many (input |prompt )?tokens|(input|prompt|request) (is |was )?too (long|large)|"
    r"token count.{0,30}exceeds|range of input length|reduce the length|"
    r"tokens \+ .{0,24}max_new_tokens",
    re.IGNORECASE,
)
"""What only a request that is too long is told."""
_CONTEXT = (
    re.compile(
        r"(?:context[_ ](?:length|size|window)|max_model_len)[^0-9]{0,40}?([0-9][0-9,]{2,8})",
        re.IGNORECASE,
    ),
    re.compile(r"([0-9][0-9,]{2,8})(?: tokens?)? (?:maximum )?context", re.IGNORECASE),
    re.compile(r"context limit: *[0-9,]+ *\+ *[0-9,]+ *> *([0-9][0-9,]{2,8})", re.IGNORECASE),
    re.compile(r"max_new_tokens\W+must be <= *([0-9][0-9,]{2,8})", re.IGNORECASE),
)
_AT_MOST = re.compile(
    r"(?:at most|(?:less|lower) than or equal to|<=|maximum(?: value)?(?: of| is|:)?|"
    r"supports up to|between \d+ and|limit(?: of| is)?|range.{0,40}\[ *\d+ *,|"
    r"range.{0,40}inclusive\) to|[0-9] >)[ `'\"(]*([0-9][0-9,]{1,8})\b(?! *\(exclusive)",
    re.IGNORECASE,
)
_BELOW = re.compile(r"([0-9][0-9,]{1,8}) *\(exclusive\)", re.IGNORECASE)
_TOO_MANY = re.compile(
    r"too large|too big|too high|exceed|(greater|less|lower) than", re.IGNORECASE
)
_ROOM = re.compile(
    r"max_(completion_|new_)?tokens|max_?output_?tokens|maximum (context|tokens)|context length",
    re.IGNORECASE,
)
_OF_CONTENT = re.compile(
    r"(^|\.)messages?\b.*\bcontent\b|(^|\.)(tools|functions)\b.+", re.IGNORECASE
)
"""Fields that no entry of a profile is about: what a message or a tool holds."""
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
    said = everything_in(body)
    change = _changed(place_in(body), said, sent, profile)
    if change is not None and getattr(declared, change[0]) is None:
        return _field(*change, profile)
    if status == 413 or _TOO_LONG.search(said) or "exceeds the max" in said:
        return Refusal("context_length")
    if _MODERATED.search(said):
        return Refusal("moderated")
    if (
        declared.call_arguments is None
        and profile.call_arguments != "json"
        and _has_broken_call(sent)
    ):
        return _field("call_arguments", "json", profile)  # few servers say that it is this
    return Refusal("request")


def _has_broken_call(sent: Mapping[str, Any]) -> bool:
    return any(
        not is_json_object(call["function"]["arguments"])
        for message in sent.get("messages", ())
        for call in message.get("tool_calls") or ()
    )


def is_moderation(body: bytes) -> bool:
    return _MODERATED.search(everything_in(body)) is not None


def _changed(
    place: str, said: str, sent: Mapping[str, Any], profile: Profile
) -> tuple[str, Any] | None:
    """An entry of the profile, and its next value. The field that the server names goes first: a
    message about one often mentions others, and one about a text mentions anything."""
    named = _next_of(place, said, sent, profile, _FIELDS) if place else None
    if named is not None:
        return named
    if _TOO_LONG.search(said):
        room = _max_tokens(said, said, sent, profile) if _ROOM.search(said) else None
        return _new(room, profile)
    if _MODERATED.search(said) or _OF_CONTENT.search(place):
        return None
    return _next_of(said, said, sent, profile, _FIELDS)


def _next_of(
    text: str, said: str, sent: Mapping[str, Any], profile: Profile, fields: Any
) -> tuple[str, Any] | None:
    for field in fields:
        if field.pattern.search(text):
            found = _new(field.next_of(text, said, sent, profile), profile)
            if found is not None:
                return found
    return None


def _new(found: tuple[str, Any] | None, profile: Profile) -> tuple[str, Any] | None:
    """What would leave an entry as it is changes nothing, and the request would go on for ever."""
    return found if found is not None and found[1] != _known(found[0], profile) else None


def _known(name: str, profile: Profile) -> Any:
    value = getattr(profile, name)
    return getattr(USUAL, name) if value is None else value


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
    contexts = [_number(found[1]) for place in _CONTEXT if (found := place.search(said))]
    if contexts:
        known = profile.context_tokens
        return ("context_tokens", contexts[0]) if known is None or contexts[0] < known else None
    most = [*map(_number, _AT_MOST.findall(said)), *(_number(n) - 1 for n in _BELOW.findall(said))]
    if smaller := [n for n in most if LEAST_TOKENS <= n < sent[field]]:
        return "max_output_tokens", min(smaller)
    if _TOO_LONG.search(said):
        return None  # of the prompt
    if _TOO_MANY.search(said):
        half = sent[field] // 2
        return ("max_output_tokens", half) if half >= LEAST_TOKENS else None
    # never back: a server that refuses both names would be asked for ever
    return ("max_tokens_field", "max_completion_tokens") if field == "max_tokens" else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))


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


def _reasoning_field(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    has = any("reasoning_content" in m or "reasoning" in m for m in sent.get("messages", ()))
    refused = re.search(
        r"not (permitted|allowed|supported)|unknown|unsupported|unexpected", said, re.I
    )
    return ("reasoning_field", "none") if has and refused else None


def _no_tools(text: str, said: str, sent: Mapping[str, Any], profile: Profile) -> Any:
    return ("structured", "prompt") if "tool_choice" in sent else None


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
    _field_of(r"messages?\b.{0,40}\breasoning(_content)?\b", _reasoning_field),
    _field_of(r"reasoning_content.{0,60}(passed back|required|missing|must)", _reasoning_back),
    _field_of(r"(tool[_ ]call[_ ])?id.{0,60}a-z, ?A-Z, ?0-9|length of 9", _call_ids),
    _field_of(r"\bstream_options\b|include_usage", _stream_options),
    _field_of(r"\bseed\b", _seed),
    _field_of(
        r"roles? must alternate|alternat(e|ing|ion)|consecutive (user|assistant)", _alternation
    ),
    _field_of(
        r"system (role|message|prompt|instruction)s? (is |are )?not (supported|allowed|enabled)|"
        r"(does not|doesn't) support (the )?'?(system|developer)|"
        r"(only|supported roles).{0,40}user.{0,20}(assistant|model).{0,20}role|"
        r"developer instruction is not enabled",
        _system,
    ),
    _field_of(_ROOM.pattern, _max_tokens),
    _field_of(r"\btemperature\b|\btop_p\b", _sampling),
    _field_of(r"\btool[_ ]choice\b|forced? (tool|function)", _tool_choice),
    _field_of(r"^tools\b|support (tools|tool use|tool calling|function calling)\b", _no_tools),
    _field_of(r"reasoning_?effort|\breasoning\b|\bthinking\b|chat_template_kwargs", _effort),
    _field_of(_STRUCTURED.pattern, _structured),
    _field_of(r"\bstream(ing)?\b", _stream),
)


def _field(name: str, value: Any, profile: Profile) -> Refusal:
    change = f"{name}: {_plain(_known(name, profile))} -> {_plain(value)}"
    return Refusal("field", name, value, change)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value or "unknown")
