"""torch's layers without first weights of their own: `trainer.model.initialization` draws them all,
on the device where the model lives."""

from torch import nn


class Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Nothing: what is not drawn yet has no value."""


class Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        """Nothing: what is not drawn yet has no value."""
