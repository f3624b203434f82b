"""Whole runs in small: they learn, go on to the bit after a kill, and refuse what cannot work."""

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from records.errors import ConfigError, SynthError
from records.settings import validate_as
from tests.trainer.small_run import SHAPE, config_of
from trainer.__main__ import generate, main
from trainer.data.packing import PackedBatch
from trainer.data.sources import CorpusConfig
from trainer.training.account import account_of, as_lines
from trainer.training.checkpoints import checked, checkpoints_in
from trainer.training.curves import FILE as CURVES
from trainer.training.loop import train
from trainer.training.metrics import read_metrics
from trainer.training.run_folder import held
from trainer.training.settings import DataConfig, TrainConfig
from trainer.training.step import StepFault, Stepper, StepResult

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.slow
def test_a_run_learns_and_its_model_is_read_by_transformers(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # here its curves are looked at
    done = train(config_of(data, tmp_path / "run", steps=60, preset=None))
    lines = read_metrics(done.folder)
    assert [line["step"] for line in lines] == list(range(1, 61))
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
    assert all(0.1 < line["update_rms"] < 0.22 for line in lines)  # few tokens: of low rank
    assert [p.name for p in checkpoints_in(done.folder / "checkpoints")] == [
        "step-00000055",
        "step-00000060",
    ]
    theirs: Any = AutoModelForCausalLM.from_pretrained(done.folder / "model")
    tokenizer = AutoTokenizer.from_pretrained(done.folder / "model")
    assert theirs.config.vocab_size == len(tokenizer)
    asked = "<|im_user|>user<|im_middle|>What is twice 9?<|im_end|>"
    asked += "<|im_assistant|>assistant<|im_middle|>"
    prompt = tokenizer(asked, return_tensors="pt")
    answer = theirs.generate(**prompt, max_new_tokens=60, do_sample=False)[0]
    said = tokenizer.decode(answer[prompt.input_ids.shape[1] :])
    assert said.endswith("<|im_end|>")  # where our own sampling stops, too
    assert said.count("<|im_end|>") == 1
    page = (done.folder / CURVES).read_text()
    assert page.count("<svg") >= 8
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)  # but for marks within a picture
    assert list((done.folder / "tensorboard").glob("events*"))


def curve(folder: Path) -> list[tuple[int, float, float, float]]:
    return [(m["step"], m["loss"], m["grad_norm"], m["max_logit"]) for m in read_metrics(folder)]


@pytest.mark.slow
def test_a_run_that_stops_and_goes_on_has_the_same_curve_to_the_bit(
    data: Path, tmp_path: Path
) -> None:
    for steps in (3, 7, 12):  # saved at 3, 5, 7, 10, 12
        train(config_of(data, tmp_path / "parts", steps=steps, schedule=_schedule()))
    same = train(config_of(data, tmp_path / "same", schedule=_schedule()))
    assert curve(tmp_path / "parts") == curve(same.folder)
    assert len(curve(same.folder)) == 12


def _schedule() -> dict[str, Any]:
    return {"warmup_tokens": 512, "phases": [{"tokens": 10_000, "to": 5e-3}]}


