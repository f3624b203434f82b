"""The simulated user: it brings every wish once, in order, and then is done."""

import pytest

from offline_llm.settings.rates import UserErrors
from offline_llm.settings.settings import OfflineSettings
from tests.offline_llm.asking import ask_for

EXACT = OfflineSettings(user_errors=UserErrors(**dict.fromkeys(UserErrors.model_fields, 0.0)))
LIKE_EACH_OTHER = [
    "Please open a box of the cellar. The name is north. Then tell me the year.",
    "Please open a box of the cellar. The name is south. Then tell me the year.",
    "Please open a box of the cellar. The name is south west. Then tell me the year.",
]
APART = ["Please feed the hive.", "Then move the hive.", "Also, tell me its weight."]


@pytest.mark.parametrize("wishes", [LIKE_EACH_OTHER, APART, APART[:1], [*APART[:2], *APART[:2]]])
@pytest.mark.parametrize("style", ["brief and polite", "formal", "in a hurry", "curt"])
def test_every_wish_is_brought_once_and_in_order(wishes: list[str], style: str) -> None:
    numbered = "\n".join(f"{n}. {wish}" for n, wish in enumerate(wishes, 1))
    system = (
        f"## Persona\nStyle: {style}. Patience: after 3 questions.\n\n"
        f"## What you want\n{numbered}\n\n## What you know\n- name: north (say it at once)\n"
    )
    messages = [{"role": "system", "content": system}]
    said = [f"Hello. {wishes[0]}"]
    while len(said) < 9:
        messages.append({"role": "assistant", "content": said[-1]})
        messages.append({"role": "user", "content": "Done. Anything else?"})
        turn = ask_for("user_turn", messages, settings=EXACT)
        if turn["done"]:
            break
        said.append(turn["message"])
    assert len(said) == len(wishes)
    for text, wish in zip(said, wishes, strict=True):
        assert wish.casefold() in text.casefold()
