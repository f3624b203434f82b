"""Earlier place of what extension files import; it is `synth.rubrics` now (docs/extending.md)."""

from synth.rubrics.criteria import Criterion, Strict

__all__ = ["Criterion", "Strict"]
