"""Job `domain`: narrower domains that load, with seeds that meet their rules."""

import json
from typing import Any

import pytest

from offline_llm.tools.idea import pick_of
from offline_llm.tools.outline import Outline
from synth.catalogue.proposals.schemas import DOMAIN
from tests.offline_llm.asking import ask
from tests.offline_llm.tools.test_tools import fenced, shown
from tool_specs.domains.domain import Domain
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.language.schemas import Validator

AIMS = {
    "condo_association": "booking.room = sauna",
    "hospital_couriers": "mission.cargo = linen",
    "sales_pipeline": "deal.source = referral",
}


def answered(domain: Domain, aim: str, *, problems: list[str] | None = None) -> dict[str, Any]:
    wanted = fenced({"aims": [aim], "draw": 7})
    text = f"## Domain\n{fenced(shown(domain))}\n\n## Wanted\n{wanted}"
    messages = [{"role": "user", "content": text}]
    if problems:
        messages.append({"role": "assistant", "content": "{}"})
        messages.append({"role": "user", "content": f"## Problems\n{fenced(problems)}"})
    form = {"type": "json_schema", "json_schema": {"name": "domain", "schema": DOMAIN}}
    return json.loads(ask(messages, response_format=form)["content"])


@pytest.mark.parametrize("name", AIMS)
def test_the_aim_is_fixed_and_the_answer_fits_the_schema(name: str) -> None:
    (domain,) = load_taxonomy([name])
    answer = answered(domain, AIMS[name])
    assert Validator(DOMAIN).is_valid(answer)
    entity, field = AIMS[name].split(" = ")[0].split(".")
    assert [(f["entity"], f["field"]) for f in answer["fix"]] == [(entity, field)]
    assert answer["domain"] != name
    assert not answer["domain"][-1].isdigit()
    known = domain.entities[entity].fields
    assert answer["add_fields"]
    assert all(f["name"] not in known for f in answer["add_fields"])


def test_where_too_little_is_left_the_rules_alone_make_it_narrower() -> None:
    (domain,) = load_taxonomy(["condo_association"])
    again = answered(domain, AIMS["condo_association"], problems=["too few rows"])
    assert again["fix"] == []
    assert again["rules"]


def test_wording_is_stable_inside_a_domain_and_varies_between_domains() -> None:
    options = ("find", "search", "look_up")
    picks = {name: pick_of(Outline({"domain": name}), "x", options) for name in map(str, range(40))}
    assert set(picks.values()) == set(options)
    assert pick_of(Outline({"domain": "7"}), "x", options) == picks["7"]
