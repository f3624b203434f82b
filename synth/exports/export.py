"""Accepted trajectories as files for other trainers, with a dataset card.

`synth.exports.selection` says which; `synth.exports.formats` what becomes of a row. Thoughts of
agents stay out unless they are asked for. Every row carries what the judge's word on it is worth,
and a sub-agent's conversation is a row of its own, exported with its episode's row. The folder
appears whole or not at all.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from records.chat.declarations import Style
from records.errors import ConfigError
from records.new_folder import new_folder
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.exports.card import write_card
from synth.exports.card_contents import Contents, PartContents
from synth.exports.files import write_lines, write_parquet, written_text
from synth.exports.formats.form import (
    ExportFormat,
    ExportPart,
    FileType,
    FormatOptions,
    LeftOutError,
    WrittenExport,
)
from synth.exports.formats.messages import (
    Arguments,
    Reasoning,
    learnt_turns,
    num_text_arguments,
    num_thoughts,
    with_reasoning,
)
from synth.exports.formats.registry import (
    check_arguments,
    check_reasoning,
    file_type_of,
    format_named,
    without_pairs,
)
from synth.exports.selection import Selection, nothing_left, select
from synth.exports.stored_rows import note_exported, rows_in, splits_of

MARKS_FILE = "marks.csv"


class Exported(NamedTuple):
    out: str
    format: str
    rows: dict[str, int]
    """By split."""
    left_out: dict[str, int]
    """Trajectories of the dataset that were not exported, by reason."""
    text_arguments: int
    """Calls whose arguments are no JSON object: the text that the model wrote stands there."""
    thoughts: int
    """Messages of agents that carry their thought."""
    more_rows: dict[str, dict[str, int]]
    """Of formats with further files: their rows by kind and split."""
    flags_lost: int
    """Rows with messages that carry no loss, in a format that cannot say so."""


def export_dataset(
    dataset: Dataset,
    out: Path,
    *,
    format: str = "hf",
    file_type: str | None = None,
    include_heldout: bool = False,
    include_unknown_license: bool = False,
    include_code_alone: bool = False,
    reasoning: Reasoning = "none",
    declarations: Style = "json",
    arguments: Arguments = "object",
    unpaired: bool = False,
) -> Exported:
    """Write the folder `out`, which must not exist. With `unpaired`, of the format `preferences`
    only the attempts with a label, which there are without pairs as well.

    ConfigError when nothing is left to export; ItemError, naming the trajectory, when an accepted
    conversation is one that no trainer could take. Nothing is written then.
    """
    form = without_pairs(format) if unpaired else format_named(format)
    files = file_type_of(form, file_type)
    check_reasoning(form, reasoning)
    check_arguments(form, arguments)
    options = FormatOptions(reasoning, declarations, arguments)
    with dataset.connect() as db:
        selection = select(
            dataset,
            db,
            include_heldout=include_heldout,
            include_unknown_license=include_unknown_license,
            include_code_alone=include_code_alone,
        )
        with new_folder(out) as folder:
            writing = _Writing(folder, db, selection, form, files, options)
            rows = writing.parts()
            first, *others = form.parts
            if not rows[first.name]:
                raise ConfigError(_nothing(form, dataset, writing.left_out, rows))
            pattern = first.pattern(files)
            written = WrittenExport(out.absolute().name, tuple(rows[first.name]), pattern, files)
            for name, text in form.beside(written).items():
                with written_text(folder / name) as handle:
                    handle.write(text)
            exported = Exported(
                out=str(out),
                format=format,
                rows=rows[first.name],
                left_out={reason: n for reason, n in writing.left_out.items() if n},
                text_arguments=writing.text_arguments,
                thoughts=writing.thoughts,
                more_rows={part.name: rows[part.name] for part in others},
                flags_lost=writing.flags_lost,
            )
            told = {
                "--file-type": file_type,
                "--include-heldout": include_heldout,
                "--include-unknown-license": include_unknown_license,
                "--include-code-alone": include_code_alone,
                "--reasoning": None if reasoning == "none" else reasoning,
                "--declarations": None if declarations == "json" else declarations,
                "--arguments": None if arguments == "object" else arguments,
                "--unpaired": unpaired,
            }
            note_exported(db, writing.ids)
            contents = _contents(form, written, exported, rows, reasoning)
            write_card(folder, dataset, db, contents, command=_command(format, told))
    return exported


def _nothing(
    form: ExportFormat,
    dataset: Dataset,
    left_out: Counter[str],
    rows: Mapping[str, Mapping[str, int]],
) -> str:
    """Why there is no row, and what would help."""
    counts = {reason: number for reason, number in left_out.items() if number}
    if form.parts[0].source != "pairs":
        return nothing_left("trajectory", dataset, counts)
    alone = sum(sum(own.values()) for own in rows.values())
    return (
        f"{nothing_left('pair', dataset, counts)}; a pair takes several attempts at one task "
        "(rollouts.attempts), one that was accepted and one that the agent failed"
        + (f"; to write attempts with a label alone ({alone}), add --unpaired" if alone else "")
    )


def _contents(
    form: ExportFormat,
    written: WrittenExport,
    exported: Exported,
    rows: Mapping[str, Mapping[str, int]],
    reasoning: Reasoning,
) -> Contents:
    language, snippet = form.load(written)
    typed = written.file_type == "parquet"
    return Contents(
        name=written.name,
        format=form.name,
        title=form.title,
        parts=tuple(
            PartContents(
                part.name,
                rows[part.name],
                part.pattern(written.file_type),
                part.columns,
                part.meanings,
                typed,
            )
            for part in form.parts
            if rows[part.name]
        ),
        left_out=exported.left_out,
        text_arguments=exported.text_arguments,
        reasoning=reasoning,
        thoughts=exported.thoughts,
        flags_lost=exported.flags_lost,
        language=language,
        snippet=snippet,
        notes=form.notes,
    )


def _command(format: str, options: dict[str, str | bool | None]) -> str:
    """The command line that makes the same export."""
    given = (
        name if value is True else f"{name} {value}" for name, value in options.items() if value
    )
    return " ".join(["synth export DATASET --out OUT", f"--format {format}", *given])


@dataclass
class _Writing:
    """An export on its way, with what is counted of it."""

    folder: Path
    db: duckdb.DuckDBPyConnection
    selection: Selection
    form: ExportFormat
    files: FileType
    options: FormatOptions
    left_out: Counter[str] = field(init=False)
    ids: set[str] = field(default_factory=set)
    """Trajectories that stand in the files, on either side of a pair."""
    text_arguments: int = 0
    thoughts: int = 0
    flags_lost: int = 0
    _marks: Any = None

    def __post_init__(self) -> None:
        self.left_out = Counter(self.selection.left_out)

    def parts(self) -> dict[str, dict[str, int]]:
        """Write the files of every part, and the list of marks for a format that has none in its
        rows; the rows by part and split."""
        path, names = self.folder / MARKS_FILE, self.form.marks
        with written_text(path, newline="") if names else nullcontext() as handle:
            if handle is not None:
                self._marks = csv.writer(handle)
                self._marks.writerow(names)
            return {part.name: self._part(part) for part in self.form.parts}

    def _part(self, part: ExportPart) -> dict[str, int]:
        found: dict[str, int] = {}
        if part.source == "attempts":
            self.left_out["no_attempt"] = self.selection.num_chosen
        for split in splits_of(self.db, part.source):
            rows = self._made(part, split)
            path = self.folder / part.pattern(self.files).format(split)
            if self.files == "parquet":
                found[split] = write_parquet(path.parent, split, part.columns, rows)
            else:
                found[split] = write_lines(path, rows)
        return {split: number for split, number in found.items() if number}

    def _made(self, part: ExportPart, split: str) -> Iterator[Row]:
        for stored in rows_in(self.db, part.source, split, self.selection.calibrated):
            try:
                made = self._row(part, stored)
            except LeftOutError as reason:
                self.left_out[str(reason)] += 1
                if part.source == "attempts" and not stored["label"]:
                    self.left_out["not_accepted"] -= 1  # it has a reason of its own now
                continue
            sides = ("trajectory_id", "rejected_id")
            self.ids |= {stored[side] for side in sides if side in stored}
            if self._marks:
                self._marks.writerow([stored[name] for name in self.form.marks])
            if part.source == "attempts":
                self.left_out["not_accepted" if not stored["label"] else "no_attempt"] -= 1
            yield made

    def _row(self, part: ExportPart, stored: Row) -> Row:
        if "wrong" in stored:
            raise LeftOutError("attempt_untrainable")
        messages = stored["messages"]
        stored["messages"] = with_reasoning(messages, self.options.reasoning)
        if "rejected_messages" in stored:
            rejected = with_reasoning(stored["rejected_messages"], self.options.reasoning)
            stored["rejected_messages"] = rejected
        made = part.row(stored, self.options)
        if part is self.form.parts[0]:
            self.text_arguments += num_text_arguments(messages)
            self.thoughts += num_thoughts(messages, self.options.reasoning)
            asked = zip(messages, learnt_turns(messages, stored["train_turns"]), strict=True)
            if not self.form.keeps_flags:
                self.flags_lost += any(m["role"] == "assistant" and not one for m, one in asked)
        return made
