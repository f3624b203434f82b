"""Template, tokenizer and declarations: what is written, what is learnt, what text cannot do."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer, models
from tokenizers import Tokenizer as Backend
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from records.chat.declarations import declare
from records.chat.k2 import KIMI
from records.errors import ConfigError
from tests.examples import examples
from trainer.data.chat import encode_chat, parse_answer, prompt_for_answer
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import SPECIAL, THOUGHTS, Tokenizer, load_tokenizer, train_tokenizer

TOOL = {
    "type": "function",
    "function": {
        "name": "book_table",
        "description": "Book a table.\nReturns its number.",
        "parameters": {
            "type": "object",
            "properties": {
                "guests": {"type": "integer", "description": "How many come."},
                "when": {"type": "string"},
                "room": {"enum": ["hall", "garden"]},
                "wishes": {"type": "array", "items": {"type": ["string", "null"]}},
                "card": {"type": "object", "properties": {"no-1": {"type": "boolean"}}},
            },
            "required": ["guests"],
        },
    },
}


def call(name: str, arguments: str, call_id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "You keep the tables."},
    {"role": "user", "content": "A table for two, and one for three."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            call("book_table", '{"guests": 2}', "x"),
            call("book_table", '{"guests": 3}', "y"),
        ],
    },
    {"role": "tool", "tool_call_id": "x", "name": "book_table", "content": '{"table": 5}'},
    {"role": "tool", "tool_call_id": "y", "name": "book_table", "content": '{"table": 6}'},
    {"role": "assistant", "content": "Tables 5 and 6."},
    {"role": "user", "content": "One more for two."},
    {"role": "assistant", "tool_calls": [call("book_table", '{"guests": 2}', "x2")]},
    {"role": "tool", "tool_call_id": "x2", "name": "book_table", "content": "full"},
    {"role": "assistant", "content": "We are full."},
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([json.dumps(CONVERSATION), "the table is full " * 5], vocab_size=400)


def test_a_conversation_is_written_in_the_released_form(tokenizer: Tokenizer) -> None:
    written = tokenizer.decode(encode_chat(tokenizer, CONVERSATION, [TOOL]).ids)
    calls = (
        "<|tool_calls_section_begin|>"
        "<|tool_call_begin|>functions.book_table:0<|tool_call_argument_begin|>"
        '{"guests": 2}<|tool_call_end|>'
        "<|tool_call_begin|>functions.book_table:1<|tool_call_argument_begin|>"
        '{"guests": 3}<|tool_call_end|>'
        "<|tool_calls_section_end|>"
    )
    assert written == (
        "<|im_system|>tool_declare<|im_middle|>" + declare([TOOL], "json") + "<|im_end|>"
        "<|im_system|>system<|im_middle|>You keep the tables.<|im_end|>"
        "<|im_user|>user<|im_middle|>A table for two, and one for three.<|im_end|>"
        "<|im_assistant|>assistant<|im_middle|>" + calls + "<|im_end|>"
        "<|im_system|>book_table<|im_middle|>## Return of functions.book_table:0\n"
        '{"table": 5}<|im_end|>'
        "<|im_system|>book_table<|im_middle|>## Return of functions.book_table:1\n"
        '{"table": 6}<|im_end|>'
        "<|im_assistant|>assistant<|im_middle|>Tables 5 and 6.<|im_end|>"
        "<|im_user|>user<|im_middle|>One more for two.<|im_end|>"
        "<|im_assistant|>assistant<|im_middle|><|tool_calls_section_begin|>"
        "<|tool_call_begin|>functions.book_table:2<|tool_call_argument_begin|>"
        '{"guests": 2}<|tool_call_end|><|tool_calls_section_end|><|im_end|>'
        "<|im_system|>book_table<|im_middle|>## Return of functions.book_table:2\nfull<|im_end|>"
        "<|im_assistant|>assistant<|im_middle|>We are full.<|im_end|>"
    )


def learnt_text(tokenizer: Tokenizer, **how: Any) -> str:
    encoded = encode_chat(tokenizer, CONVERSATION, [TOOL], **how)
    return tokenizer.decode([i for i, learnt in zip(*encoded, strict=True) if learnt])


def test_only_the_assistant_s_own_tokens_are_learnt(tokenizer: Tokenizer) -> None:
    learnt = learnt_text(tokenizer)
    assert learnt.count("<|im_end|>") == 4
    assert learnt.startswith(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.book_table:0"
    )
    assert learnt.endswith("We are full.<|im_end|>")
    for theirs in ("Return of", "You keep", "A table", "assistant", "tool_declare"):
        assert theirs not in learnt


def written(tokenizer: Tokenizer, messages: list[dict[str, Any]], **how: Any) -> str:
    return tokenizer.decode(encode_chat(tokenizer, messages, **how).ids)


def test_a_conversation_without_a_system_message_is_given_that_of_the_format(
    tokenizer: Tokenizer,
) -> None:
    asked = {"role": "user", "content": "Hello?"}
    own = {"role": "system", "content": "You keep the tables."}
    plain = "<|im_user|>user<|im_middle|>Hello?<|im_end|>"
    released = f"<|im_system|>system<|im_middle|>{KIMI}<|im_end|>"
    assert written(tokenizer, [asked]) == released + plain
    assert written(tokenizer, [asked], chat=ChatFormat(system="")) == plain
    assert KIMI not in written(tokenizer, [own, asked])
    assert KIMI not in written(tokenizer, [own | {"role": "developer"}, asked])


def test_who_speaks_is_named(tokenizer: Tokenizer) -> None:
    messages = [
        {"role": "system", "name": "rules", "content": "a"},
        {"role": "user", "name": "Orla", "content": "b"},
        {"role": "assistant", "name": "Kim", "content": "c"},
    ]
    assert written(tokenizer, messages) == (
        "<|im_system|>rules<|im_middle|>a<|im_end|><|im_user|>Orla<|im_middle|>b<|im_end|>"
        "<|im_assistant|>Kim<|im_middle|>c<|im_end|>"
    )


THOUGHT: list[dict[str, Any]] = [
    {"role": "system", "content": "Keep tables."},
    {"role": "user", "content": "Two?"},
    {"role": "assistant", "reasoning": "first", "tool_calls": [call("look", "{}", "a")]},
    {"role": "tool", "tool_call_id": "a", "content": "free"},
    {"role": "assistant", "reasoning_content": "second", "content": "Yes."},
    {"role": "user", "content": "Three?"},
    {"role": "assistant", "reasoning_content": "third", "content": "No."},
]
THINKING = ChatFormat(thinking=True)


def test_reasoning_is_kept_within_a_turn_and_lost_behind_it(tokenizer: Tokenizer) -> None:
    """As Kimi K2-Thinking's released template has it."""
    calls = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0"
        "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>"
    )
    head = "<|im_system|>system<|im_middle|>Keep tables.<|im_end|>"
    head += "<|im_user|>user<|im_middle|>Two?<|im_end|>"
    answers, result = (
        "<|im_assistant|>assistant<|im_middle|>",
        ("<|im_system|>tool<|im_middle|>## Return of functions.look:0\nfree<|im_end|>"),
    )
    turn = head + f"{answers}<think>first</think>{calls}{result}"
    assert written(tokenizer, THOUGHT[:4], chat=THINKING) == turn
    ended = turn + f"{answers}<think>second</think>Yes.<|im_end|>"
    assert written(tokenizer, THOUGHT[:5], chat=THINKING) == ended
    behind = head + f"{answers}<think></think>{calls}{result}"
    behind += f"{answers}<think></think>Yes.<|im_end|><|im_user|>user<|im_middle|>Three?<|im_end|>"
    assert written(tokenizer, THOUGHT[:6], chat=THINKING) == behind
    last = behind + f"{answers}<think>third</think>No.<|im_end|>"
    assert written(tokenizer, THOUGHT, chat=THINKING) == last
    assert "first" not in written(tokenizer, THOUGHT)


