"""Put a proved task into the words of the person who brings it, and check that nothing is lost."""

import re
from collections.abc import Sequence
from typing import Any

from records.tables.schemas import Row
from synth.llm.client import LLM
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import Prompt, render
from synth.rubrics.built_in import mentions
from synth.tasks.goals.goals import Draft, Fact, Goal

PROMPT = "gen_brief"

REPAIRS = 2
"""How often the generator is told what its brief lacks."""


def steps_for_words(draft: Draft) -> list[dict[str, Any]]:
    """What the generator is shown of the goals."""
    return [
        {
            "tool": "" if goal.could_be else goal.tool,
            "description": _without_kept_back(goal.description, goal),
            "arguments": goal.arguments,
            "labels": goal.labels,
            "known": [
                {"label": f.label, "value": f.value, "param": f.param, "when": f.when}
                for f in goal.known
            ],
            "result": [asked.label for asked in goal.asks],
        }
        | ({"wish": _without_kept_back(goal.wish, goal)} if goal.wish else {})
        | ({"after": "only once the step before it is done"} if goal.after else {})
        | ({"once": goal.awaited.happens} if goal.awaited else {})
        for goal in draft.goals
    ]


def _without_kept_back(text: str, goal: Goal) -> str:
    """The text, with the values that the person keeps back replaced by what they are."""
    for fact in goal.known:
        if fact.when == "asked":
            text = re.sub(rf"(?<!\w){re.escape(str(fact.value))}(?!\w)", f"the {fact.label}", text)
    return text


def schema_for(draft: Draft) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": 1500}

    def exactly(count: int) -> dict[str, Any]:
        return {"type": "array", "items": text, "minItems": count, "maxItems": count}

    facts = sum(len(goal.known) for goal in draft.goals)
    return {
        "type": "object",
        "properties": {
            "opening": text,
            "wishes": exactly(len(draft.goals)),
            "facts": exactly(facts),
        },
        "required": ["opening", "wishes", "facts"],
        "additionalProperties": False,
    }


def prompt_for(draft: Draft, *, domain: dict[str, str], persona: Row) -> Prompt:
    shown = {
        "name": persona["name"],
        "background": persona["background"],
        "style": persona["communication_style"],
        "preferences": persona["preferences"],
    }
    return render(PROMPT, domain=domain, persona=shown, steps=steps_for_words(draft))


async def write_brief(
    draft: Draft, llm: LLM, *, item_id: str, domain: dict[str, str], persona: Row
) -> dict[str, Any]:
    """`user_brief` of the task row. Raises ItemError("brief_incomplete") when the words still lack
    a value after every repair."""

    def check(words: dict[str, Any]) -> None:
        if lacking := lacks(draft, words):
            complaint = f"the brief lacks {'; '.join(lacking)}. Write it again, complete."
            raise InvalidOutputError(complaint, reason="brief_incomplete")

    words = await llm.structured(
        "generator",
        prompt_for(draft, domain=domain, persona=persona).messages,
        item=item_id,
        step="brief",
        name="brief",
        schema=schema_for(draft),
        repairs=REPAIRS,
        check=check,
    )
    return user_brief(draft, asking_for_results(draft, words))


def lacks(draft: Draft, words: dict[str, Any]) -> list[str]:
    """What the words do not hold: in the opening the first user goal's values that are told at
    once, in each fact its value."""
    first = [fact for fact in draft.goals[0].known if fact.when == "opening"]
    missing = [
        f"{fact.label} {fact.value} in the opening"
        for fact in first
        if not says(words["opening"], fact)
    ]
    missing += [
        f"{fact.label} {fact.value} in wish {number}"
        for number, (goal, user_goal) in enumerate(
            zip(draft.goals, words["wishes"], strict=True), 1
        )
        for fact in goal.known
        if goal.after and fact.when == "opening" and not says(user_goal, fact)
    ]
    known = [fact for goal in draft.goals for fact in goal.known]
    missing += [
        f"{fact.label} {fact.value} in fact {number}"
        for number, (fact, text) in enumerate(zip(known, words["facts"], strict=True), 1)
        if not says(text, fact)
    ]
    return missing


def asking_for_results(draft: Draft, words: dict[str, Any]) -> dict[str, Any]:
    """The words, with a closing request in each user goal that does not ask for what it is to
    yield.

    What the rubric wants the user to be told, the user must have asked for.
    """
    user_goals = []
    opening = words["opening"]
    for number, (goal, user_goal) in enumerate(zip(draft.goals, words["wishes"], strict=True)):
        unasked = [a.label for a in goal.asks if not _asks_for(user_goal, a.label)]
        user_goals.append(
            f"{user_goal.strip()} Please tell me the {_joined(unasked)}." if unasked else user_goal
        )
        if number == 0:
            unasked = [a.label for a in goal.asks if not _asks_for(opening, a.label)]
            if unasked:
                opening = f"{opening.strip()} Please tell me the {_joined(unasked)}."
    return words | {"opening": opening, "wishes": user_goals}


_SMALL_WORDS = frozenset({"a", "an", "each", "in", "is", "it", "of", "the", "was", "when"})


def _asks_for(text: str, label: str) -> bool:
    """Whether the words that matter of the label stand in the text."""
    heard = set(re.findall(r"\w+", text.casefold()))
    return heard >= set(re.findall(r"\w+", label.casefold())) - _SMALL_WORDS


def _joined(labels: Sequence[str]) -> str:
    return " and the ".join(label.removeprefix("the ").removeprefix("its ") for label in labels)


def says(text: str, fact: Fact) -> bool:
    """A yes or no can be said in too many ways to look for."""
    return isinstance(fact.value, bool) or mentions(text, fact.value)


def user_brief(draft: Draft, words: dict[str, Any]) -> dict[str, Any]:
    """Facts told twice stand once, with the first user goal that needs them; labels name one value.
    What is to be done after something else is said in one breath with it."""
    facts: list[dict[str, Any]] = []
    told: list[tuple[str, Any]] = []
    user_goals: list[str] = []
    opening = words["opening"].strip()
    for goal, user_goal in zip(draft.goals, words["wishes"], strict=True):
        if goal.after and len(user_goals) == 1:
            opening += f" {user_goal.strip()}"
        if goal.after:
            user_goals[-1] += f" {user_goal.strip()}"
        else:
            user_goals.append(user_goal.strip())
        for fact in goal.known:
            place = {"when": fact.when, "goal": len(user_goals) - 1}
            entry = {"label": fact.label, "value": fact.value} | place
            if (fact.label, fact.value) in told:
                continue
            told.append((fact.label, fact.value))
            same = sum(re.sub(r" \(\d+\)$", "", f["label"]) == fact.label for f in facts)
            if same:
                entry["label"] = f"{fact.label} ({same + 1})"
            facts.append(entry)
    return {"opening": opening, "wishes": user_goals, "facts": facts}
