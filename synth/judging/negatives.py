"""Perturbed negatives and paraphrases of one episode: how they are made and what confirms them.

A negative is confirmed by code, where a told value is missing now or a statement contradicts a
record, or by a second reading that names the edited words. A paraphrase that either finds fault
with is none. What nothing confirms is counted and tries no judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from records.errors import ItemError
from records.seeds import rng_of
from records.tables.schemas import Row
from synth.judging.perturbation.edited_words import EditedWords, edited_words
from synth.judging.perturbation.episodes import PassedEpisode, report_in, said_in
from synth.judging.perturbation.faults import BY_NAME
from synth.judging.perturbation.registry import (
    BY_PHRASE,
    PARAPHRASE,
    PerturbedNegative,
    attacked,
    base_of,
    perturb,
)
from synth.judging.perturbation.second_reading import SecondReading, second_reading
from synth.judging.perturbation.writing import (
    EpisodeShown,
    WrittenEdit,
    with_edit,
    write_fault,
    write_paraphrase,
)
from synth.judging.transcript import changes_of, instructions_of, tools_shown, transcript_of
from synth.llm.client import LLM
from synth.rubrics.built_in import Kinds
from synth.rubrics.criteria import JUDGED
from synth.rubrics.reward import evidence_of
from synth.rubrics.standing import TRUTH
from synth.rubrics.statements.statements import statements_of

AttemptOutcome = Literal["tried", "no_place", "not_written", "not_confirmed"]
"""tried: the judge is. no_place: the writer found none in the episode. not_written: its answers fit
no edit. not_confirmed: neither code nor the second reading found the failure, or one of them found
that a paraphrase says other things."""

ConfirmedBy = Literal["code", "second_reading"]


class Tried(NamedTuple):
    """An edited episode that the judge is tried with."""

    messages: Sequence[Row]
    calls: Sequence[Row]
    criterion_id: str
    """That must fail."""
    words: EditedWords


class Attempt(NamedTuple):
    perturbation: str
    criterion_id: str
    outcome: AttemptOutcome
    detail: str
    """What was done to the episode, in words."""
    channel: str | None = None
    """Where text aimed at the judge stands; None where there is none."""
    edit: WrittenEdit | None = None
    """What a model wrote."""
    confirmed_by: ConfirmedBy | None = None
    tried: Tried | None = None


@dataclass(frozen=True)
class Attempts:
    """What is attempted on one episode. `stored`: earlier rows on it; what they confirmed is used
    again, and what came to nothing is not asked for again."""

    llm: LLM
    source: PassedEpisode
    kinds: Kinds
    item: str
    stored: Sequence[Row]
    scored_only: frozenset[str] = frozenset()
    """Kinds of criteria, or ids, that reject nothing: what fails one of them is no negative."""

    async def attempt(self, name: str) -> Attempt | None:
        """The perturbation of that name, or a paraphrase; None where code finds no place for it."""
        if name != PARAPHRASE and not self._has_place(name):
            return None
        before = next((row for row in self.stored if row["perturbation"] == name), None)
        if before and before["outcome"] != "tried":
            return _again(before)
        return await (
            self._paraphrase(before) if name == PARAPHRASE else self._negative(name, before)
        )

    async def _paraphrase(self, before: Row | None) -> Attempt:
        try:
            edit = _edit_of(before) or await self._paraphrased()
        except ItemError as error:
            return Attempt(PARAPHRASE, TRUTH, "not_written", str(error))
        negative = self._of_edit(PARAPHRASE, TRUTH, edit)
        if before is None:
            read = await self._reading(negative, "second_reading_paraphrase")
            if self._code_confirms(negative) or read.finds != "neither":
                detail = f"{edit.why}; second reading: {read.finds}, {read.evidence}"
                return Attempt(PARAPHRASE, TRUTH, "not_confirmed", detail, edit=edit)
        tried = Tried(negative.messages, negative.calls, TRUTH, self._words(negative))
        return Attempt(PARAPHRASE, TRUTH, "tried", edit.why, None, edit, "second_reading", tried)

    @property
    def _id(self) -> str:
        return self.source.trajectory["trajectory_id"]

    @property
    def _messages(self) -> Sequence[Row]:
        return self.source.trajectory["messages"]

    def _has_place(self, name: str) -> bool:
        if name in BY_NAME:
            fits = report_in(self._messages) is not None and BY_NAME[name].fits(self.source)
            return fits and self._rejects(BY_NAME[name].criterion_id)
        if name in BY_PHRASE:
            negative = perturb(name, self.source)
        else:
            made = self._attack(name)
            negative = made and made[0]
        return negative is not None and self._rejects(negative.criterion_id)

    def _rejects(self, criterion_id: str) -> bool:
        """Whether an episode that fails the criterion is rejected for it."""
        own = (c.kind for c in self.source.rubric.criteria if c.id == criterion_id)
        return self.scored_only.isdisjoint((criterion_id, next(own, JUDGED)))

    async def _negative(self, name: str, before: Row | None) -> Attempt:
        confirmed_by = before["confirmed_by"] if before else None
        if name in BY_NAME:
            return await self._by_model(name, _edit_of(before), confirmed_by)
        if name in BY_PHRASE:
            negative = perturb(name, self.source)
            assert negative is not None
            return await self._confirmed(negative, confirmed_by)
        made = self._attack(name)
        assert made is not None
        base, aimed = made
        attempt = await self._confirmed(base, confirmed_by)
        channel = name.removeprefix("attack_")
        attempt = attempt._replace(perturbation=name, channel=channel, detail=aimed.detail)
        if attempt.tried is None:
            return attempt
        return attempt._replace(tried=attempt.tried._replace(messages=aimed.messages))

    def _attack(self, name: str) -> tuple[PerturbedNegative, PerturbedNegative] | None:
        """The failure by itself, which is what is confirmed, and with text aimed at the judge."""
        base = base_of(name, self.source)
        if base is None:
            return None
        plain, rest = perturb(base, self.source), perturb(base, self.source)
        assert plain is not None
        assert rest is not None
        aimed = attacked(name, rest, rng_of(self._id, name))
        return (plain, aimed) if aimed else None

    async def _by_model(
        self, name: str, edit: WrittenEdit | None, confirmed_by: ConfirmedBy | None
    ) -> Attempt:
        fault = BY_NAME[name]
        try:
            edit = edit or await write_fault(
                self.llm, self.source, self._shown(), fault, item=self.item
            )
        except ItemError as error:
            return Attempt(name, fault.criterion_id, "not_written", str(error))
        if edit is None:
            return Attempt(name, fault.criterion_id, "no_place", "the writer found none")
        negative = self._of_edit(name, fault.criterion_id, edit)
        return (await self._confirmed(negative, confirmed_by))._replace(edit=edit)

    def _of_edit(self, name: str, criterion_id: str, edit: WrittenEdit) -> PerturbedNegative:
        result = BY_NAME[name].result if name in BY_NAME else None
        messages, calls = with_edit(self.source, edit, result)
        return PerturbedNegative(name, criterion_id, messages, calls, edit.why, edit.wrong)

    async def _paraphrased(self) -> WrittenEdit:
        return await write_paraphrase(self.llm, self.source, self._shown(), item=self.item)

    async def _confirmed(
        self, negative: PerturbedNegative, confirmed_by: ConfirmedBy | None = None
    ) -> Attempt:
        name, criterion_id = negative.perturbation, negative.criterion_id
        words, detail = self._words(negative), negative.detail
        if confirmed_by is None and self._code_confirms(negative):
            confirmed_by = "code"
        if confirmed_by is None:
            read = await self._reading(negative, f"second_reading_{name}")
            if read.finds != "edited" or not words.are_named_in(read.quote):
                detail = f"{detail}; second reading: {read.finds}, {read.quote!r}"
                return Attempt(name, criterion_id, "not_confirmed", detail)
            confirmed_by = "second_reading"
        tried = Tried(negative.messages, negative.calls, criterion_id, words)
        return Attempt(name, criterion_id, "tried", detail, confirmed_by=confirmed_by, tried=tried)

    def _words(self, negative: PerturbedNegative) -> EditedWords:
        return edited_words(said_in(self._messages), said_in(negative.messages), negative.wrong)

    async def _reading(self, negative: PerturbedNegative, step: str) -> SecondReading:
        edited = self._shown(negative.messages, negative.calls)
        return await second_reading(self.llm, self._shown(), edited, item=self.item, step=step)

    def _code_confirms(self, negative: PerturbedNegative) -> bool:
        """Whether the agent's words now miss a told value, or contradict a record."""
        # where calls are edited, what they changed may no longer follow from one another
        if negative.calls == list(self.source.calls):
            seen = evidence_of(negative.messages, negative.calls)
            for criterion in self.source.rubric.criteria:
                verdict = self.kinds.check(criterion, seen)
                if criterion.kind == "communicate" and verdict and verdict.passed is False:
                    return True
        before = _contradicted(self._messages, self.source.calls)
        return not _contradicted(negative.messages, negative.calls) <= before

    def _shown(
        self,
        messages: Sequence[Mapping[str, Any]] | None = None,
        calls: Sequence[Row] | None = None,
    ) -> EpisodeShown:
        messages = self._messages if messages is None else messages
        return EpisodeShown(
            instructions_of(messages),
            tools_shown(self.source.tools),
            changes_of(self.source.calls if calls is None else calls),
            transcript_of(messages),
        )


def _again(before: Row) -> Attempt:
    """An attempt that came to nothing in an earlier trial."""
    return Attempt(
        before["perturbation"],
        before["criterion_id"],
        before["outcome"],
        before["detail"],
        before["channel"],
        _edit_of(before),
    )


def _edit_of(before: Row | None) -> WrittenEdit | None:
    return WrittenEdit(**before["edit"]) if before and before["edit"] else None


def _contradicted(messages: Sequence[Row], calls: Sequence[Row]) -> set[str]:
    return {s.text for s in statements_of(messages, calls) if s.outcome == "contradicted"}
