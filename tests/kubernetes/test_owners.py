"""Owners beside each other: who takes, removes and reaps, in whatever order their requests come.

On a double in the test's own event loop, where no Pod runs; each asks over a real connection.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from records.errors import TransientError
from sandboxes.kubernetes import manifests, reaper
from sandboxes.kubernetes.api.connection import ApiObject, Connection
from sandboxes.kubernetes.names import DEAD, LINGER, OWNER, SANDBOX, Folders, label, lease_name
from sandboxes.kubernetes.owners import OtherOwners, Owner
from tests.kubernetes.connecting import FOLDERS, connected, owner
from tests.kubernetes.doubled import a_pod
from tests.kubernetes.staging import crds

FORMER, NEW, THIRD, DYING = "a" * 12, "b" * 12, "c" * 12, "d" * 12


class Turns:
    """One request at a time, of the actors that an order names one after another. Who has ended is
    passed over; after the last name anybody may ask."""

    def __init__(self, order: str) -> None:
        self._order, self._over = list(order), set[str]()
        self._changed = asyncio.Condition()

    def _next(self) -> str | None:
        while self._order and self._order[0] in self._over:
            self._order.pop(0)
        return self._order[0] if self._order else None

    @asynccontextmanager
    async def of(self, actor: str) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: self._next() in (None, actor))
            try:
                yield
            finally:
                if self._order:
                    self._order.pop(0)
                self._changed.notify_all()

    async def run(self, actor: str, work: Coroutine[Any, Any, bool]) -> bool:
        """Whether it did what it wanted."""
        try:
            return await work
        except TransientError:
            return False
        finally:
            async with self._changed:
                self._over.add(actor)
                self._changed.notify_all()


class InTurns(Connection):
    """A connection of one actor."""

    def __init__(self, shared: Connection, turns: Turns, actor: str) -> None:
        super().__init__(shared.client, shared._login, shared.bucket)
        self._turns, self._actor = turns, actor

    async def ask(self, *asked: Any, **more: Any) -> ApiObject:
        async with self._turns.of(self._actor):
            return await super().ask(*asked, **more)


async def taking(connection: Connection, name: str, path: str) -> tuple[bool, str | None]:
    """As `KubernetesBackend.adopt` does it; and whose it was when it was read."""
    found = await connection.get(path)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return False, None
    read = label(found, OWNER)
    try:
        await owner(connection, name).take(path, found)
    except TransientError:
        return False, read
    return True, read


async def touching(connection: Connection, path: str) -> bool:
    """As a kubelet or a controller, which writes what it sees."""
    return await connection.patch(path, {"metadata": {"annotations": {"seen": "1"}}}) is not None


async def a_sandbox(connection: Connection, number: int, grace_s: int) -> str:
    """The path of one that the former owner has; with a grace its deletion takes its time."""
    made = a_pod(f"synth-{FORMER}-{number}", terminationGracePeriodSeconds=grace_s)
    made["metadata"]["labels"] = {OWNER: FORMER}
    if grace_s:
        made["metadata"]["finalizers"] = ["synth.dev/held"]
    await connection.create(FOLDERS.pods, made)
    return f"{FOLDERS.pods}/{made['metadata']['name']}"


@pytest.mark.parametrize(("grace_s", "asked"), [(0, "AAABBBC"), (5, "AABBC")])
def test_a_sandbox_is_removed_by_its_former_owner_or_taken_by_the_next_and_never_both(
    tmp_path: Path, grace_s: int, asked: str
) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (_, connection):
            for number, order in enumerate(sorted(set(permutations(asked)))):
                turns = Turns("".join(order))
                a, b, c = (InTurns(connection, turns, actor) for actor in "ABC")
                path = await a_sandbox(connection, number, grace_s)

                async def took(b: InTurns = b, path: str = path) -> bool:
                    return (await taking(b, NEW, path))[0]

                removed, taken, _ = await asyncio.gather(
                    turns.run("A", owner(a, FORMER).remove(path)),
                    turns.run("B", took()),
                    turns.run("C", touching(c, path)),
                )
                left = await connection.get(path)
                alive = left is not None and "deletionTimestamp" not in left["metadata"]
                assert removed is not taken, order
                assert alive is taken, order
                assert not alive or label(left or {}, OWNER) == NEW, order

    asyncio.run(go())


def test_of_two_that_take_what_both_read_as_a_thirds_one_has_it(tmp_path: Path) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (_, connection):
            for number, order in enumerate(sorted(set(permutations("AABBCC")))):
                turns = Turns("".join(order))
                a, b, c = (InTurns(connection, turns, actor) for actor in "ABC")
                path = await a_sandbox(connection, number, 0)
                read: dict[str, str | None] = {}

                async def took(
                    by: InTurns, name: str, path: str = path, read: dict[str, str | None] = read
                ) -> bool:
                    taken, read[name] = await taking(by, name, path)
                    return taken

                removed, *taken = await asyncio.gather(
                    turns.run("A", owner(a, FORMER).remove(path)),
                    turns.run("B", took(b, NEW)),
                    turns.run("C", took(c, THIRD)),
                )
                have = {name for name, has in zip((NEW, THIRD), taken, strict=True) if has}
                left = await connection.get(path)
                assert (left is None) is removed, order
                assert removed is not bool(have), order
                assert left is None or label(left, OWNER) in have, order
                firsts = [name for name in have if read[name] == FORMER]
                assert len(firsts) == bool(have), f"{order}: a second one takes it from the first"

    asyncio.run(go())


def test_an_answer_that_got_lost_is_no_other_owner(tmp_path: Path) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (_, connection):
            path = await a_sandbox(connection, 1, 0)
            found = await connection.get(path)
            assert found is not None
            await owner(connection, NEW).take(path, found)
            await owner(connection, NEW).take(path, found)  # asked again, as it was read
            with pytest.raises(TransientError, match=f"another owner, {NEW}"):
                await owner(connection, THIRD).take(path, found)

    asyncio.run(go())


@dataclass
class Living:
    connection: Connection
    folders: Folders
    owner: Owner
    others: OtherOwners


def living(connection: Connection) -> Living:
    others = OtherOwners(connection, FOLDERS, every_s=100)
    return Living(connection, FOLDERS, owner(connection, NEW), others)


async def a_dead_owner(connection: Connection, name: str, *, declared: bool = True) -> None:
    """Declared dead already, or silent for longer than a second."""
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": lease_name(name),
            "labels": {OWNER: name},
            "annotations": {DEAD: "yes"} if declared else {},
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 1},
    }
    await connection.create(FOLDERS.leases, lease)


def its(name: str, linger: str | None = None, **more: Any) -> dict[str, Any]:
    """Metadata of an object of the dead owner; with a time to linger it is a sandbox."""
    labels = {OWNER: DYING} | ({} if linger is None else {SANDBOX: name})
    made: dict[str, Any] = {"name": name, "labels": labels, **more}
    return made | ({} if linger is None else {"annotations": {LINGER: linger}})


async def left_behind(connection: Connection, *, claims: bool) -> None:
    """All that an owner may have had, in both ways of having sandboxes."""
    await a_dead_owner(connection, DYING)
    controller = {
        "apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": "s", "uid": "u",
        "controller": True,
    }  # fmt: skip
    for metadata in (
        its("lent", "0"), its("lingers", "600"), its("ready"),
        its("of-a-sandbox", ownerReferences=[controller]),
    ):  # fmt: skip
        await connection.create(FOLDERS.pods, a_pod() | {"metadata": metadata})
    if claims:
        spec = {"containers": [{"name": "sandbox", "image": "i"}]}
        template = manifests.sandbox_template("t", its("t"), {"labels": {OWNER: DYING}}, spec)
        await connection.create(FOLDERS.templates, template)
        pool = manifests.warm_pool("t", its("t"), 0)
        await connection.create(FOLDERS.warm_pools, pool)
        for name, linger in (("claimed", "0"), ("adoptable", "600")):
            made = manifests.claim(name, its(name, linger), "t", "2036-11-29T12:00:00Z")
            await connection.create(FOLDERS.claims, made)


async def names(connection: Connection, folder: str) -> set[str]:
    return {item["metadata"]["name"] async for item, _ in connection.listed(folder) if item}


@pytest.mark.parametrize("claims", [True, False])
def test_of_a_dead_owner_claims_and_plain_pods_are_found_whatever_this_one_makes(
    tmp_path: Path, claims: bool
) -> None:
    """`claims`: whether the API has agent-sandbox. What lingers stays, and its Lease with it."""
    if claims and crds() is None:
        pytest.skip("no definitions of agent-sandbox: SYNTH_TEST_DATA names no folder with them")

    async def go() -> None:
        settings = {"crds": crds()} if claims else {}
        async with connected(tmp_path, **settings) as (_, connection):
            await left_behind(connection, claims=claims)
            who = living(connection)
            assert await reaper.reap(who) == (0, 2 if claims else 1)
            assert await names(connection, FOLDERS.pods) == {"lingers", "of-a-sandbox"}
            assert await names(connection, FOLDERS.leases) == {lease_name(DYING)}
            folders = [FOLDERS.pods]
            if claims:
                assert await names(connection, FOLDERS.claims) == {"adoptable"}
                assert not await names(connection, FOLDERS.warm_pools)
                assert not await names(connection, FOLDERS.templates)
                folders.append(FOLDERS.claims)
            ended = {"metadata": {"annotations": {LINGER: "0"}}}
            for folder, name in zip(folders, ("lingers", "adoptable"), strict=False):
                await connection.patch(f"{folder}/{name}", ended)
            assert await reaper.reap(who) == (1, 2 if claims else 1)
            assert await names(connection, FOLDERS.pods) == {"of-a-sandbox"}
            assert not await names(connection, FOLDERS.leases)

    asyncio.run(go())


def test_who_may_not_see_claims_still_removes_plain_pods(tmp_path: Path) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (ask, connection):
            await left_behind(connection, claims=False)
            await connection.delete(f"{FOLDERS.pods}/lingers")
            for resource in ("sandboxclaims", "sandboxwarmpools", "sandboxtemplates"):
                await ask.fault(kind="status", code=403, count=None, resource=resource)
            assert await reaper.reap(living(connection)) == (1, 1)

    asyncio.run(go())


def test_what_goes_wrong_with_one_dead_owner_costs_the_next_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (ask, connection):
            await a_dead_owner(connection, FORMER, declared=False)
            await a_dead_owner(connection, THIRD)
            who = living(connection)
            await who.others.look()
            await asyncio.sleep(1.1)
            refused = {"verb": "patch", "resource": "leases", "name": lease_name(FORMER)}
            await ask.fault(kind="status", code=403, count=1, **refused)
            assert await reaper.reap(who) == (1, 0)
            assert await names(connection, FOLDERS.leases) == {lease_name(FORMER)}
            assert await reaper.reap(who) == (1, 0)

    asyncio.run(go())
