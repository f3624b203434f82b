"""The played agent-sandbox: pools, claims, sandboxes, policies; also by its own Python client."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubernetes.aio import client

from tests.kubernetes.asking import Asking, Json, asking, condition, condition_of, phase, until
from tests.kubernetes.players.controllers.marks import name_hash, set_condition
from tests.kubernetes.staging import Stage

POD = {"containers": [{"name": "sandbox", "image": "image:1", "command": ["agent"]}]}
LABELS = {"synth.dev/played": "simulated", "app": "mine"}

Test = Callable[["Pool"], Awaitable[None]]


class Pool:
    """A template and a warm pool of its name, and their sandboxes."""

    def __init__(self, cluster: Asking, name: str) -> None:
        self.cluster, self.name = cluster, name

    async def make(self, replicas: int, **template: Any) -> None:
        pod = {"podTemplate": {"metadata": {"labels": LABELS}, "spec": POD}}
        spec = {"networkPolicyManagement": "Unmanaged", **pod, **template}
        await self.cluster.make("sandboxtemplates", self.name, spec)
        spec = {"replicas": replicas, "sandboxTemplateRef": {"name": self.name}}
        await self.cluster.make("sandboxwarmpools", self.name, spec)

    async def filled(self, replicas: int) -> Json:
        def full(pool: Json) -> bool:
            return (pool.get("status") or {}).get("readyReplicas") == replicas

        return await self.cluster.when("sandboxwarmpools", self.name, full)

    async def members(self) -> dict[str, Json]:
        found = await self.cluster.all("sandboxes")
        return {
            each["metadata"]["name"]: each
            for each in found
            if owner_of(each) == ("SandboxWarmPool", self.name)
        }

    async def claim(self, name: str = "", **spec: Any) -> str:
        name = name or f"claim-{uuid.uuid4().hex[:8]}"
        spec = {"warmPoolRef": {"name": self.name}, **spec}
        await self.cluster.make("sandboxclaims", name, spec)
        return name

    async def claimed(self, claim: str) -> str:
        """The name of the claim's sandbox, ready."""
        found = await self.cluster.ready("sandboxclaims", claim)
        assert found["status"]["sandbox"]["podIPs"]
        return found["status"]["sandbox"]["name"]

    async def unready(self, claim: str, reason: str) -> Json:
        def told(found: Json) -> bool:
            ready = condition_of(found, "Ready")
            return ready is not None and ready["reason"] == reason

        found = condition_of(await self.cluster.when("sandboxclaims", claim, told), "Ready")
        assert found is not None
        assert found["status"] == "False"
        return found


def owner_of(obj: Json) -> tuple[str, str] | None:
    for each in obj["metadata"].get("ownerReferences") or []:
        if each.get("controller"):
            return each["kind"], each["name"]
    return None


