"""Keys in eight bytes: never "no" to one that was added."""

from hypothesis import given
from hypothesis import strategies as st

from records.store.log import KeyDigests

KEYS = st.lists(st.tuples(st.text(max_size=4), st.integers(0, 9)), max_size=8)


@given(st.lists(KEYS, max_size=12), KEYS)
def test_what_was_added_is_found_and_little_else(batches: list[list[object]], asked: list[object]):
    digests = KeyDigests()
    for number, batch in enumerate(batches, start=1):
        digests.add(batch, number)
    known = {key for batch in batches for key in batch}
    assert digests.any_of(asked) == any(key in known for key in asked)
    assert digests.up_to == len(batches)
