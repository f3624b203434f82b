"""What the policy drew stays as it was drawn, and is all that it is conditioned on."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from records.chat.k2 import END, ChatMessage
from records.errors import ConfigError
from tests.trainer.configs import small
from tests.trainer.inference.test_routes import routes_of
from trainer.data.chat import AssistantAnswer, encode_chat, prompt_for_answer
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.episode_tokens import ChangedConversationError, EpisodeTokens
from trainer.inference.policies import ModelPolicy, PolicyRequest
from trainer.inference.sampler import AnswerDraft
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model, import_model
from trainer.model.initialization import new_decoder

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "description": "Find it.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
        },
    }
]

OPENING: list[ChatMessage] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Where is it?"},
]

RANDOM = Sampling(temperature=1.0, max_tokens=14)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["where is it? here it is, there it was. "] * 9, vocab_size=300)


@pytest.fixture(scope="module")
def folders(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two models of one shape."""
    made = []
    for seed in (0, 1):
        shape = small(vocab_size=tokenizer.size, max_positions=2048, init_std=0.05)
        folder = tmp_path_factory.mktemp(f"model_{seed}")
        export_model(new_decoder(shape, seed), folder)
        tokenizer.save(folder)
        made.append(folder)
    return made


def policy_of(folder: Path, sampling: Sampling = RANDOM, **other: Any) -> ModelPolicy:
    return ModelPolicy(folder, sampling, slots=3, slot_tokens=600, device="cpu", **other)


def said(tokens: EpisodeTokens, tokenizer: Tokenizer) -> dict[str, Any]:
    """The last answer as an environment writes it down."""
    answer, before = tokens.answer(tokenizer), len(tokens.messages)
    message: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": f"call_{before}_{n}", "type": "function", "function": call["function"]}
            for n, call in enumerate(answer.tool_calls)
        ]
    return message


def write(tokens: EpisodeTokens, tokenizer: Tokenizer, ids: list[int], **about: Any) -> None:
    """As if the policy had drawn these."""
    draft = tokens.draft()
    draft.ids = ids
    for column in (draft.logprobs, draft.model_logprobs, draft.versions):
        column.extend([0] * len(ids))
    draft.finish_reason = about.get("finish_reason", "stop")
    tokens.keep(draft, tokenizer)


def opened(tokenizer: Tokenizer, messages: list[ChatMessage]) -> EpisodeTokens:
    tokens = EpisodeTokens()
    tokens.open_answer(tokenizer, messages, TOOLS, chat=ChatFormat(), seed=1)
    return tokens


def called(tokenizer: Tokenizer, name: str) -> list[int]:
    mark = tokenizer.special
    return [
        *tokenizer.encode("So"),
        mark["<|tool_calls_section_begin|>"],
        mark["<|tool_call_begin|>"],
        *tokenizer.encode(name),
        mark["<|tool_call_argument_begin|>"],
        *tokenizer.encode('{"id": "it"}'),
        mark["<|tool_call_end|>"],
        mark["<|tool_calls_section_end|>"],
        mark[END],
    ]


def test_honest_answers_and_their_deltas_are_the_encoding_of_the_whole(
    tokenizer: Tokenizer,
) -> None:
    tokens = opened(tokenizer, OPENING)
    messages = [*OPENING]
    for number in range(3):
        write(tokens, tokenizer, called(tokenizer, f"functions.find:{number}"))
        answer = said(tokens, tokenizer)
        result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "here"}
        asked = {"role": "user", "content": f"and {END} there?"}
        messages += [answer, {**result, "name": "find"}, asked]
        tokens.open_answer(tokenizer, messages, TOOLS, chat=ChatFormat(), seed=number)
    whole = encode_chat(tokenizer, messages, TOOLS)
    assert tokens.ids == whole.ids + prompt_for_answer(tokenizer)
    assert tokens.drawn[: len(whole.ids)] == whole.learnt


