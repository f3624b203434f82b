"""Profiles: kept as they were found, beneath what the user has set."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import ConfigError
from synth.llm.profiles import Profiles, read_profiles, write_profiles
from synth.llm.settings.config import EndpointKey, RoleConfig
from synth.llm.settings.profile import STRUCTURED, USUAL, Profile
from tests.examples import examples

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple)
ENDPOINTS = st.builds(
    EndpointKey, TEXT, st.none() | TEXT, PAIRS, PAIRS, st.none() | TEXT, st.none() | TEXT
)
PROFILES = st.builds(
    Profile,
    structured=st.sampled_from((None, *STRUCTURED)),
    seed=st.none() | st.booleans(),
    context_tokens=st.none() | st.integers(1, 10**6),
    call_ids=st.sampled_from((None, "any", "nine")),
    cached_usage=st.none() | TEXT,
    alternation=st.none() | st.booleans(),
)


@settings(max_examples=examples(60))
@given(st.dictionaries(st.tuples(ENDPOINTS, TEXT), PROFILES, max_size=4))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, found: dict[Any, Profile]
) -> None:
    path = tmp_path_factory.mktemp("run") / "kept" / "profiles.json"
    assert read_profiles(path) == {}
    write_profiles(path, found)
    assert read_profiles(path) == found
    first = path.read_bytes()
    write_profiles(path, dict(reversed(found.items())))
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{}x",
        "[3]",
        '[{"endpoint": {}, "model": "m", "profile": {}}]',
        '[{"endpoint": {"base_url": "x", "headers": 3, "query": []}, "model": "m", "profile": {}}]',
        '[{"endpoint": {"base_url": "x", "headers": [], "query": [], "y": 1}, "model": "m",'
        ' "profile": {}}]',
        '[{"endpoint": {"base_url": "x", "headers": [], "query": []}, "model": "m",'
        ' "profile": {"seed": "perhaps"}}]',
        '[{"endpoint": [], "model": "m", "profile": {}}]',
        "3",
    ],
)
def test_file_that_holds_none_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "profiles.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"profiles\.json holds no profiles.*; delete it"):
        read_profiles(path)


@settings(max_examples=examples(100))
@given(PROFILES, PROFILES)
def test_what_the_user_has_set_stays_above_what_is_found(declared: Profile, found: Profile) -> None:
    config = RoleConfig.model_validate({"base_url": "http://x/v1", "profile": declared})
    told: list[Any] = []
    profiles = Profiles(on_learned=lambda where, profile: told.append((where, profile)))
    where = (config.endpoint_key, "m")
    before = profiles.of(config, "m").profile
    assert before == declared.over(USUAL)
    profiles.learn(where, found)
    assert told == [(where, found)]
    now = profiles.of(config, "m").profile
    for name in Profile.model_fields:
        known = (getattr(one, name) for one in (declared, found, USUAL))
        assert getattr(now, name) == next((value for value in known if value is not None), None)
    other = RoleConfig.model_validate({"base_url": "http://y/v1", "profile": declared})
    assert profiles.of(other, "m").profile == before
    assert profiles.of(config, "other").profile == before


def test_change_keeps_the_other_entries() -> None:
    config = RoleConfig.model_validate({"base_url": "http://x/v1"})
    where = (config.endpoint_key, "m")
    profiles = Profiles({where: Profile(seed=False)})
    assert not profiles.of(config, "m").is_plain
    profiles.change(where, alternation=True)
    assert profiles.found[where] == Profile(seed=False, alternation=True)
    assert profiles.of(config, "m").profile.alternation is True
