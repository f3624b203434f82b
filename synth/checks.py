"""Earlier place of what extension files import; it is `synth.rubrics` now (docs/extending.md)."""

from synth.rubrics.episode import Episode, Verdict
from synth.rubrics.kinds import Kind

__all__ = ["Episode", "Kind", "Verdict"]