def test_what_was_drawn_is_never_encoded_again(tokenizer: Tokenizer) -> None:
    """Letter by letter, where the tokenizer merges."""
    one_by_one = [token for letter in "here it is" for token in tokenizer.encode(letter)]
    assert tokenizer.encode("here it is") != one_by_one
    tokens = opened(tokenizer, OPENING)
    at = len(tokens.ids)
    write(tokens, tokenizer, [*one_by_one, tokenizer.special[END]])
    messages = [*OPENING, said(tokens, tokenizer), {"role": "user", "content": "where?"}]
    assert messages[2]["content"] == "here it is"
    tokens.open_answer(tokenizer, messages, TOOLS, chat=ChatFormat(), seed=1)
    assert tokens.ids[at:][: len(one_by_one)] == one_by_one
    whole = encode_chat(tokenizer, messages, TOOLS).ids
    assert tokens.ids != whole + prompt_for_answer(tokenizer)
    assert tokenizer.decode(tokens.ids) == tokenizer.decode(whole + prompt_for_answer(tokenizer))


def test_an_answer_that_was_cut_or_breaks_the_template_stays_and_is_closed(
    tokenizer: Tokenizer,
) -> None:
    mark = tokenizer.special
    cut = [
        *tokenizer.encode("So"),
        mark["<|tool_calls_section_begin|>"],
        mark["<|tool_call_begin|>"],
    ]
    broken = [mark["<|tool_call_end|>"], *tokenizer.encode("it"), mark[END]]
    for drawn, reason, closing in ((cut, "length", [mark[END]]), (broken, "stop", [])):
        tokens = opened(tokenizer, OPENING)
        at = len(tokens.ids)
        write(tokens, tokenizer, drawn, finish_reason=reason)
        assert tokens.answer(tokenizer).broken is not None
        assert tokens.answers == [(at, at + len(drawn), reason)]
        messages = [*OPENING, said(tokens, tokenizer), {"role": "user", "content": "what?"}]
        tokens.open_answer(tokenizer, messages, TOOLS, chat=ChatFormat(), seed=1)
        behind = encode_chat(tokenizer, [*OPENING, messages[-1]], TOOLS).ids
        behind = behind[len(encode_chat(tokenizer, OPENING, TOOLS).ids) :]
        expected = [*drawn, *closing, *behind, *prompt_for_answer(tokenizer)]
        assert tokens.ids[at:] == expected
        assert tokens.drawn[at:] == [n < len(drawn) for n in range(len(expected))]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda m: [{**m[0], "content": "You harm."}, *m[1:]], r"message 0 .* is not what it was"),
        (lambda m: [m[0], {"role": "user", "content": "!"}, *m[1:]], r"message 1 .*user"),
        (lambda m: m[:1], r"has 1 messages and had 2"),
        (lambda m: m[:2], r"missing.* is not the answer that was drawn"),
        (lambda m: [*m[:2], {**m[2], "content": "Nowhere."}, m[3]], r"message 2 .* answer"),
        (lambda m: [*m, {"role": "assistant", "content": "x"}], r"message 4 .* was not drawn"),
    ],
)
def test_a_conversation_that_was_changed_from_outside_is_told(
    tokenizer: Tokenizer, change: Any, told: str
) -> None:
    tokens = opened(tokenizer, OPENING)
    write(tokens, tokenizer, called(tokenizer, "functions.find:0"))
    messages = [*OPENING, said(tokens, tokenizer), {"role": "user", "content": "and?"}]
    before = tokens.to_json()
    with pytest.raises(ChangedConversationError, match=told):
        tokens.open_answer(tokenizer, change(messages), TOOLS, chat=ChatFormat(), seed=1)
    with pytest.raises(ChangedConversationError, match="tools or the tokenizer"):
        tokens.open_answer(tokenizer, messages, [], chat=ChatFormat(), seed=1)
    assert tokens.to_json() == before
    tokens.open_answer(tokenizer, messages, TOOLS, chat=ChatFormat(), seed=1)
    with pytest.raises(ChangedConversationError, match=r"message 4 .* came while an answer"):
        tokens.open_answer(tokenizer, [*messages, messages[-1]], TOOLS, chat=ChatFormat(), seed=1)