def test_reasoning_may_stand_in_the_context_alone(tokenizer: Tokenizer) -> None:
    for learn in (True, False):
        made = encode_chat(tokenizer, THOUGHT, chat=THINKING, learn_reasoning=learn)
        learnt = tokenizer.decode([i for i, own in zip(*made, strict=True) if own])
        assert ("<think>third</think>" in learnt) == learn
        assert "third" in tokenizer.decode(made.ids)
        assert learnt.endswith("No.<|im_end|>")


def test_flags_take_single_messages_out_of_the_loss(tokenizer: Tokenizer) -> None:
    flags = [message["role"] == "assistant" for message in CONVERSATION]
    flags[2] = False
    learnt = learnt_text(tokenizer, train_turns=flags)
    assert "book_table:0" not in learnt
    assert "book_table:2" in learnt
    own = [message | ({"weight": 0} if n == 5 else {}) for n, message in enumerate(CONVERSATION)]
    encoded = encode_chat(tokenizer, own)
    text = tokenizer.decode([i for i, learnt in zip(*encoded, strict=True) if learnt])
    assert "Tables 5 and 6." not in text


def test_a_user_s_message_is_never_learnt_whatever_the_flags_say(tokenizer: Tokenizer) -> None:
    assert "A table" not in learnt_text(tokenizer, train_turns=[True] * len(CONVERSATION))


