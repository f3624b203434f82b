"""Tables against a plain dict: order, indexes, hash and snapshots, whatever the sequence."""

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.examples import examples
from tool_specs.execution.indexes import MOST_INDEXES, Order
from tool_specs.execution.state import State, Table, row_digest

KEYS = [f"K-{n}" for n in (7, 8, 9, 10, 11, 100)]
COLOURS = ["red", "green", None]
rows = st.builds(
    dict,
    colour=st.sampled_from(COLOURS),
    tags=st.lists(st.sampled_from("abc"), max_size=3),
    size=st.integers(0, 2),
)


WANTED: list[dict[str, Any]] = [
    {},
    *({"colour": colour} for colour in COLOURS),
    *({"tags": tag} for tag in "abc"),
    {"colour": "red", "size": 1},
    {"colour": None, "size": 0, "tags": "b"},
]
ORDERS: list[Order] = [
    (("size", False),),
    (("size", True), ("colour", False)),
    (("colour", True), ("size", False)),
]


def holds(row: Any, field: str, value: Any) -> bool:
    return value in row[field] if isinstance(row[field], list) else row[field] == value


class TablesAgainstDicts(RuleBasedStateMachine):
    """Two snapshots of one state, each beside a dict that is copied where the state is not."""

    @initialize(seed=st.dictionaries(st.sampled_from(KEYS), rows))
    def start(self, seed: dict[str, Any]) -> None:
        self.states = [State.of({"thing": seed})]
        self.models = [dict(seed)]

    @rule(which=st.integers(0, 3), key=st.sampled_from(KEYS), row=st.one_of(st.none(), rows))
    def write(self, which: int, key: str, row: Any) -> None:
        which %= len(self.states)
        self.states[which].put("thing", key, row)
        if row is None:
            self.models[which].pop(key, None)
        else:
            self.models[which][key] = row

    @rule(which=st.integers(0, 3))
    def commit(self, which: int) -> None:
        self.states[which % len(self.states)].commit()

    @rule(which=st.integers(0, 3), key=st.sampled_from(KEYS), row=st.one_of(st.none(), rows))
    def roll_back(self, which: int, key: str, row: Any) -> None:
        state = self.states[which % len(self.states)]
        state.commit()
        before = state.hash
        state.put("thing", key, row)
        state.put("thing", KEYS[0], None)
        state.rollback()
        assert state.hash == before

    @rule(which=st.integers(0, 3))
    def fork(self, which: int) -> None:
        which %= len(self.states)
        self.states[which].commit()
        if len(self.states) < 4:
            self.states.append(self.states[which].snapshot())
            self.models.append(dict(self.models[which]))

    @invariant()
    def reads_agree(self) -> None:
        for state, model in zip(self.states, self.models, strict=True):
            table, ordered = state.tables["thing"], sorted(model, key=lambda k: (len(k), k))
            assert list(table.rows()) == [model[key] for key in ordered]
            for wanted in WANTED:
                expected = [k for k in ordered if all(holds(model[k], *w) for w in wanted.items())]
                assert list(table.matching(wanted)) == [model[k] for k in expected]
                for order in ORDERS:
                    in_order = expected
                    for field, down in reversed(order):  # stable sorts, the slow way
                        nulls = [k for k in in_order if model[k][field] is None]
                        rest = [k for k in in_order if model[k][field] is not None]
                        rest.sort(key=lambda k: model[k][field], reverse=down)
                        in_order = rest + nulls
                    assert list(table.matching(wanted, order)) == [model[k] for k in in_order]
            numbers = [int(key[2:]) for key in model]
            assert table.last_number("K-") == max(numbers, default=0)

    @invariant()
    def hash_is_that_of_the_rows(self) -> None:
        for state, model in zip(self.states, self.models, strict=True):
            state.commit()
            assert state.total == State.of({"thing": model}).total


TablesAgainstDicts.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25)
test_tables_agree_with_dicts = TablesAgainstDicts.TestCase