def test_arguments_that_were_read_as_json_are_no_change(tokenizer: Tokenizer) -> None:
    tokens = opened(tokenizer, OPENING)
    write(tokens, tokenizer, called(tokenizer, "functions.find:0"))
    answer = said(tokens, tokenizer)
    answer["tool_calls"][0]["function"]["arguments"] = {"id": "it"}
    messages = [*OPENING, answer, {"role": "user", "content": "and?"}]
    tokens.open_answer(tokenizer, messages, TOOLS, chat=ChatFormat(), seed=1)


def play(policy: ModelPolicy, tokens: EpisodeTokens, turns: int, **pause: Any) -> list[ChatMessage]:
    """A conversation with somebody who asks the same again; with `pause` it goes on at once."""
    messages = [*OPENING]
    for turn in range(turns):
        request = PolicyRequest(messages, TOOLS, seed=turn, tokens=tokens)
        while policy.draw([request], **pause) == [None]:
            pass
        messages += [said(tokens, policy.tokenizer), {"role": "user", "content": "where is it?"}]
    return messages


@pytest.mark.parametrize("constrained", [False, True])
def test_the_policy_is_conditioned_on_what_it_drew(folders: list[Path], constrained: bool) -> None:
    """Log-probabilities of all turns from one training forward over the kept tokens, 1e-4 in fp32;
    without a grammar, temperature 1 draws from the model itself."""
    policy, tokens = policy_of(folders[0], constrained=constrained, routes=True), EpisodeTokens()
    play(policy, tokens, 3)
    assert [answer.finish_reason for answer in tokens.answers] == ["length"] * 3 or constrained
    model = import_model(folders[0]).eval()
    ids = torch.tensor(tokens.ids)
    with torch.no_grad():
        logprobs = model.logits(model(ids[None]).hidden_BTD)[0].log_softmax(-1)
    for place, drawn in enumerate(tokens.drawn):
        if drawn:
            own = logprobs[place - 1, tokens.ids[place]].item()
            assert tokens.model_logprobs[place] == pytest.approx(own, abs=1e-4)
            if not constrained:
                assert tokens.logprobs[place] == pytest.approx(own, abs=1e-4)
            assert tokens.versions[place] == 0
        else:
            assert tokens.logprobs[place] is tokens.model_logprobs[place] is None
    assert tokens.routes is not None
    fed = len(tokens.routes)
    assert fed == tokens.answers[-1].end - 1  # all but the last drawn token
    chosen = routes_of(model, ids)[:fed]
    assert torch.equal(tokens.routes.sort(-1).values, chosen.sort(-1).values)
    assert sum(tokens.drawn) == sum(answer.end - answer.begin for answer in tokens.answers)


