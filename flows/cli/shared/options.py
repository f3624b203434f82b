"""The options that several commands take, each defined once. Nothing heavy is imported here."""

from typing import Annotated

from cyclopts import Parameter, validators

DatasetOption = Annotated[str | None, Parameter(name="--dataset", alias="-d")]
"""Folder of the dataset; `flows.runtime.settings.dataset_path` says what None means."""

Json = Annotated[bool, Parameter(name="--json", negative="")]
"""Print for programs instead of people."""

Flag = Annotated[bool, Parameter(negative="")]
"""Off unless it is given; there is no `--no-...` of it."""

Set = Annotated[list[str], Parameter(name="--set", negative="")]
"""Settings `key=value` over those of a file or the defaults."""

Names = Annotated[list[str], Parameter(negative="", consume_multiple=True)]
"""Several words after one option."""

License = Annotated[str | None, Parameter(name="--license")]
"""An SPDX id, or unknown."""

Port = Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65535))]
"""Where to listen on 127.0.0.1; 0 takes a free one."""


def at_least(least: int, *, most: int | None = None) -> Parameter:
    """For numbers with bounds, as in `Annotated[int, at_least(1)]`."""
    return Parameter(validator=validators.Number(gte=least, lte=most))
