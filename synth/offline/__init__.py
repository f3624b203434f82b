"""The embedded provider: OpenAI's protocol answered by rule, for runs without any model."""

from synth.offline.app import create_app
from synth.offline.settings import OfflineSettings

__all__ = ["OfflineSettings", "create_app"]
