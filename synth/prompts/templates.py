"""Prompts are versioned Markdown files in `prompts/`: Jinja2 text, one part per chat message.

A line `# system`, `# user` or `# assistant` starts a message; `## Heading` lines belong to the
text. Parts are cut before values are filled in, so no value can start a message of its own.
A name that the template uses and the caller does not give is an error, and so is the reverse.
Text that several prompts share is included from `prompts/shared/`. A run may have files of its own
instead of some of them (`replaced_by`).
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import jinja2.meta
import jinja2.nodes
import jinja2.sandbox

from records.digest import digest
from records.errors import ConfigError

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
    """Values that a caller may give: those of the project's prompt, also where another replaces it
    and leaves some unused."""
    version: str


class ReplacedPrompts(NamedTuple):
    """Files that stand in for the project's own."""

    folder: str
    digests: tuple[tuple[str, str], ...]
    """Name, such as `agent` or `shared/semantics`, and SHA-256 of the file."""


_in_use: ContextVar[ReplacedPrompts | None] = ContextVar("replaced_prompts", default=None)


@contextmanager
def replaced_by(own: ReplacedPrompts | None) -> Iterator[None]:
    """Whatever is rendered inside, tasks and threads that are begun there included, is rendered
    from these files where they replace one of the project's."""
    token = _in_use.set(own)
    try:
        yield
    finally:
        _in_use.reset(token)


def fenced(value: Any) -> str:
    """`value` as a fenced json block. Escaped line ends keep headings in it out of the text."""
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```"


def lines(values: Sequence[Any]) -> str:
    """A list as a fenced json block with a line for each value: far fewer tokens than `fenced`."""
    shown = ",\n".join(json.dumps(value, ensure_ascii=False) for value in values)
    return f"```json\n[\n{shown}\n]\n```" if values else "```json\n[]\n```"


def block(text: str) -> str:
    """`text` in a fence that is longer than any run of backticks in it, so that nothing in the text
    can end it. An empty text is an empty block."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(4, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def one_line(value: Any) -> str:
    """Text on one line, so that a value with line breaks cannot pose as a heading."""
    return " ".join(str(value).split())


@lru_cache(maxsize=256)
def _load(name: str, folder: Path, own: ReplacedPrompts | None = None) -> _Template:
    source = _source(name, folder, own)
    environment = environment_of(folder, own)
    tree = environment.parse(source)
    included = list(_included(environment, tree, folder, own))
    names = jinja2.meta.find_undeclared_variables(tree)
    if own is not None:
        names = _load(name, folder).names
    parts = [(role, environment.from_string(text)) for role, text in parts_of(name, source)]
    return _Template(parts, frozenset(names), digest(source, *included))


def _included(
    environment: jinja2.Environment,
    tree: jinja2.nodes.Template,
    folder: Path,
    own: ReplacedPrompts | None,
) -> Iterator[str]:
    """Texts that a template includes, each followed by those that it includes itself."""
    for path in jinja2.meta.find_referenced_templates(tree):
        text = _source(str(path).removesuffix(".md"), folder, own)
        yield text
        yield from _included(environment, environment.parse(text), folder, own)


def environment_of(folder: Path, own: ReplacedPrompts | None) -> jinja2.Environment:
    """How templates are read. Those of a user reach no attributes that could run anything."""
    kind = jinja2.Environment if own is None else jinja2.sandbox.ImmutableSandboxedEnvironment
    environment = kind(
        loader=jinja2.FunctionLoader(
            lambda path: _source(path.removesuffix(".md"), folder, own),
        ),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters |= {
        "fenced": fenced,
        "lines": lines,
        "block": block,
        "one_line": one_line,
    }
    return environment


def parts_of(name: str, source: str) -> list[tuple[str, str]]:
    """(role, text) of each message of a template. ValueError for one that begins otherwise."""
    pieces = _PART.split(source)
    if pieces[0].strip() or len(pieces) == 1:
        raise ValueError(f"prompt {name!r} must begin with a line '# system' or '# user'")
    texts = (text.strip() for text in pieces[2::2])
    return list(zip(pieces[1::2], texts, strict=True))


def _source(name: str, folder: Path, own: ReplacedPrompts | None) -> str:
    """ConfigError for a file that is not what it was when the run was configured."""
    expected = dict(own.digests).get(name) if own is not None else None
    if own is None or expected is None:
        return (folder / f"{name}.md").read_text(encoding="utf-8")
    path = Path(own.folder) / f"{name}.md"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"prompts: {path} cannot be read: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise ConfigError(
            f"prompts: {path} was edited after the run was configured; start the run again"
        )
    return content.decode("utf-8")


def render(name: str, **values: Any) -> Prompt:
    """The messages of `prompts/<name>.md` filled with `values`.

    Filters for data: `fenced` (a json block), `lines` (one with a line for each value of a list),
    `block` (text as it is) and `one_line`.
    """
    return _rendered(name, _load(name, FOLDER, _in_use.get()), values)


def render_from(folder: Path, name: str, **values: Any) -> Prompt:
    """As `render`, of `<folder>/<name>.md`, which no prompt of a user's replaces."""
    return _rendered(name, _load(name, folder, None), values)


def _rendered(name: str, template: _Template, values: Mapping[str, Any]) -> Prompt:
    if unknown := values.keys() - template.names:
        raise ValueError(f"prompt {name!r} does not use: {', '.join(sorted(unknown))}")
    messages = [{"role": role, "content": part.render(values)} for role, part in template.parts]
    return Prompt(messages, template.version)


def version_of(name: str) -> str:
    """Version of a prompt without rendering it: what a stage's identity takes in."""
    return _load(name, FOLDER, _in_use.get()).version
