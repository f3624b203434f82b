"""Right verdicts as rows that are learnt: what code says of two answers, as the critic's own words.

Every pair stands in both orders in one step, so `first` is right exactly half of the time.

Shape suffixes in this file: B = rows, T = tokens of the longest row.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from trainer.data.chat import Encoded, encode_chat
from trainer.data.chat_format import ChatFormat
from trainer.data.packing import IGNORE, PADDING, PackedBatch
from trainer.data.tokenizer import Tokenizer
from trainer.rl.critic.asking import ComparedPair, VerdictWord
from trainer.rl.critic.pairs import RatedPair
from trainer.rl.objective.ptx import WeightedRows


class CriticLessons(NamedTuple):
    """Those of an iteration, to be shared out among its steps."""

    pairs: Sequence[tuple[Encoded, Encoded]]
    """Each in both orders."""
    weight: float
    """Of their loss."""
    pad: int
    """Token that fills a row up."""
    too_long: int = 0
    """Pairs that were left out."""

    def of_step(self, number: int, steps: int) -> WeightedRows | None:
        """Those of a step among so many, as even in number as they can be; None where that is
        none."""
        own = self.pairs[number::steps]
        if not own:
            return None
        return WeightedRows(rows_of_pairs(own, self.pad), self.weight)


def lessons_of(
    pairs: Iterable[RatedPair],
    tokenizer: Tokenizer,
    chat: ChatFormat,
    *,
    tokens: int,
    weight: float,
) -> CriticLessons:
    """Of the pairs that have no more than so many tokens in either order."""
    encoded = [
        (_encoded(pair, False, tokenizer, chat), _encoded(pair, True, tokenizer, chat))
        for pair in pairs
    ]
    fitting = [both for both in encoded if all(len(one.ids) <= tokens for one in both)]
    pad = tokenizer.special["[PAD]"]
    return CriticLessons(fitting, weight, pad, too_long=len(encoded) - len(fitting))


def rows_of_pairs(pairs: Sequence[tuple[Encoded, Encoded]], pad: int) -> PackedBatch:
    """A row a verdict. Only the verdict is learnt."""
    documents = [one for both in pairs for one in both]
    longest = max(len(one.ids) for one in documents)
    shape = (len(documents), longest)
    ids_BT, targets_BT = torch.full(shape, pad), torch.full(shape, IGNORE)
    documents_BT = torch.full(shape, PADDING)
    for b, (ids, learnt) in enumerate(documents):
        end = len(ids)
        ids_BT[b, :end] = torch.tensor(ids)
        following = zip(ids[1:], learnt[1:], strict=True)
        targets_BT[b, : end - 1] = torch.tensor([i if own else IGNORE for i, own in following])
        documents_BT[b, :end] = 0
    return PackedBatch(ids_BT, targets_BT, documents_BT)


def _encoded(pair: RatedPair, turned: bool, tokenizer: Tokenizer, chat: ChatFormat) -> Encoded:
    right: VerdictWord = "second" if turned else "first"
    question = ComparedPair(pair.better, pair.worse).question(turned=turned)
    return encode_chat(tokenizer, [*question, {"role": "assistant", "content": right}], chat=chat)
