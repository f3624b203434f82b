"""Earlier place of what extension files import; now `synth.tasks.proof` (docs/extending.md)."""

from synth.tasks.proof.extensions import Extension

__all__ = ["Extension"]
