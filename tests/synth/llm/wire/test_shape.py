"""Requests in the forms of endpoints: every entry does what it says, and nothing is lost."""

import copy
import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.llm.settings.profile import STRUCTURED, USUAL, Profile
from synth.llm.wire.shape import (
    BYTES_PER_TOKEN,
    LEAST_ROOM,
    is_plain,
    is_strict,
    most_tokens,
    shaped,
    words_for,
)
from tests.examples import examples

Talk = list[dict[str, Any]]

PET: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
OPEN: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
LIST: dict[str, Any] = {"type": "array", "items": PET}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
WORD = st.text(alphabet="abcdefgh", min_size=4, max_size=8)


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """Turns in any order, calls followed by their results."""
    talk: Talk = []
    if draw(st.booleans()):
        talk.append({"role": "system", "content": draw(WORD)})
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(("user", "assistant", "calls")))
        if kind != "calls":
            talk.append({"role": kind, "content": draw(WORD)})
            if kind == "assistant" and draw(st.booleans()):
                talk[-1]["reasoning_content"] = draw(WORD)
            continue
        ids = [f"call_{number}_{index}" for index in range(draw(st.integers(1, 2)))]
        text = json.dumps({"x": draw(WORD)})
        called = {"name": "f", "arguments": text if draw(st.booleans()) else text[:-1]}
        calls = [{"id": key, "type": "function", "function": called} for key in ids]
        thought = draw(WORD)
        talk.append({"role": "assistant", "content": None, "tool_calls": calls})
        talk[-1]["reasoning_content"] = thought
        talk += [{"role": "tool", "tool_call_id": key, "content": draw(WORD)} for key in ids]
    return [*talk, {"role": "user", "content": draw(WORD)}]


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "m", "messages": draw(talks()), "max_tokens": 500, "seed": 7}
    optional: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "reasoning_effort": "low"}
    optional["chat_template_kwargs"] = {"own": 1}
    body |= {name: value for name, value in optional.items() if draw(st.booleans())}
    schema = draw(st.sampled_from((None, PET, OPEN, LIST)))
    if schema is None:
        return body | {"tools": TOOLS} if draw(st.booleans()) else body
    form = {"name": "pet", "schema": schema}
    return body | {"response_format": {"type": "json_schema", "json_schema": form}}


def entries(name: str, *values: Any) -> tuple[str, st.SearchStrategy[Any]]:
    return name, st.sampled_from((None, *values))


PROFILES = st.fixed_dictionaries(
    dict(
        [
            entries("structured", *STRUCTURED),
            entries("seed", True, False),
            entries("max_tokens_field", "max_tokens", "max_completion_tokens"),
            entries("max_output_tokens", 100, 1000),
            entries("context_tokens", 200, 100_000),
            entries("sampling", True, False),
            entries("tool_choice", "named", "required", "auto"),
            entries("parallel_tool_calls", True, False),
            entries("stream", True, False),
            entries("stream_usage", True, False),
            entries("reasoning_field", "reasoning_content", "reasoning", "think", "none"),
            entries("reasoning_back", True, False),
            entries("call_ids", "any", "nine"),
            entries("call_arguments", "any", "json"),
            entries(
                "effort_field",
                *("reasoning_effort", "reasoning.effort", "enable_thinking", "thinking", "none"),
            ),
            entries("alternation", True, False),
            entries("system_role", "system", "developer", "user"),
        ]
    )
).map(lambda given: Profile(**given))


def words_in(messages: Talk, *, only_json: bool = False) -> list[str]:
    """Every word of a talk, its calls and its results in their order; with `only_json` without
    arguments that are no JSON object."""
    said: list[str] = []
    for message in messages:
        said += re.findall(r"[a-h]{4,8}", message.get("content") or "")
        for call in message.get("tool_calls", ()):
            text = call["function"]["arguments"]
            if text.endswith("}") or not only_json:
                said += re.findall(r"[a-h]{4,8}", text)
    return said


