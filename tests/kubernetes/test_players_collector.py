"""The played garbage collector: what goes with its owner, what stays, and in which order."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, cast

from kubernetes.aio import client
from kubernetes.aio.client.exceptions import ApiException

from tests.kubernetes.asking import Asking, Json, asking, until
from tests.kubernetes.staging import Stage

SIMULATED = {"synth.dev/played": "simulated"}


class Owned:
    """ConfigMaps that own and are owned: the collector looks at nothing but their metadata."""

    def __init__(self, cluster: Asking) -> None:
        self.cluster = cluster

    async def make(
        self, *owners: Json, finalizers: tuple[str, ...] = (), blocks: bool = True
    ) -> Json:
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": blocks,
            }
            for owner in owners
        ]
        body = {
            "metadata": {
                "name": f"owned-{uuid.uuid4().hex[:8]}",
                "ownerReferences": references,
                "finalizers": list(finalizers),
            }
        }
        made = await self.cluster.core.create_namespaced_config_map(
            self.cluster.namespace, cast(Any, body)
        )
        return self.cluster.plain(made)

    async def find(self, obj: Json) -> Json | None:
        name = obj["metadata"]["name"]
        try:
            found = await self.cluster.core.read_namespaced_config_map(name, self.cluster.namespace)
        except ApiException as error:
            if error.status != 404:
                raise
            return None
        return self.cluster.plain(found)

    async def delete(self, obj: Json, policy: str | None = None) -> None:
        await self.cluster.core.delete_namespaced_config_map(
            obj["metadata"]["name"], self.cluster.namespace, propagation_policy=policy
        )

    async def gone(self, obj: Json) -> None:
        await until(lambda: self.find(obj), None, obj["metadata"]["name"])

    async def there(self, obj: Json, what: Callable[[Json], bool] = bool) -> Json:
        return await until(lambda: self.find(obj), what, obj["metadata"]["name"])


def with_owned(stage: Stage, test: Callable[[Owned], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asking(stage) as cluster:
            await test(Owned(cluster))

    asyncio.run(run())


def owners(obj: Json) -> list[str]:
    return [each["uid"] for each in obj["metadata"].get("ownerReferences") or []]


def test_what_is_owned_goes_with_its_owner_through_generations(stage: Stage) -> None:
    async def test(owned: Owned) -> None:
        first = await owned.make()
        second = await owned.make(first)
        third = await owned.make(second)
        other = await owned.make()
        await owned.delete(first)
        for each in (first, second, third):
            await owned.gone(each)
        assert await owned.find(other) is not None
        await owned.delete(other)

    with_owned(stage, test)


def test_one_owner_of_two_is_enough(stage: Stage) -> None:
    async def test(owned: Owned) -> None:
        one, two = await owned.make(), await owned.make()
        both = await owned.make(one, two)
        await owned.delete(one)
        left = await owned.there(both, lambda found: len(owners(found)) == 1)
        assert owners(left) == [two["metadata"]["uid"]]
        await owned.delete(two)
        await owned.gone(both)

    with_owned(stage, test)


def test_an_owner_that_never_was_owns_nothing(stage: Stage) -> None:
    async def test(owned: Owned) -> None:
        ghost = {"metadata": {"name": "ghost", "uid": str(uuid.uuid4())}}
        await owned.gone(await owned.make(ghost))

    with_owned(stage, test)


def test_an_owner_of_the_same_name_and_another_uid_is_another(stage: Stage) -> None:
    async def test(owned: Owned) -> None:
        real = await owned.make()
        name = real["metadata"]["name"]
        await owned.gone(await owned.make({"metadata": {"name": name, "uid": str(uuid.uuid4())}}))
        assert await owned.find(real) is not None
        await owned.delete(real)

    with_owned(stage, test)


def test_in_the_foreground_an_owner_waits_for_those_that_block_it(stage: Stage) -> None:
    """The dependent has a finalizer of its own, so that its deletion takes until we say."""

    async def test(owned: Owned) -> None:
        owner = await owned.make()
        held = await owned.make(owner, finalizers=("synth.dev/test",))
        free = await owned.make(owner)
        await owned.delete(owner, "Foreground")
        await owned.there(held, lambda found: "deletionTimestamp" in found["metadata"])
        await owned.gone(free)
        waiting = await owned.there(owner)
        assert "foregroundDeletion" in waiting["metadata"]["finalizers"]
        await owned.cluster.core.patch_namespaced_config_map(
            held["metadata"]["name"],
            owned.cluster.namespace,
            cast(Any, {"metadata": {"finalizers": None}}),
        )
        await owned.gone(held)
        await owned.gone(owner)

    with_owned(stage, test)


def test_in_the_foreground_what_does_not_block_is_not_waited_for(stage: Stage) -> None:
    async def test(owned: Owned) -> None:
        owner = await owned.make()
        held = await owned.make(owner, finalizers=("synth.dev/test",), blocks=False)
        await owned.delete(owner, "Foreground")
        await owned.gone(owner)
        await owned.cluster.core.patch_namespaced_config_map(
            held["metadata"]["name"],
            owned.cluster.namespace,
            cast(Any, {"metadata": {"finalizers": None}}),
        )
        await owned.gone(held)

    with_owned(stage, test)


def test_orphans_stay_and_lose_their_reference(stage: Stage) -> None:
    async def test(owned: Owned) -> None:
        owner = await owned.make()
        orphan = await owned.make(owner)
        await owned.delete(owner, "Orphan")
        await owned.gone(owner)
        assert owners(await owned.there(orphan)) == []
        await owned.delete(orphan)

    with_owned(stage, test)


def test_pods_of_a_lease_go_with_it(stage: Stage) -> None:
    """As those of a sandboxes' owner do."""

    async def test(owned: Owned) -> None:
        cluster, name = owned.cluster, f"owner-{uuid.uuid4().hex[:8]}"
        leases = client.CoordinationV1Api(cluster.api)
        lease = cluster.plain(
            await leases.create_namespaced_lease(
                cluster.namespace, cast(Any, {"metadata": {"name": name}})
            )
        )
        reference = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "name": name,
            "uid": lease["metadata"]["uid"],
        }
        names = [f"{name}-{number}" for number in range(3)]
        spec = {"containers": [{"name": "sandbox", "image": "image:1"}]}
        for each in names:
            await cluster.make_pod(each, spec, labels=SIMULATED, ownerReferences=[reference])
        for each in names:
            await cluster.running(each)
        await leases.delete_namespaced_lease(name, cluster.namespace)
        for each in names:
            await cluster.gone(each)

    with_owned(stage, test)
