"""Errors of a configuration say what is wrong, and never repeat what may be a key."""

from pathlib import Path

import pytest

from records.errors import ConfigError
from synth.pipeline.config_files import load_config


def message_of(tmp_path: Path, text: str, *overrides: str) -> str:
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "run.toml", overrides)
    return str(caught.value)


def test_a_wrong_setting_is_named_with_its_value(tmp_path: Path) -> None:
    text = message_of(tmp_path, "[roles.agent]\nmax_tokenss = 512\n")
    assert "roles.agent.max_tokenss = 512" in text
    assert "did you mean 'max_tokens'" in text


@pytest.mark.parametrize(
    "text",
    [
        '[roles.agent]\napi_key = "4711"\n',
        '[roles.agent]\nmodel = "sk-4711"\n',
        '[roles.agent]\nextra_body = "Bearer 4711"\n',
        '[roles]\nagent = ["access_token", "4711"]\n',
    ],
)
def test_what_may_be_a_key_is_not_repeated(tmp_path: Path, text: str) -> None:
    shown = message_of(tmp_path, text)
    assert "4711" not in shown
    assert "roles.agent" in shown
