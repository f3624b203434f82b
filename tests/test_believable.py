"""The sheet that readers judge: both kinds alike, nothing that tells them apart, and its scores."""

import json
from pathlib import Path

import pytest

from benchmarks.believable import (
    KeyEntry,
    ReadTool,
    answers_of,
    drawn,
    main,
    scored,
    shown,
)
from records.errors import ConfigError
from tool_specs.coverage.believability import CountedTool

KEY = [KeyEntry(1, "written", "pump", "a"), KeyEntry(2, "real", "crm", "b")]


def counted(name: str, **params: dict) -> CountedTool:
    schema = {"type": "object", "properties": params, "required": list(params)[:1]}
    return CountedTool("place", name, f"Does\n {name}.", schema, frozenset())


def lists(folder: Path, number: int) -> Path:
    tools = [
        {"name": f"fetch_{n}", "inputSchema": {"properties": {"id": {"type": "string"}}}}
        for n in range(number)
    ]
    path = folder / "lists.json"
    path.write_text(json.dumps({"server": "secret-server", "tools": tools}))
    return path


def test_what_is_drawn_can_be_read_answered_and_scored(tmp_path: Path, capsys) -> None:
    sheet, key, answers = (tmp_path / name for name in ("sheet.md", "key.json", "answers.txt"))
    real = lists(tmp_path, 6)
    options = ["--real", str(real), "--out", str(sheet), "--key", str(key), "--number", "5"]
    main(["draw", *options, "--domains", "smart_home/*"])
    first = sheet.read_text()
    main(["draw", *options, "--domains", "smart_home/*"])
    assert sheet.read_text() == first
    main(["draw", *options, "--domains", "smart_home/*", "--seed", "1"])
    assert sheet.read_text() != first
    entries = json.loads(key.read_text())["tools"]
    assert [entry["number"] for entry in entries] == list(range(1, 11))
    assert "secret-server" not in sheet.read_text()
    assert all(f"## {e['number']}\n\n`{e['name']}`" in sheet.read_text() for e in entries)
    answers.write_text(
        "".join(
            f"{e['number']}: {'believable' if e['kind'] == 'real' else 'not, too neat'}\n"
            for e in entries
        )
    )
    capsys.readouterr()
    main(["score", "--key", str(key), str(answers)])
    written, real_line, *refused = capsys.readouterr().out.splitlines()
    assert written.startswith("written  0 of 5 believable (0.0%, 95% interval 0.0% to 43.4%)")
    assert real_line.startswith("real     5 of 5 believable (100.0%, 95% interval 56.6% to 100.0%)")
    assert len(refused) == 5
    assert all(line.endswith("too neat") for line in refused)


def test_tools_that_look_alike_are_drawn_once() -> None:
    twice = [counted("one"), counted("one"), counted("two")]
    names = {tool.name for kind, tool in drawn(twice, twice, number=2, seed=3) if kind == "real"}
    assert names == {"one", "two"}
    with pytest.raises(ConfigError, match="--number 3: there are 2 written tools"):
        drawn(twice, twice, number=3, seed=3)


def test_a_tool_is_shown_with_its_parameters_in_whatever_form_its_schema_has() -> None:
    tool = counted(
        "set_alarm",
        at={"type": ["string", "null"], "description": "When."},
        tone={"enum": ["low", "high", None], "default": "low"},
        days={"type": "array", "items": {"type": "object", "properties": {"day": {}}}},
        speed={"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    )
    assert shown(tool).splitlines() == [
        "`set_alarm`",
        "",
        "Does set_alarm.",
        "",
        "- `at` (string, required): When.",
        '- `tone` (string, optional, one of "low", "high", default "low")',
        "- `days` (array of object, optional)",
        "  - `day` (any, optional)",
        "- `speed` (number, optional)",
    ]


def test_answers_of_several_readers_are_counted_and_what_is_missing_told() -> None:
    readers = [
        answers_of("# mine\n1: believable\n\n2) NOT: no such thing", KEY),
        answers_of("2. believable", KEY),
    ]
    assert readers[0][2] == ReadTool(False, "no such thing")
    written, real = scored(KEY, readers)
    assert (written.answered, written.believable, written.missing) == (1, 1, 1)
    assert (real.answered, real.believable, real.missing) == (2, 1, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1: perhaps", "is no answer"),
        ("3: believable", "3 is no number of the sheet"),
        ("1: not, x\n1: believable", "1 is answered twice"),
    ],
)
def test_an_answer_that_cannot_be_counted_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        answers_of(text, KEY)
