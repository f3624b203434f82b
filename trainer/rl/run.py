"""A run of reinforcement learning: where it is, one iteration after another, and its end.

    choose tasks -> play them -> rank what no code rewards -> learn -> send the weights -> measure
    -> keep

What lies in the folder decides what comes next: samples are read where they were played before, and
all else is a function of the last checkpoint. So a run that was killed in any of these comes, in
the deterministic mode, to the same weights.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ConfigError, SynthError
from synth.gym.core.environment import GymSplit
from synth.gym.core.ranked import is_ranked
from synth.gym.registry import Gym
from trainer.data.chat_format import ChatFormat
from trainer.inference.policies import ModelPolicy
from trainer.inference.weights import checksum_of
from trainer.model.decoder import Decoder
from trainer.optim.muon import optimizer_of
from trainer.rl.choice import TaskChoice
from trainer.rl.critic.critic import Critic, CriticisedGroups
from trainer.rl.learning import learn, rewarded_samples
from trainer.rl.lines import IterationTimes, line_of, told
from trainer.rl.lost import LostIterations
from trainer.rl.objective.ptx import PtxRows
from trainer.rl.objective.stepper import RLStepper
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.samples import Group
from trainer.rl.rollouts.table import write_samples
from trainer.rl.rollouts.weights import LocalWeights, WeightSync
from trainer.rl.settings import RLConfig
from trainer.rl.testing import FamilyScore, chosen_tasks, mean_reward, play_test
from trainer.training.checkpoints import (
    checkpoint_of,
    checkpoints_in,
    load_checkpoint,
    remove_old,
    save_checkpoint,
)
from trainer.training.devices import cpu_threads
from trainer.training.ending import BadSteps, export_whole, infinite_weights
from trainer.training.metrics import Metrics, MetricsLine
from trainer.training.run_folder import CHECKPOINTS, put_model_aside

log = logging.getLogger(__name__)

ROLLOUTS, SAMPLES, TESTS = "rollouts", "samples", "tests"


WHEN_DIVERGING = (
    "Where learning diverges, lower learning.lr or learning.clip_norm, or raise tau, in another "
    "`out`"
)
WHEN_LOST = "Mend what loses the episodes, and start the same run again: it goes on"


class BestIteration(NamedTuple):
    done: int
    """Iterations that its weights have learnt from."""
    reward: float
    """Mean over the families of their validation tasks' rewards."""


@dataclass(frozen=True)
class Reinforced:
    """What a run came to."""

    folder: Path
    iterations: int
    """That it has learnt from, in all."""
    begun: int
    """Those that were done before this process went on."""
    exported: int
    """Iterations that the exported weights have learnt from."""
    validation: float | None
    """Mean reward of the exported weights on the validation tasks; None where none were played."""
    before: Sequence[FamilyScore]
    """Held-out tasks by the weights that the run began with; empty where none were played."""
    after: Sequence[FamilyScore]
    """The same by the exported ones."""

    @property
    def words(self) -> str:
        """What it came to, in a line."""
        told = f"{self.iterations:,} iterations"
        if self.exported != self.iterations:
            told += f", the weights after {self.exported:,} exported as the best validated"
        if self.validation is not None:
            told += f", mean validation reward {self.validation:.3f}"
        return told


