"""Which faults of the simulated user are found, and which good turns are taken for faults.

    python benchmarks/bench_user_control.py [--dataset FOLDER] [--turns 1200] [--rate 0.06]

Plays tasks of a dataset (without one, of a run made for it) with the offline model, whose user
makes each kind of fault at `--rate` a turn. What was drawn is known from the request alone, by the
provider's own functions; what was found is what `LlmUser` wrote down. Prints one JSON line per kind
(detection: faults of the kind that were found, as any kind; named: found as this kind) and one for
the false alarms on turns without a fault, with 95% intervals (Wilson). The words of these turns are
the offline model's: how a hosted model's faults are found is not shown by them. Turns written by
hand in five languages, the way people and models put things, come after (`user_turns.json`, or a
file named by `--turns-of`, which may have the form {"turns": [...]}): a line for each kind, with
how many were refused, were doubted (asked for once more) and went through. `--by-hand` leaves the
offline model's out.
Two more lines are about calls of the user's own tools (`user_acts.json`, written by hand): whether
the agent's words asked for the act, or only held a word of it in passing.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import ROOT, machine, show
from benchmarks.minds.halves import note_opening, user_turns
from offline_llm.jobs import answer_of
from offline_llm.roles.user_slips import drawn
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply
from offline_llm.server.server import OpenAIServer
from offline_llm.settings.rates import UserErrors
from offline_llm.settings.settings import OfflineSettings
from records.store.dataset import Dataset
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.episode.environment import EpisodeConfig, EpisodeEnvironment
from synth.episode.rollout import assistant_message, episode_seed
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.fault_injection import FaultInjectionConfig
from synth.episode.users.acts import was_spoken_of
from synth.episode.users.faults import TurnFault, UserFault, UserTalk
from synth.episode.users.user import LlmUser, Scene, UserTurn
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.sources import catalogue_of
from synth.render.intervals import wilson
from tool_specs.domains.catalogue import tool_rows
from tool_specs.domains.domain import load_domains

CONFIG = RunConfig(domains=(BUILT_IN,), servers=(), code=())
CLEAN = OfflineSettings(user_errors=UserErrors(**dict.fromkeys(UserErrors.model_fields, 0.0)))
EPISODE = EpisodeConfig(
    fault_injection=FaultInjectionConfig(weights={"success": 1.0}), user_retries=4
)
HAND_WRITTEN = Path(__file__).with_name("user_turns.json")
ACTS = Path(__file__).with_name("user_acts.json")


class Meter:
    """What was drawn for each turn of the user, and what was made of it."""

    def __init__(self, settings: OfflineSettings) -> None:
        self._settings = settings
        errors = CLEAN.user_errors.model_copy(
            update={"wrong_fact": settings.user_errors.wrong_fact}
        )
        self._only_slips = settings.model_copy(update={"user_errors": errors})
        self._drawn: str | None = None
        self.seen: list[tuple[str | None, TurnFault | None, str]] = []
        """(kind drawn or None, fault found or None, words)."""

    def answer(self, request: ChatRequest) -> Reply:
        given = answer_of(request, self._settings)
        if request.schema_name == "user_turn":
            slipped = answer_of(request, self._only_slips).content
            if given.content != slipped:
                self._drawn = drawn(request, self._settings.user_errors, 1.0)
            else:
                clean = answer_of(request, CLEAN).content
                self._drawn = None if clean == slipped else "wrong_fact"
        return given

    def found(self, said: UserTurn, fault: TurnFault | None) -> None:
        self.seen.append((self._drawn, fault, said.message))


class MeasuredUser(LlmUser):
    meter: Meter

    async def _fault(self, said: UserTurn, talk: UserTalk, scene: Scene) -> TurnFault | None:
        fault = await super()._fault(said, talk, scene)
        self.meter.found(said, fault)
        return fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, help="with tasks of the built-in domains")
    parser.add_argument("--turns", type=int, default=1200)
    parser.add_argument("--rate", type=float, default=0.06, help="of each kind of fault, a turn")
    parser.add_argument("--by-hand", action="store_true", help="only turns written by hand")
    parser.add_argument(
        "--minds", action="store_true", help="only the turns by another mind, kept for reporting"
    )
    parser.add_argument("--turns-of", type=Path, default=HAND_WRITTEN, help="turns by hand")
    parser.add_argument("--show", action="store_true", help="print what was missed or mistaken")
    given = parser.parse_args()
    if not given.by_hand and not given.minds:
        drawn_turns(given)
    if given.minds:
        note_opening(machine()["commit"], "turns of users", "code alone")
        report_by_hand(user_turns(), show_all=given.show)
        return
    report_by_hand(json.loads(given.turns_of.read_text()), show_all=given.show)
    report_acts(show_all=given.show)


def drawn_turns(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = given.dataset or made_here(Path(folder) / "data", given.turns // 3)
        meter = Meter(settings_at(given.rate))
        asyncio.run(play(Dataset.open(dataset), meter, given.turns, Path(folder)))
    report(meter, show_all=given.show)


def settings_at(rate: float) -> OfflineSettings:
    rates = dict.fromkeys(UserErrors.model_fields, rate)
    return OfflineSettings(user_errors=UserErrors(**rates))


def made_here(folder: Path, tasks: int) -> Path:
    config = folder.with_suffix(".toml")
    config.write_text(
        f'name = "tasks"\nnum_tasks = {tasks}\ndomains = ["{BUILT_IN}"]\nservers = []\ncode = []\n'
    )
    command = [sys.executable, "-m", "flows.cli.main", "run", str(config), "--dataset", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder


async def play(dataset: Dataset, meter: Meter, turns: int, folder: Path) -> None:
    """Episode after episode, one at a time: what was drawn last is what is looked at next."""
    roles: Mapping[Any, RoleConfig] = {role: RoleConfig() for role in ("agent", "user")}
    app = OpenAIServer(meter.answer, list(CLEAN.models), misbehave=CLEAN.misbehave)
    catalogue = catalogue_of(dataset, CONFIG)
    async with Gateway(roles, offline_app=lambda: app) as gateway:
        with ShardJournal(folder / "journal.sqlite") as journal:
            llm = LLM(gateway, journal, stage="bench", invocation_id="bench")
            for task in dataset.rows("tasks"):
                if len(meter.seen) < turns and task["domain_id"] in catalogue.domains:
                    await episode(task, catalogue, llm, meter)


async def episode(task: Row, catalogue: Catalogue, llm: LLM, meter: Meter) -> None:
    item = task["task_id"]

    def user(task: Row, persona: Row) -> LlmUser:
        own = catalogue.user_tools_of(task)
        brief, retries = task["user_brief"], EPISODE.user_retries
        made = MeasuredUser(
            llm, item=item, persona=persona, brief=brief, tools=own, retries=retries
        )
        made.meter = meter
        return made

    env = EpisodeEnvironment(catalogue, EPISODE, user=user)
    messages, info = await env.reset(task, episode_seed(item))
    while env.state.reason is None:
        step = f"agent-{env.state.turn}"
        answer = await llm.chat("agent", messages, item=item, step=step, tools=info["tools"])
        action = assistant_message(answer, num_calls=len(env.state.caller.records))
        await env.step(action)
        messages = env.state.conversation
    await env.close()


def report(meter: Meter, *, show_all: bool) -> None:
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sure: Counter[str] = Counter()
    for kind, fault, words in meter.seen:
        if kind is None:
            rows["none"][fault.kind if fault else "quiet"] += 1
            sure["none"] += fault is not None and fault.is_sure
        else:
            name = "invented_fact" if kind == "wrong_fact" else kind
            found = "missed" if fault is None else "named" if fault.kind == name else "as another"
            rows[kind][found] += 1
            sure[kind] += fault is not None and fault.is_sure
        if show_all and (kind is None) != (fault is None):
            print(kind, fault, repr(words), file=sys.stderr)
    clean = rows.pop("none")
    label = {"label": "offline model", "turns": len(meter.seen)}
    for kind, counts in sorted(rows.items()):
        n = counts.total()
        hits = n - counts["missed"]
        rate = {"n": n, "found": hits, "detection": round(hits / n, 3)}
        show({"measure": "detection", "kind": kind, **rate, **_interval(hits, n)}
             | {"named": counts["named"], "sure": sure[kind]} | label)  # fmt: skip
    alarms, n = clean.total() - clean["quiet"], clean.total()
    by_kind = {kind: count for kind, count in clean.items() if kind != "quiet"}
    show({"measure": "false alarm", "n": n, "alarms": alarms, "rate": round(alarms / max(1, n), 4)}
         | _interval(alarms, n) | {"kinds": by_kind, "sure": sure["none"]} | label)  # fmt: skip


def _interval(hits: int, n: int) -> dict[str, Any]:
    low, high = wilson(hits, n)
    return {"low": round(low, 3), "high": round(high, 3)}


def report_by_hand(written: Any, *, show_all: bool) -> None:
    """Turns written by hand, by kind and by language: how many were refused, doubted, let through.
    Of good ones (`good`, `fine`) the last is right, of the others the first two."""
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for language, kind, scene, text in turns_by_hand(written):
        fault = asyncio.run(judged(scene, text, done=kind == "premature_stop"))
        found = "passed" if fault is None else "refused" if fault.is_sure else "doubted"
        is_good = kind in ("good", "fine")
        rows[kind][found] += 1
        rows[f"{'good' if is_good else 'faulty'} in {language}"][found] += 1
        rows["all good" if is_good else "all faulty"][found] += 1
        if show_all and is_good == (fault is not None):
            print(language, kind, fault, repr(text), file=sys.stderr)
    for kind, counts in sorted(rows.items()):
        n = counts.total()
        numbers = {name: counts[name] for name in ("refused", "doubted", "passed")}
        spans = {f"{name}_{end}": value for name in numbers
                 for end, value in _interval(numbers[name], n).items()}  # fmt: skip
        show({"measure": "by hand", "kind": kind, "n": n} | numbers | spans)


def turns_by_hand(written: Any) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """(language, kind, scene, words) of a file of scenes with answers, or of single turns."""
    for scene in written if isinstance(written, list) else ():
        for kind, answers in scene["answers"].items():
            for text in answers:
                yield scene["language"], kind, scene, text
    for turn in written["turns"] if isinstance(written, dict) else ():
        spoken = [*zip(turn["own"], turn["heard"][1:], strict=True)]
        facts = [{"when": "asked", "goal": 0} | fact for fact in turn["brief"]["facts"]]
        scene = {
            "brief": {"wishes": turn["brief"]["wishes"], "facts": facts},
            "said": [words for pair in spoken for words in pair],
            "goal_open": True,
            "background": turn["brief"].get("persona", ""),
        }
        yield turn["language"], turn["kind"], scene, turn["turn"]


def report_acts(*, show_all: bool) -> None:
    """Words that ask for a call of the user's own tool, and words that touch it in passing."""
    found: dict[str, list[bool]] = {"asked": [], "passing": []}
    for case in json.loads(ACTS.read_text()):
        (domain,) = load_domains([case["domain"]])
        tool = next(row for row in tool_rows(domain) if row["name"] == case["tool"])
        for sort, answers in found.items():
            for words in case[sort]:
                arguments = json.dumps(case["arguments"])
                answers.append(was_spoken_of(tool, arguments, ["Hello.", words]))
                if show_all and answers[-1] != (sort == "asked"):
                    print(sort, case["tool"], repr(words), file=sys.stderr)
    for sort, answers in found.items():
        right, n = sum(said == (sort == "asked") for said in answers), len(answers)
        show({"measure": f"act {sort}", "n": n, "told rightly": right} | _interval(right, n))


async def judged(scene: Mapping[str, Any], text: str, *, done: bool) -> TurnFault | None:
    messages = [
        {"role": "assistant" if number % 2 else "user", "content": words}
        for number, words in enumerate(scene["said"])
    ]

    async def goal_open() -> bool | None:
        return scene["goal_open"]

    nothing: Any = partial(asyncio.sleep, 0)
    noted: list[UserFault] = []
    told = Scene(messages, goal_open, len(messages) // 2, (), nothing, noted.append)
    persona = TABLES["personas"].defaults | {
        "name": "Robin Vale",
        "background": scene.get("background", "Robin is 44 and runs a small bakery in Leeds."),
        "communication_style": "chatty",
        "patience": 4,
        "preferences": ["short answers"],
    }
    unused: Any = None
    user = LlmUser(unused, item="x", persona=persona, brief=scene["brief"])
    return await user._fault(UserTurn(text, done), user._talk(messages, ()), told)


if __name__ == "__main__":
    main()
