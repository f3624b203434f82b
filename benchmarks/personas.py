"""Can a reader tell which simulated user wrote a message?

    python -m benchmarks.personas FOLDER --roles FILE [--personas 40] [--writers 20]

Makes personas, lets some of them write three messages each in one conversation that is the same for
all, and asks a judge of each message which of four personas wrote it. The judge is shown neither
names nor samples. FILE is TOML with the tables `generator`, `user` and `judge`. FOLDER keeps the
answers, `personas.jsonl`, `turns.jsonl` and `judged.jsonl`. Beside the judge's accuracy stands that
of code, which gives a message to whoever's other messages share most of its character 3-grams.
"""

import argparse
import asyncio
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.asking import asking, roles_of, write_lines
from records.digest import digest
from records.seeds import rng_of
from records.tables.schemas import Row
from synth.episode.users.user import USER_TURN, conversation_for_user
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import render
from synth.render.intervals import wilson
from synth.tasks.agents.personas import make_persona, plan_personas

CANDIDATES = 4
SEED = 11
WISHES = [
    "Have the parcel brought on Saturday instead of Thursday and be told whether that is done.",
    "Be told whether the parcel may be left with a neighbour.",
]
FACTS = [
    {"label": "parcel number", "value": "PX-48213", "when": "asked"},
    {"label": "street", "value": "14 Mill Lane", "when": "asked"},
    {"label": "when Saturday cannot be had", "value": "Monday morning", "when": "asked"},
]
HEARD = (
    "I can help with that. Could you tell me the number of the parcel and the street it goes to?",
    "Thank you. Nothing is delivered in your street on Saturdays, I am afraid: there is Friday"
    " evening or Monday morning. Which do you want? And is there anything else?",
)
"""What the assistant says after the first and the second message, to everybody."""

SHOWN = (
    "background", "age", "household", "occupation", "place", "country", "mood", "knowledge",
    "language", "language_level", "communication_style", "message_length", "habits", "preferences",
)  # fmt: skip
JUDGE = """Four people are described below, and one of them wrote the message at the end, in a chat
with a parcel service about a matter that all four have. Say which, by its number. Matter and
answers are the same for all: only the way of writing tells.

## People
{people}

## Message
{message}

Answer with a JSON object: `number`, and `reason` in one sentence."""
VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "integer", "minimum": 1, "maximum": CANDIDATES},
        "reason": {"type": "string"},
    },
    "required": ["number", "reason"],
    "additionalProperties": False,
}


class WrittenTurn(NamedTuple):
    persona_id: str
    turn: int
    """From 0."""
    text: str


class JudgedTurn(NamedTuple):
    persona_id: str
    turn: int
    candidates: tuple[str, ...]
    """Ids of personas in the order in which they were shown."""
    chosen: str
    reason: str

    @property
    def right(self) -> bool:
        return self.chosen == self.persona_id


async def personas_of(llm: LLM, count: int, generator: RoleConfig) -> list[Row]:
    plans = plan_personas(seed=SEED, count=count, generator=generator)
    return await asyncio.gather(*(make_persona(p, llm, generator=generator) for p in plans))


async def turns_of(llm: LLM, persona: Row) -> list[WrittenTurn]:
    """Three messages, each after those before it."""
    brief = {"relation": "", "situation": "", "wishes": WISHES, "facts": FACTS}
    prompt = render("user_turn", persona=persona, own_tools=[], **brief)
    messages: list[dict[str, Any]] = []
    found: list[WrittenTurn] = []
    for turn in range(len(HEARD) + 1):
        said = await llm.structured(
            "user",
            [*prompt.messages, *conversation_for_user(messages)],
            item=persona["persona_id"],
            step=f"user-{turn}",
            name="user_turn",
            schema=USER_TURN,
        )
        found.append(WrittenTurn(persona["persona_id"], turn, said["message"].strip()))
        messages.append({"role": "user", "content": said["message"]})
        messages += [{"role": "assistant", "content": text} for text in HEARD[turn : turn + 1]]
    return found


