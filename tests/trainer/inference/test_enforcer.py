"""Whatever a model would like to write, what the enforcer lets through is a valid answer."""

import json
import random
from functools import lru_cache
from threading import Thread
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLParserLimits

from records.chat.k2 import END
from records.errors import ConfigError
from tests.examples import examples
from tests.trainer.configs import CONFIGS
from trainer.data.chat import encode_chat, parse_answer, prompt_for_answer
from trainer.data.tokenizer import SPECIAL, Tokenizer, train_tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.enforcer import AnswerGrammar, Enforcer
from trainer.inference.sampler import AnswerDraft, GuideError, Sampler
from trainer.model.initialization import new_decoder

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "enum": ["kelvin", "Grad \u00e4", "celsius"]},
        "days": {"type": "integer"},
        "share": {"type": ["number", "null"]},
        "spots": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"x": {"type": "number"}},
                "required": ["x"],
            },
        },
        "exact": {"type": "boolean"},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}

TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Tell.", "parameters": schema}}
    for name, schema in (("forecast", SCHEMA), ("now", {"type": "object", "properties": {}}))
]

LARGEST = 2**53 - 1

VALUES = st.fixed_dictionaries(
    {"city": st.text(max_size=8), "days": st.integers(-LARGEST, LARGEST)},
    optional={
        "unit": st.sampled_from(["kelvin", "Grad \u00e4", "celsius"]),
        "share": st.none() | st.floats(-LARGEST, LARGEST),
        "spots": st.lists(
            st.fixed_dictionaries({"x": st.integers(-LARGEST, LARGEST) | st.just(0.5)}), max_size=2
        ),
        "exact": st.booleans(),
    },
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    texts = [json.dumps(TOOLS, ensure_ascii=False), '{"city": "Oslo", "days": 3, "unit": "kelvin"}']
    return train_tokenizer(texts * 3, vocab_size=400)


@pytest.fixture(scope="module")
def grammar(tokenizer: Tokenizer) -> AnswerGrammar:
    return AnswerGrammar(tokenizer, where="test")


Fit = Literal["whole", "prefix", "no"]


@lru_cache(maxsize=1)
def _of_letters() -> tuple[Tokenizer, AnswerGrammar]:
    tokenizer = train_tokenizer([], vocab_size=len(SPECIAL) + 256)
    return tokenizer, AnswerGrammar(tokenizer, where="letters")


def begun(schema: dict[str, Any]) -> Enforcer:
    """Where the arguments of a call begin."""
    tokenizer, grammar = _of_letters()
    enforcer = grammar.enforcer(
        [{"type": "function", "function": {"name": "a", "parameters": schema}}]
    )
    special = tokenizer.special
    opening = [special["<|tool_calls_section_begin|>"], special["<|tool_call_begin|>"]]
    for token in [
        *opening,
        *tokenizer.encode("functions.a:0"),
        special["<|tool_call_argument_begin|>"],
    ]:
        enforcer.take(token)
    return enforcer


def fit(text: str, schema: dict[str, Any]) -> Fit:
    """Whether arguments are taken letter by letter, and may end there."""
    tokenizer, _ = _of_letters()
    enforcer = begun(schema)
    for token in tokenizer.encode(text):
        if not enforcer.allowed()[token]:
            return "no"
        enforcer.take(token)
    return "whole" if enforcer.allowed()[tokenizer.special["<|tool_call_end|>"]] else "prefix"


@given(VALUES)
@settings(max_examples=examples(150), deadline=None)
def test_every_beginning_of_a_valid_value_is_a_prefix_and_the_whole_is_whole(
    value: dict[str, Any],
) -> None:
    if len(repr(value.get("share"))) > 30:
        return
    tokenizer, _ = _of_letters()
    enforcer, end = begun(SCHEMA), tokenizer.special["<|tool_call_end|>"]
    for token in tokenizer.encode(json.dumps(value, ensure_ascii=False)):
        allowed = enforcer.allowed()
        assert allowed[token]
        assert not allowed[end]
        enforcer.take(token)
    assert enforcer.allowed()[end]


@given(VALUES, st.data())
@settings(max_examples=examples(300), deadline=None)
def test_what_is_whole_is_valid_json_under_the_schema(value: dict[str, Any], data: Any) -> None:
    """Valid values with a letter changed, dropped or doubled: `whole` is never said in error, and
    whatever json and jsonschema take is never refused for its words."""
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from(list('{}[]",:0e.-ntx\\ ')))
    changed = data.draw(
        st.sampled_from([text[:at] + letter + text[at + 1 :], text[:at] + text[at + 1 :]])
    )
    if fit(changed, SCHEMA) == "whole":
        jsonschema.validate(json.loads(changed), SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        '{"town"',
        '{"city": 3',
        '{"days": 1.',
        '{"days": 01',
        '{"unit": "kelvins',
        '{"city": "a", "city"',
        '{"exact": maybe',
        '{"city": "a"}',
        "[",
        '{"city": "a\n',
        '{"city": "a", "days": 2}}',
        '{"city":   ',
        '{"spots": [{}]',
        '{"city": "\\x',
        '{"city": "\\u00g',
        '{"share": ' + "1" * 39 + ".",
        '{"share": 1.e',
        '{"days": -9007199254740992',
        '{"share": 1e16',
    ],
)
def test_what_cannot_become_valid_is_refused(text: str) -> None:
    assert fit(text, SCHEMA) == "no"


