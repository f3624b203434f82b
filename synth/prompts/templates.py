"""Prompts are versioned Markdown files in `prompts/`: Jinja2 text, one part per chat message.

A line `# system`, `# user` or `# assistant` starts a message; `## Heading` lines belong to the
text. Parts are cut before values are filled in, so no value can start a message of its own.
A name that the template uses and the caller does not give is an error, and so is the reverse.
Text that several prompts share is included from `prompts/shared/`.
"""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import jinja2.meta

from records.digest import digest

FOLDER = Path(__file__).parent
_BACKTICKS = re.compile(r"`+")
_PART = re.compile(r"^# (system|user|assistant)[ \t]*$", re.MULTILINE)


class Prompt(NamedTuple):
    messages: list[dict[str, Any]]
    """Chat messages: `role` and `content`."""

    version: str
    """Digest of the template file and what it includes: it changes with every byte of them."""


class _Template(NamedTuple):
    parts: list[tuple[str, jinja2.Template]]
    names: frozenset[str]
    version: str


def fenced(value: Any) -> str:
    """`value` as a fenced json block. Escaped line ends keep headings in it out of the text."""
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```"


def block(text: str) -> str:
    """`text` in a fence that is longer than any run of backticks in it, so that nothing in the text
    can end it. An empty text is an empty block."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(4, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def one_line(value: Any) -> str:
    """Text on one line, so that a value with line breaks cannot pose as a heading."""
    return " ".join(str(value).split())


@lru_cache(maxsize=64)
def _load(name: str, folder: Path) -> _Template:
    source = (folder / f"{name}.md").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters |= {"fenced": fenced, "block": block, "one_line": one_line}
    pieces = _PART.split(source)
    if pieces[0].strip() or len(pieces) == 1:
        raise ValueError(f"prompt {name!r} must begin with a line '# system' or '# user'")
    parts = [
        (role, environment.from_string(text.strip()))
        for role, text in zip(pieces[1::2], pieces[2::2], strict=True)
    ]
    tree = environment.parse(source)
    names = jinja2.meta.find_undeclared_variables(tree)
    included = [
        (folder / str(path)).read_text(encoding="utf-8")
        for path in jinja2.meta.find_referenced_templates(tree)
    ]
    return _Template(parts, frozenset(names), digest(source, *included))


def render(name: str, **values: Any) -> Prompt:
    """The messages of `prompts/<name>.md` filled with `values`.

    Filters for data: `fenced` (a json block), `block` (text as it is) and `one_line`.
    """
    template = _load(name, FOLDER)
    if unknown := values.keys() - template.names:
        raise ValueError(f"prompt {name!r} does not use: {', '.join(sorted(unknown))}")
    messages = [{"role": role, "content": part.render(values)} for role, part in template.parts]
    return Prompt(messages, template.version)


def version_of(name: str) -> str:
    """Version of a prompt without rendering it: what a stage's identity takes in."""
    return _load(name, FOLDER).version
