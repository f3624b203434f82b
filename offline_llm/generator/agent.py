"""Generator, job `agent`: the system prompt of an assistant, from its domain and tools."""

from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.reading.wording import phrase_of
from offline_llm.reading.words import joined, table
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_NAMES = table("Nora Felix Iris Otto Maya Leon Ada Hugo Vera Milo Ines Paul Lena Theo Rhea Owen")
_BEGINNINGS = (
    "You are {name}, the assistant for {title}.",
    "You are {name}. You serve the people who turn to {title}.",
    "You work as {name}, an assistant at {title}.",
)
_CAN = ("With your tools you can {things}.", "Your tools let you {things}.", "You can {things}.")
_MANNER = (
    "Your background: {expertise}. Your manner: {behaviour}. You are someone who {capability}.",
    "You are known as someone who {capability}. Your experience: {expertise}. Style: {behaviour}.",
    "You are one who {capability}. Keep this manner: {behaviour}. Your experience: {expertise}.",
)


def write_agent(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    found = sections(request)
    domain = json_of(found, "domain", {})
    tools = [t for t in json_of(found, "tools", []) if isinstance(t, dict)]
    wanted = {k: str(v) for k, v in json_of(found, "wanted", {}).items()}
    rng = rng_of(request.key, "agent")
    name = rng.choice(_NAMES)
    title = str(domain.get("title") or "this service")
    things = [str(phrase_of(str(t.get("name")), str(t.get("description")))) for t in tools[:6]]
    parts = [
        rng.choice(_BEGINNINGS).format(name=name, title=title),
        rng.choice(_CAN).format(things=joined(things, "or")) if things else "",
        rng.choice(_MANNER).format(
            expertise=wanted.get("expertise", "experienced"),
            behaviour=wanted.get("behaviour", "friendly and exact"),
            capability=wanted.get("capability", "solves what can be solved"),
        ),
    ]
    return {"name": f"{name}, {title}", "system_prompt": "\n".join(p for p in parts if p)}
