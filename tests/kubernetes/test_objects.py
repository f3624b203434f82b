"""What is sent to a cluster: schemas allow it, walls stand in every Pod, files come whole."""

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ConfigError
from sandboxes.core import clock, python_env
from sandboxes.core.agent.frames import VERSION
from sandboxes.core.agent.stream import Ledger
from sandboxes.core.template import Bind, Limits, SandboxTemplate
from sandboxes.kubernetes import doctor, filling, manifests
from sandboxes.kubernetes.cluster import EVERY, Cluster, denies_all, opens
from sandboxes.kubernetes.filling import Filling, Mount
from sandboxes.kubernetes.manifests import PodMaker
from sandboxes.kubernetes.names import MANAGED, OWNER, POOL
from sandboxes.kubernetes.settings import KubernetesSettings
from sandboxes.local.doctor import Enforcement
from tests.kubernetes.schemas import check

GVISOR = Cluster("https://cluster", "v1.33.1", True, "gvisor", "runsc")

TEMPLATES = {
    "plain": SandboxTemplate(),
    "clock": SandboxTemplate(clock="2026-01-02T03:04:05", seed=1),
    "small": SandboxTemplate(limits=Limits(cpus=0.25, memory_mb=64, disk_mb=8), linger_s=600),
    "egress": SandboxTemplate(egress=True, files={"/opt/egress/forward.py": "pass"}),
}

SETTINGS = {
    "defaults": KubernetesSettings(),
    "everything": KubernetesSettings.model_validate(
        {
            "python": None, "own_users": True, "pull_secrets": ["registry"],
            "node_selector": {"pool": "sandboxes"}, "labels": {"team": "data"},
            "annotations": {"note": "one"}, "priority_class": "low", "scratch_medium": "disk",
            "tolerations": [
                {"key": "sandbox", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
                {"operator": "Exists"},
            ],
        }
    ),
}  # fmt: skip

FILLING = Filling(
    "0" * 16, (Mount("/opt/env", "whole/0"), Mount("/etc/x", "whole/1")), Path(), 99, 2
)


def pod(template: SandboxTemplate, settings: KubernetesSettings, some: Filling | None) -> Any:
    maker = PodMaker(settings, GVISOR, "synth-agent-0123456789abcdef")
    metadata = maker.metadata(template, {OWNER: "0123456789ab"})
    spec = maker.spec(template, some)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"name": "p"}, "spec": spec}


PODS = {
    f"{one}-{other}-{'filled' if some else 'empty'}": (template, settings, some)
    for one, template in TEMPLATES.items()
    for other, settings in SETTINGS.items()
    for some in (None, FILLING)
}


