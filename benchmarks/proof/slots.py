"""A policy that copies slots and learns nothing: how far a proof's tasks go without learning.

It takes no gradient step and knows no domain. It has the training conversations, to retrieve from,
and the request: declared tools and messages. The most similar wish of a training conversation, its
values masked, gives the tool, where that is declared; else it is the tool whose name and
description share most words, by weight, with what the user asks. Each argument is a value of the
conversation: one that stands behind such words as it did in an example, or as the schema's words
suggest, or an id in the result of a lookup. Nothing is made up: what stands nowhere is asked for.

Not done: rules of the system prompt are not read, nothing is reckoned, and of two things that are
said in the same words one is taken for the other.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import log
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import linear_kernel

from benchmarks.proof.slots_filling import Slots
from benchmarks.proof.slots_text import (
    RETURNS,
    Fact,
    Schemas,
    Tool,
    described,
    properties,
    sentences,
    spoken,
    stems,
    wants_id,
)
from benchmarks.proof.slots_wishes import Call, Wish, wishes_of
from trainer.data.chat import AssistantAnswer
from trainer.data.sources import TRAIN, CorpusConfig, TrainingConversation, samples_of
from trainer.inference.policies import MOST_EXAMPLES, PolicyRequest

NEAR, SAME = 0.6, 0.9
"""Cosines of masked wishes: from which an example is heard, and from which it is believed alone."""

USUAL = 0.7
"""Share of a wish's words from which a tool is called, where examples do not tell."""

EXAMPLE = 0.5
"""What an example's likeness counts beside the share of the wish's words that a tool has."""

ASK = "Could you tell me "
REFUSAL = "I'm sorry, I have no way to do that here, so nothing was changed."
DONE = "Here is what came of it."

_UNKNOWN = re.compile(r"\b(?:no idea|not sure|sorry|unknown)\b|n't\b|\bnot know\b", re.IGNORECASE)
_LOOKUP = re.compile(
    r"^(?:find|look|search|show|list|tell|get|read|query|track|check|see|count|fetch|retrieve|view"
    r"|display|sum)\b",
    re.IGNORECASE,
)


class Example(NamedTuple):
    tools: frozenset[str]
    goal: str
    """The last tool that was called with success; empty where none was."""
    words: str
    """The first sentence of the answer."""


