"""Servers that are not ours: what they do with our requests, and our client with their answers.

    python benchmarks/bench_foreign.py [--folder F] [--only transformers] [--by-hand SERVE.py]
    python benchmarks/bench_foreign.py --at URL MODEL

Each server has an environment of its own below the folder (a temporary one if none is given), made
on the first run: `transformers serve` with a tiny model that our trainer made, and litellm's proxy
before the offline model, before a double that keeps what it is sent and, where the path of a server
that is answered by hand is given, before that. Environments, model and logs stay in a folder that
was given. Needs a package index for the first run; what cannot be had is said and left out.

With --at a server that runs already is asked the same and nothing is installed: vLLM or SGLang on
a machine with a GPU, say. Its key is read from FOREIGN_SERVER_KEY, where it has one.

Exit code 1 if our client cannot work with a server of which it is known that it can.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.foreign.answering import answered_by_hand
from benchmarks.foreign.asking import Server
from benchmarks.foreign.environments import CannotRunError, environment
from benchmarks.foreign.exported import exported_model
from benchmarks.foreign.features import FEATURES, Finding
from benchmarks.foreign.own_client import KEY_ENV, client_findings, run_findings
from benchmarks.foreign.processes import free_port, serving
from benchmarks.foreign.proxied import Change, changes
from benchmarks.foreign.upstream import MODEL, upstream
from benchmarks.measured import ROOT, machine

KEY = "sk-foreign-servers"

Findings = dict[str, Finding]
"""Feature or form of request -> what was seen."""

MUST_WORK = {
    ("litellm, offline model", "our client: words"),
    ("litellm, offline model", "our client: a tool call"),
    ("litellm, offline model", "our client: a value by its schema"),
    ("litellm, offline model", "our probe before a run (agent, judge)"),
    ("litellm, offline model", "a run of six tasks"),
    ("transformers serve", "our client: words"),
    ("transformers serve, response_template", "our client: a tool call"),
    ("transformers serve, response_template", "our probe before a run (agent)"),
}


class Results:
    """What was seen, told as it is seen."""

    def __init__(self) -> None:
        self.findings: dict[str, Findings] = {}
        self.changes: dict[str, list[Change]] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.left_out: dict[str, str] = {}

    def check(self, server: Server, name: str, look: Callable[[Server], Findings]) -> None:
        for what, finding in look(server).items():
            self.findings.setdefault(name, {})[what] = finding
            say(f"{name}: {what}: {'yes' if finding.works else 'no'} {finding.told}")

    def failed(self) -> list[str]:
        return [
            f"{name}: {what}: {finding.told}"
            for name, seen in self.findings.items()
            for what, finding in seen.items()
            if not finding.works and (name, what) in MUST_WORK
        ]


def say(text: str) -> None:
    print(f"foreign: {text}", file=sys.stderr, flush=True)


def all_roles(server: Server) -> Findings:
    return client_findings(server, roles=("agent", "judge"))


def features(server: Server) -> Findings:
    return {name: check(server) for name, check in FEATURES.items()}


def transformers(root: Path, results: Results) -> None:
    say("transformers: its environment")
    env = environment("transformers", root)
    results.versions["transformers"] = env.versions
    say("transformers: a tiny model from our trainer (two minutes the first time)")
    model = exported_model(root / "model")
    # without this folder GET /models fails; with it, it lists what was fetched from the Hub alone
    (root / "huggingface" / "hub").mkdir(parents=True, exist_ok=True)
    name, port = "transformers serve", free_port()
    command = [env.program("transformers"), "serve", str(model), "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    home = {"HF_HOME": str(root / "huggingface"), "HF_HUB_OFFLINE": "1"}
    with serving(name, command, ready_url=f"{url}/health", log=root / "serve.log", env=home):
        server = Server(name, f"{url}/v1", str(model))
        results.check(server, name, features)
        results.check(server, name, client_findings)


@contextmanager
def offline_model(root: Path) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    command = [sys.executable, "-m", "flows.cli.main", "offline-llm", "--port", str(port)]
    log = root / "offline-model.log"
    env = {"PYTHONPATH": str(ROOT)}
    with serving("offline model", command, ready_url=f"{url}/models", log=log, env=env):
        yield url


def litellm(root: Path, results: Results, by_hand: Path | None) -> None:
    say("litellm: its environment")
    env = environment("litellm", root)
    results.versions["litellm"] = env.versions
    with ExitStack() as stack:
        behind = stack.enter_context(upstream())
        routes = {
            "offline": ("openai/offline-model", stack.enter_context(offline_model(root))),
            "kept": (f"openai/{MODEL}", behind.url),
            "kept-vllm": (f"hosted_vllm/{MODEL}", behind.url),
        }
        if by_hand is not None:
            routes["by-hand"] = ("openai/by-hand", stack.enter_context(answered_by_hand(by_hand)))
        config = root / "litellm.yaml"
        config.write_text(json.dumps(_litellm_config(routes)))  # JSON is YAML
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [env.program("litellm"), "--config", str(config), "--host", "127.0.0.1"]
        command += ["--port", str(port), "--telemetry", "False"]
        stack.enter_context(
            serving(
                "litellm",
                command,
                ready_url=f"{url}/health/liveliness",
                log=root / "litellm.log",
                env={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            )
        )

        def server(model: str) -> Server:
            return Server(f"litellm, {model}", f"{url}/v1", model, KEY)

        name = "litellm, offline model"
        results.check(server("offline"), name, features)
        results.check(server("offline"), name, all_roles)
        dataset = root / "dataset"
        shutil.rmtree(dataset, ignore_errors=True)
        results.check(server("offline"), name, lambda one: run_findings(one, dataset))
        if by_hand is not None:
            results.check(server("by-hand"), "litellm, by hand", features)
            results.check(server("by-hand"), "litellm, by hand", all_roles)
        for model, route in (("kept", "openai/"), ("kept-vllm", "hosted_vllm/")):
            results.changes[f"litellm, {route}"] = changes(server(model), behind)
            for change in results.changes[f"litellm, {route}"]:
                say(f"litellm, {route}: {change.what}: {change.told}")


def _litellm_config(routes: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    served = [
        {"model_name": name, "litellm_params": {"model": model, "api_base": url, "api_key": "none"}}
        for name, (model, url) in routes.items()
    ]
    return {"model_list": served, "general_settings": {"master_key": KEY}}


def table(results: Results) -> str:
    names = list(results.findings)
    rows = list(dict.fromkeys(what for seen in results.findings.values() for what in seen))
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for what in rows:
        cells = [_cell(results.findings[name].get(what)) for name in names]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    for name, seen in results.changes.items():
        lines += ["", f"| {name} | what arrives |", "|---|---|"]
        lines += [f"| {change.what} | {_safe(change.told)} |" for change in seen]
    lines.append("")
    for name, versions in results.versions.items():
        told = ", ".join(f"{package} {version}" for package, version in versions.items())
        lines.append(f"Environment of {name}: {told}")
    lines += [f"Left out: {name}: {why}" for name, why in results.left_out.items()]
    lines.append(f"Machine: {json.dumps(machine())}")
    return "\n".join(lines)


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "-"
    told = f"; {_safe(finding.told)}" if finding.told else ""
    return ("yes" if finding.works else "**no**") + told


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, help="environments, model and logs; kept")
    parser.add_argument("--only", choices=("transformers", "litellm"))
    parser.add_argument("--by-hand", type=Path, help="serve.py of an endpoint answered by hand")
    parser.add_argument(
        "--at", nargs=2, metavar=("URL", "MODEL"), help="a server that runs already"
    )
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    results = Results()
    with ExitStack() as stack:
        made = args.folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="foreign-"))
        root = Path(made).resolve()
        root.mkdir(parents=True, exist_ok=True)
        parts: dict[str, Callable[[], None]] = {
            "litellm": lambda: litellm(root, results, args.by_hand),
            "transformers": lambda: transformers(root, results),
        }
        for name, part in parts.items():
            if args.only not in (None, name) or args.at:
                continue
            try:
                part()
            except CannotRunError as error:
                results.left_out[name] = str(error)
                say(f"{name} is left out: {error}")
    if args.at:
        url, model = args.at
        server = Server(model, url, model, os.environ.get(KEY_ENV, "none"))
        results.check(server, server.model, features)
        results.check(server, server.model, all_roles)
    print(table(results))
    for line in (failed := results.failed()):
        say(f"does not work, and should: {line}")
    return 1 if failed else 0


def _leave(number: int, _frame: Any) -> NoReturn:
    """SIGTERM unwinds as an exception does, so that every server is stopped."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
