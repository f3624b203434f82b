"""The objects of sandboxes as they are sent to the API server: Pods, pools, claims.

A Pod has two containers. `sandbox` is that of the programs; its first process is the agent, which
listens under a name of the Pod's own network that no program can take. `stream` has the other ends
of the streams to it, in a container of its own: what the agent kills at a command's end, and what
programs see, trace and fill with memory, is not there.
"""

import json
from collections.abc import Mapping

from sandboxes.core import clock, python_env
from sandboxes.core.agent_code import agent_source
from sandboxes.core.bare import settings_of
from sandboxes.core.template import BASE_ENV, BASE_ETC, PROGRAM_ID, WORKSPACE, SandboxTemplate
from sandboxes.kubernetes.api.connection import ApiObject
from sandboxes.kubernetes.causes import BRING_PYTHON, FILL, SANDBOX, STREAM
from sandboxes.kubernetes.cluster import Cluster
from sandboxes.kubernetes.filling import PLACE, VOLUME, WAIT, Filling
from sandboxes.kubernetes.names import API, EGRESS, LINGER, TEMPLATE, digest_of
from sandboxes.kubernetes.settings import KubernetesSettings

SOCKET = "\0synth-agent"
"""Where the agent listens: a name in the Pod's own network, not a file that one could remove."""

AGENT, AGENT_FOLDER, AGENT_FILE = "agent", "/opt/synth", "agent.py"

START = f"""
import os, sys
reads, writes = os.pipe()
os.write(writes, sys.argv[1].encode())
os.close(writes)
os.dup2(reads, 0)
os.close(reads)
with open("{AGENT_FOLDER}/{AGENT_FILE}") as file:
    code = file.read()
exec(compile(code, "agent", "exec"))
"""
"""Gives the agent its settings, one argument, on stdin."""

JOIN = f"""
import _socket, os, select
agent = _socket.socket(_socket.AF_UNIX)
agent.connect({SOCKET!r})
def out(data):
    while data:
        data = data[os.write(1, data):]
def to_agent(data):
    while data:
        data = data[agent.send(data):]
ways = {{0: to_agent, agent.fileno(): out}}
while True:
    for fd in select.select(list(ways), [], [])[0]:
        data = os.read(fd, 65536)
        if not data:
            os._exit(0)
        ways[fd](data)
"""
"""What a stream's command is: bytes from stdin to the agent, and from the agent to stdout."""

HOLD = f"""
import _socket, os, time
held = False
while True:
    agent = _socket.socket(_socket.AF_UNIX)
    try:
        agent.connect({SOCKET!r})
    except OSError:
        if held:
            os._exit(0)
        time.sleep(0.2)
        continue
    held = True
    agent.recv(1)
    agent.close()
    time.sleep(1)
"""
"""First process of `stream`: it lives as long as there is an agent, so that a Pod is over when its
agent is."""

COPY = f"""
import shutil
shutil.copytree("{python_env.BASE}", "/brought", symlinks=True, dirs_exist_ok=True)
"""

BROUGHT = f"{python_env.BASE}/bin/python3"
"""The Python that `bring-python` copies, and where it runs."""

SHM_MB = 16
PYTHON_MB = 512
"""Of the brought Python at most."""

ETC = {path.rpartition("/")[2]: text for path, text in BASE_ETC.items()}
"""Name in the ConfigMap -> text."""


def agent_config_map() -> ApiObject:
    """The agent and what else every sandbox is shown, named by what is in it."""
    hooks = {path.rpartition("/")[2]: text for path, text in clock.clock_files().items()}
    data = {AGENT_FILE: agent_source()} | ETC | hooks
    name = f"synth-agent-{digest_of(*(f'{k}={v}' for k, v in sorted(data.items())))}"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "agentic-synth"}},
        "data": data,
        "immutable": True,
    }