@pytest.mark.parametrize("made", PODS.values(), ids=PODS)
def test_pods_are_valid_and_hardened(made: tuple[Any, Any, Any]) -> None:
    manifest = pod(*made)
    check(manifest)
    spec = manifest["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > 0
    assert spec["runtimeClassName"] == "gvisor"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for name in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
        assert not spec.get(name)
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        secured = container["securityContext"]
        assert secured["readOnlyRootFilesystem"] is True
        assert secured["allowPrivilegeEscalation"] is False
        assert secured["privileged"] is False
        assert secured["capabilities"] == {"drop": ["ALL"]}
        resources = container["resources"]
        assert resources["limits"] == resources["requests"]
        assert {"cpu", "memory", "ephemeral-storage"} == set(resources["limits"])
        assert not container.get("ports")
    for volume in spec["volumes"]:
        assert volume.keys() - {"name"} in ({"configMap"}, {"emptyDir"})
        if "emptyDir" in volume:
            assert volume["emptyDir"]["sizeLimit"]
    (sandbox,) = [each for each in spec["containers"] if each["name"] == "sandbox"]
    writable = {m["mountPath"] for m in sandbox["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"/workspace", "/tmp", "/dev/shm"}


def test_objects_of_agent_sandbox_are_as_its_definitions_say() -> None:
    made = pod(TEMPLATES["clock"], SETTINGS["everything"], FILLING)
    metadata = {"labels": {OWNER: "0123456789ab"}}
    del made["metadata"]["name"]
    template = manifests.sandbox_template("t", metadata, made["metadata"], made["spec"])
    check(template)
    assert template["spec"]["networkPolicyManagement"] == "Unmanaged"
    check(manifests.warm_pool("t", metadata, 3))
    claim = manifests.claim("c", metadata, "t", "2026-11-29T12:00:00Z")
    check(claim)
    assert "env" not in claim["spec"], "it would be a cold start"
    check(manifests.agent_config_map() | {"metadata": {"name": "a"}})


def test_the_name_of_the_agents_map_is_its_contents() -> None:
    made = manifests.agent_config_map()
    assert made["metadata"]["name"].startswith("synth-agent-")
    assert len(json.dumps(made)) < 900_000, "a ConfigMap holds a megabyte"
    assert set(path.rpartition("/")[2] for path in clock.clock_files()) <= made["data"].keys()


def test_whoever_adopts_reads_the_template_without_what_it_shows() -> None:
    template = SandboxTemplate(files={"/opt/x/y": "z" * 500_000}, linger_s=5, env={"A": "b"})
    text = manifests.described(template)
    assert len(text) < 10_000
    read = manifests.read_template(text)
    assert (read.linger_s, read.env, read.files) == (5, {"A": "b"}, {})


POLICIES = [
    ({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}, True),
    (
        {
            "podSelector": {"matchExpressions": [{"key": OWNER, "operator": "Exists"}]},
            "policyTypes": ["Egress", "Ingress"], "ingress": [], "egress": [],
        },
        True,
    ),
    ({"podSelector": {}, "policyTypes": ["Ingress"]}, False),
    ({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{}]}, False),
    (
        {"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Ingress", "Egress"]}, False
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "closed"), POLICIES)
def test_a_wall_has_no_door(spec: Any, closed: bool) -> None:
    assert denies_all({"spec": spec}) is closed


ANY = {"policyTypes": ["Ingress", "Egress"], "egress": [{}]}
TEAMS = {"key": "team", "values": ["data", "more"]}
OTHERS = {"matchExpressions": [{"key": OWNER, "operator": "DoesNotExist"}]}
OPENING = [
    (ANY | {"podSelector": {}}, True),
    (ANY | {"podSelector": {"matchExpressions": [{"key": OWNER, "operator": "Exists"}]}}, True),
    (ANY | {"podSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}, True),
    (ANY | {"podSelector": OTHERS}, False),
    (ANY | {"podSelector": {"matchLabels": {"synth.dev/egress": "true"}}}, False),
    (ANY | {"podSelector": {"matchLabels": MANAGED}}, True),
    (ANY | {"podSelector": {"matchLabels": MANAGED | {"synth.dev/egress": "true"}}}, False),
    (ANY | {"podSelector": {"matchLabels": {"team": "data"}}}, True),
    (ANY | {"podSelector": {"matchLabels": {"team": "others"}}}, False),
    (ANY | {"podSelector": {"matchLabels": {OWNER: "0123456789ab"}}}, False),
    (ANY | {"podSelector": {"matchExpressions": [TEAMS | {"operator": "In"}]}}, True),
    (ANY | {"podSelector": {"matchExpressions": [TEAMS | {"operator": "NotIn"}]}}, False),
    (ANY | {"podSelector": {"matchExpressions": [{"key": POOL, "operator": "Exists"}]}}, True),
    ({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}, False),
]


@pytest.mark.parametrize(("spec", "opened"), OPENING)
def test_a_door_beside_the_wall_is_seen(spec: Any, opened: bool) -> None:
    """Whichever of the labels it goes by that every sandbox of these settings has."""
    assert opens({"spec": spec}, {**EVERY, "team": "data"}) is opened


def hello(token: object) -> dict[str, Any]:
    return {"op": "hello", "version": VERSION, "token": token, "holder": "h", "seen": 0}


@pytest.mark.parametrize("wrong", [None, "", 7, ["0"], {}])
def test_an_agent_without_a_token_takes_that_of_its_first_greeting(wrong: object) -> None:
    ledger = Ledger(None)
    assert ledger.greeting(hello(wrong), [])[1] is None
    assert ledger.greeting(hello("first") | {"version": -1}, [])[1] is None
    assert ledger.token is None
    assert ledger.greeting(hello("first"), [])[1] is not None
    assert ledger.greeting(hello("second") | {"adopt": True}, [])[1] is None
    assert ledger.greeting(hello("first") | {"adopt": True}, [])[1] is not None


def taken_in(made: bytes, place: Path) -> None:
    """As the init container takes an archive in."""
    script = filling.TAKE.replace(filling.PLACE, str(place))
    sent = len(made).to_bytes(8, "big") + made
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], input=sent, capture_output=True, check=True
    )
    assert done.stdout == b"filled"


def archived(template: SandboxTemplate) -> tuple[bytes, tuple[Mount, ...]]:
    mounts, inside = filling.laid_out(filling.shown(template, carry_python=False))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        filling.written(archive, inside)
    return file.getvalue(), mounts


def test_what_a_template_shows_arrives_as_it_is_here(tmp_path: Path) -> None:
    tree, place = tmp_path / "tree", tmp_path / "place"
    (tree / "deep" / "er").mkdir(parents=True)
    place.mkdir()
    (tree / "deep" / "er" / "file").write_bytes(b"\0\xff data")
    (tree / "run").write_text("#!/bin/sh\necho ran\n")
    (tree / "run").chmod(0o755)
    (tree / "closed").write_text("secret")
    (tree / "closed").chmod(0o600)
    (tree / "hidden").mkdir(mode=0o700)
    (tree / "hidden" / "file").write_text("secret")
    (tree / "link").symlink_to("deep/er/file")
    os.mkfifo(tree / "fifo")
    template = SandboxTemplate(
        binds=(Bind(source=str(tree), target="/shown"),
               Bind(source=str(tree), target="/opt/env/lib/packages")),
        files={"/opt/env/pyvenv.cfg": "home = x", "/etc/written": "text"},
        programs={"/opt/env/bin/tool": "#!/bin/sh\n"},
        links={"/opt/env/bin/python": "/opt/python/bin/python3", "/link": "/etc/written"},
    )  # fmt: skip
    made, mounts = archived(template)
    assert b"secret" not in made
    taken_in(made, place)
    taken_in(made, place)  # once more, as after a stream that broke at its end
    at = {mount.target: place / mount.part for mount in mounts}
    assert at.keys() == {"/shown", "/opt/env", "/etc/written", "/link"}
    assert (at["/shown"] / "link").read_bytes() == b"\0\xff data"
    assert (at["/opt/env"] / "lib/packages/deep/er/file").read_bytes() == b"\0\xff data"
    assert os.access(at["/shown"] / "run", os.X_OK)
    assert (at["/shown"] / "closed").stat().st_mode & 0o777 == 0
    assert list((at["/shown"] / "hidden").iterdir()) == []
    assert not (at["/shown"] / "fifo").exists()
    assert (at["/opt/env"] / "pyvenv.cfg").read_text() == "home = x"
    assert os.access(at["/opt/env"] / "bin/tool", os.X_OK)
    assert (at["/opt/env"] / "bin/python").readlink() == Path("/opt/python/bin/python3")
    assert at["/link"].read_text() == at["/etc/written"].read_text() == "text"


def test_a_link_that_no_mount_can_show_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="link /usr/bin/tool"):
        archived(SandboxTemplate(links={"/usr/bin/tool": "/usr/bin/env"}))


