"""Sandboxes on a played cluster: warm ones, owners and what dead ones leave, each fault by itself.

What any sandbox can do is asked in `tests/sandboxes/conformance`, of real Pods.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from records.errors import ConfigError
from sandboxes.core.sandbox import closing
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes import doctor
from sandboxes.kubernetes.backend import KubernetesBackend, probed
from sandboxes.kubernetes.owners import DEAD, OtherOwners
from tests.kubernetes import staging
from tests.kubernetes.faults import FAULTS, REAL_FAULTS, TEMPLATE, backend, pod_of, sandbox, until
from tests.kubernetes.leaks import left, nothing_left
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_for_what_it_is(stage: Stage, name: str) -> None:
    if stage.double is None and "kind" in FAULTS[name].__code__.co_names:
        pytest.skip("faults of the API server need the double")
    asyncio.run(FAULTS[name](stage))


@pytest.mark.parametrize("name", REAL_FAULTS)
def test_what_a_program_does_to_its_own_pod_is_scored(stage: Stage, name: str) -> None:
    if (why := unable()) is not None:
        pytest.skip(why)
    asyncio.run(REAL_FAULTS[name](stage))


def test_a_warm_pod_is_lent_and_another_made_ready(stage: Stage) -> None:
    async def go() -> None:
        async with backend(stage, warm=2) as made, closing(await made.create(TEMPLATE)):
            session = (await made.held()).session

            def ready() -> set[str]:
                return {s.uid for s in session.pods.objects.values() if s.runs}

            await until(lambda: len(ready()) >= 3)
            before = ready()
            async with closing(await made.create(TEMPLATE)) as other:
                assert isinstance(pod_of(other), str)
                states = session.pods.objects.values()
                uid = next(s.uid for s in states if s.name == pod_of(other))
                assert uid in before, "it was ready before it was asked for"

    asyncio.run(go())


def test_pools_are_kept_for_so_many_templates(stage: Stage) -> None:
    async def go() -> None:
        async with backend(stage, warm=1, warm_templates=2) as made:
            for number in range(4):
                template = TEMPLATE.model_copy(update={"env": {"N": str(number)}})
                await (await made.create(template)).close()
            session = (await made.held()).session

            def pools() -> set[str]:
                return {s.pool for s in session.pods.objects.values() if s.over is None}

            await until(lambda: len(pools()) <= 2)

    asyncio.run(go())


def test_what_is_used_once_has_no_spare_pods_and_costs_nobody_theirs(stage: Stage) -> None:
    async def go() -> None:
        async with backend(stage, warm=1, warm_templates=1) as made:
            session = (await made.held()).session
            often = TEMPLATE.model_copy(update={"files": {"/opt/x/y": "often"}})
            async with closing(await made.create(often)) as lent:

                def others() -> set[str]:
                    states = session.pods.objects.values()
                    return {s.uid for s in states if s.runs and s.name != pod_of(lent)}

                await until(lambda: len(others()) == 1)
                ready, kept = others(), set(session.taken_in)
                assert len(kept) == 1
                for number in range(3):
                    once = {"files": {"/opt/x/y": str(number)}, "spares": False}
                    await (await made.create(TEMPLATE.model_copy(update=once))).close()
                assert others() == ready
                assert set(session.taken_in) == kept, "of what is used once nothing is remembered"
                async with closing(await made.create(often)) as other:
                    states = session.pods.objects.values()
                    assert {s.uid for s in states if s.name == pod_of(other)} == ready

    asyncio.run(go())


HOLD = """
import asyncio, sys
from sandboxes.kubernetes.backend import KubernetesBackend
from sandboxes.kubernetes.settings import KubernetesSettings
from tests.kubernetes.faults import TEMPLATE
async def main():
    backend = KubernetesBackend(KubernetesSettings.model_validate_json(sys.argv[1]))
    held = await asyncio.gather(*(backend.create(TEMPLATE) for _ in range(int(sys.argv[2]))))
    print((await backend.held()).session.owner.name, flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


def test_of_a_killed_owner_nothing_is_left_and_of_a_living_one_all(stage: Stage) -> None:
    settings = stage.simulated(warm=2, linger_s=2)
    argv = [sys.executable, "-c", HOLD, settings.model_dump_json(), "5"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        owner = process.stdout.readline().decode().strip()
        assert len(left(stage, owner)) > 5

        async def go() -> None:
            async with sandbox(stage, warm=1) as (made, one), backend(stage) as third:
                await third.held()  # two reapers
                process.send_signal(signal.SIGKILL)
                await asyncio.to_thread(process.wait)
                await nothing_left(stage, owner)
                await one.ping()
                me = (await made.held()).session.owner.name
                assert await asyncio.to_thread(left, stage, me)

        asyncio.run(go())


def test_a_session_that_ends_leaves_nothing(stage: Stage) -> None:
    async def go() -> str:
        made = KubernetesBackend(stage.simulated(warm=1))
        await made.create(TEMPLATE)  # and never closed
        return (await made.held()).session.owner.name

    owner = asyncio.run(go())

    asyncio.run(nothing_left(stage, owner))


def test_no_clock_but_our_own_says_that_an_owner_is_dead(stage: Stage) -> None:
    """An owner of another machine, whose clock is years off, lives as long as it renews."""

    async def go() -> None:
        async with backend(stage) as made:
            session = (await made.held()).session
            path = session.folders.leases
            for name in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
                lease = {
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {
                        "name": f"synth-owner-{name}", "labels": {"synth.dev/owner": name},
                        "annotations": {"synth.dev/process": "elsewhere/1.1.1"},
                    },
                    "spec": {"leaseDurationSeconds": 1, "renewTime": "2001-01-01T00:00:00.000000Z"},
                }  # fmt: skip
                await session.connection.create(path, lease)
            others = OtherOwners(session.connection, session.folders, every_s=0.5)
            for number in range(8):
                renewed = {"spec": {"renewTime": f"2001-01-01T00:00:0{number}.000000Z"}}
                await session.connection.patch(f"{path}/synth-owner-aaaaaaaaaaaa", renewed)
                found = await others.look()
                assert not others.dead("aaaaaaaaaaaa", found["aaaaaaaaaaaa"])
                await asyncio.sleep(0.4)
            await nothing_left(stage, "bbbbbbbbbbbb")
            # one that was renewed since it was looked at is not declared dead
            found = await others.look()
            lease = found.get("aaaaaaaaaaaa")
            if lease is not None and DEAD not in lease["metadata"].get("annotations", {}):
                renewed = {"spec": {"renewTime": "2001-01-01T00:01:00.000000Z"}}
                await session.connection.patch(f"{path}/synth-owner-aaaaaaaaaaaa", renewed)
                assert not await others.declare_dead("aaaaaaaaaaaa", lease)

    asyncio.run(go())


def test_an_old_agent_sandbox_is_refused_by_name(tmp_path: Path) -> None:
    if (folder := staging.crds()) is None:
        pytest.skip(str(staging.unstaged(claims=True)))
    old = tmp_path / "old"
    old.mkdir()
    for path in folder.glob("*.yaml"):
        made = yaml.safe_load(path.read_text())
        versions = made["spec"]["versions"]
        made["spec"]["versions"] = [
            v | {"storage": True} for v in versions if v["name"] != "v1beta1"
        ]
        (old / path.name).write_text(yaml.safe_dump(made))
    with (tmp_path / "log").open("ab") as log:
        config = tmp_path / "kubeconfig"
        words = ["--kubeconfig", str(config), "--crds", str(old)]
        process, _ = staging.started("tests.kubernetes.double", log, *words)
    try:
        asyncio.run(staging.furnished(config, "some"))
        settings = {
            "kubeconfig": str(config), "namespace": "some",
            "runtime_class": staging.RUNTIME_CLASS,
        }  # fmt: skip
        for wanted in ("auto", "require"):
            made = staging.KubernetesSettings.model_validate(settings | {"agent_sandbox": wanted})
            with pytest.raises(ConfigError, match=r"v1alpha1 and not in v1beta1"):
                asyncio.run(probed(made))
        off = staging.KubernetesSettings.model_validate(settings | {"agent_sandbox": "off"})
        assert not asyncio.run(probed(off)).claims
        bare = {"runtime_class": None, "agent_sandbox": "off"}
        stage_classes = staging.KubernetesSettings.model_validate(settings | bare)
        assert asyncio.run(probed(stage_classes)).handler == "runsc"
    finally:
        staging.stopped(process)


def test_the_doctor_finds_what_is_missing_and_what_mends_it(stage: Stage) -> None:
    found = {each.what: each for each in asyncio.run(doctor.findings(stage.simulated()))}
    assert not [each for each in found.values() if each.holds == "no" and each.what != "python"]
    assert found["runtime"].holds == "yes"
    assert found["agent-sandbox"].holds == ("yes" if stage.claims else "partly")
    assert found["sandbox"].holds == "yes"
    elsewhere = stage.simulated(namespace="there-is-none")
    told = {each.what: each for each in asyncio.run(doctor.findings(elsewhere))}
    assert told["namespace"].holds == "no"
    assert "kubectl apply -k deploy/kubernetes" in told["namespace"].how
    assert told["network"].holds == "no"
    assert "sandbox" not in told


def test_the_doctor_says_that_no_cluster_answers(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    nobody = staging.KubernetesSettings(kubeconfig=str(config))
    (none,) = asyncio.run(doctor.findings(nobody))
    assert (none.what, none.holds) == ("cluster", "no")
    assert str(config) in none.how


def test_nothing_runs_where_no_runtime_is_between(stage: Stage) -> None:
    bare = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runc"}
    path = stage.folder / "bare.json"
    path.write_text(json.dumps(bare | {"metadata": {"name": "synth-test-bare"}}))
    stage.kubectl("apply", "-f", str(path), "--validate=false")
    with pytest.raises(ConfigError, match="allow_bare_runtime"):
        asyncio.run(probed(stage.settings(runtime_class="synth-test-bare")))
    told = stage.settings(runtime_class="synth-test-bare", allow_bare_runtime=True)
    assert asyncio.run(probed(told)).handler == "runc"
    with pytest.raises(ConfigError, match="no RuntimeClass nowhere"):
        asyncio.run(probed(stage.settings(runtime_class="nowhere")))


def test_what_a_template_binds_that_is_not_there_is_a_setting(stage: Stage) -> None:
    async def go() -> None:
        async with backend(stage) as made:
            missing = {"binds": [{"source": "/no/such/folder", "target": "/opt/x"}]}
            template = SandboxTemplate.model_validate(missing)
            with pytest.raises(ConfigError, match="/no/such/folder"):
                await made.create(template)

    asyncio.run(go())


pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
