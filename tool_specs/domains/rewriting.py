"""Tools and policy added to the text of a domain file; all else stays as people wrote it.

Only the blocks `tools` and `policy` change, at the end of what they hold. The result is read again
and compared with what was to be written, so that a file in another style is refused, not spoilt.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from records.errors import ConfigError
from tool_specs.domains.loading import checked, parse_yaml
from tool_specs.language.domain_file import DomainFile, PolicyRule, ToolSpec

WIDTH = 110
"""Characters of a line, where a value allows it."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


def with_additions(
    text: str, *, policy: Sequence[PolicyRule], tools: Sequence[ToolSpec], origin: str
) -> str:
    """The file's text with these rules and tools behind those that it has. Raises ConfigError for
    a file whose style does not allow it."""
    file = checked(DomainFile, parse_yaml(text.encode(), origin=origin), origin=origin)
    new = _extended(text, "policy", [_rule_lines(rule) for rule in policy], before="tools")
    new = _extended(new, "tools", [_tool_lines(tool) for tool in tools])
    wanted = file.model_copy(
        update={"policy": (*file.policy, *policy), "tools": [*file.tools, *tools]}
    )
    if checked(DomainFile, parse_yaml(new.encode(), origin=origin), origin=origin) != wanted:
        raise ConfigError(
            f"{origin}: tools and policy cannot be added to a file in this style; write its blocks "
            "`policy:` and `tools:` as indented lists"
        )
    return new


def _extended(text: str, key: str, entries: list[str], before: str | None = None) -> str:
    """The text with entries at the end of the block `key`, which is made where it is missing: in
    front of the block `before`, else at the end."""
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
    following = _values(text).get(before) if before else None
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


def _tool_lines(tool: ToolSpec) -> str:
    own: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    lines = [f"{name}: {_text(own[name])}" for name in ("name", "description")]
    if params := own.get("params"):
        lines.append("params:")
        lines += [f"  {_text(name)}: {_broken(_first(p, 'type'), 4)}" for name, p in params.items()]
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