def test_tokens_of_a_beginning_are_the_beginning_of_the_tokens(tokenizer: Tokenizer) -> None:
    whole = encode_chat(tokenizer, CONVERSATION, [TOOL])
    header = prompt_for_answer(tokenizer)
    for n in range(len(CONVERSATION)):
        ids = encode_chat(tokenizer, CONVERSATION[:n], [TOOL]).ids
        assert whole.ids[: len(ids)] == ids
        if CONVERSATION[n]["role"] == "assistant":
            assert whole.ids[len(ids) : len(ids) + len(header)] == header


TRICKY = st.lists(st.sampled_from([*SPECIAL, "a", " ", "\n", "<|", "|>", "é", "日"]), max_size=8)


@settings(max_examples=examples(150), deadline=None)
@given(TRICKY.map("".join))
def test_text_that_spells_special_tokens_stays_text(text: str) -> None:
    tokenizer = _small_tokenizer()
    said = {"content": text, "tool_calls": [call(text, text, "c")], "reasoning_content": text}
    messages = [
        {"role": "user", "name": text, "content": text},
        {"role": "tool", "tool_call_id": text, "name": text, "content": text},
        {"role": "assistant", "name": text, **said},
    ]
    chat = ChatFormat(system=text or "-", thinking=True)
    ids = encode_chat(tokenizer, messages, chat=chat).ids
    special = set(tokenizer.special.values())
    assert [tokenizer.decode([i]) for i in ids if i in special] == [
        "<|im_system|>", "<|im_middle|>", "<|im_end|>",
        "<|im_user|>", "<|im_middle|>", "<|im_end|>",
        "<|im_system|>", "<|im_middle|>", "<|im_end|>",
        "<|im_assistant|>", "<|im_middle|>", "<think>", "</think>",
        "<|tool_calls_section_begin|>", "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>", "<|tool_call_end|>",
        "<|tool_calls_section_end|>", "<|im_end|>",
    ]  # fmt: skip
    assert tokenizer.decode(tokenizer.encode(text)) == text


_MADE: list[Tokenizer] = []


@pytest.mark.parametrize("value", ["R-1001", "Orla Fennick", "64.9", "EUR 12", "Atrium"])
def test_a_value_is_the_same_tokens_in_a_sentence_as_in_a_call(value: str) -> None:
    told = [f"please book {value} for me, thank you, and do tell me more of it"] * 9
    tokenizer = train_tokenizer([*told, f'{{"table": "{value}"}}'], vocab_size=340)
    own = tokenizer.encode(value)
    for text in (f"please book {value}, thank you", f'{{"table": "{value}"}}', f"({value})"):
        ids = tokenizer.encode(text)
        assert any(ids[n : n + len(own)] == own for n in range(len(ids))), text


