"""Rubrics: criteria, the kinds that code checks, what they check, the reward.

A check sees what an episode left behind and nothing of how it was planned. What the judge decides
is in `synth.judging`.
"""
