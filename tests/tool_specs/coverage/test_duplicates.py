"""Duplicates across servers: all of them found, and the same one kept whatever the order."""

import itertools
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from records.tables.schemas import Row
from tool_specs.coverage.duplicates import THRESHOLD, jaccard, preference, repeats, shingles
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer

TEXT = (
    "Find the flights between two airports on a day and list them by price, cheapest first. Flights"
    " with a stop are left out unless they are the only ones that leave before noon."
)


def row(server: str, name: str = "find_flights", text: str = TEXT, **source: Any) -> Row:
    properties = {"origin": {"type": "string", "description": "Airport code such as PIER."}}
    listed = {
        "name": name,
        "description": text,
        "inputSchema": {"type": "object", "properties": properties},
    }
    return rows_of_answer(
        [listed], ToolListSource(server=server, category="travel", may_write=True, **source)
    )[0]


def test_of_exact_copies_the_one_with_a_licence_stays_and_is_named() -> None:
    copies = [row("a"), row("b"), row("c", license="MIT"), row("d")]
    for order in itertools.permutations(copies):
        found = repeats(order)
        assert set(found) == {one["tool_id"] for one in copies if one["server"] != "c"}
        assert {repeat for repeat in found.values()} == {(copies[2]["tool_id"], True)}


def test_a_fork_with_a_few_words_more_is_near_and_the_better_documented_one_stays() -> None:
    ours, fork = row("a"), row("fork", text=f"{TEXT} Returns JSON.")
    assert repeats([ours, fork]) == {ours["tool_id"]: (fork["tool_id"], False)}
    bare = row("bare", text="")
    assert repeats([bare, ours]) == {}


def test_another_verb_or_the_same_server_is_no_duplicate() -> None:
    assert repeats([row("a", text="Create a draft."), row("b", text="Delete a draft.")]) == {}
    assert repeats([row("a"), row("a", text=f"{TEXT} Returns JSON.")]) == {}
    assert repeats([row("a"), row("a", name="find_flight")]) == {}


def test_what_the_dataset_holds_stays_even_if_the_new_one_is_better() -> None:
    held, new = row("a"), row("b", text=f"{TEXT} Returns JSON.", license="MIT")
    assert repeats([new], kept=[held]) == {new["tool_id"]: (held["tool_id"], False)}
    assert repeats([], kept=[held, row("b")]) == {}


def test_a_copy_of_what_is_left_out_is_one_of_what_stays_and_never_of_its_own_server() -> None:
    better, short = row("b", text=f"{TEXT} Returns JSON."), row("b")
    copy = row("a")
    assert repeats([short, copy, better]) == {copy["tool_id"]: (better["tool_id"], False)}


WORDS = st.lists(
    st.sampled_from(["find", "list", "the", "a", "flights", "hotels", "by", "price"]), max_size=9
)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), WORDS), max_size=14, unique_by=str),
    st.randoms(use_true_random=False),
)
def test_every_near_pair_is_found_in_any_order(
    listed: list[tuple[str, list[str]]], rng: random.Random
) -> None:
    rows = [row(server, text=" ".join(words)) for server, words in listed]
    found = repeats(rows)
    shuffled = rows[:]
    rng.shuffle(shuffled)
    assert repeats(shuffled) == found
    assert set(found) == {one["tool_id"] for one in dropped_by_all_pairs(rows)}
    by_id = {one["tool_id"]: one for one in rows}
    for dropped, repeat in found.items():
        assert repeat.of not in found
        pair = shingles(by_id[dropped]), shingles(by_id[repeat.of])
        assert jaccard(*pair) >= THRESHOLD


def dropped_by_all_pairs(rows: list[Row]) -> list[Row]:
    """The definition: compare each, best first, with every one that stays."""
    kept: list[Row] = []
    dropped = []
    for one in sorted(rows, key=preference):
        others = [other for other in kept if other["server"] != one["server"]]
        near = any(jaccard(shingles(one), shingles(other)) >= THRESHOLD for other in others)
        (dropped if near else kept).append(one)
    return dropped