@pytest.mark.parametrize("key", ["return_id", "price"])
def test_a_key_is_the_same_tokens_in_a_declaration_as_in_a_call(key: str) -> None:
    texts = [
        f"  {key}: number,",
        f"  {key}?: number,",
        f'{{"{key}": 3}}',
        f'{{"a": 1, "{key}": 3}}',
    ]
    tokenizer = train_tokenizer(texts * 5, vocab_size=300)
    own = tokenizer.encode(key)
    for text in texts:
        ids = tokenizer.encode(text)
        assert any(ids[n : n + len(own)] == own for n in range(len(ids))), text


def _small_tokenizer() -> Tokenizer:
    if not _MADE:
        _MADE.append(train_tokenizer(["<|im_end|> is text here"] * 3, vocab_size=300))
    return _MADE[0]


def test_answers_are_read_back_as_they_were_written(tokenizer: Tokenizer) -> None:
    for n, message in enumerate(CONVERSATION):
        if message["role"] != "assistant":
            continue
        before = encode_chat(tokenizer, CONVERSATION[:n]).ids + prompt_for_answer(tokenizer)
        ids = encode_chat(tokenizer, CONVERSATION[: n + 1]).ids[len(before) :]
        answer = parse_answer(tokenizer, ids)
        assert answer.broken is None
        assert answer.content == (message.get("content") or "")
        assert [c["function"] for c in answer.tool_calls] == [
            c["function"] for c in message.get("tool_calls", ())
        ]


def test_reasoning_is_read_back_as_it_was_written(tokenizer: Tokenizer) -> None:
    for n in (2, 4, 6):
        before = encode_chat(tokenizer, THOUGHT[:n], chat=THINKING).ids
        before += prompt_for_answer(tokenizer)
        whole = encode_chat(tokenizer, THOUGHT[: n + 1], chat=THINKING).ids
        assert whole[: len(before)] == before
        answer = parse_answer(tokenizer, whole[len(before) :])
        assert answer.broken is None
        assert answer.content == THOUGHT[n].get("content", "")
        assert answer.reasoning_content == ("first", "second", "third")[n // 2 - 1]
        assert len(answer.tool_calls) == len(THOUGHT[n].get("tool_calls", ()))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (["<think>", "so"], "reasoning has no end"),
        (["so", "<think>"], "out of place"),
        (["so", "</think>"], "out of place"),
        (["<think>", "so", "<|tool_calls_section_begin|>"], "out of place"),
        (["<|tool_call_begin|>", "functions.f:0"], "out of place"),
        (["<|tool_calls_section_begin|>"], "no end"),
        (
            ["<|tool_calls_section_begin|>", "<|tool_call_begin|>", "f",
             "<|tool_call_argument_begin|>", "{}", "<|tool_call_end|>",
             "<|tool_calls_section_end|>"],
            "not functions",
        ),
        (["hello", "<|im_user|>"], "out of place"),
    ],
)  # fmt: skip
def test_broken_answers_are_told(tokenizer: Tokenizer, written: list[str], told: str) -> None:
    ids = [i for part in written for i in _ids(tokenizer, part)]
    broken = parse_answer(tokenizer, ids).broken
    assert broken is not None
    assert told in broken


def _ids(tokenizer: Tokenizer, part: str) -> list[int]:
    return [tokenizer.special[part]] if part in tokenizer.special else tokenizer.encode(part)


def test_a_role_that_does_not_exist_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match="role 'narrator'"):
        encode_chat(tokenizer, [{"role": "narrator", "content": "once"}])


