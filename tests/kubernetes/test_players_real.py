"""Real Pods of the played node: what is in their containers, how they end, and that all goes."""

import asyncio
import shutil
import subprocess
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from sandboxes.core.owners import PREFIX, root_folder
from sandboxes.local import cgroups, reaper
from tests.kubernetes.asking import Asking, Json, asking, phase, state_of, until
from tests.kubernetes.leaks import command
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.players.real.security import RefusedError, identity_of
from tests.kubernetes.players.real.sources import expanded
from tests.kubernetes.players.real.volumes import chosen, used_bytes, write
from tests.kubernetes.staging import Stage, staged, started

LIMITS = {"cpu": "1", "memory": "64Mi"}
HARDENED = {
    "runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip
WAIT = ["sleep", "1000"]

Test = Callable[[Asking, str], Awaitable[None]]


def container(command: list[str], name: str = "sandbox", **more: Any) -> Json:
    return {
        "name": name,
        "image": "image:1",
        "command": command,
        "securityContext": HARDENED,
        "resources": {"limits": LIMITS, "requests": LIMITS},
        **more,
    }


@pytest.fixture
def with_pod(stage: Stage) -> Callable[..., None]:
    if (why := unable()) is not None:
        pytest.skip(why)

    def run(test: Test, spec: Json, **metadata: Any) -> None:
        async def ran() -> None:
            async with asking(stage) as cluster:
                name = f"real-{uuid.uuid4().hex[:8]}"
                await cluster.make_pod(
                    name, {"terminationGracePeriodSeconds": 0, **spec}, **metadata
                )
                try:
                    await test(cluster, name)
                finally:
                    await cluster.delete_pod(name)
                    await cluster.gone(name)

        asyncio.run(ran())

    return run


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def test_variables_are_expanded_as_a_kubelet_does() -> None:
    env = {"A": "1", "B_C": "2"}
    assert expanded("$(A)-$(B_C)-$(D)-$$(A)-$A", env) == "1-2-$(D)-$(A)-$A"


def test_a_container_that_must_not_be_root_is_refused_as_root() -> None:
    pod: Json = {"spec": {"securityContext": {"runAsNonRoot": True, "fsGroup": 5}}}
    with pytest.raises(RefusedError, match="image will run as root"):
        identity_of(pod, {"name": "a"})
    found = identity_of(pod, {"name": "a", "securityContext": {"runAsUser": 7}})
    assert (found.uid, found.gid, found.groups, found.read_only) == (7, 0, (5,), False)


def test_files_of_a_volume_lie_behind_the_link_of_a_kubelet(tmp_path: Path) -> None:
    files = {"a": b"1", "b": b"22"}
    picked = chosen(files, {"items": [{"key": "b", "path": "sub/c", "mode": 0o400}]}, False)
    write(tmp_path, picked, 0o644)
    assert (tmp_path / "sub" / "c").read_bytes() == b"22"
    assert (tmp_path / "sub").is_symlink()
    assert (tmp_path / "sub" / "c").stat().st_mode & 0o777 == 0o400
    assert not (tmp_path / "a").exists()
    assert used_bytes(tmp_path) >= 4096


def test_the_command_is_the_first_process_without_rights(with_pod: Callable[..., None]) -> None:
    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)
        answer = await cluster.exec(name, shell("cat /proc/1/comm; id -u; id -g; pwd; hostname"))
        assert answer.stdout.split() == [b"sleep", b"1000", b"1000", b"/tmp", name.encode()]
        status = (await cluster.exec(name, ["cat", "/proc/self/status"])).stdout.decode()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert {fields[cap] for cap in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
        assert fields["NoNewPrivs"] == "1"
        for path in ("/file", "/usr/file", "/etc/file"):
            assert (await cluster.exec(name, ["touch", path])).status["status"] == "Failure"
        devices = await cluster.exec(name, ["cat", "/proc/net/dev"])
        assert [line.split(b":")[0].strip() for line in devices.stdout.splitlines()[2:]] == [b"lo"]

    with_pod(test, {"containers": [container(WAIT, workingDir="/tmp")]})


def test_an_exec_has_its_three_channels_and_its_exit_code(with_pod: Callable[..., None]) -> None:
    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)
        answer = await cluster.exec(
            name, shell("head -c 5; printf no >&2; exit 3"), stdin=b"hello!"
        )
        assert (answer.stdout, answer.stderr) == (b"hello", b"no")
        assert answer.status["reason"] == "NonZeroExitCode"
        assert answer.status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
        whole = await cluster.exec(name, shell("head -c 300000 /dev/zero"))
        assert whole.stdout == bytes(300000)
        missing = await cluster.exec(name, ["no-such-program"])
        assert missing.status["reason"] == "InternalError"
        assert "executable file not found" in missing.status["message"]

    with_pod(test, {"containers": [container(WAIT)]})


