"""Superseding rows against a model that keeps a dict: `rows`, `ids` and the views agree with it."""

from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from records.store.dataset import Dataset
from tests.examples import examples
from tests.records.rows import commit, row, trajectories


class Attempt(NamedTuple):
    superseding: bool
    calls: dict[str, int]
    """Trajectory -> number of its tool calls."""
    curates: frozenset[str]


ids = st.sampled_from("abc")
attempts = st.builds(
    Attempt, st.booleans(), st.dictionaries(ids, st.integers(0, 3)), st.frozensets(ids)
)


class Model:
    """What must be live, by the rules of `records.store.dataset` in the plainest way."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.calls: set[tuple[str, int]] = set()
        self.curated: dict[str, str] = {}

    def apply(self, number: int, attempt: Attempt) -> Attempt:
        """Take the attempt in, less what would clash; returns what is left of it."""
        calls = attempt.calls
        if not attempt.superseding:
            calls = {one: count for one, count in calls.items() if one not in self.outcomes}
        for one, count in calls.items():
            self.outcomes[one] = str(number)
            self.curated.pop(one, None)
            self.calls = {key for key in self.calls if key[0] != one}
            self.calls |= {(one, index) for index in range(count)}
        curates = attempt.curates & self.outcomes.keys()
        self.curated |= dict.fromkeys(curates, str(number))
        return Attempt(attempt.superseding, calls, curates)


@given(st.lists(attempts, max_size=6))
@settings(deadline=None, max_examples=examples(25))
def test_the_newest_rows_count_with_what_describes_them(history: list[Attempt]) -> None:
    model = Model()
    with TemporaryDirectory() as folder:
        dataset = Dataset.create_or_open(folder)
        for number, attempt in enumerate(history):
            superseding, calls, curates = model.apply(number, attempt)
            commit(
                dataset,
                number,
                trajectories=[
                    one for id_ in calls for one in trajectories(id_, outcome=str(number))
                ],
                tool_calls=[
                    row("tool_calls", trajectory_id=one, call_index=index)
                    for one, count in calls.items()
                    for index in range(count)
                ],
                curation=[
                    row("curation", curation_id=str(number), trajectory_id=one) for one in curates
                ],
                supersedes=superseding,
            )
            assert dataset.ids("tool_calls") == model.calls
        found = dataset.rows("trajectories", ["trajectory_id", "outcome"])
        assert {one["trajectory_id"]: one["outcome"] for one in found} == model.outcomes
        assert len(dataset.rows("tool_calls")) == len(model.calls)
        with dataset.connect() as connection:
            query = "SELECT trajectory_id, outcome, curation_id FROM trajectories"
            assert sorted(connection.execute(query).fetchall()) == sorted(
                (one, outcome, model.curated.get(one)) for one, outcome in model.outcomes.items()
            )
            query = "SELECT trajectory_id, call_index FROM tool_calls"
            rows = connection.execute(query).fetchall()
            assert sorted(rows) == sorted(model.calls)
