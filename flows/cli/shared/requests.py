"""What a run would send: each role's first request, with the values of keys left out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flows.cli.shared.output import say
from synth.engine.job_config import JobConfig
from synth.llm.settings.config import RoleConfig
from synth.llm.wire.embeddings import PATH as EMBEDDINGS
from synth.llm.wire.embeddings import embedding_body
from synth.llm.wire.request import chat_request
from synth.llm.wire.shape import form_of, shaped

CHAT = "/chat/completions"

FILE = "first_requests.json"
"""In the dry run's dataset: the requests uncut."""

SHOWN_CHARS = 240
SHOWN_TOOLS = 2


def tell_requests(config: JobConfig, plain: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Print the requests of the hosted roles of `config` and write them to a file in `folder`.
    `plain` has the bodies that a dry run of it made, by role, before any profile shaped them."""
    hosted = {role: own for role, own in config.roles_asked().items() if not own.is_offline}
    made = {role: _request(own, role, plain[role]) for role, own in hosted.items() if role in plain}
    if not made:
        return
    (folder / FILE).write_text(json.dumps(made, ensure_ascii=False, indent=2), encoding="utf-8")
    say("\nThe first request of each role, as it would be sent if the probe finds nothing else:")
    for role, request in made.items():
        for line in _lines(role, request):
            print(line)  # noqa: T201
    if silent := [role for role in hosted if role not in made]:
        say(f"no request of {', '.join(silent)} was needed for these few items")
    say(f"uncut: {folder / FILE}")


def _request(own: RoleConfig, role: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    path, body = _asked(own, role, plain)
    query = f"?{urlencode(own.query)}" if own.query else ""
    headers = {name: f"(value of {variable})" for name, variable in own.headers.items()}
    if own.api_key_env is not None:
        headers["authorization"] = f"Bearer (value of {own.api_key_env})"
    return {
        "url": f"{own.base_url.rstrip('/')}{path}{query}",
        "batch": own.batch,
        "headers": headers,
        "body": body,
    }


def _asked(own: RoleConfig, role: str, plain: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Path and body, with the role's own model and settings, for the dry run's were the offline
    model's."""
    if "input" in plain:
        return EMBEDDINGS, json.loads(embedding_body(own, role, plain["input"], item=role))
    asked = chat_request(
        own, role, plain["messages"], item=role, tools=plain.get("tools"), form=form_of(plain)
    )
    return CHAT, shaped(asked.body | {"seed": plain["seed"]}, own.profile, size=len(asked.raw))


def _lines(role: str, request: Mapping[str, Any]) -> Iterator[str]:
    way = ", a line of a batch" if request["batch"] else ""
    yield f"\n{role}{way}: POST {request['url']}"
    for name, value in request["headers"].items():
        yield f"{name}: {value}"
    yield json.dumps(in_short(request["body"]), ensure_ascii=False, indent=2)


def in_short(value: Any, name: str = "") -> Any:
    """Long texts and lists of tools cut, with a word on what is left out."""
    if isinstance(value, str) and len(value) > SHOWN_CHARS:
        return f"{value[:SHOWN_CHARS]}... ({len(value) - SHOWN_CHARS:,} more characters)"
    if isinstance(value, Mapping):
        return {key: in_short(inner, key) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = value[:SHOWN_TOOLS] if name == "tools" else value
        cut = [f"({len(value) - len(shown)} more)"] if len(value) > len(shown) else []
        return [*(in_short(inner) for inner in shown), *cut]
    return value
