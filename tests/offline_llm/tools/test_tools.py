"""Job `tools`: what the grammar gives is proved, different, believable in name, and repeatable."""

import json
import re
from typing import Any, NamedTuple

import pytest

from offline_llm.settings.rates import ToolMistakes
from offline_llm.settings.settings import OfflineSettings
from offline_llm.tools.english import shortened
from offline_llm.tools.operators.job import OPERATORS
from offline_llm.tools.patterns.planning import candidates
from synth.catalogue.proposals.schemas import TOOLS
from synth.catalogue.proposals.wire import ProposalWire, spec_of
from tests.offline_llm.asking import ask
from tool_specs.coverage.skeleton import semantics_key, skeleton_of
from tool_specs.domains.domain import Domain
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.language.schemas import Validator
from tool_specs.validation.validate import Validation, validate_tools

DOMAINS = ["condo_association", "hospital_couriers", "sales_pipeline"]
"""Of different structure, and none with tools of its own that could be copied."""

FAULTLESS = OfflineSettings(
    tool_mistakes=ToolMistakes(
        misspelt_field=0.0, idle_parameter=0.0, doubled_condition=0.0, idle_effect=0.0
    )
)


@pytest.fixture(scope="module", params=DOMAINS)
def domain(request: pytest.FixtureRequest) -> Domain:
    return load_taxonomy([request.param])[0]


def shown(domain: Domain) -> dict[str, Any]:
    """As the prompts show a domain: a few rows of each entity, and no tools."""
    file = domain.file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    seed = {name: rows[:3] for name, rows in domain.seed.items()}
    return {k: v for k, v in file.items() if k not in ("tools", "policy")} | {"seed": seed}


def fenced(value: Any) -> str:
    return f"```json\n{json.dumps(value)}\n```"


def asked(
    domain: Domain,
    *,
    operator: str = "derive",
    existing: list[ProposalWire] | None = None,
    parents: list[Any] | None = None,
    problems: list[Any] | None = None,
    settings: OfflineSettings = FAULTLESS,
    **wanted: Any,
) -> list[ProposalWire]:
    known = [{"name": t["name"], "description": t["description"]} for t in existing or ()]
    parts = {
        "Operator": operator,
        "Domain": fenced(shown(domain)),
        "Tools that exist": fenced(known),
        "Parents": fenced(parents or []),
        "Wanted": fenced({"count": 25, "aims": [], "draw": 1} | wanted),
    }
    text = "\n\n".join(f"## {heading}\n{body}" for heading, body in parts.items())
    messages = [{"role": "user", "content": text}]
    if problems is not None:
        messages.append({"role": "assistant", "content": "{}"})
        messages.append({"role": "user", "content": f"## Problems\n{fenced(problems)}"})
    form = {"type": "json_schema", "json_schema": {"name": "tools", "schema": TOOLS}}
    return json.loads(ask(messages, settings=settings, response_format=form)["content"])["tools"]


def proved(domain: Domain, tools: list[ProposalWire]) -> dict[str, Validation]:
    return validate_tools(domain, [spec_of(tool) for tool in tools])


def accepted(proofs: dict[str, Validation]) -> float:
    return sum(p.reason is None for p in proofs.values()) / len(proofs)


class Sound(NamedTuple):
    """Tools without a planted mistake, and which of them are proved."""

    tools: list[ProposalWire]
    proofs: dict[str, Validation]

    @property
    def fine(self) -> set[str]:
        return {name for name, proof in self.proofs.items() if proof.reason is None}


@pytest.fixture(scope="module")
def forty(domain: Domain) -> Sound:
    tools = asked(domain, count=40)
    return Sound(tools, proved(domain, tools))


@pytest.fixture(scope="module")
def hundred() -> tuple[Domain, Sound]:
    (domain,) = load_taxonomy(["condo_association"])
    tools = asked(domain, count=100)
    return domain, Sound(tools, proved(domain, tools))


@pytest.mark.slow
def test_nine_in_ten_patterns_pass_the_proof(forty: Sound) -> None:
    assert len(forty.tools) == 40
    assert accepted(forty.proofs) >= 0.9


def test_a_domain_has_many_tools_and_no_two_alike(domain: Domain) -> None:
    specs = [spec_of(c.draft.wire()) for c in candidates(json.dumps(shown(domain)))]
    assert len(specs) >= 200
    assert len({spec.name for spec in specs}) == len(specs)
    keys = [semantics_key(domain.file, spec) for spec in specs]
    assert len(set(keys)) >= 0.98 * len(keys)
    skeletons = [skeleton_of(domain.file, spec) for spec in specs]
    assert len(set(skeletons)) >= 0.5 * len(skeletons)