class CopySlots:
    """Calls what the nearest example calls, or the tool that is described in the user's words,
    with values of the present conversation; tells the result, and asks for what stands nowhere."""

    def __init__(self, source: CorpusConfig) -> None:
        known: list[tuple[Wish, list[Tool]]] = []
        for sample in samples_of(source, "sft"):
            if isinstance(sample.body, TrainingConversation) and (
                source.held_out or sample.split == TRAIN
            ):
                tools = [tool["function"] for tool in sample.body.tools]
                spoken_ = wishes_of(sample.body.messages)
                known += [(of[0], tools) for of in spoken_ if len(of) == 1]  # whose calls is clear
        del known[MOST_EXAMPLES:]
        self._weights = _weights(known)
        self._enough = _threshold(known)
        self._examples = [_example(wish) for wish, _ in known]
        self._slots = Slots()
        for wish, _ in known:
            self._slots.add(wish)
        self._vectors = TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True)
        masked = [wish.masked for wish, _ in known]
        self._matrix = self._vectors.fit_transform(masked) if any(masked) else None

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        return [self._answer(one) for one in asked]

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        return 0

    def _answer(self, asked: PolicyRequest) -> AssistantAnswer:
        tools = {tool["function"]["name"]: tool["function"] for tool in asked.tools}
        done: Counter[str] = Counter()
        texts: list[str] = []
        for wish in (wishes_of(asked.messages) or [[]])[-1]:
            near = self._near(wish, tools)
            goal = self._goal(wish, tools, near)
            if goal is None:
                words = (e.words for e, _ in near if not e.goal and e.words)
                texts.append(next(words, REFUSAL))
                continue
            made = [call for call in wish.calls if call.tool == goal["name"]]
            if len(made) <= done[goal["name"]]:
                habit = next((e.tools for e, _ in near if e.goal == goal["name"]), frozenset())
                return self._step(wish, tools, goal, habit)
            call = made[done[goal["name"]]]
            done[goal["name"]] += 1
            words = (e.words for e, _ in near if e.goal == call.tool and e.words)
            texts.append(
                _excuse(call) if call.failed else f"{next(words, DONE)} {told(call.result)}"
            )
        return _says(" ".join(texts) or REFUSAL)

    def _near(self, wish: Wish, tools: Mapping[str, Tool]) -> list[tuple[Example, float]]:
        """Examples with declared tools alone and their likeness, the nearest first."""
        if self._matrix is None:
            return []
        asked = self._vectors.transform([wish.masked])
        likeness = linear_kernel(self._matrix, asked)[:, 0]
        order = np.argsort(-likeness, kind="stable")[: int((likeness >= NEAR).sum())]
        close = ((self._examples[n], float(likeness[n])) for n in order)
        return [(example, alike) for example, alike in close if example.tools <= tools.keys()]

    def _goal(
        self, wish: Wish, tools: Mapping[str, Tool], near: Sequence[tuple[Example, float]]
    ) -> Tool | None:
        """The tool that does what is wished; None where no declared one does."""
        alike = dict(reversed([(example.goal, likeness) for example, likeness in near]))
        ranked = [
            (share + EXAMPLE * alike.get(name, 0.0), share, name)
            for name, tool in tools.items()
            for share in [self._share(wish, tool)]
        ]
        _, share, name = max(ranked, default=(0.0, 0.0, ""), key=lambda one: one[0])
        sure = share >= self._enough or alike.get(name, 0.0) >= SAME
        return tools[name] if sure and wish.words else None

    def _share(self, wish: Wish, tool: Tool) -> float:
        return _share(self._weights, wish, tool)

    def _step(
        self, wish: Wish, tools: Mapping[str, Tool], goal: Tool, habit: frozenset[str]
    ) -> AssistantAnswer:
        """The call of the goal, or of a lookup on the way to it, or a question."""
        filled = self._slots.fill(goal, wish, wish.facts)
        if not filled.missing:
            return _calls(goal["name"], filled.arguments)
        schemas = _parameters(goal)
        for name in (n for missing in filled.missing for n in _ids_in(missing, schemas[missing])):
            if found := self._lookups(wish, tools, goal, name, filled.used, habit):
                _, called, arguments = max(found, key=lambda one: one[0])
                return _calls(called, arguments)
        wanted = listed([_asked_for(name, schemas[name]) for name in filled.missing])
        question = f"{ASK}{wanted}?"
        if wish.said.count(question) > (0 if _UNKNOWN.search(wish.heard) else 1):
            return _says("I'm sorry, I can't do this without that, so nothing was changed.")
        return _says(question)

    def _lookups(
        self,
        wish: Wish,
        tools: Mapping[str, Tool],
        goal: Tool,
        name: str,
        used: frozenset[Fact],
        habit: frozenset[str],
    ) -> list[tuple[float, str, dict[str, Any]]]:
        """Calls that may find the id for a parameter and were not made for this wish so far, each
        with what speaks for it."""
        target = stems(spoken(name))
        free = [fact for fact in wish.facts if fact not in used]
        made = [(call.tool, call.arguments) for call in wish.calls]
        found: list[tuple[float, str, dict[str, Any]]] = []
        for tool in tools.values():
            if tool is goal or not is_lookup(tool):
                continue
            returned = " ".join(RETURNS.split(tool.get("description") or "")[1:])
            brings = bool(re.search(rf"\b\w*{re.escape(name.removesuffix('s'))}\b", returned))
            for fact in [*free, None]:
                tried = [fact] if fact else []
                own = self._slots.fill(tool, wish, tried)
                if own.missing:
                    own = self._slots.fill(tool, wish, free)
                suits = bool(fact and fact.label & target)
                if own.missing or not own.used >= set(tried) or not (brings or suits):
                    continue
                if (tool["name"], own.arguments) in made:
                    continue
                alike = len((fact.label if fact else target) & described(tool))
                score = 4 * brings + 3 * suits + alike + 3 * (tool["name"] in habit)
                found.append((score + own.score / 4, tool["name"], own.arguments))
        return found


def _asked_for(name: str, schema: Mapping[str, Any]) -> str:
    if wants_id(schema):
        return f"which {spoken(re.sub('_ids?$', '', name))} you mean"
    about = (schema.get("description") or "").split(",")[0].split(".")[0]
    return f"the {spoken(name)} ({about})" if about else f"the {spoken(name)}"


def _example(wish: Wish) -> Example:
    good = [call.tool for call in wish.calls if not call.failed]
    begun = next(iter(sentences(wish.said[-1])), "") if wish.said else ""
    general = not re.search(r'[\d?":]', begun)  # what names a value says it of another time
    names = frozenset(call.tool for call in wish.calls)
    return Example(names, good[-1] if good else "", begun if general else "")