def test_a_turn_reads_only_what_is_new(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was drawn is in the slot as it stands in the next prompt."""
    policy, tokens, fed = policy_of(folders[0]), EpisodeTokens(), list[int]()
    extend = Decoder.extend

    def counted(model: Decoder, ids: torch.Tensor, counts: torch.Tensor, *rest: Any) -> Any:
        fed.append(int(counts.sum()))
        return extend(model, ids, counts, *rest)

    monkeypatch.setattr(Decoder, "extend", counted)
    messages = play(policy, tokens, 1)
    first, answer = len(tokens.ids), tokens.answers[0]
    assert sum(fed) == answer.end - 1
    fed.clear()
    policy.answers([PolicyRequest(messages, TOOLS, seed=1, tokens=tokens)])
    assert fed[0] == tokens.answers[1].begin - (answer.end - 1)
    assert tokens.answers[1].begin > first


@pytest.mark.parametrize("constrained", [False, True])
def test_a_paused_episode_goes_on_elsewhere_to_the_same_tokens(
    folders: list[Path], constrained: bool
) -> None:
    """Paused every four tokens, and each time stored and taken up by a policy that never saw it."""
    policy, whole = policy_of(folders[0], constrained=constrained, routes=True), EpisodeTokens()
    play(policy, whole, 2)
    messages, tokens, pauses = [*OPENING], EpisodeTokens(), 0
    others = [policy_of(folders[0], constrained=constrained, routes=True) for _ in range(2)]
    for turn in range(2):
        while True:
            tokens, other = EpisodeTokens.of_json(tokens.to_json()), others[pauses % 2]
            request = PolicyRequest(messages, TOOLS, seed=turn, tokens=tokens)
            [answer] = other.draw([request], budget=4)
            if answer is not None:
                break
            pauses += 1
        messages += [said(tokens, policy.tokenizer), {"role": "user", "content": "where is it?"}]
    assert pauses >= 4
    assert (tokens.ids, tokens.answers) == (whole.ids, whole.answers)
    for one, other in ((tokens.logprobs, whole.logprobs), (tokens.versions, whole.versions)):
        assert [value or 0 for value in one] == pytest.approx(
            [value or 0 for value in other], abs=1e-4
        )
    assert tokens.routes is not None
    assert whole.routes is not None
    assert torch.equal(tokens.routes.sort(-1).values, whole.routes.sort(-1).values)


def test_a_flag_pauses_before_the_next_pass_and_loses_nothing(folders: list[Path]) -> None:
    policy = policy_of(folders[0])
    whole = [EpisodeTokens() for _ in range(5)]
    kept = [EpisodeTokens() for _ in range(5)]
    policy.answers([PolicyRequest(OPENING, TOOLS, n, t) for n, t in enumerate(whole)])
    passes = iter(range(100))
    requests = [PolicyRequest(OPENING, TOOLS, n, t) for n, t in enumerate(kept)]
    made = policy.draw(requests, paused=lambda: next(passes) >= 6)
    assert made == [None] * 5
    assert [sum(tokens.drawn) for tokens in kept] == [6, 6, 6, 0, 0]  # three slots
    policy.answers(requests)
    for one, other in zip(kept, whole, strict=True):
        assert one.ids == other.ids
    with pytest.raises(ConfigError, match="a request with tokens"):
        policy.draw([PolicyRequest(OPENING, TOOLS, 0)], budget=1)
    with pytest.raises(ValueError, match="at least one token, got 0"):
        policy.draw([PolicyRequest(OPENING, TOOLS, 0, EpisodeTokens())], budget=0)


def test_after_other_weights_an_episode_goes_on_with_their_version(folders: list[Path]) -> None:
    """What the slots held is dropped: the second half is what the new model says of it all."""
    policy, tokens = policy_of(folders[0], routes=True), EpisodeTokens()
    request = PolicyRequest(OPENING, TOOLS, 0, tokens)
    assert policy.draw([request], budget=5) == [None]
    before = tokens.routes
    policy.load(folders[1], version=3)
    assert policy.draw([request]) != [None]
    at = tokens.answers[0].begin
    drawn = len(tokens.ids) - 1  # behind the last one stands what closes it
    assert tokens.versions[at:drawn] == [0] * 5 + [3] * 9
    ids = torch.tensor([tokens.ids])
    read_by = []
    for folder, version in zip(folders, (0, 3), strict=True):
        model = import_model(folder).eval()
        read_by.append(routes_of(model, ids[0]).sort(-1).values)
        with torch.no_grad():
            logprobs = model.logits(model(ids).hidden_BTD)[0].log_softmax(-1)
        for place in range(at, drawn):
            own = logprobs[place - 1, tokens.ids[place]].item()
            same = tokens.logprobs[place] == pytest.approx(own, abs=1e-4)
            assert same == (tokens.versions[place] == version)
    assert before is not None
    assert tokens.routes is not None
    assert torch.equal(before.sort(-1).values, read_by[0][: len(before)])
    now = tokens.routes.sort(-1).values
    assert torch.equal(now, read_by[1][: len(now)])  # the whole, as the later ones read it
    assert not torch.equal(now[: len(before)], read_by[0][: len(before)])


def test_a_prompt_without_room_is_answered_by_silence_and_goes_on(folders: list[Path]) -> None:
    policy, tokens = policy_of(folders[0]), EpisodeTokens()
    long = [{"role": "user", "content": "where is it? " * 400}]
    [answer] = policy.answers([PolicyRequest(long, (), 0, tokens)])
    assert answer == AssistantAnswer("", [], None)
    assert tokens.answers == [(len(tokens.ids) - 1, len(tokens.ids) - 1, "no_room")]
    assert not any(tokens.drawn)
    again = [*long, said(tokens, policy.tokenizer), {"role": "user", "content": "?"}]
    assert policy.answers([PolicyRequest(again, (), 0, tokens)]) == [AssistantAnswer("", [], None)]
    assert len(tokens.answers) == 2


def test_stored_tokens_come_back_as_they_were_and_others_are_refused(tokenizer: Tokenizer) -> None:
    tokens = opened(tokenizer, OPENING)
    draft = AnswerDraft([], 0, ids=[5], logprobs=[-0.1], model_logprobs=[-1 / 3], versions=[2])
    draft.routes = torch.arange(24, dtype=torch.int16).view(4, 2, 3)
    tokens.keep(draft, tokenizer)
    again = EpisodeTokens.of_json(tokens.to_json())
    assert again.routes is not None
    assert torch.equal(again.routes, draft.routes)
    again.routes = tokens.routes
    assert again == tokens
    tokens.routes = torch.zeros(5, 0, 2, dtype=torch.int16)  # of a model without experts
    none = EpisodeTokens.of_json(tokens.to_json()).routes
    assert none is not None
    assert (none.shape, none.dtype) == ((5, 0, 2), torch.int16)
    told = json.loads(tokens.to_json())
    for wrong in ("", "[]", json.dumps({**told, "format": 9}), json.dumps({**told, "ids": [1]})):
        with pytest.raises(ConfigError, match="no stored tokens of an episode"):
            EpisodeTokens.of_json(wrong)


def test_a_turn_of_a_model_that_thinks_is_a_sequence_of_its_own(tokenizer: Tokenizer) -> None:
    """Within a turn thoughts stay as drawn; the next turn begins as a server renders it."""
    chat, tokens, messages = ChatFormat(thinking=True), EpisodeTokens(), [*OPENING]
    mark = tokenizer.special
    thought = [mark["<think>"], *tokenizer.encode("hm"), mark["</think>"]]
    for number, more in enumerate(("where?", "there?")):
        tokens.open_answer(tokenizer, messages, TOOLS, chat=chat, seed=0)
        assert len(tokens.earlier) == number
        assert tokens.ids == encode_chat(tokenizer, messages, TOOLS, chat=chat).ids + (
            prompt_for_answer(tokenizer)
        )
        write(tokens, tokenizer, [*thought, *called(tokenizer, f"functions.find:{number}")])
        answer: dict[str, Any] = {**said(tokens, tokenizer), "reasoning_content": "hm"}
        given = answer["tool_calls"][0]["id"]
        messages += [answer, {"role": "tool", "tool_call_id": given, "content": "here"}]
        tokens.open_answer(tokenizer, messages, TOOLS, chat=chat, seed=0)
        whole = encode_chat(tokenizer, messages, TOOLS, chat=chat)
        assert tokens.ids == whole.ids + prompt_for_answer(tokenizer)
        write(tokens, tokenizer, [*thought, *tokenizer.encode("here"), mark[END]])
        answer = {**said(tokens, tokenizer), "reasoning_content": "hm"}
        messages += [answer, {"role": "user", "content": more}]
    again = EpisodeTokens.of_json(tokens.to_json())
    assert again == tokens
    assert [len(own.answers) for own in (*again.earlier, again)] == [2, 2]
