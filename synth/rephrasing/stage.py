"""The stage `rephrase`: an item is one rewrite of one document.

The plan holds places, no texts: it reads every source once from end to end, in windows of so many
texts of one source, and `make` reads the document again by its place. Which window a text is in
hangs on its place alone, so that other counts only add items to windows. Ids hang on the texts
themselves, so a text is the same item wherever it lies, and a text that stands twice is rewritten
once.
"""

import asyncio
import hashlib
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ItemError
from records.sizes import TOKEN_COUNTER, count_tokens
from records.store.commits import ItemStatus, failed
from records.tables.schemas import Row
from records.tables.splits import own_split
from synth.engine.run import Run
from synth.engine.stages import Item, ItemResult, ShardContext, dropped
from synth.matching.evaluations import check_evaluations
from synth.prompts.templates import version_of
from synth.rephrasing.exact.faults import EXACT_VERSION
from synth.rephrasing.fidelity.choice import CHOICE_VERSION
from synth.rephrasing.fidelity.language import language_of
from synth.rephrasing.fidelity.part_judge import (
    FAITHFUL,
    VERDICTS,
    judge_id_of,
    prompt_version,
    verdict_row,
)
from synth.rephrasing.repeats import TextCounts
from synth.rephrasing.sources.decontamination import (
    IN_EVALUATION,
    Decontaminator,
    decontaminator_of,
)
from synth.rephrasing.sources.sources import source_of
from synth.rephrasing.sources.texts import BadRow, SourceText, TextPosition, TextSource
from synth.rephrasing.structure.chunks import Document, Span, documents_of
from synth.rephrasing.writing.assignment import Assigner, Assignment
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.genres import GenreFinder
from synth.rephrasing.writing.part_checks import FIXED, PartChecker
from synth.rephrasing.writing.parts import (
    PROMPT,
    DeclinedError,
    UnfaithfulError,
    Writer,
    Written,
)

DECIDED_LATER = (
    *("selection", "fidelity", "gates", "heldout_share", "align"),
    *("decontaminate", "decontaminate_words"),
)
"""Settings of what is made of the rewrites: they write no text, so they change no item."""

STAGE_VERSION = 6
"""Raised when the same text would be rewritten otherwise by the same answers."""

NAME = "rephrase"

UNDETERMINED = "und"

WINDOW_ROWS = 10_000
WINDOW_CHARS = 50_000_000
"""Of a window, whichever comes first: what its plan takes of memory, and what a text that is moved
in its file may move. Part of where shards are found again, so another number plans a run anew."""


class At(NamedTuple):
    """A rewrite that is to be made: of which document, and which one of it."""

    source: int
    """Number of the source in the configuration."""
    place: TextPosition
    part: int
    parts: int
    """Documents that the text was cut into."""
    span: Span
    rewrite: int
    again: int
    """How often the text stood in the sources before: it is rewritten once."""


