"""Tools and policy are added to the text of a domain file, and nothing else of it changes."""

import pytest

from records.errors import ConfigError
from tool_specs.domains.domain import Domain
from tool_specs.domains.loading import parse_yaml
from tool_specs.domains.rewriting import with_additions
from tool_specs.domains.taxonomy import load_taxonomy, taxonomy_files
from tool_specs.language.domain_file import PolicyRule, ToolSpec

RULE = PolicyRule(
    id="no_night_trips",
    text="Do not do it at night: call the office, 'always'.",
    tool="list_all",
    forbids="args.kind == 'night' or args.kind == \"it's\"",
)
TOOL = ToolSpec.model_validate(
    {
        "name": "list_all",
        "description": "List things: all of them, with a # in it. Returns rows.",
        "params": {"zone": {"type": "string", "description": "A zone, such as 'A: 1'."}}
        | {"on": {"type": "date", "description": "A day, such as 2026-03-02.", "optional": True}}
        | {"kind": {"type": "enum", "values": ["2026-03-02", "no", "day"], "description": "Kind."}},
        "semantics": [
            {"op": "read", "entity": "tank", "where": "tank.name == args.zone", "as": "found"}
            | {"limit": "5", "order_by": ["-name"]},
            {
                "op": "require",
                "that": "args.kind != 'day'",
                "error": "x",
                "message": "No {args.kind}.",
            },
            {"op": "return", "value": {"zeta": "found", "alpha": "count(found) + 007"}},
        ],
    }
)


def bare_file() -> str:
    """A file without policy and tools, which stand at its end where there are any."""
    text = taxonomy_files()["aquarium_keeper"].read_text()
    return text.split("\npolicy:\n")[0] + "\n"


def with_both(text: str) -> str:
    return with_additions(text, policy=[RULE], tools=[TOOL], origin="file")


@pytest.mark.parametrize("name", ["aquarium_keeper", "clinic_desk", "box_office"])
def test_all_lines_of_the_file_stay_and_what_is_added_reads_back(name: str) -> None:
    text = taxonomy_files()[name].read_text()
    new = with_both(text)
    left = iter(new.splitlines())
    assert all(line in left for line in text.splitlines() if line)  # in their order
    data = parse_yaml(new.encode(), origin="new")
    assert PolicyRule.model_validate(data["policy"][-1]) == RULE
    assert ToolSpec.model_validate(data["tools"][-1]) == TOOL
    assert list(data["tools"][-1]["params"]) == ["zone", "on", "kind"]
    assert list(data["tools"][-1]["semantics"][-1]["value"]) == ["zeta", "alpha"]
    assert "limit: 5," in new


def test_it_is_added_behind_what_was_added_before() -> None:
    text = bare_file()
    once = with_both(text)
    other = TOOL.model_copy(update={"name": "list_more"})
    twice = with_additions(once, policy=[], tools=[other], origin="file")
    assert twice.startswith(once.rstrip("\n"))
    names = [tool["name"] for tool in parse_yaml(twice.encode(), origin="new")["tools"]]
    assert names == ["list_all", "list_more"]


def test_empty_blocks_and_comments_behind_a_block() -> None:
    text = bare_file()
    new = with_both(f"policy: []\ntools: []   # none yet\n{text}# the end\n")
    assert parse_yaml(new.encode(), origin="new")["tools"][0]["name"] == "list_all"
    assert new.endswith("# the end\n")


def test_a_file_in_another_style_is_refused() -> None:
    (domain,) = load_taxonomy(["aquarium_keeper"])
    text = domain.file.model_dump_json(by_alias=True, exclude_defaults=True)
    assert Domain.of(parse_yaml(text.encode(), origin="file"), origin="file").name
    with pytest.raises(ConfigError, match="in braces"):
        with_both(text)
