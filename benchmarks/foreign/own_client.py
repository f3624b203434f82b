"""This project's own client and pipeline against a server."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.foreign.asking import Server
from benchmarks.foreign.features import HELLO, QUESTION, SCHEMA, TOOL, Finding, calling, result
from benchmarks.measured import ROOT
from records.errors import SynthError
from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.probing.probe import probe
from synth.llm.profiles import Profiles
from synth.llm.settings.config import RoleConfig

KEY_ENV = "FOREIGN_SERVER_KEY"
TASKS = 6
RUN_TIMEOUT_S = 600.0

PATIENCE_S = 20.0
"""How long the client waits for a server that does not answer."""


def role_of(server: Server, **settings: Any) -> dict[str, Any]:
    quick = {"retries": 2, "backoff_s": 0.1, "max_tokens": 60, "max_in_flight": 4}
    named = {"base_url": server.url, "models": [{"name": server.model}], "api_key_env": KEY_ENV}
    return named | quick | settings


def client_findings(server: Server, *, roles: Sequence[str] = ("agent",)) -> dict[str, Finding]:
    """One request of each form that roles send, and the probe of a run in which the model plays
    these roles."""
    os.environ[KEY_ENV] = server.key
    found = asyncio.run(_ask_all(server))
    profiles = Profiles()
    config = RoleConfig.model_validate(role_of(server, temperature=0.0))
    asked = probe(
        dict.fromkeys(roles, config),
        calls_tools={"agent"},
        invocation_id="bench",
        profiles=profiles,
    )
    done = asyncio.run(_finding(_probed(asked, profiles)))
    return found | {f"our probe before a run ({', '.join(roles)})": done}


async def _probed(asked: Awaitable[Sequence[Any]], profiles: Profiles) -> str:
    rows = await asked
    learned = [profile.model_dump(exclude_none=True) for profile in profiles.found.values()]
    return f"{len(rows)} requests, learned {json.dumps(learned)}"


async def _ask_all(server: Server) -> dict[str, Finding]:
    plain = role_of(server, temperature=0.0)
    configs = {
        "agent": RoleConfig.model_validate(plain),
        "streamed": RoleConfig.model_validate(plain | {"profile": {"stream": True}}),
    }
    with (
        tempfile.TemporaryDirectory(prefix="foreign-") as folder,
        ShardJournal(Path(folder) / "shard.sqlite") as journal,
    ):
        async with Gateway(configs, patience_s=PATIENCE_S) as gateway:
            llm = LLM(gateway, journal, stage="bench", invocation_id="bench")

            async def words(role: str) -> str:
                done = await llm.chat(role, [HELLO], item="a", step="words")
                if not done.content:
                    raise SynthError(f"an empty answer ({done.finish_reason})")
                return f"{done.content[:60]} ({done.finish_reason})"

            async def call(role: str) -> str:
                done = await llm.chat(role, [QUESTION], item="a", step="call", tools=[TOOL])
                if not done.tool_calls:
                    raise SynthError(f"no call: {done.content[:80]}")
                return json.dumps(done.tool_calls[0]["function"])

            async def value() -> str:
                made = await llm.structured(
                    "agent", [HELLO], item="a", step="value", name="greeting", schema=SCHEMA
                )
                return json.dumps(made)

            async def after_broken_call() -> str:
                talk = [QUESTION, calling("Lisbon", arguments='{"city": "Lis'), result("Lisbon")]
                done = await llm.chat("agent", talk, item="a", step="broken", tools=[TOOL])
                return done.finish_reason

            forms: dict[str, Awaitable[str]] = {
                "our client: words": words("agent"),
                "our client: words, streamed": words("streamed"),
                "our client: a tool call": call("agent"),
                "our client: a tool call, streamed": call("streamed"),
                "our client: a value by its schema": value(),
                "our client: after a call of arguments that are no JSON": after_broken_call(),
            }
            return {name: await _finding(asked) for name, asked in forms.items()}


async def _finding(asked: Awaitable[str]) -> Finding:
    try:
        return Finding(True, await asked)
    except SynthError as error:
        return Finding(False, f"{type(error).__name__}: {' '.join(str(error).split())[:260]}")


def run_findings(server: Server, folder: Path) -> dict[str, Finding]:
    """`synth run` of a few tasks with every role on the server."""
    config = folder / "run.toml"
    lines = ['name = "foreign"', f"num_tasks = {TASKS}", 'domains = ["clinic_desk", "web_shop"]']
    lines += ["servers = []", "code = []"]
    for role in ("generator", "agent", "user", "judge"):
        settings = role_of(server, max_tokens=24_000 if role == "generator" else 2048)
        lines += [f"[roles.{role}]", *(f"{name} = {_toml(v)}" for name, v in settings.items())]
    config.write_text("\n".join(lines) + "\n")
    dataset = folder / "dataset"
    command = [
        sys.executable,
        "-m",
        "flows.cli.main",
        "run",
        str(config),
        "--dataset",
        str(dataset),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=dict(os.environ) | {KEY_ENV: server.key, "PREFECT_HOME": str(folder / "prefect")},
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"synth run": Finding(False, f"still running after {RUN_TIMEOUT_S:.0f} s")}
    (folder / "run.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        told = " ".join(" ".join(done.stderr.splitlines()[-6:]).split())
        return {"synth run": Finding(False, f"exit code {done.returncode}: {told[-300:]}")}
    query = "SELECT count(*) AS made, count(*) FILTER (accepted) AS accepted FROM curation"
    told = subprocess.run(
        [sys.executable, "-m", "flows.cli.main", "sql", query, "--dataset", str(dataset), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return {"synth run": Finding(True, f"{TASKS} tasks: {' '.join(told.split())}")}


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value)
