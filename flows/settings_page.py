"""`docs/settings.md`: every setting that a file of a user may hold, from the models themselves.

    python -m flows.settings_page        # or make settings; needs torch for those of the trainer

Nothing about a setting is said here: its model is the one place for that.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from records.config import Config
from records.settings import model_in
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.writing.config import WriteConfig
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"

LONGEST_DEFAULT = 60
"""Characters; of a longer list only the number of entries is shown."""

UNITS = {
    "_s": "seconds",
    "_seconds": "seconds",
    "tokens": "tokens",
    "_chars": "characters",
    "usd": "USD",
    "_prompt": "USD",
    "_completion": "USD",
}
"""By the end of a setting's name."""

HEAD = """# Settings

`make settings` writes this page from the models: change a docstring there, not a line here. A
setting of a table is written `table.setting`, in TOML under `[table]`, on the command line as
`--set table.setting=value`; NAME stands for a name of your own choice or of a role or stage.

"In the id" says whether a setting decides rows. *yes*: another value makes another run, with rows
of its own. *no*: it may change when a run is resumed. *changed*: it is younger than stored rows and
is part of the id only where it differs from its default, so ids made before it hold.
"""


BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


class Setting(NamedTuple):
    name: str
    """Dotted."""
    type: str
    default: str
    in_id: str
    words: str


class Section(NamedTuple):
    title: str
    words: str
    settings: list[Setting]


def settings_of(kind: type[BaseModel]) -> list[Setting]:
    return list(_settings(kind, "", lambda name: "yes"))


def _settings(kind: type[BaseModel], prefix: str, outer: Callable[[str], str]) -> Iterator[Setting]:
    """`outer`: what the table around says of a setting that its own model takes for decisive."""
    for name, field in kind.model_fields.items():
        in_id = _in_id(kind, name) if outer(name) == "yes" else outer(name)
        yield Setting(
            f"{prefix}{name}",
            _type_of(name, field),
            _default_of(kind, name, field),
            in_id,
            " ".join((field.description or "").split()),
        )
        if inner := model_in(field.annotation):
            key = ".NAME" if get_origin(field.annotation) is dict else ""
            yield from _settings(inner, f"{prefix}{name}{key}.", lambda _, said=in_id: said)


def _in_id(kind: type[BaseModel], name: str) -> str:
    if not issubclass(kind, Config):
        return "yes"
    if name in kind.NOT_IDENTITY:
        return "no"
    return "changed" if name in kind.ADDED_LATER else "yes"


def _type_of(name: str, field: FieldInfo) -> str:
    words = _words_of(field.annotation)
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    bounds = (
        f"{word} {str(limit).removesuffix('.0')}"
        for limit_of, word in BOUNDS.items()
        for bound in field.metadata
        if (limit := getattr(bound, limit_of, None)) is not None
    )
    return ", ".join([words, *([unit] if unit and "number" in words else []), *bounds])


def _words_of(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words_of(arguments[0])
    if origin in (Union, UnionType):
        given = " or ".join(_words_of(one) for one in arguments if one is not NoneType)
        return f"{given} or none" if NoneType in arguments else given
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in arguments)
    if origin is tuple:
        return f"list: {_words_of(arguments[0])}"
    if origin is dict:
        return "table" if model_in(annotation) else f"table: {_words_of(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    names: Mapping[Any, str] = {
        bool: "true or false",
        int: "whole number",
        float: "number",
        str: "text",
        Any: "anything",
        JsonValue: "anything",
    }
    return names[annotation]


def _default_of(kind: type[BaseModel], name: str, field: FieldInfo) -> str:
    if issubclass(kind, JobConfig) and name == "roles":
        return "for " + ", ".join(kind.DEFAULT_ROLES)
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return ""  # its settings follow, each with its own
    text = json.dumps(_plain(value))
    return f"`{text}`" if len(text) <= LONGEST_DEFAULT else f"{len(value)} entries"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def sections() -> list[Section]:
    """In the order of the page. What several kinds of runs have alike stands once."""
    from synth.gym.registry import FAMILIES
    from trainer.evaluation.scoring import ScoreConfig
    from trainer.rl.loop import FREE as FREE_IN_RL
    from trainer.rl.settings import RLConfig
    from trainer.training.run_folder import FREE
    from trainer.training.settings import TrainConfig

    run, grade, rephrase, evolve, write = map(
        settings_of, (RunConfig, GradeConfig, RephraseConfig, EvolveConfig, WriteConfig)
    )
    every = [one for one in run if one in grade and one in rephrase and one in evolve]
    judging = [one for one in run if one in grade and one not in every]
    known = {*every, *judging}

    def own(settings: Sequence[Setting]) -> list[Setting]:
        return [one for one in settings if one not in known]

    training = [
        one._replace(in_id="no" if one.name in FREE else "yes") for one in settings_of(TrainConfig)
    ]
    scoring = [one._replace(in_id="-") for one in settings_of(ScoreConfig)]
    return [
        Section("Every run", "What pipelines, gradings, rephrasings and evolutions have.", every),
        Section("Pipelines and gradings", "What runs have that judge.", judging),
        Section("Pipelines", "`synth run`, and `synth demo` with `--set`.", own(run)),
        Section("Gradings", "`synth grade --config`.", own(grade)),
        Section("Rephrasings", "`synth rephrase`.", own(rephrase)),
        Section("Evolutions", "`synth tools evolve` with `--set`.", own(evolve)),
        Section("Written domains", "`synth domain write` with `--set`.", own(write)),
        Section(
            "Training",
            "`python -m trainer pretrain` and `python -m trainer sft`. A run is known by its "
            "folder, `out`: *yes* stands for what may not change there.",
            training,
        ),
        Section("Scoring", "`python -m trainer eval`.", scoring),
        Section(
            "Reinforcement learning",
            "`python -m trainer rl`. A run is known by its folder, `out`: *yes* stands for what "
            "may not change there. Those of `sandboxes` are as in every run. The families of "
            "`gym.families` follow, each with its settings.",
            [
                one._replace(in_id="no" if one.name in FREE_IN_RL | {"sandboxes"} else "yes")
                for one in settings_of(RLConfig)
                if not one.name.startswith("sandboxes.")
            ],
        ),
        *(
            Section(
                f"Gym family {name}",
                f"Under `gym.families.{name}`.",
                [one._replace(in_id="yes") for one in settings_of(family.settings)],
            )
            for name, family in FAMILIES.items()
        ),
    ]


def page() -> str:
    return HEAD + "".join(map(_text_of, sections()))


def _text_of(section: Section) -> str:
    head = "| setting | type | default | in the id | what it does |\n|---|---|---|---|---|\n"
    rows = (
        f"| `{one.name}` | {one.type} | {one.default} | {one.in_id} | {one.words} |"
        for one in section.settings
    )
    return f"\n## {section.title}\n\n{section.words}\n\n{head}" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
