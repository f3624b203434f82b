"""The program in an answer: which of its blocks counts."""

import re
from collections.abc import Mapping
from functools import cache

from markdown_it import MarkdownIt

from sandboxes.code.problems import Language

TAGS: Mapping[Language, tuple[str, ...]] = {
    "python": ("python", "py", "python3"),
    "shell": ("shell", "sh", "bash"),
    "javascript": ("javascript", "js", "node"),
    "perl": ("perl", "pl"),
    "c": ("c",),
}
"""Language -> how a block of it may be marked; the first is what the question asks for."""

MAX_ANSWER = 200_000
"""Characters; a longer answer holds no program."""


def program_in(answer: str, language: Language) -> str | None:
    """The program that counts: the last fenced block that is marked with the language, else the
    last one without a mark. A fence that nothing closes lasts to the end, as CommonMark has it.
    None where there is no such block, or it is no text."""
    if len(answer) > MAX_ANSWER:
        return None
    marked: dict[bool, str] = {}
    for token in _markdown().parse(answer):
        mark = re.search(r"[\w+#]+", token.info)
        if token.type == "fence" and (mark is None or mark[0].lower() in TAGS[language]):
            marked[mark is not None] = token.content
    program = marked.get(True, marked.get(False))
    return program if program is not None and _is_text(program) else None


@cache
def _markdown() -> MarkdownIt:
    """Without what stands inside a line, which holds no block."""
    return MarkdownIt("commonmark").disable("inline")


def _is_text(program: str) -> bool:
    """Whether it can be written into a file: half of a surrogate pair cannot."""
    try:
        program.encode()
    except UnicodeEncodeError:
        return False
    return True
