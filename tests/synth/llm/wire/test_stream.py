"""A streamed answer is the unstreamed one, however a server cuts it and the bytes break."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.llm.wire.answer import BadBodyError, ChatAnswer, read_answer
from synth.llm.wire.stream import StreamedAnswer, StreamError
from tests.examples import examples

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
CALLS = st.lists(st.tuples(st.sampled_from(("f", "g")), TEXT), max_size=3)
USAGE = st.none() | st.fixed_dictionaries(
    {"prompt_tokens": st.integers(0, 9), "completion_tokens": st.integers(0, 9)}
)
CALL_FORMS = ("index", "index repeated", "one index", "ids", "ids once", "names", "objects")


def read(raw: bytes) -> ChatAnswer:
    return read_answer(raw, call_prefix="call_x", fallback_usage=(70, 30))


def fed(raw: bytes, cuts: list[int]) -> StreamedAnswer:
    answer = StreamedAnswer()
    places = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        answer.feed(raw[start:end])
    return answer


def call_pieces(form: str, number: int, name: str, arguments: str) -> Iterator[dict[str, Any]]:
    """One call as a server of this form streams it."""
    key = f"id{number}"
    half = len(arguments) // 2
    told = {"id": key, "function": {"name": name, "arguments": arguments[:half]}}
    rest = {"function": {"arguments": arguments[half:]}}
    match form:
        case "index":
            yield from ({"index": number} | piece for piece in (told, rest))
        case "index repeated":
            again = {"function": {"name": name, "arguments": arguments[half:]}, "id": key}
            yield from ({"index": number} | piece for piece in (told, again))
        case "one index":
            yield from ({"index": 0} | piece for piece in (told, rest))
        case "ids":
            yield from (told, rest | {"id": key})
        case "ids once":
            yield from (told, rest)
        case "names":
            yield from ({"function": told["function"]}, rest)
        case _:
            yield {"function": {"name": name, "arguments": {"x": arguments}}}


@settings(max_examples=examples(100))
@given(
    text=st.lists(TEXT, max_size=4),
    thought=st.lists(TEXT, max_size=2),
    calls=CALLS,
    form=st.sampled_from(CALL_FORMS),
    usage=USAGE,
    usage_alone=st.booleans(),
    line_end=st.sampled_from(("\n", "\r\n")),
    in_one=st.booleans(),
    cuts=st.lists(st.integers(0, 10_000), max_size=12),
)
def test_streamed_answer_is_the_unstreamed_one(
    text: list[str],
    thought: list[str],
    calls: list[tuple[str, str]],
    form: str,
    usage: Any,
    usage_alone: bool,
    line_end: str,
    in_one: bool,
    cuts: list[int],
) -> None:
    pieces = [list(call_pieces(form, n, *call)) for n, call in enumerate(calls)]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in thought]
    deltas += [{"content": piece} for piece in text]
    flat = [piece for call in pieces for piece in call]
    deltas += [{"tool_calls": flat}] if in_one else [{"tool_calls": [piece]} for piece in flat]
    reason = "tool_calls" if calls else "stop"
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    last: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": reason}]}
    events += [last, {"choices": [], "usage": usage}] if usage_alone else [last | {"usage": usage}]
    lines = [": comment", "event: x", *(f"data: {json.dumps(event)}" for event in events)]
    raw = (line_end * 2).join([*lines, "data: [DONE]", ""]).encode()

    whole = [
        {
            "id": None if form in ("names", "objects") else f"id{number}",
            "function": {
                "name": name,
                "arguments": {"x": said} if form == "objects" else said,
            },
        }
        for number, (name, said) in enumerate(calls)
    ]
    message: dict[str, Any] = {"content": "".join(text), "reasoning_content": "".join(thought)}
    if calls:
        message["tool_calls"] = whole
    body = {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}

    answer = fed(raw, cuts)
    got, wanted = read(answer.body()), read(json.dumps(body).encode())
    assert answer.is_complete
    parsed = [
        [json.loads(call["function"]["arguments"]) for call in one.tool_calls]
        if form == "objects"
        else one.tool_calls
        for one in (got, wanted)
    ]
    assert parsed[0] == parsed[1]
    assert got._replace(tool_calls=[]) == wanted._replace(tool_calls=[])


def test_halves_of_a_letter_meet() -> None:
    halves = json.dumps("\U0001f600")[1:-1]  # as servers that count in UTF-16 cut it
    first, second = halves[:6], halves[6:]
    raw = "".join(
        f'data: {{"choices": [{{"delta": {{"content": "{half}"}}}}]}}\n' for half in (first, second)
    )
    assert read(fed(raw.encode(), []).body()).content == "\U0001f600"
    alone = read(fed(raw.splitlines()[0].encode(), []).body())
    assert alone.content == "?"


def test_reasoning_in_parts_of_the_content_is_kept() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thinking, {"type": "text", "text": "Fine."}]
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    events: list[Any] = [{"choices": [{"delta": {"content": [part]}}]} for part in parts]
    events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    for answer in (read(json.dumps(body).encode()), read(fed(raw, []).body())):
        assert (answer.content, answer.reasoning) == ("Fine.", "hm")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(("", "x", "stop")),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "index",
                    "id",
                    "arguments",
                    "name",
                    "usage",
                    "finish_reason",
                    "reasoning",
                    "type",
                    "thinking",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=14,
)


@settings(max_examples=examples(100))
@given(
    JSON, JSON, st.sampled_from(("{}", '{{"choices": [{}]}}', '{{"choices": [{{"delta": {}}}]}}'))
)
def test_any_event_is_taken_or_refused(first: Any, second: Any, frame: str) -> None:
    answer = StreamedAnswer()
    made = None
    try:
        for value in (first, second):
            answer.feed(b"data: " + frame.format(json.dumps(value)).encode() + b"\n")
        made = read(answer.body())
    except (ValueError, StreamError, BadBodyError):
        return
    assert isinstance(made.content, str)


@settings(max_examples=examples(100))
@given(JSON, st.sampled_from(("{}", '{{"choices": [{{"message": {}}}]}}')), USAGE | JSON)
def test_any_body_is_read_or_refused(value: Any, frame: str, usage: Any) -> None:
    data = json.loads(frame.format(json.dumps(value)))
    data = data | {"usage": usage} if isinstance(data, dict) else data
    try:
        answer = read(json.dumps(data).encode())
    except BadBodyError:
        return
    ids = [call["id"] for call in answer.tool_calls]
    assert len(set(ids)) == len(ids)
    assert 0 <= answer.cached_tokens <= answer.prompt_tokens
    assert 0 <= answer.reasoning_tokens <= answer.completion_tokens


@pytest.mark.parametrize(
    "line", [b"data: {", b"data: 3", b"data: " + b"[" * 100_000, b"data: \xff"]
)
def test_what_is_no_event_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"event|JSON|utf|Expecting"):
        fed(line + b"\n", []).body()


def test_stream_without_an_end_is_not_complete() -> None:
    event = {"choices": [{"delta": {"content": "half of the ans"}}]}
    answer = fed(f"data: {json.dumps(event)}\n\n".encode(), [])
    answer.body()
    assert not answer.is_complete
    with pytest.raises(StreamError, match="overloaded"):
        answer.feed(b'data: {"error": {"message": "overloaded"}}\n')
