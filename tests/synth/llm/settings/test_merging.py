"""A role's settings come together from defaults, endpoint files, `roles.all` and its own."""

from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.settings import validate_as, with_overrides
from synth.catalogue.evolution.config import EvolveConfig
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.llm.settings import endpoints
from synth.llm.settings.config import OFFLINE, RoleConfig
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig

HERE, THERE = "http://here.example/v1", "http://there.example/v1"


def of(kind: type[JobConfig], *overrides: str, **values: Any) -> JobConfig:
    return validate_as(kind, with_overrides(values, overrides), where="here")


@pytest.fixture
def vendor(tmp_path: Path) -> str:
    file = tmp_path / "vendor.toml"
    file.write_text(
        f'base_url = "{HERE}"\napi_key_env = "VENDOR_KEY"\nusd_per_million_prompt = 0.5\n'
        "[profile]\nseed = false\nstructured = 'json_object'\n"
    )
    return str(file)


def test_a_setting_of_a_role_leaves_the_defaults_of_its_run_as_they_are() -> None:
    config = of(EvolveConfig, f"roles.generator.base_url={HERE}")
    assert (config.roles["generator"].max_tokens, config.roles["generator"].base_url) == (
        EvolveConfig.DEFAULT_ROLES["generator"].max_tokens,
        HERE,
    )


def test_a_role_given_whole_is_taken_as_it_is() -> None:
    own = RoleConfig(base_url=HERE)
    assert EvolveConfig(roles={"generator": own}).roles["generator"] == own


def test_each_layer_wins_over_those_below_it(vendor: str) -> None:
    layers = {"all": {"endpoint": vendor, "temperature": 0.4}, "generator": {"temperature": 0.9}}
    role = of(EvolveConfig, roles=layers).roles["generator"]
    default = EvolveConfig.DEFAULT_ROLES["generator"]
    assert role.max_tokens == default.max_tokens
    assert (role.base_url, role.api_key_env) == (HERE, "VENDOR_KEY")
    assert role.temperature == 0.9
    changed = of(
        EvolveConfig,
        "roles.all.max_tokens=100",
        "roles.all.usd_per_million_prompt=3",
        "roles.generator.profile.seed=true",
        roles=layers,
    ).roles["generator"]
    assert (changed.max_tokens, changed.usd_per_million_prompt) == (100, 3.0)
    assert (changed.profile.seed, changed.profile.structured) == (True, "json_object")


def played_at(config: JobConfig) -> set[str]:
    """Addresses of the roles that take part in conversations."""
    return {own.base_url for role, own in config.roles.items() if role != "embedder"}


def test_all_holds_for_every_role_of_a_conversation_and_not_for_vectors() -> None:
    config = of(RephraseConfig, f"roles.all.base_url={HERE}", "align=embedder")
    assert [name for name, own in config.roles.items() if not own.is_offline] == [
        "rewriter",
        "judge",
        "generator",
    ]
    hosted = of(RunConfig, f"roles.all.base_url={HERE}")
    assert played_at(hosted) == {HERE}
    hosted.check_roles()


def test_no_key_of_all_goes_to_another_address(vendor: str) -> None:
    shared = {
        "base_url": THERE,
        "api_key_env": "SHARED_KEY",
        "headers": {"x-team": "TEAM"},
        "query": {"v": "1"},
        "proxy": "http://proxy.example",
        "temperature": 0.3,
    }
    own: dict[str, Any] = {"judge": {"endpoint": vendor}, "user": {"base_url": OFFLINE}}
    own["agent"] = {"base_url": THERE}
    roles = of(RunConfig, roles={"all": shared} | own).roles
    judge = roles["judge"]
    assert (judge.base_url, judge.api_key_env, judge.headers) == (HERE, "VENDOR_KEY", {})
    assert (judge.query, judge.proxy, judge.temperature) == ({}, "http://proxy.example", 0.3)
    assert roles["user"] == RoleConfig()
    assert roles["agent"].api_key_env == "SHARED_KEY"


@pytest.mark.parametrize("kind", [RunConfig, GradeConfig, RephraseConfig, EvolveConfig])
def test_what_is_recorded_says_it_all_and_reads_back_as_itself(
    kind: type[JobConfig], vendor: str
) -> None:
    config = of(kind, f"roles.all.endpoint={vendor}", "roles.all.models=m")
    Path(vendor).unlink()
    recorded = config.model_dump(mode="json")
    assert "all" not in recorded["roles"]
    again = of(kind, **recorded)
    assert again == config
    assert again.run_id == config.run_id


