"""A rewritten part against its source: what is exact by code, the meaning by layers and a judge.

Exact faults come first, since they need nobody. Then the layers flag what may be meant otherwise.
Where there is a judge it looks at the parts that are chosen for it, or at all, and its word stands
over the flags. A part that it gave back is judged again, whatever the new answer looks like.
"""

import asyncio

from records.digest import digest
from synth.llm.client import LLM
from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.fidelity.checks import TextKind, asks_judge, fidelity_of, flags_of
from synth.rephrasing.fidelity.part_judge import judged_part
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import Instruction
from synth.rephrasing.writing.parts import PartCheck, PartFault

BEFORE = 600
"""Characters of the document before a part that the judge sees."""

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
        self._form = style.text.partition("\n")[0]
        self._given_back: set[str] = set()
        """Parts of the source whose rewrites the judge found unfaithful."""

    async def __call__(self, source: str, rewrite: str, /, *, step: str) -> PartCheck:
        fault, flags, is_chosen = await asyncio.to_thread(self._by_code, source, rewrite)
        if fault is not None:
            return PartCheck(fault)
        is_due = is_chosen or self._config.judge == "all" or source in self._given_back
        if not (self._config.asks_judge and is_due):
            return PartCheck(flags=flags)
        judged = await judged_part(
            self._llm,
            source,
            rewrite,
            before=self._before(source),
            form=self._form,
            item=self._item,
            step=f"judge-{step}",
        )
        if judged.verdict == UNFAITHFUL:
            self._given_back.add(source)
            words = f"it does not say what the part says: {judged.told()}"
            return PartCheck(PartFault(UNFAITHFUL, words, is_of_fact=True), verdict=UNFAITHFUL)
        return PartCheck(verdict=judged.verdict)

    def _before(self, source: str) -> str:
        """What the document says just before the part, from the beginning of a line."""
        at = self._document.find(source)
        before = self._document[max(0, at - BEFORE) : max(0, at)].strip()
        return before.partition("\n")[2] or before if at > BEFORE else before

    def _by_code(self, source: str, rewrite: str) -> tuple[PartFault | None, tuple[str, ...], bool]:
        """What is exact and wrong, the flags, and whether the judge is worth a request."""
        if faults := exact_faults(source, rewrite, document=self._document):
            words = "; ".join(fault.evidence for fault in faults)
            return PartFault(f"{faults[0].kind}_changed", words, is_of_fact=True), (), False
        fidelity = fidelity_of(source, rewrite, kind=self._kind)
        config = self._config.fidelity
        is_chosen = asks_judge(fidelity, config, key=digest(self._item, source))
        return None, tuple(flags_of(fidelity, config)), is_chosen
