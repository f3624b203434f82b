"""An API server and what plays the rest of a cluster, as processes, for tests and benchmarks.

With `SYNTH_TEST_KUBECONFIG` the server is the one that it names, and `SYNTH_TEST_WITHOUT` says
which players its cluster has itself; else it is the double. The namespace, the network policy and a
RuntimeClass, which a cluster gets from `deploy/kubernetes` and its owner, are made here.
"""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sandboxes.kubernetes.api import connection as connections
from sandboxes.kubernetes.names import OWNER, Folders
from sandboxes.kubernetes.settings import KubernetesSettings

ROOT = Path(__file__).parents[2]
CRDS = "agent_sandbox_crds"
RUNTIME_CLASS = "synth-test-gvisor"

QUICK = {"heartbeat_s": 0.5, "owner_dead_s": 3.0, "gone_s": 60.0, "ready_s": 300.0}
"""Settings under which tests need not wait long for what takes minutes in earnest."""


def crds() -> Path | None:
    """The folder of agent-sandbox's definitions; None where nobody says where it is."""
    found = Path(os.environ.get("SYNTH_TEST_DATA", "/nowhere"), CRDS)
    return found if found.is_dir() else None


def unstaged(*, claims: bool) -> str | None:
    """Why there can be no such cluster here; None where there can."""
    if claims and "SYNTH_TEST_KUBECONFIG" not in os.environ and crds() is None:
        return f"SYNTH_TEST_DATA names no folder with {CRDS}, the definitions of agent-sandbox"
    return None


@dataclass
class Stage:
    """What runs. `settings` are those of a backend for it."""

    kubeconfig: Path
    namespace: str
    double: str | None
    """Address of the double; None where the server is another one."""
    players: str
    folder: Path
    claims: bool
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def written(self) -> str:
        """For another process of the same machine."""
        names = ("kubeconfig", "namespace", "double", "players", "folder", "claims")
        found = {name: getattr(self, name) for name in names}
        return json.dumps({k: str(v) if isinstance(v, Path) else v for k, v in found.items()})

    @classmethod
    def read(cls, text: str) -> "Stage":
        found = json.loads(text)
        paths = {name: Path(found[name]) for name in ("kubeconfig", "folder")}
        return cls(**(found | paths))

    def settings(self, **others: Any) -> KubernetesSettings:
        made = {
            "namespace": self.namespace,
            "kubeconfig": str(self.kubeconfig),
            "runtime_class": RUNTIME_CLASS,
            "agent_sandbox": "require" if self.claims else "off",
            "warm": 0,
            **QUICK,
        }
        return KubernetesSettings.model_validate(made | others)

    def simulated(self, **others: Any) -> KubernetesSettings:
        """Settings under which Pods are simulated ones."""
        return self.settings(labels={"synth.dev/played": "simulated"}, **others)

    def fault(self, **asked: Any) -> Any:
        """Ask the double for a fault (`kind`) or the players (`fault`)."""
        base, path = (self.double, "double") if "kind" in asked else (self.players, "players")
        assert base is not None, "faults of the API server need the double"
        return post(f"{base}/{path}/faults", asked)

    def kubectl(self, *arguments: str) -> str:
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}",
             *arguments], capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def log(self) -> list[dict[str, Any]]:
        """The double's requests, a line each."""
        return [json.loads(line) for line in (self.folder / "requests").read_text().splitlines()]


def post(url: str, asked: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def started(name: str, log: IO[bytes], *words: str) -> tuple[subprocess.Popen[bytes], str]:
    """A program of the tests that says `ready ADDRESS`, and that address."""
    process = subprocess.Popen(
        [sys.executable, "-m", name, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=log,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.readline().decode().split()
    if len(said) != 2 or said[0] != "ready":
        process.kill()
        process.wait()
        log.flush()
        raise RuntimeError(f"{name} did not start: {said} {Path(log.name).read_text()[-2000:]}")
    return process, said[1]


def stopped(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    process.kill()
    process.wait()


@contextmanager
def staged(
    *, nodes: str = "real=1,simulated=1", claims: bool = True, stream_workers: int = 0
) -> Iterator[Stage]:
    """A cluster to test with. `claims` is whether it has agent-sandbox; `stream_workers` are
    processes of the double to hold more streams than one may."""
    folder = Path(tempfile.mkdtemp(prefix="synth-stage-"))
    given = os.environ.get("SYNTH_TEST_KUBECONFIG")
    processes: dict[str, subprocess.Popen[bytes]] = {}
    double = None
    definitions = crds() if claims else None
    try:
        with (folder / "log").open("ab") as log:
            kubeconfig = Path(given) if given else folder / "kubeconfig"
            if given is None:
                words = ["--kubeconfig", str(kubeconfig), "--log", str(folder / "requests")]
                words += ["--state", str(folder / "state")]
                words += ["--stream-workers", str(stream_workers)]
                words += ["--crds", str(definitions)] if definitions is not None else []
                process, double = started("tests.kubernetes.double", log, *words)
                processes["double"] = process
            namespace = f"synth-test-{secrets.token_hex(3)}"
            asyncio.run(furnished(kubeconfig, namespace))
            without = os.environ.get("SYNTH_TEST_WITHOUT", "")
            if definitions is None and given is None:
                without = ",".join(filter(None, [without, "claims,pools,sandboxes"]))
            words = ["--kubeconfig", str(kubeconfig), "--nodes", nodes, "--without", without]
            process, players = started("tests.kubernetes.players", log, *words)
            processes["players"] = process
            has = claims and (definitions is not None or given is not None)
            yield Stage(kubeconfig, namespace, double, players, folder, has, processes)
    finally:
        for process in reversed(processes.values()):
            stopped(process)
        if "SYNTH_TEST_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)


async def furnished(kubeconfig: Path, namespace: str) -> None:
    """What a cluster has before any sandbox."""
    connection = await connections.opened(
        kubeconfig=str(kubeconfig), context=None, creations_per_s=100, burst=100
    )
    try:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await connection.create("/api/v1/namespaces", made)
        policy = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "deny-all"},
            "spec": {
                "podSelector": {"matchExpressions": [{"key": OWNER, "operator": "Exists"}]},
                "policyTypes": ["Ingress", "Egress"],
            },
        }
        await connection.create(Folders(namespace).policies, policy)
        runtime = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": RUNTIME_CLASS},
            "handler": "runsc",
        }
        await connection.create("/apis/node.k8s.io/v1/runtimeclasses", runtime)
    finally:
        await connection.close()
