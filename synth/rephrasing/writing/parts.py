"""A document rewritten part by part: each request sees the source and what is written so far.

Nothing is taken on trust: an answer that is cut off, loses or moves what is kept, loses a heading,
says again what was said, is out of all proportion, or has something exact wrong is shown to the
rewriter with its fault, and after `REPAIRS` of those it is given up. Where the fault is of form the
document fails with it; where it is one of fact the part stays as the source has it, in at most
`MOST_REPLACED` of the document, and the document is dropped where that is not allowed.
"""

import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from records.errors import ItemError
from records.sizes import count_tokens
from synth.llm.client import LLM, Completion
from synth.prompts.templates import Prompt, render
from synth.rephrasing.structure.chunks import Document, TextPart
from synth.rephrasing.writing.instructions import Instruction

PROMPT = "rewrite_chunk"

PartContext = Literal["full", "neighbours"]

REPAIRS = 2

SHORTEST, LONGEST, SLACK_TOKENS = 0.2, 5.0, 120
"""Bounds of a rewritten part's size as shares of the source's; `SLACK_TOKENS` more are allowed,
for a short part in a form that takes words."""

RUN_WORDS = 8
"""Words in a row that count as said again."""

MOST_SAID_AGAIN = 0.3
"""Share of a part's runs of words that may stand in what was written before."""

_CANNOT = re.compile(r"\s*<cannot>.*</cannot>\s*", re.DOTALL)
_ANSWER = re.compile(r"<rewrite>(.*)</rewrite>", re.DOTALL)
_WORD = re.compile(r"\w+")


MOST_REPLACED = 0.1
"""Share of a document's tokens in parts that stay as the source has them."""


class DeclinedError(Exception):
    """The rewriter says that it cannot do what is asked; asking again would change nothing."""


class UnfaithfulError(Exception):
    """A part stays wrong, and the source may not stand in its place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PartFault(NamedTuple):
    reason: str
    words: str
    """For the rewriter."""
    is_of_fact: bool = False
    """Whether it says something else than the source, and is not only of another form."""


class PartCheck(NamedTuple):
    """What was found in a part as it will stand in the document."""

    fault: PartFault | None = None
    flags: tuple[str, ...] = ()
    """Hints that nobody has overruled."""
    verdict: str | None = None
    """The judge's; None where it was not asked."""


class CheckPart(Protocol):
    def __call__(self, source: str, rewrite: str, /, *, step: str) -> Awaitable[PartCheck]: ...


class Chunk(NamedTuple):
    """One part: its span in the source and in the rewritten text, and how it came about."""

    source: tuple[int, int]
    text: tuple[int, int]
    attempts: int
    """0 for what was carried over without a request."""
    faults: tuple[str, ...] = ()
    """Reasons for which answers were given back, in order."""
    replaced: bool = False
    """Whether the source stands in its place, since it stayed wrong."""
    flags: tuple[str, ...] = ()
    """Hints of the layers that no judge has overruled."""
    verdict: str | None = None
    """The judge's on what stands there; None where it was not asked."""


def is_written(chunk: Mapping[str, Any]) -> bool:
    """Whether a model's words stand in a part, as `rephrasings.chunks` tells of it, and not the
    source's."""
    return chunk["attempts"] > 0 and not chunk.get("replaced", False)


class Written(NamedTuple):
    text: str
    chunks: list[Chunk]
    prompt_tokens: int
    completion_tokens: int
    """Of all answers, also those that were of no use."""
    prompt_version: str


