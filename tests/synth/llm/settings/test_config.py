"""Role settings: what decides rows, which model plays an item, and what is refused."""

from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from records.errors import ConfigError
from synth.llm.settings.config import ModelConfig, RoleConfig

NAMES = ("offline-model", "template-policy")


def test_identity_is_models_and_sampling_only() -> None:
    one = RoleConfig(temperature=0.5)
    elsewhere = one.model_copy(
        update={"base_url": "http://x/v1", "max_in_flight": 3, "usd_per_million_prompt": 2.0}
    )
    assert elsewhere.identity() == one.identity()
    assert one.model_copy(update={"temperature": 0.6}).identity() != one.identity()
    renamed = one.model_copy(update={"models": (ModelConfig(name="b"),)})
    assert renamed.identity() != one.identity()


def test_an_earlier_name_of_the_offline_model_is_todays_and_the_ids_stay() -> None:
    earlier = RoleConfig(models=(ModelConfig(name="template-policy"),))
    assert earlier == RoleConfig()
    assert earlier.identity()["models"] == [{"name": "template-policy", "weight": 1.0}]
    for name in ("offline-model-exact", "offline-model-clumsy"):
        assert ModelConfig(name=name).identity()["name"] == name.replace(*NAMES)
    assert ModelConfig(name="offline-model-of-mine").identity()["name"] == "offline-model-of-mine"


def test_models_share_the_items_by_weight_and_keep_them() -> None:
    models = (ModelConfig(name="a", weight=3.0), ModelConfig(name="b", weight=1.0))
    config = RoleConfig(models=models)
    items = [f"item-{n}" for n in range(2000)]
    played = [config.model_of(item, "agent") for item in items]
    assert played == [config.model_of(item, "agent") for item in items]
    assert 1400 < Counter(played)["a"] < 1600
    assert played != [config.model_of(item, "judge") for item in items]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"base_url": "ftp://x"}, "must be `offline` or an http.s. URL .* got 'ftp://x'"),
        ({"base_url": "localhost:8000"}, "got 'localhost:8000'"),
        ({"models": []}, "at least 1 item"),
        ({"models": [{"name": "a"}, {"name": "a"}]}, r"distinct names, got \['a', 'a'\]"),
        ({"extra_body": {"n": 4}}, "extra_body may not hold n: the client sets"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"api_key": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_setting_is_refused_with_its_value(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        RoleConfig(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key_env": "sk-proj-4711"},
        {"base_url": "https://me:sk-proj-4711@host/v1"},
        {"base_url": "https://host/v1?key=4711"},
    ],
)
def test_pasted_secret_is_not_repeated(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        RoleConfig(**settings)
    assert "4711" not in str(caught.value)
