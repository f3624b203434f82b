"""Fine-tuning on a dataset's accepted conversations."""

from prefect import flow

from flows.learning import learn
from trainer.settings import TrainConfig
from trainer.training import Trained


@flow(name="sft", flow_run_name="sft-{config.out}")
async def sft(config: TrainConfig) -> Trained:
    """Train on conversations; run again, it goes on from the last checkpoint. Checkpoints, curves
    and the model for transformers lie in `out`."""
    return await learn(config, "sft")
