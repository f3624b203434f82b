"""Text to tokens. Special tokens come from templates alone: text that spells one stays text."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers

from records.errors import ConfigError
from records.files import write_atomic

SPECIAL = (
    "[BOS]",
    "[EOS]",
    "[PAD]",
    "<|im_end|>",
    "<|im_user|>",
    "<|im_assistant|>",
    "<|im_system|>",
    "<|im_middle|>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<think>",
    "</think>",
)
"""Kimi K2's, as released: what its chat template is made of."""

THOUGHTS = SPECIAL[-2:]
"""A tokenizer that has all the others and not these is of an earlier version, and stays so: its
model has no rows for them, and cannot think."""

IN_ANSWERS = (*(token for token in SPECIAL if token.startswith("<|tool_call")), *THOUGHTS)
"""Written to files as tokens that are not special. Servers leave special tokens out of an answer
before they look for calls and reasoning in it, so with these a model's calls would be gone."""

WORDS = "|".join(
    (
        r" +(?= )",  # indentation, but for the space before what is indented
        r" ?(?>[^\P{L}\p{Lu}]+)(?![\p{L}\p{N}_:?\"])",
        r"\p{Lu}?[^\P{L}\p{Lu}]+",
        r"\p{Lu}+",
        r"\p{N}{1,2}",
        r" ?[^\p{L}\p{N} ]+",
        r" ",
    )
)
"""What a new tokenizer merges within. Only plain words take the space before them: names, ids,
numbers and keys are the same tokens after a space as after a quote or a bracket, so that a model
can copy them out of a sentence into a call."""

FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"


def _byte_alphabet() -> dict[str, int]:
    """Letter -> byte of byte-level BPE (GPT-2): printable bytes stand for themselves, the others
    take the letters from U+0100 on, in their order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + n) for n in range(len(others))]
    return dict(zip(letters, [*printable, *others], strict=True))


_BYTES = _byte_alphabet()


class Tokenizer:
    """A Hugging Face `tokenizer.json`, with K2's special tokens added behind its own where it has
    none, and special where they are not: the chat template needs them."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        there = backend.get_vocab(with_added_tokens=True)
        earlier = all(token in there for token in SPECIAL if token not in THOUGHTS)
        wanted = [t for t in SPECIAL if t in there or not (earlier and t in THOUGHTS)]
        backend.add_special_tokens([AddedToken(token, normalized=False) for token in wanted])
        backend.encode_special_tokens = True  # what spells a special token is text
        self._backend = backend
        numbers = backend.get_vocab(with_added_tokens=True)
        self.special = {token: numbers[token] for token in wanted}
        self.size = max(numbers.values()) + 1
        """Rows that an embedding needs: some tokenizers leave numbers out."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_json, (self.fingerprint,)

    @property
    def fingerprint(self) -> str:
        """All that decides how it writes a text."""
        return self._backend.to_str()

    @property
    def can_think(self) -> bool:
        return all(token in self.special for token in THOUGHTS)

    @property
    def end(self) -> int:
        """Ends a document of plain text."""
        return self.special["[EOS]"]

    def encode(self, text: str) -> list[int]:
        return self._backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Special tokens included."""
        return self._backend.decode(list(ids), skip_special_tokens=False)

    def bytes_of(self, token: int) -> bytes | None:
        """What a token of byte-level BPE stands for, which may be a part of a letter; None for a
        number that is no token, or for a token spelt otherwise."""
        spelt = self._backend.id_to_token(token)
        if spelt is None or not all(letter in _BYTES for letter in spelt):
            return None
        return bytes(_BYTES[letter] for letter in spelt)

    def save(self, folder: Path, **more: Any) -> None:
        """As a directory that transformers' AutoTokenizer loads; `more` are further settings."""
        folder.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "[BOS]",
            "eos_token": "[EOS]",
            "pad_token": "[PAD]",
            "clean_up_tokenization_spaces": False,
            **more,
        }
        content = json.loads(self.fingerprint)
        for token in content["added_tokens"]:
            token["special"] = token["special"] and token["content"] not in IN_ANSWERS
        write_atomic(folder / FILE, json.dumps(content, ensure_ascii=False).encode())
        write_atomic(folder / SETTINGS, json.dumps(settings, indent=2).encode())


def _of_json(content: str) -> Tokenizer:
    """As it was in the process that wrote `fingerprint`."""
    return Tokenizer(tokenizers.Tokenizer.from_str(content))


def load_tokenizer(folder: Path) -> Tokenizer:
    """ConfigError for a folder without a readable `tokenizer.json`."""
    path = folder / FILE
    try:
        backend = tokenizers.Tokenizer.from_str(path.read_text())
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}); a tokenizer in another form is written so "
            "by transformers' AutoTokenizer.from_pretrained(...).save_pretrained(folder)"
        ) from error
    except Exception as error:  # the library raises a bare Exception
        raise ConfigError(f"{path} is no tokenizer: {error}") from error
    return Tokenizer(backend)


def train_tokenizer(texts: Iterable[str], *, vocab_size: int) -> Tokenizer:
    """Byte-level BPE: every text can be written, and comes back as it was."""
    least = len(SPECIAL) + 256
    if vocab_size < least:
        raise ConfigError(
            f"vocab_size must be at least {least} (bytes and special tokens), got {vocab_size}"
        )
    backend = tokenizers.Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(WORDS), "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([words, as_bytes])
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(_nonempty(texts), trainer)
    return Tokenizer(backend)


def _nonempty(texts: Iterable[str]) -> Iterator[str]:
    yield from (text for text in texts if text)
