"""What ties the calls of a goal on a joined server together: something that one part shows is what
another is given."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from records.tables.schemas import Row
from sandboxes.mcp.joining import JoinedServerConfig, part_of
from sandboxes.mcp.servers import ServerConfig, holds
from synth.rubrics.built_in import EpisodeCall, mentions
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.servers.proving import numbers_in

LEAST_CHARS = 3
"""Of a text that counts as shared: shorter ones stand in most answers."""

LEAST_NUMBER = 10
"""Of a number, up to its sign: smaller ones stand in most answers."""


def parts_told(config: ServerConfig) -> list[dict[str, str]]:
    """The parts of a joined server for the generator; empty for any other."""
    if not isinstance(config, JoinedServerConfig):
        return []
    return [
        {"part": part.name, "title": part.title, "about": part.description} for part in config.parts
    ]


def check_parts(
    config: ServerConfig, proposed: Mapping[str, Any], tools: Mapping[str, Row]
) -> None:
    """The calls of a goal on a joined server are of two parts at least. UnprovedError("not_shared")
    else, before anything is executed."""
    names = [call["tool"] for call in proposed["calls"] if call["tool"] in tools]
    if isinstance(config, JoinedServerConfig) and names:
        parts = {part_of(config, tools[name]).name for name in names}
        if len(parts) < 2:
            raise UnprovedError("not_shared", f"all calls are of {parts.pop()}")


def check_shared(
    config: ServerConfig,
    proposed: Mapping[str, Any],
    calls: Sequence[EpisodeCall],
    tools: Mapping[str, Row],
) -> None:
    """One of the executed calls of a goal on a joined server is given a value that an earlier
    answer of another part shows. It counts where nobody says it, no earlier answer of the call's
    own part shows it, it is none of the values that the tool's schema lists, does not stand in what
    the assistant is told of the place, and is long enough. UnprovedError("not_shared") else.
    """
    if not isinstance(config, JoinedServerConfig):
        return
    parts = [part_of(config, tools[call.tool]).name for call in calls]
    told = f"{config.description} {config.clock} {config.clock[:10]}"
    for at, (part, call) in enumerate(zip(parts, calls, strict=True)):
        earlier = list(zip(parts[:at], calls[:at], strict=True))
        own = [str(one.observation) for name, one in earlier if name == part]
        others = [str(one.observation) for name, one in earlier if name != part]
        listed = list(_listed(tools[call.tool]["input_schema"]))
        for value in _matter(call, proposed):
            is_known = value in listed or _stands_in(value, [told, *own])
            if _stands_in(value, others) and not is_known:
                return
    raise UnprovedError(
        "not_shared", "no call is given what only an earlier answer of another part shows"
    )


def _matter(call: EpisodeCall, proposed: Mapping[str, Any]) -> Iterator[str | int | float]:
    """What stands in the arguments, is not said, and may well be told from anything else."""
    said = [one["value"] for one in proposed["said"]]
    for value in plain_values(call.arguments):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        counts = abs(value) >= LEAST_NUMBER if is_number else _is_long(value)
        if counts and value not in said and not mentions(proposed["goal"], value):
            yield value


def _listed(schema: Any) -> Iterator[Any]:
    """The values that a schema allows by name."""
    if isinstance(schema, dict):
        yield from schema.get("enum", ())
        for part in schema.values():
            yield from _listed(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _listed(part)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value.strip()) >= LEAST_CHARS


def _stands_in(value: str | int | float, texts: Sequence[str]) -> bool:
    if isinstance(value, str):
        return any(holds(text, value) for text in texts)
    return any(value in numbers_in(text) for text in texts)
