"""kubectl, which knows nothing of us, drives the double: apply, get, patch, watch, delete.

Its own validation is on. What it sends as protobuf (`kubectl create configmap` and the like) is
refused: the double reads JSON and YAML.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.kubernetes.double.kubeconfig import write_kubeconfig
from tests.kubernetes.doubled import (
    DEFINITIONS,
    PODS,
    Asking,
    a_definition,
    a_kettle,
    a_map,
    a_pod,
    against,
)
from tests.kubernetes.echoing_kubelet import bound

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]


class Kubectl:
    """kubectl for one double; its cache of discovery lies with the test."""

    def __init__(self, ask: Asking, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "kubeconfig"
        write_kubeconfig(self.config, ask.url)

    async def started(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *("kubectl", "--kubeconfig", str(self.config), *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )

    async def __call__(self, *words: str, fails: bool = False) -> str:
        """What it prints; of a command that is to fail, what it says on stderr."""
        process = await self.started(*words)
        out, err = await asyncio.wait_for(process.communicate(), 120)
        assert (process.returncode != 0) is fails, err.decode()
        return (err if fails else out).decode()

    def file(self, *items: object) -> str:
        path = self.folder / "objects.yaml"
        path.write_text("".join(f"---\n{json.dumps(item)}\n" for item in items))
        return str(path)


def test_apply_get_patch_and_delete(tmp_path: Path) -> None:
    async def test(ask: Asking) -> None:
        kubectl = Kubectl(ask, tmp_path)
        await ask("POST", DEFINITIONS, a_definition({"type": "object", "properties": {}}))
        file = kubectl.file(a_pod(), a_map(x="1", y="1"), a_kettle())
        assert (await kubectl("apply", "-f", file)).split("\n")[:3] == [
            "pod/p created",
            "configmap/m created",
            "kettle.tea.example/k created",
        ]
        assert "unchanged" in await kubectl("apply", "-f", file)
        changed = kubectl.file(a_map(x="2"))
        assert await kubectl("apply", "-f", changed) == "configmap/m configured\n"
        assert await kubectl("get", "configmap", "m", "-o", "jsonpath={.data}") == '{"x":"2"}'
        await kubectl("label", "pod", "p", "colour=red")
        await kubectl("patch", "pod", "p", "-p", '{"metadata":{"annotations":{"a":"b"}}}')
        selected = ["get", "pods", "-l", "colour in (red),!size", "-o", "name"]
        assert await kubectl(*selected) == "pod/p\n"
        header, row = (await kubectl("get", "pods", "-o", "wide")).splitlines()
        assert header.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert row.split()[:4] == ["p", "0/1", "Pending", "0"]
        assert 'pod "p" deleted' in await kubectl("delete", "pod/p")
        assert await kubectl("get", "pods", "-o", "name") == ""

    against(test)


def test_what_is_there_or_wrong_is_refused_in_kubectls_words(tmp_path: Path) -> None:
    async def test(ask: Asking) -> None:
        kubectl = Kubectl(ask, tmp_path)
        file = kubectl.file(a_map())
        await kubectl("create", "-f", file)
        assert "AlreadyExists" in await kubectl("create", "-f", file, fails=True)
        unknown = kubectl.file(a_pod(colour="red"))
        assert 'unknown field "spec.colour"' in await kubectl("apply", "-f", unknown, fails=True)
        assert "NotFound" in await kubectl("get", "pod", "none", fails=True)

    against(test)


def test_server_side_apply_tells_conflicts(tmp_path: Path) -> None:
    async def test(ask: Asking) -> None:
        kubectl = Kubectl(ask, tmp_path)
        apply = ["apply", "--server-side", "-f"]
        assert "serverside-applied" in await kubectl(*apply, kubectl.file(a_map(x="1")))
        file = kubectl.file(a_map(x="2"))
        other = [*apply, file, "--field-manager", "other"]
        assert 'conflict with "kubectl"' in await kubectl(*other, fails=True)
        assert "serverside-applied" in await kubectl(*other, "--force-conflicts")

    against(test)


def test_exec_and_logs_come_from_the_node(tmp_path: Path) -> None:
    async def test(ask: Asking) -> None:
        kubectl = Kubectl(ask, tmp_path)
        async with bound(ask) as node:
            process = await kubectl.started("exec", "p", "--", "greet")
            out, err = await asyncio.wait_for(process.communicate(), 120)
            assert (out, process.returncode) == (b"hello\n", 3)
            assert err.startswith(b"psst\n")
            assert node.asked[0][0] == "/exec/default/p/sandbox"
            assert await kubectl("logs", "p") == "a line\n"

    against(test)


def test_watch_and_wait_follow(tmp_path: Path) -> None:
    async def test(ask: Asking) -> None:
        kubectl = Kubectl(ask, tmp_path)
        await ask("POST", PODS, a_pod())
        watching = await kubectl.started("get", "pods", "--watch", "--no-headers")
        assert watching.stdout is not None
        first = await asyncio.wait_for(watching.stdout.readline(), 60)
        assert first.split()[:3] == [b"p", b"0/1", b"Pending"]
        waiting = asyncio.create_task(
            kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=60s")
        )
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await ask.patch(f"{PODS}/p/status", {"status": ready})
        second = await asyncio.wait_for(watching.stdout.readline(), 60)
        assert second.split()[2] == b"Running"
        assert await waiting == "pod/p condition met\n"
        watching.terminate()
        await watching.wait()

    against(test)
