"""What lies in a workspace as rows: tables, JSON, texts, folders."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.mcp.state import BOUNDS, PROGRAM
from synth.rubrics.built_in import net_changes, state_changes

Rows = dict[str, dict[str, Any]]


def read(folder: Path, **bounds: int) -> dict[str, Any]:
    request = json.dumps(BOUNDS | {"root": str(folder)} | bounds)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", str(PROGRAM), request],
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def state(folder: Path) -> dict[str, Rows]:
    return read(folder)["state"]


def test_tables_are_rows_by_their_key(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "a.db")
    base.execute("create table t (id integer primary key, name text, tags text, raw blob)")
    base.execute("create table pair (a text, b text, n integer, primary key (a, b))")
    base.execute("create table bare (word text)")
    base.execute("insert into t values (7, 'x', '[1, 2]', x'00ff')")
    base.execute("insert into pair values ('p', 'q', 3)")
    base.execute("insert into bare values ('w')")
    base.commit()
    base.execute("pragma journal_mode = wal")
    base.execute("insert into bare values ('in the journal')")
    base.commit()
    found = state(tmp_path)
    assert found["a.db:t"]["7"]["tags"] == [1, 2]
    assert set(found["a.db:t"]["7"]) == {"name", "tags", "raw"}
    assert found["a.db:pair"] == {"p | q": {"a": "p", "b": "q", "n": 3}}
    assert [row["word"] for row in found["a.db:bare"].values()] == ["w", "in the journal"]
    assert found["file"] == {"a.db": {}}, (
        "what SQLite keeps beside a database is no file of its own"
    )
    base.close()


def test_json_is_rows_and_the_first_row_is_named_like_the_next(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('[{"id": 1, "a": 2}, {"id": 3, "a": 4}]')
    (tmp_path / "mapping.json").write_text('{"x": {"a": 1}, "y": {"a": 2}}')
    (tmp_path / "parts.json").write_text('{"version": 2, "people": [{"name": "Ada"}]}')
    (tmp_path / "lines.jsonl").write_text('{"type": "dog", "name": "Bo"}\n')
    one = state(tmp_path)
    assert one["list.json"] == {"1": {"a": 2}, "3": {"a": 4}}
    assert one["mapping.json"] == {"x": {"a": 1}, "y": {"a": 2}}
    assert one["parts.json:people"] == {"Ada": {}}
    assert one["parts.json"] == {"": {"version": 2}}
    with (tmp_path / "lines.jsonl").open("a") as lines:
        lines.write('{"type": "cat", "name": "Mu"}\n')
    [change] = state_changes(one, state(tmp_path))
    assert (change["op"], change["entity"], change["id"]) == ("create", "lines.jsonl:cat", "Mu")


@pytest.mark.parametrize("names", ["abc", "a"])
def test_a_row_without_the_id_of_the_others_gives_them_no_other_name(
    tmp_path: Path, names: str
) -> None:
    rows: list[dict[str, Any]] = [{"id": n, "name": name} for n, name in enumerate(names)]
    (tmp_path / "l.json").write_text(json.dumps(rows))
    before = state(tmp_path)
    (tmp_path / "l.json").write_text(json.dumps([*rows, {"name": "d", "stars": 3}]))
    [change] = state_changes(before, state(tmp_path))
    assert (change["op"], change["after"]) == ("create", {"name": "d", "stars": 3})


def test_texts_folders_and_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello \r\n")
    (tmp_path / "picture.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large.txt").write_text("x" * 50)
    (tmp_path / "empty").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "a.js").write_text("1")
    (tmp_path / "audit.jsonl").write_text('{"call": 1}\n')
    (tmp_path / "server.log").write_text("called")
    (tmp_path / "catalogue.txt").write_text("no log")
    (tmp_path / "link").symlink_to("/etc/passwd")
    found = read(tmp_path, file_bytes=40)
    assert found["state"]["folder"] == {"empty": {}}
    assert set(found["state"]["file"]) == {"note.txt", "picture.bin", "catalogue.txt"}
    assert found["state"]["file"]["note.txt"] == {"text": "hello"}
    assert set(found["state"]["file"]["picture.bin"]) == {"sha256"}
    assert found["left"] == {"too_large": ["large.txt"]}


cells = st.one_of(st.integers(0, 3), st.sampled_from(["a", "b", ""]))
rows = st.dictionaries(st.sampled_from("pqr"), st.dictionaries(st.sampled_from("xyz"), cells))
states = st.dictionaries(st.sampled_from(["one", "two"]), rows)


@given(states, states)
def test_changes_lead_from_one_state_to_the_other(
    before: dict[str, Rows], after: dict[str, Rows]
) -> None:
    reached = {
        entity: {key: dict(row) for key, row in rows.items()} for entity, rows in before.items()
    }
    for change in state_changes(before, after):
        rows = reached.setdefault(change["entity"], {})
        match change["op"]:
            case "create":
                assert change["id"] not in rows
                rows[change["id"]] = dict(change["after"])
            case "delete":
                assert rows.pop(change["id"]) == change["before"]
            case "update":
                row = rows[change["id"]]
                assert {f: row.get(f) for f in change["before"]} == change["before"]
                row |= change["after"]

    def plain(state: dict[str, Rows]) -> dict[str, Rows]:
        kept = {
            entity: {
                key: {f: v for f, v in row.items() if v is not None} for key, row in rows.items()
            }
            for entity, rows in state.items()
        }
        return {entity: rows for entity, rows in kept.items() if rows}

    assert plain(reached) == plain(after)
    there = state_changes(before, after)
    assert net_changes([*there, *state_changes(after, before)]) == []