def test_every_answer_fits_the_schema_and_reads_like_a_tool(domain: Domain) -> None:
    tools = asked(domain, count=40)
    assert Validator(TOOLS).is_valid({"tools": tools})
    for tool in tools:
        assert re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", tool["name"])
        assert not tool["name"][-1].isdigit()
        first = re.split(r"(?<=[.:]) ", tool["description"])[0]
        assert re.fullmatch(r"[A-Z][a-z]+ .*", first), first
        assert " Returns " in tool["description"]
        assert all(p["description"] for p in tool["params"])


def test_the_same_request_gets_the_same_tools_and_another_draw_others(domain: Domain) -> None:
    first, again, other = asked(domain, draw=1), asked(domain, draw=1), asked(domain, draw=2)
    assert first == again
    assert {t["name"] for t in first} != {t["name"] for t in other}


def test_an_aim_gets_a_tool_of_its_entity_and_kind() -> None:
    (domain,) = load_taxonomy(["condo_association"])
    aims = ["charge: move one on (waive)", "owner: look one up", "booking: make one"]
    waive, look_up, make = asked(domain, aims=aims, count=3)
    assert "waive" in waive["name"]
    assert {s["op"] for s in look_up["semantics"]} == {"read", "return"}
    assert any(s["op"] == "create" and s["entity"] == "booking" for s in make["semantics"])


def test_what_exists_is_not_written_again(domain: Domain) -> None:
    first = asked(domain)
    second = asked(domain, existing=first)
    assert not {t["name"] for t in first} & {t["name"] for t in second}
    assert len(second) == 25


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_children_name_their_parents_differ_from_them_and_pass(
    operator: str, domain: Domain, forty: Sound
) -> None:
    tools = [t for t in forty.tools if t["name"] in forty.fine]
    given: list[Any] = tools
    if operator == "compose":
        given = [[a, b] for a, b in zip(tools[::2], tools[1::2], strict=False)]
    children = asked(domain, operator=operator, existing=tools, parents=given, count=8)
    assert len(children) >= 4
    names = {t["name"] for t in tools}
    keys = {semantics_key(domain.file, spec_of(t)) for t in tools}
    for child in children:
        assert child["parent"] in names
        assert child["name"] not in names
        assert semantics_key(domain.file, spec_of(child)) not in keys
    assert accepted(proved(domain, children)) >= 0.7


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(ToolMistakes.model_fields))
def test_a_mistake_fails_the_proof_and_the_repair_round_mends_it(
    kind: str, hundred: tuple[Domain, Sound]
) -> None:
    domain, sound = hundred
    rates = {name: float(name == kind) for name in ToolMistakes.model_fields}
    sloppy = OfflineSettings(tool_mistakes=ToolMistakes(**rates))
    good = {t["name"]: t for t in sound.tools}
    tools = [t for t in asked(domain, count=100, settings=sloppy) if t["name"] in sound.fine]
    spoilt = [t for t in tools if t != good[t["name"]]]
    assert len(spoilt) >= 1
    refused = {n: p for n, p in proved(domain, spoilt).items() if p.reason is not None}
    assert len(refused) >= 0.8 * len(spoilt)
    problems = [
        {"tool": t, "problems": list(refused[t["name"]].details)}
        for t in spoilt
        if t["name"] in refused
    ]
    mended = asked(domain, problems=problems)
    assert accepted(proved(domain, mended)) >= 0.9
    assert len(mended) >= 0.9 * len(problems)


def test_without_a_mistake_rate_nothing_is_spoilt(domain: Domain) -> None:
    tools = {t["name"]: t for t in asked(domain)}
    made = {c.draft.name: c.draft.wire() for c in candidates(json.dumps(shown(domain)))}
    assert all(made[name] == tool for name, tool in tools.items())


def test_long_names_lose_links_from_the_end_and_never_verb_or_last_word() -> None:
    assert shortened("list_reports_by_sender_with_count_of_tissue") == (
        "list_reports_by_sender_count_tissue"
    )
    assert shortened("go_to_the_of_by_for_with_of") == "go_to_the_of_by_of"
    assert shortened("list_orders_of_customer") == "list_orders_of_customer"
