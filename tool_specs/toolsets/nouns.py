"""What names of tools and parameters speak of: `list_pull_requests` gives a pull request, and
`pullRequestId` asks for one.

Real tools state no output schema (none of 6,044 that were looked at), so for them the name is the
only word on what an answer holds. A noun is a phrase in the singular, its words parted by spaces.
"""

import re
from functools import lru_cache
from typing import NamedTuple


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


GIVING = _set(
    """
    add browse create discover fetch find generate get import insert list lookup make new open
    post query read register retrieve scan scrape search show start upload view
    """
)
"""Verbs whose answer holds what they name."""

MAKING = _set("add create generate insert make new open post register start upload")
"""Those of them that make it."""

ACTING = _set(
    """
    analyze approve archive assign cancel check clear close compare complete convert copy count
    delete describe disable disconnect download edit enable execute export invite kill load lock
    merge modify move play publish remove rename reply reset resolve restore run save send set
    share stop submit summarize sync track transfer update validate verify write
    """
)
"""Verbs that change or examine what they name; the caller knows it already."""

_ENDING = _set(
    """
    and as at between by for from in into near of on or to using via with within
    """
)
"""Words that end the phrase of what a tool is about."""

_FILLING = _set(
    """
    a active all an available batch bulk current data detail detailed details full info
    information latest list many multiple my new recent result results single specific summary the
    """
)
"""Words of a phrase that name no thing."""

IDENTITY = _set("id ids key slug uuid guid uid gid identifier handle hash")
"""Last words of a parameter that holds the identity of what stands before them."""

NUMBERING = _set("number num no")
"""Last words that do so too, but for page numbers and their like."""

NAMING = _set("name names")
"""Last words of a parameter that names what stands before them: a value."""

GENERIC = _set(
    """
    access_token action after amount api_key arg argument attribute base before body boolean
    caption category code color column command comment config configuration content context count
    criteria currency cursor date day default depth description destination detail dimension
    direction duration element email enabled encoding end end_date end_time entry error event
    exclude expression field filter first flag force format from height hour include index input
    instruction item key kind label language last length level limit line line_number locale max
    max_result maximum message metadata method min minimum mode month name note note_text num
    num_result number object offset operation option order order_by output page page_number
    page_size page_token param parameter password pattern per per_page percent period position
    priority prompt property quantity query radius range reason record recursive request resource
    response row scale schema scope score search second secret_key section selector size skip sort
    sort_by sort_order source stage start start_date start_time state status step string subject
    summary tag target template term text threshold time timeout timestamp timezone title to token
    top total type unit until update value verbose version view week weight width with x y year z
    """
)
"""Names (words joined by _) that say how a call is made and not what it is about."""

_SHORT = {
    "repo": "repository", "org": "organization", "db": "database", "doc": "document",
    "msg": "message", "dir": "directory", "folder": "directory", "pr": "pull request",
    "txn": "transaction", "tx": "transaction", "img": "image", "addr": "address",
    "info": "information", "acct": "account", "dept": "department", "env": "environment",
}  # fmt: skip

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class ToolSubject(NamedTuple):
    """What a tool's name says."""

    noun: str
    """Empty where the name says nothing."""
    gives: bool
    """The answer holds such things."""
    makes: bool
    """The thing is new, and an id of it that is asked for is the caller's choice."""


@lru_cache(maxsize=200_000)
def words_of(name: str) -> tuple[str, ...]:
    """Lower-case words of a name in snake, kebab, dotted or camel case; digits left out."""
    return tuple(word.lower() for word in _WORD.findall(name))


def singular(word: str) -> str:
    if len(word) < 4 or word.endswith(("ss", "us", "is", "news")):
        return _SHORT.get(word, word)
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    word = word.removesuffix("s")
    return _SHORT.get(word, word)


def phrase(words: tuple[str, ...]) -> str:
    return " ".join(singular(word) for word in words if word not in _FILLING)


def generic(noun: str) -> bool:
    return not noun or noun.replace(" ", "_") in GENERIC


@lru_cache(maxsize=200_000)
def subject_of(tool: str, server: str) -> ToolSubject:
    """The verb may stand first, last, or after the product's name; which words are that name is
    seen from the server's."""
    words = words_of(tool)
    product = set(words_of(server))
    while len(words) > 1 and words[0] in product and words[0] not in GIVING | ACTING:
        words = words[1:]
    at = next((i for i, word in enumerate(words) if word in GIVING or word in ACTING), None)
    if at is None:
        return ToolSubject("", False, False)
    after = words[at + 1 :]
    end = next((i for i, word in enumerate(after) if word in _ENDING), len(after))
    noun = phrase(after[:end]) or phrase(words[:at])
    return ToolSubject(noun, words[at] in GIVING, words[at] in MAKING)


class AskedNoun(NamedTuple):
    """What a parameter asks for."""

    noun: str
    """Empty where it asks for nothing that a tool would give."""
    is_id: bool
    """An identity, which means something in one system only; else a value that travels."""


@lru_cache(maxsize=200_000)
def asked_by(parameter: str, subject: str) -> AskedNoun:
    """`subject` is what the tool is about: a bare `id` is the id of that."""
    words = words_of(parameter)
    if not words:
        return AskedNoun("", False)
    before = phrase(words[:-1])
    if words[-1] in IDENTITY:
        return AskedNoun(before or subject, True)
    if before and words[-1] in NUMBERING:
        return AskedNoun("" if generic(before) else before, True)
    noun = before if before and words[-1] in NAMING else phrase(words)
    return AskedNoun("" if generic(noun) else noun, False)


def heads(noun: str) -> list[str]:
    """The phrase and its endings: a pull request comment is a comment too."""
    words = noun.split()
    return [" ".join(words[i:]) for i in range(len(words))]
