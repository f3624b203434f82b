"""Personas, messages and prompts that a language model wrote: unlike each other, as they were."""

import json
from pathlib import Path
from typing import Any

from benchmarks.personas import CANDIDATES, JudgedTurn, WrittenTurn, by_code, candidates_of, report
from synth.tasks.agents.screening import near_personas
from synth.tasks.agents.skeletons import count_skeletons

FOLDER = Path(__file__).parent


def lines(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


PERSONAS = lines("written_personas")
TURNS = [WrittenTurn(**line) for line in lines("written_turns")]
VERDICTS = [
    JudgedTurn(**{**line, "candidates": tuple(line["candidates"])})
    for line in lines("judged_turns")
]


def test_the_personas_are_forty_people() -> None:
    assert near_personas(PERSONAS) == {}
    assert len({row["name"].split()[0] for row in PERSONAS}) == len(PERSONAS) == 40
    for row in PERSONAS:
        assert row["name"].split()[0] not in row["sample"]


def test_a_repeated_persona_would_be_found_among_them() -> None:
    again = PERSONAS[7] | {"persona_id": "again", "name": "Dale Arnold"}
    again["background"] = again["background"].replace("Desmond", "Dale")
    assert near_personas([*PERSONAS, again]) == {"again": PERSONAS[7]["persona_id"]}


def test_the_report_says_who_told_the_messages_apart() -> None:
    told = report(TURNS, VERDICTS).splitlines()
    assert told[0] == "60 messages of 20 personas"
    assert told[1].startswith("judge: 60 of 60")
    assert told[2].startswith("code: 27 of 60 given to their writer (45.0%")


def test_the_candidates_are_drawn_with_the_writer_among_them() -> None:
    writers = sorted({turn.persona_id for turn in TURNS})
    places = set()
    for turn, verdict in zip(TURNS, VERDICTS, strict=True):
        candidates = candidates_of(turn, writers)
        assert candidates == verdict.candidates
        assert len(set(candidates)) == CANDIDATES
        places.add(candidates.index(turn.persona_id))
    assert places == set(range(CANDIDATES))


def test_code_knows_a_manner_that_comes_again() -> None:
    turns = [WrittenTurn("a", i, "PLEASE!!! SEND IT!!!") for i in range(3)]
    turns += [WrittenTurn("b", i, "kindly forward the item, madam") for i in range(3)]
    assert by_code(turns[0], turns, ("b", "a")) == "a"
    assert by_code(turns[3], turns, ("a", "b")) == "b"


def test_no_two_of_the_prompts_share_a_skeleton() -> None:
    agents = [
        row | {"tool_ids": [], "domain_id": row["agent_id"]} for row in lines("written_agents")
    ]
    domains = {
        row["agent_id"]: {"title": "", "description": " ".join(row["own"])} for row in agents
    }
    found = count_skeletons(agents, {}, domains)
    assert (found.prompts, found.skeletons) == (40, 40)