# The runs are children of one process, which has imported torch for both of them.
KILLED = """
import os, signal, sys, time, torch._dynamo, torch.utils.tensorboard

from trainer.training.loop import train
from trainer.training.metrics import read_metrics
from trainer.training.settings import TrainConfig

torch.set_num_threads(1)
config = TrainConfig.model_validate_json(open(sys.argv[1]).read())
for least in (6, 12):
    if not (child := os.fork()):
        train(config)
        os._exit(0)
    while len(read_metrics(config.folder)) < least and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_curve_and_weights(data: Path, tmp_path: Path) -> None:
    whole = train(config_of(data, tmp_path / "whole", steps=30))
    killed = config_of(data, tmp_path / "killed", steps=30)
    file = tmp_path / "config.json"
    file.write_text(killed.model_dump_json())
    subprocess.run([sys.executable, "-c", KILLED, str(file)], check=True, timeout=300)
    done = train(killed)
    assert curve(done.folder) == curve(whole.folder)
    weights = [folder / "model" / "model-00001-of-00001.safetensors" for folder in
               (done.folder, whole.folder)]  # fmt: skip
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_damaged_checkpoint_is_named_and_the_one_before_offered(
    data: Path, tmp_path: Path
) -> None:
    config = config_of(data, tmp_path / "run", steps=10)
    train(config)
    newest = checkpoints_in(config.folder / "checkpoints")[-1]
    weights = next(newest.glob("*.safetensors"))
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    longer = config.model_copy(update={"steps": 12, "extend": "hold"})
    with pytest.raises(ConfigError, match=r"step-00000010 is damaged .* from step-00000005"):
        train(longer)
    shutil.rmtree(newest)
    assert train(longer).steps == 12


def test_a_changed_position_is_damage_like_any_other(data: Path, tmp_path: Path) -> None:
    config = config_of(data, tmp_path / "run", steps=10)
    train(config)
    state = checkpoints_in(config.folder / "checkpoints")[-1] / "state.json"
    state.write_text(state.read_text().replace('"step": 10', '"step": 9'))
    with pytest.raises(ConfigError, match=r"damaged \(state.json changed since\)"):
        train(config.model_copy(update={"steps": 12}))
    state.write_text("[]")
    with pytest.raises(ConfigError, match="step-00000010 is damaged"):
        train(config.model_copy(update={"steps": 12}))


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("config.json", "{", "config.json is damaged"),
        ("config.json", "[]", "config.json is damaged"),
        ("tokens/corpus.json", "{", "tokens is damaged .*; remove it"),
        ("tokens/tokens.i32", "", "tokens is damaged .*; remove it"),
        ("tokens/learnt.u1", "1", "tokens is damaged .*; remove it"),
        ("tokens/documents.parquet", "no", "tokens is damaged .*; remove it"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(
    file: str, content: str, told: str, data: Path, tmp_path: Path
) -> None:
    config = config_of(data, tmp_path / "run", steps=2)
    train(config)
    (config.folder / file).write_text(content)
    with pytest.raises(ConfigError, match=told):
        train(config.model_copy(update={"steps": 3}))
    if file.startswith("tokens"):
        shutil.rmtree(config.folder / "tokens")
        assert train(config.model_copy(update={"steps": 3, "extend": "hold"})).steps == 3


@pytest.mark.parametrize("left", [["tokens"], ["tokens", "tokenizer"], ["tokens/tokens.i32"]])
def test_a_run_that_was_killed_before_its_first_step_begins_anew(
    left: list[str], data: Path, tmp_path: Path
) -> None:
    whole = train(config_of(data, tmp_path / "whole", steps=2))
    for name in left:
        target = tmp_path / "killed" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (whole.folder / name).is_dir() else shutil.copy
        copy(whole.folder / name, target)
    (tmp_path / "killed" / ".tmp-0-config.json").write_text("{")
    done = train(config_of(data, tmp_path / "killed", steps=2))
    assert curve(done.folder) == curve(whole.folder)


def test_two_runs_do_not_write_into_one_folder(data: Path, tmp_path: Path) -> None:
    config = config_of(data, tmp_path / "run", steps=2)
    with held(config.folder), pytest.raises(ConfigError, match="another process is training"):
        train(config)
    assert train(config).steps == 2


def test_what_a_step_costs_may_change_on_the_way(data: Path, tmp_path: Path) -> None:
    config = config_of(data, tmp_path / "run", steps=2)
    train(config)
    smaller = config.data.model_copy(update={"micro_rows": 1})
    other = {"steps": 4, "extend": "hold", "recompute": True, "data": smaller}
    cheaper = config.model_copy(update=other)
    assert train(cheaper).steps == 4


def test_checkpoints_hold_no_pickle(data: Path, tmp_path: Path) -> None:
    train(config_of(data, tmp_path / "run", steps=2))
    (path,) = checkpoints_in(tmp_path / "run" / "checkpoints")
    assert {p.suffix for p in path.iterdir()} == {".safetensors", ".json"}
    assert checked(path)["state"]["step"] == 2


def test_a_run_told_to_stop_says_where(data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    config = config_of(data, tmp_path / "run", bad_step="stop")
    plain = Stepper._fault
    monkeypatch.setattr(
        Stepper,
        "_fault",
        lambda self, loss, norm: plain(self, float("inf"), norm) if len(self.norms) == 6 else None,
    )
    with pytest.raises(SynthError, match=r"step 7, rows before .* loss inf"):
        train(config)
    assert (config.folder / CURVES).exists()
    monkeypatch.undo()
    assert train(config.model_copy(update={"bad_step": "skip"})).steps == 12  # as it advises


def test_a_loss_that_is_no_number_leaves_the_metrics_json(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stepper, "_fault", lambda *_: StepFault("no_number", "loss nan"))
    plain = Stepper.step

    def nan(self: Stepper, batch: PackedBatch) -> StepResult:
        result = plain(self, batch)
        result.loss = math.nan
        return result

    monkeypatch.setattr(Stepper, "step", nan)
    config = config_of(data, tmp_path / "run", steps=2)
    with pytest.raises(SynthError, match="2 steps in a row were skipped"):
        train(config)
    assert as_lines(account_of(config.folder))[1] == "steps: 0 taken; skipped: 2 no_number"
    text = (config.folder / "metrics.jsonl").read_text()
    assert [line["loss"] for line in map(json.loads, text.splitlines())] == [None, None]
    assert "NaN" not in text


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"preset": "huge"}, "presets: tiny"),
        ({"shape": None}, "says what model to train"),
        ({"steps": 0}, "greater than or equal to 1"),
        ({"clip": 1.0}, "Extra inputs"),
        ({"preset": "small"}, "preset = 'small' and a shape are both given"),
        ({"start_from": "model"}, "start_from brings its own shape"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    other: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=told):
        config_of(tmp_path, tmp_path / "run", **other)


def test_training_on_rows_kept_for_tests_is_refused() -> None:
    data = DataConfig(sources=(CorpusConfig(path="-", held_out=True),))
    with pytest.raises(ValueError, match="held_out rows are for scoring"):
        TrainConfig(out="run", data=data)


def test_a_shape_that_cannot_work_is_told_by_what_is_wrong_with_it(tmp_path: Path) -> None:
    values = json.loads(config_of(tmp_path, tmp_path / "run").model_dump_json())
    values["shape"]["qk_rope_head_dim"] = 7
    with pytest.raises(ConfigError, match=r"^run.toml: shape: qk_rope_head_dim must be even .* 7$"):
        validate_as(TrainConfig, values, where="run.toml")


def test_what_does_not_fit_is_refused_before_anything_is_made(data: Path, tmp_path: Path) -> None:
    big = config_of(data, tmp_path / "run", shape=None, preset="k2-mid")
    with pytest.raises(ConfigError, match=r"a step needs about \d+\.\d GiB and cpu has"):
        train(big)
    long = DataConfig(sources=(CorpusConfig(path=str(data)),), row_tokens=512, batch_rows=4)
    with pytest.raises(ConfigError, match="row_tokens = 512 is more than the model's 256"):
        train(config_of(data, tmp_path / "run").model_copy(update={"data": long}))
    assert not (tmp_path / "run").exists()


def test_a_folder_of_another_run_is_left_alone(data: Path, tmp_path: Path) -> None:
    train(config_of(data, tmp_path / "run", steps=2))
    with pytest.raises(ConfigError, match=r"other settings \(peak_lr: 0.005 there, 0.0001 here\)"):
        train(config_of(data, tmp_path / "run", steps=2, peak_lr=1e-4))
    with pytest.raises(ConfigError, match=r"shape.hidden_size: 32 there, None here"):
        train(config_of(data, tmp_path / "run", steps=2, shape=None, preset="tiny"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    with pytest.raises(ConfigError, match="other files"):
        train(config_of(data, tmp_path / "mine"))


@pytest.mark.slow
def test_fine_tuning_starts_from_an_exported_model(data: Path, tmp_path: Path) -> None:
    first = train(config_of(data, tmp_path / "first", steps=30))
    second = train(
        config_of(
            data, tmp_path / "second", steps=2, shape=None, start_from=str(first.folder / "model")
        )
    )
    assert read_metrics(second.folder)[0]["loss"] < 0.7 * read_metrics(first.folder)[0]["loss"]


@pytest.mark.slow
def test_the_command_trains_and_tells(data: Path, tmp_path: Path) -> None:
    shape = SHAPE.model_dump(exclude={"yarn"})
    lines = "\n".join(f"{k} = {json.dumps(v)}" for k, v in shape.items() if v is not None)
    (tmp_path / "run.toml").write_text(
        f'out = "{tmp_path / "run"}"\nsteps = 2\n[data]\nsystem = ""\nrow_tokens = 64\n'
        f'batch_rows = 2\nmicro_rows = 2\nsources = [{{path = "{data}"}}]\n[shape]\n{lines}\n'
    )
    command = [sys.executable, "-m", "trainer", "sft", str(tmp_path / "run.toml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    counted, _, last = ran.stdout.splitlines()
    assert counted == "rows: 59 learnt from; left out: 1 validation"
    assert "2 steps, loss" in last
    assert re.search(r"step 2  loss .* tokens/s", ran.stderr)
    model = str(tmp_path / "run")
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "add"}]')
    asked = ["--prompt", "Twice 4?", "--tools", str(tools)]
    more = ["--system", "You add.", "--max-tokens", "5"]
    said = subprocess.run(
        [*command[:3], "generate", model, *asked, *more],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(said.stdout).keys() >= {"content", "tool_calls", "finish_reason"}


def test_a_model_answers_without_tools_and_wrong_words_are_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the commands do, in this process."""
    (tmp_path / "run.toml").write_text('out = "none"\n')
    model = train(config_of(data, tmp_path / "run", steps=2)).folder
    generate(model, prompt="Twice 4?", max_tokens=5)
    assert json.loads(capsys.readouterr().out)["finish_reason"] in ("length", "stop")
    bad = tmp_path / "bad.json"
    bad.write_text('[{"called": "add"}]')
    asked = ["generate", str(model), "--prompt", "?"]
    for words, told in (
        ([*asked, "--tools", str(bad)], "it needs a name"),
        ([*asked, "--tools", str(tmp_path / "none.json")], "No such file"),
        (["sft", str(tmp_path / "run.toml"), "--set", "stepz=3"], "did you mean 'steps'"),
        ([*asked, "--temperature", "-1"], "temperature = -1"),
    ):
        monkeypatch.setattr(sys, "argv", ["trainer", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert told in said
        assert "Traceback" not in said
