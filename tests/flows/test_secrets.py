"""A key is used and written down nowhere: no table, journal, plan, report or export holds it."""

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.tables import TABLES
from sandboxes.lending.leases import available
from synth.exports.export import export_dataset
from synth.llm.settings.config import RoleConfig
from synth.publish.report import write_report
from synth.tasks.agents.agents import AgentConfig
from tests.flows.pipeline_work import SMALL, run_pipeline

pytestmark = pytest.mark.slow

KEY = "sk-test-0f1e2d3c4b5a69788796"
SERVER = Path(__file__).parents[1] / "sandboxes" / "mcp" / "reaching_server.py"


def test_no_table_file_or_report_holds_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    roles = {role: RoleConfig(api_key_env="TEST_LLM_KEY") for role in SMALL.roles}
    run_pipeline(tmp_path / "d", SMALL.model_copy(update={"roles": roles}))
    assert_nowhere(KEY, tmp_path)


def assert_nowhere(key: str, folder: Path) -> None:
    """No table, file, report or export of the dataset `d` in `folder` holds it."""
    dataset = Dataset.open(folder / "d")
    write_report(dataset)
    export_dataset(dataset, folder / "out", include_heldout=True, include_code_alone=True)
    rows = {table: dataset.rows(table) for table in TABLES}
    assert rows["llm_calls"]
    assert rows["runs"]
    assert key not in json.dumps(rows, default=str)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert key.encode() not in path.read_bytes(), path


class Shop(BaseHTTPRequestHandler):
    """A service that answers whoever has the key, and tells it back, as careless ones do."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        key = self.headers["authorization"]
        self.seen.append(key)
        body = f"Order {self.path[-2:]} is shipped. You are {key}.".encode()
        self.send_response(200 if key == KEY else 403)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def definition(port: int) -> dict[str, Any]:
    url = f"http://shop.example:{port}/{{order}}"
    told = {"label": "state of the order", "regex": "is ([a-z]+)"}
    goal = {
        "id": "order_state",
        "wish": "fetch the page of order {order} and tell me the state of the order",
        "calls": [{"tool": "fetch", "arguments": {"url": url}}],
        "labels": {"url": "address of the order"},
        "communicate": [told],
    }
    return {
        "name": "shop",
        "license": "MIT",
        "description": "Fetches pages of orders, and tells what is known of its own token.",
        "command": ["python", "/opt/server/shop.py"],
        "binds": [{"source": str(SERVER), "target": "/opt/server/shop.py"}],
        "hosts": [f"shop.example:{port}=127.0.0.1"],
        "secrets": ["SHOP_API_TOKEN"],
        "slots": {"order": ["11", "12", "13", "14"]},
        "goals": [goal],
        "samples": {"tell": {}, "tell_encoded": {}},
    }


@pytest.mark.skipif(available() is not None, reason="no sandbox can run here")
def test_a_servers_secret_is_used_and_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    web = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump(definition(web.server_port)))
    all_tools = AgentConfig(fewer_tools_share=0.0, heldout_share=1.0)
    sources = {"domains": (), "servers": (str(file),), "agents": all_tools}
    config = SMALL.model_copy(update=sources)
    try:
        with pytest.raises(ConfigError, match="SHOP_API_TOKEN"):
            run_pipeline(tmp_path / "d", config)
        assert not (tmp_path / "d").exists()  # before any work
        monkeypatch.setenv("SHOP_API_TOKEN", KEY)
        with caplog.at_level(logging.DEBUG):
            run_pipeline(tmp_path / "d", config)
    finally:
        web.shutdown()
    assert set(Shop.seen) == {KEY}
    calls = Dataset.open(tmp_path / "d").rows("tool_calls")
    told = [call for call in calls if "[secret SHOP_API_TOKEN]" in str(call["observation"])]
    assert told
    assert {call["executed_by"] for call in told} == {"mcp"}
    assert KEY not in caplog.text
    assert_nowhere(KEY, tmp_path)
