"""Pretraining on texts: a dataset's rephrased documents, or files."""

from prefect import flow

from flows.training.learning import learn
from trainer.training.ending import Trained
from trainer.training.settings import TrainConfig


@flow(name="pretrain", flow_run_name="pretrain-{config.out}")
async def pretrain(config: TrainConfig) -> Trained:
    """Train on texts; run again, it goes on from the last checkpoint. Checkpoints, curves and the
    model for transformers lie in `out`."""
    return await learn(config, "pretrain")
