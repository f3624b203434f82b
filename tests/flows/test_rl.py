"""The flow of reinforcement learning: from a model to a better one, seen by a real server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flows.rl import check_rl_reads, rl
from records.errors import ConfigError
from tests.flows.prefect_api import post
from tests.trainer.rl.small_rl import rl_config
from trainer.model.exchange import import_model
from trainer.rl.settings import RLConfig

GYM = {
    "families": {
        "reasoning": {
            "kinds": [
                {"kind": "morse_decoding", "counts": {"train": 6, "validation": 2, "heldout": 2}}
            ]
        }
    }
}


def config_of(root: Path, **other: Any) -> RLConfig:
    settings: dict[str, Any] = {"gym": GYM, "slot_tokens": None, "iterations": 2}
    return rl_config(root, **(settings | other))


@pytest.mark.slow
def test_a_run_is_seen_iteration_by_iteration_and_goes_on(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path))
    config = config_of(tmp_path)
    done = asyncio.run(rl(config))
    assert import_model(done.folder / "model").config.num_layers
    (run,) = post(prefect_url, "/flow_runs/filter", flows={"name": {"any_": ["rl"]}})
    tasks = post(prefect_url, "/task_runs/filter", flow_runs={"id": {"any_": [run["id"]]}})
    names = {task["name"] for task in tasks}
    assert names == {"measuring-the-start", "iteration-1", "iteration-2", "scoring-and-export"}
    asked = {"flow_run_id": {"any_": [run["id"]]}}
    made = post(prefect_url, "/artifacts/filter", artifacts=asked)
    found = {a["key"]: a for a in sorted(made, key=lambda a: a["created"])}
    assert found["progress"]["data"] == 100.0
    assert [row["iteration"] for row in json.loads(found["iterations"]["data"])] == [0, 1, 2]
    outcomes = json.loads(found["outcomes"]["data"])
    assert sum(row["samples"] for row in outcomes) == 2 * 4 * 4
    assert "**reasoning**, reward" in found["samples"]["data"]
    assert "![Mean reward](data:image/svg+xml;base64," in found["curves"]["data"]
    summary = found["trained-model"]["data"]
    assert summary.startswith("**2 iterations")
    assert "| reasoning | 2 |" in summary

    async def fails(folder: Path) -> None:
        raise OSError("the UI's server is down")

    monkeypatch.setattr("flows.rl.show_iterations", fails)  # what is learnt is not lost for it
    more = asyncio.run(rl(config_of(tmp_path, iterations=3)))
    assert (more.begun, more.iterations) == (2, 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"out": "elsewhere"}, r"config.out = .* not inside the data root"),
        ({"gym": {"files": ["digits.py"]}}, "are programs"),
        ({"sandboxes": {"kubernetes": {"kubeconfig": "x"}}}, "a kubeconfig can start"),
        (
            {"gym": {"families": {"instructions": {"prompts": "/etc/passwd"}}}},
            r"prompts = '/etc/passwd' is not inside the data root",
        ),
        (
            {"gym": {"families": {"open": {"files": [{"path": "/etc/passwd"}]}}}},
            r"open.files.path = '/etc/passwd' is not inside the data root",
        ),
        (
            {"gym": {"families": {"grounding": {"files": [{"path": "/etc/passwd"}]}}}},
            r"grounding = '/etc/passwd' is not inside the data root",
        ),
        (
            {"gym": {"families": {"safety": {"seeds": "/etc/passwd"}}}},
            r"seeds = '/etc/passwd' is not inside the data root",
        ),
        (
            {"gym": GYM | {"roles": {"judge": {"base_url": "http://x/v1", "api_key_env": "HOME"}}}},
            "'HOME' is not among the keys",
        ),
    ],
)
def test_a_run_from_the_ui_stays_inside_the_data_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], words: str
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    config = config_of(tmp_path / "root")
    if "out" in settings:
        settings = {"out": str(tmp_path / "elsewhere")}
    if "files" in settings.get("gym", {}):
        settings = {"gym": {"files": [str(tmp_path / "root/digits.py")]}}
    wanted = RLConfig.model_validate(config.model_dump(mode="json") | settings)
    with pytest.raises(ConfigError, match=words):
        check_rl_reads(wanted)


def test_a_run_from_the_ui_reads_no_file_of_an_endpoint(tmp_path: Path) -> None:
    secret = tmp_path / "secret.toml"
    secret.write_text('token = "hidden"')
    given = {"gym": GYM | {"roles": {"judge": {"endpoint": str(secret)}}}}
    with pytest.raises(ConfigError, match="is no ready endpoint") as refused:
        rl.validate_parameters({"config": config_of(tmp_path).model_dump(mode="json") | given})
    assert "hidden" not in str(refused.value)
