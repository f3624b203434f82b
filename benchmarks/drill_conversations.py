"""Made-up conversations with made-up tools: what a young model learns the form of a call from.

Every tool, field, name and value is drawn, so that nothing can be known by heart: whoever answers
has to read which tools are declared, what was asked and what came back. The agent looks things up
to act on them, asks for what is missing, puts right a call that failed, tells what came back, and
says so where none of its tools does what is asked. No tool, domain, sentence or value of the
datasets is in them.
"""

import json
import random
from calendar import month_name
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.drills import Value, drawn_date, drawn_id, drawn_name, drawn_words
from records.files import write_atomic

NO_TOOL = "None of my tools can do that."


class Tool(NamedTuple):
    name: str
    wish: str
    """What is asked with it: "verb the noun"."""
    parameters: Mapping[str, str]
    """Type by name; all but those in `optional` are required."""
    optional: frozenset[str]
    returns: Mapping[str, str]
    listed: str | None
    """The field that holds several records; None where one record comes back."""


class Desk:
    """Some tools around a few things, and conversations at it."""

    def __init__(self, rng: random.Random, words: Sequence[str]) -> None:
        self._rng, self._words = rng, words
        nouns = [self._word() for _ in range(2)]
        self._fields = {noun: self._drawn_fields(noun) for noun in nouns}
        made = [self._tool(rng.choice(nouns)) for _ in range(rng.randrange(2, 5))]
        self.tools = list({tool.name: tool for tool in made}.values())

    def conversation(self) -> dict[str, Any]:
        """A row with `messages`, `tools` and `train_turns`."""
        rng = self._rng
        missing = self.tools.pop() if len(self.tools) > 1 and rng.random() < 0.3 else None
        self._messages: list[dict[str, Any]] = []
        self._flags: list[bool] = []
        self._say("system", "\n".join(self._setting()))
        asked = rng.choices(self.tools, k=rng.choice((1, 2, 3, 4, 6)))
        if missing is not None:
            asked.insert(rng.randrange(len(asked) + 1), missing)
        for tool in asked:
            if tool is missing:
                self._say("user", self._request(tool, self._arguments(tool)))
                self._say("assistant", NO_TOOL)
            else:
                self._serve(tool)
        return {
            "messages": self._messages,
            "tools": [self._declared(tool) for tool in self.tools],
            "train_turns": self._flags,
        }

    def _setting(self) -> Iterator[str]:
        """The system prompt: who speaks, and lines of words that nothing asks for, so that what is
        copied lies as far away as it does in a conversation of the datasets."""
        yield f"You are {self._name()}, at the desk for {self._word()}."
        for _ in range(self._rng.choice((0, 2, 5, 10))):
            words = [self._word() for _ in range(self._rng.randrange(10, 40))]
            yield f"- {' '.join(words).capitalize()}."

    def _serve(self, tool: Tool) -> None:
        rng = self._rng
        arguments = self._arguments(tool)
        said = dict(arguments)
        finder = self._finder_for(tool, arguments)
        found: dict[str, Any] | None = None
        if finder is not None:
            key = next(iter(finder.parameters))
            value = self._value(finder.parameters[key])
            found = self._result(finder, {key: value})
            wanted = next(name for name in arguments if name.endswith("_id"))
            records = found[finder.listed] if finder.listed else [found]
            record = rng.choice(records)
            arguments[wanted] = record[wanted]
            del said[wanted]
            own = [n for n in _telling_apart(record, records) if n != key and n not in arguments]
            if own:
                name = rng.choice(own)
                said = {name: record[name]} | said
            elif len(records) > 1:  # nobody could say which of them is meant
                found = {name: [record] for name in found}
            said = {key: value} | said
        needed = [name for name in arguments if name in said and name not in tool.optional]
        asked_for = needed[-1] if needed and len(said) > 1 and rng.random() < 0.3 else None
        told = {name: value for name, value in said.items() if name != asked_for}
        self._say("user", self._request(tool, told))
        if finder is not None and found is not None:
            key = next(iter(finder.parameters))
            self._call(finder, {key: said[key]}, found)
        if asked_for is not None:
            self._say("assistant", f"I need to know the {_spoken(asked_for)}.")
            self._say("user", f"The {_spoken(asked_for)} is {_told(arguments[asked_for])}.")
        if rng.random() < 0.1:
            self._fail(tool, arguments)
        result = self._result(tool, arguments)
        self._call(tool, arguments, result)
        self._say("assistant", f"Done: {tool.wish}. {_retold(result)}")

    def _finder_for(self, tool: Tool, arguments: Mapping[str, Value]) -> Tool | None:
        """A tool that brings the id which this one takes, where one is declared."""
        ids = {name for name in arguments if name.endswith("_id")}
        finders = [
            one
            for one in self.tools
            if one is not tool
            and ids & one.returns.keys()
            and not arguments.keys() & one.parameters.keys()
        ]
        return self._rng.choice(finders) if finders and self._rng.random() < 0.8 else None

    def _fail(self, tool: Tool, arguments: Mapping[str, Value]) -> None:
        """A call that cannot be, which nobody is to learn, and what comes back."""
        required = [name for name in arguments if name not in tool.optional]
        if required and self._rng.random() < 0.6:
            left_out = self._rng.choice(required)
            given = {name: value for name, value in arguments.items() if name != left_out}
            self._call(tool, given, {"error": f"{left_out} is missing"}, learnt=False)
        else:
            wrong = tool._replace(name=f"{self._word()}_{tool.name.partition('_')[2]}")
            names = ", ".join(one.name for one in self.tools)
            answer = {"error": f"no tool {wrong.name}; there are {names}"}
            self._call(wrong, arguments, answer, learnt=False)

    def _call(
        self, tool: Tool, arguments: Mapping[str, Value], result: Any, *, learnt: bool = True
    ) -> None:
        number = f"call_{sum('tool_calls' in message for message in self._messages)}"
        function = {"name": tool.name, "arguments": json.dumps(arguments)}
        call = {"id": number, "type": "function", "function": function}
        self._messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        self._flags.append(learnt)
        answer = {"role": "tool", "tool_call_id": number, "name": tool.name}
        self._messages.append({**answer, "content": json.dumps(result)})
        self._flags.append(False)

    def _say(self, role: str, content: str) -> None:
        self._messages.append({"role": role, "content": content})
        self._flags.append(role == "assistant")

    def _request(self, tool: Tool, told: Mapping[str, Value]) -> str:
        rng = self._rng
        facts = [f"the {_spoken(name)} is {_told(value)}" for name, value in told.items()]
        asked = rng.choice(("Please {}", "I want to {}", "Could you {}", "{}, please")).format(
            tool.wish
        )
        about = f": {_listed(facts)}" if facts else ""
        wanted = rng.choice(list(tool.returns))
        return f"{asked}{about}. Tell me the {_spoken(wanted)}."

    def _tool(self, noun: str) -> Tool:
        rng = self._rng
        fields, key = self._fields[noun], f"{noun}_id"
        verb = self._word()
        wish = f"{verb} the {noun}"
        if rng.random() < 0.45:  # looks up
            by = rng.choice([name for name in fields if name != key])
            shown = [name for name in fields if name != key]
            returns = {key: "id"} | {name: fields[name] for name in shown}
            listed = f"{noun}s" if rng.random() < 0.6 else None
            return Tool(f"{verb}_{noun}", wish, {by: fields[by]}, frozenset(), returns, listed)
        free = [name for name in fields if name != key]
        others = rng.sample(free, min(len(free), rng.randrange(0, 3)))
        parameters = {key: "id"} | {name: fields[name] for name in others}
        optional = frozenset(name for name in others if rng.random() < 0.3)
        other = next(iter(self._drawn_fields(self._word())))
        known = rng.sample(list(fields), rng.randrange(1, min(3, len(fields)) + 1))
        returns = {other: "id"} | {name: fields[name] for name in known}
        return Tool(f"{verb}_{noun}", wish, parameters, optional, returns, None)

    def _drawn_fields(self, noun: str) -> dict[str, str]:
        fields = {f"{noun}_id": "id"}
        for _ in range(self._rng.randrange(2, 5)):
            name = "_".join(self._word() for _ in range(self._rng.choice((1, 1, 2))))
            fields[name] = self._rng.choice(list(KINDS))
        return fields

    def _arguments(self, tool: Tool) -> dict[str, Value]:
        given = [n for n in tool.parameters if n not in tool.optional or self._rng.random() < 0.5]
        return {name: self._value(tool.parameters[name]) for name in given}

    def _result(self, tool: Tool, known: Mapping[str, Value]) -> dict[str, Any]:
        def record() -> dict[str, Value | None]:
            return {
                name: known[name] if name in known else self._value(kind, missing=0.05)
                for name, kind in tool.returns.items()
            }

        if tool.listed is None:
            return record()
        return {tool.listed: [record() for _ in range(self._rng.choice((1, 1, 2, 3)))]}

    def _declared(self, tool: Tool) -> dict[str, Any]:
        properties = {
            name: {
                "type": SCHEMA_TYPES.get(kind, "string"),
                "description": f"The {_spoken(name)}, such as {_told(self._value(kind))}.",
            }
            for name, kind in tool.parameters.items()
        }
        required = [name for name in tool.parameters if name not in tool.optional]
        schema = {"type": "object", "properties": properties, "required": required}
        about = f"{tool.wish.capitalize()}. Returns {_listed(list(tool.returns))}."
        function = {"name": tool.name, "description": about, "parameters": schema}
        return {"type": "function", "function": function}

    def _value(self, kind: str, *, missing: float = 0.0) -> Any:
        if kind != "id" and self._rng.random() < missing:
            return None
        return KINDS[kind](self._rng) if kind in KINDS else drawn_id(self._rng)

    def _word(self) -> str:
        return self._rng.choice(self._words)

    def _name(self) -> str:
        return drawn_name(self._rng)


