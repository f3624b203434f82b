"""Put a proved task into the words of the person who brings it, and check that nothing is lost."""

import json
import re
from collections.abc import Sequence
from typing import Any

from records.seeds import rng_of
from records.tables.schemas import Row
from synth.llm.client import LLM
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import Prompt, render
from synth.tasks.goals.goals import Draft, Goal
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.words.checks import faults_of, opening_goals, said_together
from synth.tasks.words.readings import misread

PROMPT = "gen_brief"

REPAIRS = 2
"""How often the generator is told what is wrong with its brief."""

WORDINGS = 2
"""Briefs written for one task until readers take one for what is meant."""

MANNER = (
    "age", "household", "place", "country", "occupation", "mood", "knowledge", "language",
    "language_level", "message_length", "habits", "sample",
)  # fmt: skip
"""Columns of a persona that show in what it says; older datasets lack them."""

RELATIONS = (
    "the one whose own affair it is",
    "the one whose own affair it is",
    "a relative or friend who acts for somebody",
    "somebody who does this at work every day",
    "somebody new at work, who does this for the first time",
    "a business partner or customer from outside",
)
"""What a person may be to the matter; what stands twice is drawn twice as often."""


def steps_for_words(draft: Draft) -> list[dict[str, Any]]:
    """What the generator is shown of the goals."""
    return [
        {
            "tool": "" if goal.could_be else goal.tool,
            "description": _without_kept_back(goal.description, draft),
            "arguments": goal.arguments,
            "labels": goal.labels,
            "known": [
                {"label": f.label, "value": f.value, "param": f.param, "when": f.when}
                for f in goal.known
            ],
            "result": [asked.label for asked in goal.asks],
        }
        | ({"wish": _without_kept_back(goal.wish, draft)} if goal.wish else {})
        | ({"conversation": goal.session + 1} if draft.num_sessions > 1 else {})
        | ({"after": "only once the step before it is done"} if goal.after else {})
        | ({"form": goal.form.replace("_", " ")} if goal.form != "plain" else {})
        | ({"once": goal.awaited.happens} if goal.awaited else {})
        for goal in draft.goals
    ]


def _without_kept_back(text: str, draft: Draft) -> str:
    """The text, with the values that the person does not say with it replaced by what they are:
    "phone 555-0199" becomes "the phone number"."""
    for fact in (fact for goal in draft.goals for fact in goal.known):
        if fact.when != "opening":
            named = fact.label.split() if " " in fact.label else []  # "cost" alone is also a verb
            words = "|".join(map(re.escape, ("the", "a", "an", *named)))
            value = rf"(?<!\w)(?:(?:{words}) )*{re.escape(str(fact.value))}(?!\w)"
            text = re.sub(value, f"the {fact.label}", text)
    return text


def schema_for(draft: Draft) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": 1500}

    def exactly(count: int) -> dict[str, Any]:
        return {"type": "array", "items": text, "minItems": count, "maxItems": count}

    back = {
        "type": "object",
        "properties": {"situation": text, "opening": text},
        "required": ["situation", "opening"],
        "additionalProperties": False,
    }
    returns = {"type": "array", "items": back}
    returns |= dict.fromkeys(("minItems", "maxItems"), draft.num_sessions - 1)
    name = {"type": "string", "minLength": 1, "maxLength": 120}
    properties = {
        "implausible": {"type": "string", "maxLength": 400},
        "person": name,
        "relation": name,
        "situation": text,
        "opening": text,
        "wishes": exactly(len(said_together(draft))),
        "asks": exactly(sum(len(goal.asks) for goal in draft.goals)),
    } | ({"keep": text, "returns": returns} if draft.num_sessions > 1 else {})
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def prompt_for(draft: Draft, *, item_id: str, domain: dict[str, Any], persona: Row) -> Prompt:
    shown = {"name": persona["name"], "background": persona["background"]}
    shown |= {column: persona[column] for column in MANNER if persona.get(column)}
    shown |= {"style": persona["communication_style"], "preferences": persona["preferences"]}
    relation = rng_of(item_id, "relation").choice(RELATIONS)
    return render(
        PROMPT,
        domain=domain,
        persona=shown,
        relation=relation,
        steps=steps_for_words(draft),
        conversations=draft.num_sessions,
        opening_goals=opening_goals(draft),
    )


