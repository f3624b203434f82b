"""A real Pod from its volumes to its end: init containers in their order, then all the others."""

import asyncio
import contextlib
import itertools
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from sandboxes.core.owners import owner_name
from tests.kubernetes.players.api import ApiError
from tests.kubernetes.players.exec_session import (
    STDERR,
    STDOUT,
    ExecSession,
    not_started,
)
from tests.kubernetes.players.objects import Obj, now
from tests.kubernetes.players.quantities import amount
from tests.kubernetes.players.real import containers
from tests.kubernetes.players.real.containers import KILLED, Container
from tests.kubernetes.players.real.host import Host
from tests.kubernetes.players.real.namespaces import PodNamespaces, unmount
from tests.kubernetes.players.real.security import RefusedError, identity_of
from tests.kubernetes.players.real.sources import MissingError, expanded
from tests.kubernetes.players.real.volumes import Volume, prepare, used_bytes
from tests.kubernetes.players.statuses import (
    CREATING,
    INITIALIZING,
    ContainerStatus,
    PodStatus,
    address,
    terminated,
    waiting_containers,
)

WAIT_S = 0.5
"""Between two tries to start what lacks something."""

BACK_OFF_S, LONGEST_BACK_OFF_S = 10.0, 300.0
"""Before a container is started again that has ended again; the first time at once."""

PIECE = 32 << 10
VOLUME_LIMIT = 'Usage of EmptyDir volume "{}" exceeds the limit "{}". '
CONTAINER_LIMIT = 'Container {} exceeded its local ephemeral storage limit "{}". '
POD_LIMIT = "Pod ephemeral local storage usage exceeds the total limit of containers {}. "

_numbers = itertools.count(1)


