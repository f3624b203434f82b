"""`synth tools list`, `show` and `stats`: pages, JSON, and errors that say what there is."""

import json
from pathlib import Path

import pytest

from flows.cli.main import run
from records.store.dataset import Dataset
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.domains.domain import load_domains


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    [domain] = load_domains(["clinic_desk"])
    folder = tmp_path_factory.mktemp("cli") / "data"
    tables = {"tools": tool_rows(domain), "domains": [domain_row(domain)]}
    Dataset.create_or_open(folder).commit(
        run_id="r", stage="import", shard=0, tables=tables, items={}
    )
    return str(folder)


def test_a_page_says_where_the_next_begins(data, capsys):
    assert run(["tools", "list", "--dataset", data, "--limit", "3"]) == 0
    out, err = capsys.readouterr()
    assert "add_allergy" in out
    assert "tools 1 to 3 of 11; the next page: --offset 3" in err
    assert run(["tools", "list", "--dataset", data, "--offset", "9", "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)) == 2
    assert "tools 10 to 11 of 11\n" in err
    assert run(["tools", "list", "--dataset", data, "--offset", "99"]) == 0
    assert "no tool is on this page; 11 pass" in capsys.readouterr().err


def test_all_prints_all(data, capsys):
    assert run(["tools", "list", "--dataset", data, "--all", "--json", "--limit", "2"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 11


def test_show_and_stats_as_text_and_json(data, capsys):
    assert run(["tools", "show", "cancel_appointment", "--dataset", data]) == 0
    assert "update slot" in capsys.readouterr().out
    assert run(["tools", "show", "cancel_appointment", "--dataset", data, "--json"]) == 0
    [tool] = json.loads(capsys.readouterr().out)
    assert (tool["domain"], tool["example"]["diff"][0]["op"]) == ("clinic_desk", "update")
    assert run(["tools", "stats", "--dataset", data]) == 0
    assert "healthcare_medical" in capsys.readouterr().out
    assert run(["tools", "stats", "--dataset", data, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tools"][0]["usable"] == 11


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--category", "health"], "no tool of"),
        (["list", "--limit", "0"], "--limit"),
        (["list", "--source", "web"], "--source"),
        (["show", "nothing_here"], "synth tools list --search here"),
    ],
)
def test_wrong_use_is_refused(data, capsys, arguments, words):
    assert run(["tools", *arguments, "--dataset", data]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_is_no_dataset_is_refused(tmp_path: Path, capsys):
    assert run(["tools", "stats", "--dataset", str(tmp_path / "none")]) == 2
    assert "--dataset" in capsys.readouterr().err


def test_coverage_as_text_json_and_a_map(data, tmp_path: Path, capsys):
    assert run(["tools", "coverage", "--dataset", data]) == 0
    assert "synthetic" in capsys.readouterr().out
    assert run(["tools", "coverage", "--dataset", data, "--json"]) == 0
    [cell] = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["place"], cell["tools"]) == ("clinic_desk", 11)
    svg = tmp_path / "map.svg"
    assert run(["tools", "coverage", "--dataset", data, "--svg", str(svg)]) == 2
    assert "too few usable tools" in capsys.readouterr().err
    assert not svg.exists()
