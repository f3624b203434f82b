"""What each role of the offline model gets wrong on purpose, and how often.

Every rate is the chance per opportunity, in [0, 1], drawn by the digest of what the request says.
"""

from offline_llm.server.misbehaviour import Rate
from records.config import Config
from records.model_names import OFFLINE_MODEL


class AgentMistakes(Config):
    """Mistakes of the agent. The first group usually costs the task, the second is recovered."""

    wrong_value: Rate = 0.03
    """Per changing call: one argument that is no identifier gets a wrong but valid value."""
    skips_step: Rate = 0.03
    """Per goal after the first of a conversation: answered as done without any call."""
    premature_end: Rate = 0.02
    """Per goal that needs a look-up: gives up after the first look-up and says it cannot."""
    claims_without_doing: Rate = 0.03
    """Per changing call: says that it is done and does not call."""
    leaves_out_result: Rate = 0.03
    """Per finished goal: the report names none of the values that the tool returned."""

    wrong_format: Rate = 0.14
    """Per call with a date, a number or a fixed choice: the first try spells one wrongly."""
    guesses_id: Rate = 0.12
    """Per identifier that must be looked up: first tried with the words the user said."""
    extra_call: Rate = 0.06
    """Per finished goal: one more read that nothing needs, before the report."""


class Clumsiness(Config):
    """What small models do and hosted ones hardly ever. Data for small students shows how such
    calls are put right; nothing is learnt from the calls themselves."""

    unknown_tool: Rate = 0.0
    """Per goal: at the call or question that it comes to, first a call of a tool that is not
    there, named after two that are."""
    leaves_out_argument: Rate = 0.0
    """Per goal: its call is first made without an argument that the tool requires, be that
    known or still to be asked for."""


CLUMSY = {f"{OFFLINE_MODEL}-clumsy": Clumsiness(unknown_tool=0.08, leaves_out_argument=0.08)}
"""Models that are clumsy, and how."""


class UserErrors(Config):
    """Mistakes of the simulated user, kept small: they spoil tasks that the agent could do."""

    wrong_fact: Rate = 0.01
    """Per fact said: one digit or letter of it is wrong."""
    ends_early: Rate = 0.005
    """Per turn with goals left: thanks and leaves."""
    leaks: Rate = 0.003
    """Per turn, like those below: shows its instructions."""
    plays_agent: Rate = 0.003
    """Speaks as the one who serves."""
    repeats: Rate = 0.003
    """Says its last words again."""
    wishes_again: Rate = 0.003
    """Brings up a goal that was dealt with."""
    invents: Rate = 0.003
    """Adds a fact that it was not given."""


class ToolMistakes(Config):
    """Mistakes of the generator in the tools it writes, each a chance per tool. The proof refuses
    such a tool, and the repair round mends it."""

    misspelt_field: Rate = 0.02
    """An expression names a field that the entity does not have."""
    idle_parameter: Rate = 0.02
    """A parameter that nothing reads."""
    doubled_condition: Rate = 0.02
    """A precondition a second time, under another error, which can never happen."""
    idle_effect: Rate = 0.02
    """An update that also sets a field to the value that it has."""


class JudgeErrors(Config):
    """The judge's errors, once for each judgement, on top of what its rules get wrong."""

    false_accept: Rate = 0.05
    """Chance that an episode which fails by rule is passed, in everything."""
    false_reject: Rate = 0.04
    """Chance that an episode which passes by rule is failed, in one thing."""


class ClaimsErrors(Config):
    """The errors of the judge of claims, for each sentence, on top of what its rules get wrong."""

    misses: Rate = 0.04
    """A sentence that the text does not say is found said."""
    blames: Rate = 0.01
    """A sentence that the text says is found absent."""


class SimulatorErrors(Config):
    """Mistakes of the simulator on calls that change something, on top of what its rules miss."""

    forgets_change: Rate = 0.04
    """The answer sounds right and the patch is empty."""
    wrong_field: Rate = 0.04
    """One value that is set is another than it should be."""
    invalid_patch: Rate = 0.06
    """The first answer's patch names an entity that there is not."""


class RewriterErrors(Config):
    """Chance of each mistake per rewritten part, drawn by the request; at most one in a part."""

    drops_sentence: Rate = 0.01
    """A sentence is left out, where there are several."""
    changes_number: Rate = 0.01
    """A number becomes another, in words or in a formula."""
    invents_sentence: Rate = 0.01
    """A statement is added that the part does not make."""
    negates: Rate = 0.005
    """A statement becomes its opposite."""
    copies: Rate = 0.005
    """The part comes back as it is."""
