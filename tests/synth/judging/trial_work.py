"""Plans of the judge's trial over made-up episodes."""

from collections import Counter

from synth.engine.stages import Item
from synth.judging.calibration import JudgingConfig, plan_calibration
from synth.judging.perturbation.planning import Pair, TriedBefore
from synth.judging.perturbation.registry import CONTROL, PARAPHRASE
from tests.synth.judging.perturbation_work import sources

ALL = JudgingConfig(perturbed_share=1.0)
_IDS = sorted(s.trajectory["trajectory_id"] for s in sources())


def planned(
    passed: list[str] | None = None,
    *,
    accepted: list[str] | None = None,
    config: JudgingConfig = ALL,
    before: TriedBefore = TriedBefore(),
    trial_id: str = "t",
    graded: int | None = None,
) -> list[Item]:
    passed = _IDS if passed is None else passed
    return plan_calibration(
        set(passed if accepted is None else accepted),
        set(passed),
        before,
        grading_id="g",
        trial_id=trial_id,
        writer="w",
        graded=len(passed) if graded is None else graded,
        config=config,
    )


def pair_of(item: Item) -> Pair:
    return Pair(**item.data)


def kind_of(item: Item) -> str:
    return item.data["perturbation"]


def sorts(items: list[Item]) -> Counter[str]:
    return Counter(k if (k := kind_of(i)) in (CONTROL, PARAPHRASE) else "negative" for i in items)