def test_a_diff_is_the_net_change() -> None:
    state = State.of({"thing": {"A": {"n": 1, "m": 5}, "B": {"n": 2, "m": 5}}})
    state.put("thing", "A", {"n": 9, "m": 5})
    state.put("thing", "A", {"n": 3, "m": 5})
    state.put("thing", "B", {"n": 7, "m": 7})
    state.put("thing", "B", {"n": 2, "m": 5})  # as it was: no change
    state.put("thing", "C", {"n": 0, "m": 0})
    state.put("thing", "C", None)  # never seen outside
    before = {"op": "update", "entity": "thing", "id": "A"}
    assert state.commit() == [before | {"before": {"n": 1}, "after": {"n": 3}}]
    assert state.commit() == []


def test_applying_a_diff_to_the_rows_before_gives_the_rows_after() -> None:
    rng = random.Random(0)
    state = State.of({"thing": {key: {"n": i} for i, key in enumerate(KEYS)}})
    model = {key: dict(row) for key, row in zip(KEYS, state.tables["thing"].rows(), strict=True)}
    for _ in range(200):
        for _ in range(3):
            row = None if rng.random() < 0.3 else {"n": rng.randint(0, 3)}
            state.put("thing", rng.choice(KEYS), row)
        for change in state.commit():
            if change["op"] == "delete":
                assert model.pop(change["id"]) == change["before"]
            else:
                model[change["id"]] = model.get(change["id"], {}) | change["after"]
        assert state.total == State.of({"thing": model}).total


def test_the_hash_tells_entities_keys_and_values_apart() -> None:
    states = [
        {"a": {"K": {"k": "K", "n": 1}}, "b": {}},
        {"a": {}, "b": {"K": {"k": "K", "n": 1}}},
        {"a": {"K": {"k": "K", "n": True}}, "b": {}},
        {"a": {"K": {"k": "K", "n": "1"}}, "b": {}},
        {"a": {"L": {"k": "L", "n": 1}}, "b": {}},
        {"a": {}, "b": {}},
    ]
    assert len({State.of(state).hash for state in states}) == len(states)


def test_nested_objects_hash_the_same_in_any_member_order() -> None:
    assert row_digest("a", {"x": {"p": 1, "q": 2}}) == row_digest("a", {"x": {"q": 2, "p": 1}})


@pytest.mark.parametrize("size", [10, 2000])
def test_many_changes_fold_into_a_base_of_their_own(size: int) -> None:
    state = State.of({"thing": {"K-1": {"n": 0}}})
    for n in range(2, size):
        state.put("thing", f"K-{n}", {"n": n % 7})
    state.commit()
    copy = state.snapshot()
    copy.put("thing", "K-2", None)
    copy.commit()
    assert state.total == state.total_from_scratch() != copy.total == copy.total_from_scratch()
    found = list(state.tables["thing"].matching({"n": 3}))
    assert len(found) == sum(n % 7 == 3 for n in range(2, size))


def test_a_page_of_an_index_reads_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of ten rows pays for ten, whatever the index holds."""
    state = State.of({"thing": {f"K-{n}": {"n": n % 2} for n in range(5000)}})
    state.put("thing", "K-1", {"n": 0})
    looked: list[Any] = []
    merged = Table._merged

    def counted(self: Table, base: Any, own: Any) -> Any:
        return (looked.append(item) or item for item in merged(self, base, own))

    monkeypatch.setattr(Table, "_merged", counted)
    rows = state.tables["thing"].matching({"n": 0})
    assert len([next(rows) for _ in range(10)]) == len(looked) == 10


def test_indexes_are_bounded_and_answers_the_same() -> None:
    fields = [f"f{i}" for i in range(MOST_INDEXES + 5)]
    rows = {f"K-{n}": {field: (n + i) % 3 for i, field in enumerate(fields)} for n in range(9)}
    state = State.of({"thing": rows})
    for written in (False, True):
        if written:
            state.put("thing", "K-0", dict.fromkeys(fields, 7))
        table = state.tables["thing"]
        for _ in range(2):
            for field in fields:
                expected = [row for row in table.rows() if row[field] == 1]
                assert list(table.matching({field: 1})) == expected
        assert len(table.base._indexes.kept) == MOST_INDEXES
    assert len(state.tables["thing"]._indexes.kept) == MOST_INDEXES