UNIONS: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["n"],
    "anyOf": [{"required": ["id"]}, {"properties": {"of": {"const": 1}}, "required": ["of"]}],
}
COUNTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [
        ('{"n": 1, "id": "x"}', UNIONS, "whole"),
        ('{"name": "a", "of": 1, "n": 1}', UNIONS, "whole"),
        ('{"n": 1, "name": "a"}', UNIONS, "no"),
        ('{"id": "x"}', UNIONS, "no"),
        ("[", UNIONS, "no"),
        ('{"red": 3}', COUNTS, "whole"),
        ('{"red": "3', COUNTS, "no"),
    ],
)
def test_a_union_leaves_what_stands_beside_it_in_force(
    text: str, schema: dict[str, Any], expected: Fit
) -> None:
    assert fit(text, schema) == expected


REFERRED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "who": {"$ref": "#/$defs/person"},
        "unit": {
            "allOf": [{"enum": ["mm", "cm", 3]}, {"enum": ["cm", "m", 3]}, {"type": "string"}]
        },
        "from": {"$ref": "https://example.com/place.json"},
        "odd": {"$ref": "#/$defs/a~1b%20c", "required": ["z"]},
    },
    "allOf": [{"$ref": "#/$defs/dated"}, {"required": ["who"]}],
    "$defs": {
        "person": {
            "allOf": [
                {"type": "object", "properties": {"name": {"type": "string"}}},
                {"properties": {"boss": {"$ref": "#/$defs/person"}}, "required": ["name"]},
            ]
        },
        "dated": {"properties": {"day": {"type": "integer"}}, "required": ["day"]},
        "a/b c": {"type": "object", "additionalProperties": {"type": "null"}},
    },
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"who": {"name": "a", "boss": {"name": "b"}}, "day": 1}', "whole"),
        ('{"who": {"name": "a"}, "day": 1, "unit": "cm", "from": {"x": [1]}}', "whole"),
        ('{"who": {"name": "a"}, "day": 1, "odd": {"z": null}}', "whole"),
        ('{"who": {"name": "a"}}', "no"),
        ('{"day": 1}', "no"),
        ('{"day": "', "no"),
        ('{"who": {}', "no"),
        ('{"who": {"name": "a", "boss": {"name": 1', "no"),
        ('{"who": {"name": "a", "boss": {}', "no"),
        ('{"unit": "mm', "no"),
        ('{"unit": 3', "no"),
        ('{"place', "no"),
        ('{"odd": {}', "no"),
        ('{"odd": {"z": 1', "no"),
        ('{"odd": {"y', "no"),
    ],
)
def test_references_and_all_of_hold_as_if_written_out(text: str, expected: Fit) -> None:
    assert fit(text, REFERRED) == expected
    if expected == "whole":
        jsonschema.validate(json.loads(text), {**REFERRED, "properties": _local(REFERRED)})


