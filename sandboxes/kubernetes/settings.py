"""How sandboxes run on a cluster: what a configuration says about it, field by field."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from records.config import Config

NAME = r"^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$"
"""A name of an object of Kubernetes."""

PREFIX = "synth.dev/"
"""In front of every label and annotation of ours."""

OURS = ("owner", "pool", "sandbox", "egress", "template", "token", "linger-s")
"""Of Pods and claims, after the prefix: settings may not take their place."""


class Toleration(Config):
    """A taint of nodes that sandboxes put up with."""

    key: str | None = None
    """The taint's key; None with operator Exists is every taint."""

    operator: Literal["Exists", "Equal"] = "Equal"
    """Whether the taint need only be there, or have the value too."""

    value: str | None = None
    """The taint's value, for operator Equal."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """None is every effect."""


class KubernetesSettings(Config):
    """Where a call runs is not what a row says, so that none of this is part of an identity."""

    def identity(self) -> dict[str, Any]:
        return {}

    namespace: str = Field(default="synth-sandboxes", pattern=NAME)
    """Where all objects are made. It has to be there (`deploy/kubernetes` makes it)."""

    kubeconfig: str | None = None
    """File that says where the API server is and who we are. None: the service account of the Pod
    that this runs in, or else $KUBECONFIG or ~/.kube/config."""

    context: str | None = None
    """Context of the kubeconfig; None is its current one."""

    agent_sandbox: Literal["auto", "require", "off"] = "auto"
    """Whether sandboxes are claims of kubernetes-sigs/agent-sandbox, in its version v1beta1.
    `auto`: where the cluster has it, else plain Pods; `require`: refused without it; `off`: plain
    Pods."""

    image: str = Field(default="agentic-synth-sandbox:1", min_length=1)
    """Image of every sandbox: what programs find inside beside what templates show them."""

    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When a node pulls it anew, as Kubernetes has it."""

    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets of the namespace by which images are pulled."""

    python: str | None = "/opt/python/bin/python3"
    """Path of a Python from 3.9 in the image, by which the agent runs. None: the image has none,
    and an init container copies that of `agent_image` to /opt/python."""

    agent_image: str = Field(default="agentic-synth-agent:1", min_length=1)
    """Image with a relocatable Python in /opt/python, and nothing else; used where `python` is
    None."""

    carry_python: bool = False
    """Send this machine's own Python (its `sys.base_prefix`) into every sandbox, as the templates'
    files are. Slow and large: only where neither the image nor `agent_image` has the same version
    at the path that our programs name (/opt/python/bin/python3.X, or /usr/bin/python3.X for a
    system's Python)."""

    runtime_class: str | None = Field(default=None, pattern=NAME)
    """RuntimeClass of every sandbox. None: the cluster's first one whose handler is gVisor's or
    Kata's."""

    allow_bare_runtime: bool = False
    """Run programs that nobody trusts where there is no gVisor or Kata: then a bug of the node's
    kernel is a way out of a sandbox. Refused without."""

    own_users: bool = False
    """Give each Pod users of its own (`hostUsers: false`: Kubernetes 1.33, Linux 6.3). Only then,
    or with Kata, the template's limit of processes is set; without, the kubelet's podPidsLimit
    holds."""

    node_selector: dict[str, str] = Field(default_factory=dict)
    """Labels that a sandbox's node must have."""

    tolerations: tuple[Toleration, ...] = ()
    """Taints that a sandbox's node may have."""

    priority_class: str | None = Field(default=None, pattern=NAME)
    """PriorityClass of every sandbox; None is the cluster's default."""

    labels: dict[str, str] = Field(default_factory=dict)
    """More labels of every Pod."""

    annotations: dict[str, str] = Field(default_factory=dict)
    """More annotations of every Pod."""

    scratch_medium: Literal["Memory", "disk"] = "Memory"
    """Where /workspace and /tmp are. `Memory`: they are full at their size to the byte, and count
    as the sandbox's memory; `disk`: a sandbox that fills them beyond it is evicted."""

    warm: int = Field(default=2, ge=0)
    """Ready Pods kept for each template in use, beside those that are lent. None are for templates
    that show what is used once, as those in which one candidate's tests run."""

    warm_templates: int = Field(default=32, ge=1)
    """Templates for which Pods are kept ready. Beyond, the one used longest ago gives up its
    own."""

    creations_per_s: float = Field(default=50.0, gt=0)
    """Claims or Pods made in the long run. A kube-scheduler with its usual settings places about 70
    Pods in a second."""

    creations_burst: int = Field(default=50, ge=1)
    """Of them, at once."""

    streams_at_once: int = Field(default=64, ge=1)
    """Streams being opened at the same time: after an API server's restart all are opened again."""

    stream_ping_s: float = Field(default=30.0, gt=0)
    """Between two pings on an idle stream, so that nothing on the way closes it."""

    linger_s: float = Field(default=120.0, ge=0, le=86400)
    """How long every sandbox outlives its stream, at least: an API server's restart may take so
    long. A template's own `linger_s` counts where it is longer."""

    ready_s: float = Field(default=300.0, gt=0)
    """For a claim or Pod to be ready. Then it counts as failed, with the reason that the cluster
    gives (no node fits, quota, image)."""

    gone_s: float = Field(default=60.0, gt=0)
    """For a sandbox that is closed to be gone."""

    heartbeat_s: float = Field(default=10.0, gt=0)
    """Between two renewals of the Lease by which others see that this owner lives."""

    owner_dead_s: float = Field(default=60.0, gt=0)
    """An owner whose Lease is not renewed for so long is dead: other owners remove what it left."""

    claim_s: float = Field(default=3600.0, ge=60)
    """A claim is given so long to live, and renewed at half of it while its owner lives: then the
    cluster removes it by itself."""

    deadline_s: int = Field(default=86400, ge=60)
    """`activeDeadlineSeconds`: no Pod lives longer, waiting ones included."""

    stream_cpus: float = Field(default=0.05, gt=0, le=4)
    """Of the second container of each Pod, in which streams to its agent end."""

    stream_memory_mb: int = Field(default=96, ge=32)
    """Of the same."""

    scratch_disk_mb: int = Field(default=64, ge=16)
    """Ephemeral storage of each container beside what is brought into it: its logs."""

    egress_proxy: str | None = Field(default=None, pattern=r"^[^\s:/]+:\d{1,5}$")
    """`address:port` of the egress proxy in the cluster. A server that declares hosts runs in a Pod
    with the label that the network policy lets reach it; without this setting it is refused. An IP
    address (of the Service), since Pods may resolve no names."""

    egress_key_env: str = Field(default="SYNTH_EGRESS_KEY", min_length=1)
    """Name of the environment variable that holds the proxy's key (the Secret `synth-egress-key`):
    with it each server shows the proxy which hosts it declares."""

    @model_validator(mode="after")
    def _leave_ours_alone(self) -> Self:
        for where in ("labels", "annotations"):
            for key in getattr(self, where):
                if key.removeprefix(PREFIX) in OURS and key.startswith(PREFIX):
                    raise ValueError(f"{where}: {key} is one of ours, choose another name")
        return self

    @model_validator(mode="after")
    def _heartbeat_in_time(self) -> Self:
        if self.owner_dead_s < 3 * self.heartbeat_s:
            raise ValueError(
                "owner_dead_s is at least three times heartbeat_s, so that a late renewal is no "
                f"death, got {self.owner_dead_s:g} and {self.heartbeat_s:g}"
            )
        return self
