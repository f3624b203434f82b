"""Settings of the environment of answers from given material."""

from typing import Self

from pydantic import Field, model_validator

from records.config import Config
from synth.gym.maths.splits import SplitShares


class GroundingFile(Config):
    """Rows of documents and questions: Parquet, JSON lines or JSON, a file, a folder or a
    pattern."""

    path: str
    """Where the rows are."""
    documents: str = "documents"
    """Column of what the answer may be drawn from: a text, or a list of them."""
    question: str = "question"
    """Column of the question."""
    answers: str = "answers"
    """Column of what a right answer tells, a text or a list of which each has to be told: a name, a
    number with its unit, a date. Rows without it leave to the judge whether the question is
    answered."""
    answerable: str = "answerable"
    """Column that is false where the documents do not answer the question; then the right answer
    says so. Rows without it are answered by their documents."""
    tags: tuple[str, ...] = ()
    """Columns whose values become tags, `column:value`."""
    tasks: int | None = Field(default=None, ge=1)
    """Rows at most, from the beginning of the files; None: all."""


class GroundingDataset(Config):
    """Questions on the records that tools returned in the episodes of a dataset."""

    path: str
    """Folder of the dataset."""
    tasks: int = Field(default=200, ge=1)
    """Questions at most."""
    results: int = Field(default=4, ge=1)
    """Results of an episode that are shown, the last ones."""
    most_chars: int = Field(default=4000, ge=200)
    """Characters of the results that are shown together; longer ones are left out."""
    unanswerable: float = Field(default=0.25, ge=0.0, le=1.0)
    """Share of the questions that ask for a field or a record which is not there."""


class GroundingSettings(Config):
    """The family `grounding`."""

    files: tuple[GroundingFile, ...] = ()
    """Documents and questions of your own."""
    datasets: tuple[GroundingDataset, ...] = ()
    """Datasets whose tool results are asked about."""
    seed: int = 0
    """Of the questions on datasets."""
    shares: SplitShares = SplitShares()
    """Which material belongs to which split: files by their documents, datasets by the question;
    what a dataset holds out is held out."""

    @model_validator(mode="after")
    def _has_material(self) -> Self:
        if not self.files and not self.datasets:
            raise ValueError("name what is asked about: files, datasets, or both")
        return self
