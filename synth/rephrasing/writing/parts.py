"""A document rewritten in groups of parts, each in view of what is near and what is written so far.

Nothing is taken on trust: a part that is missing, loses or moves what is kept, loses a heading,
says again what was said, is out of all proportion, or has something exact wrong is shown to the
rewriter with its fault, together with the others of its group that are wrong, while those that are
right stand. After `REPAIRS` such answers more it is given up. Where the fault is of form the
document fails with it; where it is one of fact the part stays as the source has it, in at most
`MOST_REPLACED` of the document, and the document is dropped where that is not allowed.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from records.errors import ItemError
from synth.llm.client import LLM, Completion
from synth.prompts.templates import Prompt, render
from synth.rephrasing.structure.chunks import Document
from synth.rephrasing.writing.answers import declines, parts_in
from synth.rephrasing.writing.form import PartFault, WordRun, fault_of_form, runs_of
from synth.rephrasing.writing.instructions import Instruction

PROMPT = "rewrite_chunk"

PartContext = Literal["full", "neighbours"]

REPAIRS = 2

MOST_REPLACED = 0.1
"""Share of a document's tokens in parts that stay as the source has them."""

ANSWER_GROWTH, ANSWER_SLACK = 1.6, 200
"""An answer is taken to need so many tokens for each of its parts, and so many more."""


class DeclinedError(Exception):
    """The rewriter says that it cannot do what is asked; asking again would change nothing."""


class UnfaithfulError(Exception):
    """A part stays wrong, and the source may not stand in its place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WrittenPart(NamedTuple):
    """A part and its rewrite, as both stand in their texts."""

    number: int
    """Of the part in its document, from 1, as prompts name it."""
    start: int
    """Where the part begins in the document."""
    source: str
    rewrite: str


class PartCheck(NamedTuple):
    """What was found in a part as it will stand in the document."""

    fault: PartFault | None = None
    flags: tuple[str, ...] = ()
    """Hints that nobody has overruled."""
    verdict: str | None = None
    """The judge's; None where it was not asked."""


class CheckParts(Protocol):
    def __call__(
        self, parts: Sequence[WrittenPart], /, *, step: str
    ) -> Awaitable[Sequence[PartCheck]]: ...


class Chunk(NamedTuple):
    """One part: its span in the source and in the rewritten text, and how it came about."""

    source: tuple[int, int]
    text: tuple[int, int]
    attempts: int
    """Requests that asked for it; 0 for what was carried over without one."""
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


@dataclass
class _Pending:
    """A part that is asked for and does not stand yet."""

    attempts: int = 0
    faults: list[str] = field(default_factory=list)
    rejected: str | None = None
    """What was last written for it; None where nothing was."""
    wrong: str = ""
    """Why that cannot be used."""


