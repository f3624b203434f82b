"""Conversations for readers who do not know which are planted, and what their reading comes to.

    python -m benchmarks.blind_reading make CONVERSATIONS FOLDER [--own 37] [--foreign FILE]
    python -m benchmarks.blind_reading score FOLDER ANSWERS

CONVERSATIONS and FILE hold one JSON object a line with `messages`, and the first besides `accepted`
and `calls` (`tests/recorded/played.jsonl` is such a file). Five that are not among the own are
spoiled, each in one way: an act that is claimed and was not made, an answer or a turn of another
conversation, turns changed over, another number. FOLDER gets `conversations.txt`, for the reader,
and `key.json`, which the reader does not see. ANSWERS is a JSON object by number ("T07") of what is
wrong with a conversation, such as {"T07": "planted"}; one that is not named is fine.
"""

import argparse
import copy
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synth.render.intervals import wilson

Message = dict[str, Any]
RESULT_CHARS = 230


def answers_in(messages: list[Message]) -> list[int]:
    """Places of the assistant's words without calls."""
    return [
        i
        for i, m in enumerate(messages)
        if m["role"] == "assistant" and m.get("content") and not m.get("tool_calls")
    ]


def turns_in(messages: list[Message]) -> list[int]:
    """Places of the user's turns after the first."""
    return [i for i, m in enumerate(messages) if m["role"] == "user"][1:]


def without_act(messages: list[Message], one: Message, rng: random.Random, _: Message) -> bool:
    writes = {c["name"] for c in one["calls"] if c["state_diff"] not in ([], "[]")}
    for message in reversed(messages):
        made = [c["id"] for c in message.get("tool_calls") or () if c["function"]["name"] in writes]
        if made:
            message["tool_calls"] = [c for c in message["tool_calls"] if c["id"] not in made]
            messages[:] = [
                m
                for m in messages
                if m.get("tool_call_id") not in made
                and (m is not message or m["tool_calls"] or m.get("content"))
            ]
            return True
    return False


def foreign_answer(
    messages: list[Message], one: Message, rng: random.Random, other: Message
) -> bool:
    said = [other["messages"][i]["content"] for i in answers_in(other["messages"])]
    places = answers_in(messages)
    if said and places:
        messages[rng.choice(places)]["content"] = rng.choice(said)
    return bool(said and places)


def foreign_turn(messages: list[Message], one: Message, rng: random.Random, other: Message) -> bool:
    said = [other["messages"][i]["content"] for i in turns_in(other["messages"])]
    places = turns_in(messages)
    if said and places:
        messages[rng.choice(places)]["content"] = rng.choice(said)
    return bool(said and places)


def turns_changed_over(
    messages: list[Message], one: Message, rng: random.Random, other: Message
) -> bool:
    places = turns_in(messages)
    if len(places) < 2:
        return False
    a, b = (messages[i] for i in rng.sample(places, 2))
    a["content"], b["content"] = b["content"], a["content"]
    return True


def another_number(
    messages: list[Message], one: Message, rng: random.Random, other: Message
) -> bool:
    for i in reversed(answers_in(messages)):
        found = re.findall(r"\d+", messages[i]["content"])
        if found:
            old = rng.choice(found)
            new = str(int(old) + rng.choice((3, 7, 11)))
            messages[i]["content"] = messages[i]["content"].replace(old, new, 1)
            return True
    return False


SPOILING: tuple[Callable[..., bool], ...] = (
    without_act,
    foreign_answer,
    foreign_turn,
    turns_changed_over,
    another_number,
)


def spoiled(one: Message, first: int, rng: random.Random, others: list[Message]) -> list[Message]:
    """In the way of this number, or the next one that the conversation allows."""
    for way in (*SPOILING[first:], *SPOILING[:first]):
        messages = copy.deepcopy(one["messages"])
        if way(messages, one, rng, rng.choice(others)):
            return messages
    raise ValueError("a conversation without a number or a second turn cannot be spoiled")


def as_text(number: str, messages: list[Message]) -> str:
    lines = [f"===== {number}"]
    for m in messages:
        words = " / ".join((m.get("content") or "").split("\n")).strip()
        if m["role"] == "tool":
            lines.append(f"  < {words[:RESULT_CHARS]}")
        elif m["role"] != "system" and words:
            lines.append(f"{m['role'][0].upper()}: {words}")
        for call in m.get("tool_calls") or ():
            lines.append(f"  > {call['function']['name']} {call['function']['arguments']}")
    return "\n".join(lines)


def make(args: argparse.Namespace) -> None:
    rng = random.Random(args.seed)
    every = [json.loads(line) for line in args.conversations.read_text().splitlines()]
    accepted = [one for one in every if one["accepted"]]
    rng.shuffle(accepted)
    own, rest = accepted[: args.own], accepted[args.own :]
    if len(rest) < len(SPOILING):
        raise SystemExit(f"{len(accepted)} accepted ones are too few for {args.own} and five more")
    items = [("own", one["messages"]) for one in own]
    items += [("planted", spoiled(one, n, rng, own)) for n, one in enumerate(rest[: len(SPOILING)])]
    if args.foreign:
        lines = args.foreign.read_text().splitlines()
        items += [("foreign", json.loads(line)["messages"]) for line in lines]
    rng.shuffle(items)
    args.folder.mkdir(parents=True, exist_ok=True)
    numbered = {f"T{n:02d}": item for n, item in enumerate(items, 1)}
    texts = [as_text(number, messages) for number, (_, messages) in numbered.items()]
    (args.folder / "conversations.txt").write_text("\n\n".join(texts) + "\n")
    key = {number: origin for number, (origin, _) in numbered.items()}
    (args.folder / "key.json").write_text(json.dumps(key, indent=1))
    print(f"{len(items)} conversations: {args.folder / 'conversations.txt'}")


def score(args: argparse.Namespace) -> None:
    key = json.loads((args.folder / "key.json").read_text())
    said = json.loads(args.answers.read_text())
    print("| origin | read | fine | share (95% interval) | what was found |")
    print("|---|---|---|---|---|")
    for origin in sorted(set(key.values())):
        numbers = [number for number, of in key.items() if of == origin]
        fine = sum(number not in said for number in numbers)
        low, high = wilson(fine, len(numbers))
        found = Counter(said[number] for number in numbers if number in said)
        shown = ", ".join(f"{what} {n}" for what, n in found.most_common()) or "nothing"
        share = f"{fine / len(numbers):.2f} ({low:.2f} to {high:.2f})"
        print(f"| {origin} | {len(numbers)} | {fine} | {share} | {shown} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make")
    making.add_argument("conversations", type=Path)
    making.add_argument("folder", type=Path)
    making.add_argument("--own", type=int, default=37)
    making.add_argument("--foreign", type=Path)
    making.add_argument("--seed", type=int, default=1)
    making.set_defaults(run=make)
    scoring = commands.add_parser("score")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("answers", type=Path)
    scoring.set_defaults(run=score)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
