"""What a user wants: goals drawn from a state, with the facts that must be known to reach them.

Here belong drawing of goals, their arguments and their effects, and the rubric that follows from
them. Whether a plan reaches a goal is settled in `synth.tasks.proof`.
"""

from synth.tasks.goals.goals import Draft

__all__ = ["Draft"]
