"""`synth domain`: a new domain is proved as written, and a flaw in it is named."""

import json
from pathlib import Path

import pytest

from flows.cli.main import run


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    path = tmp_path / "night_market.yaml"
    assert run(["domain", "new", str(path)]) == 0
    return path


def test_a_new_domain_is_proved_and_shows_a_task(fresh, capsys):
    assert run(["domain", "check", str(fresh), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["domain"], report["problems"]) == ("night_market", [])
    assert all(tool["example"] for tool in report["tools"])
    assert report["policy"] == {"ladders_for_a_week": True}
    assert {step["tool"] for step in report["example_task"]["plan"]} <= {
        tool["name"] for tool in report["tools"]
    }


def test_a_flaw_is_named_and_fails(fresh, capsys):
    text = fresh.read_text()
    idle = text.replace("member.deposit >= item.deposit", "member.deposit >= 0")
    assert idle != text
    fresh.write_text(idle)
    with pytest.raises(SystemExit) as exit_:
        run(["domain", "check", str(fresh)])
    assert exit_.value.code == 1
    assert "deposit_too_low never happened" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("market.txt", "ends in .yaml"),
        ("Night-Market.yaml", "lower-case words"),
        ("missing/market.yaml", "No such file or directory"),
    ],
)
def test_new_refuses_what_cannot_be_a_domain_file(tmp_path, capsys, name, words):
    assert run(["domain", "new", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().err


def test_what_does_nothing_is_named_with_what_to_do(fresh, capsys):
    text = fresh.read_text()
    late = "loan.due_on < date(now())"
    idle = text.replace(late, f"{late} and loan.due_on > '2000'")
    assert idle != text
    fresh.write_text(idle)
    with pytest.raises(SystemExit):
        run(["domain", "check", str(fresh)])
    told = capsys.readouterr().err
    assert "it does the same" in told
    assert "give the seed rows" in told


def test_new_never_overwrites(fresh, capsys):
    fresh.write_text("mine")
    assert run(["domain", "new", str(fresh)]) == 2
    assert fresh.read_text() == "mine"
    assert "exists already" in capsys.readouterr().err


def test_list_names_every_domain_of_a_category(capsys):
    assert run(["domain", "list", "--category", "smart_home", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "home_hub" in {row["domain"] for row in found}
    assert run(["domain", "list", "--category", "no_such"]) == 2
