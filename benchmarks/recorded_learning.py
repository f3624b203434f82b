"""What the trainer makes of exported conversations: tokens read back, a run, its losses."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.measured import ROOT
from records.chat.declarations import declare
from records.chat.k2 import END, text_of
from records.errors import SynthError
from trainer.data.chat import ASSISTANT, encode_chat, parse_answer
from trainer.data.chat_format import ChatFormat, format_of
from trainer.data.conversations import TrainingConversation
from trainer.data.corpus import make_corpus
from trainer.data.packing import Packer
from trainer.data.row_length import RowLimits
from trainer.data.sources import CorpusConfig, samples_of
from trainer.data.tokenizer import Tokenizer
from trainer.model.exchange import import_with_tokenizer
from trainer.optim.loss import summed_loss
from trainer.training.run_folder import MODEL

Message = Mapping[str, Any]


@dataclass
class ReadBack:
    """Counts over conversations whose tokens were read back."""

    conversations: int = 0
    messages: int = 0
    """Of the assistant."""
    calls: int = 0
    thoughts: int = 0
    """Messages of the assistant that came with one."""
    lost: Counter[str] = field(default_factory=Counter)
    """What does not come back as it was, by kind: `content`, `calls`, `broken`, `tools`,
    `reasoning`."""
    longest: int = 0
    """Tokens of the longest conversation."""


def conversations_of(source: CorpusConfig) -> Iterator[TrainingConversation]:
    """Every conversation of a source, held-out ones included."""
    for sample in samples_of(source, "sft"):
        assert isinstance(sample.body, TrainingConversation), "an export has conversations alone"
        yield sample.body


def read_back(
    conversations: Iterable[TrainingConversation], tokenizer: Tokenizer, chat: ChatFormat
) -> ReadBack:
    """Encode each conversation as in training, and parse its tokens as in inference."""
    found = ReadBack()
    for one in conversations:
        encoded = encode_chat(
            tokenizer,
            one.messages,
            one.tools,
            train_turns=one.train_turns,
            chat=chat,
        )
        found.conversations += 1
        found.longest = max(found.longest, len(encoded.ids))
        said = [message for message in one.messages if message["role"] == "assistant"]
        answers = list(_answers(tokenizer, encoded.ids))
        if len(answers) != len(said):
            raise SynthError(f"{len(said)} messages of the assistant came back as {len(answers)}")
        for message, ids in zip(said, answers, strict=True):
            _compare(found, tokenizer, message, ids)
        if one.tools and declare(one.tools, chat.declarations) not in tokenizer.decode(encoded.ids):
            found.lost["tools"] += 1
    return found


def _compare(found: ReadBack, tokenizer: Tokenizer, message: Message, ids: Sequence[int]) -> None:
    answer = parse_answer(tokenizer, ids)
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    found.messages += 1
    found.calls += len(calls)
    if answer.broken:
        found.lost["broken"] += 1
    if answer.content != text_of(message):
        found.lost["content"] += 1
    back = [call["function"] for call in answer.tool_calls]
    if [(c["name"], c["arguments"]) for c in back] != [(c["name"], c["arguments"]) for c in calls]:
        found.lost["calls"] += 1
    if thought := message.get("reasoning_content"):
        found.thoughts += 1
        if thought not in tokenizer.decode(ids):
            found.lost["reasoning"] += 1


def _answers(tokenizer: Tokenizer, ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """The tokens of each message of the assistant, from behind its header to its end."""
    special = tokenizer.special
    at = 0
    while special[ASSISTANT[0]] in ids[at:]:
        header = ids.index(special[ASSISTANT[0]], at)
        begin = ids.index(special[ASSISTANT[-1]], header) + 1
        at = ids.index(special[END], begin) + 1
        yield ids[begin:at]


def arguments_in(messages: Iterable[Message]) -> list[Any]:
    """Arguments of all calls, as text where they are stored as text."""
    return [call["function"]["arguments"] for m in messages for call in m.get("tool_calls") or ()]


def run_trainer(command: str, config: Path, settings: Mapping[str, Any]) -> None:
    """`python -m trainer COMMAND CONFIG` in a process of its own. SynthError with its last words
    where it fails."""
    config.write_text(toml_of(settings))
    done = subprocess.run(
        [sys.executable, "-m", "trainer", command, str(config)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[-8:])
        raise SynthError(f"trainer {command} {config} ended with {done.returncode}: {said}")


def toml_of(settings: Mapping[str, Any]) -> str:
    """Values that are tables follow the others, each under its name."""
    plain = {key: value for key, value in settings.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for key, value in settings.items():
        if isinstance(value, Mapping):
            lines += [f"\n[{key}]", *(f"{name} = {_value(own)}" for name, own in value.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {_value(own)}' for key, own in value.items())}}}"
    return json.dumps(str(value)) if isinstance(value, Path) else json.dumps(value)


@torch.no_grad()
def held_out_loss(
    run: Path, sources: Sequence[CorpusConfig], row_tokens: int, folder: Path
) -> tuple[float, int]:
    """(nats a learnt token, learnt tokens) of a finished run's model on `sources`, by the trainer's
    own tokens, rows and loss, written as in its training. `folder` is for the tokens."""
    model, tokenizer = import_with_tokenizer(run / MODEL)
    chat, limits = format_of(run / MODEL), RowLimits(row_tokens, longer="leave_out")
    corpus = make_corpus(sources, tokenizer, folder, chat=chat, limits=limits)
    packer = Packer(corpus, row_tokens, seed=0, pad=tokenizer.special["[PAD]"])
    total, targets = 0.0, 0
    for batch, _ in islice(packer.batches(1), len(packer.rows_of(0))):
        hidden = model(batch.ids_BT, documents_BT=batch.documents_BT).hidden_BTD
        total += summed_loss(model, hidden, batch.targets_BT).item()
        targets += batch.num_targets
    return total / targets, targets
