"""The settings of runs that judge trajectories."""

from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

from pydantic import Field

from sandboxes.lending.places import SandboxesConfig
from synth.curation.settings.config import CurationConfig
from synth.engine.job_config import JobConfig, Role
from synth.judging.calibration import JudgingConfig
from synth.llm.settings.config import OFFLINE, RoleConfig
from synth.tasks.proof.extensions import ExtensionFile


class JudgedConfig(JobConfig):
    """What a run is told that judges trajectories."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = JobConfig.NOT_IDENTITY | {"sandboxes"}

    code: tuple[str, ...] = ("all",)
    """Built-in repositories and problem sets by name, `all` of them, or paths of definitions."""
    extensions: tuple[ExtensionFile, ...] = ()
    """Paths of Python files of your own that add kinds of criteria, and criteria to tasks."""
    judging: JudgingConfig = JudgingConfig()
    """How the judge is tried, and what it must reach for its word to count."""
    curation: CurationConfig = CurationConfig()
    """What is kept of the trajectories that pass their checks."""
    sandboxes: SandboxesConfig = SandboxesConfig()
    """Where code, repositories and servers run: on this machine, or on a cluster."""

    def sandboxes_in_use(self) -> AbstractAsyncContextManager[None]:
        return self.sandboxes.in_use()

    def live_sandboxes(self, here: int) -> int:
        return self.sandboxes.live_of(self.concurrency, here)

    @property
    def asks_embedder(self) -> bool:
        """Whether curation has passages embedded: where evaluations are named and somebody plays
        the role."""
        own = self.roles.get("embedder")
        has_model = own is not None and (
            own.base_url != OFFLINE or "embedder" in self.offline.roles
        )
        return bool(self.curation.decontamination.files) and has_model

    def roles_asked(self) -> dict[Role, RoleConfig]:
        asked = super().roles_asked()
        return asked if self.asks_embedder else {r: o for r, o in asked.items() if r != "embedder"}

    def identity(self) -> dict[str, Any]:
        """Without an embedder that is not asked: runs were made before there was one here."""
        values = super().identity()
        if not self.asks_embedder:
            roles = values["roles"]
            values["roles"] = {role: own for role, own in roles.items() if role != "embedder"}
        return values


class GradeConfig(JudgedConfig):
    """Grading what a dataset holds once more: by another judge, another rubric, newer checks."""

    KIND: ClassVar[str] = "grade"
    STAGES: ClassVar[tuple[str, ...]] = ("grading", "calibration", "curation")
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {
        "generator": RoleConfig(),
        "judge": RoleConfig(),
        "embedder": RoleConfig(),
    }

    name: str = Field(default="grade", pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    """Shown in the UI."""

    def roles_asked(self) -> dict[Role, RoleConfig]:
        """The generator writes the perturbed negatives that the judge is tried with, if any."""
        tried = self.judging.perturbed_share > 0
        asked = super().roles_asked()
        return {role: own for role, own in asked.items() if role != "generator" or tried}

    def identity(self) -> dict[str, Any]:
        """Without the generator where the offline model plays it: runs were made before there was
        one, and their ids stay."""
        values = super().identity()
        own = {role: own for role, own in values["roles"].items() if role != "generator"}
        if values["roles"]["generator"] == RoleConfig().identity():
            values["roles"] = own
        return values
