"""DuckDB views over the committed parts: one per table; `sft`, `preferences`, `rl` and `pretrain`
for trainers.

`views.sql` in the dataset's folder is the same statements with paths relative to that folder, so
the folder may move. Read it from the folder, or tell DuckDB where the folder is:

    cd data/demo && duckdb -init views.sql
    duckdb -cmd "SET file_search_path = 'data/demo'" -init data/demo/views.sql

`synth sql --views` prints them with the folder's whole path, for a DuckDB that is started anywhere.

The view `trajectories` has, beside the table's columns, those of the newest curation (highest
commit number), null where there is none. `sft` has the accepted ones for which a judge's word
counted, and those of curations that noted nothing of it. `preferences` pairs, of each task, the
best of these with the worst one that was rejected through the agent's own failure; sub-agents'
conversations are in `sft` and in no pair. `rl` has the tasks that can be played, which those of
imported conversations are not, but for those of which a trajectory shares something with an
evaluation. In the view `rephrasings` the newest decision says `kept`, `drop_reason`, `flags` and
`split`, and `repeats` names the rewrite that one repeats; rewrites that no decision has looked at
have none of these. Datasets of before decisions have their own verdict in the rows, and their
`selection`.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from records.digest import canonical_json
from records.errors import SynthError
from records.store.commits import Commit, Part
from records.tables.schemas import JSON, SCHEMA_VERSION, TableSpec
from records.tables.tables import TABLES
from records.tables.task_tables import IMPORTED

FILE = "views.sql"

_TYPES = {
    pa.utf8(): "VARCHAR",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.list_(pa.utf8()): "VARCHAR[]",
    pa.list_(pa.bool_()): "BOOLEAN[]",
    pa.list_(pa.float64()): "DOUBLE[]",
    JSON: "JSON",
}

_READERS = f"""
CREATE OR REPLACE VIEW sft AS
SELECT trajectory_id, split, messages, tools, train_turns, 1.0::DOUBLE AS weight
FROM trajectories WHERE accepted AND decided_by IS DISTINCT FROM 'code';

CREATE OR REPLACE VIEW preferences AS
SELECT task_id, better.split, better.trajectory_id AS chosen_id,
  worse.trajectory_id AS rejected_id, better.messages AS chosen, worse.messages AS rejected,
  better.tools, worse.failed_criterion
FROM (
  SELECT * FROM trajectories
  WHERE accepted AND decided_by IS DISTINCT FROM 'code' AND parent_call_id IS NULL
    AND task_id NOT IN (SELECT task_id FROM trajectories WHERE session > 0)
  QUALIFY row_number() OVER (
    PARTITION BY task_id ORDER BY score DESC NULLS LAST, trajectory_id) = 1) AS better
JOIN (
  SELECT * FROM trajectories
  WHERE NOT accepted AND attributed_to = 'agent' AND parent_call_id IS NULL
    AND task_id NOT IN (SELECT task_id FROM trajectories WHERE session > 0)
  QUALIFY row_number() OVER (
    PARTITION BY task_id ORDER BY score NULLS LAST, trajectory_id) = 1) AS worse USING (task_id);

CREATE OR REPLACE VIEW rl AS
SELECT task_id, split, agent_id, rubric, initial_state, seed FROM tasks
WHERE variant IS DISTINCT FROM '{IMPORTED}' AND NOT EXISTS (
  SELECT 1 FROM trajectories AS leaked
  WHERE leaked.task_id = tasks.task_id AND leaked.drop_reason = 'in_evaluation');

CREATE OR REPLACE VIEW pretrain AS
SELECT rephrasing_id AS doc_id, split, source_path AS source, text, 1.0::DOUBLE AS weight
FROM rephrasings WHERE kept;
"""


def views_sql(
    commits: Sequence[Commit], *, folder: Path | None = None, tables: Collection[str] | None = None
) -> str:
    """The statements that make the views; paths relative, or below `folder`. With `tables` only
    theirs: all of them take DuckDB a tenth of a second."""
    base = "" if folder is None else f"{_no_glob(str(folder))}/"
    writer = _Writer(commits, base)
    wanted = [spec for name, spec in TABLES.items() if tables is None or name in tables]
    return "".join(map(writer.view, wanted)) + (_READERS if tables is None else "")


def connect(
    root: Path, commits: Sequence[Commit], *, tables: Collection[str] | None = None
) -> duckdb.DuckDBPyConnection:
    """DuckDB in memory with the views, or those of `tables` alone; it fetches no extension."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    try:
        connection.execute(views_sql(commits, folder=root, tables=tables))
    except duckdb.Error as error:
        raise SynthError(f"cannot make the views of {root}: {error}") from error
    return connection


