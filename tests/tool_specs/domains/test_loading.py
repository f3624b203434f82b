"""Domain files that are refused: every message names the file, the place, and what is allowed."""

import copy
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from tests.tool_specs.conftest import BIKE_RENTAL
from tool_specs.domains.domain import Domain, builtin_names, load_domain, load_domains
from tool_specs.domains.loading import parse_yaml, read_yaml

REFUSED = BIKE_RENTAL.parent / "refused.yaml"


def edited(*edits: tuple[str, Any]) -> Any:
    """The example domain's content with values set at paths; list items by index or by name."""
    data = copy.deepcopy(read_yaml(BIKE_RENTAL))
    for path, value in edits:
        *above, last = path.split(".")
        node = data
        for step in above:
            node = node[index_of(node, step)]
        node[index_of(node, last)] = value
    return data


def index_of(node: Any, step: str) -> Any:
    if isinstance(node, dict) or step.isdecimal():
        return int(step) if isinstance(node, list) else step
    return next(i for i, item in enumerate(node) if item["name"] == step)


def refusal_of(data: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        Domain.of(data, origin="bikes.yaml")
    return str(caught.value)


@pytest.mark.parametrize("edit", read_yaml(REFUSED), ids=lambda edit: f"{edit['at']}={edit['to']}")
def test_what_is_wrong_and_where(edit: dict[str, Any]) -> None:
    data = edited((edit["at"], edit["to"]))
    if edit["says"] is None:
        Domain.of(data, origin="bikes.yaml")
        return
    words = refusal_of(data)
    assert edit["says"] in words
    assert all(line.startswith("bikes.yaml: ") for line in words.splitlines())


@pytest.mark.parametrize("value", ["!!bool maybe", "!!int ''", "!!set {a}", "!!float x"])
def test_tags_that_do_not_fit_are_refused(value: str) -> None:
    content = BIKE_RENTAL.read_text().replace("title: ", f"title: {value} #", 1)
    with pytest.raises(ConfigError, match=r"^bikes\.yaml: "):
        Domain.of(parse_yaml(content.encode(), origin="bikes.yaml"), origin="bikes.yaml")


def test_all_problems_are_told_at_once() -> None:
    words = refusal_of(
        edited(
            ("tools.start_rental.semantics.2.that", "bike.rentabel"),
            ("tools.find_bikes.semantics.0.limit", "'x'"),
            ("seed.customer.0.favourites", ["BK-0"]),
            ("policy.0.forbids", "1"),
        )
    )
    assert len(words.splitlines()) == 5  # and args.limit is read by nothing now


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml: line 3, column 1: key 'a' stands twice"),
        ("a: [1, 2", "f.yaml: line "),
        ("a: &x [1]\nb: *x\n", "f.yaml: line 2, column 4: aliases are not allowed"),
        ("a: " + "[" * 40 + "]" * 40, "nested deeper than 30 levels"),
        ("a: !!python/object/apply:os.system ['id']", "could not determine a constructor"),
        ("a: \x00", "f.yaml: not YAML"),
        ("- 1\n- 2\n", "the file: Input should be a valid dictionary"),
        ("", "the file: Input should be a valid dictionary"),
    ],
)
def test_yaml_that_is_refused(content: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Domain.of(parse_yaml(content.encode(), origin="f.yaml"), origin="f.yaml")
    assert message in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: no such file"):
        load_domain(tmp_path / "gone.yaml")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 2_000_001)
    with pytest.raises(ConfigError, match="2000001 bytes, at most 2000000 are allowed"):
        load_domain(large)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_domain(binary)


def test_dates_stay_text() -> None:
    assert parse_yaml(b"a: 2026-03-02\nb: 2026-03-02T09:00:00", origin="x") == {
        "a": "2026-03-02",
        "b": "2026-03-02T09:00:00",
    }


def test_domains_load_by_name_and_by_path(bikes: Domain) -> None:
    names = builtin_names()
    loaded = load_domains([*names[:2], BIKE_RENTAL])
    assert [domain.name for domain in loaded] == [*names[:2], bikes.name]
    with pytest.raises(ConfigError, match="no built-in domain 'boats'; known: "):
        load_domains(["boats"])
    with pytest.raises(ConfigError, match="'bike_rental' is given twice"):
        load_domains([BIKE_RENTAL, str(BIKE_RENTAL)])
