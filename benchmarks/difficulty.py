"""What each operator does to the pass rate of the offline agent: children beside their parents.

    python -m benchmarks.difficulty [DATASET] [--tasks 96] [--slips 3]

One run with four attempts a task and one round. The agent of the offline model makes `--slips`
times its usual mistakes, so that there are tasks to make easier. Attempts that decide whether a
task is made harder or easier say nothing of how hard it is: a task that was lucky four times looks
easier than it is. So parents and children are played four times more once the round is over, and
only these attempts are compared. With a DATASET that a run has begun, the run goes on there.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.measured import show
from flows.runtime.open_run import open_run
from offline_llm.app import create_app
from offline_llm.settings.settings import OfflineSettings
from synth.engine.job_config import OfflineConfig
from synth.engine.run import Run
from synth.episode.rollout import RolloutConfig
from synth.judging.stages import GradingStage, Judged
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.difficulty import run_rounds
from synth.pipeline.stages import STAGES, RolloutStage
from synth.render.intervals import wilson
from synth.tasks.config import TaskConfig
from synth.tasks.difficulty import EASIER, HARDER, DifficultyConfig
from synth.tasks.forms.forms import ALL_PLAIN

ATTEMPTS = 4
"""Before the round, and again after it."""

AGENT = "slipping-agent"