def test_typescript_declares_the_same_tool_in_fewer_characters() -> None:
    assert declare([TOOL], "typescript") == (
        "# Tools\n\n"
        "namespace functions {\n"
        "// Book a table.\n"
        "// Returns its number.\n"
        "type book_table = (_: {\n"
        "  // How many come.\n"
        "  guests: number,\n"
        "  when?: string,\n"
        '  room?: "hall" | "garden",\n'
        "  wishes?: Array<string | null>,\n"
        "  card?: {\n"
        '    "no-1"?: boolean,\n'
        "  },\n"
        "}) => any;\n"
        "}"
    )
    assert len(declare([TOOL], "typescript")) < len(declare([TOOL], "json"))


def test_references_within_a_schema_are_followed() -> None:
    """As pydantic and servers of tools write nested arguments."""
    place = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}
    parameters = {
        "type": "object",
        "$defs": {"place": place, "tree": tree},
        "properties": {
            "to": {"$ref": "#/$defs/place"},
            "both": {"allOf": [{"$ref": "#/$defs/place"}, {"type": "object"}]},
            "tree": {"$ref": "#/$defs/tree"},
            "lost": {"$ref": "#/$defs/none"},
            "far": {"$ref": "https://example.com/schema.json"},
        },
    }
    told = declare([{"function": {"name": "go", "parameters": parameters}}], "typescript")
    place_told = "{\n    city: string,\n  }"
    assert f"  to?: {place_told},\n" in told
    assert "city: string,\n    } & object" in told
    assert "  tree?: {\n    next?: any,\n  },\n" in told
    assert "  lost?: any,\n  far?: any,\n" in told


def test_a_schema_nested_without_end_is_cut() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    parameters = {"type": "object", "properties": {"a": schema}}
    tool = {"function": {"name": "f", "parameters": parameters}}
    assert "any" in declare([tool], "typescript")


def test_transformers_reads_the_same_tokens(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    text = "A table for two: naïve café, 日本"
    assert theirs.encode(text, add_special_tokens=False) == tokenizer.encode(text)
    assert load_tokenizer(tmp_path).encode(text) == tokenizer.encode(text)


def test_a_tokenizer_of_others_gets_the_template_s_tokens_behind_its_own(tmp_path: Path) -> None:
    backend = ByteLevelBPETokenizer()
    backend.train_from_iterator(
        ["a table for two " * 9], vocab_size=280, special_tokens=["<|endoftext|>"]
    )
    foreign = PreTrainedTokenizerFast(
        tokenizer_object=backend._tokenizer, eos_token="<|endoftext|>"
    )
    foreign.save_pretrained(tmp_path / "theirs")
    tokenizer = load_tokenizer(tmp_path / "theirs")
    text = "a table for <|im_end|> and <|endoftext|>"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert max(ids) < len(foreign), "text is written in their tokens alone"
    assert tokenizer.encode("a table") == foreign.encode("a table")
    assert sorted(tokenizer.special.values()) == list(range(len(foreign), tokenizer.size))
    tokenizer.save(tmp_path / "ours")
    assert load_tokenizer(tmp_path / "ours").special == tokenizer.special
    theirs = AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert theirs.convert_tokens_to_ids("<|im_end|>") == tokenizer.special["<|im_end|>"]
    ended = encode_chat(tokenizer, CONVERSATION, [TOOL]).ids
    assert tokenizer.special["<|im_end|>"] in ended


def test_tokenizers_that_cannot_serve_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match="is no tokenizer"):
        load_tokenizer(tmp_path)
    with pytest.raises(ConfigError, match="vocab_size must be at least"):
        train_tokenizer(["a"], vocab_size=100)


def test_a_tokenizer_of_an_earlier_version_stays_as_it_is(tmp_path: Path) -> None:
    """Its model has no embedding for tokens behind its own."""
    earlier = Backend(models.BPE({chr(97 + n): n for n in range(5)}, []))
    earlier.add_special_tokens([token for token in SPECIAL if token not in THOUGHTS])
    earlier.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.size == earlier.get_vocab_size(with_added_tokens=True)
    assert not tokenizer.can_think
    tokenizer.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").fingerprint == tokenizer.fingerprint
    assert train_tokenizer(["a"], vocab_size=280).can_think
