"""One trajectory printed on a terminal to be read."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.publish import conversations
from synth.publish.conversations import ShownConversation
from synth.publish.verdicts_shown import ShownCriterion, ShownStatement
from synth.render.foreign_text import one_line, shortened, visible
from synth.render.transcript import OWN_TOOLS, ShownCall, ShownTurn

RESULT_CHARS = 1_500
"""Of one tool result; the whole of it is a query away."""

_COLOURS = {
    "system": "bright_black",
    "user": "cyan",
    "assistant": "green",
    "tool": "magenta",
    OWN_TOOLS: "blue",
}


def show_trajectory(
    dataset: Dataset, trajectory_id: str, *, console: Console | None = None
) -> None:
    """Print the trajectory whose id begins so. ConfigError unless exactly one does."""
    [conversation] = conversations.read(dataset, [full_id(dataset, trajectory_id)])
    (console or Console()).print(_rendered(conversation))


def full_id(dataset: Dataset, beginning: str) -> str:
    """The one trajectory id that begins so."""
    ids = sorted(i for i in dataset.ids("trajectories") if i.startswith(beginning))
    if beginning in ids:
        return beginning
    if len(ids) == 1 and beginning:
        return ids[0]
    if not ids:
        raise ConfigError(
            f"no trajectory of {dataset.root} begins with {beginning!r}; "
            'list them: synth sql "select trajectory_id from trajectories"'
        )
    shown = ", ".join(ids[:5]) + (" ..." if len(ids) > 5 else "")
    raise ConfigError(
        f"{len(ids)} trajectories begin with {beginning!r}: {shown}; give more of the id"
    )


def _rendered(talk: ShownConversation) -> Group:
    parts: list[RenderableType] = [_head(talk)]
    for number, turn in enumerate(talk.turns, 1):
        parts += _turn(turn, number)
        parts += _statements(talk.statements.get(turn.place, ()) if turn.place is not None else ())
    if talk.criteria:
        parts += [Rule("criteria", style="bright_black"), *_criteria(talk.criteria)]
    return Group(*parts)


def _head(talk: ShownConversation) -> Table:
    """The decision, then what the conversation is."""
    row, decision = talk.row, talk.decision
    fate = "not curated yet"
    if decision.accepted is not None:
        fate = "accepted" if decision.accepted else f"rejected: {decision.drop_reason}"
    facts = [("decision", fate)]
    if decision.failed:
        facts += _rejecting(decision.failed)
    facts += [
        *decision.facts,
        ("trajectory", row["trajectory_id"]),
        (
            "task",
            f"{row['task_id']} ({row['variant']}, {row['complexity'] or 'unknown complexity'})",
        ),
        ("domain or server", row["world"]),
        ("split", row["split"]),
        (
            "outcome",
            f"{row['outcome'] or 'unknown'}, ended by {row['termination_reason'] or 'unknown'}",
        ),
        ("tools", ", ".join(talk.tools)),
    ]
    if row["error"]:
        facts.append(("error", row["error"]))
    head = Table.grid(padding=(0, 2))
    for name, value in facts:
        head.add_row(Text(name, style="bright_black"), Text(one_line(str(value))))
    return head


def _rejecting(one: ShownCriterion) -> list[tuple[str, str]]:
    facts = [("not passed", f"{one.criterion} ({one.decided_by}): {one.words}")]
    if one.quote:
        facts.append(("quote", one.quote))
    return [*facts, ("", one.who), *(("", said.told) for said in one.evidence)]


def _turn(turn: ShownTurn, number: int) -> list[RenderableType]:
    colour = _COLOURS.get(turn.role, "white")
    title = f"{number} {one_line(turn.role)}"
    if turn.role == "assistant" and turn.trained is False:
        title += " (not learnt from)"
    parts: list[RenderableType] = [
        Rule(Text(title, style=colour), style="bright_black", align="left")
    ]
    if turn.reasoning:
        parts.append(Text(visible(turn.reasoning), style="italic bright_black"))
    if turn.text:
        parts.append(Text(visible(turn.text)))
    calls = enumerate(turn.calls, 1)
    parts += [Padding(_call(call, f"{number}.{place}"), (0, 0, 0, 2)) for place, call in calls]
    return parts


def _call(call: ShownCall, number: str) -> Text:
    style = "red" if call.is_error else "yellow"
    text = Text.assemble(f"{number} ", (one_line(call.name), f"bold {style}"), " ")
    text.append(one_line(", ".join(call.marks)), style="bright_black")
    text.append(f"\n{visible(call.arguments)}\n")
    result = "no result: the episode ended" if call.result is None else call.result
    # the arrow, because without colours arguments and result look alike
    text.append(f"-> {visible(shortened(result, RESULT_CHARS))}", style="bright_black")
    return text


def _statements(statements: Sequence[ShownStatement]) -> list[RenderableType]:
    """False ones with their evidence; the others in one line."""
    parts: list[RenderableType] = []
    for one in statements:
        if one.is_true is False:
            text = Text(f"FALSE ({one.finding}, {one.found_by}): ", style="red")
            text.append(one_line(one.says))
            for words in filter(None, (one.evidence, one.quote)):
                text.append(f"\n  {one_line(words)}", style="bright_black")
            parts.append(Padding(text, (0, 0, 0, 2)))
    counts = Counter(one.finding for one in statements if one.is_true is not False)
    if counts:
        words = ", ".join(f"{finding}: {n}" for finding, n in counts.items())
        parts.append(Padding(Text(f"statements ({words})", style="bright_black"), (0, 0, 0, 2)))
    return parts


def _criteria(criteria: Sequence[ShownCriterion]) -> list[RenderableType]:
    """Evidence stands where somebody found against the agent, folded, for long words count too;
    what passed is one line."""
    table = Table("criterion", "kind", "code", "judge", box=None)
    table.add_column("evidence", overflow="fold")
    against = [one for one in criteria if one.passed is not True]
    for one in against:
        table.add_row(
            Text(one_line(one.criterion)),
            Text(one_line(one.kind) if one.mandatory else f"{one_line(one.kind)}, scored"),
            _passed(one.code),
            _passed(one.judge),
            Text("\n".join(one_line(said.told) for said in one.evidence), style="bright_black"),
        )
    passed = [f"{one.criterion} ({one.decided_by})" for one in criteria if one.passed]
    line = Text(one_line(f"passed: {', '.join(passed)}"), style="green")
    return [*([table] if against else []), *([line] if passed else [])]


def _passed(value: bool | None) -> Text:
    if value is None:
        return Text("-")
    return Text("pass", style="green") if value else Text("fail", style="red")