class RLRun:
    """The state of a run. Made by `trainer.rl.loop.opened_run`, which also holds its folder."""

    def __init__(
        self,
        config: RLConfig,
        model: Decoder,
        policy: ModelPolicy,
        gym: Gym,
        stepper: RLStepper,
        good: PtxRows | None,
        chat: ChatFormat,
        start: Path,
    ) -> None:
        """`model` is what learns, `policy` draws by weights of its own; `start`: the folder of the
        model that the run began with."""
        self.config, self.model, self.policy, self.stepper = config, model, policy, stepper
        self._gym, self._good, self._chat, self._start = gym, good, chat, start
        self.tasks = gym.tasks()
        self.choice = TaskChoice(self.tasks, config.choice, seed=config.seed)
        played, folder = gym.environments.values(), config.folder / ROLLOUTS
        self.rollouts = Rollouts(policy, played, config.rollouts, folder, seed=config.seed)
        self._weights = LocalWeights(policy)
        self._began_with = {
            "model": policy.checksum(),
            "tasks": digest([[task.task_id, task.split] for task in self.tasks]),
        }
        self._critic = self._critic_of(config)
        self.done, self.steps, self.drawn = 0, 0, 0
        """Iterations, steps of the optimiser, tokens that were learnt from."""
        self.bad, self.lost = BadSteps(), LostIterations()
        self.best: BestIteration | None = None
        self.metrics: Metrics | None = None
        """Where the lines of iterations are written, before the checkpoint that holds them."""
        self._resume()
        self.begun = self.done

    @property
    def measured(self) -> int:
        """Step of the last line of metrics that counts; -1 for a run that has none."""
        return self.done if checkpoints_in(self._checkpoints) else -1

    @property
    def ended(self) -> bool:
        return self.done >= self.config.iterations

    async def begin(self) -> MetricsLine | None:
        """Measure the weights that a new run begins with, and keep them; None where that is done,
        or nothing is measured."""
        if checkpoints_in(self._checkpoints):
            return None
        scores = await self._validate()
        line = None
        if scores is not None:
            line = self._written(self._measured({"step": 0, "skipped": None}, scores))
        self._save()
        return line

    async def iterate(self) -> MetricsLine:
        """Play, learn, send, measure, keep. SynthError when too many steps in a row are bad."""
        if self.done == self.begun:
            put_model_aside(self.config.folder, self.done)
        config, iteration = self.config, self.done
        began = time.monotonic()
        self.policy.sampling = config.sampling_at(iteration)
        with cpu_threads(config.draw_threads):
            groups = await self.rollouts.play(self.choice.of(iteration), iteration)
        self.choice.note(groups)  # by what code says alone
        played = time.monotonic()
        groups, lessons, told_by_critic = await self._criticised(groups, iteration)
        write_samples(self._of(SAMPLES, iteration).with_suffix(".parquet"), groups)
        self.lost.note(iteration, groups)
        if self.lost.number >= config.max_lost_iterations:
            raise self._failed(self.lost.words, WHEN_LOST)
        ranked = time.monotonic()
        rewarded = rewarded_samples(groups, config.learning.budget)
        steps = await asyncio.to_thread(
            learn,
            *(self.stepper, rewarded.samples, config.learning, self._good, self.bad, lessons),
            seed=config.seed,
            iteration=iteration,
            steps_before=self.steps,
            most_bad=config.max_bad_steps,
        )
        self.done, self.steps = iteration + 1, self.steps + len(steps)
        self.drawn += sum(sample.num_drawn for sample in rewarded.samples)
        if len(self.bad) >= config.max_bad_steps:
            raise self._failed(self.bad.words)
        learnt = time.monotonic()
        sync = self._send()
        assert self.rollouts.figures is not None  # an iteration was played
        line = line_of(
            self.done,
            groups,
            rewarded,
            steps,
            self.rollouts.figures,
            self.choice.difficulties(),
            IterationTimes(played - began, learnt - ranked, sync.seconds),
            temperature=self.policy.sampling.temperature,
            lr=config.learning.lr,
            drawn=self.drawn,
            critic=told_by_critic,
        )
        every = config.test.every
        due = every is not None and (self.ended or self.done % every == 0)
        scores = await self._validate() if due else None
        if scores is not None:
            line = self._measured(line, scores)
        self._written(line)
        better = self.best is not None and self.best.done == self.done
        if better or self.ended or self.done % config.checkpoint_every == 0:
            self._save()
        return line

    async def end(self) -> Reinforced:
        """Export the best validated weights, or the last, and score what is held out."""
        if self.bad.end_badly:
            raise self._failed(f"{self.bad.words} as it came to its end")
        exported = self.done
        if self.best is not None and self.best.done != self.done:
            learning = self.config.learning
            # an optimiser of its own: at the first checkpoints it had no state yet
            fresh = optimizer_of(self.model, learning.optimizer, lr=learning.lr)
            load_checkpoint(checkpoint_of(self._checkpoints, self.best.done), self.model, fresh)
            exported = self.best.done
        before: list[FamilyScore] = []
        after: list[FamilyScore] = []
        if self.config.test.heldout:
            # the exported weights are those of an iteration, so their scores are found again
            self._send(self.done + 1)
            after = await self._test("heldout", "heldout-after")
            self._weights.take(self._start, self.done + 2)
            before = await self._test("heldout", "heldout-before")
        export_whole(self.model, self.config.folder, self.policy.tokenizer, self._chat)
        return Reinforced(
            folder=self.config.folder,
            iterations=self.done,
            begun=self.begun,
            exported=exported,
            validation=None if self.best is None else self.best.reward,
            before=before,
            after=after,
        )

    async def close(self) -> None:
        """Close the episodes that are paused; how they go on lies in the folder. The gym is closed
        by whoever made it."""
        await self.rollouts.close()

    def _critic_of(self, config: RLConfig) -> Critic | None:
        ranked = [task for task in self.tasks if is_ranked(task)]
        if ranked and not config.critic.enabled:
            families = ", ".join(sorted({task.family for task in ranked}))
            raise ConfigError(
                f"the answers of {len(ranked)} tasks ({families}) are ranked by a critic, and "
                "critic.enabled is false: set it, or leave those families"
            )
        if not config.critic.enabled:
            return None
        own = (self.policy, self.policy.tokenizer, self._chat, config.critic, self.tasks)
        room = config.slot_tokens or self.model.config.max_positions
        return Critic(*own, room=room, seed=config.seed)

    async def _criticised(self, groups: list[Group], iteration: int) -> CriticisedGroups:
        if self._critic is None:
            return CriticisedGroups(groups, None, {})
        began = time.monotonic()
        made = await asyncio.to_thread(self._critic.criticise, groups, iteration)
        seconds = {"critic_s": time.monotonic() - began}
        return made._replace(measures={**made.measures, **seconds})

    @property
    def _checkpoints(self) -> Path:
        return self.config.folder / CHECKPOINTS

    def _of(self, what: str, iteration: int) -> Path:
        return self.config.folder / what / f"iteration-{iteration:06d}"

    def _send(self, version: int | None = None) -> WeightSync:
        """The weights as they are to whoever draws, by default as those of the iterations done."""
        checksum = checksum_of(self.model.state_dict().items())
        return self._weights.take(
            self.model.state_dict(),
            self.done if version is None else version,
            checksum=checksum,
        )

    async def _validate(self) -> list[FamilyScore] | None:
        if self.config.test.every is None:
            return None
        scores = await self._test("validation", f"validation-{self.done:06d}")
        reward = mean_reward(scores)
        if reward is None:
            lost = ", ".join(one.family for one in scores if not one.episodes) or "any family"
            log.warning("validation after %d iterations: no episode of %s", self.done, lost)
        elif self.best is None or reward > self.best.reward:
            self.best = BestIteration(self.done, reward)
        return scores

    async def _test(self, split: GymSplit, name: str) -> list[FamilyScore]:
        """Empty where there is no task of the split."""
        config = self.config
        tasks = chosen_tasks(self.tasks, split, config.test.tasks)
        if not tasks:
            return []
        await self.rollouts.close()  # what paused holds servers and sandboxes, and comes back
        with cpu_threads(config.draw_threads):
            return await play_test(
                *(self.policy, list(self._gym.environments.values()), tasks),
                *(config.test, config.rollouts, config.test_sampling),
                config.folder / TESTS / name,
            )

    def _measured(self, line: MetricsLine, scores: Sequence[FamilyScore]) -> MetricsLine:
        told = {f"validation/{one.family}": one.reward for one in scores if one.episodes}
        told |= {f"validation_success/{one.family}": one.success for one in scores if one.episodes}
        return {**line, "validation_reward": mean_reward(scores), **told}

    def _written(self, line: MetricsLine) -> MetricsLine:
        log.info("%s", told(line))
        if self.metrics is not None:
            self.metrics.write(line)
        return line

    def _save(self) -> None:
        if (why := infinite_weights(self.model)) is not None:
            raise self._failed(why)
        state: dict[str, Any] = {
            "done": self.done,
            "steps": self.steps,
            "drawn": self.drawn,
            "norms": list(self.stepper.norms),
            "bad": self.bad.reasons,
            "lost": self.lost.number,
            "began_with": self._began_with,
            "best": self.best,
            "tried": self.choice.to_json(),
            "critic": [] if self._critic is None else self._critic.to_json(),
        }
        folder = self._checkpoints
        folder.mkdir(parents=True, exist_ok=True)
        save_checkpoint(folder, self.model, self.stepper.optimizer, state, step=self.done)
        spare = None if self.best is None else checkpoint_of(folder, self.best.done)
        remove_old(folder, keep=self.config.keep, spare=spare)
        # nobody goes back behind the oldest checkpoint that a run may go on from
        self.rollouts.delete_before(max(0, self.done - self.config.checkpoint_every))

    def _resume(self) -> None:
        found = checkpoints_in(self._checkpoints)
        if not found:
            return
        state = load_checkpoint(found[-1], self.model, self.stepper.optimizer)
        self._refuse_another_beginning(state["began_with"])
        self.done, self.steps, self.drawn = state["done"], state["steps"], state["drawn"]
        self.stepper.norms.extend(state["norms"])
        self.bad, self.lost = BadSteps(state["bad"]), LostIterations(state["lost"])
        self.best = BestIteration(*state["best"]) if state["best"] else None
        self.choice.restore(state["tried"])
        if self._critic is not None:
            self._critic.restore(state["critic"])
        if self.done:
            self._send()
        log.info("going on behind iteration %d: %s", self.done, found[-1])

    def _refuse_another_beginning(self, was: dict[str, str]) -> None:
        """ConfigError where what the run began with lies there no longer."""
        for what, of in (("model", "start_from"), ("tasks", "gym")):
            if was[what] != self._began_with[what]:
                raise ConfigError(
                    f"the {what} of `{of}` differ from what the run in {self.config.folder} began "
                    "with; put them back, or begin another run in another `out`"
                )

    def _failed(self, why: str, instead: str = WHEN_DIVERGING) -> SynthError:
        found = checkpoints_in(self._checkpoints)
        last = f"The last good checkpoint is {found[-1]}" if found else "No checkpoint was written"
        return SynthError(
            f"the run in {self.config.folder} failed in iteration {self.done}: {why}; no model is "
            f"exported. {last}. {instead}"
        )
