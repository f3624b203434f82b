"""A model changes one sentence of a rewrite, and another request confirms it: both ask the role
`generator`.

Code holds the writer to one sentence that stands in the rewrite once. The second reading is given
the two sentences in an order drawn for the item and is not told which of them is which.
"""

from typing import Any, Literal, NamedTuple

from records.digest import digest
from records.seeds import rng_of
from synth.judging.panel import judge_identity
from synth.judging.perturbation.writing import TEXT, schema_of
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import render, version_of
from synth.rephrasing.calibration.kinds import BY_NAME, PARAPHRASE, kinds_version
from synth.rephrasing.facts.text import squeeze
from synth.rephrasing.fidelity.part_judge import stands_in
from synth.rephrasing.structure.sentences import sentences

WRITTEN_BY = "generator"
"""The role that writes, and reads a second time."""

PERTURBATION_PROMPT, PARAPHRASE_PROMPT, SECOND_READING_PROMPT = (
    "rewrite_perturbation",
    "rewrite_paraphrase",
    "rewrite_second_reading",
)

SHORTEST, LONGEST = 0.5, 2.0
"""Bounds of the new sentence's characters as shares of the old one's."""

Agreement = Literal["original", "edited", "both", "neither"]


class SentenceEdit(NamedTuple):
    old: str
    """A sentence of the rewrite, as it stands there."""
    new: str
    why: str

    def made_in(self, rewrite: str) -> str:
        return rewrite.replace(self.old, self.new, 1)


class SentenceReading(NamedTuple):
    agrees: Agreement
    """Which of the two sentences says what the source says."""
    quote: str
    """The words of the source that decide."""
    why: str

    def confirms(self, sort: str) -> bool:
        """Whether a perturbation changed the meaning, or a paraphrase did not."""
        return self.agrees == ("both" if sort == PARAPHRASE else "original")


def writer_version(generator: RoleConfig) -> str:
    """Of whoever writes and reads a second time, with its prompts and kinds."""
    prompts = (PERTURBATION_PROMPT, PARAPHRASE_PROMPT, SECOND_READING_PROMPT)
    return digest(judge_identity(generator), kinds_version(), *map(version_of, prompts))


async def write_edit(
    llm: LLM, source: str, rewrite: str, sort: str, *, item: str, step: str
) -> SentenceEdit | None:
    """One sentence of the rewrite with a change of the kind `sort`, or a paraphrase of it; None
    where the writer finds no place. ItemError where its answers are no such edit."""

    def check(answer: Any) -> None:
        if answer["has_place"] and (fault := edit_fault(answer["old"], answer["new"], rewrite)):
            raise InvalidOutputError(fault)

    if sort == PARAPHRASE:
        talk = render(PARAPHRASE_PROMPT, source=source, rewrite=rewrite).messages
    else:
        kind = BY_NAME[sort]
        talk = render(
            PERTURBATION_PROMPT,
            source=source,
            rewrite=rewrite,
            what=kind.what,
            instruction=kind.instruction,
        ).messages
    answer = await llm.structured(
        WRITTEN_BY, talk, item=item, step=step, name="sentence", schema=_EDIT, check=check
    )
    if not answer["has_place"]:
        return None
    return SentenceEdit(answer["old"], answer["new"], answer["why"])


def edit_fault(old: str, new: str, rewrite: str) -> str | None:
    """What is wrong with an edit of one sentence, in words for the writer. That nothing else of the
    rewrite changes follows from how the edit is made."""
    times = rewrite.count(old) if old.strip() else 0
    if times != 1:
        return (
            f"old = {old!r} stands in the rewrite {times} times; copy one sentence of it exactly,"
            " so long that it stands there once"
        )
    if len(sentences(old.strip())) > 1:
        return f"old = {old!r} is more than one sentence; choose one of them"
    if squeeze(new) == squeeze(old):
        return f"new = {new!r} says the same as old in the same words"
    if new.count("\n") != old.count("\n"):
        return f"new = {new!r} has other line ends than old"
    if not SHORTEST <= len(new) / len(old) <= LONGEST:
        return (
            f"new has {len(new)} characters and old {len(old)}; it must have between"
            f" {SHORTEST:g} and {LONGEST:g} times as many"
        )
    return None


async def read_edit(
    llm: LLM, source: str, edit: SentenceEdit, *, item: str, step: str
) -> SentenceReading:
    """Which of the old and the new sentence agrees with the source. ItemError where no words of the
    source are quoted."""

    def check(answer: Any) -> None:
        if not stands_in(answer["quote"], squeeze(source)):
            raise InvalidOutputError(
                f"quote = {answer['quote']!r} does not stand in the part; copy the words that"
                " decide exactly"
            )

    edited_is_a = rng_of(item, f"order:{step}").random() < 0.5
    a, b = (edit.new, edit.old) if edited_is_a else (edit.old, edit.new)
    talk = render(SECOND_READING_PROMPT, source=source, a=a.strip(), b=b.strip()).messages
    answer = await llm.structured(
        WRITTEN_BY, talk, item=item, step=step, name="reading", schema=_READING, check=check
    )
    agrees: Agreement | Literal["a", "b"] = answer["agrees"]
    if agrees in ("a", "b"):
        agrees = "edited" if (agrees == "a") == edited_is_a else "original"
    return SentenceReading(agrees, answer["quote"], answer["why"])


_EDIT = schema_of(why=TEXT, has_place={"type": "boolean"}, old=TEXT, new=TEXT)
_READING = schema_of(
    quote=TEXT, why=TEXT, agrees={"type": "string", "enum": ["a", "b", "both", "neither"]}
)
