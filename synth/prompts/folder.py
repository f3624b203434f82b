"""`prompts = "folder"`: Markdown files of a user that replace the project's prompts by name.

What may replace what is checked when the settings are read: the name, the messages in their order,
and the variables, of which a file may leave some unused.
"""

import hashlib
from pathlib import Path
from typing import Any, ClassVar

import jinja2
import jinja2.meta
from pydantic import Field, model_validator

from records.config import Config
from synth.prompts import templates
from synth.prompts.templates import ReplacedPrompts, environment_of, parts_of


class PromptFolder(Config):
    """In a config file just the path."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"path"})

    path: str
    """Of a folder with files such as `judgement.md` or `shared/semantics.md`."""
    digests: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each by its name, when the run was configured. A run is never resumed with other
    files."""

    @model_validator(mode="before")
    @classmethod
    def _as_it_is(cls, given: Any) -> Any:
        if isinstance(given, cls):
            return given
        path = given.get("path") if isinstance(given, dict) else given
        if not isinstance(path, str):
            raise ValueError('prompts is the path of a folder, such as prompts = "my_prompts"')
        found = _digests_of(Path(path))
        recorded = given.get("digests", found) if isinstance(given, dict) else found
        if recorded != found:
            changed = sorted(
                name for name in recorded | found if recorded.get(name) != found.get(name)
            )
            raise ValueError(
                f"{', '.join(f'{path}/{name}.md' for name in changed)} changed since; put back what"
                " it was, or make a run of its own with what is there (`synth run`)"
            )
        _check(Path(path), ReplacedPrompts(path, tuple(sorted(found.items()))))
        return {"path": path, "digests": found}

    def replaced(self) -> ReplacedPrompts:
        return ReplacedPrompts(self.path, tuple(sorted(self.digests.items())))


def replaceable() -> list[str]:
    """Names of the project's prompts, and of the texts that they share."""
    files = [*templates.FOLDER.glob("*.md"), *templates.FOLDER.glob("shared/*.md")]
    return sorted(file.relative_to(templates.FOLDER).with_suffix("").as_posix() for file in files)


def _digests_of(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    known = replaceable()
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*.md")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        if name not in known:
            raise ValueError(
                f"{file} is the name of no prompt; prompts that can be replaced: {', '.join(known)}"
            )
        try:
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    if not found:
        raise ValueError(f"{folder} holds no prompt (a file such as judgement.md)")
    return found


def _check(folder: Path, own: ReplacedPrompts) -> None:
    """ValueError with the file for one that cannot stand in for the prompt of its name."""
    for name, _ in own.digests:
        file = folder / f"{name}.md"
        try:
            _check_file(file, name, own)
        except jinja2.TemplateSyntaxError as error:
            raise ValueError(f"{file}, line {error.lineno}: {error.message}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is no UTF-8 text") from error


def _check_file(file: Path, name: str, own: ReplacedPrompts) -> None:
    text = file.read_text(encoding="utf-8")
    original = (templates.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    environment = environment_of(templates.FOLDER, own)
    if not name.startswith("shared/"):
        roles = [role for role, _ in parts_of(name, original)]
        try:
            parts = parts_of(name, text)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
        if [role for role, _ in parts] != roles:
            wanted = ", ".join(f"# {role}" for role in roles)
            raise ValueError(f"{file} must have these messages in this order: {wanted}")
        for _, part in parts:
            environment.from_string(part)  # each is a template of its own
    known = jinja2.meta.find_undeclared_variables(environment.parse(original))
    tree = environment.parse(text)
    if unknown := jinja2.meta.find_undeclared_variables(tree) - known:
        raise ValueError(
            f"{file} uses {', '.join(sorted(unknown))}, which {name} is not given; variables of "
            f"{name}: {', '.join(sorted(known)) or 'none'}"
        )
    shared = [f"{one}.md" for one in replaceable() if one.startswith("shared/")]
    for included in jinja2.meta.find_referenced_templates(tree):
        if included not in shared:
            raise ValueError(f"{file} includes {included!r}; there are {', '.join(shared)}")