@settings(max_examples=examples(80))
@given(bodies(), PROFILES, st.integers(0, 2000))
def test_body_stays_as_it_is_and_a_plain_profile_leaves_it_so(
    body: dict[str, Any], profile: Profile, size: int
) -> None:
    before = copy.deepcopy(body)
    sent = shaped(body, profile, size=size)
    assert body == before
    assert shaped(body, profile.over(USUAL), size=size) == sent
    if is_plain(profile):
        assert sent == body
    json.dumps(sent, allow_nan=False)


@settings(max_examples=examples(80))
@given(bodies(), PROFILES, st.integers(0, 2000))
def test_every_entry_is_what_is_sent(body: dict[str, Any], profile: Profile, size: int) -> None:
    sent = shaped(body, profile, size=size)
    known = profile.over(USUAL)
    assert ("seed" in sent) == known.seed
    for name in ("temperature", "top_p"):
        assert (name in sent) == (name in body and known.sampling)
    other = {"max_tokens", "max_completion_tokens"} - {known.max_tokens_field}
    assert not other & sent.keys()
    assert sent[known.max_tokens_field or ""] == most_tokens(500, profile, size)
    assert sent.get("stream", False) == known.stream
    assert ("stream_options" in sent) == (known.stream and known.stream_usage)
    if body.get("tools"):
        assert sent.get("parallel_tool_calls") == profile.parallel_tool_calls
        assert sent["tools"] == TOOLS
    efforts = {
        "reasoning_effort": ("reasoning_effort", "low"),
        "reasoning.effort": ("reasoning", {"effort": "low"}),
        "thinking": ("thinking", {"type": "enabled"}),
    }
    told = efforts.get(known.effort_field or "")
    for name, value in efforts.values():
        wanted = value if "reasoning_effort" in body and told == (name, value) else None
        assert sent.get(name) == wanted
    thinks = known.effort_field == "enable_thinking" and "reasoning_effort" in body
    template = body.get("chat_template_kwargs", {}) | ({"enable_thinking": True} if thinks else {})
    assert sent.get("chat_template_kwargs", {}) == template


@settings(max_examples=examples(80))
@given(bodies(), PROFILES)
def test_form_of_the_answer_is_found_again(body: dict[str, Any], profile: Profile) -> None:
    sent = shaped(body, profile)
    asked = body.get("response_format")
    if asked is None:
        assert "response_format" not in sent
        assert "tool_choice" not in sent
        return
    form = (asked["json_schema"]["name"], asked["json_schema"]["schema"])
    how = profile.structured or "json_schema"
    said = sent["messages"][-1]["content"]
    in_words = said.endswith(words_for(form))
    is_object = form[1]["type"] == "object"
    if how in ("json_schema", "json_schema_strict"):
        strict = how == "json_schema_strict" and form[1] is PET
        told = sent["response_format"]["json_schema"]
        assert told == asked["json_schema"] | ({"strict": True} if strict else {})
        assert not in_words
    elif how == "json_object" and is_object:
        assert sent["response_format"] == {"type": "json_object"}
        assert in_words
    elif how == "tool" and is_object:
        (tool,) = sent["tools"]
        assert (tool["function"]["name"], tool["function"]["parameters"]) == form
        assert "response_format" not in sent
        if profile.tool_choice in ("required", "auto"):
            assert sent["tool_choice"] == profile.tool_choice
        else:
            assert sent["tool_choice"] == {"type": "function", "function": {"name": "pet"}}
        assert ("`pet`" in said) == (profile.tool_choice == "auto")
    else:
        assert in_words
        assert not sent.keys() & {"response_format", "tools", "tool_choice"}


