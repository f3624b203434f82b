"""The stage `rephrase`: an item is one rewrite of one document.

The plan holds places, no texts: it reads every source once from end to end, and `make` reads the
document again by its place. Ids hang on the texts themselves, so a text is the same item wherever
it lies, and a text that stands twice is rewritten once.
"""

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ItemError
from records.sizes import TOKEN_COUNTER, count_tokens
from records.tables.schemas import Row
from records.tables.splits import own_split
from synth.engine.run import Run
from synth.engine.stages import Item, ItemResult, ShardContext, dropped
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
from synth.rephrasing.sources.sources import source_of
from synth.rephrasing.sources.texts import SourceText, TextPosition, TextSource
from synth.rephrasing.structure.chunks import Document, Span, documents_of
from synth.rephrasing.writing.assignment import Assigner, Assignment
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.genres import GenreFinder
from synth.rephrasing.writing.part_checks import PartChecker
from synth.rephrasing.writing.parts import (
    PROMPT,
    DeclinedError,
    UnfaithfulError,
    Writer,
    Written,
)

DECIDED_LATER = ("selection", "fidelity", "gates", "heldout_share", "align")
"""Settings of what is made of the rewrites: they write no text, so they change no item."""

STAGE_VERSION = 6
"""Raised when the same text would be rewritten otherwise by the same answers."""

NAME = "rephrase"

UNDETERMINED = "und"


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

    def __init__(self, run: Run[RephraseConfig]) -> None:
        self.run = run
        self.config = run.config
        self.assigner = Assigner(self.config)
        self.sources = [source_of(source) for source in self.config.sources]
        self.genres = GenreFinder()
        self.base = base_of(self.config, self.assigner)
        self.judge_id = judge_id_of(self.config.roles["judge"])

    def plan(self) -> list[Item]:
        return list(self._items())

    def _items(self) -> Iterator[Item]:
        seen: dict[int, int] = {}
        for number, (config, source) in enumerate(
            zip(self.config.sources, self.sources, strict=True)
        ):
            for taken, (place, text) in enumerate(source.texts()):
                if taken == config.max_documents:
                    break
                source_id = source_id_of(text.text)
                again = seen.get(key := int(source_id, 16), 0)
                seen[key] = again + 1
                spans = documents_of(text.text, most=self.config.max_document_tokens)
                for part, span in enumerate(spans):
                    for rewrite in range(self.config.rewrites):
                        at = At(number, place, part, len(spans), span, rewrite, again)
                        yield Item(self._item_id(source_id, at), {"at": at})

    def _item_id(self, source_id: str, at: At) -> str:
        source = self.config.sources[at.source]
        decided = source.kind, source.genre, source.styles
        return digest(self.base, *decided, source_id, at.part, at.rewrite, at.again)

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
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
        (prompt_version(), CHOICE_VERSION) if config.asks_judge else None,
        assigner.versions,
    )


def sources_of(config: RephraseConfig) -> list[TextSource]:
    """ConfigError for a source that cannot be read, a style or perspective that nobody knows."""
    Assigner(config)
    return [source_of(source) for source in config.sources]