class PodMaker:
    """Pod specs of one cluster under one configuration."""

    def __init__(self, settings: KubernetesSettings, cluster: Cluster, agent: str) -> None:
        """`agent` is the name of the agent's ConfigMap."""
        self._settings, self._cluster, self._agent = settings, cluster, agent
        self.python = settings.python or BROUGHT

    def linger_s(self, template: SandboxTemplate) -> float:
        return max(template.linger_s, self._settings.linger_s)

    def join(self) -> list[str]:
        """The command of a stream, for the container `stream`."""
        return [self.python, "-I", "-S", "-c", JOIN]

    def metadata(self, template: SandboxTemplate, labels: Mapping[str, str]) -> ApiObject:
        settings = self._settings
        return {
            "labels": settings.labels
            | dict(labels)
            | ({EGRESS: "true"} if template.egress else {}),
            "annotations": settings.annotations
            | {TEMPLATE: described(template), LINGER: f"{self.linger_s(template):g}"},
        }

    def spec(self, template: SandboxTemplate, filling: Filling | None) -> ApiObject:
        settings, cluster = self._settings, self._cluster
        made: ApiObject = {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": settings.deadline_s,
            # process 1 ignores the signal that asks it to end
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostname": template.hostname,
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["127.0.0.1"]},
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": PROGRAM_ID,
                "runAsGroup": PROGRAM_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [self._sandbox(template, filling), self._stream()],
            "volumes": self._volumes(template, filling),
        }
        if initial := self._initial(template, filling):
            made["initContainers"] = initial
        if cluster.runtime_class is not None:
            made["runtimeClassName"] = cluster.runtime_class
        if settings.own_users:
            made["hostUsers"] = False
        if settings.pull_secrets:
            made["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
        if settings.node_selector:
            made["nodeSelector"] = dict(settings.node_selector)
        if settings.tolerations:
            made["tolerations"] = [
                each.model_dump(exclude_none=True) for each in settings.tolerations
            ]
        if settings.priority_class is not None:
            made["priorityClassName"] = settings.priority_class
        return made

    def _container(
        self, name: str, image: str, command: list[str], resources: ApiObject
    ) -> ApiObject:
        return {
            "name": name,
            "image": image,
            "imagePullPolicy": self._settings.image_pull_policy,
            "command": command,
            "workingDir": "/",
            "env": [
                {"name": key, "value": value}
                for key, value in sorted((BASE_ENV | python_env.base_env()).items())
            ],
            "resources": {"requests": resources, "limits": dict(resources)},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "privileged": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }

    def _resources(self, cpus: float, memory_mb: int) -> ApiObject:
        return {
            "cpu": f"{max(1, round(cpus * 1000))}m",
            "memory": f"{memory_mb}Mi",
            "ephemeral-storage": f"{self._settings.scratch_disk_mb}Mi",
        }

    def _of_programs(self, template: SandboxTemplate, filling: Filling | None) -> ApiObject:
        limits, settings = template.limits, self._settings
        found = self._resources(limits.cpus, limits.memory_mb)
        disk = settings.scratch_disk_mb + (filling.volume_mb if filling else 0)
        disk += PYTHON_MB if settings.python is None else 0
        disk += 2 * limits.disk_mb if settings.scratch_medium == "disk" else 0
        return found | {"ephemeral-storage": f"{disk}Mi"}

    def _python_mount(self) -> list[ApiObject]:
        if self._settings.python is not None:
            return []
        return [{"name": "python", "mountPath": python_env.BASE, "readOnly": True}]

    def _sandbox(self, template: SandboxTemplate, filling: Filling | None) -> ApiObject:
        command = [self.python, "-I", "-S", "-c", START, self._agent_settings(template)]
        resources = self._of_programs(template, filling)
        made = self._container(SANDBOX, self._settings.image, command, resources)
        mounts = [
            {"name": AGENT, "mountPath": AGENT_FOLDER, "readOnly": True},
            *(
                {
                    "name": AGENT, "mountPath": f"/etc/{name}", "subPath": name, "readOnly": True
                }
                for name in ETC
                if f"/etc/{name}" not in template.files
            ),
            {"name": "workspace", "mountPath": WORKSPACE},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "shm", "mountPath": "/dev/shm"},
            *self._python_mount(),
        ]  # fmt: skip
        if template.clock is not None:
            mounts.append({"name": "clock", "mountPath": clock.HOOKS, "readOnly": True})
        for mount in filling.mounts if filling else ():
            mounts.append(
                {
                    "name": VOLUME, "mountPath": mount.target, "subPath": mount.part,
                    "readOnly": True,
                }
            )  # fmt: skip
        return made | {"volumeMounts": mounts}

    def _stream(self) -> ApiObject:
        settings = self._settings
        command = [self.python, "-I", "-S", "-c", HOLD]
        resources = self._resources(settings.stream_cpus, settings.stream_memory_mb)
        made = self._container(STREAM, settings.image, command, resources)
        return made | ({"volumeMounts": mounts} if (mounts := self._python_mount()) else {})

    def _initial(self, template: SandboxTemplate, filling: Filling | None) -> list[ApiObject]:
        found, settings = [], self._settings
        resources = self._of_programs(template, filling)
        if settings.python is None:
            command = [BROUGHT, "-I", "-S", "-c", COPY]
            made = self._container(BRING_PYTHON, settings.agent_image, command, resources)
            found.append(made | {"volumeMounts": [{"name": "python", "mountPath": "/brought"}]})
        if filling is not None:
            command = [self.python, "-I", "-S", "-c", WAIT]
            made = self._container(FILL, settings.image, command, resources)
            mounts: list[ApiObject] = [{"name": VOLUME, "mountPath": PLACE}, *self._python_mount()]
            found.append(made | {"volumeMounts": mounts})
        return found

    def _volumes(self, template: SandboxTemplate, filling: Filling | None) -> list[ApiObject]:
        medium = {"medium": "Memory"}
        scratch = medium if self._settings.scratch_medium == "Memory" else {}
        size = f"{template.limits.disk_mb}Mi"
        config = {"name": self._agent, "defaultMode": 0o444}
        found: list[ApiObject] = [
            {"name": AGENT, "configMap": config},
            {"name": "workspace", "emptyDir": scratch | {"sizeLimit": size}},
            {"name": "tmp", "emptyDir": scratch | {"sizeLimit": size}},
            {"name": "shm", "emptyDir": medium | {"sizeLimit": f"{SHM_MB}Mi"}},
        ]
        if template.clock is not None:
            hooks = [path.rpartition("/")[2] for path in clock.clock_files()]
            items = [{"key": name, "path": name} for name in hooks]
            found.append({"name": "clock", "configMap": config | {"items": items}})
        if self._settings.python is None:
            found.append({"name": "python", "emptyDir": {"sizeLimit": f"{PYTHON_MB}Mi"}})
        if filling is not None:
            found.append({"name": VOLUME, "emptyDir": {"sizeLimit": f"{filling.volume_mb}Mi"}})
        return found

    def _agent_settings(self, template: SandboxTemplate) -> str:
        limits = template.limits
        rlimits = {
            "RLIMIT_CORE": 1, "RLIMIT_MSGQUEUE": 0, "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_FSIZE": limits.disk_mb << 20,
        }  # fmt: skip
        if self._cluster.counts_processes or self._settings.own_users:
            rlimits["RLIMIT_NPROC"] = limits.processes
        made = settings_of(
            template, None, SOCKET,
            start_s=self._settings.deadline_s, linger_s=self.linger_s(template), rlimits=rlimits,
            hidden=True,
        )  # fmt: skip
        return made.decode()


