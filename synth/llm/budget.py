"""Hard budgets: a request is sent only if it fits even in its worst case.

Invariant, for the run and for each limited stage: spent + reserved <= limit. What is reserved is
settled by the reported usage, which is at most the worst case: a token is at least one byte of
the body, and `max_tokens` bounds the answer.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from records.errors import BudgetError
from synth.llm.settings.config import BudgetConfig, LimitConfig


class Amount(NamedTuple):
    usd: float
    tokens: int

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.usd + other.usd, self.tokens + other.tokens)


NOTHING = Amount(0.0, 0)


class Account:
    """Spent and reserved under one limit."""

    def __init__(self, name: str, limit: LimitConfig, spent: Amount) -> None:
        self.name = name
        self.limit = limit
        self.spent = spent
        self.reserved = NOTHING
        self.in_flight = 0

    def within(self, amount: Amount) -> bool:
        usd, tokens = self.limit.usd, self.limit.tokens
        return (usd is None or amount.usd <= usd) and (tokens is None or amount.tokens <= tokens)

    def fits(self, worst: Amount) -> bool:
        return self.within(self.spent.plus(self.reserved).plus(worst))

    def may_fit_later(self, worst: Amount) -> bool:
        """Whether it fits if everything in flight turns out to cost nothing."""
        return self.in_flight > 0 and self.within(self.spent.plus(worst))

    def reserve(self, worst: Amount) -> None:
        self.reserved = self.reserved.plus(worst)
        self.in_flight += 1

    def settle(self, worst: Amount, used: Amount) -> None:
        self.in_flight -= 1
        left = Amount(self.reserved.usd - worst.usd, self.reserved.tokens - worst.tokens)
        self.reserved = left if self.in_flight else NOTHING  # no rounding dust is left behind
        self.spent = self.spent.plus(used)

    def refusal(self, worst: Amount) -> BudgetError:
        shown = [
            f"{name} {format(spent, form)} spent of {format(limit, form)},"
            f" the next request may need {format(need, form)}"
            for name, form, spent, limit, need in (
                ("USD", ".6f", self.spent.usd, self.limit.usd, worst.usd),
                ("tokens", "d", self.spent.tokens, self.limit.tokens, worst.tokens),
            )
            if limit is not None
        ]
        return BudgetError(f"budget of {self.name}: {'; '.join(shown)}. Raise it and resume")


class Budget:
    """The limits of one run, shared by all its requests. One event loop."""

    def __init__(
        self, config: BudgetConfig | None = None, spent: Mapping[str, Amount] | None = None
    ) -> None:
        """`spent` is what earlier invocations spent, by stage (`synth.llm.ledger.spent_in`)."""
        config, spent = config or BudgetConfig(), spent or {}
        total = NOTHING
        for amount in spent.values():
            total = total.plus(amount)
        self.run = Account("the run", config, total)
        self._stages = {
            name: Account(f"stage {name}", limit, spent.get(name, NOTHING))
            for name, limit in config.stages.items()
        }
        limits = (config, *config.stages.values())
        self.limited = any(limit.usd is not None or limit.tokens is not None for limit in limits)
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, stage: str, worst: Amount) -> None:
        """Take `worst` out of the budget, or wait for room, or raise BudgetError.

        Every successful call must be followed by exactly one `settle` with the same arguments.
        """
        accounts = self._accounts(stage)
        while not all(account.fits(worst) for account in accounts):
            for account in accounts:
                if not account.fits(worst) and not account.may_fit_later(worst):
                    raise account.refusal(worst)
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(room)
            await room
        for account in accounts:
            account.reserve(worst)

    def settle(self, stage: str, worst: Amount, used: Amount) -> None:
        for account in self._accounts(stage):
            account.settle(worst, used)
        waiting, self._waiting = self._waiting, []
        for room in waiting:  # each looks again, in the order they came
            if not room.done():
                room.set_result(None)

    def add(self, stage: str, used: Amount) -> None:
        """What was spent without a reservation, elsewhere and under no limit."""
        for account in self._accounts(stage):
            account.spent = account.spent.plus(used)

    def _accounts(self, stage: str) -> tuple[Account, ...]:
        own = self._stages.get(stage)
        return (self.run,) if own is None else (self.run, own)
