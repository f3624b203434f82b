"""The kubelets of the played nodes: Pods that are bound to them, from their start to their removal.

A Pod's run (`simulated.SimulatedRun`, `real.run.RealRun`) knows what becomes of its containers;
here is what is the same for both: status written as it changes, deadlines, deletion with its grace
and the removal afterwards, and what a node does when it is lost, short of memory or new.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from tests.kubernetes.players.api import Api, ApiError, gone
from tests.kubernetes.players.events import Recorder
from tests.kubernetes.players.exec_session import ExecSession
from tests.kubernetes.players.faults import Faults
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.nodes import Nodes
from tests.kubernetes.players.objects import (
    PLAYED,
    PODS,
    Obj,
    deleting,
    finished,
    key_of,
    labels_of,
    now,
    seconds_until,
    uid_of,
)
from tests.kubernetes.players.simulated import SimulatedRun
from tests.kubernetes.players.statuses import (
    DEADLINE,
    PodStatus,
    lost,
    waiting_containers,
)
from tests.kubernetes.players.work import WorkQueue

BACK_OFF_S = (0.5, 2.0)
"""Between an image that could not be pulled and the next try: how long the error and how long the
wait is told. A kubelet's own waits begin at ten seconds."""

PRESSURE = (
    "The node was low on resource: {resource}. Threshold quantity: 100Mi, available: 40Mi. "
    "Container {container} was using {used}, request is {request}, has larger consumption of "
    "{resource}. "
)


class Run(Protocol):
    """One Pod on its node."""

    pod: Obj
    status: PodStatus
    version: int
    """Counts changes of the status."""
    stopped: bool
    """Whether nothing of it runs any more after `stop`."""

    def end_container(self, name: str, code: int, *, reason: str = "") -> None: ...
    def fail(self, reason: str, message: str, disruption: Obj | None) -> None: ...
    def freeze(self, stopped: bool) -> None: ...
    async def stop(self, grace_s: float) -> None: ...
    async def exec(self, container: str, session: ExecSession) -> None: ...
    def log(self, container: str) -> bytes: ...


RunMaker = Callable[[Obj, int, Callable[[], None]], Run]
"""Starts a real Pod: the Pod, its number on this machine, and whom to tell of changes."""


