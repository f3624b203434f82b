"""Structured output: a form that is asked for, read tolerantly, validated, and repaired.

In a repair the conversation stays as it was: the model's answer, what is wrong with it, and the
request for the part that is wrong, in the form of that part.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import jsonschema_rs

from records.errors import ItemError
from synth.llm.wire.json_text import NotJsonError, value_in
from synth.llm.wire.request import AnswerForm, Message

LONGEST_ERROR = 400
"""Characters of a validation error that the model is shown: values in it can be long."""

ValuePath = tuple[str | int, ...]
"""Where in a value: keys and indexes."""


class _Answered(Protocol):
    @property
    def content(self) -> str: ...
    @property
    def reasoning(self) -> str | None: ...
    @property
    def finish_reason(self) -> str: ...
    @property
    def completion_tokens(self) -> int: ...


class _Ask(Protocol):
    def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        /,
        *,
        item: str,
        step: str,
        form: AnswerForm,
        attempt: int,
    ) -> Awaitable[_Answered]: ...


class InvalidOutputError(Exception):
    """What is wrong with an answer, in words for the model."""

    def __init__(self, words: str, *, reason: str = "invalid_output") -> None:
        """`reason`: of the ItemError, if no repair helps."""
        super().__init__(words)
        self.reason = reason


class _Draft(NamedTuple):
    """An answer that does not fit yet, and the object in it that has to be asked for again."""

    value: Any
    path: ValuePath
    schema: dict[str, Any]
    """Of the object at the path."""


class StructuredOutput:
    """Asks until the answer fits; keeps the compiled schemas."""

    def __init__(self, ask: _Ask) -> None:
        self._ask = ask
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    async def ask(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        item: str,
        step: str,
        name: str,
        schema: dict[str, Any],
        repairs: int,
        on_answer: Callable[[Any], None] | None = None,
        check: Callable[[Any], None] | None = None,
    ) -> Any:
        self._validator(schema)  # a schema that cannot be used costs no answer
        talk = list(messages)
        whole = _Draft(None, (), schema)
        draft, attempt = whole, 0
        while True:
            form = (name, draft.schema)
            answer = await self._ask(role, talk, item=item, step=step, form=form, attempt=attempt)
            if on_answer is not None:
                on_answer(answer)
            try:
                value = self._value(answer, schema, draft)
                draft = whole
                if (fault := self._fault(value, schema)) is None:
                    if check is not None:
                        check(value)
                    return value
                words, draft = fault
                problem = InvalidOutputError(words)
            except InvalidOutputError as error:
                problem = error
            if attempt == repairs:
                where = f"{name} by {role} at {step} for {item}"
                raise ItemError(problem.reason, f"{where}: {problem}")
            talk += repair_messages(answer.content, problem, draft.path)
            attempt += 1

    def _value(self, answer: _Answered, schema: dict[str, Any], draft: _Draft) -> Any:
        """What the answer says: the whole value, or the part that was asked for in its place.
        Raises InvalidOutputError for what is no JSON."""
        text = answer.content
        if not text.strip() and answer.finish_reason != "length":
            # a server that takes all of an answer for reasoning leaves its text empty; reasoning
            # that was cut holds drafts at most
            text = answer.reasoning or ""
        validator = self._validator(schema)
        try:
            value = value_in(text, validator)
            if not draft.path or validator.is_valid(value):
                return value
            part = value_in(text, self._validator(draft.schema))
        except NotJsonError as error:
            if answer.finish_reason == "length":
                told = f"{cut_words(answer.completion_tokens)}; be briefer."
                raise InvalidOutputError(told, reason="cut_off") from None
            if answer.finish_reason == "content_filter":
                raise ItemError("moderated", f"the server cut the answer: {text[:200]!r}") from None
            raise InvalidOutputError(str(error)) from None
        return _with(draft.value, draft.path, part)

    def _fault(self, value: Any, schema: dict[str, Any]) -> tuple[str, _Draft] | None:
        error = next(self._validator(schema).iter_errors(value), None)
        if error is None:
            return None
        at = tuple(error.instance_path)
        path, part = _object_around(schema, at)
        problem = f"at {_named(at) or 'the whole value'}: {error.message[:LONGEST_ERROR]}"
        return problem, _Draft(value, path, part)

    def _validator(self, schema: dict[str, Any]) -> jsonschema_rs.Validator:
        text = json.dumps(schema)
        if text not in self._validators:
            self._validators[text] = validator_of(schema)
        return self._validators[text]


def validator_of(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """That fetches nothing and takes linear time for patterns."""
    return jsonschema_rs.validator_for(
        schema, pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse_to_fetch
    )


def repair_messages(content: str, problem: object, path: ValuePath = ()) -> list[Message]:
    """The answer as the model gave it, and what is wrong; `path` is of the object wanted."""
    wanted = f"the corrected object at `{_named(path)}`, as JSON" if path else "the corrected JSON"
    request = f"That answer cannot be used: {problem}\n\nAnswer again with only {wanted}."
    # some servers refuse an empty message of the assistant
    said = {"role": "assistant", "content": content or "(empty answer)"}
    return [said, {"role": "user", "content": request}]


def cut_words(tokens: int) -> str:
    return f"the answer was cut off at {tokens} tokens, with no more room to give it (max_tokens)"


def _object_around(schema: dict[str, Any], path: ValuePath) -> tuple[ValuePath, dict[str, Any]]:
    """The innermost object that holds what is at `path` and has a schema of its own: where it is,
    and that schema. The root where there is no other."""
    found: tuple[ValuePath, dict[str, Any]] = ((), schema)
    at: Any = schema
    for number, part in enumerate(path):
        at = _resolved(schema, at)
        at = at.get("properties", {}).get(part) if isinstance(part, str) else at.get("items")
        at = _resolved(schema, at)
        if not at:
            break
        if at.get("type") == "object":
            defined = {"$defs": schema["$defs"]} if "$defs" in schema else {}
            found = path[: number + 1], defined | at
    return found


def _resolved(root: dict[str, Any], schema: Any) -> dict[str, Any]:
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        schema = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    return schema if isinstance(schema, dict) else {}


def _with(value: Any, path: ValuePath, part: Any) -> Any:
    """`value` with another one at `path`, which there is."""
    if not path:
        return part
    first, *rest = path
    inner = _with(value[first], tuple(rest), part)
    if isinstance(value, Mapping):
        return {**value, first: inner}
    return [*value[:first], inner, *value[int(first) + 1 :]]


def _named(path: ValuePath) -> str:
    """Such as `tools[3].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"$ref to {uri}: schemas may not refer to other documents")


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that has all of these properties and no other."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