class RealRun:
    """See `kubelet.Run`."""

    def __init__(self, host: Host, pod: Obj, number: int, changed: Callable[[], None]) -> None:
        self.pod, self._host, self._changed = pod, host, changed
        self.version, self.stopped = 1, False
        spec = pod["spec"]
        waiting = INITIALIZING if spec.get("initContainers") else CREATING
        self.status = PodStatus(
            waiting_containers(spec.get("initContainers") or [], CREATING),
            waiting_containers(spec["containers"], waiting),
        )
        self._ip = address(number)
        self._place = host.folder / pod["metadata"]["uid"]
        self._volumes: dict[str, Volume] = {}
        self._running: dict[str, Container] = {}
        self._namespaces: PodNamespaces | None = None
        self._end = asyncio.Event()
        """Set once nothing is started any more."""
        self._task = asyncio.get_running_loop().create_task(self._live())
        self._task.add_done_callback(self._over)
        host.runs.add(self)

    @property
    def _ending(self) -> bool:
        return self._end.is_set()

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the Pod's end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._end.wait()

    def _over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._host.failed(self.pod, error)
            self.fail("PlayersError", repr(error), None)

    def _tell(self) -> None:
        self.version += 1
        self._changed()

    async def _live(self) -> None:
        spec = self.pod["spec"]
        self._place.mkdir()
        await self._until_prepared()
        self.status.ip = self._ip
        policy = spec.get("restartPolicy", "Always")
        for each, status in zip(spec.get("initContainers") or [], self.status.init, strict=True):
            if not await self._keep(each, status, "Never" if policy == "Never" else "OnFailure"):
                break
        if all(status.exit_code == 0 for status in self.status.init) and not self._ending:
            pairs = zip(spec["containers"], self.status.main, strict=True)
            await asyncio.gather(*(self._keep(each, status, policy) for each, status in pairs))
        self._conclude()

    async def _prepare(self) -> None:
        folder = self._place / "volumes"
        folder.mkdir(exist_ok=True)
        self._volumes = await prepare(self._host.sources, self.pod, folder)
        if self._namespaces is None:
            hostname = self.pod["spec"].get("hostname") or self.pod["metadata"]["name"]
            self._namespaces = PodNamespaces(hostname)

    async def _until_prepared(self) -> None:
        """Try until what volumes need is there, as a kubelet does."""
        while not self._ending:
            try:
                await self._prepare()
                return
            except MissingError as error:
                self._host.events.warn(
                    self.pod, "FailedMount", f"MountVolume.SetUp failed: {error}"
                )
            except ApiError:
                pass
            await self._pause(WAIT_S)

    def _conclude(self) -> None:
        """All containers have ended for good: so has the Pod."""
        codes = [each.exit_code for each in self.status.all()]
        if self.status.phase not in ("Succeeded", "Failed"):
            self.status.phase = "Failed" if any(code != 0 for code in codes) else "Succeeded"
        self._tell()

    async def _keep(self, spec: Obj, status: ContainerStatus, policy: str) -> bool:
        """Run a container as often as its Pod's policy says; whether it ended well at last."""
        back_off = 0.0
        while True:
            code = await self._once(spec, status)
            if self._ending or policy == "Never" or (policy == "OnFailure" and code == 0):
                return code == 0
            status.last, status.restarts = status.state, status.restarts + 1
            if back_off:
                name, meta = spec["name"], self.pod["metadata"]
                message = (
                    f"back-off {back_off:.0f}s restarting failed container={name} "
                    f"pod={meta['name']}_{meta['namespace']}({meta['uid']})"
                )
                status.state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
                self._host.events.warn(self.pod, "BackOff", message)
                self._tell()
                await self._pause(back_off)
            back_off = min(max(BACK_OFF_S, back_off * 2), LONGEST_BACK_OFF_S)

    async def _once(self, spec: Obj, status: ContainerStatus) -> int:
        """Start a container, as soon as that can be, and wait for its end."""
        container = None
        while container is None:
            reason = message = ""
            if self._ending:
                return KILLED
            try:
                container = await self._start(spec)
            except MissingError as error:
                reason, message = "CreateContainerConfigError", str(error)
            except RefusedError as error:
                started = str(error).startswith("failed to create containerd task")
                reason = "RunContainerError" if started else "CreateContainerConfigError"
                message = str(error)
            except (ApiError, OSError) as error:
                reason, message = "CreateContainerError", str(error)
            if container is None:
                status.state = {"waiting": {"reason": reason, "message": message}}
                self._host.events.warn(self.pod, "Failed", f"Error: {message}")
                self._tell()
                await self._pause(WAIT_S)
        time = now()
        status.number = f"bubblewrap://{self.pod['metadata']['uid']}/{spec['name']}/{container.pid}"
        status.state = {"running": {"startedAt": time}}
        self._running[spec["name"]] = container
        if self.status.phase == "Pending" and any(status is each for each in self.status.main):
            self.status.phase = "Running"
        self._tell()
        if self._ending:
            container.signal(signal.SIGKILL)
        code, reason = await container.wait()
        self._running.pop(spec["name"], None)
        status.state = terminated(code, time, reason=reason, container=status.number)
        self._tell()
        return code

    async def _start(self, spec: Obj) -> Container:
        env = await self._host.sources.environment(self.pod, spec, self._ip)
        words = [*(spec.get("command") or []), *(spec.get("args") or [])]
        if not words:
            raise RefusedError("failed to generate container spec: no command specified")
        assert self._namespaces is not None
        return await containers.start(
            spec=spec,
            command=[expanded(word, env) for word in words],
            env=env,
            identity=identity_of(self.pod, spec),
            volumes=self._volumes,
            etc=self._host.etc_of(self.pod, self._place, self._ip),
            extra=self._host.extra,
            namespaces=self._namespaces,
            group=f"{owner_name()}.pod-{next(_numbers)}",
            log=self._log_file(spec["name"]),
        )

    def _log_file(self, container: str) -> Path:
        return self._place / f"{container}.log"

    def log(self, container: str) -> bytes:
        with contextlib.suppress(OSError):
            return self._log_file(container).read_bytes()
        return b""

    def end_container(self, name: str, code: int, *, reason: str = "") -> None:
        if (found := self._running.get(name)) is not None:
            found.signal(signal.SIGKILL)

    def fail(self, reason: str, message: str, disruption: Obj | None) -> None:
        """The node ends the Pod, whatever its containers do."""
        self._end.set()
        self.status.phase, self.status.reason = "Failed", reason
        self.status.message, self.status.disruption = message, disruption
        for each in self._running.values():
            each.signal(signal.SIGKILL)
        self._tell()

    def freeze(self, stopped: bool) -> None:
        for each in self._running.values():
            each.signal_all(signal.SIGSTOP if stopped else signal.SIGCONT)

    async def stop(self, grace_s: float) -> None:
        """Ask all containers to end, then end them; nothing of the Pod is left on this machine."""
        self._end.set()
        for each in self._running.values():
            each.signal(signal.SIGTERM)
        if self._running and grace_s > 0:
            await asyncio.wait({self._task}, timeout=grace_s)
        for each in self._running.values():
            each.signal(signal.SIGKILL)
        await asyncio.wait({self._task})
        self._conclude()
        self._host.runs.discard(self)
        for volume in self._volumes.values():
            if volume.tmpfs:
                unmount(volume.folder)
        if self._namespaces is not None:
            self._namespaces.close()
        await asyncio.to_thread(shutil.rmtree, self._place, ignore_errors=True)
        self.stopped = True

    async def exec(self, container: str, session: ExecSession) -> None:
        inside, command = self._running[container], session.command
        if not inside.finds(command):
            await session.fail(not_started(command))
            return
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *inside.command_inside(command),
            stdin=pipe if session.stdin else nothing, stdout=pipe, stderr=pipe, env={},
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        feeding = asyncio.create_task(feed(session, process))
        copies = asyncio.gather(
            copied(process.stdout, session, STDOUT), copied(process.stderr, session, STDERR)
        )
        try:
            await copies
            code = await process.wait()
            feeding.cancel()
            await session.exit(128 - code if code < 0 else code)
        except asyncio.CancelledError:
            # the stream was broken off; the command's input ends, and it goes on alone
            if process.stdin is not None:
                process.stdin.close()
            self._host.let_end(process)
            raise
        finally:
            feeding.cancel()

    def over_limit(self) -> str | None:
        """How the Pod has used more storage than is its own; read from other threads."""
        disk = 0
        for volume in list(self._volumes.values()):
            if not volume.empty or volume.tmpfs:
                continue
            used = used_bytes(volume.folder)
            disk += used
            if volume.limit is not None and used > amount(volume.limit):
                return VOLUME_LIMIT.format(volume.name, volume.limit)
        limits = {}
        for spec in self.pod["spec"]["containers"]:
            name = spec["name"]
            limit = ((spec.get("resources") or {}).get("limits") or {}).get("ephemeral-storage")
            limits[name] = limit
            used = self._layer_bytes(name)
            disk += used
            if limit is not None and used > amount(limit):
                return CONTAINER_LIMIT.format(name, limit)
        if all(limits.values()) and disk > sum(amount(limit) for limit in limits.values()):
            total = sum(int(amount(limit)) for limit in limits.values())
            return POD_LIMIT.format(total)
        return None

    def _layer_bytes(self, container: str) -> int:
        """A container's log, and what it has written into its root where it may."""
        total = 0
        with contextlib.suppress(OSError):
            total += self._log_file(container).stat().st_size
        found = self._running.get(container)
        if found is not None and not found.identity.read_only:
            root = Path(f"/proc/{found.pid}/root")
            for name in ("tmp", "root", "home", "var", "srv", "opt"):
                if (folder := root / name).is_dir() and not folder.is_mount():
                    total += used_bytes(folder)
        return total


async def feed(session: ExecSession, process: asyncio.subprocess.Process) -> None:
    """The client's bytes to the command, until the client ends them or goes away."""
    async for data in session.incoming():
        if process.stdin is not None:
            process.stdin.write(data)
            with contextlib.suppress(ConnectionError):
                await process.stdin.drain()
    if process.stdin is not None:
        process.stdin.close()


async def copied(reader: asyncio.StreamReader, session: ExecSession, channel: int) -> None:
    """The command's output to the client; to nobody once the client is gone."""
    there = True
    while data := await reader.read(PIECE):
        if there:
            try:
                await session.send(channel, data)
            except ConnectionError:
                there = False