def test_a_commands_input_ends_with_its_stream(with_pod: Callable[..., None]) -> None:
    """In this subprotocol nothing else ends it."""

    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)
        async with cluster.stream(name, shell("cat > /tmp/in; mv /tmp/in /tmp/done")) as socket:
            await socket.send_bytes(b"\0all of it")

        async def written() -> Json:
            answer = await cluster.exec(name, ["cat", "/tmp/done"])
            return {"text": answer.stdout}

        await until(written, lambda found: found["text"] == b"all of it", "the file")

    volumes = [{"name": "tmp", "emptyDir": {}}]
    mounts = [{"name": "tmp", "mountPath": "/tmp"}]
    with_pod(test, {"containers": [container(WAIT, volumeMounts=mounts)], "volumes": volumes})


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_runs_commands_and_ends_their_input(
    with_pod: Callable[..., None], stage: Stage
) -> None:
    """It speaks the newer subprotocol, by which the command's input ends and its output goes on."""

    def kubectl(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        run = ["kubectl", f"--kubeconfig={stage.kubeconfig}", f"--namespace={stage.namespace}"]
        return subprocess.run([*run, *words], input=stdin, capture_output=True, check=False)

    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)
        script = shell("cat; echo err >&2; exit 7")
        done = await asyncio.to_thread(kubectl, "exec", "-i", name, "--", *script, stdin=b"in")
        assert (done.stdout, done.returncode) == (b"in", 7)
        assert b"err" in done.stderr
        said = await asyncio.to_thread(kubectl, "logs", name)
        assert said.stdout == b"hello\n", said.stderr

    with_pod(test, {"containers": [container(shell("echo hello; sleep 1000"))]})


def test_containers_share_network_and_volumes_and_no_processes(
    with_pod: Callable[..., None],
) -> None:
    server = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0here'); s.listen()\n"
        "while True: s.accept()[0].send(b'reached')"
    )
    reach = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0here'); "
        "print(s.recv(9).decode())"
    )

    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)

        async def reached() -> Json:
            answer = await cluster.exec(name, ["/opt/python/bin/python3", "-c", reach])
            return {"text": answer.stdout}

        await until(reached, lambda found: found["text"] == b"reached\n", "the other container")
        await cluster.exec(name, shell("echo x > /shared/file"))
        other = await cluster.exec(name, shell("cat /shared/file; ls /proc"), container="server")
        assert other.stdout.startswith(b"x\n")
        assert (
            b"sleep"
            not in (await cluster.exec(name, ["cat", "/proc/1/comm"], container="server")).stdout
        )

    mounts = [{"name": "shared", "mountPath": "/shared"}]
    spec = {
        "containers": [
            container(WAIT, volumeMounts=mounts),
            container(["python3", "-c", server], "server", volumeMounts=mounts),
        ],
        "volumes": [{"name": "shared", "emptyDir": {}}],
    }
    with_pod(test, spec)


