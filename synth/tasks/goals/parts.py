"""The plain values among the arguments of a call, and what people call them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Fact
from synth.tasks.goals.knowledge import words_of
from tool_specs.language.domain_file import ParamSpec


class ArgumentPart(NamedTuple):
    """A plain value among the arguments of a call."""

    place: tuple[str, ...]
    param: ParamSpec
    value: Any
    needed: bool
    """Neither it nor what it is a part of could be left out."""

    @property
    def row(self) -> tuple[str, str] | None:
        """The row that it names."""
        return (self.param.ref, self.value) if self.param.ref else None

    def fact(self, label: str, value: Any) -> Fact:
        return Fact(label=label, value=value, param=self.place[0], needed=self.needed)


def parts_of(
    params: dict[str, ParamSpec],
    arguments: dict[str, Any],
    place: tuple[str, ...] = (),
    *,
    needed: bool = True,
) -> Iterator[ArgumentPart]:
    for name, value in arguments.items():
        param = params[name]
        yield from _part(param, value, (*place, name), needed=needed and not param.optional)


def _part(
    param: ParamSpec, value: Any, place: tuple[str, ...], *, needed: bool
) -> Iterator[ArgumentPart]:
    if param.type == "object":
        yield from parts_of(param.properties or {}, value, place, needed=needed)
    elif param.type == "array" and param.items:
        for number, item in enumerate(value, 1):
            numbered = (*place, str(number)) if len(value) > 1 else place
            yield from _part(param.items, item, numbered, needed=needed)
    else:
        yield ArgumentPart(place, param, value, needed)


def value_label(tool: DomainTool, place: tuple[str, ...], param: ParamSpec) -> str:
    """`title` of a course search is "course title"; figures carry their unit."""
    label = " ".join(words_of(part) for part in place)
    entity = words_of(tool.stored_in[place][0]) if place in tool.stored_in else ""
    if len(place) == 1 and " " not in label and entity not in label:
        label = f"{entity} {label}"
    if param.unit and param.unit not in label.split():
        label += f" in {param.unit}"
    return label.strip()


def id_label(role: str, entity: str) -> str:
    """`add` of a bike is "add bike id", `bikes` are each a "bike id"."""
    if entity in role:
        return f"{entity if role.endswith('s') else role} id"
    return f"{role} {entity} id"
