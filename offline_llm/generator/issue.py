"""Generator, job `issue`: what a person who uses a program tells of it, from its failing tests."""

from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_TITLES = (
    "{title}: {what}",
    "Wrong result: {what}",
    "{what} does not work any more",
    "Problem with {what}",
)
_EXPECTED = ("I expected this: {doc}", "It should be like this: {doc}", "What I count on: {doc}")
_SEEN = ("Instead I get: {message}.", "What I see is: {message}.", "What comes of it: {message}.")
_MORE = ("The same goes for {others}.", "I also see it with {others}.")
_ASK = (
    "Could you put it right?",
    "Please fix it without breaking the rest.",
    "Please have a look and repair it.",
)


def write_issue(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    found = sections(request)
    failing = [t for t in json_of(found, "failing tests", []) if isinstance(t, dict)]
    title = str(json_of(found, "repository", {}).get("title") or "the program")
    rng = rng_of(request.key, "issue")
    first = failing[0] if failing else {}
    what = _what(first) or "the result"
    parts = []
    if doc := str(first.get("doc") or ""):
        parts.append(rng.choice(_EXPECTED).format(doc=doc if doc.endswith(".") else f"{doc}."))
    if message := str(first.get("message") or "").rstrip("."):
        parts.append(rng.choice(_SEEN).format(message=message))
    others = sorted({_what(test) for test in failing[1:]} - {what, ""})
    if others:
        parts.append(rng.choice(_MORE).format(others=", ".join(others)))
    parts.append(rng.choice(_ASK))
    once = what.casefold() == title.casefold()
    titles = _TITLES[1:] if once else _TITLES
    subject = rng.choice(titles).format(title=title, what=what)
    return {"title": subject[:1].upper() + subject[1:], "body": " ".join(parts)}


def _what(test: dict[str, Any]) -> str:
    """The test's own name in words: what it is about."""
    name = str(test.get("name") or "").replace("::", ".").rpartition(".")[2]
    return name.removeprefix("test").replace("_", " ").strip()
