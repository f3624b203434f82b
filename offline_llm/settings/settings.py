"""What the offline model may get wrong, how it may misbehave, and how fast it answers."""

from typing import Annotated

from pydantic import Field

from offline_llm.server.misbehaviour import Misbehaviour
from offline_llm.settings.rates import (
    CLUMSY,
    AgentMistakes,
    ClaimsErrors,
    Clumsiness,
    JudgeErrors,
    RewriterErrors,
    SimulatorErrors,
    ToolMistakes,
    UserErrors,
)
from records.config import Config
from records.model_names import OFFLINE_MODEL


class OfflineSettings(Config):
    """Everything that decides an answer beside the request itself."""

    models: dict[str, Annotated[float, Field(ge=0.0)]] = Field(
        default={OFFLINE_MODEL: 1.0, f"{OFFLINE_MODEL}-exact": 0.0} | dict.fromkeys(CLUMSY, 1.0)
    )
    """Model names that are served, each with the factor on the mistakes of agent and user."""
    mistakes: AgentMistakes = AgentMistakes()
    clumsiness: dict[str, Clumsiness] = Field(default=CLUMSY)
    """Models that make calls that cannot be, on top of their mistakes as agents."""
    tool_mistakes: ToolMistakes = ToolMistakes()
    user_errors: UserErrors = UserErrors()
    judge_errors: JudgeErrors = JudgeErrors()
    claims_errors: ClaimsErrors = ClaimsErrors()
    simulator_errors: SimulatorErrors = SimulatorErrors()
    rewriter_errors: RewriterErrors = RewriterErrors()
    misbehave: Misbehaviour = Misbehaviour()
    latency_s: float = Field(default=0.0, ge=0.0, le=60.0)
    """Fixed part of the time to answer."""
    jitter_s: float = Field(default=0.0, ge=0.0, le=60.0)
    """Largest part that is drawn by the request's digest."""
    embedding_size: int = Field(default=256, ge=8, le=4096)
