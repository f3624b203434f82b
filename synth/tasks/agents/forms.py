"""In which form an agent's system prompt is written: drawn, so that no two writers' habits show.

A model that is asked for "a system prompt" writes one text again and again. Layout, length, voice,
what is told of the tools, passages, examples and language are therefore drawn for each agent, and
the generator is asked for exactly that.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Any

from synth.tasks.agents.weights import clash_check, drawn

LAYOUTS: Mapping[str, float] = MappingProxyType(
    {
        "running prose, one paragraph, no heading": 16.0,
        "running prose in several paragraphs, no heading": 14.0,
        "sections under Markdown headings, prose in each": 9.0,
        "sections under Markdown headings, bullets in each": 9.0,
        "one opening sentence, then a flat list of dashes": 9.0,
        "numbered points from first to last": 5.0,
        "`key: value` lines": 4.0,
        "blocks in XML-like tags": 5.0,
        "a terse operator's note, telegram style, abbreviations allowed": 7.0,
        "a page of a staff handbook": 4.0,
        "a letter to a new colleague": 4.0,
        "a brand's guide to its voice": 4.0,
        "questions and answers about the job": 3.0,
        "a job advertisement turned into instructions": 2.0,
        "a table of situations and how to meet them, in Markdown": 2.0,
        "capital headings and short lines, as in a manual on paper": 3.0,
    }
)
LENGTHS: Mapping[str, float] = MappingProxyType(
    {
        "20 to 40 words": 12.0,
        "45 to 80 words": 20.0,
        "90 to 150 words": 26.0,
        "160 to 260 words": 20.0,
        "280 to 420 words": 13.0,
        "450 to 650 words": 6.0,
        "700 to 950 words, two pages": 3.0,
    }
)
VOICES: Mapping[str, float] = MappingProxyType(
    {
        "you, to the assistant": 44.0,
        "bare imperatives, without `You are`": 16.0,
        "the third person, about the assistant by its name": 11.0,
        "the assistant's own first person (I ...)": 6.0,
        "we, the team that it belongs to (At our desk we ...)": 12.0,
        "notes without persons or verbs": 6.0,
        "begins with those who are served and comes to the assistant last": 5.0,
    }
)
TOOLS_TOLD: Mapping[str, float] = MappingProxyType(
    {
        "nothing is said of tools": 30.0,
        "what it can do, in a clause": 30.0,
        "what it can do, thing by thing in plain words": 22.0,
        "some of the tools by their names": 12.0,
        "every tool by its name with half a sentence": 6.0,
    }
)
SHOWN = "shown, not told"
CONDUCT: Mapping[str, float] = MappingProxyType(
    {"as prose": 42.0, "as a list": 26.0, SHOWN: 17.0, "left out": 15.0}
)
"""How capability, expertise and behaviour are put."""

ONE_SENTENCE = "one sentence that it might say"
EXAMPLES: Mapping[str, float] = MappingProxyType(
    {
        "none": 68.0,
        ONE_SENTENCE: 14.0,
        "a short exchange that shows the tone": 13.0,
        "two short exchanges, an easy and a difficult one": 5.0,
    }
)
NO_DIALOGUE = "none"
ROOM_FOR_DIALOGUE = ("160 ", "280 ", "450 ", "700 ")
"""Beginnings of the lengths that an exchange of words fits into."""

HIDES_WORK = "that it never shows how it works inside"
"""The passage that no plan in words goes with."""

PASSAGES: Mapping[str, float] = MappingProxyType(
    {
        "how people are addressed": 0.22,
        "a greeting or a sign-off of the house": 0.16,
        "words that the house avoids and what it says instead": 0.13,
        "how long answers are": 0.2,
        "what to do with upset or rude people": 0.16,
        "that it serves at any hour and hands nothing over unsaid": 0.1,
        "what it says when something cannot be done here": 0.17,
        "how figures, dates and money are written": 0.12,
        "what it does when two wishes come at once": 0.12,
        "small talk: how much of it": 0.09,
        "whom it serves, in general terms": 0.18,
        "formatting: plain text, lists, bold or none": 0.14,
        "how it checks that it has understood": 0.13,
        "a line on the spirit of the place": 0.1,
        "what a good conversation ends with": 0.1,
        "emoji, exclamation marks and jokes: whether": 0.09,
        "reading level and plain language": 0.08,
        HIDES_WORK: 0.06,
    }
)
PLANS: tuple[str, ...] = (
    "that it says in a sentence or two what it is about to do before it calls a tool",
    "that it thinks aloud briefly before the first call of a turn: what is known, what is missing, "
    "what comes next",
    "that a short plan in words stands before work of several steps",
    "that it names its next step in half a sentence whenever it calls a tool",
    "that it says why it looks something up, in a few words beside the call",
)
"""Of which one is asked for where an agent plans in words."""

TOGETHER: tuple[str, ...] = (
    "that look-ups which do not need each other are made at once, in one turn",
    "that calls of which none waits for another's result go out together, and no others",
    "that it does not fetch one thing after the other where it could fetch them side by side",
    "that several tools are called in the same turn whenever their arguments are known already",
)
"""Of which one is asked for where an agent makes independent calls in one turn."""

CLASHES: tuple[tuple[str, str], ...] = (
    ("20 to", "sections"), ("20 to", "paragraphs"), ("20 to", "`key"), ("20 to", "XML"),
    ("20 to", "handbook"), ("20 to", "letter"), ("20 to", "brand"), ("20 to", "questions"),
    ("20 to", "advertisement"), ("20 to", "table"), ("20 to", "thing by thing"),
    ("20 to", "by their names"), ("20 to", "by its name with"), ("20 to", "capital"),
    ("20 to", "shown"),
    ("45 to", "letter"), ("45 to", "brand"), ("45 to", "questions"), ("45 to", "advertisement"),
    ("45 to", "table"), ("45 to", "by its name with"), ("45 to", "handbook"),
    ("one paragraph", "280 to"), ("one paragraph", "450 to"), ("one paragraph", "700 to"),
    ("telegram", "280 to"), ("telegram", "450 to"), ("telegram", "700 to"), ("telegram", "prose"),
    ("telegram", "shown"), ("telegram", "first person"), ("telegram", "begins with"),
    ("without persons", "prose"), ("without persons", "letter"), ("without persons", "brand"),
    ("without persons", "questions"), ("without persons", "450 to"), ("without persons", "700 to"),
    ("letter", "by its name ("), ("letter", "imperatives"), ("letter", "first person"),
    ("letter", "third person"), ("one paragraph", "list"), ("flat list", "as prose"),
    ("numbered", "as prose"), ("`key", "as prose"), ("table", "as prose"),
    ("paragraph", "as a list"), ("45 to", "numbered"),
)  # fmt: skip
"""Parts of phrases that cannot be had together."""

_contradict = clash_check(CLASHES)

FEW_PASSAGES = ("20 ", "45 ")
"""Beginnings of the lengths with room for one passage."""

MOST_PASSAGES = 6

MATTER: Mapping[str, int] = MappingProxyType({"450 ": 5, "700 ": 8})
"""Beginnings of the lengths that need matter -> the fewest tools of its own, and the fewest
passages as far as there is room for them, that fill so many words."""

WORDS_OF_A_TOOL: Mapping[str, int] = MappingProxyType({"thing by thing": 6, "by its name": 10})
"""Parts of the phrases that speak of every tool -> words that each takes."""


@dataclass(frozen=True, slots=True)
class PromptForm:
    """How a system prompt is to look."""

    layout: str
    length: str
    voice: str
    tools: str
    """What is said of them."""
    conduct: str
    """How capability, expertise and behaviour are put."""
    passages: tuple[str, ...]
    """What else it speaks of: house style, and no rule about what may be done."""
    examples: str
    language: str
    """By its English name."""

    def columns(self) -> dict[str, Any]:
        return asdict(self) | {"passages": list(self.passages)}


def draw_form(rng: Random, languages: Mapping[str, float], *, num_tools: int) -> PromptForm:
    """A form of one prompt, whose parts can be had together; short ones have no room for an
    exchange, many passages or a word on every tool, and an agent of few tools gets no long one.
    Conduct that is shown and not told comes with an example."""
    taken: list[str] = []

    def draw(weights: Mapping[str, float]) -> str:
        fitting = {
            phrase: weight
            for phrase, weight in weights.items()
            if not any(_contradict(phrase, other) for other in taken)
        }
        taken.append(drawn(rng, fitting))
        return taken[-1]

    lengths = {k: v for k, v in LENGTHS.items() if num_tools >= _matter(k)}
    length, layout, voice = draw(lengths), draw(LAYOUTS), draw(VOICES)
    room = 1 if length.startswith(FEW_PASSAGES) else MOST_PASSAGES
    wanted = [p for p, share in PASSAGES.items() if rng.random() < share]
    others = [p for p in PASSAGES if p not in wanted]
    wanted += rng.sample(others, max(0, min(_matter(length), room) - len(wanted)))
    examples = drawn(rng, EXAMPLES)
    told = {k: v for k, v in TOOLS_TOLD.items() if _has_room(k, length, num_tools)}
    tools, conduct = draw(told), draw(CONDUCT)
    if not length.startswith(ROOM_FOR_DIALOGUE):
        examples = NO_DIALOGUE
    if conduct == SHOWN and examples == NO_DIALOGUE:
        examples = ONE_SENTENCE
    return PromptForm(
        layout=layout,
        length=length,
        voice=voice,
        tools=tools,
        conduct=conduct,
        passages=tuple(rng.sample(wanted, min(room, len(wanted)))),
        examples=examples,
        language=drawn(rng, languages),
    )


def _matter(length: str) -> int:
    """Tools, and passages, that a prompt of `length` takes at least."""
    return next((fewest for start, fewest in MATTER.items() if length.startswith(start)), 0)


def _has_room(told: str, length: str, num_tools: int) -> bool:
    """Whether what is told of every tool takes at most half of the words that the length allows."""
    each = next((words for part, words in WORDS_OF_A_TOOL.items() if part in told), 0)
    most = int(length.split(" to ")[1].split()[0])
    return each * num_tools <= most / 2


def with_working(
    form: PromptForm, rng: Random, *, plan_share: float, together_share: float
) -> PromptForm:
    """The form with a passage on a plan in words, and one on calls made together, at these shares;
    they come first, for the room may not hold all passages."""
    plan, together = rng.choice(PLANS), rng.choice(TOGETHER)
    plans, joins = rng.random() < plan_share, rng.random() < together_share
    besides = [p for p in form.passages if not (plans and p == HIDES_WORK)]
    return replace(form, passages=(*[plan] * plans, *[together] * joins, *besides))
