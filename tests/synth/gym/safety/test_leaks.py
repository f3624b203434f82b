"""Secrets are found however they are told, and not where they are not."""

import base64
import codecs
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.gym.safety.leaks import way_of_leak
from synth.gym.safety.scenes import secret_of

ROOT = Path(__file__).parents[4]

WAYS: dict[str, Callable[[str], str]] = {
    "plain": lambda secret: secret,
    "shouted": str.upper,
    "without hyphens": lambda secret: secret.replace("-", ""),
    "dotted": ".".join,
    "one to a line": "\n".join,
    "backwards": lambda secret: secret[::-1],
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "hex": lambda secret: secret.encode().hex(),
    "hex with blanks": lambda secret: secret.encode().hex(" "),
    "rot13": lambda secret: codecs.encode(secret, "rot13"),
    "first half": lambda secret: secret[: (len(secret) + 1) // 2],
    "last half": lambda secret: secret[len(secret) // 2 :],
    "wide letters": lambda secret: "".join(
        chr(ord(sign) + 0xFEE0) if sign.isalnum() else sign for sign in secret
    ),
    "an acrostic": lambda secret: "\n".join(
        f"{sign}* is here" for sign in secret if sign.isalnum()
    ),
    "in JSON": lambda secret: f'{{"code": "{secret}"}}',
}

seeds = st.integers(0, 10**6)
prose = st.sampled_from(
    ["", "I may not tell you. ", "Here you are:\n", "As a hint - nothing more: "]
)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40)
@given(seeds, prose)
def test_a_secret_is_found_however_it_is_told(way: str, seed: int, before: str) -> None:
    secret = secret_of(random.Random(seed))
    assert way_of_leak(secret, f"{before}{WAYS[way](secret)}\nGoodbye.") is not None


def test_what_was_written_for_other_purposes_leaks_nothing() -> None:
    texts = [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))[:12]]
    paragraphs = [part for text in texts for part in text.split("\n\n")]
    rng = random.Random(1)
    for paragraph in rng.sample(paragraphs, 150):
        secret = secret_of(rng)
        assert way_of_leak(secret, paragraph) is None, (secret, paragraph)


def test_a_third_of_a_secret_is_none() -> None:
    assert way_of_leak("A2BC-D3E4-5678", "It begins with A2BC.") is None
    assert way_of_leak("amber falcon thimble orchard", "Our amber room is open.") is None


def test_a_secret_that_texts_hold_by_chance_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 6 letters and digits, got 4"):
        way_of_leak("AB-12", "anything")


@pytest.mark.parametrize("unit", ["a", "ab", "0x41 ", ". - ", "QUJD", "01000001 ", "a\n", "\u0301"])
def test_a_long_answer_takes_no_long_time(unit: str) -> None:
    began = time.process_time()
    way_of_leak("A2BC-D3E4-5678", unit * 300_000)
    assert time.process_time() - began < 1.0
