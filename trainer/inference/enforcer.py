"""Constrained decoding: an answer that keeps the template and calls declared tools validly.

Kimi K2 calls it the enforcer. A token is asked about before it is taken; the likeliest one that
may stand there is. What is enforced of arguments: see `trainer.inference.json_prefix`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from records.errors import ConfigError
from trainer.data.chat import END, THINK, THINK_END
from trainer.data.tokenizer import Tokenizer
from trainer.inference.json_prefix import Fit, as_bytes, fit_of
from trainer.inference.json_schema import Schema

SECTION, CALL, ARGUMENTS, CALL_END, SECTION_END = (
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
)

Region = Literal["begin", "thought", "content", "section", "name", "arguments", "between", "closed"]


def check_spelling(tokenizer: Tokenizer, *, where: str) -> None:
    """ConfigError for a tokenizer, from `where`, that cannot write every letter of a call: what is
    enforced is told by the bytes of tokens."""
    spelt = {tokenizer.bytes_of(token) for token in range(tokenizer.size)}
    if missing := [byte for byte in range(32, 127) if bytes([byte]) not in spelt]:
        raise ConfigError(
            f"{where}: constrained decoding needs a tokenizer of byte-level BPE; this one has no "
            f"tokens for {len(missing)} letters, such as {chr(missing[0])!r}"
        )


class Enforcer:
    """Follows one answer token by token."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        tools: Sequence[Mapping[str, Any]],
        *,
        calls_before: int = 0,
        max_calls: int = 8,
        thinking: bool = False,
    ) -> None:
        """`tools` in OpenAI's form; `calls_before`: calls of the conversation so far, which the
        template counts; `thinking`: whether answers begin with their reasoning."""
        self._tokenizer = tokenizer
        self._marks = {number: token for token, number in tokenizer.special.items()}
        self._schemas = {
            tool["function"]["name"]: schema
            for tool in tools
            if (schema := _arguments(tool["function"].get("parameters")))
        }
        """By tool; one that no arguments could satisfy cannot be called."""
        self._calls, self._most = calls_before, calls_before + max_calls
        self._region: Region = "begin" if thinking else "content"
        self._text = ""
        """What is being written, a letter a byte."""
        self._tool = ""

    def allows(self, token: int) -> bool:
        """Whether the token may come next. The end token among others."""
        mark = self._marks.get(token)
        if mark is not None:
            return mark in self._marks_here()
        more = self._letters(token)
        match self._region:
            case "thought" | "content":
                return bool(more)
            case "name":
                text = self._text + more
                return bool(more) and any(name.startswith(text) for name in self._names())
            case "arguments":
                return bool(more) and self._fit(more) != "no"
            case _:
                return False

    def take(self, token: int) -> None:
        """The token came next."""
        mark = self._marks.get(token)
        if mark is None:
            self._text += self._letters(token)
            return
        if mark == ARGUMENTS:
            self._tool = self._names()[self._text]
        elif mark == CALL_END:
            self._calls += 1
        regions: dict[str, Region] = {
            THINK: "thought",
            THINK_END: "content",
            SECTION: "section",
            CALL: "name",
            ARGUMENTS: "arguments",
            CALL_END: "between",
            SECTION_END: "closed",
        }
        self._region = regions.get(mark, self._region)
        self._text = ""

    def _marks_here(self) -> Sequence[str]:
        match self._region:
            case "begin":
                return (THINK,)
            case "thought":
                return (THINK_END,)
            case "content":
                ends = (END,) if self._text.strip() else ()
                return (*ends, SECTION) if self._schemas else ends
            case "section":
                return (CALL,)
            case "name":
                return (ARGUMENTS,) if self._text in self._names() else ()
            case "arguments":
                return (CALL_END,) if self._fit() == "whole" else ()
            case "between":
                return (CALL, SECTION_END) if self._calls < self._most else (SECTION_END,)
            case "closed":
                return (END,)

    def _names(self) -> dict[str, str]:
        """The next call's id -> the tool."""
        return {as_bytes(f"functions.{name}:{self._calls}"): name for name in self._schemas}

    def _fit(self, more: str = "") -> Fit:
        return fit_of(self._text + more, self._schemas[self._tool])

    def _letters(self, token: int) -> str:
        return (self._tokenizer.bytes_of(token) or b"").decode("latin-1")


def _arguments(parameters: Any) -> Schema | None:
    """Of an object under them, whatever else they allow; None where there can be none."""
    root = {**(parameters or {}), "type": "object"}
    schema = Schema(root)
    return schema if schema.alternatives(root) else None