def fitting(tokens: Sequence[int], most: int, max_tokens: int) -> int:
    """How many of the parts of these sizes, from the first on, are asked for at once: at least one,
    at most `most`, and no more than an answer of `max_tokens` has room for."""
    number = 1
    while number < min(most, len(tokens)):
        needed = ANSWER_GROWTH * sum(tokens[: number + 1]) + ANSWER_SLACK
        if needed > max_tokens:
            break
        number += 1
    return number


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
        check: CheckParts,
        may_replace: bool,
        max_tokens: int,
        parts_per_request: int = 4,
        neighbours: int = 1,
    ) -> None:
        """`check` looks at parts as they will stand in the document; `may_replace`: whether the
        source may stand in the place of a part that stays wrong; `max_tokens` that an answer may
        have."""
        self._document = document
        self._llm = llm
        self._item = item
        self._style, self._perspective = style, perspective
        self._context: PartContext = context
        self._neighbours = neighbours
        self._check = check
        self._most, self._max_tokens = parts_per_request, max_tokens
        self._room = MOST_REPLACED * sum(p.tokens for p in document.parts) if may_replace else 0.0
        """Tokens of parts that may yet stay as they are."""
        self._whole = document.source(document.parts)
        self._texts: dict[int, str] = {}
        """Rewritten parts with their markers, by number; what stands is part of later requests."""
        self._said: set[WordRun] = set()
        """Runs of words of what stands."""
        self._made: dict[int, Chunk] = {}
        """How each came about; where it stands is not known yet."""
        self._prompt_tokens = self._completion_tokens = 0
        self._version = ""

    async def write(self) -> Written:
        """All parts, in their order. Raises ItemError with the fault of form that no repair mended,
        UnfaithfulError with one of fact, and DeclinedError."""
        asked: list[int] = []
        for number, part in enumerate(self._document.parts):
            if part.is_verbatim:
                marks = "\n\n".join(self._document.markers(part))
                self._stands(number, marks, Chunk(part.span, _NOWHERE, 0))
            else:
                asked.append(number)
        while asked:
            sizes = [self._document.parts[number].tokens for number in asked]
            number = fitting(sizes, self._most, self._max_tokens)
            await self._write_group(asked[:number])
            asked = asked[number:]
        text, chunks = "", []
        for number, marked in enumerate(self._with_gaps(range(len(self._document.parts)))):
            restored = self._document.restored(self._texts[number])
            start = len(text) + len(marked) - len(self._texts[number])
            text = f"{text}{marked[: len(marked) - len(self._texts[number])]}{restored}"
            chunks.append(self._made[number]._replace(text=(start, len(text))))
        return Written(text, chunks, self._prompt_tokens, self._completion_tokens, self._version)

    async def _write_group(self, group: Sequence[int]) -> None:
        """Asks for the parts, then for those among them that are missing or wrong."""
        pending = {number: _Pending() for number in group}
        wanted = list(group)
        attempt = 0
        while wanted:
            again = f"-again-{attempt}" if attempt else ""
            step = f"part-{'-'.join(f'{number:03d}' for number in wanted)}{again}"
            answer = await self._asked({number: pending[number] for number in wanted}, step)
            sources = {
                number + 1: self._document.text_of(self._document.parts[number])
                for number in wanted
            }
            found = {number - 1: t for number, t in parts_in(answer.content, sources).items()}
            was_cut = answer.finish_reason == "length"
            await self._take(wanted, found, answer, pending, step)
            if not was_cut or len(wanted) == 1 or found:
                wanted = [number for number in group if number in pending]
            else:  # not even the first one was whole
                wanted = wanted[:1]
            attempt += 1

    async def _take(
        self,
        wanted: Sequence[int],
        found: dict[int, str],
        answer: Completion,
        pending: dict[int, _Pending],
        step: str,
    ) -> None:
        """Those that are right stand and are pending no more."""
        was_cut = answer.finish_reason == "length"
        checked = await self._checked(found, step)
        for number in wanted:
            state = pending[number]
            state.attempts += 1
            if number not in found and was_cut:
                state.rejected, state.wrong = None, "it was cut off for length"
                continue
            check = checked.get(number) or PartCheck(_NOT_THERE)
            if check.fault is None:
                made = self._chunk(number, state)
                self._stands(
                    number, found[number], made._replace(flags=check.flags, verdict=check.verdict)
                )
                del pending[number]
                continue
            state.faults.append(check.fault.reason)
            state.rejected, state.wrong = found.get(number), check.fault.words
            if len(state.faults) > REPAIRS:
                self._give_up(number, state, check.fault)
                del pending[number]

    async def _checked(self, found: dict[int, str], step: str) -> dict[int, PartCheck]:
        """The faults of form first; what has none is looked at for what it says."""
        checks: dict[int, PartCheck] = {}
        fit: list[WrittenPart] = []
        said = self._said.copy()
        for number, text in sorted(found.items()):
            part = self._document.parts[number]
            fault = fault_of_form(self._document, part, text, said)
            if fault is not None:
                checks[number] = PartCheck(fault)
                continue
            said |= runs_of(text)
            source, restored = self._document.text_of(part), self._document.restored(text)
            fit.append(WrittenPart(number + 1, part.span.start, source, restored))
        looked = await self._check(fit, step=step) if fit else ()
        for part, check in zip(fit, looked, strict=True):
            checks[part.number - 1] = check
        return checks

    def _give_up(self, number: int, state: _Pending, fault: PartFault) -> None:
        """The source stands in the place of a part that stays wrong; raises where it may not."""
        part = self._document.parts[number]
        if not fault.is_of_fact:
            where = f"part {number + 1} of {len(self._document.parts)} of {self._item}"
            raise ItemError(fault.reason, f"{where}: {fault.words}")
        if part.tokens > self._room:
            raise UnfaithfulError(fault.reason)
        self._room -= part.tokens
        made = self._chunk(number, state)._replace(replaced=True)
        self._stands(number, self._document.work(part), made)

    def _chunk(self, number: int, state: _Pending) -> Chunk:
        span = self._document.parts[number].span
        return Chunk(span, _NOWHERE, state.attempts, tuple(state.faults))

    def _stands(self, number: int, text: str, made: Chunk) -> None:
        self._texts[number], self._made[number] = text, made
        if made.attempts:
            self._said |= runs_of(text)

    async def _asked(self, wanted: dict[int, _Pending], step: str) -> Completion:
        prompt = self._prompt(list(wanted))
        self._version = prompt.version
        talk = [*prompt.messages, *_repair(wanted)]
        answer = await self._llm.chat(
            "rewriter", talk, item=self._item, step=step, may_be_cut=len(wanted) > 1
        )
        self._prompt_tokens += answer.prompt_tokens
        self._completion_tokens += answer.completion_tokens
        if declines(answer.content):
            raise DeclinedError
        return answer

    def _prompt(self, wanted: Sequence[int]) -> Prompt:
        """The same things first, whatever is asked for: an endpoint may have read them before."""
        document, parts = self._document, self._document.parts
        first, after = wanted[0], wanted[-1] + 1
        near = self._neighbours
        if self._context == "full":
            source, before, following, kept = self._whole, "", "", ""
            written = range(first)
        else:
            source = ""
            before = document.source(parts[max(0, first - near) : first])
            following = document.source(parts[after : after + near])
            kept = document.kept([parts[number] for number in wanted])
            written = range(max(0, first - near), first)
        return render(
            PROMPT,
            source=source,
            style=self._style.text,
            perspective=self._perspective.text,
            before=before,
            written="".join(self._with_gaps(written)).strip(),
            after=following,
            kept=kept,
            parts=[{"number": n + 1, "text": document.work(parts[n])} for n in wanted],
            asked=_named(wanted),
        )

    def _with_gaps(self, numbers: Iterable[int]) -> list[str]:
        """What is written for these parts, each after what parts it from the one before it."""
        return [
            self._document.gap_before(number, self._texts[number - 1], self._texts[number])
            + self._texts[number]
            if number
            else self._texts[number]
            for number in numbers
        ]


