"""The pool: what is lent is clean or fresh, waiting is fair, and every lease is accounted for."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from records.errors import ConfigError, TransientError
from sandboxes.core.body import Snapshot
from sandboxes.core.python_env import base_python
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.accounts import Accounts
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from sandboxes.local import backend as local
from sandboxes.local import clean
from sandboxes.mcp.warm import WarmServers
from tests.sandboxes.on_host import body_of, kill_agent, pid_of

pytestmark = pytest.mark.usefixtures("sandboxed")

SMALL = SandboxTemplate(limits=Limits(memory_mb=96, processes=24, disk_mb=8, timeout_s=10))
OTHER = SMALL.model_copy(update={"hostname": "other"})


def pooled(work: Callable[[Pool], Awaitable[None]], live: int = 3) -> Pool:
    """Run `work` with a pool, whose accounts are then checked by its closing."""

    async def go() -> Pool:
        async with Pool(PoolSettings(live=live)) as pool:
            await work(pool)
            await pool.settled()
        assert pool.accounts.alive == pool.accounts.held == pool.accounts.waiting == 0
        return pool

    return asyncio.run(go())


async def used(pool: Pool, *argv: str, template: SandboxTemplate = SMALL) -> tuple[int, bytes]:
    """(host's id of the sandbox, what the command printed)."""
    async with pool.lease(template) as sandbox:
        return pid_of(sandbox), (await sandbox.exec(argv)).stdout


TRACES = f"""
mkdir -p deep/er /tmp/.hidden /dev/shm/x
echo mine > deep/er/file; ln -s / link; mkfifo fifo; echo mine > /tmp/.hidden/f
chmod 0 deep; (setsid sleep 1000 &); sleep 1000 &
{base_python()} -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/socket"); s.listen()
os.fork() or os.setsid() and os.fork() or __import__("time").sleep(1000)
' &
"""


def test_a_used_sandbox_is_lent_again_without_a_trace() -> None:
    look = "find /workspace /tmp /dev/shm -mindepth 1; ps -eo comm=,nice=; ulimit -a; mount"

    async def work(pool: Pool) -> None:
        first, fresh = await used(pool, "sh", "-c", look)
        await pool.settled()
        second, _ = await used(pool, "sh", "-c", TRACES)
        await pool.settled()
        third, after = await used(pool, "sh", "-c", look)
        assert first == second == third
        assert after == fresh

    pool = pooled(work)
    assert pool.accounts.endings == {"clean": 3}
    assert pool.accounts.starts == 1


SHAPED = {
    "ipc": "import ctypes; print(ctypes.CDLL(None).shmget(7, 4096, 0o1777))",
    "sockets": """
import socket
server = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(server.getsockname()); other = server.accept()[0]
one.close(); other.recv(1); other.close()
print("closing")
""",
}
"""Field that must differ -> what a program can do to the next holder without leaving a file."""


@pytest.mark.parametrize("field", SHAPED)
def test_what_cannot_be_wiped_is_noticed_and_destroyed(field: str) -> None:
    async def work(pool: Pool) -> None:
        first, said = await used(pool, base_python(), "-c", SHAPED[field])
        assert said, "the program did not get that far"
        await pool.settled()
        second, _ = await used(pool, "true")
        assert second != first

    pool = pooled(work)
    assert pool.accounts.endings == {"dirty": 1, "clean": 1}
    assert set(pool.accounts.differences) == {field}


def test_every_field_that_is_compared_can_differ() -> None:
    async def go() -> None:
        async with local.lease(SMALL) as one, local.lease(OTHER) as two:
            seen = clean.look(pid_of(one), body_of(one).group)
            assert clean.differences(seen, clean.look(pid_of(one), body_of(one).group)) == []
            other = clean.look(pid_of(two), body_of(two).group)
            assert {"processes", "namespaces", "descriptors"} <= set(clean.differences(seen, other))
            grown = seen._replace(memory=seen.memory + clean.MEMORY_SLACK + 1)
            assert clean.differences(seen, grown) == ["memory"]
            await one.exec(["touch", "file"])
            changed = clean.differences(seen, clean.look(pid_of(one), body_of(one).group))
            assert changed == ["folders"]

    asyncio.run(go())


def test_posix_message_queues_cannot_be_made() -> None:
    made = "ctypes.CDLL(None, use_errno=True).mq_open(b'/q', 66, 511, None)"
    script = f"import ctypes; print({made}, ctypes.get_errno())"

    async def work(pool: Pool) -> None:
        _, said = await used(pool, base_python(), "-c", script)
        assert said == b"-1 24\n"  # EMFILE: over the limit, which is none

    pooled(work)


def test_a_template_may_ask_for_fresh_ones() -> None:
    fresh = SMALL.model_copy(update={"recycle": False})

    async def work(pool: Pool) -> None:
        pids = {(await used(pool, "true", template=fresh))[0] for _ in range(3)}
        assert len(pids) == 3

    assert pooled(work).accounts.endings == {"replaced": 3}


def test_an_old_holder_cannot_reach_the_next_ones_sandbox() -> None:
    async def work(pool: Pool) -> None:
        async with pool.lease(SMALL) as kept:
            server = await kept.open_stdio(["cat"])
        await pool.settled()
        async with pool.lease(SMALL) as sandbox:
            assert pid_of(sandbox) == pid_of(kept)
            for reach in (kept.exec(["true"]), kept.read_file("x"), kept.ping(), server.wait()):
                with pytest.raises(TransientError, match=r"given back|wiped"):
                    await reach
            await server.kill()
            assert (await sandbox.exec(["echo", "mine"])).stdout == b"mine\n"

    assert pooled(work).accounts.endings == {"clean": 2}


def test_an_overdue_lease_is_ended_under_its_holder() -> None:
    async def work(pool: Pool) -> None:
        async with pool.lease(SMALL, lease_s=0.3) as sandbox:
            with pytest.raises(TransientError, match=r"ran out after 0\.3 s"):
                await sandbox.exec(["sleep", "100"])

    pool = pooled(work)
    assert pool.accounts.endings == {"expired": 1}


async def asked_for_ever(sandbox: Sandbox) -> None:
    """Ends with its death: what is inside outlives the outermost process by a moment."""
    while True:
        await sandbox.ping()


def test_a_sandbox_that_dies_is_lost_and_another_takes_its_place() -> None:
    async def work(pool: Pool) -> None:
        async with pool.lease(SMALL) as sandbox:
            kill_agent(sandbox)
            with pytest.raises(TransientError, match="the sandbox ended"):
                await sandbox.exec(["sleep", "10"])
        await pool.settled()
        await used(pool, "true")
        await pool.settled()
        (idle,) = next(iter(pool._idle.values()))
        kill_agent(idle)  # it dies while nobody looks
        with pytest.raises(TransientError):
            await asked_for_ever(idle)
        assert (await used(pool, "echo", "here"))[1] == b"here\n"

    pool = pooled(work)
    assert pool.accounts.endings == {"lost": 1, "clean": 2}
    assert pool.accounts.deaths == {"lost": 1, "unhealthy": 1, "closed": 1}


@pytest.mark.parametrize("live", [1, 3])
def test_who_asks_first_is_served_first_and_no_more_than_live_exist(live: int) -> None:
    async def work(pool: Pool) -> None:
        served: list[int] = []

        async def one(number: int) -> None:
            async with pool.lease(SMALL if number % 2 else OTHER):
                served.append(number)
                assert pool.accounts.alive <= live

        await asyncio.gather(*(one(number) for number in range(8)))
        if live == 1:
            assert served == list(range(8))

    pool = pooled(work, live=live)
    assert pool.accounts.endings == {"clean": 8}
    assert pool.accounts.deaths["evicted"] == 7 or live > 1


def test_waiting_can_be_given_up_and_closing_ends_everyone() -> None:
    async def go() -> Pool:
        async with Pool(PoolSettings(live=1)) as pool:
            held = pool.lease(SMALL)
            sandbox = await held.__aenter__()
            waiters = [asyncio.create_task(used(pool, "true")) for _ in range(2)]
            await asyncio.sleep(0.01)
            waiters[0].cancel()
            running = asyncio.create_task(sandbox.exec(["sleep", "100"]))
            await asyncio.sleep(0.01)
        for late in (running, waiters[1]):
            with pytest.raises(TransientError, match="was closed"):
                await late
        await held.__aexit__(None, None, None)
        return pool

    accounts = asyncio.run(go()).accounts
    assert (accounts.given_up, accounts.refused, accounts.granted) == (1, 1, 1)
    assert accounts.endings == {"closed": 1}


def test_warm_ones_are_ready_before_they_are_asked_for_and_are_kept_up() -> None:
    async def work(pool: Pool) -> None:
        await pool.warm(SMALL, 2)
        assert pool.accounts.starts == pool.accounts.alive == 2
        async with pool.lease(SMALL) as sandbox:
            sandbox.end("it broke")
        await pool.settled()
        assert pool.accounts.alive == 2
        await pool.warm(SMALL, 50)  # no more than there is room for
        assert pool.accounts.alive == 3

    pooled(work)


def test_failed_starts_are_tried_again_then_refused_and_counted() -> None:
    fails = iter([True, False, True, True, True])

    class Crowded(local.LocalBackend):
        async def create(
            self, template: SandboxTemplate, snapshot: Snapshot | None = None
        ) -> Sandbox:
            if next(fails):
                raise TransientError("no room on the machine")
            return await super().create(template, snapshot)

    async def go() -> Pool:
        async with Pool(PoolSettings(live=2), backend=Crowded()) as pool, pool.lease(SMALL):
            with pytest.raises(TransientError, match=r"3 starts failed.*no room"):
                async with pool.lease(SMALL):
                    pass
        return pool

    accounts = asyncio.run(go()).accounts
    assert (accounts.starts, accounts.failed_starts, accounts.refused) == (5, 4, 1)


def test_what_can_never_start_is_a_configuration_error() -> None:
    async def work(pool: Pool) -> None:
        wrong = SandboxTemplate(binds=({"source": "/no/such", "target": "/x"},))  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="/no/such"):
            await used(pool, "true", template=wrong)

    assert pooled(work).accounts.refused == 1


