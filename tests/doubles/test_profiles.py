"""The ready profiles: each is valid, and requests shaped by it are what its double takes."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest

from records.settings import read_settings, validate_as
from synth.llm.settings.config import RoleConfig
from synth.llm.settings.profile import USUAL, Profile
from tests.doubles.catalogue import DOUBLES
from tests.doubles.double import Double
from tests.doubles.server import serve
from tests.doubles.test_forms import (
    FORCED,
    SCHEMA,
    TALK,
    TOOL,
    ask,
    client_of,
    json_within,
    with_schema,
    words_of,
)

OURS = {"bundled"}
"""Servers of this project, which the tests of their own run as they are: tests/trainer/serving."""

FILES = {
    path.stem: path
    for path in Path("configs/endpoints").resolve().glob("*.toml")
    if path.stem not in OURS
}
PAIRS = [(name, double) for name in FILES for double in DOUBLES if double.startswith(name)]


def role_of(name: str) -> RoleConfig:
    path = FILES[name]
    return validate_as(RoleConfig, read_settings(path), where=str(path))


def shaped(profile: Profile) -> dict[str, Any]:
    """A request for JSON as the profile wants it, and no entry of it left unsent."""
    known = profile.over(USUAL)
    field = known.max_tokens_field or "max_tokens"
    body: dict[str, Any] = {"messages": TALK, field: 500}
    if known.seed:
        body["seed"] = 7
    if profile.sampling:
        body["temperature"] = 0.7
    form = {"name": "short_list", "schema": SCHEMA}
    match known.structured:
        case "json_schema":
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        case "json_object":
            body["messages"] = with_schema(TALK)
            body["response_format"] = {"type": "json_object"}
        case _:
            choices = {"named": FORCED, "required": "required", "auto": "auto"}
            body["tools"] = [TOOL]
            body["tool_choice"] = choices[known.tool_choice or "named"]
    return body


def test_every_vendor_of_the_catalogue_has_a_profile() -> None:
    assert {name for name, _ in PAIRS} == FILES.keys()
    assert {double for _, double in PAIRS} == DOUBLES.keys()


@pytest.mark.parametrize("name", FILES)
def test_a_profile_has_no_prices_and_reaches_its_double_by_the_same_path(name: str) -> None:
    role = role_of(name)
    assert not role.has_prices
    path = urlsplit(role.base_url).path.replace("DEPLOYMENT", "offline-model")
    assert path == DOUBLES[name].base_path
    assert role.query == dict(DOUBLES[name].query)
    assert (role.api_key_env or role.headers) or DOUBLES[name].api_key is None
    assert set(role.headers) <= {DOUBLES[name].key_header}


@pytest.mark.parametrize("double", DOUBLES.values(), ids=DOUBLES)
def test_a_double_says_how_a_role_reaches_it(double: Double) -> None:
    with serve(double) as server:
        role = validate_as(RoleConfig, server.role("DOUBLE_KEY"), where="the role")
    assert role.base_url == server.url
    assert ("DOUBLE_KEY" in (role.api_key_env, *role.headers.values())) == bool(double.api_key)


@pytest.mark.parametrize(("name", "double_name"), PAIRS)
def test_a_request_shaped_by_the_profile_gets_json_that_fits(name: str, double_name: str) -> None:
    double, profile = DOUBLES[double_name], role_of(name).profile
    with serve(double) as server, client_of(server) as client:
        message = ask(client, **shaped(profile)).choices[0].message
    calls = message.tool_calls
    made = json.loads(calls[0].function.arguments) if calls else json_within(words_of(message))
    jsonschema.validate(made, SCHEMA)


@pytest.mark.parametrize(("name", "double_name"), PAIRS)
def test_a_stream_tells_its_usage_as_the_profile_says(name: str, double_name: str) -> None:
    double, profile = DOUBLES[double_name], role_of(name).profile
    options: dict[str, Any] = (
        {"stream_options": {"include_usage": True}} if profile.stream_usage else {}
    )
    with serve(double) as server, client_of(server) as client:
        chunks = list(ask(client, stream=True, **options))
    assert any(chunk.usage for chunk in chunks)


@pytest.mark.parametrize(("name", "double_name"), PAIRS)
def test_reasoning_and_cached_tokens_stand_where_the_profile_says(
    name: str, double_name: str
) -> None:
    double, profile = DOUBLES[double_name], role_of(name).profile
    if double.reasoning in ("reasoning", "reasoning_content"):
        assert profile.reasoning_field == double.reasoning
    if profile.cached_usage is None or double.usage not in ("openai", "openrouter", "deepseek"):
        return
    talk = [{"role": "user", "content": "Be kind. " * 100}]
    with serve(double) as server, client_of(server) as client:
        ask(client, talk)
        found: Any = ask(client, talk).usage.model_dump()
    for key in profile.cached_usage.split("."):
        found = found[key]
    assert found > 0


@pytest.mark.parametrize(("name", "double_name"), PAIRS)
def test_rate_headers_are_there_where_the_profile_says(name: str, double_name: str) -> None:
    assert role_of(name).profile.rate_headers == (DOUBLES[double_name].rate_headers != "none")
