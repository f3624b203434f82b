"""What a cluster has of what sandboxes need, and what mends what is missing. Data for
`synth sandbox doctor --kubernetes`.

It looks at one thing after another, as a start would, and at last starts one sandbox. What it
cannot see it says: whether a network plugin enforces policies shows no API.
"""

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from records.errors import ConfigError, ItemError, SynthError, TransientError
from sandboxes.core import python_env
from sandboxes.core.sandbox import closing
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes import cluster as clusters
from sandboxes.kubernetes.api import connection as connections
from sandboxes.kubernetes.api.connection import Connection
from sandboxes.kubernetes.backend import KubernetesBackend
from sandboxes.kubernetes.names import EXTENSIONS, VERSION, Folders
from sandboxes.kubernetes.settings import KubernetesSettings
from sandboxes.local.doctor import Enforcement

APPLY = "kubectl apply -k deploy/kubernetes"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Right(NamedTuple):
    """What the backend does with objects of one kind."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    claims: bool = False
    """Only on clusters with agent-sandbox."""

    @property
    def kind(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


RIGHTS = (
    Right("", "pods", ("get", "list", "watch", "create", "patch", "delete")),
    Right("", "pods/exec", ("get", "create")),
    Right("", "configmaps", ("get", "create")),
    Right("coordination.k8s.io", "leases", ("get", "list", "create", "patch", "delete")),
    Right("networking.k8s.io", "networkpolicies", ("list",)),
    Right("node.k8s.io", "runtimeclasses", ("list",)),
    Right(EXTENSIONS, "sandboxclaims", ("get", "list", "watch", "create", "patch", "delete"), True),
    Right(EXTENSIONS, "sandboxtemplates", ("get", "create", "delete", "deletecollection"), True),
    Right(EXTENSIONS, "sandboxwarmpools", ("get", "create", "delete", "deletecollection"), True),
)


async def findings(settings: KubernetesSettings, *, trial: bool = True) -> list[Enforcement]:
    """One entry for each thing that is needed. Alone "cluster: no" where none answers."""
    try:
        connection = await connections.opened(
            kubeconfig=settings.kubeconfig, context=settings.context, creations_per_s=1, burst=1
        )
    except ConfigError as error:
        return [Enforcement("cluster", "no", str(error))]
    try:
        found = [await answered(connection)]
        if found[0].holds != "no":
            folders = Folders(settings.namespace)
            for look in (namespace, agent_sandbox, rights, runtime, network, quotas):
                found.append(await looked(look, connection, folders, settings))
            found.append(processes(settings, found))
    finally:
        await connection.close()
    if trial and not any(each.holds == "no" for each in found):
        found += await started(settings)
    return found


Examination = Callable[[Connection, Folders, KubernetesSettings], Awaitable[Enforcement]]


async def looked(
    look: Examination, connection: Connection, folders: Folders, settings: KubernetesSettings
) -> Enforcement:
    try:
        return await look(connection, folders, settings)
    except (ConfigError, TransientError) as error:
        return Enforcement(look.__name__.replace("_", "-"), "no", str(error))


async def answered(connection: Connection) -> Enforcement:
    try:
        version = (await connection.ask("GET", "/version", patience_s=5)).get("gitVersion")
    except SynthError as error:
        how = f"{error}; kubectl cluster-info shows which server is meant"
        return Enforcement("cluster", "no", how)
    return Enforcement("cluster", "yes", f"{connection.server} answers, Kubernetes {version}")


async def namespace(
    connection: Connection, folders: Folders, settings: KubernetesSettings
) -> Enforcement:
    name = settings.namespace
    try:
        there = await connection.get(folders.namespace) is not None
    except ConfigError:
        how = f"whether {name} is there we may not see: kubectl get namespace {name}"
        return Enforcement("namespace", "partly", how)
    if not there:
        return Enforcement("namespace", "no", f"there is no namespace {name}: {APPLY}")
    return Enforcement("namespace", "yes", name)


async def agent_sandbox(
    connection: Connection, folders: Folders, settings: KubernetesSettings
) -> Enforcement:
    what = "agent-sandbox"
    if settings.agent_sandbox == "off":
        return Enforcement(what, "partly", 'plain Pods, as `agent_sandbox = "off"` says')
    if await clusters.has_claims(connection, settings.agent_sandbox):
        return Enforcement(what, "yes", f"{EXTENSIONS}/{VERSION}: claims from warm pools")
    how = f"not installed: plain Pods, kept ready by each owner alone. {clusters.INSTALL}"
    return Enforcement(what, "partly", how)


async def rights(
    connection: Connection, folders: Folders, settings: KubernetesSettings
) -> Enforcement:
    claims = await clusters.has_claims(connection, settings.agent_sandbox)
    missing = []
    for right in RIGHTS:
        if claims or not right.claims:
            missing += [
                f"{verb} {right.kind}"
                for verb in right.verbs
                if not await allowed(connection, settings.namespace, right, verb)
            ]
    if missing:
        verb, kind = missing[0].split()
        how = (
            f"we may not {', '.join(missing)}: {APPLY}, and bind its role synth-runner to us; "
            f"kubectl auth can-i {verb} {kind} -n {settings.namespace} then says yes"
        )
        return Enforcement("rights", "no", how)
    return Enforcement("rights", "yes", "all verbs that sandboxes need")


async def allowed(connection: Connection, where: str, right: Right, verb: str) -> bool:
    resource, _, below = right.resource.partition("/")
    attributes = {"verb": verb, "group": right.group, "resource": resource}
    attributes |= {} if resource == "runtimeclasses" else {"namespace": where}
    attributes |= {"subresource": below} if below else {}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await connection.ask("POST", REVIEWS, body=review)
    return bool((answer.get("status") or {}).get("allowed"))


async def runtime(
    connection: Connection, folders: Folders, settings: KubernetesSettings
) -> Enforcement:
    name, handler = await clusters.runtime(connection, settings)
    if handler is not None and clusters.is_apart(handler):
        how = f"RuntimeClass {name} ({handler}) is between programs and the nodes' kernel"
        return Enforcement("runtime", "yes", how)
    if settings.allow_bare_runtime:
        how = "none: programs share the nodes' kernel, as `allow_bare_runtime` says"
        return Enforcement("runtime", "partly", how)
    how = (
        "neither gVisor nor Kata, and nothing runs without: install one and its RuntimeClass "
        "(kubectl get runtimeclass lists them), or set `allow_bare_runtime`"
    )
    return Enforcement("runtime", "no", how)


async def network(
    connection: Connection, folders: Folders, settings: KubernetesSettings
) -> Enforcement:
    await clusters.walled(connection, folders, settings)
    how = (
        "a policy lets nothing in or out of sandboxes; that a network plugin enforces it no API "
        "tells: try it once as docs/kubernetes.md says"
    )
    return Enforcement("network", "partly", how)


async def quotas(
    connection: Connection, folders: Folders, settings: KubernetesSettings
) -> Enforcement:
    try:
        found = (await connection.ask("GET", folders.quotas))["items"] or ()
    except ConfigError:
        return Enforcement("quotas", "partly", "we may not see them: kubectl describe quota")
    lines = []
    for quota in found:
        status = quota.get("status") or {}
        used, hard = status.get("used") or {}, status.get("hard") or {}
        lines += [f"{key} {used.get(key, 0)} of {most}" for key, most in sorted(hard.items())]
    return Enforcement("quotas", "yes", ", ".join(lines) or "none")


def processes(settings: KubernetesSettings, found: list[Enforcement]) -> Enforcement:
    handler = f"({clusters.KATA}"  # the class itself may have any name
    kata = any(each.what == "runtime" and handler in each.how for each in found)
    if settings.own_users or kata:
        return Enforcement("processes", "yes", "RLIMIT_NPROC of users that a Pod has for itself")
    how = (
        "the template's limit is not set: the kubelets' podPidsLimit bounds Pods, or set "
        "`own_users` (Kubernetes 1.33, Linux 6.3)"
    )
    return Enforcement("processes", "partly", how)


async def started(settings: KubernetesSettings) -> list[Enforcement]:
    """One sandbox, and the Python in it by which our own programs run."""
    backend = KubernetesBackend(settings.model_copy(update={"warm": 0}))
    python, began = python_env.base_python(), time.monotonic()
    try:
        async with closing(await backend.create(SandboxTemplate())) as sandbox:
            took = time.monotonic() - began
            found = [Enforcement("sandbox", "yes", f"one was started within {took:.1f} s")]
            done = await sandbox.exec([python, "-I", "-S", "-c", ""])
            if done.exit_code == 0:
                found.append(Enforcement("python", "yes", f"{python} runs in it"))
            else:
                how = (
                    f"there is no {python} in {settings.image}, by which our own programs run: "
                    "build the image of deploy/kubernetes/images with this version, or set "
                    "`carry_python`"
                )
                found.append(Enforcement("python", "no", how))
            return found
    except (ConfigError, TransientError, ItemError) as error:
        return [Enforcement("sandbox", "no", f"none could be started: {error}")]
    finally:
        await backend.close()
