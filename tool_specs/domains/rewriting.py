"""Tools, policy, jobs and fields added to the text of a domain file; all else stays as people
wrote it.

Only the blocks `tools`, `policy` and `jobs` change, at the end of what they hold, and the fields
and rows of an entity that gets another field. The result is read again and compared with what was
to be written, so that a file in another style is refused, not spoilt.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from records.errors import ConfigError
from tool_specs.domains.loading import checked, parse_yaml
from tool_specs.language.domain_file import DomainFile, FieldSpec, PolicyRule, ToolSpec
from tool_specs.language.jobs import JobSpec

WIDTH = 110
"""Characters of a line, where a value allows it."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


class AddedField(NamedTuple):
    """A field that an entity gets, and what the rows of the seed have there."""

    entity: str
    name: str
    spec: FieldSpec
    values: tuple[Any, ...]
    """In the order of the file's rows."""


def with_additions(
    text: str,
    *,
    policy: Sequence[PolicyRule] = (),
    tools: Sequence[ToolSpec] = (),
    jobs: Sequence[JobSpec] = (),
    fields: Sequence[AddedField] = (),
    origin: str,
) -> str:
    """The file's text with these rules, tools, jobs and fields behind those that it has. Raises
    ConfigError for a file whose style does not allow it."""
    file = checked(DomainFile, parse_yaml(text.encode(), origin=origin), origin=origin)
    new = text
    for field in fields:
        new = _with_field(new, field)
    new = _extended(new, "jobs", [_job_lines(job) for job in jobs], before=("policy", "tools"))
    new = _extended(new, "policy", [_rule_lines(rule) for rule in policy], before=("tools",))
    new = _extended(new, "tools", [_tool_lines(tool) for tool in tools])
    wanted = _extended_file(file, fields).model_copy(
        update={
            "jobs": (*file.jobs, *jobs),
            "policy": (*file.policy, *policy),
            "tools": [*file.tools, *tools],
        }
    )
    if checked(DomainFile, parse_yaml(new.encode(), origin=origin), origin=origin) != wanted:
        raise ConfigError(
            f"{origin}: nothing can be added to a file in this style; write its blocks `policy:`, "
            "`jobs:` and `tools:` as indented lists, and its fields and rows in brackets or lines"
        )
    return new


def _extended_file(file: DomainFile, fields: Sequence[AddedField]) -> DomainFile:
    entities, seed = dict(file.entities), dict(file.seed)
    for entity, name, spec, values in fields:
        own = entities[entity]
        entities[entity] = own.model_copy(update={"fields": own.fields | {name: spec}})
        rows = zip(seed.get(entity, []), values, strict=True)
        seed |= {entity: [row | {name: value} for row, value in rows]} if values else {}
    return file.model_copy(update={"entities": entities, "seed": seed})


def _with_field(text: str, field: AddedField) -> str:
    """The text with the field behind those of its entity, and a value behind those of each row."""
    spec = _text(field.spec.model_dump(mode="json", exclude_defaults=True))
    blocks = _values(text)
    seed = _member(blocks["seed"][1], field.entity)
    rows = seed.value if isinstance(seed, yaml.SequenceNode) else []
    changes = [
        _put_behind(row, field.name, _text(value))
        for row, value in zip(rows, field.values, strict=True)
    ]
    own = _member(blocks["entities"][1], field.entity, "fields")
    if own is not None:
        changes.append(_put_behind(own, field.name, spec))
    for at, added in sorted(changes, reverse=True):
        text = text[:at] + added + text[at:]
    return text


def _member(node: yaml.Node | None, *names: str) -> yaml.Node | None:
    for name in names:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for key, value in pairs if key.value == name), None)
    return node


def _put_behind(node: yaml.Node, name: str, value: str) -> tuple[int, str]:
    """Where a value goes that comes last in a mapping or a list, and how it is written there."""
    member = value if isinstance(node, yaml.SequenceNode) else f"{name}: {value}"
    if isinstance(node, yaml.CollectionNode) and node.flow_style:
        return node.end_mark.index - 1, f", {member}" if node.value else member
    line = f"- {member}" if isinstance(node, yaml.SequenceNode) else member
    return _last_mark(node), f"\n{' ' * node.start_mark.column}{line}"


