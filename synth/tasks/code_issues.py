"""The words of a task on code: an issue, told from what its failing tests say."""

from collections.abc import Sequence
from typing import Any

from records.tables.schemas import Row
from sandboxes.code.projects import Project
from synth.llm.client import LLM
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import render

PROMPT = "gen_issue"
REPAIRS = 2
"""How often the generator is told what its issue gives away."""

MAX_SHOWN = 4
"""Failing tests that the generator is shown."""

TELLING = 12
"""Characters of a line of code from which on a quote of it gives the place away."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 8, "maxLength": 160},
        "body": {"type": "string", "minLength": 20, "maxLength": 2000},
    },
    "required": ["title", "body"],
    "additionalProperties": False,
}


async def write_issue(
    llm: LLM,
    *,
    item_id: str,
    project: Project,
    persona: Row,
    failing: Sequence[dict[str, str]],
    secret: Sequence[str],
) -> dict[str, Any]:
    """`user_brief` of the task row. `failing` holds name, doc and message of each failing test,
    `secret` the lines of code that the issue must not quote, as they are and as they were.

    ItemError("issue_tells") when the words still quote one after every repair.
    """
    prompt = render(
        PROMPT,
        repository={"title": project.title, "description": project.description.strip()},
        persona={
            "name": persona["name"],
            "background": persona["background"],
            "style": persona["communication_style"],
        },
        failing=list(failing[:MAX_SHOWN]),
    )

    def check(words: dict[str, Any]) -> None:
        if told := quoted(_issue(words), secret):
            complaint = f"the issue quotes the program: {told[0]!r}. Write it again without."
            raise InvalidOutputError(complaint, reason="issue_tells")

    words = await llm.structured(
        "generator",
        prompt.messages,
        item=item_id,
        step="issue",
        name="issue",
        schema=SCHEMA,
        repairs=REPAIRS,
        check=check,
    )
    issue = _issue(words)
    return {"opening": issue, "wishes": [" ".join(issue.split())], "facts": []}


def _issue(words: dict[str, Any]) -> str:
    return f"{words['title'].strip()}\n\n{words['body'].strip()}"


def quoted(text: str, secret: Sequence[str]) -> list[str]:
    """Lines of code that stand in the text, whatever the spaces; short ones say nothing."""
    plain = "".join(text.split())
    return [
        line.strip()
        for line in secret
        if len(bare := "".join(line.split())) >= TELLING and bare in plain
    ]
