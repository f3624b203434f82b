"""Fine-tuning on a dataset's accepted conversations, and what the model then can do."""

from typing import NamedTuple

from prefect import flow

from flows.training.learning import learn
from flows.training.scoring import check_scores, scored
from trainer.evaluation.scoring import Scored, ScoreSettings
from trainer.training.ending import Trained
from trainer.training.settings import TrainConfig


class FineTuned(NamedTuple):
    trained: Trained
    scored: Scored | None
    """None where no tasks were named to score it on."""


@flow(name="sft", flow_run_name="sft-{config.out}")
async def sft(config: TrainConfig, scores: ScoreSettings | None = None) -> FineTuned:
    """Train on conversations; run again, it goes on from the last checkpoint. Checkpoints, curves
    and the model for transformers lie in `out`. With `scores` the model then plays held-out tasks
    of a dataset; what came out lies in `out`/scores."""
    if scores is not None:
        check_scores(scores)
    trained = await learn(config, "sft")
    return FineTuned(trained, await scored(config, scores) if scores is not None else None)
