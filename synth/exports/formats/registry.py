"""Every format of exports by its name."""

from typing import Literal, get_args

from records.errors import ConfigError
from synth.exports.formats.atif import ATIF
from synth.exports.formats.form import ExportFormat, FileType
from synth.exports.formats.hf import HF
from synth.exports.formats.k2_text import K2
from synth.exports.formats.messages import Arguments, Reasoning
from synth.exports.formats.openai import OPENAI
from synth.exports.formats.sharegpt import SHAREGPT
from synth.exports.formats.trl import PREFERENCES, TRL, UNPAIRED
from synth.exports.formats.verl import VERL

FormatName = Literal["hf", "trl", "openai", "sharegpt", "verl", "k2", "atif", "preferences"]

FORMATS: dict[str, ExportFormat] = {
    one.name: one for one in (HF, TRL, OPENAI, SHAREGPT, VERL, K2, ATIF, PREFERENCES)
}
assert tuple(FORMATS) == get_args(FormatName)


def format_named(name: str) -> ExportFormat:
    """ConfigError with the names there are."""
    if name not in FORMATS:
        raise ConfigError(f"format must be one of {', '.join(FORMATS)}, got {name!r}")
    return FORMATS[name]


def without_pairs(name: str) -> ExportFormat:
    """The attempts of a format that has pairs. ConfigError for another."""
    if name != PREFERENCES.name:
        raise ConfigError(
            f"--unpaired is for --format {PREFERENCES.name}, whose pairs it leaves out; the format "
            f"{name} has none"
        )
    return UNPAIRED


def file_type_of(form: ExportFormat, asked: str | None) -> FileType:
    """The type of files that was asked for, or the format's own. ConfigError for another."""
    if asked is None:
        return form.file_types[0]
    for allowed in form.file_types:
        if allowed == asked:
            return allowed
    raise ConfigError(
        f"the format {form.name} is written as {' or '.join(form.file_types)}, not as {asked}"
    )


def check_arguments(form: ExportFormat, asked: Arguments) -> None:
    """ConfigError where text was asked for and the format writes arguments in a way of its own."""
    if asked == "text" and asked not in form.arguments:
        having = ", ".join(name for name, one in FORMATS.items() if asked in one.arguments)
        raise ConfigError(
            f"the format {form.name} writes arguments of calls in its own way, so --arguments "
            f"{asked} is not for it; it is for {having}"
        )


def check_reasoning(form: ExportFormat, asked: Reasoning) -> None:
    """ConfigError where the format has no place for thoughts of this kind."""
    if asked not in form.reasoning:
        raise ConfigError(form.why_no_reasoning)
