"""The agent's job on code: run the tests, read what fails, try small repairs until they pass.

It understands no program. It looks where the failing test points and tries edits of its own few
kinds, one after the other; many mistakes are of other kinds, or too far away, and there it says
so in the end.
"""

import json
import re
from typing import Any

from offline_llm.code.edits import names_called, repairs
from offline_llm.code.reading import Edit, Kit, Seen, kit_of, look_back
from offline_llm.reading.toolbox import Tool
from offline_llm.server.request import RequestMessage
from offline_llm.server.response import Reply
from offline_llm.settings.mistakes import Slips

__all__ = ["kit_of", "mend"]

MAX_TRIES = 20
MAX_SEARCHES, MAX_VIEWS = 6, 3
_FILE = re.compile(r"['\"/ ]([\w-]+\.(?:py|sh|js|pl|c))['\"]")
_TESTS = re.compile(r"(?:^|/)tests?(?:/|_)|_test\.")
_DONE = (
    "I have repaired {path}: one line was wrong. All tests pass now.",
    "The mistake was in {path}; I have corrected it, and all the tests pass.",
    "Done: {path} is put right, and the whole test suite passes again.",
)
_GIVEN_UP = (
    "I could not find the cause. I tried {count} changes, none of them made the tests pass, and"
    " the files are as they were.",
    "I am sorry, I did not get to the bottom of this. After {count} attempts the tests still fail;"
    " I left everything as it was.",
)
_NOTHING = "All tests pass as things stand, so I have changed nothing."


def mend(messages: list[RequestMessage], kit: Kit, slips: Slips) -> Reply:
    """The next message of an agent that mends code."""
    seen = look_back(messages, kit)
    first = seen.first
    if first is None:
        return _calls(kit.run())
    last = seen.last
    if last is not None and not last.failed:
        return _passed(seen, kit, slips) if seen.active else Reply(_NOTHING)
    if unread := _to_read(seen, kit):
        return _calls(*unread)
    tries = len(seen.tried)
    if slips.happens("premature_end", "code") and tries > 2:
        return _give_up(seen, kit, slips)
    edit = _next(seen)
    if edit is None or tries >= MAX_TRIES:
        return _give_up(seen, kit, slips)
    if seen.stale and seen.active:  # an edit was made and its run was not told
        return _calls(kit.run(first.names[0]))
    taken_back = [kit.edit(edit.back) for edit in reversed(seen.active)]
    return _calls(*taken_back, kit.edit(edit), kit.run(first.names[0]))


def _passed(seen: Seen, kit: Kit, slips: Slips) -> Reply:
    """One test that passes is not yet all of them."""
    if seen.last is not None and seen.last.only:
        return _calls(kit.run())
    return Reply(_chosen(_DONE, slips).format(path=seen.active[-1].path))


def _to_read(seen: Seen, kit: Kit) -> list[tuple[Tool, dict[str, Any]]]:
    """What must be looked at before anything is tried: the test, then where the functions that it
    calls are defined, then those files."""
    first = seen.first
    assert first is not None
    test = next((frame for frame in first.frames if _TESTS.search(frame.path)), None)
    if test is not None and test.path not in seen.files:
        return [kit.view(test.path)]
    wanted = [f"def {name}(" for name in _names(seen)[:MAX_SEARCHES]]
    if searches := [text for text in wanted if text not in seen.hits]:
        return [kit.search(text) for text in searches]
    paths = [frame.path for frame in reversed(first.frames)]
    paths += [path for hits in seen.hits.values() for path, _ in hits]
    if test is not None:
        paths += [name for name in _FILE.findall(seen.files[test.path])]
    sources = [path for path in dict.fromkeys(paths) if not _TESTS.search(path)][:MAX_VIEWS]
    return [kit.view(path) for path in sources if path not in seen.files]


def _names(seen: Seen) -> list[str]:
    """Names that the failing test calls, those of its own last line first; none of the tests'."""
    first = seen.first
    assert first is not None
    called = [name for frame in first.frames for name in names_called(frame.code)]
    called += [frame.function for frame in reversed(first.frames)]
    test = next((f for f in first.frames if _TESTS.search(f.path)), None)
    if test is not None:
        lines = seen.files.get(test.path, "").split("\n")
        start = min(test.line, len(lines))  # a long file is shown in part
        while start > 1 and not lines[start - 1].lstrip().startswith("def "):
            start -= 1
        called += names_called("\n".join(lines[start : test.line + 6]))
        called += re.findall(r"\.(\w+)\b", test.code)
    own = re.compile(r"assert|^test|^self$|^raise|Error$|^(?:range|len|str|int|sum|max|min|check)$")
    return [name for name in dict.fromkeys(called) if not own.search(name)]


def _next(seen: Seen) -> Edit | None:
    first = seen.first
    assert first is not None
    files = {path: text for path, text in seen.files.items() if not _TESTS.search(path)}
    for edit in seen.active:  # candidates are those of the files as they were
        files[edit.path] = files[edit.path].replace(edit.new, edit.old, 1)
    known = [edit for edit in seen.tried if edit not in seen.active]
    done = {*known, *seen.active}
    frames = tuple(f for f in first.frames if not _TESTS.search(f.path))
    return next((e for e in repairs(files, _names(seen), frames) if e not in done), None)


def _give_up(seen: Seen, kit: Kit, slips: Slips) -> Reply:
    if seen.active:
        return _calls(*(kit.edit(edit.back) for edit in reversed(seen.active)))
    if slips.happens("claims_without_doing", "code"):
        path = next((p for p in reversed(seen.files) if not _TESTS.search(p)), "the code")
        return Reply(_chosen(_DONE, slips).format(path=path))
    return Reply(_chosen(_GIVEN_UP, slips).format(count=len(seen.tried)))


def _chosen(texts: tuple[str, ...], slips: Slips) -> str:
    return texts[int(slips.draw("code_words") * len(texts))]


def _calls(*calls: tuple[Tool, dict[str, Any]]) -> Reply:
    return Reply("", tuple((t.name, json.dumps(a, ensure_ascii=False)) for t, a in calls))
