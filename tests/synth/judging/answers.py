"""Answers of a scripted judge: the same on everything that a request asks about."""

import json
from typing import Any

NO_CAUSE = {"evidence": "", "quote": "", "of": "none"}


def asked_about(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Ids of the criteria and of the statements that a request asks about."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    criteria = schema["verdicts"]["items"]["properties"]["criterion_id"]["enum"]
    statements = schema["statements"]["items"]["properties"]["id"]["enum"]
    return criteria, statements if statements != ["none"] else []


def judgement(
    body: dict[str, Any],
    *,
    passed: bool = True,
    quote: str = "appointment",
    finding: str = "follows",
    quoted: str = "",
    **opinions: bool,
) -> str:
    """A whole answer, with an entry for every criterion. `quote`: of each of them; `quoted`: of
    every statement; `opinions`: whether a criterion is passed, by its id.
    To the question for a cause alone it says that there is none."""
    if body["response_format"]["json_schema"]["name"] == "cause":
        return json.dumps(NO_CAUSE)
    criteria, statements = asked_about(body)
    said = {"evidence": "seen"}
    claiming = [] if finding == "no_claim" else statements
    return json.dumps(
        {
            "statements": [{"id": i, "quote": quoted, "finding": finding} | said for i in claiming],
            "no_claim": [i for i in statements if i not in claiming],
            "verdicts": [
                {"criterion_id": i, "quote": quote, "passed": opinions.get(i, passed)} | said
                for i in criteria
            ],
            "met": [],
            "cause": NO_CAUSE,
        }
    )