def _extended(text: str, key: str, entries: list[str], before: Sequence[str] = ()) -> str:
    """The text with entries at the end of the block `key`, which is made where it is missing: in
    front of the first of the blocks `before`, else at the end."""
    if not entries:
        return text
    node = _values(text).get(key)
    if node is not None and isinstance(node[1], yaml.SequenceNode) and node[1].value:
        _, value = node
        at = _end_of_line(text, _last_mark(value))
        indent = " " * value.start_mark.column
        return text[:at] + textwrap.indent("".join(entries), indent) + text[at:]
    block = f"{key}:\n{textwrap.indent(''.join(entries), '  ')}"
    if node is not None:
        return text[: node[0].start_mark.index] + block + text[_end_of_line(text, _end(node)) :]
    blocks = _values(text)
    following = next((blocks[name] for name in before if name in blocks), None)
    if following is not None:
        at = following[0].start_mark.index
        return f"{text[:at]}{block}\n{text[at:]}"
    return f"{text.rstrip()}\n\n{block}"


def _values(text: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """Key and value of each block of the file, by the key's name."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    in_blocks = isinstance(root, yaml.MappingNode) and not root.flow_style
    if not in_blocks:
        raise ConfigError("a domain file in braces cannot be added to; write it in blocks")
    pairs: Iterable[tuple[Any, Any]] = root.value
    return {str(key.value): (key, value) for key, value in pairs}


def _end(pair: tuple[yaml.Node, yaml.Node]) -> int:
    return max(node.end_mark.index for node in pair)


def _last_mark(node: yaml.Node) -> int:
    """Where the last thing of a block ends: the block's own mark is where the next one begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_mark(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.index


def _end_of_line(text: str, at: int) -> int:
    """Behind the line that ends at or after `at`."""
    if at and text[at - 1] == "\n":
        return at
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _rule_lines(rule: PolicyRule) -> str:
    own = rule.model_dump(mode="json", exclude_defaults=True)
    return _entry([f"{name}: {_text(value)}" for name, value in own.items()])


def _job_lines(job: JobSpec) -> str:
    own: dict[str, Any] = job.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    names = ("name", "text", "entity", "where", "due")
    lines = [f"{name}: {_text(own[name])}" for name in names if name in own]
    lines.append("do:")
    lines += [f"  - {_broken(_first(s, 'op', 'in'), 5)}" for s in own["do"]]
    return _entry(lines)


def _tool_lines(tool: ToolSpec) -> str:
    own: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    lines = [f"{name}: {_text(own[name])}" for name in ("name", "description")]
    if params := own.get("params"):
        lines.append("params:")
        lines += [f"  {_text(name)}: {_broken(_first(p, 'type'), 4)}" for name, p in params.items()]
    lines += [f"{name}: {_text(own[name])}" for name in ("takes", "waits") if name in own]
    lines.append("semantics:")
    lines += [f"  - {_broken(_first(s, 'op', 'in'), 5)}" for s in own["semantics"]]
    return _entry(lines) + "\n"


def _entry(lines: list[str]) -> str:
    """An entry of a block's list."""
    first, *others = "\n".join(lines).split("\n")
    return f"- {first}\n" + "".join(f"  {line}\n" for line in others)


def _first(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The mapping with these keys in front."""
    return {key: value[key] for key in keys if key in value} | dict(value)


def _broken(value: Mapping[str, Any], indent: int) -> str:
    """A mapping in braces, with line breaks between its members where it is long."""
    lines, line = [], ""
    for name, own in value.items():
        member = f"{_text(name)}: {own}" if _is_number(own) else _text({name: own})[1:-1]
        if line and len(line) + len(member) > WIDTH:
            lines.append(f"{line},")
            line = member
        else:
            line = f"{line}, {member}" if line else member
    return "{" + f"\n{' ' * indent}".join([*lines, line]) + "}"


def _is_number(value: Any) -> bool:
    """Whether it is an expression that people write without quotes."""
    return isinstance(value, str) and _NUMBER.fullmatch(value) is not None


class _Dumper(yaml.SafeDumper):
    """Text that has apostrophes in it, as expressions do, stands in double quotes."""

    def choose_scalar_style(self) -> str:
        style = super().choose_scalar_style()
        value = self.event.value  # type: ignore[union-attr]
        return '"' if style == "'" and "'" in value and "\\" not in value else style


def _text(value: Any) -> str:
    """On one line; members of a mapping in braces."""
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        allow_unicode=True,
        sort_keys=False,
        width=math.inf,
    )
    return text.removesuffix("\n").removesuffix("\n...")
