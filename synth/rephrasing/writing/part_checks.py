"""A rewritten part against its source: what is exact by code, the meaning by layers and a judge.

Exact faults come first, since they need nobody. Then the layers flag what may be meant otherwise.
Where there is a judge it looks at what they flag, or at all parts, and its word stands over theirs.
"""

import asyncio

from synth.llm.client import LLM
from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.fidelity.checks import TextKind, fidelity_of, flags_of
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.part_judge import judged_part
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import Instruction
from synth.rephrasing.writing.parts import PartCheck, PartFault

BEFORE = 600
"""Characters of the document before a part that the judge sees."""

FIXED = FidelityConfig()
"""Thresholds that decide which parts the judge sees while they are written. They are the same in
every run: what comes back for repair decides the text, and a run's own thresholds do not."""

UNFAITHFUL = "unfaithful"
"""The reason of a part that means something else, by the judge."""


class PartChecker:
    """A `CheckPart` for the parts of one rewrite."""

    def __init__(
        self,
        config: RephraseConfig,
        llm: LLM,
        item: str,
        document: str,
        kind: TextKind,
        style: Instruction,
    ) -> None:
        """`document`: the source as a whole."""
        self._config = config
        self._llm = llm
        self._item = item
        self._document = document
        self._kind: TextKind = kind
        self._form = style.form

    async def __call__(self, source: str, rewrite: str, /, *, step: str) -> PartCheck:
        fault, flags = await asyncio.to_thread(self._by_code, source, rewrite)
        if fault is not None:
            return PartCheck(fault)
        if not self._config.asks_judge or (self._config.judge == "flagged" and not flags):
            return PartCheck(flags=flags)
        judged = await judged_part(
            self._llm,
            source,
            rewrite,
            before=text_before(self._document, source),
            form=self._form,
            item=self._item,
            step=f"judge-{step}",
        )
        if judged.verdict == UNFAITHFUL:
            words = f"it does not say what the part says: {judged.told()}"
            return PartCheck(PartFault(UNFAITHFUL, words, is_of_fact=True), verdict=UNFAITHFUL)
        return PartCheck(verdict=judged.verdict)

    def _by_code(self, source: str, rewrite: str) -> tuple[PartFault | None, tuple[str, ...]]:
        if faults := exact_faults(source, rewrite, document=self._document):
            words = "; ".join(fault.evidence for fault in faults)
            return PartFault(f"{faults[0].kind}_changed", words, is_of_fact=True), ()
        measured = fidelity_of(source, rewrite, kind=self._kind).columns()
        return None, tuple(flags_of(measured, FIXED))


def text_before(document: str, source: str) -> str:
    """What the document says just before a part of it, from the beginning of a line."""
    at = document.find(source)
    before = document[max(0, at - BEFORE) : max(0, at)].strip()
    return before.partition("\n")[2] or before if at > BEFORE else before