PATHS = st.lists(
    st.lists(st.sampled_from(["opt", "etc", "a", "b", "c"]), min_size=1, max_size=5).map(
        lambda parts: "/" + "/".join(parts)
    ),
    min_size=1, max_size=8, unique=True,
)  # fmt: skip


@given(PATHS)
def test_mounts_show_every_path_and_none_lies_in_another(paths: list[str]) -> None:
    roots = filling.roots_of({path: ("file", "x", 0o444) for path in paths})
    assert all(filling.part_of(path, roots) for path in paths)
    for root in roots:
        assert not any(above in roots for above in filling.parents(root))


def test_an_archive_is_made_once_for_what_it_holds(tmp_path: Path) -> None:
    asyncio.run(made_once(tmp_path))


async def made_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one")
    template = SandboxTemplate(binds=(Bind(source=str(tmp_path), target="/shown"),))
    some = filling.Fillings(carry_python=False)
    first, again = await some.of(template), await some.of(template)
    assert first is not None
    assert first is again
    (tmp_path / "file").write_text("another")
    other = await filling.Fillings(carry_python=False).of(template)
    assert other is not None
    assert other.digest != first.digest
    assert await some.of(SandboxTemplate()) is None


@pytest.mark.parametrize(("handler", "holds"), [("runsc", "partly"), ("kata-qemu", "yes")])
def test_the_doctor_goes_by_the_handler_and_not_by_the_name_of_its_class(
    handler: str, holds: str
) -> None:
    how = f"RuntimeClass kata ({handler}) is between programs and the nodes' kernel"
    found = doctor.processes(KubernetesSettings(), [Enforcement("runtime", "yes", how)])
    assert found.holds == holds


def test_archives_that_pods_may_ask_for_stay_and_of_others_the_last_ones() -> None:
    async def go() -> None:
        needed = set[str]()
        some = filling.Fillings(carry_python=False, kept=1, needed=lambda: needed)
        made = list[Filling]()
        for number in range(4):
            found = await some.of(SandboxTemplate(files={"/opt/x/y": str(number)}))
            assert found is not None
            made.append(found)
            needed.add(made[0].digest)
        assert [each.archive.exists() for each in made] == [True, False, True, True]
        again = await some.of(SandboxTemplate(files={"/opt/x/y": "1"}))
        assert again is not None
        assert again.archive.exists()

    asyncio.run(go())


def test_the_path_of_our_programs_is_that_of_the_brought_python() -> None:
    """`python_env.base_python` names it wherever the sandbox is."""
    assert manifests.BROUGHT.rpartition("/")[0] == f"{python_env.BASE}/bin"