@pytest.mark.parametrize("kind", [RunConfig, GradeConfig, RephraseConfig, EvolveConfig])
def test_ids_of_settings_that_are_spelled_out_do_not_depend_on_how(kind: type[JobConfig]) -> None:
    chat = [name for name in kind.DEFAULT_ROLES if name != "embedder"]
    one = of(kind, roles={name: {"base_url": HERE, "temperature": 0.5} for name in chat})
    other = of(kind, f"roles.all.base_url={HERE}", "roles.all.temperature=0.5")
    assert (one, one.run_id) == (other, other.run_id)


def test_a_change_of_all_reaches_what_is_recorded() -> None:
    recorded = of(
        RunConfig,
        f"roles.all.base_url={HERE}",
        "roles.judge.temperature=0.1",
        "stage_seconds.tasks=9",
    )
    changes = [f"roles.all.base_url={THERE}", "roles.judge.max_in_flight=4", "stage_seconds={}"]
    values = RunConfig.changed(recorded.model_dump(mode="json"), changes, {})
    changed = of(RunConfig, **values)
    assert changed.stage_seconds == {}
    assert played_at(changed) == {THERE}
    assert (changed.roles["judge"].temperature, changed.roles["judge"].max_in_flight) == (0.1, 4)
    assert changed.run_id == recorded.run_id


def test_a_recorded_role_with_another_address_keeps_nothing_of_the_first_one() -> None:
    shared = {
        "base_url": HERE,
        "api_key_env": "HERE_KEY",
        "headers": {"api-key": "HERE_KEY"},
        "query": {"version": "1"},
        "profile": {"seed": False},
        "temperature": 0.3,
    }
    recorded = of(RunConfig, roles={"all": shared})
    changes = [
        f"roles.judge.base_url={THERE}",
        f"roles.user.base_url={THERE}",
        "roles.user.api_key_env=THERE_KEY",
        f"roles.agent.base_url={HERE}",
    ]
    values = RunConfig.changed(recorded.model_dump(mode="json"), changes, {})
    roles = of(RunConfig, **values).roles
    apart = {"base_url": THERE, "models": recorded.roles["judge"].models, "temperature": 0.3}
    assert roles["judge"] == RoleConfig(**apart)
    assert roles["user"] == RoleConfig(**apart, api_key_env="THERE_KEY")
    for name in ("agent", "generator"):
        assert roles[name] == recorded.roles[name]
    values = RunConfig.changed(
        recorded.model_dump(mode="json"), [f"roles.all.base_url={THERE}"], {}
    )
    chat = [role for name, role in of(RunConfig, **values).roles.items() if name != "embedder"]
    assert {own.api_key_env for own in chat} == {None}


def test_ready_endpoints_have_names_and_hold_settings_of_roles() -> None:
    for name in endpoints.endpoint_names():
        assert endpoints.endpoint_settings(name)
    role = of(RunConfig, "roles.all.endpoint=vllm", "roles.all.models=mine").roles["agent"]
    assert role.base_url == endpoints.endpoint_settings("vllm")["base_url"]
    assert role.profile.seed is True


def test_an_address_with_a_place_for_one_s_own_has_to_be_given() -> None:
    with pytest.raises(ConfigError, match=r"roles\.all\.base_url, like https://RESOURCE"):
        of(RunConfig, "roles.all.endpoint=azure")
    role = of(RunConfig, "roles.all.endpoint=azure", f"roles.all.base_url={HERE}").roles["agent"]
    assert (role.base_url, role.api_key_env) == (HERE, None)
    assert role.headers
    assert role.query


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base_url = 3\n", ("base_url = 3", "valid string")),
        ('base_ulr = "http://x/v1"\n', ("base_ulr", "did you mean 'base_url'")),
        ('api_key_env = "sk-4711"\n', ("api_key_env must be the name",)),
        ('endpoint = "other"\n', ("write its settings here",)),
        ("temperature = 0.5\n", ("roles.agent.endpoint", "give it as roles.agent.base_url")),
        ("base_url = = 3\n", ("not valid TOML",)),
    ],
)
def test_a_wrong_endpoint_file_is_named_with_the_setting(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        of(RunConfig, f"roles.agent.endpoint={file}")
    assert "4711" not in str(caught.value)
    for word in ("mine.toml", *words):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("roles.all.endpoint=nowhere", ("'nowhere'", "vllm", "the path of a .toml file")),
        ("roles.all.endpoint=no/file.toml", ("no/file.toml", "there is no such file")),
        ("roles.all.endpoint=3", ("endpoint = 3",)),
        ("roles.all=http://x/v1", ("roles.all wants a table", "[roles.all]")),
        ("roles.all.base_ulr=http://x/v1", ("roles.all", "did you mean 'base_url'?")),
    ],
)
def test_a_mistake_in_all_is_told_once(override: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        of(RunConfig, override)
    for word in words:
        assert str(caught.value).count(word) == 1
