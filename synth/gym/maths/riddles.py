"""Riddles whose solution is shown to be the only one, by trying out everything that may be meant,
and messages in Morse code (ITU-R M.1677).

Riddles of wit, as people tell them, have no generator: they come in as rows (family `maths`).
"""

import random
from collections.abc import Callable, Sequence
from math import isqrt
from typing import NamedTuple

from synth.gym.maths.own_question import OwnQuestion

WORDS = (
    *("apple", "beach", "bread", "chair", "cloud", "crown", "dream", "eagle", "earth", "flame"),
    *("fruit", "ghost", "glass", "grape", "heart", "horse", "house", "knife", "lemon", "light"),
    *("money", "mouse", "music", "night", "ocean", "onion", "paint", "paper", "party", "peach"),
    *("piano", "plant", "queen", "radio", "river", "robot", "scarf", "sheep", "shirt", "snake"),
    *("spoon", "stone", "storm", "sugar", "table", "tiger", "train", "water", "whale", "wheel"),
)
"""All of five letters."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth")


class _Clue(NamedTuple):
    words: str
    holds: Callable[[int], bool]


def letter_riddle(rng: random.Random, level: int) -> OwnQuestion:
    """`My first is in ..., but not in ...`: the word is the only one of a list of 4 (two more each
    level, up to 20) that fits every line."""
    while True:
        listed = rng.sample(WORDS, min(4 + 2 * level, 20))
        word = listed[0]
        clues = [_two_words(rng, letter) for letter in word]
        if all(clue is not None for clue in clues):
            pairs = [clue for clue in clues if clue is not None]
            fitting = [other for other in listed if _fits(other, pairs)]
            if fitting == [word]:
                break
    lines = [
        f"My {ordinal} is in {inside} but not in {outside}."
        for ordinal, (inside, outside) in zip(_ORDINALS, pairs, strict=True)
    ]
    question = (
        "\n".join(lines)
        + f"\nI am one of these words: {', '.join(sorted(listed))}. Which one am I?"
    )
    return OwnQuestion(question, word, "words")


def _two_words(rng: random.Random, letter: str) -> tuple[str, str] | None:
    """One with the letter and one without, that have at least one other letter in common."""
    inside = [word for word in WORDS if letter in word]
    first = rng.choice(inside)
    outside = [w for w in WORDS if letter not in w and set(w) & set(first)]
    return (first, rng.choice(outside)) if outside else None


def _fits(word: str, pairs: Sequence[tuple[str, str]]) -> bool:
    return all(
        letter in inside and letter not in outside
        for letter, (inside, outside) in zip(word, pairs, strict=True)
    )


def number_riddle(rng: random.Random, level: int) -> OwnQuestion:
    """`I am a whole number of two digits ...`: three digits from level 1 on, four from level 3 on.
    As many clues, each of which leaves fewer, as it takes until one number is left."""
    digits = 2 if level == 0 else 3 if level < 3 else 4
    low, high = 10 ** (digits - 1), 10**digits
    while True:
        number = rng.randrange(low, high)
        clues = _clues(number)
        rng.shuffle(clues)
        left, used = list(range(low, high)), list[str]()
        for clue in clues:
            kept = [other for other in left if clue.holds(other)]
            if len(kept) < len(left):
                left = kept
                used.append(clue.words)
            if len(left) == 1:
                break
        if left == [number]:
            break
    spelled = {2: "two", 3: "three", 4: "four"}[digits]
    lines = [f"I am a whole number of {spelled} digits.", *used, "Which number am I?"]
    return OwnQuestion("\n".join(lines), str(number), "number")


def _clues(number: int) -> list[_Clue]:
    """What is true of the number, the last of them of no other."""
    total, first, last = _sum(number), str(number)[0], number % 10
    divisors = [d for d in (3, 4, 5, 7, 9, 11, 13) if number % d == 0]
    remainders = [d for d in (6, 7, 8, 9, 11) if number % d]
    clues = [
        _Clue(f"My digits add up to {total}.", lambda n: _sum(n) == total),
        _Clue(f"My first digit is {first}.", lambda n: str(n)[0] == first),
        _Clue(f"My last digit is {last}.", lambda n: n % 10 == last),
        *(_Clue(f"I am a multiple of {d}.", lambda n, d=d: n % d == 0) for d in divisors),
        *(
            _Clue(
                f"Divided by {d} I leave a remainder of {number % d}.",
                lambda n, d=d: n % d == number % d,
            )
            for d in remainders
        ),
    ]
    if isqrt(number) ** 2 == number:
        clues.append(_Clue("I am a square.", lambda n: isqrt(n) ** 2 == n))
    if len(set(str(number))) == len(str(number)):
        clues.append(
            _Clue("No digit of mine comes twice.", lambda n: len(set(str(n))) == len(str(n)))
        )
    return clues


def _sum(number: int) -> int:
    return sum(map(int, str(number)))


MORSE = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        (
            *(".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-.."),
            *("--", "-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-"),
            *("-.--", "--.."),
            *("-----", ".----", "..---", "...--", "....-"),
            *(".....", "-....", "--...", "---..", "----."),
        ),
        strict=True,
    )
)
"""Letter or digit -> its signs."""

MESSAGE_WORDS = (
    *("ANCHOR", "BRIDGE", "CABIN", "DAWN", "EAGLE", "FERRY", "GARDEN", "HARBOUR", "ISLAND"),
    *("JOURNEY", "KEEL", "LANTERN", "MEADOW", "NORTH", "OCEAN", "PILOT", "QUAY", "RIVER", "SAIL"),
    *("TOWER", "UMBRELLA", "VALLEY", "WINTER", "YACHT", "ZENITH", "SEND", "HELP", "MEET", "BRING"),
    *("WAIT", "LEAVE", "STORM", "FOG", "EAST", "WEST", "SOUTH", "LIGHT", "ROPE", "COAST", "MILL"),
)


def morse_decoding(rng: random.Random, level: int) -> OwnQuestion:
    """Two words at level 0 and one more a level; from level 2 on one word is a number."""
    words = rng.sample(MESSAGE_WORDS, min(2 + level, 12))
    if level >= 2:
        words[rng.randrange(len(words))] = str(rng.randrange(10, 10_000))
    coded = " / ".join(" ".join(MORSE[letter] for letter in word) for word in words)
    question = (
        f"Decode this Morse code. Letters are apart by a space, words by a slash:\n\n{coded}\n\n"
        "Answer with the words, with a space between them."
    )
    return OwnQuestion(question, " ".join(words), "words")
