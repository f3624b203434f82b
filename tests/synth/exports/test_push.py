"""`synth export --push`: the hub's own client, against a stand-in of its API over real HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.cli.main import run
from records.errors import ConfigError
from synth.exports.push import HubRepository
from tests.synth.exports.hub import TOKEN, Hub, serving
from tests.synth.small_dataset import trajectory, write_dataset

COMMIT = "/datasets/somebody/boats/commit/" + "a" * 40


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """The client's settings are read when it is imported; here they are set after that."""
    from huggingface_hub import constants

    with serving(Hub()) as one:
        monkeypatch.setattr(constants, "ENDPOINT", one.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        # the store behind the hub's own protocol for large files is not played: those go by LFS
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield one


def push(folder: Path, *more: str) -> int:
    if not (folder / "data").exists():
        write_dataset(folder / "data", [(trajectory("a"), None)])
    paths = [str(folder / "data"), "--out", str(folder / "out")]
    return run(["export", *paths, "--push", "somebody/boats", *more])


def files_in(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_every_file_arrives_as_it_was_written(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(tmp_path, "--private") == 0
    assert json.loads(capsys.readouterr().out)["pushed"] == hub.url + COMMIT
    assert hub.repositories == {"somebody/boats": files_in(tmp_path / "out")}
    assert hub.private == {"somebody/boats"}
    assert hub.objects, "the Parquet file goes by LFS"


def test_what_the_hub_refuses_is_told_and_the_export_is_kept(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.repositories["somebody/boats"] = {}
    hub.refuses = 403
    assert push(tmp_path, "--format", "openai") == 1
    told = capsys.readouterr().err
    assert "the hub answers 403: You need to accept the terms first" in told
    assert f"hf upload somebody/boats {tmp_path / 'out'} --repo-type dataset" in told
    assert (tmp_path / "out/train.jsonl").exists()
    assert hub.repositories == {"somebody/boats": {}}


@pytest.mark.parametrize(
    ("token", "setting", "code", "words"),
    [
        ("hf_other", {}, 2, "the hub does not know the token"),
        ("", {}, 2, "there is no token; set HF_TOKEN"),
        (TOKEN, {"HF_HUB_OFFLINE": True}, 2, "HF_HUB_OFFLINE is set"),
        (TOKEN, {"ENDPOINT": "http://127.0.0.1:9"}, 1, "somebody/boats: ConnectError"),
    ],
)
def test_who_may_not_upload_is_told_before_anything_is_written(
    token: str,
    setting: dict[str, object],
    code: int,
    words: str,
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from huggingface_hub import constants

    monkeypatch.setenv("HF_TOKEN", token)
    for name, value in setting.items():
        monkeypatch.setattr(constants, name, value)
    assert push(tmp_path) == code
    told = capsys.readouterr().err
    assert words in told
    assert TOKEN not in told
    assert not (tmp_path / "out").exists()
    assert hub.repositories == {}


@pytest.mark.parametrize("name", ["boats", "a/b/c", "some body/boats", "-/-"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="--push"):
        HubRepository(name)
