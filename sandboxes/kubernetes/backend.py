"""The backend of sandboxes that are Pods of a cluster."""

import asyncio
import concurrent.futures
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Set
from typing import NamedTuple

from records.errors import ConfigError, SynthError, TransientError
from sandboxes.core.backend import Capability, SandboxInfo
from sandboxes.core.bare import refuse
from sandboxes.core.body import BackpressureError, InfrastructureError, Snapshot
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes import cluster as clusters
from sandboxes.kubernetes import manifests, reaper, session
from sandboxes.kubernetes.api import connection as connections
from sandboxes.kubernetes.api.connection import ApiObject
from sandboxes.kubernetes.body import KubernetesBody, Placing
from sandboxes.kubernetes.claims import Claims, Placed
from sandboxes.kubernetes.cluster import Cluster
from sandboxes.kubernetes.names import (
    LINGER,
    NAME,
    OWNER,
    TEMPLATE,
    TOKEN,
    Folders,
    annotation,
    label,
    seconds_in,
    selecting,
)
from sandboxes.kubernetes.names import SANDBOX as LABEL
from sandboxes.kubernetes.pods import PlainPods
from sandboxes.kubernetes.session import Session
from sandboxes.kubernetes.settings import KubernetesSettings
from sandboxes.kubernetes.states import pod_key

SHOWN_S = 15.0
"""For the watch to show a Pod that was another owner's."""

AGAIN_S = 0.2


class Held(NamedTuple):
    session: Session
    placing: Claims | PlainPods


