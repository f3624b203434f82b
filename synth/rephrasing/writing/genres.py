"""What kind of text a source is, and which styles and perspectives suit it.

Genres stand in one data file, `prompts/rephrase/genres.toml`. Where the settings name none, the
rewriter is asked about a document's beginning; an answer that names none is `other`.
"""

import asyncio
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakValueDictionary

from records.digest import digest
from records.errors import ConfigError, ItemError
from synth.llm.client import LLM
from synth.prompts import templates as prompts

PROMPT = "genre"

OTHER = "other"

BEGINNING = 1000
"""Characters of a document by which its genre is told: some 250 tokens."""

_FILE = prompts.FOLDER / "rephrase" / "genres.toml"


class TextGenre(NamedTuple):
    name: str
    says: str
    """What it is, in a line."""
    styles: tuple[str, ...]
    """Names of those that suit it."""
    perspectives: tuple[str, ...]
    """The same; empty where all suit."""


@lru_cache
def genres() -> Mapping[str, TextGenre]:
    """All of them, by name, in the order of the file."""
    read = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {
        name: TextGenre(name, one["says"], tuple(one["styles"]), tuple(one.get("perspectives", ())))
        for name, one in read.items()
    }


def genre_named(name: str) -> TextGenre:
    """Raises ConfigError that lists the names there are."""
    if name not in genres():
        raise ConfigError(f"genre: {name!r} is none of: {', '.join(genres())}")
    return genres()[name]


def genres_version() -> str:
    """Digest of the file, and of the prompt that asks for one of them."""
    return digest(_FILE.read_text(encoding="utf-8"), prompts.version_of(PROMPT))


class GenreFinder:
    """Asks once for each document in a shard: rewrites of it that are made at the same time wait
    for the first, and find its answer in the shard's journal. They stand side by side in the plan,
    so few documents lie in two shards."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def of(self, document: str, text: str, llm: LLM) -> str:
        """The name of the genre. `document`: its id, the same for all its rewrites. Raises what
        `LLM.chat` raises, but for what is this request's own: of a text about which nothing can be
        asked it is `other`."""
        lock = self._locks.setdefault(document, asyncio.Lock())
        talk = prompts.render(
            PROMPT, genres=list(genres().values()), beginning=text[:BEGINNING]
        ).messages
        async with lock:
            try:
                answer = await llm.chat(
                    "rewriter", talk, item=document, step="genre", may_be_cut=True
                )
            except ItemError:
                return OTHER
        return genre_in(answer.content)


def genre_in(answer: str) -> str:
    """The one genre that an answer names; `other` where it names none or several."""
    words = re.findall(r"[a-z]+", answer.lower().replace("-", ""))
    named = genres().keys() & set(words)
    return named.pop() if len(named) == 1 else OTHER