class Kubelet:
    def __init__(
        self,
        api: Api,
        pods: Informer,
        nodes: Nodes,
        faults: Faults,
        make_real: RunMaker,
    ) -> None:
        self._api, self._pods, self.nodes = api, pods, nodes
        self._faults, self._make_real = faults, make_real
        self.runs: dict[str, Run] = {}
        """By the Pod's key."""
        self.sessions: dict[str, set[ExecSession]] = {}
        """Execs under way, by the Pod's key."""
        self._written: dict[str, int] = {}
        self._seen: dict[str, float] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._count = 0
        self.events = Recorder(api, "kubelet")
        self.queue = WorkQueue(self._look, workers=40)
        pods.on_change(self._changed)

    async def run(self) -> None:
        await self._pods.synced.wait()
        await self.queue.run()

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        pod = new or old
        assert pod is not None
        if new is None:
            self._seen.pop(uid_of(pod), None)
        if pod["spec"].get("nodeName") in self.nodes.by_name:
            self.queue.add(key_of(pod))

    async def _look(self, key: str) -> float | None:
        pod = self._pods.get(key)
        run = self.runs.get(key)
        if run is not None and (pod is None or uid_of(pod) != uid_of(run.pod)):
            await self._forget(key, run)
            run = None
        if pod is None or (node := pod["spec"].get("nodeName")) not in self.nodes.by_name:
            return None
        if node in self.nodes.silent:
            return None
        if run is None:
            return await self._begin(key, pod)
        run.pod = pod
        if deleting(pod):
            return await self._end(key, pod, run)
        await self._write(key, run)
        return self._until_deadline(pod, run)

    async def _begin(self, key: str, pod: Obj) -> float | None:
        if deleting(pod):
            await self._remove(pod)
            return None
        if finished(pod):
            return None
        if (pod.get("status") or {}).get("startTime") and uid_of(pod) not in self._seen:
            await self._patch(pod, lost(pod))  # these processes are not the ones that started it
            return None
        seen = self._seen.setdefault(uid_of(pod), time.monotonic())
        if (wait := seen + self._faults.start_delay(pod) - time.monotonic()) > 0:
            return wait
        if (problem := self._faults.image_problem(pod)) is not None:
            return await self._no_image(pod, problem, time.monotonic() - seen)
        self._count += 1
        make: RunMaker = SimulatedRun if self.is_simulated(pod) else self._make_real
        run = make(pod, self._count, lambda: self.queue.add(key))
        self.runs[key], self._written[key] = run, 0
        await self._write(key, run)
        return self._until_deadline(pod, run)

    def is_simulated(self, pod: Obj) -> bool:
        node = self.nodes.by_name[pod["spec"]["nodeName"]]
        return node.simulated or labels_of(pod).get(PLAYED) == "simulated"

    async def _no_image(self, pod: Obj, image: str, waited_s: float) -> float:
        """ErrImagePull and ImagePullBackOff in turn, until the image is there."""
        told_s, wait_s = BACK_OFF_S
        pulling = waited_s % (told_s + wait_s) < told_s
        message = (
            f'failed to pull and unpack image "docker.io/{image}": failed to resolve reference '
            f'"docker.io/{image}": pull access denied, repository does not exist or may require '
            "authorization: server message: insufficient_scope: authorization failed"
        )
        if pulling:
            waits = {"reason": "ErrImagePull", "message": message}
            self.events.warn(pod, "Failed", f'Failed to pull image "{image}": {message}')
        else:
            back_off = f'Back-off pulling image "{image}"'
            waits = {"reason": "ImagePullBackOff", "message": f"{back_off}: {message}"}
            self.events.tell(pod, "BackOff", back_off)
        status = PodStatus(
            waiting_containers(pod["spec"].get("initContainers") or [], {"waiting": waits}),
            waiting_containers(pod["spec"]["containers"], {"waiting": waits}),
        )
        status.started = (pod.get("status") or {}).get("startTime") or status.started
        await self._patch(pod, status.json(pod))
        return told_s if pulling else wait_s

    def _until_deadline(self, pod: Obj, run: Run) -> float | None:
        """Fail what has run too long; seconds until that, None without a deadline."""
        allowed = pod["spec"].get("activeDeadlineSeconds")
        if allowed is None or run.status.phase in ("Succeeded", "Failed"):
            return None
        left = seconds_until(run.status.started) + allowed
        if left > 0:
            return left
        run.fail("DeadlineExceeded", DEADLINE, None)
        return None

    async def _write(self, key: str, run: Run) -> None:
        version = run.version
        if self._written.get(key) == version:
            return
        try:
            await self._patch(run.pod, run.status.json(run.pod))
        except ApiError as error:
            if not gone(error):
                raise
        if key in self._written:
            self._written[key] = version

    async def _patch(self, pod: Obj, status: Obj) -> None:
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        await self._api.patch(PODS, meta["namespace"], meta["name"], body, subresource="status")

    async def _end(self, key: str, pod: Obj, run: Run) -> float | None:
        """Stop a Pod that is being deleted, write how it ended, and take it out of the API."""
        if key not in self._stopping and not run.stopped:
            grace = pod["metadata"].get("deletionGracePeriodSeconds")
            spec_grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
            self._stopping[key] = asyncio.get_running_loop().create_task(
                self._stop(key, run, spec_grace if grace is None else grace)
            )
        if not run.stopped:
            return None
        if not isinstance(run, SimulatedRun):  # for 10,000 at once it would be one request more
            await self._write(key, run)
        await self._remove(pod)
        return None

    async def _stop(self, key: str, run: Run, grace_s: float) -> None:
        try:
            await run.stop(grace_s)
        finally:
            self._stopping.pop(key, None)
            self.queue.add(key)

    async def _remove(self, pod: Obj) -> None:
        meta = pod["metadata"]
        try:
            await self._api.delete(
                PODS, meta["namespace"], meta["name"], uid=meta["uid"], grace_s=0
            )
        except ApiError as error:
            if not gone(error):
                raise

    async def _forget(self, key: str, run: Run) -> None:
        if not run.stopped:
            await run.stop(0)
        for session in self.sessions.pop(key, set()):
            session.abort()
        self.runs.pop(key, None)
        self._written.pop(key, None)
        self.events.forget(uid_of(run.pod))

    # what tests ask for, see `faults`

    def run_of(self, namespace: str, name: str) -> Run:
        run = self.runs.get(f"{namespace}/{name}")
        if run is None:
            raise LookupError(f"no Pod {namespace}/{name} runs on a played node")
        return run

    def evict(self, run: Run, resource: str) -> None:
        """Give a Pod up because the node is short of something, which the Pod did not bring about
        by passing a limit of its own."""
        container = run.pod["spec"]["containers"][0]
        request = (container.get("resources") or {}).get("requests", {}).get(resource, "0")
        message = PRESSURE.format(
            resource=resource, container=container["name"], used="41Mi", request=request
        )
        disruption = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "TerminationByKubelet",
            "message": message,
            "lastTransitionTime": now(),
        }
        run.fail("Evicted", message, disruption)
        self.events.warn(run.pod, "Evicted", message)

    def lose(self, node: str) -> None:
        """The node falls silent: nothing is told, nothing is reached, what ran there is gone."""
        self.nodes.silent.add(node)
        for key, run in list(self.runs.items()):
            if run.pod["spec"].get("nodeName") == node:
                self.drop_streams(key)

    async def back(self, node: str) -> None:
        await self.nodes.come_back(node)
        for pod in self._pods:
            if pod["spec"].get("nodeName") == node:
                self.queue.add(key_of(pod))

    def drop_streams(self, key: str) -> int:
        sessions = self.sessions.get(key, set())
        for session in list(sessions):
            session.abort()
        return len(sessions)

    async def exec(self, namespace: str, name: str, container: str, session: ExecSession) -> None:
        """Serve one exec, and remember it as long as it lasts."""
        key = f"{namespace}/{name}"
        here = self.sessions.setdefault(key, set())
        here.add(session)
        try:
            await self.run_of(namespace, name).exec(container, session)
        finally:
            here.discard(session)
            if not here:
                self.sessions.pop(key, None)

    async def close(self) -> None:
        await asyncio.gather(*(run.stop(0) for run in self.runs.values()), return_exceptions=True)
