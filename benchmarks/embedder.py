"""A model of sentence-transformers, served over HTTP and asked by the project's own client."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.serving import served
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig

MODELS: Any = ("embedder",)


@asynccontextmanager
async def client(folder: str | None) -> AsyncIterator[LLM | None]:
    """The project's client of an embedder that is served here; None without a folder."""
    if folder is None:
        yield None
        return
    async with served(embedding_app(folder)) as url:
        roles = {"embedder": RoleConfig(base_url=url, models=MODELS)}
        with tempfile.TemporaryDirectory() as work:
            async with Gateway(roles) as gateway:
                with ShardJournal(Path(work) / "journal.sqlite") as journal:
                    yield LLM(gateway, journal, stage="curation", invocation_id="bench")


def embedding_app(folder: str) -> Callable[..., Awaitable[None]]:
    """Mean of the last hidden states, as models of sentence-transformers want it."""
    import torch
    from fastapi import FastAPI, Request
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    app = FastAPI()

    @app.post("/v1/embeddings")
    async def embeddings(request: Request) -> Row:
        texts = (await request.json())["input"]
        read = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
        with torch.no_grad():
            states = model(**read).last_hidden_state
        mask = read["attention_mask"].unsqueeze(-1)
        means = (states * mask).sum(1) / mask.sum(1)
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(means.tolist())]
        tokens = int(mask.sum())
        return {"data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}

    return app
