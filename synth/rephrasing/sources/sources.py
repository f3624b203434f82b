"""The source that a configuration names."""

from pathlib import Path

from records.errors import ConfigError
from records.sources.data_sets import is_saved
from records.sources.stored_files import exists, formats_said, is_remote
from synth.rephrasing.sources.built_in import CPython, MathsProblems
from synth.rephrasing.sources.files import Files
from synth.rephrasing.sources.tables import DataSet
from synth.rephrasing.sources.texts import TextSource
from synth.rephrasing.writing.config import SourceConfig

BUILT_IN = {"cpython": CPython, "maths": MathsProblems}


def is_on_hub(config: SourceConfig) -> bool:
    """Whether the source is a name that nothing on this machine has."""
    return (
        config.format == "datasets"
        and not is_remote(config.path)
        and not Path(config.path).exists()
    )


def source_of(config: SourceConfig) -> TextSource:
    """Reads nothing yet. ConfigError says what is allowed."""
    path = Path(config.path)
    if config.format == "datasets" or is_saved(path):
        return DataSet(config)
    if config.path in BUILT_IN:
        return BUILT_IN[config.path]()
    if is_remote(config.path) or exists(config.path):
        return Files(config)
    raise ConfigError(
        f"sources.path = {config.path!r} is neither a {formats_said()}, a folder of such files, a "
        "pattern that finds some, an address such as s3://bucket/folder, a data set saved on disk "
        f"nor one of {', '.join(BUILT_IN)}; a name on the Hugging Face hub wants "
        'format = "datasets"'
    )