def test_unbalanced_accounts_are_an_error() -> None:
    pool = pooled(lambda pool: used(pool, "true"))  # type: ignore[arg-type,return-value]
    pool.accounts.endings["clean"] += 1
    with pytest.raises(AssertionError, match="do not add up"):
        pool.accounts.check()


def test_changes_of_the_accounts_add_up_in_any_selection() -> None:
    """They are written with shards, of which some are lost and some come from other processes."""

    async def run() -> list[dict[str, int]]:
        changes = []
        async with WarmServers(live=2) as warm:
            async with warm.pool.lease(SMALL) as sandbox:
                changes.append(warm.newly_counted())
                await sandbox.exec(["true"])
            changes.append(warm.newly_counted())
            await warm.pool.settled()
            changes.append(warm.newly_counted())
            async with warm.pool.lease(SMALL) as sandbox:
                sandbox.end("by a fault")
            changes.append(warm.newly_counted())
        changes.append(warm.newly_counted())
        return changes

    changes = asyncio.run(run())
    for chosen in range(1 << len(changes)):
        total: Counter[str] = Counter()
        for number, change in enumerate(changes):
            if chosen >> number & 1:
                total.update(change)
        Accounts.of(total).check()
    total = Counter()
    for change in changes:
        total.update(change)
    everything = Accounts.of(total)
    assert (everything.asked, everything.alive) == (2, 0)
    broken = Accounts.of({"asked": 2, "ended:clean": 1})
    with pytest.raises(AssertionError, match="do not add up"):
        broken.check()
