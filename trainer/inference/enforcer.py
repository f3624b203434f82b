"""Constrained decoding: an answer that keeps the template and calls declared tools validly.

Kimi K2 calls it the enforcer. The grammar is of the whole answer; llguidance says of every token of
the vocabulary at once whether it may come next. What is enforced of arguments: see
`trainer.inference.json_grammar`.

    words, calls of declared tools, or both; then the end token

A model that thinks writes `<think>`, whatever it likes, and `</think>` before it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from llguidance import LLMatcher, LLTokenizer
from torch import Tensor

from records.chat.k2 import END
from records.digest import digest
from records.errors import ConfigError
from trainer.data.tokenizer import Tokenizer
from trainer.inference.json_grammar import TERMINALS, JsonGrammar, literal
from trainer.inference.json_schema import Schema
from trainer.inference.sampler import GuideError

MOST_CALLS = 8
"""In one answer."""

MOST_WORKED_OUT = 64
"""Grammars that are kept for answers to come: conversations of one group have the same tools."""

_TEXTS = r"""
thought: <think> ANY? </think>
TEXT: /(?s:.*\S.*)/
ANY: /(?s:.+)/
"""


class AnswerGrammar:
    """What answers may be, with one tokenizer. Several threads may ask."""

    def __init__(self, tokenizer: Tokenizer, *, where: str) -> None:
        """ConfigError for a tokenizer, from `where`, that cannot write every letter of a call: what
        is enforced is told by the bytes of tokens."""
        self._size = tokenizer.size
        self._engine = LLTokenizer(_Vocabulary(tokenizer, where), n_vocab=tokenizer.size)  # type: ignore[arg-type]
        self._worked_out: dict[str, LLMatcher] = {}
        self._lock = threading.Lock()

    def enforcer(
        self,
        tools: Sequence[Mapping[str, Any]],
        *,
        calls_before: int = 0,
        max_calls: int = MOST_CALLS,
        thinking: bool = False,
        must_call: bool = False,
    ) -> "Enforcer":
        """For one answer. `tools` in OpenAI's form; `calls_before`: calls of the conversation so
        far, which the template counts; `thinking`: whether it begins with a thought; `must_call`:
        whether it is calls and no words. ConfigError for tools that are too much for the engine,
        and for an answer that must call where no tool can be called."""
        key = digest(list(tools), calls_before, max_calls, thinking, must_call)

        def rules() -> list[str]:
            names, arguments = _arguments(tools)
            if not names:
                if must_call:
                    raise ConfigError("a call is asked for, and no tool is there to be called")
                return ["answer: TEXT"]
            answer = "answer: calls" if must_call else "answer: TEXT | ANY? calls"
            return [answer, _calls(names, calls_before, max_calls), TERMINALS, *arguments]

        what = f"the tools {', '.join(tool['function']['name'] for tool in tools)}"
        return self._enforcer(key, rules, thinking=thinking, what=what)

    def form_enforcer(self, schema: Mapping[str, Any], *, thinking: bool = False) -> "Enforcer":
        """For an answer that is one JSON value under the schema. ConfigError for a schema that is
        too much for the engine, or that no value fits."""

        def rules() -> list[str]:
            form = Schema(schema)
            if not form.alternatives(schema):
                raise ConfigError("no JSON value fits the schema of the answer")
            return ["answer: form", TERMINALS, *JsonGrammar(form, prefix="form").rules()]

        key = digest("form", schema, thinking)
        return self._enforcer(key, rules, thinking=thinking, what="the schema of the answer")

    def _enforcer(
        self, key: str, rules: Callable[[], list[str]], *, thinking: bool, what: str
    ) -> "Enforcer":
        with self._lock:
            if key not in self._worked_out:
                start = "start: thought answer" if thinking else "start: answer"
                grammar = "\n".join(["%llguidance {}", start, _TEXTS, *rules()])
                matcher = LLMatcher(self._engine, grammar, log_level=0)
                if matcher.is_error():
                    raise ConfigError(
                        f"constrained decoding cannot work out {what}: {matcher.get_error()[:300]}"
                    )
                if len(self._worked_out) >= MOST_WORKED_OUT:
                    self._worked_out.pop(next(iter(self._worked_out)))
                self._worked_out[key] = matcher
            return Enforcer(self._worked_out[key].deep_copy(), self._size)


class Enforcer:
    """Follows one answer token by token. The engine has limits of its own, on the ways in which
    what was written can be read; behind one it allows the end token alone, whatever is open."""

    def __init__(self, matcher: LLMatcher, size: int) -> None:
        self._matcher, self._size = matcher, size

    def allowed(self) -> Tensor:
        """Of each token whether it may come next; the end token among others. GuideError at a limit
        of the engine."""
        packed = torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=torch.uint8)
        if self._matcher.is_error():
            raise self._error("what may follow cannot be told")
        return _bits(packed)[: self._size]

    def take(self, token: int) -> None:
        """The token came next. GuideError for one that may not, and at a limit of the engine."""
        if not self._matcher.consume_token(token):
            raise self._error(f"token {token} may not follow, or cannot be followed")

    def _error(self, what: str) -> GuideError:
        reason = self._matcher.get_error().partition("\n")[0]
        return GuideError(
            f"{what}: {reason[:300]}. Tools with fewer properties and alternatives are within the "
            "limits of constrained decoding; constrained = false does without it"
        )


class _Vocabulary:
    """The tokenizer as llguidance wants to be told of it."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, where: str) -> None:
        marks = {number: token.encode() for token, number in tokenizer.special.items()}
        spelt = [marks.get(n) or tokenizer.bytes_of(n) or b"" for n in range(tokenizer.size)]
        single = set(spelt)
        if missing := [byte for byte in range(32, 127) if bytes([byte]) not in single]:
            raise ConfigError(
                f"{where}: constrained decoding needs a tokenizer of byte-level BPE; this one has "
                f"no tokens for {len(missing)} letters, such as {chr(missing[0])!r}"
            )
        self.tokens = spelt
        self.eos_token_id = tokenizer.special[END]
        self.special_token_ids = list(marks)
        self._encode = tokenizer.encode

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode(errors="replace"))


def _arguments(tools: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """(tool -> the rule of its arguments, all rules). A tool that no arguments could satisfy cannot
    be called, and has none."""
    names: dict[str, str] = {}
    rules: list[str] = []
    for number, tool in enumerate(tools):
        # an object under them, whatever else they allow
        root = {**(tool["function"].get("parameters") or {}), "type": "object"}
        schema = Schema(root)
        if schema.alternatives(root):
            names[tool["function"]["name"]] = f"arguments_{number}"
            rules += JsonGrammar(schema, prefix=f"arguments_{number}").rules()
    return names, rules


def _calls(names: Mapping[str, str], before: int, most: int) -> str:
    """The section of calls, each under its number."""
    lines = ["calls: <|tool_calls_section_begin|> call_0 <|tool_calls_section_end|>"]
    for number in range(most):
        options = " | ".join(
            f"{literal(f'functions.{name}:{before + number}')} <|tool_call_argument_begin|> {rule}"
            for name, rule in names.items()
        )
        further = f" call_{number + 1}?" if number + 1 < most else ""
        lines += [
            f"call_{number}: <|tool_call_begin|> chosen_{number} <|tool_call_end|>{further}",
            f"chosen_{number}: {options}",
        ]
    return "\n".join(lines)


def _bits(packed: Tensor) -> Tensor:
    """Bits of bytes, the lowest first."""
    return ((packed[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1).bool().flatten()
