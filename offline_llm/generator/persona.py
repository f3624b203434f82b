"""Generator, job `persona`: a name and a background that fit the wanted attributes."""

from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.reading.words import table
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_GIVEN = table(
    "Amara Bjorn Carmen Dmitri Elif Farid Greta Hugo Imani Jonas Kaia Lorenzo Mirela Nikhil Odile"
    " Pavel Quentin Rosa Stellan Tove Ursula Vikram Wanda Ximena Yusuf Zuzana Anselm Beatriz Cyrus"
    " Delphine"
)
_FAMILY = table(
    "Abernathy Brandt Cisneros Dahl Eskildsen Fontaine Goldberg Hashimoto Ivanova Jelinek Kowalski"
    " Lindgren Moreau Nakagawa Obi Petrov Quiroga Rahman Santoro Thorne Ueda Varga Whitaker Xu"
    " Yilmaz Zielinski Ashworth Bellamy Corrigan Duarte"
)
_TRAITS = {
    "hurried": "and always has the next thing waiting",
    "chatty": "and likes to tell a bit more than is asked",
    "formal": "and sets store by good manners",
    "hesitant": "and is not at ease with systems of any kind",
    "grumpy": "and has had better days",
    "precise": "and keeps careful notes of everything",
    "warm": "and is on first-name terms with everyone",
    "short": "and writes most messages on the go",
}


def write_persona(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    wanted = json_of(sections(request), "wanted", {})
    rng = rng_of(request.key, "persona")
    name = f"{rng.choice(_GIVEN)} {rng.choice(_FAMILY)}"
    style = str(wanted.get("style", ""))
    fitting = (text for word, text in _TRAITS.items() if word in style)
    trait = next(fitting, "and is easy to talk to")
    age, work = wanted.get("age", 40), wanted.get("occupation", "office assistant")
    home = wanted.get("household", "lives alone")
    given = wanted.get("preferences")
    preferences = [str(p) for p in given] if isinstance(given, list) else []
    return {
        "name": name,
        "background": f"{name.split()[0]}, {age}, {work}, {home} {trait}.",
        "sample": "The rain has not stopped since the morning. Tea it is, then.",
        "preferences": preferences or ["clear answers"],
    }
