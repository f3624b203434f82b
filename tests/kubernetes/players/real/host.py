"""What real Pods have in common: a folder of this machine, files of /etc, a watch on storage."""

import asyncio
import contextlib
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes.core import python_env
from sandboxes.core.owners import own_folder
from sandboxes.local import cgroups
from tests.kubernetes.players.api import Api
from tests.kubernetes.players.events import Recorder
from tests.kubernetes.players.objects import Obj
from tests.kubernetes.players.real.namespaces import own_mounts
from tests.kubernetes.players.real.sources import Sources

if TYPE_CHECKING:
    from tests.kubernetes.players.real.run import RealRun

log = logging.getLogger("players")

LOOK_S = 1.0
"""Between two looks at the storage of Pods; a kubelet looks every ten seconds."""

PYTHON = "/opt/python"
"""Where an image has its Python."""

ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def unable() -> str | None:
    """Why this machine cannot run real Pods, None where it can."""
    if os.geteuid() != 0:
        return "real Pods need root: their volumes are mounted and their users changed"
    for program in ("bwrap", "nsenter", "setpriv"):
        if shutil.which(program, path="/usr/bin:/bin") is None:
            return f"real Pods need {program}, which is not installed"
    if "memory" not in cgroups.controllers():
        return "real Pods need a memory control group, which this machine does not let us make"
    return None


class Host:
    def __init__(self, api: Api, events: Recorder, extra: dict[str, str]) -> None:
        """`extra` is what images have beside /usr: path inside -> path here."""
        own_mounts()
        self.sources, self.events = Sources(api), events
        of_python = {bind.target: bind.source for bind in python_env.base_binds()}
        self.extra = {PYTHON: sys.base_prefix} | of_python | extra
        self.runs: set[RealRun] = set()
        self.folder = own_folder() / "pods"
        self.folder.mkdir()
        self._etc = self.folder / "etc"
        self._etc.mkdir()
        for name, text in ETC.items():
            (self._etc / name).write_text(text)
        self._ending: set[asyncio.Task[None]] = set()

    def etc_of(self, pod: Obj, place: Path, ip: str) -> dict[str, Path]:
        """Path inside -> file of a Pod's /etc."""
        name = pod["spec"].get("hostname") or pod["metadata"]["name"]
        own = {
            "hosts": f"127.0.0.1\tlocalhost\n::1\tlocalhost\n{ip}\t{name}\n",
            "hostname": f"{name}\n",
            "resolv.conf": "",
        }
        found = {f"/etc/{name}": self._etc / name for name in ETC}
        for file, text in own.items():
            (place / file).write_text(text)
            found[f"/etc/{file}"] = place / file
        return found

    def let_end(self, process: asyncio.subprocess.Process) -> None:
        """Read what a command writes that nobody listens to any more, until it ends."""

        async def drain() -> None:
            await process.communicate()

        task = asyncio.get_running_loop().create_task(drain())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def failed(self, pod: Obj, error: BaseException) -> None:
        log.error("Pod %s: %r", pod["metadata"]["name"], error)

    async def run(self) -> None:
        """Evict Pods that use more storage than is their own. Looking takes a tenth of the time at
        most, however many files there are."""
        loop, took_s = asyncio.get_running_loop(), 0.0
        while True:
            await asyncio.sleep(max(LOOK_S, 10 * took_s))
            began = loop.time()
            for run in list(self.runs):
                if run.status.phase in ("Succeeded", "Failed"):
                    continue
                if (message := await asyncio.to_thread(run.over_limit)) is not None:
                    run.fail("Evicted", message, None)
                    self.events.warn(run.pod, "Evicted", message)
            took_s = loop.time() - began

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # something else of this process is in it
            self.folder.parent.rmdir()
