"""What the conversations of a dataset are like in figures, beside those of other people.

    python -m benchmarks.talk DATASET [--foreign FILE.jsonl ...] [--all] [--agent-price 0.6,2.5]

Of the accepted conversations (of all with `--all`): words that users have in common with the
descriptions of tools, how often they repeat themselves, how conversations are made up, and what
making a task costs beside its rollout. FILE holds published conversations, a JSON object a line
whose `messages` (or `conversations`) have `role` and `content`; repetition is measured at equal
numbers of words, since any text repeats itself more the longer it is.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from records.store.dataset import Dataset
from synth.render.intervals import wilson
from synth.tasks.words.checks import BORROWED, borrowed

MAKING = ("agents", "personas", "screening", "tasks")
"""Stages that make a task; `rollouts` plays it."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Talk(NamedTuple):
    """Messages by who wrote them, of several conversations one after another."""

    name: str
    conversations: int
    user: list[str]
    agent: list[str]
    calls: int
    parallel: int
    """Messages of the agent with several calls."""
    thoughts: int
    """Messages of the agent that hold words beside calls, or reasoning."""


def talk_of(name: str, conversations: Iterable[Sequence[dict[str, Any]]]) -> Talk:
    user: list[str] = []
    agent: list[str] = []
    number = calls = parallel = thoughts = 0
    for messages in conversations:
        number += 1
        for message in messages:
            text = message.get("content") or message.get("value") or ""
            match message.get("role") or message.get("from"):
                case "user" | "human" if isinstance(text, str) and text:
                    user.append(text)
                case "assistant" | "gpt":
                    made = message.get("tool_calls") or []
                    calls += len(made)
                    parallel += len(made) > 1
                    thoughts += bool(made and text) or bool(message.get("reasoning_content"))
                    if isinstance(text, str) and text:
                        agent.append(text)
    return Talk(name, number, user, agent, calls, parallel, thoughts)


def first_words(texts: Iterable[str], count: int) -> list[list[str]]:
    """The texts as words, cut where the words of all together reach the number."""
    kept: list[list[str]] = []
    left = count
    for text in texts:
        words = _WORD.findall(text.casefold())[:left]
        left -= len(words)
        if words:
            kept.append(words)
    return kept


def distinct_pairs(texts: Sequence[Sequence[str]]) -> float:
    """Different pairs of neighbouring words as a share of all such pairs (distinct-2)."""
    pairs = [pair for words in texts for pair in pairwise(words)]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def repeated_sentences(texts: Iterable[str], count: int) -> float:
    """Share of the sentences, of the texts' first so many words, that stand there before."""
    seen: Counter[str] = Counter()
    words = 0
    for text in texts:
        for sentence in _SENTENCE.split(text):
            own = _WORD.findall(sentence.casefold())
            if len(own) >= 3:
                seen[" ".join(own)] += 1
            words += len(own)
        if words >= count:
            break
    return 1.0 - len(seen) / seen.total() if seen else 0.0


def lines_of(talks: Sequence[Talk]) -> Iterator[str]:
    yield "| conversations | number | calls | several at once | words beside calls |"
    yield "|---|---|---|---|---|"
    for talk in talks:
        each = talk.conversations or 1
        yield (
            f"| {talk.name} | {talk.conversations} | {talk.calls / each:.1f} each | "
            f"{talk.parallel} messages | {talk.thoughts} messages |"
        )
    for who in ("user", "agent"):
        sizes = [sum(len(_WORD.findall(t)) for t in getattr(talk, who)) for talk in talks]
        count = min(sizes)
        yield ""
        yield f"| words of the {who}, first {count:,} | distinct-2 | sentences said before |"
        yield "|---|---|---|"
        for talk in talks:
            texts = getattr(talk, who)
            pairs = distinct_pairs(first_words(texts, count))
            yield f"| {talk.name} | {pairs:.3f} | {repeated_sentences(texts, count):.1%} |"


