"""Reinforcement learning on environments with verifiable rewards, one iteration after another."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from uuid import UUID

from prefect import flow, task
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from pydantic import BeforeValidator

from flows.runtime.data_root import (
    check_addresses,
    check_before_reading,
    check_cluster,
    check_paths,
    check_roles,
)
from flows.runtime.joined_run import send_logs_to_ui
from flows.runtime.ownership import claim_this_flow_run
from flows.training.rl_artifacts import show_iterations, show_samples, summary_of
from flows.training.training_artifacts import Curves, tried
from records.errors import ConfigError
from records.sources.stored_files import is_remote
from synth.gym.grounding.settings import GroundingSettings
from synth.gym.instructions.environment import InstructionsConfig
from synth.gym.maths.rows import MathsSettings
from synth.gym.open_prompts import OpenPromptsSettings
from synth.gym.programs.settings import ProgramSettings
from synth.gym.safety.settings import SafetySettings
from synth.gym.tool_use.settings import ToolUseSettings
from trainer.data.sources import folder_in
from trainer.rl.loop import finished, opened_run
from trainer.rl.plots import plots_of
from trainer.rl.run import Reinforced, RLRun
from trainer.rl.settings import RLConfig
from trainer.training.metrics import MetricsLine


@flow(name="rl", flow_run_name="rl-{config.out}")
async def rl(
    config: Annotated[RLConfig, BeforeValidator(check_before_reading)],
) -> Reinforced:
    """Learn from rewards; run again, it goes on from the last checkpoint. Rollouts, samples,
    checkpoints, curves and the model for transformers lie in `out`."""
    send_logs_to_ui()
    await claim_this_flow_run()
    check_rl_reads(config)
    progress = await acreate_progress_artifact(
        progress=0.0, key="progress", description=f"{config.iterations:,} iterations"
    )
    assert isinstance(progress, UUID)
    curves = Curves(config.folder, plots_of, axis="iteration")
    async with opened_run(config) as run:
        await measuring_the_start(run)
        while not run.ended:
            await iteration(run, run.done + 1)
            words = f"iteration {run.done:,} of {config.iterations:,}"
            share = 100.0 * run.done / config.iterations
            await tried(aupdate_progress_artifact(progress, share, words))
            await tried(curves.draw())
            await tried(show_iterations(config.folder))
            await tried(show_samples(config.folder, run.done - 1))
        done = await scoring_and_export(run)
    await tried(aupdate_progress_artifact(progress, 100.0, done.words))
    await acreate_markdown_artifact(
        key="trained-model",
        markdown=summary_of(done),
        description="What the run came to, and where it lies",
    )
    return done


# the run's folder is the cache of all three


@task(task_run_name="measuring-the-start", cache_policy=NO_CACHE)
async def measuring_the_start(run: RLRun) -> MetricsLine | None:
    """Validate the weights that a new run begins with."""
    return await run.begin()


@task(task_run_name="iteration-{number}", cache_policy=NO_CACHE)
async def iteration(run: RLRun, number: int) -> MetricsLine:
    """Play, learn, send the weights, measure, keep."""
    del number  # it names the task
    return await run.iterate()


@task(task_run_name="scoring-and-export", cache_policy=NO_CACHE)
async def scoring_and_export(run: RLRun) -> Reinforced:
    """Score what is held out, and write the model."""
    return await finished(run)


def check_rl_reads(config: RLConfig) -> None:
    """ConfigError for a path, an address or a key that a run from the UI may not use, and for
    programs."""
    if config.gym.files:
        raise ConfigError(
            "gym.files are programs, which a flow that is started from the UI does not run; use "
            "`python -m trainer rl`"
        )
    check_roles(config.gym.roles)
    check_cluster(config.sandboxes)
    paths, addresses = [("config.out", config.out), ("config.start_from", config.start_from)], []
    for setting, path in (*_good_paths(config), *_gym_paths(config.gym.families)):
        if not is_remote(path):
            paths.append((setting, path))
        elif (folder := folder_in(path)) is not None:
            paths.append((setting, folder))
        else:
            addresses.append((setting, path))
    check_paths(paths)
    check_addresses(addresses)


def _good_paths(config: RLConfig) -> Iterator[tuple[str, str]]:
    for source in config.good:
        yield "config.good.path", source.path


def _gym_paths(families: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the families of a gym read."""
    for settings in families.values():
        match settings:
            case ToolUseSettings():
                yield "config.gym.families.tool_use.dataset", settings.dataset
            case MathsSettings():
                for file in settings.files:
                    yield "config.gym.families.maths.files.path", file.path
            case OpenPromptsSettings():
                for file in settings.files:
                    yield "config.gym.families.open.files.path", file.path
            case InstructionsConfig(prompts=str(prompts)):
                yield "config.gym.families.instructions.prompts", prompts
            case GroundingSettings():
                for source in (*settings.files, *settings.datasets):
                    yield "config.gym.families.grounding", source.path
            case SafetySettings(seeds=str(seeds)):
                yield "config.gym.families.safety.seeds", seeds
            case ProgramSettings():
                for problem in settings.problems:
                    if problem.endswith((".yaml", ".yml")):
                        yield "config.gym.families.programs.problems", problem
            case _:
                pass