def _local(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the reference to elsewhere, which jsonschema would want to fetch."""
    return {name: part for name, part in schema["properties"].items() if name != "from"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"required": ["a"], "properties": {"a": False}},
        {"required": ["a"], "properties": {"a": {"enum": [1], "type": "string"}}},
        {"required": ["a"], "allOf": [{"properties": {}, "additionalProperties": False}]},
    ],
)
def test_a_tool_that_no_arguments_satisfy_cannot_be_called(
    tokenizer: Tokenizer, grammar: AnswerGrammar, schema: dict[str, Any]
) -> None:
    function = {"name": "never", "parameters": {"type": "object", **schema}}
    allowed = grammar.enforcer([{"type": "function", "function": function}]).allowed()
    assert not allowed[tokenizer.special["<|tool_calls_section_begin|>"]]
    assert allowed[tokenizer.encode("a")[0]]


@pytest.mark.slow
def test_a_schema_that_leads_back_to_itself_is_worked_out_in_little_time() -> None:
    """Each of twelve leads to all the others, by a union and by a part: 12! ways to go."""
    names = [f"d{n}" for n in range(12)]
    every = [{"$ref": f"#/$defs/{name}"} for name in names]
    one = {"anyOf": [*every, {"type": "object"}], "properties": {"a": {"allOf": every}}}
    assert fit('{"a": {"a": {', {"$ref": "#/$defs/d0", "$defs": dict.fromkeys(names, one)}) != "no"


def test_a_tree_is_nested_as_deep_as_there_is_a_way_on_and_no_deeper() -> None:
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}},
        "additionalProperties": False,
    }
    text = ""
    while more := next((p for p in ('{"kids":', "[") if fit(text + p, tree) != "no"), None):
        text += more
    ends = "".join({"{": "}", "[": "]"}[letter] for letter in reversed(text) if letter in "{[")
    assert 5 < text.count("kids") < 50
    assert fit(text + ends, tree) == "whole"


def test_nesting_without_end_is_stopped_where_there_is_still_a_way_on() -> None:
    text = ""
    for _ in range(200):  # opens what it can, and closes nothing
        text += next(piece for piece in ('{"a":', "[", "1", " ") if fit(text + piece, {}) != "no")
        if text.endswith("1"):
            break
    brackets = text.count("{")
    assert 10 < brackets < 100
    assert fit(text + "}" * brackets, {}) == "whole"


@pytest.mark.parametrize("seed", range(12))
def test_random_writing_under_the_enforcer_is_a_valid_answer(
    tokenizer: Tokenizer, grammar: AnswerGrammar, seed: int
) -> None:
    """Tokens drawn blindly among those that are allowed, with a liking for calls and for ends."""
    rng = random.Random(seed)
    enforcer = grammar.enforcer(TOOLS, calls_before=2, max_calls=3)
    liked = [tokenizer.special[mark] for mark in tokenizer.special]
    liked += [n for n in range(tokenizer.size) if tokenizer.bytes_of(n) in (b'"', b"}", b"]", b"1")]
    ids: list[int] = []
    while not ids or ids[-1] != tokenizer.special[END]:
        allowed = enforcer.allowed()
        wished = [token for token in liked if allowed[token]] if rng.random() < 0.7 else []
        options = wished or allowed.nonzero().flatten().tolist()
        assert options, f"no way on from {tokenizer.decode(ids)[-200:]!r}"
        ids.append(rng.choice(options))
        enforcer.take(ids[-1])
        assert len(ids) < 5000
    answer = parse_answer(tokenizer, ids)
    assert answer.broken is None
    assert answer.content.strip() or answer.tool_calls
    for number, call in enumerate(answer.tool_calls, start=2):
        assert call["id"] == f"functions.{call['function']['name']}:{number}"
        [tool] = [t for t in TOOLS if t["function"]["name"] == call["function"]["name"]]
        given_ = json.loads(call["function"]["arguments"])
        jsonschema.validate(given_, tool["function"]["parameters"])


@pytest.mark.parametrize("tools", [TOOLS, []])
def test_a_model_that_thinks_does_so_once_and_first(
    tokenizer: Tokenizer, grammar: AnswerGrammar, tools: list[dict[str, Any]]
) -> None:
    mark = tokenizer.special
    assert not grammar.enforcer(tools).allowed()[mark["<think>"]]
    enforcer = grammar.enforcer(tools, thinking=True)
    assert enforcer.allowed().nonzero().flatten().tolist() == [mark["<think>"]]
    enforcer.take(mark["<think>"])
    for _ in range(2):
        assert enforcer.allowed()[mark["</think>"]]
        assert not enforcer.allowed()[mark[END]]
        enforcer.take(tokenizer.encode("a")[0])
    enforcer.take(mark["</think>"])
    assert not enforcer.allowed()[[mark["<think>"], mark["</think>"], mark[END]]].any()
    assert enforcer.allowed()[mark["<|tool_calls_section_begin|>"]] == bool(tools)
    enforcer.take(tokenizer.encode("a")[0])
    assert enforcer.allowed()[mark[END]]


@pytest.mark.slow
def test_an_untrained_model_writes_valid_calls_only(
    tokenizer: Tokenizer, grammar: AnswerGrammar
) -> None:
    config = CONFIGS["plain"].model_copy(update={"vocab_size": tokenizer.size})
    model = new_decoder(config.model_copy(update={"max_positions": 2048})).eval()
    asked = encode_chat(tokenizer, [{"role": "user", "content": "Weather?"}], TOOLS).ids
    prompts = [asked + prompt_for_answer(tokenizer)] * 6
    guides = [grammar.enforcer(TOOLS, max_calls=2) for _ in prompts]
    made = Sampler(model, slots=3).generate(
        prompts,
        Sampling(temperature=1.0, max_tokens=400),
        stop=tokenizer.special[END],
        seeds=range(6),
        guides=guides,
    )
    for one in made:
        answer = parse_answer(tokenizer, one.ids)
        if one.finish_reason == "stop":
            assert answer.broken is None
        for call in answer.tool_calls[:-1] if answer.broken else answer.tool_calls:
            [tool] = [t for t in TOOLS if t["function"]["name"] == call["function"]["name"]]
            arguments = json.loads(call["function"]["arguments"])
            jsonschema.validate(arguments, tool["function"]["parameters"])


def test_objects_of_many_properties_can_be_written_required_ones_in_any_case() -> None:
    names = [f"p{n}" for n in range(80)]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "null"} for name in names},
        "required": names[75:],
    }
    last = ", ".join(f'"{name}": null' for name in names[75:])
    assert fit(f'{{"p0": null, {last}}}', schema) == "whole"
    assert fit('{"p0": null', schema) == "prefix"
    assert fit('{"p70"', schema) == "no"  # more than can be counted
    with pytest.raises(ConfigError, match=r"80 required properties; .* takes 64"):
        fit("{", {**schema, "required": names})


def alternatives(count: int) -> dict[str, Any]:
    """So many ways to read the first name of an object, and as many names in each."""
    names = [[f"p{way}_{n}" for n in range(count)] for way in range(count)]
    ways = [{"type": "object", "properties": {n: {"type": "null"} for n in own}} for own in names]
    return {"type": "object", "anyOf": ways}


def follow(enforcer: Enforcer, tokens: list[int]) -> None:
    for token in tokens:
        assert enforcer.allowed()[token]
        enforcer.take(token)


def test_at_a_limit_of_the_engine_the_end_token_is_not_said_to_be_all_that_may_follow() -> None:
    tokenizer, grammar = _of_letters()
    few = LLParserLimits(max_lexer_states=8)
    text = "start: WORD\nWORD: /[a-z]+(x|yz){3,9}[a-f]+/"
    enforcer = Enforcer(LLMatcher(grammar._engine, text, log_level=0, limits=few), tokenizer.size)
    with pytest.raises(GuideError, match="cannot be told: lexer error: too many states"):
        follow(enforcer, tokenizer.encode("abcxyzxyzxyzab"))


def test_a_grammar_is_not_forgotten_while_another_thread_asks_for_it(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in rollouts, where requests are read while others are drawn."""
    monkeypatch.setattr("trainer.inference.enforcer.MOST_WORKED_OUT", 1)
    grammar = AnswerGrammar(tokenizer, where="here")
    grammar.enforcer(TOOLS[:1])
    other = Thread(target=lambda: grammar.enforcer(TOOLS[:1], calls_before=1))

    class Interrupted(dict[str, LLMatcher]):
        def __contains__(self, key: object) -> bool:
            found = super().__contains__(key)
            if found and other.ident is None:
                other.start()
                other.join(timeout=0.3)
            return found

    grammar._worked_out = Interrupted(grammar._worked_out)
    assert grammar.enforcer(TOOLS[:1]).allowed().any()
    other.join()


def test_an_answer_at_a_limit_of_the_engine_ends_alone(caplog: pytest.LogCaptureFixture) -> None:
    """`{` and the quotation mark are all that may begin the arguments, and behind these there are
    more ways to go on than the engine follows."""
    tokenizer, _ = _of_letters()
    config = CONFIGS["plain"].model_copy(update={"vocab_size": tokenizer.size})
    model = new_decoder(config).eval()

    def drawn(*schemas: dict[str, Any]) -> list[AnswerDraft]:
        return Sampler(model, slots=2).generate(
            [[5, 6, 7]] * len(schemas),
            Sampling(temperature=1.0, max_tokens=12),
            stop=tokenizer.special[END],
            guides=[begun(schema) for schema in schemas],
            seeds=[3] * len(schemas),
        )

    many, few, other = drawn(alternatives(60), SCHEMA, SCHEMA)
    assert many.finish_reason == "guide"
    assert "".join(tokenizer.decode(many.ids).split()) == '{"'
    assert len(many.ids) == len(many.logprobs) == len(many.model_logprobs) == len(many.versions)
    assert f"answer 0 ends after {len(many.ids)} tokens" in caplog.text
    assert "constrained = false" in caplog.text
    [alone] = drawn(SCHEMA)
    assert alone.finish_reason in ("length", "stop")
    assert few.ids == other.ids == alone.ids


def test_an_answer_that_must_call_is_calls_from_its_first_token(
    tokenizer: Tokenizer, grammar: AnswerGrammar
) -> None:
    first = grammar.enforcer(TOOLS, must_call=True).allowed()
    assert first.nonzero().flatten().tolist() == [tokenizer.special["<|tool_calls_section_begin|>"]]
    with pytest.raises(ConfigError, match="no tool is there to be called"):
        grammar.enforcer([], must_call=True)


@given(VALUES)
@settings(max_examples=examples(40), deadline=None)
def test_a_form_is_one_value_under_its_schema(value: dict[str, Any]) -> None:
    if len(repr(value.get("share"))) > 30:
        return
    tokenizer, grammar = _of_letters()
    enforcer, end = grammar.form_enforcer(SCHEMA), tokenizer.special[END]
    for token in tokenizer.encode(json.dumps(value, ensure_ascii=False)):
        allowed = enforcer.allowed()
        assert allowed[token]
        assert not allowed[end]
        enforcer.take(token)
    assert enforcer.allowed()[end]


def test_a_form_that_no_value_has_is_refused(grammar: AnswerGrammar) -> None:
    with pytest.raises(ConfigError, match="no JSON value fits"):
        grammar.form_enforcer({"allOf": [{"type": "string"}, {"type": "integer"}]})
