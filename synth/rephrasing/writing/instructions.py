"""What a rewriting model is told to make of a text: styles, perspectives, the two jobs of maths.

Each is a Markdown file under `prompts/rephrase/`, plain text without headings, so that it can stand
below a heading of a prompt. Its first line names the form, its stem is the name in configurations
and rows, and the digest of the file is its version.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from records.digest import digest
from records.errors import ConfigError
from synth.prompts import templates as prompts

InstructionKind = Literal["styles", "perspectives", "maths"]

LEARNING_NOTES, TRANSLATE = "learning_notes", "translate_to_english"
"""The names among `maths`."""


class Instruction(NamedTuple):
    name: str
    text: str
    version: str
    """Digest of the file: it changes with every byte."""

    @property
    def form(self) -> str:
        """What the form is called: the first line."""
        return self.text.partition("\n")[0]


@lru_cache
def instructions(kind: InstructionKind) -> Mapping[str, Instruction]:
    """All shipped instructions of a kind, by name, in the order of their names."""
    found = {}
    for path in sorted((prompts.FOLDER / "rephrase" / kind).glob("*.md")):
        text = path.read_text(encoding="utf-8")
        found[path.stem] = Instruction(path.stem, text.strip(), digest(text))
    return found


def instruction(kind: InstructionKind, name: str) -> Instruction:
    """One instruction. Raises ConfigError that lists the names there are."""
    known = instructions(kind)
    if name not in known:
        raise ConfigError(f"{kind}: {name!r} is none of: {', '.join(known)}")
    return known[name]


def form_of(kind: str, style: str) -> str:
    """What a rewrite's form is called: the first line of its instruction, or the style's name where
    the instruction is not there any more."""
    known = instructions("maths" if kind == "maths" else "styles")
    return known[style].form if style in known else style
