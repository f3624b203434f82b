"""One conversation: user, agent and tools in turns, journalled and replayable.

`environment` is the Gymnasium-like interface, `rollout` drives a model through it. Grading is not
here: `step` never asks a judge.
"""
