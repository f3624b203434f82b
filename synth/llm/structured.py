"""Structured output: JSON Schema on the wire, validated here, repaired by showing the error."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn, Protocol

import jsonschema_rs

from records.errors import ItemError

LONGEST_ERROR = 400
"""Characters of a validation error that the model is shown: values in it can be long."""

_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


class _Answered(Protocol):
    @property
    def content(self) -> str: ...
    @property
    def finish_reason(self) -> str: ...


class _Ask(Protocol):
    def __call__(
        self,
        role: str,
        messages: Sequence[dict[str, Any]],
        /,
        *,
        item: str,
        step: str,
        schema: tuple[str, dict[str, Any]],
        attempt: int,
    ) -> Awaitable[_Answered]: ...


class InvalidOutputError(Exception):
    """What is wrong with an answer, in words for the model."""


class StructuredOutput:
    """Asks until the answer fits; keeps the compiled schemas."""

    def __init__(self, ask: _Ask) -> None:
        self._ask = ask
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    async def ask(
        self,
        role: str,
        messages: Sequence[dict[str, Any]],
        *,
        item: str,
        step: str,
        name: str,
        schema: dict[str, Any],
        repairs: int,
        on_answer: Callable[[Any], None] | None = None,
        check: Callable[[Any], None] | None = None,
    ) -> Any:
        validator = self._validator(schema)
        talk = list(messages)
        attempt = 0
        while True:
            answer = await self._ask(
                role, talk, item=item, step=step, schema=(name, schema), attempt=attempt
            )
            if on_answer is not None:
                on_answer(answer)
            try:
                value = read(answer.content, answer.finish_reason, validator)
                if check is not None:
                    check(value)
                return value
            except InvalidOutputError as error:
                if attempt == repairs:
                    where = f"{name} by {role} at {step} for {item}"
                    raise ItemError("invalid_output", f"{where}: {error}") from None
                talk += repair_messages(answer.content, error)
            attempt += 1

    def _validator(self, schema: dict[str, Any]) -> jsonschema_rs.Validator:
        text = json.dumps(schema)
        if text not in self._validators:
            self._validators[text] = jsonschema_rs.validator_for(
                schema,
                pattern_options=jsonschema_rs.RegexOptions(),  # linear time
                retriever=_refuse_to_fetch,
            )
        return self._validators[text]


def repair_messages(content: str, problem: InvalidOutputError) -> list[dict[str, Any]]:
    request = f"That answer cannot be used: {problem}\n\nAnswer again with only the corrected JSON."
    # some servers refuse an empty message of the assistant
    said = {"role": "assistant", "content": content or "(empty answer)"}
    return [said, {"role": "user", "content": request}]


def read(content: str, finish_reason: str, validator: jsonschema_rs.Validator) -> Any:
    """The value in `content`, bare or in one fence. Raises InvalidOutputError."""
    fenced = _FENCE.fullmatch(content.strip())
    try:
        value = json.loads(fenced[1] if fenced else content, parse_constant=_refuse_constant)
        # an escape can spell half a surrogate pair, which no table can hold
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        if finish_reason == "length":
            raise InvalidOutputError("it was cut off; be briefer.") from None
        raise InvalidOutputError(f"it is not JSON: {error}.") from None
    error = next(validator.iter_errors(value), None)
    if error is not None:
        path = "".join(f"[{part!r}]" for part in error.instance_path) or "the whole value"
        raise InvalidOutputError(f"at {path}: {error.message[:LONGEST_ERROR]}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"$ref to {uri}: schemas may not refer to other documents")