def described(template: SandboxTemplate) -> str:
    """A template as whoever adopts its sandbox needs it: without what it shows, which is there."""
    bare: ApiObject = {"binds": (), "files": {}, "programs": {}, "links": {}}
    return template.model_copy(update=bare).model_dump_json(exclude_defaults=True)


def read_template(text: str | None) -> SandboxTemplate:
    return SandboxTemplate.model_validate(json.loads(text or "{}"))


def sandbox_template(
    name: str, metadata: ApiObject, pod_metadata: ApiObject, spec: ApiObject
) -> ApiObject:
    return {
        "apiVersion": API,
        "kind": "SandboxTemplate",
        "metadata": {"name": name, **metadata},
        "spec": {
            # ours denies everything; theirs would let out to the internet
            "networkPolicyManagement": "Unmanaged",
            "podTemplate": {"metadata": pod_metadata, "spec": spec},
        },
    }


def warm_pool(name: str, metadata: ApiObject, replicas: int) -> ApiObject:
    return {
        "apiVersion": API,
        "kind": "SandboxWarmPool",
        "metadata": {"name": name, **metadata},
        "spec": {"replicas": replicas, "sandboxTemplateRef": {"name": name}},
    }


def claim(name: str, metadata: ApiObject, pool: str, until: str) -> ApiObject:
    return {
        "apiVersion": API,
        "kind": "SandboxClaim",
        "metadata": {"name": name, **metadata},
        "spec": {
            "warmPoolRef": {"name": pool},
            "lifecycle": {"shutdownTime": until, "shutdownPolicy": "Delete"},
        },
    }
