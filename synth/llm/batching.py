"""What a request that goes in a batch has beside any other: an earlier invocation may have sent it.

Then its row in the ledger goes on, and what was counted for it until it is answered is taken back.
"""

from records.errors import SynthError
from records.tables.schemas import Row
from synth.llm.budget import Amount, Budget
from synth.llm.endpoint.batch import Batches, BatchQuestion
from synth.llm.endpoint.batch_api import BatchApi
from synth.llm.endpoint.batch_store import BatchedRequest
from synth.llm.ledger import PENDING
from synth.llm.settings.config import RoleConfig


class BatchedSending:
    """Of one shard, whose rows it changes."""

    def __init__(
        self, batches: Batches | None, budget: Budget, stage: str, rows: list[Row]
    ) -> None:
        self._batches, self._budget, self._stage, self._rows = batches, budget, stage, rows

    def takes(self, config: RoleConfig) -> bool:
        return config.batch and self._batches is not None

    def earlier(self, key: str, url: str) -> BatchedRequest | None:
        found = self._given().store.batch_of(key, url)
        return None if found is None else found[1]

    async def reserve(self, worst: Amount, row: Row, earlier: BatchedRequest | None) -> bool:
        """Take `worst` out of the budget; whether the journal has the request already as one that
        may be charged for, in which case `row` takes its place."""
        same: list[Row] = []
        if earlier is not None:
            same = [r for r in self._rows if r["call_id"] == earlier.call_id]
        known = next((r for r in same if r["status"] == PENDING), None)
        if known is None:
            await self._budget.reserve(self._stage, worst)
            if earlier is not None and not same:
                row["call_id"] = earlier.call_id  # so that the next invocation finds it
            return False
        tokens = known["prompt_tokens"] + known["completion_tokens"]
        self._budget.add(self._stage, Amount(-known["cost_usd"], -tokens))
        try:
            await self._budget.reserve(self._stage, worst)
        except BaseException:
            self._budget.add(self._stage, Amount(known["cost_usd"], tokens))
            raise
        self._rows.remove(known)
        row["call_id"] = known["call_id"]
        return True

    async def ask(self, api: BatchApi, question: BatchQuestion) -> bytes:
        return await self._given().ask(api, question)

    def done(self, key: str) -> None:
        """What came of the request is in the journal."""
        self._given().store.done(key)

    def _given(self) -> Batches:
        if self._batches is None:
            raise SynthError("this process has no batches")
        return self._batches
