"""`deploy/kubernetes` on an API server: kubectl applies it, and its role is what sandboxes use."""

import asyncio
import re
import subprocess
from collections import defaultdict

import pytest

from sandboxes.core.sandbox import closing
from sandboxes.kubernetes import doctor
from sandboxes.kubernetes.backend import KubernetesBackend
from tests.kubernetes.faults import TEMPLATE
from tests.kubernetes.staging import Stage
from tests.kubernetes.test_manifests import DEPLOY, ROOT, of_kind, pytestmark

__all__ = ["pytestmark"]

OPEN_TO_ALL = {("authorization.k8s.io", "selfsubjectaccessreviews"), ("", "")}
"""What every user may ask, and what is no resource (`/version`, `/apis`)."""

LOST_ANSWERS = {
    ("coordination.k8s.io", "leases"): {"get"},
    ("extensions.agents.x-k8s.io", "sandboxtemplates"): {"get"},
    ("extensions.agents.x-k8s.io", "sandboxwarmpools"): {"get"},
    ("", "pods/exec"): {"create"},
}
"""Used where the answer to a creation got lost; and by API servers from 1.35 on, for streams."""

Rights = dict[tuple[str, str], set[str]]


def granted() -> Rights:
    found: Rights = defaultdict(set)
    for role in (*of_kind("Role"), *of_kind("ClusterRole")):
        for rule in role["rules"]:
            for resource in rule["resources"]:
                found[rule["apiGroups"][0], resource] |= set(rule["verbs"])
    return found


def used(stage: Stage, since: int) -> Rights:
    """By the client of sandboxes, as the double's log has it from that line on."""
    found: Rights = defaultdict(set)
    for line in stage.log()[since:]:
        if line["user_agent"] == "agentic-synth":
            below = f"/{line['subresource']}" if line["subresource"] else ""
            found[line["group"], line["resource"] + below].add(line["verb"])
    return found


async def play(stage: Stage, *, claims: bool) -> None:
    """All that sandboxes do: made, left, adopted, listed, ended, and looked at by the doctor."""
    wanted = "require" if claims else "off"
    settings = stage.simulated(
        agent_sandbox=wanted, warm=1, warm_templates=1, linger_s=30, heartbeat_s=0.1
    )
    first, second = KubernetesBackend(settings), KubernetesBackend(settings)
    template = TEMPLATE.model_copy(update={"linger_s": 30.0})
    left = await first.create(template)
    await first.close()
    adopted = await second.adopt(left.name)
    await adopted.exec(["true"])
    assert left.name in [info.name for info in await second.list()]
    for seed in ("1", "2"):  # the second pool takes the first one's place
        template = TEMPLATE.model_copy(update={"env": {"SEED": seed}})
        async with closing(await second.create(template)) as another:
            await another.exec(["true"])
    await second.destroy(another.name)
    await adopted.close()
    await second.close()
    await doctor.findings(settings, trial=False)


def test_the_role_grants_what_sandboxes_use_and_nothing_more(stage: Stage) -> None:
    if stage.double is None:
        pytest.skip("which verbs are used tells the double's log")
    # what another test of this stage made is not made again
    stage.kubectl("delete", "configmaps", "-l", "app.kubernetes.io/managed-by=agentic-synth")
    before = len(stage.log())
    for claims in (True, False) if stage.claims else (False,):
        asyncio.run(play(stage, claims=claims))
    asked, may = used(stage, before), granted()
    for key in OPEN_TO_ALL:
        asked.pop(key, None)
    beyond = {key: verbs - may[key] for key, verbs in asked.items() if verbs - may[key]}
    assert not beyond, "sandboxes use rights that the role does not grant"
    if stage.claims:
        unused = {
            key: left
            for key, verbs in may.items()
            if (left := verbs - asked.get(key, set()) - LOST_ANSWERS.get(key, set()))
        }
        assert not unused, "the role grants rights that nothing uses"


def kubectl(stage: Stage, *words: str) -> list[str]:
    """Lines of what it says, of whatever namespace."""
    argv = ["kubectl", f"--kubeconfig={stage.kubeconfig}", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def ours(stage: Stage) -> None:
    """Skips on a server that is not the tests' own: the namespace is the one that people use."""
    if stage.double is None:
        pytest.skip("objects with fixed names are made on the double alone")


@pytest.mark.usefixtures("ours")
def test_kubectl_applies_the_base_and_says_what_the_page_says(stage: Stage) -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    _, _, rest = page.partition("kubectl apply -k deploy/kubernetes/base\n")
    promised = re.findall(r"^    (\S+ created)$", rest.partition("The rights")[0], re.MULTILINE)
    apply = "apply", "--validate=false", "-k", str(DEPLOY / "base")
    assert kubectl(stage, *apply) == promised
    assert {line.rpartition(" ")[2] for line in kubectl(stage, *apply)} == {"unchanged"}


@pytest.mark.usefixtures("ours")
def test_kubectl_applies_the_example_pool(stage: Stage) -> None:
    if not stage.claims:
        pytest.skip("the cluster has no agent-sandbox")
    said = kubectl(stage, "apply", "--validate=false", "-k", str(DEPLOY))
    pool = "sandboxwarmpool.extensions.agents.x-k8s.io/synth-example"
    assert f"{pool} created" in said
    kubectl(stage, "delete", "-k", str(DEPLOY / "warm-pool"), "--wait=false")
