"""`synth tools evolve` takes a file, options over it, and `--set` over both."""

from pathlib import Path

import pytest

from flows.cli.shared import entry
from records.settings import read_settings, validate_as
from synth.catalogue.evolution.config import EvolveConfig
from synth.engine.job_config import JobConfig
from tests.flows.conftest import ROOT, Synth

EXAMPLE = ROOT / "configs" / "evolve.toml"
HOSTED = "roles.generator.base_url=http://localhost:8000/v1"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[JobConfig]:
    """Every configuration that a command hands to a flow, which then is not begun."""
    configs: list[JobConfig] = []

    def stop(name: str, config: JobConfig, *_: object, **__: object) -> float:
        configs.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "run_flow", stop)
    return configs


def test_the_example_as_it_is(refusal: Synth, started: list[JobConfig]) -> None:
    refusal("tools", "evolve", str(EXAMPLE))
    assert started == [validate_as(EvolveConfig, read_settings(EXAMPLE), where="example")]


def test_options_win_over_the_file_and_set_over_both(
    refusal: Synth, started: list[JobConfig]
) -> None:
    options = ["--count", "7", "--domains", "web_shop", "--price", "1,2", "--budget-tokens", "9"]
    refusal("tools", "evolve", str(EXAMPLE), *options, "--set", "specialise=2")
    [config] = started
    assert isinstance(config, EvolveConfig)
    assert (config.count, config.domains, config.specialise) == (7, ("web_shop",), 2)
    assert (config.budget.usd, config.budget.tokens) == (5.0, 9)
    assert config.roles["generator"].usd_per_million_prompt == 0.6  # the role's own


def test_an_endpoint_given_as_the_help_says_keeps_the_room_for_a_batch(
    refusal: Synth, started: list[JobConfig]
) -> None:
    refusal("tools", "evolve", "--count", "3", "--set", HOSTED, "--price", "1,2")
    generator = started[0].roles["generator"]
    assert generator.max_tokens == EvolveConfig.DEFAULT_ROLES["generator"].max_tokens
    assert (generator.is_offline, generator.usd_per_million_completion) == (False, 2.0)


def test_nobody_evolves_as_many_tools_as_happen_to_be_the_default(
    refusal: Synth, started: list[JobConfig], tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text("seed = 1\n")
    for words in ((), ("own.toml",)):
        done = refusal("tools", "evolve", *words)
        assert (done.returncode, started) == (2, [])
        assert "--count N" in done.stderr