class KubernetesBackend:
    """See `sandboxes.core.backend.Backend`. Each event loop that uses it has its own session."""

    name = KubernetesBody.backend

    def __init__(self, settings: KubernetesSettings | None = None) -> None:
        self.settings = settings or KubernetesSettings()
        found = {Capability.BINDS, Capability.CONTAINED}
        if self.settings.egress_proxy is not None:
            found.add(Capability.EGRESS)
        self.capabilities: Set[Capability] = frozenset(found)
        self._held: dict[asyncio.AbstractEventLoop, asyncio.Task[Held]] = {}
        self._cluster: Cluster | None = None

    def unavailable(self) -> str | None:
        """Asked of the cluster, again each time until it can."""
        if self._cluster is not None:
            return None
        with concurrent.futures.ThreadPoolExecutor(1) as thread:  # a loop may run in this one
            try:
                self._cluster = thread.submit(asyncio.run, probed(self.settings)).result()
            except SynthError as error:
                return str(error)
        return None

    async def held(self) -> Held:
        """The session of this event loop. ConfigError and TransientError as of `session.begun`."""
        loop = asyncio.get_running_loop()
        for other in [each for each in self._held if each.is_closed()]:
            del self._held[other]
        found = self._held.get(loop)
        if found is not None and found.done() and (
            found.cancelled() or found.exception() or found.result().session.over is not None
        ):  # fmt: skip
            found = None
        if found is None:
            found = self._held[loop] = loop.create_task(self._begin())
        return await asyncio.shield(found)

    async def _begin(self) -> Held:
        begun = await session.begun(self.settings)
        self._cluster = begun.cluster
        return Held(begun, Claims(begun) if begun.cluster.claims else PlainPods(begun))

    async def close(self) -> None:
        """End this loop's session, with everything that was not left to be adopted."""
        found = self._held.pop(asyncio.get_running_loop(), None)
        if found is None or found.cancelled() or (found.done() and found.exception()):
            return
        with contextlib.suppress(SynthError):  # it never began
            begun = (await found).session
            assert begun.keeper is not None
            begun.keeper.cancel()
            await asyncio.wait([begun.keeper])

    async def figures(self) -> Counter[str]:
        """What happened in this loop's session: claims, waits, failures of infrastructure."""
        await self.held()
        return self.counted()

    def counted(self) -> Counter[str]:
        """The same, without beginning a session where there is none."""
        held = self._held.get(asyncio.get_running_loop())
        if held is None or not held.done() or held.cancelled() or held.exception():
            return Counter()
        begun = held.result().session
        found = begun.counts + begun.connection.counts
        for name, watched in (("pods", begun.pods), ("claims", begun.claims)):
            found.update(
                {f"watch_{name}_{k}": v for k, v in (watched.counts if watched else {}).items()}
            )
        found["paced_ms"] = round(begun.connection.bucket.waited_s * 1000)
        return found

    async def create(self, template: SandboxTemplate, snapshot: Snapshot | None = None) -> Sandbox:
        refuse(self, template, snapshot)
        begun, placing = await self.held()
        if template.limits.strict and not (
            begun.cluster.counts_processes or self.settings.own_users
        ):
            raise ConfigError(
                "limits.strict: this cluster cannot wholly enforce processes (set `own_users` in "
                "the settings of Kubernetes, or use Kata)"
            )
        order = await begun.order(template)
        with counting(begun.counts), begun.ordered(order):
            placed = await placing.place(order, secrets.token_hex(16))
            return await KubernetesBody(begun, placing, placed, template).opened()

    async def adopt(self, name: str) -> Sandbox:
        begun, placing = await self.held()
        item = await self._found(begun, placing, name)
        token = annotation(item, TOKEN) if item else None
        if item is None or token is None or "deletionTimestamp" in item["metadata"]:
            raise TransientError(f"there is no sandbox {name!r}")
        template = manifests.read_template(annotation(item, TEMPLATE))
        key, watched = reaper.key_of(item), begun.pods
        if label(item, OWNER) != begun.owner.name:
            await begun.owner.take(f"{placing.folder}/{name}", item)
            if begun.claims is not None:
                watched = await begun.watching(await self._pod_of(begun, key))
        state = await watched.until(key, lambda found: found, within_s=SHOWN_S)
        if state is None or state.over is not None:
            begun.stop_watching(watched)
            raise TransientError(f"sandbox {name} does not answer: its Pod is over")
        placed = Placed(name, key, state.name, state.uid, token)
        body = KubernetesBody(begun, placing, placed, template, watched)
        body.renewed = float("-inf")  # its former holder may have renewed it long ago
        try:
            return await body.adopted(template)
        except BaseException:
            body.given_up()
            raise

    async def _pod_of(self, begun: Session, key: str) -> str:
        """The name of a Sandbox's Pod, whoever made it."""
        pod = await begun.connection.get(f"{begun.folders.pods}/{key}")
        if pod is not None and pod_key(pod) == key:
            return key
        pods = await reaper.states_of(begun.connection, begun.folders, "")
        if (state := pods.get(key)) is None:
            raise TransientError(f"Sandbox {key} has no Pod")
        return state.name

    async def _found(self, begun: Session, placing: Placing, name: str) -> ApiObject | None:
        """The claim or Pod of a sandbox; None where no sandbox has such a name."""
        if not NAME.fullmatch(name):
            return None
        item = await begun.connection.get(f"{placing.folder}/{name}")
        return item if item is not None and label(item, LABEL) == name else None

    async def list(self) -> list[SandboxInfo]:
        begun, placing = await self.held()
        leases = await begun.others.look()
        pods = await reaper.states_of(begun.connection, begun.folders, "")
        found = []
        query = selecting(sandbox="")
        async for item, _ in begun.connection.listed(placing.folder, query):
            if not item or "deletionTimestamp" in item["metadata"]:
                continue
            state, owner = pods.get(reaper.key_of(item)), str(label(item, OWNER))
            if state is None or state.over is not None or not state.runs:
                continue
            alive = owner in leases and not begun.others.dead(owner, leases[owner])
            adoptable = seconds_in(annotation(item, LINGER)) > 0
            found.append(SandboxInfo(item["metadata"]["name"], alive, adoptable))
        return found

    async def destroy(self, name: str) -> None:
        begun, placing = await self.held()
        if (found := await self._found(begun, placing, name)) is None:
            return
        await begun.connection.delete(  # whoever owns it
            f"{placing.folder}/{name}", preconditions={"uid": found["metadata"]["uid"]},
            propagationPolicy="Background",
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        end = loop.time() + self.settings.gone_s
        while await self._found(begun, placing, name) is not None and loop.time() < end:  # noqa: ASYNC110  # it is not in our watch
            await asyncio.sleep(AGAIN_S)


@contextlib.contextmanager
def counting(counts: Counter[str]) -> Iterator[None]:
    """Around a sandbox on its way: that it was asked for, how long it took, what it failed by."""
    counts["asked"] += 1
    begun = time.monotonic()
    try:
        yield
    except BackpressureError as error:
        counts[f"no_room_{error.reason}"] += 1
        raise
    except InfrastructureError as error:
        counts[f"failed_{error.reason}"] += 1
        raise
    except TransientError:
        counts["failed_otherwise"] += 1
        raise
    finally:
        counts["waited_ms"] += round(1000 * (time.monotonic() - begun))


async def probed(settings: KubernetesSettings) -> Cluster:
    """What the cluster has; errors as of `cluster.probed`."""
    connection = await connections.opened(
        kubeconfig=settings.kubeconfig, context=settings.context, creations_per_s=1, burst=1
    )
    try:
        return await clusters.probed(connection, Folders(settings.namespace), settings)
    finally:
        await connection.close()
