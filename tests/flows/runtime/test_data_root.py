"""Flows started from the UI read and write inside the data root, and send no key but their own."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow

from flows.evolve_tools import evolve_tools
from flows.grade import grade
from flows.pipeline import pipeline
from flows.rephrase import rephrase
from flows.runtime.data_root import check_parameters
from records.errors import ConfigError
from synth.engine.job_config import JobConfig
from synth.llm.settings.endpoints import endpoint_settings
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "out").symlink_to("/")
    return tmp_path / "data"


@pytest.mark.parametrize("dataset", ["data/demo", "data/a/b", "./data/../data/demo"])
def test_paths_inside(dataset: str) -> None:
    config = RunConfig(domains=("all", "data/mine.yaml"), servers=("time", "data/x/server.yml"))
    check_parameters(config, dataset)  # raises ConfigError otherwise


@pytest.mark.parametrize(
    "dataset", ["demo", "data", "data/../demo", "/tmp/demo", "data/out/tmp/demo", "data-2/demo"]
)
def test_datasets_outside_are_refused(dataset: str, root: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset = .*is not inside the data root") as refused:
        check_parameters(RunConfig(), dataset)
    assert repr(dataset) in str(refused.value)
    assert str(root) in str(refused.value)


@pytest.mark.parametrize("setting", ["domains", "servers"])
def test_definitions_outside_are_refused(setting: str) -> None:
    config = RunConfig.model_validate({setting: ["data/mine.yaml", "../theirs.yaml"]})
    with pytest.raises(ConfigError, match=rf"config\.{setting} = '\.\./theirs\.yaml'"):
        check_parameters(config, "data/demo")


def test_a_kubeconfig_and_a_key_of_the_proxy_are_not_the_ui_s_to_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def flow(**settings: str) -> RunConfig:
        cluster = {"backend": "kubernetes", "kubernetes": settings}
        return RunConfig.model_validate({"sandboxes": cluster})

    check_parameters(flow(namespace="ours"), "data/demo")
    with pytest.raises(
        ConfigError, match=r"sandboxes\.kubernetes\.kubeconfig = 'data/k'.*programs"
    ):
        check_parameters(flow(kubeconfig="data/k"), "data/demo")
    proxied = flow(egress_proxy="10.1.2.3:3128", egress_key_env="SHOP_TOKEN")
    with pytest.raises(ConfigError, match="egress_key_env = 'SHOP_TOKEN' is not among the keys"):
        check_parameters(proxied, "data/demo")
    monkeypatch.setenv("SYNTH_FLOW_KEYS", "SHOP_TOKEN")
    check_parameters(proxied, "data/demo")


def test_extensions_are_refused_wherever_they_lie(root: Path) -> None:
    own = root / "kinds.py"
    own.write_text("EXTENSION = None")
    config = RunConfig.model_validate({"extensions": [str(own)]})
    with pytest.raises(ConfigError, match="extensions are programs"):
        check_parameters(config, "data/demo")


def test_hooks_of_gates_are_refused_wherever_they_lie(root: Path) -> None:
    own = root / "my_gates.py"
    own.write_text("def toxicity(text): return None")
    config = RephraseConfig.model_validate({"gates": ["personal_data", f"{own}:toxicity"]})
    with pytest.raises(ConfigError, match="hooks of gates are programs"):
        check_parameters(config, "data/demo")


def test_another_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path / "elsewhere"))
    check_parameters(RunConfig(), str(tmp_path / "elsewhere" / "demo"))
    with pytest.raises(ConfigError, match="SYNTH_DATA_ROOT"):
        check_parameters(RunConfig(), "data/demo")


def test_code_lies_in_the_data_root_too() -> None:
    config = RunConfig.model_validate({"code": ["/etc/project.yaml"]})
    with pytest.raises(ConfigError, match=r"config\.code"):
        check_parameters(config, "data/demo")


def test_secrets_of_servers_are_those_given_to_flows(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = root / "shop.yaml"
    own.write_text("{name: shop, command: [shop], secrets: [SHOP_TOKEN], hosts: [shop.example]}")
    config = RunConfig.model_validate({"servers": [str(own)]})
    with pytest.raises(ConfigError, match="server shop gets the secret SHOP_TOKEN"):
        check_parameters(config, "data/demo")
    monkeypatch.setenv("SYNTH_FLOW_KEYS", "SHOP_TOKEN")
    check_parameters(config, "data/demo")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("binds: [{source: /etc, target: /opt/mine}]", "binds of server shop = '/etc'"),
        ("hosts: ['wiki.corp=169.254.169.254']", "an address of its own choice"),
        ("hosts: ['10.1.2.3:80']", "an address of its own choice"),
        ("hosts: [shop.example]", None),
    ],
)
def test_servers_of_flows_are_shown_and_reach_nothing_of_the_machine(
    root: Path, line: str, told: str | None
) -> None:
    own = root / "shop.yaml"
    own.write_text(f"name: shop\ncommand: [shop]\n{line}\n")
    config = RunConfig.model_validate({"servers": [str(own)]})
    if told is None:
        check_parameters(config, "data/demo")
        return
    with pytest.raises(ConfigError, match=told):
        check_parameters(config, "data/demo")


@pytest.mark.parametrize("part", ["../theirs.yaml", "domain:../theirs.yaml"])
def test_parts_of_joined_servers_lie_in_the_data_root_and_are_not_read_before(
    root: Path, part: str
) -> None:
    (root.parent / "theirs.yaml").write_text("their secret: [")
    (root / "office.yaml").write_text(f"joins: [time, '{part}']")
    config = RunConfig.model_validate({"servers": ["data/office.yaml"]})
    with pytest.raises(ConfigError, match=r"joins of data/office\.yaml = .*theirs\.yaml"):
        check_parameters(config, "data/demo")


def test_parts_of_joined_servers_get_the_secrets_of_flows_alone(root: Path) -> None:
    (root / "shop.yaml").write_text("{command: [shop], secrets: [SHOP_TOKEN]}")
    (root / "office.yaml").write_text("joins: [time, shop.yaml]")
    config = RunConfig.model_validate({"servers": ["data/office.yaml"]})
    with pytest.raises(ConfigError, match="server shop gets the secret SHOP_TOKEN"):
        check_parameters(config, "data/demo")


def test_keys_are_those_given_to_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RunConfig.model_validate(
        {"roles": {"agent": {"base_url": "https://example.com/v1", "api_key_env": "HOUSE_KEY"}}}
    )
    with pytest.raises(ConfigError, match=r"roles\.agent\.api_key_env = 'HOUSE_KEY'"):
        check_parameters(config, "data/demo")
    monkeypatch.setenv("SYNTH_FLOW_KEYS", "OTHER_KEY, HOUSE_KEY")
    check_parameters(config, "data/demo")


def test_headers_hold_keys_too(monkeypatch: pytest.MonkeyPatch) -> None:
    role = {"base_url": "https://example.com/v1", "headers": {"api-key": "HOUSE_KEY"}}
    config = RunConfig.model_validate({"roles": {"agent": role}})
    with pytest.raises(ConfigError, match=r"roles\.agent\.headers\.api-key = 'HOUSE_KEY'"):
        check_parameters(config, "data/demo")
    monkeypatch.setenv("SYNTH_FLOW_KEYS", "HOUSE_KEY")
    check_parameters(config, "data/demo")


def test_files_of_roles_and_prompts_lie_in_the_data_root(root: Path, tmp_path: Path) -> None:
    for folder, allowed in ((root / "mine", True), (tmp_path / "theirs", False)):
        folder.mkdir(parents=True)
        (folder / "judgement.md").write_text("# system\nJudge.\n\n# user\n{{ rubric }}\n")
        own_ca = {"roles": {"agent": {"ca_file": str(folder / "ca.pem")}}}
        for values in ({"prompts": str(folder)}, own_ca):
            config = RunConfig.model_validate(values)
            if allowed:
                check_parameters(config, "data/demo")
            else:
                with pytest.raises(ConfigError, match="is not inside the data root"):
                    check_parameters(config, "data/demo")


SECRET = "the-content-of-a-file"


@pytest.mark.parametrize("flow", [pipeline, grade, rephrase, evolve_tools])
def test_nothing_that_a_flow_may_not_read_is_read_to_validate_it(
    flow: Flow[..., Any], root: Path, tmp_path: Path
) -> None:
    (root / "own.toml").write_text(f'base_url = "{SECRET}"')
    prompts = tmp_path / "theirs"
    prompts.mkdir()
    (prompts / f"{SECRET}.md").write_text("")
    role = {"endpoint": str(root / "own.toml")}
    for config, told in (
        ({"roles": {"all": role}}, "roles.all.endpoint"),
        ({"roles": {next(iter(flow_config(flow).DEFAULT_ROLES)): role}}, "is no ready endpoint"),
        ({"prompts": str(prompts)}, "config.prompts"),
        ({"prompts": {"path": str(prompts)}}, "config.prompts"),
    ):
        with pytest.raises(ConfigError, match=told) as refused:
            flow.validate_parameters({"config": config, "dataset": "data/demo"})
        assert SECRET not in str(refused.value)


def test_a_flow_takes_ready_endpoints_and_what_a_command_has_read(tmp_path: Path) -> None:
    ready = {"roles": {"all": {"endpoint": "vllm", "models": "mine"}}}
    made = pipeline.validate_parameters({"config": ready, "dataset": "data/demo"})["config"]
    assert made.roles["agent"].base_url == endpoint_settings("vllm")["base_url"]
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "judgement.md").write_text("# system\nJudge.\n\n# user\n{{ rubric }}\n")
    own = RunConfig.model_validate({"prompts": str(tmp_path / "theirs")})
    assert pipeline.validate_parameters({"config": own, "dataset": "d"})["config"] == own


def flow_config(flow: Flow[..., Any]) -> type[JobConfig]:
    return type(inspect.signature(flow.fn).parameters["config"].default)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("s3://ours/corpus/*.jsonl", True),
        ("s3://ours/corpus/../keys/a.jsonl", False),
        ("s3://theirs/a.jsonl", False),
        ("file:///etc/a.txt", False),
        ("zip://a.txt::file:///etc/a.zip", False),
        ("simplecache::s3://ours/corpus/a.jsonl", False),
        ("http://127.0.0.1:8080/a.jsonl", False),
    ],
)
def test_addresses_are_refused_unless_the_server_allows_them(
    address: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = [
        RephraseConfig(sources=(SourceConfig(path=address),)),
        RephraseConfig(decontaminate=(address,)),
    ]
    for config in configs:
        with pytest.raises(ConfigError, match="SYNTH_FLOW_ADDRESSES"):
            check_parameters(config, "data/demo")
    monkeypatch.setenv("SYNTH_FLOW_ADDRESSES", "s3://ours/corpus/, gs://other/")
    for config in configs:
        if allowed:
            check_parameters(config, "data/demo")
        else:
            with pytest.raises(ConfigError, match="SYNTH_FLOW_ADDRESSES"):
                check_parameters(config, "data/demo")
