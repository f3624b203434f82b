"""Rows hold every sample whole and once, and each drawn token with what is known of it."""

import pytest
import torch

from records.errors import ConfigError
from tests.trainer.rl.objective.made_samples import samples, sequence
from trainer.data.packing import IGNORE, PADDING
from trainer.rl.objective.baseline import weighed
from trainer.rl.objective.packing import LearntRows, rows_of
from trainer.rl.objective.rows import LearntSample, LearntSequence

WEIGHED = weighed(samples(), normalise=False, keep=True).samples


def packed(row_tokens: int | None, micro_rows: int) -> list[LearntRows]:
    made = rows_of(WEIGHED, row_tokens=row_tokens, micro_rows=micro_rows, routes=True)
    return list(made)


@pytest.mark.parametrize(
    ("row_tokens", "micro_rows"), [(None, 1), (None, 2), (None, 100), (64, 1), (300, 2)]
)
def test_each_drawn_token_is_a_target_once_with_its_own_columns(
    row_tokens: int | None, micro_rows: int
) -> None:
    made = packed(row_tokens, micro_rows)
    found = []
    for rows in made:
        assert rows.ids_BT.shape[1] == (row_tokens or 21)
        places = rows.learnt_N
        targets = rows.targets_BT.flatten()
        assert torch.equal(places, (targets != IGNORE).nonzero()[:, 0])
        lengths = torch.zeros(len(rows.advantages_S)).index_add(
            0, rows.sample_N, torch.ones(len(places))
        )
        assert torch.equal(lengths.long(), rows.lengths_S)
        columns = (targets[places], rows.old_N, rows.sampled_N, rows.versions_N)
        own = (rows.advantages_S[rows.sample_N], rows.shares_S[rows.sample_N])
        found += list(zip(*(column.tolist() for column in (*columns, *own)), strict=True))
    expected = [
        (*(column[q.drawn_T][n].item() for column in columns), one.advantage, one.share)
        for one in WEIGHED
        for q in one.sample.sequences
        for columns in [(q.ids_T, q.old_T, q.sampled_T, q.versions_T)]
        for n in range(q.num_drawn)
    ]
    assert sorted(found) == sorted(expected)


def documents_of(rows: LearntRows) -> list[list[int]]:
    found = []
    for ids_T, documents_T in zip(rows.ids_BT, rows.documents_BT, strict=True):
        numbers = documents_T[documents_T != PADDING]
        assert (numbers.diff() >= 0).all()
        assert (documents_T[len(numbers) :] == PADDING).all()
        found += [ids_T[documents_T == number].tolist() for number in numbers.unique()]
    return found


@pytest.mark.parametrize(("row_tokens", "micro_rows"), [(None, 2), (64, 1), (300, 3)])
def test_documents_are_the_sequences_and_passes_hold_whole_samples(
    row_tokens: int | None, micro_rows: int
) -> None:
    found = []
    for rows in packed(row_tokens, micro_rows):
        own = documents_of(rows)
        found += own
        assert len(rows.ids_BT) <= max(micro_rows, 2)
        first = [q.ids_T.tolist() for one in WEIGHED for q in one.sample.sequences]
        numbers = {first.index(ids) for ids in own}
        sample_of = [n for n, one in enumerate(WEIGHED) for _ in one.sample.sequences]
        whole = {sample_of[number] for number in numbers}
        assert len(whole) == len(rows.advantages_S)
        assert len(numbers) == sum(sample_of.count(n) for n in whole)
    expected = [q.ids_T.tolist() for one in WEIGHED for q in one.sample.sequences]
    assert sorted(found) == sorted(expected)


def test_short_samples_fill_what_long_ones_leave() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = (30, 30, 30, 10, 10, 10)
    many = [
        LearntSample("g", n, "f", n / 7, (sequence(generator, length, [length - 1]),))
        for n, length in enumerate(lengths)
    ]
    given = weighed(many, normalise=False, keep=False).samples
    made = list(rows_of(given, row_tokens=40, micro_rows=1, routes=False))
    assert len(made) == 3
    assert all((rows.documents_BT != PADDING).all() for rows in made)


def test_a_sequence_longer_than_a_row_is_refused() -> None:
    with pytest.raises(ConfigError, match="row_tokens = 20, and a sequence has 21 tokens"):
        packed(20, 4)


def test_routes_lie_at_their_tokens() -> None:
    generator = torch.Generator().manual_seed(0)
    routes = torch.arange(24, dtype=torch.int16).view(6, 2, 2)
    known: LearntSequence = sequence(generator, 6, [5], routes_TLK=routes)
    unknown: LearntSequence = sequence(generator, 4, [3])
    two = [LearntSample("g", n, "f", n, (q,)) for n, q in enumerate((known, unknown))]
    given = weighed(two, normalise=False, keep=False).samples
    [rows] = rows_of(given, row_tokens=12, micro_rows=1, routes=True)
    assert rows.routes_BTLK is not None
    assert torch.equal(rows.routes_BTLK[0, :6], routes)
    assert (rows.routes_BTLK[0, 6:] == -1).all()
    [without] = rows_of(given, row_tokens=12, micro_rows=1, routes=False)
    assert without.routes_BTLK is None
