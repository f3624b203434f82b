"""What `deploy/kubernetes` gives a cluster: it renders, schemas allow it, and its walls stand."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandboxes.egress.service import allowed_hosts
from sandboxes.kubernetes.cluster import denies_all
from sandboxes.kubernetes.names import EGRESS
from sandboxes.kubernetes.settings import KubernetesSettings
from tests.kubernetes.schemas import check, is_custom

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy" / "kubernetes"
IMAGES = {path.name.partition(".")[0]: path for path in DEPLOY.glob("images/*.Containerfile")}
PROXY = {"app.kubernetes.io/name": "synth-egress"}
MAY_LEAVE = {"synth.dev/egress": "true"}

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

Manifest = dict[str, Any]


@cache
def rendered(folder: str = "") -> tuple[Manifest, ...]:
    argv = ["kubectl", "kustomize", str(DEPLOY / folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(kind: str) -> list[Manifest]:
    return [manifest for manifest in rendered() if manifest["kind"] == kind]


def pods() -> Iterator[tuple[str, Manifest]]:
    """Name and spec of every Pod that something here makes."""
    for manifest in rendered():
        spec = manifest.get("spec", {})
        template = spec.get("template") or spec.get("podTemplate")
        if template is not None:
            yield f"{manifest['kind']} {manifest['metadata']['name']}", template["spec"]


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name'].partition('-hosts-')[0]}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "manifest" in metafunc.fixturenames:
        there = shutil.which("kubectl") is not None
        metafunc.parametrize("manifest", rendered() if there else [], ids=name_of)


def test_schemas_allow_every_manifest(manifest: Manifest) -> None:
    check(manifest)


def test_the_base_needs_no_agent_sandbox_and_the_rest_is_an_addition() -> None:
    assert not any(map(is_custom, rendered("base")))
    assert all(map(is_custom, rendered("warm-pool")))
    assert len(rendered()) == len(rendered("base")) + len(rendered("warm-pool"))


def test_all_of_it_is_in_the_namespace_of_the_settings() -> None:
    own = KubernetesSettings().namespace
    of_cluster = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    for manifest in rendered():
        if manifest["kind"] not in of_cluster:
            assert manifest["metadata"]["namespace"] == own
    [namespace] = of_kind("Namespace")
    assert namespace["metadata"]["name"] == own
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for binding in (*of_kind("RoleBinding"), *of_kind("ClusterRoleBinding")):
        assert [subject["namespace"] for subject in binding["subjects"]] == [own]


def test_every_pod_is_hardened() -> None:
    found = dict(pods())
    assert found.keys() == {"Deployment synth-egress", "SandboxTemplate synth-example"}
    for name, spec in found.items():
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] >= 1000, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            bounds = container["resources"]
            assert bounds["requests"] == bounds["limits"], name
            assert bounds["limits"].keys() == {"cpu", "memory", "ephemeral-storage"}, name
        for volume in spec["volumes"]:
            assert volume.keys() - {"name"} <= {"emptyDir", "configMap", "secret"}, name
            assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"], name


def test_a_sandbox_ends_by_itself_and_nobody_but_us_opens_its_network() -> None:
    [template] = of_kind("SandboxTemplate")
    spec = template["spec"]
    assert spec["networkPolicyManagement"] == "Unmanaged"
    assert "networkPolicy" not in spec
    pod = spec["podTemplate"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["activeDeadlineSeconds"] > 0
    assert pod["runtimeClassName"]
    [pool] = of_kind("SandboxWarmPool")
    assert pool["spec"]["sandboxTemplateRef"]["name"] == template["metadata"]["name"]


def test_nothing_gets_in_or_out_of_any_pod_but_by_the_proxy() -> None:
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in of_kind("NetworkPolicy")}
    assert policies.pop("synth-deny-all") == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }
    opened = policies.pop("sandboxes-to-egress")
    assert opened == {
        "podSelector": {"matchLabels": MAY_LEAVE},
        "policyTypes": ["Egress"],
        "egress": [
            {
                "to": [{"podSelector": {"matchLabels": PROXY}}],
                "ports": [{"protocol": "TCP", "port": 3128}],
            }
        ],
    }
    proxy = policies.pop("egress-to-public")
    assert not policies
    assert proxy["podSelector"] == {"matchLabels": PROXY}
    [called] = proxy["ingress"]
    assert called["from"] == [{"podSelector": {"matchLabels": MAY_LEAVE}}]
    for rule in proxy["egress"]:
        if any("ipBlock" in block for block in rule["to"]):
            assert rule["ports"] == [{"protocol": "TCP"}]
    blocks = [
        block["ipBlock"] for rule in proxy["egress"] for block in rule["to"] if "ipBlock" in block
    ]
    [everywhere] = [block for block in blocks if block["cidr"] == "0.0.0.0/0"]
    for private in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "168.63.129.16/32",
    ):  # fmt: skip
        assert private in everywhere["except"]


def test_the_proxy_is_what_its_service_and_policies_are_about() -> None:
    [deployment], [service] = of_kind("Deployment"), of_kind("Service")
    assert deployment["spec"]["template"]["metadata"]["labels"].items() >= PROXY.items()
    assert service["spec"]["selector"] == PROXY
    [port] = service["spec"]["ports"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert port["targetPort"] == container["ports"][0]["containerPort"] == port["port"] == 3128
    assert "0.0.0.0:3128" in container["args"]


def test_nothing_passes_the_proxy_until_somebody_says_so() -> None:
    [hosts] = of_kind("ConfigMap")
    assert allowed_hosts(hosts["data"]["hosts"]) == ({}, False)


def test_rights_are_named_one_by_one_and_those_of_the_cluster_only_look_at_runtimes() -> None:
    [role], [wide] = of_kind("Role"), of_kind("ClusterRole")
    for rule in (*role["rules"], *wide["rules"]):
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
    assert wide["rules"] == [
        {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["list"]}
    ]
    rights = {
        resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]
    }
    assert not rights.keys() & {"secrets", "serviceaccounts", "roles", "rolebindings", "nodes"}
    assert rights["networkpolicies"] == {"list"}  # who may make some could open the walls


def test_sandboxes_take_the_walls_for_what_they_need() -> None:
    assert any(map(denies_all, of_kind("NetworkPolicy")))
    assert {EGRESS: "true"} == MAY_LEAVE


def test_images_are_those_of_the_settings_and_each_has_its_definition() -> None:
    settings = KubernetesSettings()
    used = {container["image"] for _, spec in pods() for container in spec["containers"]}
    used |= {settings.image, settings.agent_image}
    assert used == {f"agentic-synth-{name}:1" for name in IMAGES}
    for name, path in IMAGES.items():
        text = path.read_text()
        assert f"-t agentic-synth-{name}:1" in text
        assert re.findall(r"^USER (.+)$", text, re.MULTILINE) == ["1000:1000"]


def test_the_image_of_the_proxy_has_all_that_the_proxy_needs(tmp_path: Path) -> None:
    text = IMAGES["egress"].read_text().replace("\\\n", " ")
    for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        *sources, target = line.split()
        (tmp_path / target).mkdir(parents=True, exist_ok=True)
        for source in sources:
            shutil.copy(ROOT / source, tmp_path / target)
    program = (
        f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['', '--help']; "
        "runpy.run_module('sandboxes.egress', run_name='__main__')"
    )
    argv = [sys.executable, "-I", "-S", "-c", program]  # with no package at all
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "The egress proxy." in done.stdout, done.stderr
