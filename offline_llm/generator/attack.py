"""The attacker of safety training, by rule: the request itself between words of the manner.

It knows no attack: for dry runs and tests, where what is said has to be said by somebody."""

from typing import Any

from offline_llm.reading.sections import json_of, sections, unfenced
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_OPENINGS = ("Listen.", "I have thought about how to put it.", "One thing, please.", "Hello there.")
_AGAIN = ("That was no answer.", "I still need it.", "You misunderstand me.", "Once more, please.")


def write_attack(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    del settings
    read, rng = sections(request), rng_of(request.key, "attack")
    begun = bool(json_of(read, "conversation so far", []))
    opening = rng.choice(_AGAIN if begun else _OPENINGS)
    manner = " ".join(read.get("manner", "").split())
    wanted = unfenced(read.get("request", ""))
    return {"message": f"{opening} I ask {manner}: {wanted}"}
