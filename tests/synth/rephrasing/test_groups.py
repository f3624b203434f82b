"""Several parts a request: what stands, what goes back, what is asked for again after a cut."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from synth.llm.settings.config import RoleConfig
from synth.rephrasing.rephrase import tell_of_room
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.parts import PartCheck, Written, WrittenPart, fitting
from tests.synth.rephrasing.test_writing import (
    LONG,
    WRONG,
    answered,
    echo,
    faulty_in,
    read,
    squeezed,
    writing,
    written,
)
from tests.synth.scripted import ScriptedApp


def test_those_that_are_wrong_go_back_together_and_the_others_stand(tmp_path: Path) -> None:
    seen: dict[int, int] = {}

    async def check(parts: Sequence[WrittenPart], /, *, step: str) -> list[PartCheck]:
        for part in parts:
            seen[part.number] = seen.get(part.number, 0) + 1
        bad = (2, 4)
        return [
            PartCheck(WRONG if p.number in bad and seen[p.number] == 1 else None) for p in parts
        ]

    app = ScriptedApp(answered(lambda text: text.replace("closed", "shut")))
    made = asyncio.run(writing(app, tmp_path, LONG, "neighbours", check=check))
    again = read(app.requests[1])
    assert list(again.parts) == [2, 4]
    said, told = (message["content"] for message in app.requests[1]["messages"][2:])
    assert [line for line in said.splitlines() if line.startswith("<rewrite")] == [
        '<rewrite part="2">',
        '<rewrite part="4">',
    ]
    assert told.count(WRONG.words) == 2
    # the second is mended in view of the first, which stands
    first = made.text[slice(*made.chunks[0].text)]
    assert squeezed(again.blocks["Written so far"]) == squeezed(first)
    assert [chunk.attempts for chunk in made.chunks[:4]] == [1, 2, 1, 2]
    assert [chunk.faults for chunk in made.chunks[:4]] == [(), (WRONG.reason,)] * 2


def test_an_answer_that_was_cut_keeps_its_whole_parts(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        whole = echo(body)
        if 1 not in read(body).parts:
            return whole
        cut = whole[: whole.index('<rewrite part="3">') + 60]
        return {"content": cut, "finish_reason": "length"}

    made, requests = written(answer, tmp_path, LONG)
    assert squeezed(made.text) == squeezed(LONG)
    assert [list(read(request).parts) for request in requests[:2]] == [[1, 2, 3, 4], [3, 4]]
    assert len(requests[1]["messages"]) == 2
    assert [chunk.attempts for chunk in made.chunks[:4]] == [1, 1, 2, 2]
    assert not any(chunk.faults for chunk in made.chunks)


def test_where_no_part_is_whole_the_first_is_asked_for_alone(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if len(read(body).parts) == 1:
            return echo(body)
        return {"content": '<rewrite part="1">\nIt', "finish_reason": "length"}

    made, requests = written(answer, tmp_path, LONG, parts_per_request=3)
    assert squeezed(made.text) == squeezed(LONG)
    numbers = [list(read(request).parts) for request in requests[:5]]
    assert numbers == [[1, 2, 3], [1], [2, 3], [2], [3]]


def test_groups_shrink_to_the_room_of_an_answer(tmp_path: Path) -> None:
    sizes = [100, 100, 100, 100, 100]
    # 1.6 tokens for each of the source and 200 more
    assert [fitting(sizes, 4, room) for room in (10, 519, 520, 679, 680, 9999)] == [
        1,
        1,
        2,
        2,
        3,
        4,
    ]
    assert fitting(sizes[:2], 4, 9999) == 2
    made, requests = written(echo, tmp_path, LONG, max_tokens=620)
    assert squeezed(made.text) == squeezed(LONG)
    assert {len(read(request).parts) for request in requests[:-1]} == {2}


def test_a_resumed_run_is_asked_for_nothing_that_it_has(tmp_path: Path) -> None:
    """Steps and requests are the same each time, whatever was wrong on the way."""

    def once() -> tuple[Written, int]:
        check, _ = faulty_in("valve number 3 ", times=1)
        app = ScriptedApp(echo)
        made = asyncio.run(writing(app, tmp_path, LONG, check=check))
        return made, len(app.requests)

    (first, paid), (second, again) = once(), once()
    assert paid > 2
    assert again == 0
    assert first == second


@pytest.mark.parametrize(("max_tokens", "told"), [(2048, []), (1024, ["has room for 2 parts"])])
def test_a_run_says_once_that_groups_are_smaller(
    caplog: pytest.LogCaptureFixture, max_tokens: int, told: list[str]
) -> None:
    """Of the default of four parts of 256 tokens."""
    config = RephraseConfig(roles={"rewriter": RoleConfig(max_tokens=max_tokens)})
    tell_of_room(config)
    assert len(caplog.messages) == len(told)
    assert all(words in message for words, message in zip(told, caplog.messages, strict=True))
