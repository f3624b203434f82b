"""A Pod's status as a kubelet writes it."""

from dataclasses import dataclass, field

from tests.kubernetes.players.objects import Obj, now, with_condition

HOST_IP = "127.0.0.1"

CREATING = {"waiting": {"reason": "ContainerCreating"}}
INITIALIZING = {"waiting": {"reason": "PodInitializing"}}
DEADLINE = "Pod was active on the node longer than the specified deadline"
UNLOCATED = "The container could not be located when the pod was terminated"
OOM_KILLED, ERROR, COMPLETED = "OOMKilled", "Error", "Completed"


def address(number: int) -> str:
    """A Pod's address in 10.128.0.0/9. Nothing listens there: Pods have no network here."""
    return f"10.{128 + (number >> 16) % 128}.{(number >> 8) % 256}.{number % 256}"


def terminated(
    code: int, started: str | None, *, reason: str = "", message: str = "", container: str = ""
) -> Obj:
    found: Obj = {
        "exitCode": code,
        "reason": reason or (COMPLETED if code == 0 else ERROR),
        "startedAt": started or now(),
        "finishedAt": now(),
    }
    if message:
        found["message"] = message
    if container:
        found["containerID"] = container
    return {"terminated": found}


@dataclass(slots=True)
class ContainerStatus:
    """One container, as far as its Pod's status tells of it."""

    name: str
    image: str
    state: Obj
    last: Obj = field(default_factory=dict)
    restarts: int = 0
    number: str = ""
    """Of its present or last run, as a container id."""

    @property
    def running(self) -> bool:
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        found = self.state.get("terminated")
        return None if found is None else found["exitCode"]

    def json(self, *, init: bool) -> Obj:
        ready = self.exit_code == 0 if init else self.running
        return {
            "name": self.name,
            "image": self.image,
            "imageID": f"played/{self.image}" if self.number else "",
            "containerID": self.number,
            "state": self.state,
            "lastState": self.last,
            "restartCount": self.restarts,
            "ready": ready,
            "started": self.running,
        }


def waiting_containers(containers: list[Obj], state: Obj) -> list[ContainerStatus]:
    return [ContainerStatus(each["name"], each.get("image", ""), state) for each in containers]


@dataclass(slots=True)
class PodStatus:
    """What a kubelet knows of a Pod; `json` is what it writes."""

    init: list[ContainerStatus]
    main: list[ContainerStatus]
    ip: str = ""
    started: str = field(default_factory=now)
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    disruption: Obj | None = None
    """The condition DisruptionTarget, where the node gave the Pod up."""

    def all(self) -> list[ContainerStatus]:
        return [*self.init, *self.main]

    def json(self, pod: Obj) -> Obj:
        status: Obj = {
            "phase": self.phase,
            "hostIP": HOST_IP,
            "hostIPs": [{"ip": HOST_IP}],
            "startTime": self.started,
            "conditions": self.conditions(pod),
            "containerStatuses": [each.json(init=False) for each in self.main],
            "qosClass": (pod.get("status") or {}).get("qosClass") or quality(pod),
        }
        if self.init:
            status["initContainerStatuses"] = [each.json(init=True) for each in self.init]
        if self.ip:
            status |= {"podIP": self.ip, "podIPs": [{"ip": self.ip}]}
        if self.reason:
            status["reason"] = self.reason
        if self.message:
            status["message"] = self.message
        return status

    def conditions(self, pod: Obj) -> list[Obj]:
        over = self.phase in ("Succeeded", "Failed")
        unready = [each.name for each in self.main if not each.running]
        initialized = over or all(each.exit_code == 0 for each in self.init)
        why: Obj = {}
        if over:
            why = {"reason": "PodCompleted" if self.phase == "Succeeded" else "PodFailed"}
        elif unready:
            names = " ".join(unready)
            why = {
                "reason": "ContainersNotReady",
                "message": f"containers with unready status: [{names}]",
            }
        ready = {"status": "False", **why} if over or unready else {"status": "True"}
        waits = {} if initialized else incomplete(self.init)
        new = [
            {"type": "PodScheduled", "status": "True"},
            {"type": "PodReadyToStartContainers", "status": said(bool(self.ip) and not over)},
            {"type": "Initialized", "status": said(initialized), **waits},
            {"type": "ContainersReady", **ready},
            {"type": "Ready", **ready},
        ]
        if self.disruption is not None:
            new.append(self.disruption)
        found = (pod.get("status") or {}).get("conditions") or []
        for each in new:
            found = with_condition(found, each)
        return found


def said(truth: bool) -> str:
    return "True" if truth else "False"


def incomplete(init: list[ContainerStatus]) -> Obj:
    names = " ".join(each.name for each in init if each.exit_code != 0)
    return {
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{names}]",
    }


def quality(pod: Obj) -> str:
    """The Pod's class of service, which a real API server writes at its creation."""
    found = [each.get("resources") or {} for each in pod["spec"]["containers"]]
    if not any(each.get("limits") or each.get("requests") for each in found):
        return "BestEffort"
    guaranteed = all(
        {"cpu", "memory"} <= set(each.get("limits") or {})
        and (each.get("requests") or each["limits"]) == each["limits"]
        for each in found
    )
    return "Guaranteed" if guaranteed else "Burstable"


def lost(pod: Obj) -> Obj:
    """The end of a Pod whose containers are gone with the node's last life."""
    containers = pod["spec"]["containers"]
    state = terminated(137, None, reason="ContainerStatusUnknown", message=UNLOCATED)
    status = PodStatus([], waiting_containers(containers, state), phase="Failed")
    status.started = (pod.get("status") or {}).get("startTime") or status.started
    return status.json(pod)
