"""This project's own client and pipeline against a server."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.foreign.asking import Server
from benchmarks.foreign.features import HELLO, QUESTION, SCHEMA, TOOL, Finding
from benchmarks.measured import ROOT
from records.errors import SynthError
from records.store.journal import ShardJournal
from synth.llm.client import LLM, Gateway
from synth.llm.probing.probe import probe
from synth.llm.settings.config import RoleConfig

KEY_ENV = "FOREIGN_SERVER_KEY"
TASKS = 6
RUN_TIMEOUT_S = 600.0


def role_of(server: Server, **settings: Any) -> dict[str, Any]:
    quick = {"retries": 2, "backoff_s": 0.1, "max_tokens": 60, "max_in_flight": 4}
    named = {"base_url": server.url, "models": [{"name": server.model}], "api_key_env": KEY_ENV}
    return named | quick | settings


def client_findings(server: Server) -> dict[str, Finding]:
    """The probe of a run, and one request of each form that roles send."""
    os.environ[KEY_ENV] = server.key
    return asyncio.run(_ask_all(server))


async def _ask_all(server: Server) -> dict[str, Finding]:
    config = RoleConfig.model_validate(role_of(server, temperature=0.0))
    found: dict[str, Finding] = {}
    with (
        tempfile.TemporaryDirectory(prefix="foreign-") as folder,
        ShardJournal(Path(folder) / "shard.sqlite") as journal,
    ):
        async with Gateway({"agent": config}) as gateway:
            llm = LLM(gateway, journal, stage="bench", invocation_id="bench")

            async def words() -> str:
                done = await llm.chat("agent", [HELLO], item="a", step="words")
                return f"{done.content[:60]} ({done.finish_reason})"

            async def call() -> str:
                done = await llm.chat("agent", [QUESTION], item="a", step="call", tools=[TOOL])
                if not done.tool_calls:
                    raise SynthError(f"no call: {done.content[:80]}")
                return json.dumps(done.tool_calls[0]["function"])

            async def value() -> str:
                made = await llm.structured(
                    "agent", [HELLO], item="a", step="value", name="greeting", schema=SCHEMA
                )
                return json.dumps(made)

            async def probed() -> str:
                rows = await probe("agent", config, calls_tools=True, invocation_id="bench")
                return f"{len(rows)} requests"

            forms: dict[str, Awaitable[str]] = {
                "our client: words": words(),
                "our client: a tool call": call(),
                "our client: a value by its schema": value(),
                "our probe before a run": probed(),
            }
            for name, asked in forms.items():
                found[name] = await _finding(asked)
    return found


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