def candidates_of(turn: WrittenTurn, writers: Sequence[str]) -> tuple[str, ...]:
    """The writer and three others in a drawn order."""
    rng = rng_of(digest("candidates", turn.persona_id, turn.turn), "benchmark")
    others = rng.sample([w for w in sorted(writers) if w != turn.persona_id], CANDIDATES - 1)
    shown = [turn.persona_id, *others]
    rng.shuffle(shown)
    return tuple(shown)


async def judged(llm: LLM, turn: WrittenTurn, personas: Mapping[str, Row]) -> JudgedTurn:
    candidates = candidates_of(turn, list(personas))
    people = "\n\n".join(
        f"{n}. " + json.dumps({k: personas[p][k] for k in SHOWN}, ensure_ascii=False)
        for n, p in enumerate(candidates, 1)
    )
    answer = await llm.structured(
        "judge",
        [{"role": "user", "content": JUDGE.format(people=people, message=turn.text)}],
        item=digest(turn.persona_id, turn.turn),
        step="judge",
        name="writer",
        schema=VERDICT,
    )
    chosen = candidates[answer["number"] - 1]
    return JudgedTurn(turn.persona_id, turn.turn, candidates, chosen, answer["reason"])


def by_code(turn: WrittenTurn, turns: Sequence[WrittenTurn], candidates: Sequence[str]) -> str:
    """The candidate whose other messages are nearest by character 3-grams (cosine)."""
    own = _grams(turn.text)

    def likeness(persona: str) -> float:
        texts = (t.text for t in turns if t.persona_id == persona and t.turn != turn.turn)
        return _cosine(own, _grams(" ".join(texts)))

    return max(candidates, key=likeness)


def report(turns: Sequence[WrittenTurn], verdicts: Sequence[JudgedTurn]) -> str:
    coded = [
        by_code(turn, turns, verdict.candidates) == turn.persona_id
        for turn, verdict in zip(turns, verdicts, strict=True)
    ]
    lines = [f"{len(turns)} messages of {len({t.persona_id for t in turns})} personas"]
    for name, right in (("judge", [v.right for v in verdicts]), ("code", coded)):
        low, high = wilson(sum(right), len(right))
        lines.append(
            f"{name}: {sum(right)} of {len(right)} given to their writer "
            f"({sum(right) / len(right):.1%}, 95% interval {low:.1%} to {high:.1%}; "
            f"by chance {1 / CANDIDATES:.0%})"
        )
    return "\n".join(lines)


def _grams(text: str) -> Counter[str]:
    return Counter(text[i : i + 3] for i in range(len(text) - 2))


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    lengths = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(n * b[gram] for gram, n in a.items()) / lengths if lengths else 0.0


async def measure(folder: Path, roles: dict[str, RoleConfig], count: int, writers: int) -> str:
    async with asking(roles, folder, "benchmark") as llm:
        personas = await personas_of(llm, count, roles["generator"])
        write_lines(folder / "personas.jsonl", personas)
        writing = {row["persona_id"]: row for row in personas[:writers]}
        written = await asyncio.gather(*(turns_of(llm, row) for row in writing.values()))
        turns = [turn for own in written for turn in own]
        write_lines(folder / "turns.jsonl", [turn._asdict() for turn in turns])
        shuffled = rng_of(digest("order", SEED), "benchmark").sample(turns, len(turns))
        asked = await asyncio.gather(*(judged(llm, turn, writing) for turn in shuffled))
        verdicts = sorted(asked, key=lambda v: (list(writing).index(v.persona_id), v.turn))
        write_lines(folder / "judged.jsonl", [v._asdict() for v in verdicts])
    return report(turns, verdicts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--roles", type=Path, required=True, help="TOML file with three roles")
    parser.add_argument("--personas", type=int, default=40, help="to be made")
    parser.add_argument("--writers", type=int, default=20, help="of them, who write")
    args = parser.parse_args()
    if not CANDIDATES <= args.writers <= args.personas:
        parser.error(f"--writers is from {CANDIDATES} to the number of personas")
    print(asyncio.run(measure(args.folder, roles_of(args.roles), args.personas, args.writers)))


if __name__ == "__main__":
    main()
