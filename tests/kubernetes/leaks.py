"""What is left on a cluster of an owner of sandboxes."""

import asyncio
import json
from pathlib import Path

from sandboxes.kubernetes.names import Folders
from tests.kubernetes.staging import Stage

SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"


def left(stage: Stage, owner: str, *kinds: str) -> list[str]:
    """Objects that bear an owner's name, of these kinds; without any, of all that it makes."""
    if not kinds:
        kinds = ("pods", "leases")
        if stage.claims:
            kinds += ("sandboxclaims", "sandboxwarmpools", "sandboxtemplates", "sandboxes")
    wanted = f"synth.dev/owner={owner}"
    return stage.kubectl("get", ",".join(kinds), "-l", wanted, "-o", "name").split()


def anything_left(stage: Stage, owner: str) -> bool:
    """The same, asked for one object of each kind: of thousands the answer would be long."""
    folders = Folders(stage.namespace)
    paths = [folders.pods, folders.leases]
    if stage.claims:
        paths += [folders.claims, folders.warm_pools, folders.templates]
        paths += [SANDBOXES.format(stage.namespace)]
    query = f"?labelSelector=synth.dev/owner%3D{owner}&limit=1"
    return any(json.loads(stage.kubectl("get", "--raw", p + query))["items"] for p in paths)


async def nothing_left(stage: Stage, owner: str) -> None:
    """Return once that is so: what never comes true is stopped by whoever runs the tests."""
    while await asyncio.to_thread(anything_left, stage, owner):  # noqa: ASYNC110  # nothing tells
        await asyncio.sleep(0.5)


def running(stage: Stage) -> list[str]:
    """Names of Pods of sandboxes that run."""
    wanted = ["-l", "synth.dev/owner", "--field-selector=status.phase=Running"]
    return stage.kubectl("get", "pods", *wanted, "-o", "name").split()


def on_the_real_node(stage: Stage) -> int:
    """Containers of real Pods that run, by the processes of whoever plays their node."""
    pid = stage.processes["players"].pid
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(command(each) == "bwrap" for each in below)


def command(pid: str) -> str:
    """The name of a process; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def pods_made(stage: Stage) -> int:
    """Pods that the double has made, by its log."""
    return sum(
        (line["verb"], line["resource"], line["code"]) == ("create", "pods", 201)
        and not line["subresource"]
        for line in stage.log()
    )
