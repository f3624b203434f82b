"""What an agent that mends code can tell from its tools and from what they returned.

Tools are known by what their names and parameters say: one runs tests, one views a file, one
searches, one replaces an old text by a new one. Nothing is remembered between requests.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from offline_llm.reading.toolbox import Param, Tool
from offline_llm.reading.words import split
from offline_llm.server.request import RequestMessage

_FAILED = re.compile(r"^FAILED\s+(\S+)", re.MULTILINE)
_COUNTS = re.compile(r"(\d+) passed, (\d+) failed")
_FRAME = re.compile(r"^\s+(\S+?):(\d+)(?: in (\w+): (.*))?$", re.MULTILINE)
_NUMBERED = re.compile(r"^ *(\d+)  (.*)$|^ *(\d+)$")
_HIT = re.compile(r"^(\S+?):(\d+): (.*)$", re.MULTILINE)


class Frame(NamedTuple):
    path: str
    line: int
    function: str
    code: str


class TestRun(NamedTuple):
    """A run of tests that was told about."""

    only: str
    failed: int
    names: tuple[str, ...]
    frames: tuple[Frame, ...]
    """Of the first failure, the test's own line first."""
    message: str


class Edit(NamedTuple):
    path: str
    old: str
    new: str

    @property
    def back(self) -> "Edit":
        return Edit(self.path, self.new, self.old)


class Kit(NamedTuple):
    """The tools that mending takes, by what they do, and their parameters."""

    runner: Tool
    viewer: Tool
    searcher: Tool
    editor: Tool
    only: Param | None
    place: Param
    """Where the editor takes the path."""
    old: Param
    new: Param

    def run(self, only: str = "") -> tuple[Tool, dict[str, Any]]:
        return self.runner, {self.only.name: only} if only and self.only else {}

    def view(self, path: str) -> tuple[Tool, dict[str, Any]]:
        return self.viewer, {self.viewer.required[0].name: path}

    def search(self, text: str) -> tuple[Tool, dict[str, Any]]:
        return self.searcher, {self.searcher.required[0].name: text}

    def edit(self, edit: Edit) -> tuple[Tool, dict[str, Any]]:
        places = (self.place.name, self.old.name, self.new.name)
        return self.editor, dict(zip(places, edit, strict=True))


def kit_of(tools: list[Tool]) -> Kit | None:
    """The tools for mending code, None where they are not all there."""
    runner = next((t for t in tools if "tests" in split(t.name) and not t.required), None)
    editor = next((t for t in tools if _named(t, "old") and _named(t, "new")), None)
    one = [t for t in tools if t.reads and len(t.required) == 1 and t is not runner]
    viewer = next((t for t in one if _named(t, "path")), None)
    searcher = next((t for t in one if "search" in split(t.name)), None)
    if not (runner and editor and viewer and searcher):
        return None
    place, old, new = (_named(editor, word) for word in ("path", "old", "new"))
    if not (place and old and new):
        return None
    only = next((p for p in runner.params if p.kind == "string"), None)
    return Kit(runner, viewer, searcher, editor, only, place, old, new)


def _named(tool: Tool, word: str) -> Param | None:
    return next((p for p in tool.params if word in split(p.name)), None)


@dataclass
class Seen:
    """What the calls so far have shown, and how the files stand now."""

    runs: list[TestRun] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Viewed files, with the edits that succeeded."""
    hits: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Text searched for -> path and line of each hit."""
    active: list[Edit] = field(default_factory=list)
    """Edits that were not taken back."""
    tried: list[Edit] = field(default_factory=list)
    """Edits that a run of tests has followed."""
    stale: bool = False
    """An edit came after the last run."""

    @property
    def first(self) -> TestRun | None:
        """The first run of all tests."""
        return next((run for run in self.runs if not run.only), None)

    @property
    def last(self) -> TestRun | None:
        return self.runs[-1] if self.runs and not self.stale else None


def look_back(messages: list[RequestMessage], kit: Kit) -> Seen:
    seen = Seen()
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    for message in messages:
        for call in message.get("tool_calls") or [] if message["role"] == "assistant" else []:
            try:
                arguments = json.loads(call["function"]["arguments"])
            except ValueError:
                continue
            _take(seen, kit, call["function"]["name"], arguments, results.get(call["id"], ""))
    return seen


def _take(seen: Seen, kit: Kit, name: str, arguments: dict[str, Any], result: str) -> None:
    if result.startswith("error:"):  # for good, unlike an error that may pass
        _note_refusal(seen, kit, name, arguments)
    elif result.startswith('{"error"'):
        return
    elif name == kit.runner.name:
        run = _run(result, str(arguments.get(kit.only.name, "")) if kit.only else "")
        if run is not None:
            seen.runs.append(run)
            seen.tried += [edit for edit in seen.active if edit not in seen.tried]
            seen.stale = False
    elif name == kit.viewer.name and (text := _source(result)) is not None:
        seen.files[str(next(iter(arguments.values())))] = text
    elif name == kit.searcher.name:
        hits = [(hit[1], int(hit[2])) for hit in _HIT.finditer(result)]
        seen.hits[str(next(iter(arguments.values())))] = hits
    elif name == kit.editor.name:
        edit = _edit_in(kit, arguments)
        text = seen.files.get(edit.path, "")
        seen.files[edit.path] = text.replace(edit.old, edit.new, 1)
        seen.stale = True
        if edit.back in seen.active:
            seen.active.remove(edit.back)
        else:
            seen.active.append(edit)


def _note_refusal(seen: Seen, kit: Kit, name: str, arguments: dict[str, Any]) -> None:
    """What did not work once will not work again."""
    if name == kit.viewer.name:
        seen.files[str(next(iter(arguments.values())))] = ""
    elif name == kit.editor.name:
        seen.tried.append(_edit_in(kit, arguments))


def _edit_in(kit: Kit, arguments: dict[str, Any]) -> Edit:
    return Edit(*(str(arguments.get(p.name, "")) for p in (kit.place, kit.old, kit.new)))


def _run(result: str, only: str) -> TestRun | None:
    counts = _COUNTS.search(result)
    if counts is None and result.startswith("no test"):  # they do not even load
        return TestRun(only, 1, (only,), (), "")
    if counts is None:
        return None
    first = result[counts.end() :].split("\nFAILED ")[1:2]
    text = first[0] if first else ""
    frames = tuple(Frame(m[1], int(m[2]), m[3] or "", m[4] or "") for m in _FRAME.finditer(text))
    message = text.split("\n")[1].strip() if "\n" in text else ""
    return TestRun(only, int(counts[2]), tuple(_FAILED.findall(result)), frames, message)


def _source(result: str) -> str | None:
    """The text behind numbered lines that begin with the first."""
    lines = []
    for number, line in enumerate(result.split("\n"), 1):
        match = _NUMBERED.match(line)
        if match is None or int(match[1] or match[3]) != number:
            break
        lines.append(match[2] or "")
    return "\n".join(lines) + "\n" if lines else None
