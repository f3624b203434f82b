"""Before a run: is the endpoint there, does it know the models, do the roles' requests work?

Each model is sent the forms of request that its roles will send: calls of a tool, an answer in a
given form, a plain message. What the endpoint refuses in them becomes its profile here, before
items are made. `synth.llm.probing.thorough` finds out the rest.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ConfigError, ItemError, TransientError, UnavailableError
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.endpoint.connection import ASGIApp
from synth.llm.endpoint.failures import SendError
from synth.llm.gateway import Gateway
from synth.llm.probing.questions import FORM, HELLO, REPORT
from synth.llm.probing.tool_calls import ROUNDS, tool_problem
from synth.llm.profiles import ModelAt, Profiles
from synth.llm.settings.config import OFFLINE, RoleConfig
from synth.llm.settings.profile import STRUCTURED

MOST_REQUESTS = 5
"""That a model answers in the probe of a run."""

TRIES = 2
"""A model may fail once by chance; one that fails again does not work."""

LIST_TIMEOUT_S = 30.0
PATIENCE_S = 60.0
"""How long a probe waits for an endpoint that does not answer."""

NEVER_STRUCTURED = frozenset({"agent", "rewriter", "embedder"})
"""Roles whose answers have no form."""

_MOST_NAMES = 10


class _Part(NamedTuple):
    """A model at an endpoint, and the roles that it plays."""

    where: ModelAt
    roles: dict[str, RoleConfig]

    def widest(self, roles: Collection[str]) -> str | None:
        """Of these roles the one that asks for the longest answers."""
        mine = [role for role in self.roles if role in roles]
        return max(mine, key=lambda role: self.roles[role].max_tokens, default=None)


async def probe(
    roles: Mapping[Any, RoleConfig],
    *,
    calls_tools: Collection[str],
    invocation_id: str,
    profiles: Profiles | None = None,
    budget: Budget | None = None,
    offline_app: Callable[[], ASGIApp] | None = None,
) -> list[Row]:
    """Raise ConfigError saying which failure was seen; else the ledger rows (stage `probe`).

    Five requests a model at most, whatever number of roles it plays. What is found goes to
    `profiles`.
    """
    profiles = profiles or Profiles()
    rows: list[Row] = []
    for part in _parts(roles):
        alone = {role: _with_model(config, part.where[1]) for role, config in part.roles.items()}
        async with Gateway(
            alone,
            budget=budget,
            offline_app=offline_app,
            profiles=profiles,
            patience_s=PATIENCE_S,
        ) as gateway:
            unlisted = await _unlisted(gateway, part, profiles)
            with (  # of no use to a later probe: the endpoint may have changed
                tempfile.TemporaryDirectory(prefix="synth-probe-") as folder,
                ShardJournal(Path(folder) / "probe.sqlite") as journal,
            ):
                llm = LLM(gateway, journal, stage="probe", invocation_id=invocation_id)
                await _check(llm, part, calls_tools, profiles, unlisted)
                rows += llm.rows()
    return rows


def _parts(roles: Mapping[Any, RoleConfig]) -> list[_Part]:
    found: dict[ModelAt, dict[str, RoleConfig]] = {}
    for role, config in roles.items():
        for model in config.models:
            found.setdefault((config.endpoint_key, model.name), {})[role] = config
    return [_Part(where, players) for where, players in found.items()]


def _with_model(config: RoleConfig, name: str) -> RoleConfig:
    models = tuple(model for model in config.models if model.name == name)
    return config.model_copy(update={"models": models})


async def _unlisted(gateway: Gateway, part: _Part, profiles: Profiles) -> str:
    """What the endpoint lists instead of the model, in words; empty where it lists it, or nothing.

    A model that is not listed may still be there: deployments and aliases often are not.
    """
    role = next(iter(part.roles))
    _, endpoint = gateway.role(role)
    try:
        listed = await endpoint.models(timeout_s=LIST_TIMEOUT_S)
    except SendError as failure:
        if failure.status in ("rate_limited", "overloaded", "server_error"):
            return ""  # it is there; the chat requests have retries
        advice = "check base_url"
        if failure.code in (401, 403):
            key = endpoint.key_env
            advice = f"check the key in {key}" if key else "set api_key_env"
        raise ConfigError(f"roles.{role}: {failure.detail}; {advice}") from None
    model = part.where[1]
    if context := context_listed(listed or (), model):
        profiles.change(part.where, context_tokens=context)
    if listed is None or any(_is_called(entry["id"], model) for entry in listed):
        return ""
    names = [entry["id"] for entry in listed]
    return ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")


def _is_called(listed: str, model: str) -> bool:
    return listed in (model, f"{model}:latest", f"models/{model}", "*")


def context_listed(listed: Iterable[Mapping[str, Any]], model: str) -> int | None:
    """Tokens that a model holds, where the list of models says so: as vLLM, OpenRouter, Groq and
    llama.cpp do."""
    for entry in listed:
        if _is_called(entry["id"], model):
            meta = entry.get("meta") or {}
            names = ("max_model_len", "context_length", "context_window")
            for value in (*(entry.get(name) for name in names), meta.get("n_ctx")):
                if type(value) is int and value > 0:
                    return value
    return None


async def _check(
    llm: LLM, part: _Part, calls_tools: Collection[str], profiles: Profiles, unlisted: str
) -> None:
    model, endpoint = part.where[1], part.where[0]
    caller = part.widest(calls_tools)
    form = part.widest(part.roles.keys() - NEVER_STRUCTURED)
    talker = None if caller or form else part.widest(part.roles.keys() - {"embedder"})
    if endpoint.base_url == OFFLINE:  # whose answers are the program's own matter
        form = talker = None
    role = caller or form or talker or next(iter(part.roles))
    if unlisted and not (caller or form or talker):
        raise ConfigError(
            f"roles.{role}.models: {endpoint.base_url} has no {model!r}, only {unlisted}"
        )
    try:
        if caller and (problem := await _tools(llm, caller)):
            where = f"tool calls of {model} at {endpoint.base_url}"
            raise ConfigError(f"roles.{caller}: {where} do not work: {problem}")
        if form and _asked(llm) < MOST_REQUESTS:
            await _form(llm, form, part, profiles)
        if talker:
            await llm.chat(talker, HELLO, item="probe", step="hello")
    except (ItemError, TransientError, UnavailableError) as error:
        listing = f"; the endpoint lists {unlisted}" if unlisted else ""
        raise ConfigError(f"roles.{role}: {model} fails the probe: {error}{listing}") from None
    except ConfigError as error:
        if unlisted and str(error).startswith(endpoint.base_url):
            listing = f"the endpoint lists {unlisted}"
            raise ConfigError(f"roles.{role}.models: {error}; {listing}") from None
        raise


async def _tools(llm: LLM, role: str) -> str | None:
    problem = None
    for number in range(TRIES):
        rounds = min(ROUNDS, MOST_REQUESTS - _asked(llm))
        problem = await tool_problem(llm, role, item=f"probe-{number}", rounds=rounds)
        if problem is None:
            return None
    return problem


def _asked(llm: LLM) -> int:
    """Requests that the model has answered."""
    return sum(row["status"] == "ok" for row in llm.rows())


async def _form(llm: LLM, role: str, part: _Part, profiles: Profiles) -> None:
    """Asks in one form after the other, until the answer has it."""
    config = part.roles[role]
    model = part.where[1]
    while True:
        used = profiles.of(config, model).profile.structured or "json_schema"
        try:
            await llm.structured(
                role,
                REPORT,
                item="probe",
                step=f"form-{used}",
                name="weather",
                schema=FORM,
                repairs=0,
            )
            return
        except ItemError as error:
            last = used == STRUCTURED[-1] or config.profile.structured is not None
            if error.reason not in ("refused", "invalid_output") or last:
                raise
            if _asked(llm) >= MOST_REQUESTS:
                return  # the run's own requests will tell
        profiles.change(part.where, structured=STRUCTURED[STRUCTURED.index(used) + 1])