class RephraseStage:
    name = NAME
    window: int | None = None
    """Which part of the stage this is; None: all of it."""

    def __init__(self, run: Run[RephraseConfig]) -> None:
        self.run = run
        self.config = run.config
        self.assigner = Assigner(self.config)
        self.sources = [source_of(source) for source in self.config.sources]
        self.genres = GenreFinder()
        self.base = base_of(self.config, self.assigner)
        self.judge_id = judge_id_of(self.config.roles["judge"])
        self._items: list[Item] = []
        self._evaluations: Decontaminator | None = None
        """Read with the first plan."""

    def plan(self) -> list[Item]:
        """Of the window that the stage is, else of all."""
        if self.window is not None:
            return self._items
        return [item for window in self.windows() for item in window.plan()]

    def windows(self) -> Iterator["RephraseStage"]:
        """The stage in parts, read as they are asked for; at least one."""
        seen, empty = TextCounts(), True
        for number in range(len(self.sources)):
            for window in self.windows_of(number, seen):
                empty = False
                yield window
        if empty:
            yield self._in_window(0, [])

    def windows_of(self, number: int, seen: TextCounts) -> Iterator["RephraseStage"]:
        """Those of one source; `seen` has the texts before it."""
        for part, items in enumerate(self._items_of(number, self.sources[number], seen)):
            yield self._in_window(part * len(self.sources) + number, items)

    def _in_window(self, number: int, items: list[Item]) -> "RephraseStage":
        """This stage with a part of its plan; its sources go on from where they were read last."""
        part = copy(self)
        part.window, part._items = number, items
        return part

    def bytes_read(self) -> tuple[int, int]:
        """How many bytes of the sources the plan has come past, and how many there are; without
        those of sources that do not know."""
        known = [found for source in self.sources if (found := source.bytes_read())]
        return sum(read for read, _ in known), sum(size for _, size in known)

    def _items_of(self, number: int, source: TextSource, seen: TextCounts) -> Iterator[list[Item]]:
        items: list[Item] = []
        limit = self.config.sources[number].max_documents
        taken = rows = chars = 0
        for place, row in source.texts():
            if taken == limit:
                break
            if isinstance(row, BadRow):
                items.append(self._bad(number, place, row))
            else:
                taken += 1
                chars += len(row.text)
                items += self._rewrites(number, place, row.text, seen)
            rows += 1
            if rows == WINDOW_ROWS or chars >= WINDOW_CHARS:
                yield items
                items, rows, chars = [], 0, 0
        if items:
            yield items

    def _rewrites(
        self, number: int, place: TextPosition, text: str, seen: TextCounts
    ) -> Iterator[Item]:
        source_id = source_id_of(text)
        again = seen.add(int(source_id, 16))
        spans = documents_of(text, most=self.config.max_document_tokens)
        for part, span in enumerate(spans):
            shared = self._evaluation_in(text[span.start : span.end])
            for rewrite in range(self.config.rewrites):
                at = At(number, place, part, len(spans), span, rewrite, again)
                item_id = self._item_id(source_id, at)
                if shared is None:
                    yield Item(item_id, {"at": at})
                else:  # another item: without the evaluation the document is rewritten
                    words = f"{source_id}, part {part}: {shared}"
                    yield Item(
                        digest(IN_EVALUATION, item_id), {"unfit": unfit(IN_EVALUATION, words)}
                    )

    def _evaluation_in(self, document: str) -> str | None:
        """The words that a document shares with an evaluation, and where."""
        if not self.config.decontaminate:
            return None
        if self._evaluations is None:
            self._evaluations = decontaminator_of(self.config)
        return self._evaluations.shared(document)

    def _bad(self, number: int, place: TextPosition, row: BadRow) -> Item:
        """The item that a row without a text is counted by."""
        item_id = digest(self.base, row.reason, self.config.sources[number].path, place)
        return Item(item_id, {"unfit": unfit(row.reason, f"{row.name}: {row.words}")})

    def _item_id(self, source_id: str, at: At) -> str:
        source = self.config.sources[at.source]
        decided = source.kind, source.genre, source.styles, source.language
        return digest(self.base, *decided, source_id, at.part, at.rewrite, at.again)

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        if "unfit" in item.data:
            return ItemResult({}, item.data["unfit"])
        at: At = item.data["at"]
        if at.again:
            return dropped("repeated_source")
        text = await asyncio.to_thread(self.sources[at.source].read, at.place)
        source_id = source_id_of(text.text)
        if self._item_id(source_id, at) != item.item_id:
            raise ItemError("source_changed", f"{text.name} changed since the run was planned")
        excerpt = text.text[at.span.start : at.span.end]
        document = Document(excerpt, chunk_tokens=self.config.chunk_tokens)
        if all(part.is_verbatim for part in document.parts):
            return dropped("nothing_to_rewrite")
        if text.language is None:
            guessed = language_of(text.text)
            text = text._replace(language=None if guessed == UNDETERMINED else guessed)
        source = self.config.sources[at.source]
        kind, genre = source.kind, source.genre
        if genre is None and kind != "maths":
            genre = await self.genres.of(f"{source_id}-{at.part}", excerpt, shard.llm)
        assigned = self.assigner.of(
            source_id, at.rewrite, source=source, language=text.language, genre=genre
        )
        writer = Writer(
            document,
            shard.llm,
            item=item.item_id,
            style=assigned.style,
            perspective=assigned.perspective,
            context=self.config.context,
            neighbours=self.config.neighbours,
            check=PartChecker(self.config, shard.llm, item.item_id, excerpt, kind, assigned.style),
            may_replace=kind != "maths",
            max_tokens=self.config.roles["rewriter"].max_tokens,
            parts_per_request=self.config.parts_per_request,
        )
        try:
            written = await writer.write()
        except DeclinedError:
            return dropped("declined")
        except UnfaithfulError as error:
            return dropped(error.reason)
        row = self._row(item, text, source_id, excerpt, assigned, written) | {"genre": genre}
        # what stands is faithful where the judge was asked: else it went back or was replaced
        judged = [part for part, chunk in enumerate(written.chunks) if chunk.verdict is not None]
        return ItemResult(
            {
                "rephrasings": [row],
                VERDICTS: [verdict_row(self.judge_id, row, part, FAITHFUL) for part in judged],
            }
        )

    def _row(
        self,
        item: Item,
        text: SourceText,
        source_id: str,
        excerpt: str,
        assigned: Assignment,
        written: Written,
    ) -> Row:
        at: At = item.data["at"]
        source, reader = self.config.sources[at.source], self.sources[at.source]
        return {
            "rephrasing_id": item.item_id,
            "source_id": source_id,
            "source_hash": hashlib.sha256(excerpt.encode()).hexdigest(),
            "source_path": source.path,
            "source_name": text.name,
            "source_language": text.language,
            "source_part": at.part,
            "source_parts": at.parts,
            "source_span": list(at.span),
            "kind": source.kind,
            "rewrite": at.rewrite,
            "style": assigned.style.name,
            "perspective": assigned.perspective.name,
            "answer": text.answer,
            "source_text": excerpt,
            "text": written.text,
            "chunks": [chunk._asdict() for chunk in written.chunks],
            "source_tokens": count_tokens(excerpt),
            "text_tokens": count_tokens(written.text),
            "prompt_tokens": written.prompt_tokens,
            "completion_tokens": written.completion_tokens,
            "model": self.config.roles["rewriter"].model_of(item.item_id, "rewriter"),
            "prompt_versions": {
                "rewrite": written.prompt_version,
                "style": assigned.style.version,
                "perspective": assigned.perspective.version,
            },
            "kept": None,
            "drop_reason": None,
            "license": reader.license,
            "split": own_split("document", source_id, heldout_share=self.config.heldout_share),
        }


