"""Definitions of joined servers: what they take over from their parts, and what is refused."""

from pathlib import Path

import pytest

from records.errors import ConfigError
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.joined import joint_names
from sandboxes.mcp.joining import files_joined, programs_of
from sandboxes.mcp.launch import load_server
from tests.sandboxes.mcp.joined_work import OFFICE, WARD, joined_in


def test_a_joined_server_takes_over_what_its_parts_say(tmp_path: Path) -> None:
    (tmp_path / "loans.yaml").write_text(
        "{command: python loan_server.py, license: MIT, clock: '2026-05-01T10:00:00', "
        "title: Tool library, description: Lends tools., probes: {item: [ls]}, "
        "fixtures: {default: {}, empty: {}}}"
    )
    (tmp_path / "contacts.yaml").write_text(
        "{command: python contact_server.py, license: Apache-2.0, split: heldout_domain, "
        "hosts: [example.org], fixtures: {default: {}, small: {}}}"
    )
    office = joined_in(tmp_path, *OFFICE)
    assert office.name == "office"
    assert office.title == "Tool library and contacts"
    assert office.description == "Tool library: Lends tools."
    assert (office.license, office.split) == ("Apache-2.0 AND MIT", "heldout_domain")
    assert {part.clock for part in office.parts} == {office.clock} == {"2026-05-01T10:00:00"}
    assert set(office.probes) == {"loans/item"}
    assert set(office.fixtures) == {
        "default",
        "loans=empty",
        "contacts=small",
        "loans=empty, contacts=small",
    }
    chosen = office.with_fixtures({"fixture": "contacts=small"})
    assert [fixture["fixture"] for _, fixture in chosen] == ["default", "small"]
    with pytest.raises(ConfigError, match="office has no fixture 'full'"):
        office.with_fixtures({"fixture": "full"})
    assert (office.may_write, office.reaches_out) == (True, True)
    assert [part.may_write for part in office.parts] == [True, False]


def test_a_licence_that_is_not_known_makes_that_of_the_whole_unknown(tmp_path: Path) -> None:
    (tmp_path / "loans.yaml").write_text("{command: python loan_server.py, license: MIT}")
    assert joined_in(tmp_path, *OFFICE).license == "unknown"


def test_the_identity_hangs_on_every_part(tmp_path: Path) -> None:
    seen = {source_of(joined_in(tmp_path, *OFFICE)).definition}
    assert source_of(joined_in(tmp_path, *OFFICE)).definition in seen
    for text in (
        "{command: python contact_server.py, env: {A: b}}",
        "{command: python contact_server.py, fixtures: {default: {files: {a.txt: b}}}}",
        "{command: python contact_server.py, name: people}",
    ):
        (tmp_path / "contacts.yaml").write_text(text)
        seen.add(source_of(joined_in(tmp_path, *OFFICE)).definition)
    seen.add(source_of(joined_in(tmp_path, "loans.yaml", "domain:clinic_desk")).definition)
    assert len(seen) == 5


def test_a_domain_is_named_by_its_file_too_and_gives_the_clock(tmp_path: Path) -> None:
    ward = joined_in(tmp_path, *WARD)
    desk = ward.parts[1]
    assert {part.clock for part in ward.parts} == {desk.clock}
    assert "Do not book for a patient who owes more than 100 USD" in ward.description
    assert [part.name for part in programs_of(ward)] == ["contacts"]
    (tmp_path / "desk.yaml").write_bytes(Path(desk.model_dump()["path"]).read_bytes())
    by_file = joined_in(tmp_path, "contacts.yaml", "domain:desk.yaml")
    assert by_file.identity() == ward.identity()
    assert list(files_joined(tmp_path / "office.yaml")) == [
        tmp_path / "contacts.yaml",
        tmp_path / "desk.yaml",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("joins: [loans.yaml]", "joins: Tuple should have at least 2 items"),
        ("joins: [git, time, memory, filesystem]", "joins: Tuple should have at most 3 items"),
        ("{joins: [git, time], command: a}", "command: Extra inputs are not permitted"),
        ("joins: [git, tune]", "joins names 'tune'; allowed: .*git.*, or domain:NAME"),
        ("joins: [git, nowhere.yaml]", r"nowhere\.yaml: no such file"),
        ("joins: [git, git]", "two parts are called git; give one another `name`"),
        ("joins: [git, office.yaml]", "office.yaml, which is a joined server; name its parts"),
        ("joins: ['domain:clinic_desk', 'domain:web_shop']", "make one of them first with"),
        ("joins: [git, 'domain:builtin/*']", r"which means \d+ domains; name one"),
        ("joins: [git, 'domain:app_manager']", "in which time passes"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_file(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "office.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_server(path)
    assert str(path) in str(caught.value)


def test_names_that_two_parts_have_get_their_parts_name_and_others_stay() -> None:
    names = joint_names(
        {"a": ["find", "get-all", "b_find"], "b": ["find", "get_all", "only b"], "c": ["a_find"]}
    )
    assert names == {
        ("a", "find"): "a_a_find",  # the third part has the nearer one
        ("b", "find"): "b_b_find",
        ("a", "get-all"): "a_get_all",  # for models both are get_all
        ("b", "get_all"): "b_get_all",
        ("a", "b_find"): "b_find",
        ("b", "only b"): "only b",
        ("c", "a_find"): "a_find",
    }
