"""The offline model is no language model. It is given the HTTP request and nothing else; what the
rules of a role cannot do, it fails at like a model would."""

from functools import partial

from offline_llm.jobs import answer_of
from offline_llm.server.server import OpenAIServer
from offline_llm.settings.settings import OfflineSettings


def create_app(settings: OfflineSettings | None = None) -> OpenAIServer:
    settings = settings or OfflineSettings()
    return OpenAIServer(
        partial(answer_of, settings=settings),
        list(settings.models),
        misbehave=settings.misbehave,
        latency_s=settings.latency_s,
        jitter_s=settings.jitter_s,
        embedding_size=settings.embedding_size,
    )
