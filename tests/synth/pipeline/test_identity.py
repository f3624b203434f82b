"""Ids of runs: what they were before there were newer settings, and other where one is changed."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from records.config import Config
from records.settings import validate_as, with_overrides
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.proposals.quotas import QuotaConfig
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig
from synth.tasks.config import TaskConfig

IDS: dict[type[JobConfig], str] = {
    RunConfig: "e2ebe6b8aff59638",
    GradeConfig: "a7db84fdc5572052",
    RephraseConfig: "825739d0a5c6c8c1",  # parts are checked otherwise since, and written anew
    EvolveConfig: "a3ed6c74955bbc59",
}

OWN_PROMPTS = f"prompts={Path(__file__).parents[1] / 'prompts' / 'own'}"

ADDED: dict[type[JobConfig], list[str]] = {
    RunConfig: [
        "tasks.variants.missing_parameter=0.2",
        "tasks.variants.against_policy=0.2",
        "tasks.variants.missing_tool=0.2",
        "tasks.variants.irrelevant_tool=0.2",
        "tasks.variants.unclear_tool=0.2",
        "tasks.variants.no_tool=0.2",
        "tasks.server_variants.missing_parameter=0.2",
        "tasks.server_variants.irrelevant_tool=0.2",
        "tasks.goals.in_order=0.5",
        "tasks.lengths={'1-3' = 1.0}",
        "tasks.forms.chosen=0.5",
        "tasks.forms.described=0.5",
        "tasks.forms.within=0.2",
        "tasks.forms.for_each=0.5",
        "tasks.forms.conditional=0.5",
        "tasks.forms.fallback=0.5",
        "tasks.forms.corrected=0.5",
        "tasks.forms.traded=0.5",
        "tasks.forms.together=0.5",
        "tasks.forms.sessions=0.5",
        "tasks.goals.follow_up=0.5",
        "tasks.goals.related=0.5",
        "tasks.goals.waiting=0.5",
        "tasks.personas_per_block=32",
        "agents.prompt_languages={German = 1.0}",
        "rollouts.episode.delegation.share=0.5",
        "rollouts.episode.delegation.max_delegations=2",
        "rollouts.episode.delegation.max_turns=5",
        "rollouts.episode.delegation.token_budget=5000",
        "agents.plan_share=0.5",
        "agents.together_share=0.5",
        "personas.ages={'30-40' = 1.0}",
        "personas.places={'a village' = 1.0}",
        "personas.countries={Kenya = 1.0}",
        "personas.households={'in a commune' = 1.0}",
        "personas.occupations={clerk = 1.0}",
        "personas.moods={calm = 1.0}",
        "personas.knowledge={some = 1.0}",
        "personas.languages={German = 1.0}",
        "personas.language_levels={native = 1.0}",
        "personas.message_lengths={'one sentence' = 1.0}",
        "personas.habits={emoji = 0.5}",
        "tasks.max_turns.base=9",
        "tasks.max_turns.per_step=3",
        "tasks.max_turns.per_goal=5",
        "tasks.max_turns.on_code=50",
        "tasks.token_budget.base=4000",
        "tasks.token_budget.per_step=600",
        "tasks.token_budget.per_shown_char=0.5",
        "tasks.token_budget.on_code=70000",
        "tasks.pass_threshold=0.8",
        "tasks.heldout_share=0.2",
        "tasks.heldout_values_share=0.1",
        "tasks.growth.shares={1000 = 1.0}",
        "tasks.growth.per_domain=2",
        "released_tools=['git/git_log']",
        "server_goals.servers='all'",
        "server_goals.wanted=3",
        "server_goals.rounds=1",
        "server_goals.look_calls=0",
        "server_goals.fill_bare=false",
        "difficulty.rounds=1",
        "difficulty.target=0.4",
        "difficulty.operators={longer = 1.0}",
        "difficulty.added_tools=4",
        "curation.band=[0.1, 0.9]",
        "curation.near=0.7",
        "curation.decontamination.files=['a.jsonl']",
        "curation.decontamination.words=8",
        "curation.decontamination.near=0.5",
        "curation.decontamination.near_tools=0.7",
        "curation.decontamination.cosine=0.7",
        "curation.quotas={domain = {'*' = 0.2}}",
        "curation.quota_min=5",
        "curation.no_loss=['refused_arguments']",
        "judging.decision.pass_threshold=0.8",
        "judging.decision.scored_only=['call']",
        "judging.judge_failed=true",
        "judging.ask_cause=false",
        "judging.panel.rule='in_order'",
        "judging.minimum_quality.min_control_accept=0.6",
        OWN_PROMPTS,
    ],
    RephraseConfig: [
        "heldout_share=0.2",
        "neighbours=2",
        "parts_per_request=2",
        "decontaminate=['a.jsonl']",
        "decontaminate_words=8",
        OWN_PROMPTS,
    ],
    EvolveConfig: [
        "derived_share=0.5",
        "described_together=3",
        "max_generation=3",
        "per_skeleton=1",
        "quotas.on=false",
        "quotas.idea_in_domain=1",
        "quotas.idea_domains=2",
        "quotas.idea_share=0.5",
        "quotas.joined_share=0.5",
        "quotas.long_share=0.5",
        "quotas.enum_share=0.5",
        "quotas.novelty=0.5",
        "repair_rounds=3",
        OWN_PROMPTS,
    ],
}


@pytest.mark.parametrize("kind", IDS, ids=lambda kind: kind.KIND)
def test_ids_of_default_runs_are_what_they_always_were(kind: type[JobConfig]) -> None:
    assert kind().run_id == IDS[kind]


@pytest.mark.parametrize(
    ("kind", "override"), [(kind, one) for kind, many in ADDED.items() for one in many]
)
def test_a_newer_setting_makes_another_run_where_it_is_changed(
    kind: type[JobConfig], override: str
) -> None:
    assert validate_as(kind, with_overrides({}, [override]), where="here").run_id != IDS[kind]


def test_an_evolution_as_it_was_before_has_the_id_that_it_always_had() -> None:
    before = EvolveConfig(quotas=QuotaConfig(on=False), repair_rounds=1)
    assert before.run_id == "8705d8979be13ad8"


def added(config: Config, prefix: str = "") -> list[str]:
    """Dotted names of the settings that `ADDED_LATER` names, down to plain values."""
    found = []
    for name in type(config).model_fields.keys() - config.NOT_IDENTITY:
        value = getattr(config, name)
        if isinstance(value, Config):
            later = name in config.ADDED_LATER
            found += [
                f"{prefix}{name}.{inner}"
                for inner in (type(value).model_fields if later else added(value))
            ]
        elif name in config.ADDED_LATER:
            found.append(f"{prefix}{name}")
    return found


@pytest.mark.parametrize("kind", ADDED, ids=lambda kind: kind.KIND)
def test_every_newer_setting_is_tried_here(kind: type[JobConfig]) -> None:
    assert {override.partition("=")[0] for override in ADDED[kind]} == set(added(kind()))


def test_the_values_of_before_are_the_defaults_of_today() -> None:
    assert TaskConfig().identity().keys() == {
        "tasks_per_agent",
        "simple",
        "complex",
        "dual_control",
    }


class Newer(Config):
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"margin": 1})

    size: int = 3
    margin: int = 2


def test_a_default_that_became_another_is_part_of_the_identity() -> None:
    assert Newer().identity() == {"size": 3, "margin": 2}
    assert Newer(margin=1).identity() == {"size": 3}
