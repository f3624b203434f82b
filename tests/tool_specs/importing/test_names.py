"""Names of tools: what every reader takes, and back to the server's own."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_specs.importing.names import API_NAME, mapped_names

OPENAI = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
K2_ID = re.compile(r"[\w\.]+:\d+")
"""The pattern of the parser that Kimi K2 was released with."""

NAMES = st.one_of(
    st.text(max_size=80),
    st.text("get_-. itemé1", max_size=70),
    st.sampled_from(["get_item", "get-item", "get.item", "get item", "x" * 64, "x" * 65, "x" * 66]),
)


@given(st.lists(NAMES, max_size=12))
def test_every_reader_takes_the_names_and_they_lead_back(originals: list[str]) -> None:
    mapped = mapped_names(originals)
    assert set(mapped) == set(originals)
    for own, name in mapped.items():
        assert OPENAI.fullmatch(name)
        call_id = f"functions.{name}:0"
        assert K2_ID.fullmatch(call_id)
        assert call_id.split(".")[1].split(":")[0] == name  # how that parser gets it back
        assert not API_NAME.fullmatch(own) or name == own
    back = {name: own for own, name in mapped.items()}
    assert {own: back[name] for own, name in mapped.items()} == {own: own for own in mapped}


@given(st.lists(NAMES, max_size=12), st.randoms(use_true_random=False))
def test_order_and_repeats_change_nothing(originals: list[str], rng: random.Random) -> None:
    shuffled = [*originals, *originals[:3]]
    rng.shuffle(shuffled)
    assert mapped_names(shuffled) == mapped_names(originals)


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ("get-alerts", "get_alerts"),
        ("storage.get", "storage_get"),
        ("!export-db", "export_db"),
        ("36-hot-spots", "_36_hot_spots"),
        ("caf\u00e9 finder", "cafe_finder"),
        ("\u5929\u6c14", "TianQi"),
        ("\u957f\u4ead IP \u60c5\u62a5", "ZhangTing_IP_QingBao"),
        ("\u043f\u043e\u0433\u043e\u0434\u0430", "pogoda"),
        ("\u0637\u0642\u0633", "tqs"),
        ("gr\xf6\xdfe", "grosse"),
        ("\U0001f600", "grinning"),
        ("\u2600\ufe0f weather", "weather"),
        ("__", "__"),
        ("...", "tool_d886e8"),
        ("\ud800", "tool_da4eaf"),
    ],
)
def test_what_becomes_of_a_name(own: str, name: str | None) -> None:
    assert mapped_names([own]).get(own) == name


def test_names_that_become_one_are_told_apart_by_their_own_mark() -> None:
    mapped = mapped_names(["get_item", "get-item", "get.item", "x" * 65, "x" * 66])
    assert mapped["get_item"] == "get_item"
    assert re.fullmatch(r"get_item_[0-9a-f]{6}", mapped["get-item"])
    assert len(set(mapped.values())) == 5
    assert len(mapped["x" * 65]) == 64
