"""Models that play a role for an environment: a judge that decides what code leaves open.

Environments of questions run in threads with event loops of their own, so all requests are made in
one loop that belongs to the asking. An answer is journalled before anybody sees it: who asks the
same again, in another process too, hears the same and pays nothing. Waiting is not the policy's:
where there is no answer in time, or none that can be used, the episode ends `outside` and has no
reward.
"""

import asyncio
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from offline_llm.app import create_app
from records.digest import digest
from records.errors import BudgetError, ItemError, TransientError, UnavailableError
from records.store.journal import ShardJournal
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.ledger import journalled_rows, spent_in
from synth.llm.settings.config import BudgetConfig, RoleConfig
from synth.llm.wire.request import Message

ROLES = ("judge", "attacker")
"""What a model can play for an environment."""

STAGE = "gym_roles"
"""What ledgers and budgets call these requests."""

PATIENCE_S = 45.0
"""Seconds that an answer is waited for: less than an episode has for a step, so that a slow server
is told as one. An answer that comes later is journalled all the same."""


class Asking:
    """The roles of one run. `ask` may be called from any event loop, and by many at once."""

    def __init__(
        self,
        roles: Mapping[str, RoleConfig] | None = None,
        *,
        journal: Path | None = None,
        budget: BudgetConfig = BudgetConfig(),
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Without roles nothing runs, and nobody can be asked. `journal`: the file that keeps the
        answers; None keeps them until `close`. `budget` counts all that the journal holds.
        ConfigError for a key that is not set."""
        self.roles = dict(roles or {})
        self._journal, self._budget, self._patience_s = journal, budget, patience_s
        self._stack = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._llm: LLM | None = None
        self._asked: dict[str, asyncio.Task[Any]] = {}
        if self.roles:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, daemon=True, name="gym-roles"
            )
            self._thread.start()
            try:
                asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
            except BaseException:
                self._stop()
                raise

    async def ask(
        self, role: str, messages: Sequence[Message], schema: Mapping[str, Any]
    ) -> dict[str, Any]:
        """An object that fits `schema`, whose `title` names the form; the role does where it has
        none. TransientError where nobody plays the role, where its server is down or takes too
        long, where the budget is spent, and for an answer that cannot be used: none of it says
        anything about the policy. ConfigError for a wrong key."""
        if role not in self.roles or self._loop is None:
            raise TransientError(
                f"nobody plays the role {role}; set gym.roles.{role}.base_url to the /v1 URL of a "
                "model"
            )
        work = asyncio.run_coroutine_threadsafe(
            self._answered(role, messages, dict(schema)), self._loop
        )
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work), self._patience_s)
        except TimeoutError:
            raise TransientError(f"{role} has no answer after {self._patience_s:g} s") from None
        except (ItemError, UnavailableError, BudgetError) as error:
            raise TransientError(f"{role}: {error}") from error

    async def close(self) -> None:
        """Stop what is being asked. May be called twice; nobody can be asked afterwards."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """The same, for who is in no event loop."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
            self._stop()

    async def _open(self) -> None:
        path = self._journal
        if path is None:
            folder = tempfile.TemporaryDirectory(prefix="synth-gym-")
            path = Path(self._stack.enter_context(folder)) / "roles.sqlite"
        notes = self._stack.enter_context(ShardJournal(path))
        app = create_app()
        gateway = Gateway(
            self.roles,
            budget=Budget(self._budget, spent_in(journalled_rows(notes))),
            offline_app=lambda: app,
            patience_s=self._patience_s,
        )
        await self._stack.enter_async_context(gateway)
        self._llm = LLM(gateway, notes, stage=STAGE, invocation_id=STAGE)
        self._llm.take_rows()  # of an earlier process

    async def _answered(
        self, role: str, messages: Sequence[Message], schema: dict[str, Any]
    ) -> dict[str, Any]:
        """The same question that is asked twice at once is one request."""
        item = digest(STAGE, role, list(messages), schema)
        work = self._asked.get(item)
        if work is None:
            work = asyncio.ensure_future(self._request(role, messages, schema, item))
            self._asked[item] = work
            work.add_done_callback(lambda done: self._over(item, done))
        return await asyncio.shield(work)  # it is paid for: it goes on when nobody waits any more

    def _over(self, item: str, work: asyncio.Task[Any]) -> None:
        del self._asked[item]
        if not work.cancelled():
            work.exception()  # of a request that nobody waits for, it is no warning

    async def _request(
        self, role: str, messages: Sequence[Message], schema: dict[str, Any], item: str
    ) -> dict[str, Any]:
        assert self._llm is not None
        try:
            form = str(schema.get("title", role))
            return await self._llm.structured(
                role, messages, item=item, step=role, name=form, schema=schema
            )
        finally:
            self._llm.take_rows()  # the journal has what was paid

    async def _end(self) -> None:
        here = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not here]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._stack.aclose()

    def _stop(self) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = None
