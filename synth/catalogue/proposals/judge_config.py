"""The settings of a run whose tools a judge may read: shared by evolution and written domains."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from synth.catalogue.proposals.schemas import MAX_TOOLS
from synth.engine.job_config import JobConfig, Role
from synth.llm.settings.config import RoleConfig


class DescribedConfig(JobConfig):
    """A run that makes tools whose descriptions a judge holds against what they do."""

    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {**JobConfig.ADDED_LATER, "described_together": 8, "repair_rounds": 1}
    )

    described_together: int = Field(default=8, ge=0, le=MAX_TOOLS)
    """Tools whose descriptions the judge holds against what they do, in one request. 0, or a judge
    that the offline model plays: it is not asked."""

    repair_rounds: int = Field(default=2, ge=0, le=5)
    """How often a tool, or a rule of a policy, that is not in order goes back to the generator with
    what is wrong with it: behind the first problem there may be another."""

    @property
    def judges_descriptions(self) -> bool:
        """Whether a model, and not the offline one, reads the descriptions of tools."""
        return self.described_together > 0 and not self.roles["judge"].is_offline

    @property
    def judged_together(self) -> int:
        """Tools of one request to the judge; 0 where it is not asked."""
        return self.described_together if self.judges_descriptions else 0

    def roles_asked(self) -> dict[Role, RoleConfig]:
        """The judge only where it is a model."""
        asked = self.judges_descriptions
        return {role: own for role, own in self.roles.items() if role != "judge" or asked}

    def identity(self) -> dict[str, Any]:
        """Without a judge that is not asked: runs were made before there was one, and their ids
        stay."""
        values = super().identity()
        if not self.judges_descriptions:
            values["roles"] = {n: own for n, own in values["roles"].items() if n != "judge"}
        return values
