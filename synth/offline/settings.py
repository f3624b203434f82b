"""What the offline provider may get wrong, how it may misbehave, and how fast it answers.

Every rate is the chance per opportunity, in [0, 1], drawn by the digest of what the request says:
the same request meets the same fate in any process.
"""

from typing import Annotated

from pydantic import Field

from records.config import Config
from synth.offline.clumsy_rates import CLUMSY, Clumsiness
from synth.offline.rewriter_errors import RewriterErrors
from synth.offline.tools.slips import ToolMistakes
from synth.offline.user_slips import UserErrors
from synth.offline.world_errors import SimulatorErrors
from synth.openai_server.misbehaviour import Misbehaviour, Rate


class AgentMistakes(Config):
    """Mistakes of the agent. The first group usually costs the task, the second is recovered."""

    wrong_value: Rate = 0.03
    """Per changing call: one argument that is no identifier gets a wrong but valid value."""
    skips_step: Rate = 0.03
    """Per wish after the first of a conversation: answered as done without any call."""
    premature_end: Rate = 0.02
    """Per wish that needs a look-up: gives up after the first look-up and says it cannot."""
    claims_without_doing: Rate = 0.03
    """Per changing call: says that it is done and does not call."""
    leaves_out_result: Rate = 0.03
    """Per finished wish: the report names none of the values that the tool returned."""

    wrong_format: Rate = 0.14
    """Per call with a date, a number or a fixed choice: the first try spells one wrongly."""
    guesses_id: Rate = 0.12
    """Per identifier that must be looked up: first tried with the words the user said."""
    extra_call: Rate = 0.06
    """Per finished wish: one more read that nothing needs, before the report."""


class AspectRates(Config):
    """One rate for each kind of thing that a criterion asks about."""

    did: Rate
    said: Rate
    avoided: Rate
    other: Rate


class JudgeErrors(Config):
    """The judge's errors by what a criterion asks about, on top of what its rules get wrong."""

    false_accept: AspectRates = AspectRates(did=0.04, said=0.05, avoided=0.04, other=0.08)
    """Chance that a criterion which fails by rule is passed."""
    false_reject: AspectRates = AspectRates(did=0.03, said=0.04, avoided=0.02, other=0.05)
    """Chance that a criterion which passes by rule is failed."""


class ClaimsErrors(Config):
    """The errors of the judge of claims, for each sentence, on top of what its rules get wrong."""

    misses: Rate = 0.04
    """A sentence that the text does not say is found said."""
    blames: Rate = 0.01
    """A sentence that the text says is found absent."""


class OfflineSettings(Config):
    """Everything that decides an answer beside the request itself."""

    models: dict[str, Annotated[float, Field(ge=0.0)]] = Field(
        default={"template-policy": 1.0, "template-policy-exact": 0.0} | dict.fromkeys(CLUMSY, 1.0)
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