class Writer:
    """Rewrites one document."""

    def __init__(
        self,
        document: Document,
        llm: LLM,
        *,
        item: str,
        style: Instruction,
        perspective: Instruction,
        context: PartContext,
        check: CheckPart,
        may_replace: bool,
        neighbours: int = 1,
    ) -> None:
        """`check` looks at each part as it will stand in the document; `may_replace`: whether the
        source may stand in the place of a part that stays wrong."""
        self._document = document
        self._llm = llm
        self._item = item
        self._style, self._perspective = style, perspective
        self._context = context
        self._neighbours = neighbours
        self._check = check
        self._room = MOST_REPLACED * sum(p.tokens for p in document.parts) if may_replace else 0.0
        """Tokens of parts that may yet stay as they are."""
        self._whole = document.source(document.parts)
        self._marked: list[str] = []
        """Rewritten parts with their markers; what stands between them is part of the later."""
        self._said: set[tuple[str, ...]] = set()
        self._prompt_tokens = self._completion_tokens = 0
        self._version = ""

    async def write(self) -> Written:
        """All parts, in their order. Raises ItemError with the fault of form that no repair mended,
        UnfaithfulError with one of fact, and DeclinedError."""
        text = ""
        chunks: list[Chunk] = []
        for number, part in enumerate(self._document.parts):
            rewritten, made = await self._rewritten(number, part)
            gap = ""
            if number:
                gap = self._document.gap_before(number, self._marked[-1], rewritten)
            self._marked.append(gap + rewritten)
            self._said.update(_runs(rewritten))
            restored = self._document.restored(rewritten)
            start = len(text) + len(gap)
            text = f"{text}{gap}{restored}"
            chunks.append(made._replace(text=(start, len(text))))
        return Written(text, chunks, self._prompt_tokens, self._completion_tokens, self._version)

    async def _rewritten(self, number: int, part: TextPart) -> tuple[str, Chunk]:
        """Its text with markers, and how it came about; where it stands is not known yet."""
        faults: list[str] = []
        nowhere = (0, 0)
        if part.is_verbatim:
            return "\n\n".join(self._document.markers(part)), Chunk(part.span, nowhere, 0)
        prompt = self._prompt(number, part)
        self._version = prompt.version
        talk = prompt.messages
        for attempt in range(REPAIRS + 1):
            again = f"-again-{attempt}" if attempt else ""
            answer = await self._llm.chat(
                "rewriter", talk, item=self._item, step=f"part-{number:03d}{again}"
            )
            self._prompt_tokens += answer.prompt_tokens
            self._completion_tokens += answer.completion_tokens
            if _CANNOT.fullmatch(answer.content):
                raise DeclinedError
            rewritten, fault = self._read(answer, part)
            found = PartCheck()
            if fault is None:
                restored = self._document.restored(rewritten)
                source = self._document.text_of(part)
                found = await self._check(source, restored, step=f"part-{number:03d}{again}")
                fault = found.fault
            made = Chunk(part.span, nowhere, attempt + 1, tuple(faults))
            if fault is None:
                return rewritten, made._replace(flags=found.flags, verdict=found.verdict)
            faults.append(fault.reason)
            if attempt == REPAIRS and fault.is_of_fact:
                if part.tokens > self._room:
                    raise UnfaithfulError(fault.reason)
                self._room -= part.tokens
                kept = made._replace(faults=tuple(faults), replaced=True)
                return self._document.work(part), kept
            if attempt == REPAIRS:
                where = f"part {number + 1} of {len(self._document.parts)} of {self._item}"
                raise ItemError(fault.reason, f"{where}: {fault.words}")
            talk = [*prompt.messages, *_repair(answer.content, fault)]
        raise AssertionError("the loop returns or raises")

    def _prompt(self, number: int, part: TextPart) -> Prompt:
        parts = self._document.parts
        if self._context == "full":
            source, written = self._whole, "".join(self._marked)
        else:
            around = parts[max(0, number - self._neighbours) : number + self._neighbours + 1]
            source = self._document.source(around)
            written = "".join(self._marked[-self._neighbours :]).strip()
        return render(
            PROMPT,
            whole=self._context == "full",
            source=source,
            style=self._style.text,
            perspective=self._perspective.text,
            written=written,
            part=self._document.work(part),
        )

    def _read(self, answer: Completion, part: TextPart) -> tuple[str, PartFault | None]:
        """The rewritten part, and what is wrong with it."""
        found = _ANSWER.search(answer.content)
        if found is None:
            words = "the rewritten part must stand between <rewrite> and </rewrite>"
            return "", PartFault("invalid_output", words)
        text = found[1].strip()
        return text, self._fault(text, part)

    def _fault(self, text: str, part: TextPart) -> PartFault | None:
        size = count_tokens(self._document.mark.sub("", text))
        if size < SHORTEST * part.tokens:
            return PartFault("too_short", "much of the part is missing; rewrite all of it")
        if size > LONGEST * part.tokens + SLACK_TOKENS:
            return PartFault("too_long", "it says far more than the part; rewrite this part alone")
        markers = self._document.markers(part)
        if (there := self._document.mark.findall(text)) != markers:
            wanted = ", ".join(markers) or "no such line"
            words = f"the part has {wanted}; the answer has {', '.join(there) or 'none'}"
            return PartFault("structure_lost", f"{words}: each once, in this order")
        lines = {_plain(line) for line in text.splitlines()}
        for heading in self._document.headings(part):
            if _plain(heading) not in lines:
                return PartFault("structure_lost", f"the heading {heading!r} must stay as a line")
        own = set(_runs(self._document.work(part)))
        runs = [run for run in _runs(text) if run not in own]
        again = sum(run in self._said for run in runs)
        if again > MOST_SAID_AGAIN * max(len(runs), RUN_WORDS):
            return PartFault("said_again", "it repeats what is written so far; go on from there")
        return None


def _plain(line: str) -> str:
    """A heading as it is compared: its words, in small letters."""
    return " ".join(_WORD.findall(line.lower()))


def _runs(text: str) -> list[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return [tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)]


def _repair(said: str, fault: PartFault) -> Sequence[dict[str, str]]:
    request = (
        f"That answer cannot be used: {fault.words}.\n\nWrite the part again, all of it, between"
        " <rewrite> and </rewrite>."
    )
    # some servers refuse an empty message of the assistant
    return [
        {"role": "assistant", "content": said or "(empty answer)"},
        {"role": "user", "content": request},
    ]