def _moment(rng: random.Random) -> str:
    return f"{drawn_date(rng)}T{rng.randrange(24):02d}:{rng.randrange(0, 60, 5):02d}:00"


KINDS: Mapping[str, Callable[[random.Random], Value]] = {
    "name": drawn_name,
    "code": drawn_id,
    "date": drawn_date,
    "moment": _moment,
    "count": lambda rng: rng.randrange(10 ** rng.randrange(1, 4)),
    "amount": lambda rng: round(rng.uniform(0, 10 ** rng.randrange(1, 4)), rng.choice((1, 2))),
    "words": drawn_words,
    "flag": lambda rng: rng.random() < 0.5,
}

SCHEMA_TYPES = {"count": "integer", "amount": "number", "flag": "boolean"}


def drill_conversations(
    count: int, words: Sequence[str], seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Rows of conversations. `words`: what tools and fields are named with."""
    rng = random.Random(f"{seed} conversations")
    names = sorted({word.lower() for word in words if len(word) > 2})
    return (Desk(rng, names).conversation() for _ in range(count))


def write_conversations(path: Path, rows: Iterator[Mapping[str, Any]]) -> None:
    """As JSON lines."""
    write_atomic(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def _telling_apart(
    record: Mapping[str, Value | None], records: Sequence[Mapping[str, Value | None]]
) -> list[str]:
    """Fields that none of the other records has the same value in; none where there is no other."""
    others = [other for other in records if other is not record]
    return [n for n in record if others and all(other[n] != record[n] for other in others)]


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _told(value: Value | None) -> str:
    """A value as somebody says it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if len(text) >= 10 and text[:4].isdigit() and text[4] == "-":
        day = f"{int(text[8:10])} {month_name[int(text[5:7])]} {text[:4]}"
        return f"{day} at {text[11:16]}" if len(text) > 10 else day
    return text


def _retold(result: Mapping[str, Any]) -> str:
    [(name, rows)] = list(result.items())[:1]
    if not isinstance(rows, list):
        return _sentence(_facts(result))
    if len(rows) == 1:
        return f"There is one of the {_spoken(name)}: {', '.join(_facts(rows[0], ''))}."
    told = "; ".join(f"({n}) {', '.join(_facts(row, ''))}" for n, row in enumerate(rows, 1))
    return f"There are {len(rows)} {_spoken(name)}: {told}."


def _facts(record: Mapping[str, Any], between: str = "is ") -> list[str]:
    the = "the " if between else ""
    return [f"{the}{_spoken(name)} {between}{_told(value)}" for name, value in record.items()]


def _sentence(facts: Sequence[str]) -> str:
    text = _listed(facts)
    return f"{text[:1].upper()}{text[1:]}."


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
