"""The form `openai`: JSON lines as OpenAI's own interfaces take them.

Arguments are text, there are no keys but theirs, and `weight` is 0 on assistant messages without
loss. What the judge's word on a row is worth stands beside the lines, in `marks.csv`.
"""

import json

from records.tables.schemas import Row
from synth.exports.formats.columns import MARKS
from synth.exports.formats.form import ExportFormat, ExportPart, FormatOptions, WrittenExport
from synth.exports.formats.messages import in_openai_form, tools_in


def _row(row: Row, _: FormatOptions) -> Row:
    line: Row = {"messages": in_openai_form(row["messages"], row["train_turns"])}
    if tools := tools_in(row["tools"]):  # an empty list is refused
        line["tools"] = tools
    return line


def _load(written: WrittenExport) -> tuple[str, str]:
    path = f"{written.name}/{written.files(written.splits[0])}"
    lines = f"import json\n\nrows = [json.loads(line) for line in open({json.dumps(path)})]"
    return "python", lines


OPENAI = ExportFormat(
    name="openai",
    title="JSON lines for OpenAI's fine-tuning, with no key but theirs",
    file_types=("jsonl",),
    parts=(ExportPart("default", "conversations", {}, _row, {}),),
    load=_load,
    reasoning=("none", "think"),
    why_no_reasoning="OpenAI's form has no field for thoughts; think writes them into the content, "
    "between <think> and </think>",
    marks=MARKS,
    notes="One JSON object a line: `messages` and, where the agent had any, `tools`, both in "
    'OpenAI form;\narguments of calls are JSON text. Assistant messages with `"weight": 0` should '
    "carry no loss.\n`marks.csv` has a line for each row, in the order of the files: its id, what "
    "the judge's word on it\nis worth, whose verdicts the acceptance rests on, and whether the "
    "judge is the agent's own model.",
)
