"""What the offline simulator may get wrong on purpose."""

from records.config import Config
from synth.openai_server.misbehaviour import Rate


class SimulatorErrors(Config):
    """Mistakes of the simulator on calls that change something, on top of what its rules miss."""

    forgets_change: Rate = 0.04
    """The answer sounds right and the patch is empty."""
    wrong_field: Rate = 0.04
    """One value that is set is another than it should be."""
    invalid_patch: Rate = 0.06
    """The first answer's patch names an entity that there is not."""