def unfit(reason: str, words: str) -> ItemStatus:
    """Of an item that is dropped before anything is asked for it, with why in words."""
    return failed(reason, words)._replace(status="dropped")


def source_id_of(text: str) -> str:
    """Of a text's content alone; its split hangs on it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def base_of(config: RephraseConfig, assigner: Assigner) -> str:
    """What decides every rewrite of a run beside its text."""
    settings: dict[str, Any] = config.identity()
    for name in ("sources", *DECIDED_LATER):
        settings.pop(name, None)  # an identity leaves out what is as it was before it was a setting
    # the generator tries the judge and has no part in rewrites
    asked = (pair for pair in config.roles_asked().items() if pair[0] != "generator")
    settings["roles"] = {role: own.identity() for role, own in asked}
    return digest(
        NAME,
        STAGE_VERSION,
        TOKEN_COUNTER,
        settings,
        version_of(PROMPT),
        EXACT_VERSION,
        (prompt_version(), CHOICE_VERSION, FIXED.identity()) if config.asks_judge else None,
        assigner.versions,
    )


def sources_of(config: RephraseConfig) -> list[TextSource]:
    """ConfigError for a source or an evaluation that cannot be read, and for a style or perspective
    that nobody knows."""
    Assigner(config)
    check_evaluations(config.decontaminate, setting="decontaminate")
    return [source_of(source) for source in config.sources]