def borrowed_lines(dataset: Dataset, talk: Talk) -> Iterator[str]:
    """Requests that hold so many words in a row of a tool's description."""
    descriptions = [row["description"] for row in dataset.rows("tools", ["description"])]
    briefs = [json.loads(b) if isinstance(b, str) else b for b in _briefs(dataset)]
    groups = {
        "openings": [brief["opening"] for brief in briefs],
        "wishes": [wish for brief in briefs for wish in brief["wishes"]],
        "messages of users": talk.user,
    }
    yield ""
    yield f"{BORROWED} words in a row of a tool's description:"
    for name, texts in groups.items():
        found = sum(borrowed(text, descriptions) is not None for text in texts)
        low, high = wilson(found, len(texts)) if texts else (0.0, 0.0)
        yield f"- {name}: {found} of {len(texts)} (95% interval {low:.1%} to {high:.1%})"


def _briefs(dataset: Dataset) -> list[Any]:
    return [row["user_brief"] for row in dataset.rows("tasks", ["user_brief"])]


def cost_lines(dataset: Dataset, prices: tuple[float, float], accepted: int) -> Iterator[str]:
    """Tokens by stage and role, and what a task costs to make beside its rollout."""
    query = (
        "SELECT stage, role, count(*) n, sum(prompt_tokens) p, sum(completion_tokens) c "
        "FROM llm_calls WHERE NOT cache_hit AND status = 'ok' GROUP BY ALL ORDER BY 1, 2"
    )
    rows = dataset.connect().execute(query).fetchall()
    yield ""
    yield "| stage | role | requests | prompt tokens | completion tokens | per accepted row |"
    yield "|---|---|---|---|---|---|"
    usd: Counter[str] = Counter()
    for stage, role, number, prompt, completion in rows:
        each = (prompt + completion) / accepted if accepted else 0
        yield f"| {stage} | {role} | {number} | {prompt:,} | {completion:,} | {each:,.0f} |"
        usd[stage] += (prompt * prices[0] + completion * prices[1]) / 1e6
    making, playing = sum(usd[stage] for stage in MAKING), usd["rollouts"]
    if playing:
        words = f"{usd['tasks'] / playing:.1%} of the rollouts' cost; with agents and personas"
        yield ""
        yield f"Making the tasks' words costs {words} {making / playing:.1%}."


def conversations_of(dataset: Dataset, *, everything: bool) -> list[list[dict[str, Any]]]:
    where = "WHERE parent_call_id IS NULL" + ("" if everything else " AND accepted")
    query = f"SELECT messages FROM trajectories {where} ORDER BY trajectory_id"
    found = dataset.connect().execute(query).fetchall()
    return [json.loads(row[0]) for row in found]


def foreign_talk(path: Path) -> Talk:
    def messages() -> Iterator[list[dict[str, Any]]]:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                own = entry.get("messages") or entry.get("conversations") or []
                yield json.loads(own) if isinstance(own, str) else own

    return talk_of(path.stem, messages())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--foreign", type=Path, nargs="*", default=[], metavar="FILE.jsonl")
    parser.add_argument("--all", action="store_true", help="conversations that were dropped, too")
    parser.add_argument(
        "--agent-price", default="0.6,2.5", help="USD per million prompt and completion tokens"
    )
    args = parser.parse_args()
    prompt, completion = (float(part) for part in args.agent_price.split(","))
    dataset = Dataset.open(args.dataset)
    conversations = conversations_of(dataset, everything=args.all)
    own = talk_of(args.dataset.name, conversations)
    talks = [own, *(foreign_talk(path) for path in args.foreign)]
    print(*lines_of(talks), *borrowed_lines(dataset, own), sep="\n")
    print(*cost_lines(dataset, (prompt, completion), len(conversations)), sep="\n")


if __name__ == "__main__":
    main()
