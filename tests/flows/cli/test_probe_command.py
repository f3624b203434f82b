"""`synth probe` prints what was found so that it can be put into a config."""

import json
import tomllib
from pathlib import Path

import pytest

from flows.cli.commands.probe import as_json, tell
from synth.catalogue.evolution.config import EvolveConfig
from synth.llm.probing.thorough import Finding, ProbedModel
from synth.llm.settings.config import TokenUsage
from synth.llm.settings.profile import Profile
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import load_any
from synth.rephrasing.writing.config import RephraseConfig

PROFILE = Profile(structured="json_object", seed=False, context_tokens=8192)
MODEL = ProbedModel(
    url="http://127.0.0.1:9/v1",
    model="theirs",
    roles=["agent", "judge"],
    profile=PROFILE,
    findings=[
        Finding("structured", "json_object", "json_schema was refused: no"),
        Finding("alternation", None, "-"),
    ],
    problems=["agent: no call came"],
    requests=7,
    usage=TokenUsage(prompt=1000, completion=200),
    usd=0.5,
)


def test_the_profile_that_is_printed_is_one_of_a_config(capsys: pytest.CaptureFixture[str]) -> None:
    tell([MODEL])
    shown = capsys.readouterr().out
    [line] = [line for line in shown.splitlines() if line.startswith("profile = ")]
    assert Profile.model_validate(tomllib.loads(line)["profile"]) == PROFILE
    for words in ("theirs at http://127.0.0.1:9/v1 (agent, judge)", "was refused", "no call came"):
        assert words in shown


def test_programs_get_the_same_as_json() -> None:
    told = json.loads(json.dumps(as_json(MODEL)))
    assert Profile.model_validate(told["profile"]) == PROFILE
    assert told["findings"][0]["value"] == "json_object"
    assert told["problems"] == ["agent: no call came"]


def test_a_config_without_an_endpoint_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    tell([])
    assert "nothing to probe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("num_tasks = 3\n", RunConfig),
        ("seed = 3\n", RunConfig),
        ("rewrites = 3\n", RephraseConfig),
        ("count = 3\nbatch_size = 5\n", EvolveConfig),
        ("[judging]\nperturbed_share = 0.2\n[roles.judge]\ntemperature = 0\n", RunConfig),
    ],
)
def test_a_file_is_read_as_what_it_describes(text: str, kind: type, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(text)
    assert type(load_any(tmp_path / "own.toml")) is kind