def at(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def with_pool(stage: Stage) -> Callable[[Test], None]:
    if not stage.claims:
        pytest.skip("no definitions of agent-sandbox: SYNTH_TEST_DATA names no folder with them")

    def run(test: Test) -> None:
        async def ran() -> None:
            async with asking(stage) as cluster:
                pool = Pool(cluster, f"pool-{uuid.uuid4().hex[:8]}")
                await test(pool)
                for plural in ("sandboxclaims", "sandboxwarmpools", "sandboxtemplates"):
                    for each in await cluster.all(plural):
                        await cluster.remove(plural, each["metadata"]["name"])
                await until(left, lambda found: not found["names"], "sandboxes and Pods")

        async def left() -> Json:
            async with asking(stage) as cluster:
                found = [*await cluster.all("sandboxes"), *await cluster.pods("app=mine")]
                return {"names": [each["metadata"]["name"] for each in found]}

        asyncio.run(ran())

    return run


@pytest.mark.parametrize(
    ("text", "value"), [("", "811c9dc5"), ("a", "e40c292c"), ("foobar", "bf9cf968")]
)
def test_names_are_hashed_by_fnv(text: str, value: str) -> None:
    """Test vectors of the hash's authors."""
    assert name_hash(text) == value


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    old = {"type": "Ready", "status": "False", "reason": "A", "lastTransitionTime": "then"}
    same = set_condition([old], {**old, "reason": "B", "lastTransitionTime": "now"})
    assert same == [{**old, "reason": "B"}]
    other = set_condition([old], {**old, "status": "True", "lastTransitionTime": "now"})
    assert other[0]["lastTransitionTime"] == "now"


def test_a_pool_is_filled_claimed_from_and_filled_again(with_pool: Callable[[Test], None]) -> None:
    async def test(pool: Pool) -> None:
        await pool.make(2)
        full = await pool.filled(2)
        assert full["status"]["replicas"] == 2
        before = await pool.members()
        pods = {name: await pool.cluster.pod(name) for name in before}
        claim = await pool.claim()
        sandbox = await pool.claimed(claim)
        assert sandbox in before  # a warm one, with the Pod that it had
        pod, old = await pool.cluster.pod(sandbox), pods[sandbox]
        assert pod is not None
        assert old is not None
        assert pod["metadata"]["uid"] == old["metadata"]["uid"]
        found = await pool.cluster.one("sandboxes", sandbox)
        assert found is not None
        assert owner_of(found) == ("SandboxClaim", claim)
        await until(pool.members, lambda found: len(found) == 2, "the pool's sandboxes")
        await pool.cluster.remove("sandboxclaims", claim)
        await pool.cluster.no_more("sandboxes", sandbox)
        await pool.cluster.gone(sandbox)

    with_pool(test)


def test_no_two_claims_get_the_same_sandbox(with_pool: Callable[[Test], None]) -> None:
    """More claims at once than the pool has: the others start cold, under their own names."""

    async def test(pool: Pool) -> None:
        await pool.make(4)
        await pool.filled(4)
        warm = set(await pool.members())
        claims = await asyncio.gather(*(pool.claim() for _ in range(12)))
        got = await asyncio.gather(*(pool.claimed(claim) for claim in claims))
        assert len(set(got)) == 12
        assert warm <= set(got)

    with_pool(test)


def test_claims_are_kept_apart_while_the_server_fails(
    stage: Stage, with_pool: Callable[[Test], None]
) -> None:
    """Writes are refused or broken off amid a claim, watches end and lose their place."""
    if stage.double is None:
        pytest.skip("only the double fails on request")

    async def test(pool: Pool) -> None:
        await pool.make(4)
        await pool.filled(4)
        players: dict[str, Any] = {"verb": "patch", "user_agent": "synth-players", "count": 3}
        stage.fault(kind="status", code=503, resource="sandboxes", **players)
        stage.fault(kind="disconnect", resource="sandboxclaims", **players)
        claims = await asyncio.gather(*(pool.claim() for _ in range(8)))
        stage.fault(kind="compact")
        stage.fault(kind="drop_watches")
        got = await asyncio.gather(*(pool.claimed(claim) for claim in claims))
        assert len(set(got)) == 8
        owners = [owner_of(each) for each in await pool.cluster.all("sandboxes")]
        taken = [owner for owner in owners if owner is not None and owner[0] == "SandboxClaim"]
        assert sorted(taken) == sorted(("SandboxClaim", claim) for claim in claims)

    with_pool(test)


def test_a_claimed_sandbox_outlives_its_pool(with_pool: Callable[[Test], None]) -> None:
    async def test(pool: Pool) -> None:
        await pool.make(2)
        await pool.filled(2)
        sandbox = await pool.claimed(await pool.claim())
        await pool.cluster.remove("sandboxwarmpools", pool.name)
        await until(pool.members, lambda found: not found, "the pool's sandboxes")
        assert phase(await pool.cluster.pod(sandbox) or {}) == "Running"
        assert await pool.cluster.one("sandboxes", sandbox) is not None

    with_pool(test)


def test_a_pool_follows_its_number(with_pool: Callable[[Test], None]) -> None:
    async def test(pool: Pool) -> None:
        await pool.make(3)
        await pool.filled(3)
        await pool.cluster.change("sandboxwarmpools", pool.name, {"spec": {"replicas": 1}})
        await until(pool.members, lambda found: len(found) == 1, "the pool's sandboxes")
        await pool.filled(1)

    with_pool(test)


def test_environment_makes_a_cold_start_where_the_template_lets_it(
    with_pool: Callable[[Test], None],
) -> None:
    async def test(pool: Pool) -> None:
        await pool.make(1, envVarsInjectionPolicy="Allowed")
        await pool.filled(1)
        claim = await pool.claim(env=[{"name": "A", "value": "b"}])
        assert await pool.claimed(claim) == claim  # its own, not the pool's
        pod = await pool.cluster.pod(claim)
        assert pod is not None
        assert pod["spec"]["containers"][0]["env"] == [{"name": "A", "value": "b"}]
        assert len(await pool.members()) == 1

    with_pool(test)


def test_what_a_claim_may_not_ask_for_is_refused_by_name(with_pool: Callable[[Test], None]) -> None:
    async def test(pool: Pool) -> None:
        await pool.make(0)
        claim = await pool.claim(env=[{"name": "A", "value": "b"}])
        await pool.unready(claim, "EnvVarsInjectionRejected")
        foreign = {"labels": {"synth.dev/sandbox": "x"}}
        await pool.unready(await pool.claim(additionalPodMetadata=foreign), "InvalidMetadata")
        await pool.unready(await pool.claim(warmPoolRef={"name": "nobody"}), "WarmPoolNotFound")

    with_pool(test)


def test_metadata_of_a_claim_reaches_the_warm_pod(with_pool: Callable[[Test], None]) -> None:
    async def test(pool: Pool) -> None:
        await pool.make(1)
        await pool.filled(1)
        asked = {"labels": {"sandbox.users.io/who": "me"}, "annotations": {"note": "mine"}}
        sandbox = await pool.claimed(await pool.claim(additionalPodMetadata=asked))

        def told(pod: Json) -> bool:
            return pod["metadata"]["labels"].get("sandbox.users.io/who") == "me"

        pod = await pool.cluster.pod_when(sandbox, told)
        assert pod["metadata"]["annotations"]["note"] == "mine"
        assert "agents.x-k8s.io/warm-pool-sandbox" not in pod["metadata"]["labels"]

    with_pool(test)


@pytest.mark.parametrize("policy", ["Delete", "DeleteForeground", "Retain"])
def test_a_claim_whose_time_is_over_loses_its_sandbox(
    with_pool: Callable[[Test], None], policy: str
) -> None:
    async def test(pool: Pool) -> None:
        await pool.make(1)
        await pool.filled(1)
        claim = await pool.claim(lifecycle={"shutdownTime": at(3600), "shutdownPolicy": policy})
        sandbox = await pool.claimed(claim)
        over = {"spec": {"lifecycle": {"shutdownTime": at(-1)}}}
        await pool.cluster.change("sandboxclaims", claim, over)
        await pool.cluster.no_more("sandboxes", sandbox)
        if policy == "Retain":
            await pool.unready(claim, "ClaimExpired")
        else:
            await pool.cluster.no_more("sandboxclaims", claim)

    with_pool(test)


@pytest.mark.slow
def test_a_claim_goes_some_time_after_its_sandbox_has_finished(
    stage: Stage, with_pool: Callable[[Test], None]
) -> None:
    async def test(pool: Pool) -> None:
        pod = {"metadata": {"labels": LABELS}, "spec": {**POD, "restartPolicy": "Never"}}
        await pool.make(1, podTemplate=pod)
        await pool.filled(1)
        lifecycle = {"ttlSecondsAfterFinished": 1, "shutdownPolicy": "Delete"}
        claim = await pool.claim(lifecycle=lifecycle)
        sandbox = await pool.claimed(claim)
        stage.fault(fault="kill", namespace=pool.cluster.namespace, pod=sandbox)
        await pool.cluster.no_more("sandboxclaims", claim)
        await pool.cluster.no_more("sandboxes", sandbox)

    with_pool(test)


def test_a_pod_that_is_lost_is_made_again_under_its_name(with_pool: Callable[[Test], None]) -> None:
    """Whoever holds the sandbox must see by the uid that it is another one."""

    async def test(pool: Pool) -> None:
        await pool.make(1)
        await pool.filled(1)
        sandbox = await pool.claimed(await pool.claim())
        old = await pool.cluster.running(sandbox)
        await pool.cluster.delete_pod(sandbox)

        def new(pod: Json) -> bool:
            return pod["metadata"]["uid"] != old["metadata"]["uid"] and phase(pod) == "Running"

        await pool.cluster.pod_when(sandbox, new)
        await pool.cluster.ready("sandboxes", sandbox)

    with_pool(test)


def test_a_suspended_sandbox_has_no_pod(with_pool: Callable[[Test], None]) -> None:
    async def test(pool: Pool) -> None:
        name = f"alone-{uuid.uuid4().hex[:8]}"
        cluster = pool.cluster
        template = {"metadata": {"labels": LABELS}, "spec": POD}
        await cluster.make("sandboxes", name, {"podTemplate": template})
        found = await cluster.ready("sandboxes", name)
        assert found["status"]["selector"] == f"agents.x-k8s.io/sandbox-name-hash={name_hash(name)}"
        await cluster.change("sandboxes", name, {"spec": {"operatingMode": "Suspended"}})
        await cluster.gone(name)
        found = await cluster.when(
            "sandboxes", name, lambda found: condition(found, "Suspended") == "True"
        )
        ready = condition_of(found, "Ready")
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("False", "SandboxSuspended")
        await cluster.change("sandboxes", name, {"spec": {"operatingMode": "Running"}})
        await cluster.ready("sandboxes", name)
        over = {"spec": {"shutdownTime": at(-1), "shutdownPolicy": "Delete"}}
        await cluster.change("sandboxes", name, over)
        await cluster.no_more("sandboxes", name)
        await cluster.gone(name)

    with_pool(test)


def test_a_managed_template_has_a_policy_and_an_unmanaged_one_none(
    with_pool: Callable[[Test], None],
) -> None:
    async def test(pool: Pool) -> None:
        cluster = pool.cluster
        policies = client.NetworkingV1Api(cluster.api)
        name = f"managed-{uuid.uuid4().hex[:8]}"
        await cluster.make("sandboxtemplates", name, {"podTemplate": {"spec": POD}})
        await pool.make(0)

        async def names() -> Json:
            found = await policies.list_namespaced_network_policy(cluster.namespace)
            plain = [cluster.plain(each) for each in found.items]
            return {each["metadata"]["name"]: each for each in plain}

        found = await until(names, lambda found: f"{name}-network-policy" in found, "the policy")
        assert f"{pool.name}-network-policy" not in found
        spec = found[f"{name}-network-policy"]["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert spec["egress"][0]["to"][0]["ipBlock"]["cidr"] == "0.0.0.0/0"  # theirs by default
        await cluster.remove("sandboxtemplates", name)
        await until(names, lambda found: f"{name}-network-policy" not in found, "the policies")

    with_pool(test)


@pytest.mark.slow
def test_agent_sandboxes_own_client_claims_and_terminates(
    stage: Stage, with_pool: Callable[[Test], None]
) -> None:
    pytest.importorskip("k8s_agent_sandbox", reason="k8s-agent-sandbox is not installed")
    import kubernetes
    from k8s_agent_sandbox.exceptions import SandboxWarmPoolNotFoundError
    from k8s_agent_sandbox.sandbox_client import SandboxClient

    def claimed(pool: Pool) -> str:
        kubernetes.config.load_kube_config(str(stage.kubeconfig))
        with SandboxClient(api_client=kubernetes.client.ApiClient()) as sandboxes:
            place = {"namespace": pool.cluster.namespace, "sandbox_ready_timeout": 100}
            with pytest.raises(SandboxWarmPoolNotFoundError):
                sandboxes.create_sandbox("nobody", **place)
            mine = sandboxes.create_sandbox(pool.name, shutdown_after_seconds=3600, **place)
            assert sandboxes.list_all_sandboxes(pool.cluster.namespace) == [mine.claim_name]
            name = mine.sandbox_id
            mine.terminate()
            return name

    async def test(pool: Pool) -> None:
        await pool.make(1)
        await pool.filled(1)
        warm = set(await pool.members())
        name = await asyncio.to_thread(claimed, pool)
        assert {name} == warm
        await pool.cluster.no_more("sandboxes", name)
        await pool.cluster.gone(name)

    with_pool(test)
