"""Forms of system prompts: drawn so that they can be had; and what makes two prompts one."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

from records.tables.schemas import Row
from synth.tasks.agents import forms
from synth.tasks.agents.agents import AgentConfig, make_agent, plan_agents
from synth.tasks.agents.forms import PromptForm, draw_form
from synth.tasks.agents.skeletons import (
    MARK,
    THRESHOLD,
    count_skeletons,
    skeleton_of,
    words_of,
)
from synth.tasks.agents.weights import clash_check
from tests.synth.authors import GENERATOR, FixedWords
from tests.synth.tasks.test_agents import catalogue
from tool_specs.coverage.duplicates import jaccard

WORDS = {"name": "Ada", "system_prompt": "Answer people kindly. " * 5}


def drawn(count: int, num_tools: int = 8, **languages: float) -> list[PromptForm]:
    spoken = languages or {"English": 1.0}
    return [draw_form(Random(i), spoken, num_tools=num_tools) for i in range(count)]


def test_the_parts_of_a_form_can_be_had_together() -> None:
    contradict = clash_check(forms.CLASHES)
    for form in drawn(2000):
        parts = (form.length, form.layout, form.voice, form.tools, form.conduct)
        assert not any(contradict(a, b) for a, b in combinations(parts, 2)), parts
        is_short = form.length.startswith(forms.FEW_PASSAGES)
        assert len(form.passages) <= (1 if is_short else forms.MOST_PASSAGES)
        if form.conduct == forms.SHOWN:
            assert form.examples != forms.NO_DIALOGUE
        if form.examples not in (forms.NO_DIALOGUE, forms.ONE_SENTENCE):
            assert form.length.startswith(forms.ROOM_FOR_DIALOGUE)


def test_a_length_has_room_for_what_is_told_of_every_tool_and_matter_to_be_filled_with() -> None:
    for num_tools in (1, 4, 7, 8, 16):
        for form in drawn(1000, num_tools):
            shortest, longest = (int(word) for word in form.length.split() if word.isdigit())
            if "half a sentence" in form.tools:
                assert num_tools * 10 <= longest / 2
            if shortest >= 450:
                assert num_tools >= 5
                assert len(form.passages) >= 5
            if shortest >= 700:
                assert num_tools >= 8
                assert len(form.passages) == forms.MOST_PASSAGES


def test_every_part_is_drawn_and_no_form_is_frequent() -> None:
    found = drawn(4000)
    for name, table in (
        ("layout", forms.LAYOUTS),
        ("length", forms.LENGTHS),
        ("voice", forms.VOICES),
        ("tools", forms.TOOLS_TOLD),
        ("conduct", forms.CONDUCT),
        ("examples", forms.EXAMPLES),
    ):
        assert {getattr(form, name) for form in found} == set(table)
    assert {p for form in found for p in form.passages} == set(forms.PASSAGES)
    whole = Counter(json.dumps(form.columns()) for form in found)
    assert whole.most_common(1)[0][1] < 0.01 * len(found)


def test_prompts_are_written_in_the_languages_of_the_settings() -> None:
    counts = Counter(form.language for form in drawn(1000, English=3.0, German=1.0))
    assert set(counts) == {"English", "German"}
    assert 200 < counts["German"] < 300


def test_ways_of_working_are_asked_for_at_their_shares_and_change_nothing_else() -> None:
    def forms_of(**shares: float) -> list[PromptForm]:
        plans = plan_agents(
            AgentConfig.model_validate(shares), catalogue(), seed=1, count=400, generator=GENERATOR
        )
        return [plan.form for plan in plans]

    def share_of(found: list[PromptForm], phrases: tuple[str, ...]) -> float:
        return sum(any(p in phrases for p in form.passages) for form in found) / len(found)

    assert share_of(forms_of(), forms.PLANS + forms.TOGETHER) == 0.0
    some = forms_of(plan_share=0.3, together_share=0.6)
    assert 0.2 < share_of(some, forms.PLANS) < 0.4
    assert 0.5 < share_of(some, forms.TOGETHER) < 0.7
    every = forms_of(plan_share=1.0)
    assert {form.passages[0] for form in every} == set(forms.PLANS)
    assert not any(forms.HIDES_WORK in form.passages for form in every)


def test_a_form_keeps_its_own_passages_beside_ways_of_working() -> None:
    for i, form in enumerate(drawn(200)):
        worked = forms.with_working(form, Random(i), plan_share=0.0, together_share=1.0)
        assert worked.passages[0] in forms.TOGETHER
        assert replace(worked, passages=worked.passages[1:]) == form
        assert forms.with_working(form, Random(i), plan_share=0.0, together_share=0.0) == form


def asked(config: AgentConfig) -> tuple[list[Any], list[Row], list[dict[str, Any]]]:
    plans = plan_agents(config, catalogue(), seed=1, count=40, generator=GENERATOR)
    words = FixedWords(WORDS)
    rows = [asyncio.run(make_agent(p, words.llm, generator=GENERATOR)) for p in plans]
    return plans, rows, words.asked


def test_the_writer_is_told_the_form_and_no_distractor() -> None:
    plans, rows, requests = asked(AgentConfig(prompt_languages={"Welsh": 1.0}))
    distracted = 0
    for plan, row, request in zip(plans, rows, requests, strict=True):
        text = request["messages"][-1]["content"]
        own = {tool["tool_id"] for tool in plan.source.tools}
        foreign = [tool["name"] for tool in plan.tools if tool["tool_id"] not in own]
        assert not any(f'"{name}"' in text for name in foreign)
        assert all(f'"{tool["name"]}"' in text for tool in plan.own_tools)
        assert set(row["tool_ids"]) == {tool["tool_id"] for tool in plan.tools}
        assert row["form"] == plan.form.columns()
        for value in (plan.form.layout, plan.form.length, plan.form.voice, '"Welsh"'):
            assert value in text
        distracted += bool(foreign)
    assert distracted > 10


def test_names_numbers_and_words_of_tools_are_no_part_of_a_skeleton() -> None:
    one = "You work for Ada. Look up 12 parcels and say at once where each of them stands today."
    other = "You work for Bo Li. Look up 7 boats and say at once where each of them stands today."
    own = words_of(["find_parcels", "Finds parcels."]), words_of(["list_boats", "Lists boats."])
    assert skeleton_of(one, own[0]) == skeleton_of(other, own[1])
    assert skeleton_of(one, frozenset()) != skeleton_of(other, frozenset())


def test_an_agent_of_few_tools_has_no_long_prompt() -> None:
    for length, fewest in forms.MATTER.items():
        for count in (fewest, fewest - 1):
            found = {form.length for form in drawn(400, count)}
            assert any(name.startswith(length) for name in found) == (count == fewest)


GERMAN = "Du bist der Schalter von {} und hilfst allen, die mit einer Frage zu dir kommen."
OTHER_GERMAN = "Du bist die Werkstatt von {} und hilfst keinem, der ohne Rechnung zu uns kommt."
CHINESE = "你是{}的客服助手请用简短礼貌的语言回答每一位顾客的问题。"
OTHER_CHINESE = "遇到投诉时先道歉再说明{}能够做什么不要承诺做不到的事情。"


def similarity(one: str, other: str) -> float:
    none: frozenset[str] = frozenset()
    return jaccard(skeleton_of(one, none), skeleton_of(other, none))


def test_german_nouns_are_no_names_and_german_names_are() -> None:
    a, b = GERMAN.format("Clara Weber"), GERMAN.format("Anna Schmidt")
    assert similarity(a, b) == 1.0
    assert similarity(a, OTHER_GERMAN.format("Clara Weber")) < THRESHOLD
    grams = {word for gram in skeleton_of(a, frozenset()) for word in gram}
    assert {"schalter", "frage", MARK} <= grams


def test_chinese_is_compared_by_the_character() -> None:
    one = CHINESE.format("3")
    assert similarity(one, CHINESE.format("12")) == 1.0
    assert similarity(one, CHINESE.format("海天")) >= THRESHOLD
    assert similarity(one, OTHER_CHINESE.format("3")) < THRESHOLD


def test_two_rules_in_common_are_counted_in_any_order() -> None:
    one = "Say what a visit costs before you book it. Never call anybody by a first name."
    other = "Never call anybody by a first name. {} Say what a visit costs before you book it."
    much = "Tell people who wait how long that may take and what they can do until then. " * 3
    shared = [agent(0, one), agent(1, other.format(much))]
    assert count_skeletons(shared, {}, {})[1::3] == (2, 1)
    lone = [agent(0, one), agent(1, much + "Never call anybody by a first name.")]
    assert count_skeletons(lone, {}, {}).sharing == 0


def agent(number: int, text: str) -> Row:
    return {
        "agent_id": f"a{number}",
        "name": "Desk",
        "system_prompt": text,
        "tool_ids": [],
        "domain_id": None,
    }


def test_skeletons_are_counted_by_their_first_prompt() -> None:
    same = "You answer whoever asks in {} words, never more, for that is what people can keep."
    rows = [
        agent(0, same.format(3)),
        agent(1, "Be kind to all who write."),
        agent(2, same.format(9)),
    ]
    found = count_skeletons(rows, {}, {})
    assert (found.prompts, found.skeletons, found.largest) == (3, 2, 2)
    assert found.members == ("a0", "a2")
    assert found.largest_share == 2 / 3
    assert count_skeletons([], {}, {}).largest_share == 0.0