async def write_brief(
    draft: Draft,
    llm: LLM,
    *,
    item_id: str,
    domain: dict[str, Any],
    persona: Row,
    descriptions: Sequence[str] = (),
) -> dict[str, Any]:
    """`user_brief` of the task row. `descriptions`: of the tools at hand.

    Raises ItemError("brief_incomplete") when the words still have a fault after every repair, and
    UnprovedError: "implausible" when the generator says that nobody would want the task,
    "ambiguous" when readers take every wording for something else.
    """

    def check(words: dict[str, Any]) -> None:
        if words["implausible"].strip():
            return
        found = faults_of(draft, words, persona=persona["name"], descriptions=descriptions)
        if found:
            complaint = f"{'; '.join(found)}. Write it again, complete."
            raise InvalidOutputError(complaint, reason="brief_incomplete")

    messages = prompt_for(draft, item_id=item_id, domain=domain, persona=persona).messages
    taken: list[str] = []
    for attempt in range(WORDINGS):
        words = await llm.structured(
            "generator",
            messages,
            item=item_id,
            step="brief-again" if attempt else "brief",
            name="brief",
            schema=schema_for(draft),
            repairs=REPAIRS,
            check=check,
        )
        if reason := words["implausible"].strip():
            raise UnprovedError("implausible", reason)
        taken = await misread(draft, words, llm, item_id=item_id, attempt=attempt)
        if not taken:
            return user_brief(draft, words)
        said = {"role": "assistant", "content": json.dumps(words, ensure_ascii=False)}
        complaint = f"{' '.join(taken)} Write it all again, so that it can be read in no other way."
        messages = [*messages, said, {"role": "user", "content": complaint}]
    raise UnprovedError("ambiguous", " ".join(taken))


def user_brief(draft: Draft, words: dict[str, Any]) -> dict[str, Any]:
    """Facts told twice stand once, with the first wish that needs them; labels name one value. What
    is to be kept for a later conversation is the last wish of the first."""
    facts: list[dict[str, Any]] = []
    told: list[tuple[str, Any]] = []
    groups = said_together(draft)
    wishes = [wish.strip() for wish in words["wishes"]]
    to_keep = sum(group[0].session == 0 for group in groups)
    if draft.num_sessions > 1:
        wishes.insert(to_keep, words["keep"].strip())
    for number, group in enumerate(groups):
        for goal, fact in ((one, fact) for one in group for fact in one.known):
            place = {"when": fact.when, "goal": number + (goal.session > 0)}
            if fact.when == "earlier":
                place = {"when": "opening", "goal": to_keep}
            entry = {"label": fact.label, "value": fact.value} | place
            if (fact.label, fact.value) in told:
                continue
            told.append((fact.label, fact.value))
            same = sum(re.sub(r" \(\d+\)$", "", f["label"]) == fact.label for f in facts)
            if same:
                entry["label"] = f"{fact.label} ({same + 1})"
            facts.append(entry)
    return {
        "person": words["person"].strip(),
        "relation": words["relation"].strip(),
        "situation": words["situation"].strip(),
        "opening": words["opening"].strip(),
        "wishes": wishes,
        "facts": facts,
    } | _parts(draft, groups, words)


def _parts(draft: Draft, groups: list[list[Goal]], words: dict[str, Any]) -> dict[str, Any]:
    """What tells how the wishes are brought, where it is not one after the other."""
    several = {"sessions": _sessions(groups, words)} if draft.num_sessions > 1 else {}
    together = opening_goals(draft)
    return several | ({"opening_goals": together} if together > 1 else {})


def _sessions(groups: list[list[Goal]], words: dict[str, Any]) -> list[dict[str, Any]]:
    """What each conversation is about: its words, how many of the wishes are brought in it, and
    how many of these, its last ones, are only to be kept."""
    said = [{name: words[name] for name in ("situation", "opening")}, *words["returns"]]
    return [
        {name: text.strip() for name, text in part.items()}
        | {"wishes": sum(group[0].session == number for group in groups) + (number == 0)}
        | {"keeps": int(number == 0)}
        for number, part in enumerate(said)
    ]