_Numbered = tuple[int, Part]
"""A part and the number of its commit."""


class _Writer:
    def __init__(self, commits: Sequence[Commit], base: str) -> None:
        self.base = base
        self.parts: dict[str, list[_Numbered]] = {}
        """By table, in commit order."""
        self.replacing: dict[str, list[_Numbered]] = {}
        """Those of superseding commits."""
        for commit in commits:
            for part in commit.parts:
                self.parts.setdefault(part.table, []).append((commit.number, part))
                if commit.supersedes:
                    self.replacing.setdefault(part.table, []).append((commit.number, part))

    def view(self, spec: TableSpec) -> str:
        body = self._live_rows(spec)
        renamed = spec.renamed
        if spec.name == "trajectories":
            body = self._with_curation(body)
            renamed = renamed | TABLES["curation"].renamed
        if spec.name == "rephrasings":
            body = self._with_decisions(spec, body)
        if renamed:  # the earlier names stay beside today's for one version
            earlier = ", ".join(f"{name} AS {old}" for name, old in renamed.items())
            body = f"SELECT *, {earlier} FROM (\n{body}\n)"
        return f"\nCREATE OR REPLACE VIEW {spec.name} AS\n{body};\n"

    def _live_rows(self, spec: TableSpec, *, numbered: bool = False) -> str:
        """Select the rows that count; `numbered` adds the column `commit_number`."""
        names = ", ".join(spec.schema.names)
        stored = self.parts.get(spec.name, [])
        replacing = [
            (table, self._select(table, parts, table.primary_key, numbered=True))
            for table in (spec, TABLES.get(spec.owner or ""))
            if table and (parts := self.replacing.get(table.name))
        ]
        if not replacing:
            return self._select(spec, stored, spec.schema.names, numbered=numbered)
        conditions = "\n  AND ".join(
            "NOT EXISTS (SELECT 1 FROM ("
            + sql
            + ") AS newer WHERE newer.commit_number > stored.commit_number AND "
            + " AND ".join(f"newer.{key} = stored.{key}" for key in table.primary_key)
            + ")"
            for table, sql in replacing
        )
        chosen = names + (", commit_number" if numbered else "")
        every = self._select(spec, stored, spec.schema.names, numbered=True)
        return f"SELECT {chosen} FROM (\n{every}\n) AS stored\nWHERE {conditions}"

    def _select(
        self, spec: TableSpec, parts: Sequence[_Numbered], names: Sequence[str], *, numbered: bool
    ) -> str:
        """Select columns of the parts, one file list per schema version and set of columns."""
        fields = [spec.schema.field(name) for name in names]
        groups: dict[tuple[int, tuple[str, ...]], list[_Numbered]] = {}
        for number, part in parts:
            groups.setdefault((part.schema_version, part.columns), []).append((number, part))
        added = ", commit_number" if numbered else ""
        if not groups:
            nothing = ", ".join(f"NULL::{_TYPES[f.type]} AS {f.name}" for f in fields)
            empty = ", NULL::INTEGER AS commit_number" if numbered else ""
            return f"SELECT {nothing}{empty} WHERE false"
        return "\nUNION ALL\n".join(
            f"SELECT {', '.join(_column(spec, field, group[0][1]) for field in fields)}{added}\n"
            f"FROM {self._files(group, numbered=numbered)}"
            for group in groups.values()
        )

    def _files(self, parts: Sequence[_Numbered], *, numbered: bool) -> str:
        paths = ",\n  ".join(
            _text(f"{self.base}tables/{part.table}/{part.name}") for _, part in parts
        )
        if not numbered:
            return f"read_parquet([\n  {paths}\n])"
        # two lists, because DuckDB takes three times as long over rows of VALUES
        names = ", ".join(_text(part.name) for _, part in parts)
        numbers = ", ".join(str(number) for number, _ in parts)
        return (
            f"read_parquet([\n  {paths}\n], filename = true)\n"
            f"JOIN (SELECT unnest([{names}]) AS part, unnest([{numbers}]) AS commit_number)\n"
            "  ON part = parse_filename(filename)"
        )

    def _with_curation(self, trajectories: str) -> str:
        spec = TABLES["curation"]
        added = [n for n in spec.schema.names if n not in TABLES["trajectories"].schema.names]
        return (
            f"SELECT trajectory.*, {', '.join(f'newest.{name}' for name in added)}\n"
            f"FROM (\n{trajectories}\n) AS trajectory\nLEFT JOIN (\n"
            f"SELECT * FROM (\n{self._live_rows(spec, numbered=True)}\n)\n"
            "QUALIFY row_number() OVER (PARTITION BY trajectory_id\n"
            "  ORDER BY commit_number DESC, curation_id) = 1\n"
            ") AS newest USING (trajectory_id)"
        )

    def _with_decisions(self, spec: TableSpec, rephrasings: str) -> str:
        """With what the newest decision says of each rewrite."""
        replaced = {
            "kept": "coalesce(newest.kept, own.kept AND selected.drop_reason IS NULL) AS kept",
            "drop_reason": "CASE WHEN newest.kept IS NULL "
            "THEN coalesce(own.drop_reason, selected.drop_reason) "
            "ELSE newest.drop_reason END AS drop_reason",
            "split": "coalesce(newest.split, own.split) AS split",
        }
        names = ", ".join(replaced.get(name, f"own.{name}") for name in spec.schema.names)
        repeats = "CASE WHEN newest.kept IS NULL THEN selected.repeats ELSE newest.repeats END"
        return (
            f"SELECT {names}, newest.measured_by, newest.judge_id, newest.flags,\n"
            f"  {repeats} AS repeats\n"
            f"FROM (\n{rephrasings}\n) AS own\n"
            f"LEFT JOIN (\n{self._newest('rephrasing_decisions', 'decision_id')}\n) AS newest\n"
            "  USING (rephrasing_id)\n"
            f"LEFT JOIN (\n{self._newest('selection', 'selection_id')}\n) AS selected\n"
            "  USING (rephrasing_id)"
        )

    def _newest(self, table: str, decided_by: str) -> str:
        """Of the rows on a rewrite the one of the newest commit."""
        return (
            f"SELECT * FROM (\n{self._live_rows(TABLES[table], numbered=True)}\n)\n"
            "QUALIFY row_number() OVER (PARTITION BY rephrasing_id\n"
            f"  ORDER BY commit_number DESC, {decided_by}) = 1"
        )