def test_init_containers_run_one_after_another_and_before_all_else(
    with_pod: Callable[..., None],
) -> None:
    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)

        async def logged() -> Json:
            return {"text": (await cluster.exec(name, ["cat", "/data/log"])).stdout}

        whole = b"one\ntwo\nthree\n"
        await until(logged, lambda found: found["text"] == whole, "what the containers wrote")
        pod = await cluster.pod(name)
        assert pod is not None
        for each in ("one", "two"):
            assert state_of(pod, each)["terminated"]["reason"] == "Completed"

    mounts = [{"name": "data", "mountPath": "/data"}]
    parts = [shell(f"echo {word} >> /data/log") for word in ("one", "two")]
    spec = {
        "initContainers": [
            container(part, word, volumeMounts=mounts)
            for part, word in zip(parts, ("one", "two"), strict=True)
        ],
        "containers": [
            container(shell("echo three >> /data/log; sleep 1000"), volumeMounts=mounts)
        ],
        "volumes": [{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    }
    with_pod(test, spec)


def test_an_init_container_that_fails_ends_the_pod(with_pod: Callable[..., None]) -> None:
    async def test(cluster: Asking, name: str) -> None:
        pod = await cluster.over(name)
        assert phase(pod) == "Failed"
        assert state_of(pod, "bad")["terminated"]["exitCode"] == 9
        assert "waiting" in state_of(pod)

    bad = container(shell("exit 9"), "bad")
    with_pod(test, {"initContainers": [bad], "containers": [container(WAIT)]})


def test_configuration_comes_as_files_and_variables(
    with_pod: Callable[..., None], stage: Stage
) -> None:
    """The Pod is there first and waits, as one does, until its ConfigMap is."""
    config = f"config-{uuid.uuid4().hex[:8]}"

    async def test(cluster: Asking, name: str) -> None:
        body = {"metadata": {"name": config}, "data": {"a": "1", "b": "2"}}
        await cluster.core.create_namespaced_config_map(cluster.namespace, cast(Any, body))
        await cluster.running(name)
        answer = await cluster.exec(name, shell('cat /config/a /etc/b; echo "$A $NAME $MORE"'))
        assert answer.stdout.decode() == f"121 {name} 1-x\n"
        assert (await cluster.exec(name, ["touch", "/config/c"])).status["status"] == "Failure"

    reference = {"configMapKeyRef": {"name": config, "key": "a"}}
    env = [
        {"name": "A", "valueFrom": reference},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "MORE", "value": "$(A)-x"},
    ]
    mounts = [
        {"name": "config", "mountPath": "/config", "readOnly": True},
        {"name": "config", "mountPath": "/etc/b", "subPath": "b", "readOnly": True},
    ]
    spec = {
        "containers": [container(WAIT, env=env, volumeMounts=mounts)],
        "volumes": [{"name": "config", "configMap": {"name": config}}],
    }
    with_pod(test, spec)


def test_a_volume_in_memory_is_full_at_its_size(with_pod: Callable[..., None]) -> None:
    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)
        fill = await cluster.exec(name, shell("head -c 3000000 /dev/zero > /data/file"))
        assert b"No space left" in fill.stderr
        sizes = await cluster.exec(name, ["stat", "-c", "%s", "/data/file"])
        assert int(sizes.stdout) == 1 << 20

    spec = {
        "containers": [container(WAIT, volumeMounts=[{"name": "data", "mountPath": "/data"}])],
        "volumes": [{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    }
    with_pod(test, spec)


def test_a_first_process_that_takes_all_memory_is_killed_for_it(
    with_pod: Callable[..., None],
) -> None:
    async def test(cluster: Asking, name: str) -> None:
        pod = await cluster.over(name)
        ended = state_of(pod)["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
        assert phase(pod) == "Failed"

    with_pod(test, {"containers": [container(["python3", "-c", "x = bytearray(200 << 20)"])]})


@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_a_container_that_ends_is_told_with_its_code(
    with_pod: Callable[..., None], policy: str
) -> None:
    async def test(cluster: Asking, name: str) -> None:
        if policy == "Never":
            pod = await cluster.over(name)
            ended = state_of(pod)["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (4, "Error")
        else:

            def twice(pod: Json) -> bool:
                found = (pod.get("status") or {}).get("containerStatuses") or [{}]
                waits = (found[0].get("state") or {}).get("waiting") or {}
                return waits.get("reason") == "CrashLoopBackOff"

            pod = await cluster.pod_when(name, twice)
            assert pod["status"]["containerStatuses"][0]["restartCount"] >= 1

    spec = {"containers": [container(shell("exit 4"))], "restartPolicy": policy}
    with_pod(test, spec)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["volume", "log"])
def test_storage_beyond_a_pods_own_limit_evicts_it(
    with_pod: Callable[..., None], what: str
) -> None:
    async def test(cluster: Asking, name: str) -> None:
        status = (await cluster.over(name))["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
        assert status["message"] == words
        assert all(each["type"] != "DisruptionTarget" for each in status["conditions"])

    if what == "volume":
        words = 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". '
        script = "head -c 3000000 /dev/zero > /data/file; sleep 1000"
    else:
        words = 'Container sandbox exceeded its local ephemeral storage limit "1Mi". '
        script = "head -c 3000000 /dev/zero; sleep 1000"
    limits = LIMITS | ({"ephemeral-storage": "1Mi"} if what == "log" else {})
    mounts = [{"name": "data", "mountPath": "/data"}]
    spec = {
        "containers": [container(shell(script), volumeMounts=mounts, resources={"limits": limits})],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Mi"}}],
    }
    with_pod(test, spec)


def test_a_killed_first_process_takes_all_with_it(
    with_pod: Callable[..., None], stage: Stage
) -> None:
    async def test(cluster: Asking, name: str) -> None:
        await cluster.running(name)
        async with cluster.stream(name, WAIT) as socket:
            stage.fault(fault="kill", namespace=cluster.namespace, pod=name)
            pod = await cluster.over(name)
            async for _ in socket:
                pass  # the exec ends with its container
        ended = state_of(pod)["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "Error")

    with_pod(test, {"containers": [container(WAIT)]})


def test_what_may_not_start_says_why(with_pod: Callable[..., None]) -> None:
    async def test(cluster: Asking, name: str) -> None:
        def waits(pod: Json) -> bool:
            return "waiting" in state_of(pod) and "message" in state_of(pod)["waiting"]

        pod = await cluster.pod_when(name, waits)
        waiting = state_of(pod)["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert "image will run as root" in waiting["message"]
        assert phase(pod) == "Pending"

    with_pod(test, {"containers": [container(WAIT, securityContext={"runAsNonRoot": True})]})


def test_a_removed_pod_leaves_nothing_on_the_machine(
    with_pod: Callable[..., None], stage: Stage
) -> None:
    """No process, no control group, no folder, no mount; a little after it is gone from the API."""
    pid = stage.processes["players"].pid

    async def left() -> Json:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        children = [each for each in below if command(each) == "bwrap"]
        folders = root_folder().glob(f"{pid}.*/pods/{uids[0]}")
        groups = [
            str(folder)
            for _, parent in cgroups.controllers().values()
            for folder in parent.glob(f"{PREFIX}.{pid}.*.pod-*")
        ]
        mounts = uids[0] in Path(f"/proc/{pid}/mountinfo").read_text()
        return {"status": [*children, *map(str, folders), *groups], "mounted": mounts}

    async def test(cluster: Asking, name: str) -> None:
        uids.append((await cluster.running(name))["metadata"]["uid"])
        found = await left()
        assert len(found["status"]) >= 3
        assert found["mounted"]

    uids: list[str] = []
    spec = {
        "containers": [container(WAIT, volumeMounts=[{"name": "data", "mountPath": "/data"}])],
        "volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}],
    }
    with_pod(test, spec)
    nothing = {"status": [], "mounted": False}
    asyncio.run(until(left, lambda found: found == nothing, "what a Pod leaves"))


@pytest.mark.slow
def test_killed_players_take_their_containers_along_and_are_followed_by_others() -> None:
    """What they leave is found by its owner's name, and their Pods are over: nobody runs them."""
    if (why := unable()) is not None:
        pytest.skip(why)
    with staged(nodes="real=1", claims=False) as stage:
        players = stage.processes["players"]

        async def before() -> Json:
            async with asking(stage) as cluster:
                await cluster.make_pod("pod", {"containers": [container(WAIT)]})
                return await cluster.running("pod")

        number = asyncio.run(before())["status"]["containerStatuses"][0]["containerID"]
        first = Path("/proc", number.rpartition("/")[2])
        assert first.exists()
        players.kill()
        players.wait()

        async def dead() -> Json:
            try:  # one that nobody has waited for yet has no command line
                return {"there": bool((first / "cmdline").read_bytes())}
            except OSError:
                return {"there": False}

        asyncio.run(until(dead, lambda found: not found["there"], "the container"))
        reaper.reap()
        for _, parent in cgroups.controllers().values():
            assert not list(parent.glob(f"{PREFIX}.{players.pid}.*"))
        assert not list(root_folder().glob(f"{players.pid}.*"))
        words = ["--kubeconfig", str(stage.kubeconfig), "--nodes", "real=1"]
        with (stage.folder / "log").open("ab") as log:
            stage.processes["players"], _ = started("tests.kubernetes.players", log, *words)

        async def after() -> Json:
            async with asking(stage) as cluster:
                return await cluster.over("pod")

        ended = state_of(asyncio.run(after()))["terminated"]
        assert ended["reason"] == "ContainerStatusUnknown"
