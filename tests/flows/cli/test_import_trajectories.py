"""`synth import`: what is told to people and to programs, and which code it ends with."""

import json
from pathlib import Path

import pytest

from flows.cli.main import run
from records.store.dataset import Dataset
from tests.synth.importing.examples import TOOLS, lines, openai, results, simulation


def test_rows_are_counted_for_people_and_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path / "f.jsonl", [openai(), openai(), {"x": "\u202e"}])
    command = ["import", str(file), "--dataset", str(tmp_path / "d"), "--json"]
    assert run(command) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["read"], told["added"], told["repeated"]) == (3, 1, 1)
    assert told["listed"][0]["place"] == "line 3"
    assert f"{file}, line 3: unknown_shape: it has neither messages" in err
    assert "3 rows: 1 added, 0 there already, 1 repeated in the files, 1 refused" in err
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["known"] == 2


def test_what_was_imported_is_shown_and_not_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, dataset = lines(tmp_path / "f.jsonl", [openai()]), ["--dataset", str(tmp_path / "d")]
    assert run(["import", str(file), *dataset]) == 0
    (made,) = Dataset.open(tmp_path / "d").ids("trajectories")
    assert run(["replay", str(made), *dataset]) == 2
    assert f"{made} was imported: its calls were made elsewhere" in capsys.readouterr().err
    assert run(["view", str(made), *dataset]) == 0
    assert "find_boat elsewhere" in capsys.readouterr().out


def test_tools_come_from_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(results(simulation())))
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    command = ["import", str(tmp_path / "r.json"), "--tools", str(tmp_path / "tools.json")]
    assert run([*command, "--dataset", str(tmp_path / "d"), "--license", "MIT"]) == 0
    rows = Dataset.open(tmp_path / "d").rows("tools")
    assert {(row["name"], row["license"], row["source"]) for row in rows} == {
        ("find_boat", "MIT", "imported"),
        ("rent_boat", "MIT", "imported"),
    }


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "requires an argument"),
        (["none.jsonl"], 2, "FILE = 'none.jsonl': there is no such file or folder"),
        ([""], 2, "FILE = '': there is no such file or folder"),
        (["empty.jsonl"], 1, "no rows in empty.jsonl"),
        (["f.jsonl", "--license", "mine"], 2, "license = 'mine' is no SPDX id"),
        (["f.jsonl", "--tools", "f.jsonl"], 2, "f.jsonl cannot be imported"),
        (["f.jsonl", "--tools", "tools.json"], 2, "cannot be used: invalid_schema"),
        (["f.jsonl", "--format", "alpaca"], 2, "alpaca"),
        (["f.jsonl", "--tools", "none.json"], 2, "none.json cannot be imported"),
        (["f.jsonl"], 1, "no conversation of 1 rows could be taken"),
    ],
)
def test_wrong_use_says_what_and_where(
    arguments: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    lines(tmp_path / "f.jsonl", [{"x": 1}])
    lines(tmp_path / "empty.jsonl", [])
    lines(tmp_path / "tools.json", [[{"name": "a", "parameters": {"type": "nonsense"}}]])
    assert run(["import", *arguments, "--dataset", "d"]) == code
    out, err = capsys.readouterr()
    assert words in out + err