def _column(spec: TableSpec, field: pa.Field, part: Part) -> str:
    """The column as the part has it, under today's name, or its default where it has none."""
    earlier = part.schema_version < SCHEMA_VERSION
    stored = spec.renamed.get(field.name, field.name) if earlier else field.name
    if stored not in part.columns:
        return f"{_literal(field, spec.defaults.get(field.name))} AS {field.name}"
    found = stored
    for pattern, replacement in (spec.reworded.get(field.name, {}) if earlier else {}).items():
        texts = f"{found}::VARCHAR, {_text(pattern)}, {_text(replacement)}, 'g'"
        found = f"regexp_replace({texts})::{_TYPES[field.type]}"
    return found if found == field.name else f"{found} AS {field.name}"


def _literal(field: pa.Field, value: Any) -> str:
    kind = _TYPES[field.type]
    if value is None:
        return f"NULL::{kind}"
    if isinstance(value, list) and field.type != JSON:
        return f"[{', '.join(map(_scalar, value))}]::{kind}"
    return f"{_text(canonical_json(value)) if field.type == JSON else _scalar(value)}::{kind}"


def _scalar(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | bool) else _text(str(value))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _no_glob(path: str) -> str:
    """A folder's name taken literally where DuckDB would expand a pattern."""
    return re.sub(r"[*?\[]", lambda found: f"[{found[0]}]", path)