@settings(max_examples=examples(80))
@given(talks(), PROFILES)
def test_words_calls_and_results_stay_in_their_order(talk: Talk, profile: Profile) -> None:
    messages = shaped({"messages": talk}, profile)["messages"]
    said = words_in(messages)
    wanted = words_in(talk, only_json=profile.call_arguments == "json")
    if profile.reasoning_field == "think":  # its words come into the text
        thoughts = [m["reasoning_content"] for m in talk if "reasoning_content" in m]
        assert all(said.count(word) >= (wanted + thoughts).count(word) for word in said)
        assert len(said) == len(wanted) + len(thoughts)
    else:
        assert said == wanted
    if profile.call_arguments == "json":
        texts = [c["function"]["arguments"] for m in messages for c in m.get("tool_calls", ())]
        assert all(isinstance(json.loads(text), dict) for text in texts)
    roles = [message["role"] for message in messages]
    if profile.system_role in ("developer", "user"):
        assert "system" not in roles
    if profile.system_role == "developer":
        assert ("developer" in roles) == (talk[0]["role"] == "system")
    if profile.alternation:
        spoken = [role for role in roles if role not in ("system", "developer")]
        assert spoken[0] == "user"
        plain = [
            message["role"] if not message.get("tool_calls") else "calls" for message in messages
        ]
        assert all(
            first != second or first in ("tool", "calls") for first, second in pairwise(plain)
        )
    else:
        assert len(messages) in (len(talk), len(talk) - (profile.system_role == "user"))


@settings(max_examples=examples(80))
@given(talks())
def test_short_ids_keep_results_with_their_calls(talk: Talk) -> None:
    messages = shaped({"messages": talk}, Profile(call_ids="nine"))["messages"]

    def ids(of: Talk) -> list[str]:
        of_calls = [c["id"] for m in of for c in m.get("tool_calls", ())]
        return of_calls + [m["tool_call_id"] for m in of if "tool_call_id" in m]

    short, long = ids(messages), ids(talk)
    assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", key) for key in short)
    renamed = dict(zip(long, short, strict=True))
    assert [renamed[key] for key in long] == short
    assert len(set(short)) == len(set(long))


@settings(max_examples=examples(100))
@given(talks(), st.sampled_from(("reasoning_content", "reasoning", "think", "none")))
def test_earlier_reasoning_stands_where_the_server_has_it(talk: Talk, field: str) -> None:
    profile = Profile.model_validate({"reasoning_field": field, "reasoning_back": True})
    bare = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in talk]
    messages = shaped({"messages": bare}, profile, messages=talk)["messages"]
    for message, earlier in zip(messages, talk, strict=True):
        thought = earlier.get("reasoning_content")
        places = {name for name in ("reasoning_content", "reasoning") if name in message}
        assert places == ({field} - {"think", "none"} if thought else set())
        assert all(message[place] == thought for place in places)
        if thought and field == "think":
            assert message["content"].startswith(f"<think>\n{thought}\n</think>")
    unasked = profile.model_copy(update={"reasoning_back": False})
    assert shaped({"messages": bare}, unasked, messages=talk)["messages"] == bare


@settings(max_examples=examples(80))
@given(st.integers(1, 10**6), PROFILES, st.integers(0, 10**6))
def test_no_more_tokens_are_asked_for_than_the_endpoint_has(
    wanted: int, profile: Profile, size: int
) -> None:
    most = most_tokens(wanted, profile, size)
    assert 1 <= most <= min(wanted, profile.max_output_tokens or wanted)
    if profile.context_tokens is not None and most > LEAST_ROOM:
        assert most <= profile.context_tokens - size // BYTES_PER_TOKEN
    if profile.max_output_tokens is None and profile.context_tokens is None:
        assert most == wanted


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (PET, True),
        (OPEN, False),
        (LIST, True),
        (PET | {"required": []}, False),
        (PET | {"patternProperties": {}}, False),
        ({"type": "object", "additionalProperties": False}, False),
        ({"anyOf": [PET, {"type": "null"}]}, True),
        ({"anyOf": [PET, OPEN]}, False),
        ({"$ref": "#/$defs/pet", "$defs": {"pet": PET}}, True),
        ({"$ref": "#/$defs/pet", "$defs": {"pet": OPEN}}, False),
        ({"type": "array", "items": OPEN}, False),
    ],
)
def test_schema_that_servers_enforce_is_closed_and_complete(schema: Any, strict: bool) -> None:
    assert is_strict(schema) is strict