_NOWHERE = (0, 0)

_NOT_THERE = PartFault(
    "invalid_output", "it does not stand between its tags, which are missing or have another number"
)


def _tagged(number: int, text: str) -> str:
    return f'<rewrite part="{number + 1}">\n{text}\n</rewrite>'


def _named(numbers: Sequence[int]) -> str:
    """Such as "part 3" or "parts 3, 4 and 5"."""
    *some, last = (str(number + 1) for number in numbers)
    return f"parts {', '.join(some)} and {last}" if some else f"part {last}"


def _repair(wanted: dict[int, _Pending]) -> list[dict[str, Any]]:
    """What was written for the parts before, and what is wrong with it; nothing the first time."""
    wrong = {number: state for number, state in wanted.items() if state.wrong}
    if not any(state.faults for state in wrong.values()):
        return []
    said = [_tagged(n, state.rejected) for n, state in wrong.items() if state.rejected]
    faults = "\n".join(f"- part {number + 1}: {state.wrong}" for number, state in wrong.items())
    request = (
        f"That answer cannot be used:\n{faults}\n\nWrite {_named(list(wanted))} again, each of them"
        f' whole, between <rewrite part="{next(iter(wanted)) + 1}"> with its number and </rewrite>.'
    )
    # some servers refuse an empty message of the assistant
    return [
        {"role": "assistant", "content": "\n\n".join(said) or "(empty answer)"},
        {"role": "user", "content": request},
    ]
