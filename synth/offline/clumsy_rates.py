"""How often an agent makes calls that cannot be."""

from records.config import Config
from synth.openai_server.misbehaviour import Rate


class Clumsiness(Config):
    """What small models do and hosted ones hardly ever. Data for small students shows how such
    calls are put right; nothing is learnt from the calls themselves."""

    unknown_tool: Rate = 0.0
    """Per wish: at the call or question that it comes to, first a call of a tool that is not there,
    named after two that are."""
    leaves_out_argument: Rate = 0.0
    """Per wish: its call is first made without an argument that the tool requires, be that known or
    still to be asked for."""


CLUMSY = {"template-policy-clumsy": Clumsiness(unknown_tool=0.08, leaves_out_argument=0.08)}
"""Models that are clumsy, and how."""