def _weights(known: Sequence[tuple[Wish, Sequence[Tool]]]) -> dict[str, float]:
    """Inverse document frequency, times how often the word of a wish is one of the tool that was
    called for it: words of courtesy hardly are. What was never met weighs most."""
    texts = [wish.words for wish, _ in known]
    texts += [described(tool) for _, tools in known for tool in tools]
    counts = Counter(word for text in texts for word in text)
    heard, met = Counter[str](), Counter[str]()
    for wish, tools in known:
        called = {call.tool for call in wish.calls if not call.failed}
        theirs = [described(tool) for tool in tools if tool["name"] in called]
        if theirs:
            heard.update(wish.words)
            met.update(wish.words & frozenset().union(*theirs))
    weights = {
        word: (log((1 + len(texts)) / (1 + n)) + 1) * (1 + met[word]) / (1 + heard[word])
        for word, n in counts.items()
    }
    most = log(1 + len(texts)) + 1
    return defaultdict(lambda: most, weights)


def _share(weights: Mapping[str, float], wish: Wish, tool: Tool) -> float:
    """The part of the wish's words that the tool has, by weight; at a tie, of the tool's."""

    def weight(words: frozenset[str]) -> float:
        return max(sum(weights[word] for word in sorted(words)), 1e-9)

    theirs = described(tool)
    shared = weight(wish.words & theirs)
    return shared / weight(wish.words) + 0.2 * shared / weight(theirs)


def _threshold(known: Sequence[tuple[Wish, Sequence[Tool]]]) -> float:
    """The share that best parts wishes which were called for from those which were not. Each half
    of the examples is weighed by the other, and those with one tool are in one half: what is asked
    for is new."""
    points: list[tuple[float, bool]] = []
    halves: tuple[list[Any], list[Any]] = ([], [])
    for wish, tools in known:
        first = min((tool["name"] for tool in tools), default="")
        halves[crc32(first.encode()) % 2].append((wish, tools))
    for mine, other in (halves, halves[::-1]):
        weights = _weights(other)
        for wish, tools in mine:
            best = max((_share(weights, wish, tool) for tool in tools), default=0.0)
            points.append((best, any(not call.failed for call in wish.calls)))
    shares = np.array([share for share, _ in points])
    called = np.array([called for _, called in points])
    tried = np.linspace(0.0, 1.2, 61)
    right = [(int(((shares >= t) == called).sum()), -abs(t - USUAL), t) for t in tried]
    return float(max(right)[2])


def _parameters(tool: Tool) -> Schemas:
    return properties(tool.get("parameters") or {})


def _ids_in(name: str, schema: Mapping[str, Any]) -> list[str]:
    """Names of the ids that a parameter is, or holds."""
    if wants_id({**schema, "title": name}):
        return [name]
    inner = properties(schema.get("items") or schema)
    return [one for held, its in inner.items() for one in _ids_in(held, its)]


def is_lookup(tool: Tool) -> bool:
    """Whether a tool only reads, by the verb of its name or description."""
    return any(
        _LOOKUP.match(text) for text in (spoken(tool["name"]), tool.get("description") or "")
    )


def listed(texts: Sequence[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def told(result: Any) -> str:
    """The values of a result, in sentences."""
    if not isinstance(result, dict):
        return f"The result is {_value(result)}."
    parts: list[str] = []
    for key, value in result.items():
        name = spoken(key)
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            rows = (f"({n}) {_row(one)}" for n, one in enumerate(value, 1))
            parts.append(f"Of {name} there are {len(value)}: {'; '.join(rows)}.")
        else:
            parts.append(f"The {name} is {_value(value)}.")
    return " ".join(parts)


def _row(value: Any) -> str:
    if not isinstance(value, dict):
        return _value(value)
    return ", ".join(f"{spoken(key)} {_value(inner)}" for key, inner in value.items())


def _value(value: Any) -> str:
    match value:
        case None | [] | {}:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return listed([_value(one) for one in value])
        case dict():
            return _row(value)
        case _:
            return str(value).replace("_", " ") if isinstance(value, str) else json.dumps(value)


def _excuse(call: Call) -> str:
    error = call.result.get("error") if isinstance(call.result, dict) else call.result
    why = error.get("message") if isinstance(error, dict) else error
    return f"I'm sorry, this did not work, so nothing was changed. {why}"


def _says(text: str) -> AssistantAnswer:
    return AssistantAnswer(text, [], None)


def _calls(name: str, arguments: Mapping[str, Any]) -> AssistantAnswer:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return AssistantAnswer("", [{"type": "function", "function": function}], None)
