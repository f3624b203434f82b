"""Commands that run: demo, run, resume, serve, offline-llm."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App

from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import DatasetOption, Flag, Json, Port, Set, at_least
from flows.cli.shared.output import say
from records.errors import ConfigError, FruitlessError

if TYPE_CHECKING:
    from synth.pipeline.config import RunConfig

OUTCOMES = "select variant, drop_reason, count(*) from trajectories group by all order by all"
"""What a reader of a new dataset asks first."""


def register(app: App) -> None:
    for command in (demo, run, resume, serve):
        app.command(command)
    app.command(offline_llm, name="offline-llm")


def demo(
    *,
    dataset: DatasetOption = None,
    endpoint: str | None = None,
    model: str | None = None,
    key_env: str | None = None,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
) -> None:
    """Run the whole pipeline on twelve domains, without a key or an outside server, or on your own
    endpoint.

    Imports tools from real MCP servers and built-in domains, writes agents and proved tasks, rolls
    them out, checks and judges the trajectories, then queries the dataset and writes its report.
    On an endpoint it makes as many tasks as the budget is likely to pay for, takes the time it
    takes, and leaves out the rewriting of texts (`synth rephrase`).

    Parameters
    ----------
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo, and with an endpoint
        data/demo-MODEL. Running again resumes.
    endpoint
        URL of a server that speaks OpenAI's protocol, the name of a file in `configs/endpoints/`,
        the path of such a file, or `env`: what OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL
        say. Its model then plays every role.
    model
        Name of the model, as the endpoint knows it.
    key_env
        Name of the environment variable that holds the endpoint's key.
    set_
        A setting to change, such as `--set concurrency=4`; may be given several times.
    """
    from flows.cli.shared.demo import run_demo
    from flows.cli.shared.hosted_demo import hosted_demo
    from flows.runtime.settings import dataset_path
    from records.settings import with_overrides
    from synth.pipeline.config_files import validate

    if endpoint is None:
        if model is not None or key_env is not None:
            raise ConfigError("--model and --key-env are about an endpoint: give --endpoint, too")
        config = validate(with_overrides(money.settings(), set_), where="demo")
        run_demo(config, dataset_path(dataset))
        return
    hosted = hosted_demo(endpoint, model, key_env, money, set_)
    run_demo(hosted.config, Path(dataset) if dataset else hosted.dataset, hosted=hosted)


def run(
    config: Path,
    *,
    dataset: DatasetOption = None,
    dry_run: Flag = False,
    estimate: Flag = False,
    pilot: Annotated[int, at_least(2)] = 60,
    json_: Json = False,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
) -> None:
    """Run the pipeline that a config file describes. Running it again resumes.

    Parameters
    ----------
    config
        TOML file; `configs/` has commented examples.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    dry_run
        Check everything with a handful of items and the offline model, in a folder of its own
        beside the dataset, and spend nothing. Prints each hosted role's first request as it would
        be sent.
    estimate
        Make only a pilot, some of the run's own tasks up to their verdicts, and print what the
        whole run will cost. The run itself goes on from there and pays for none of it again, but
        for the tasks of an agent that turns out to repeat one outside the pilot.
    pilot
        Tasks of the pilot that `--estimate` makes.
    json_
        Print the estimate as JSON.
    set_
        A setting to change, such as `--set budget.usd=5`; may be given several times.
    """
    from flows.runtime.settings import dataset_path
    from synth.pipeline.config_files import load_config

    loaded = load_config(config, set_, options=money.settings())
    path = dataset_path(dataset)
    command = f"synth run {config}"
    if estimate:
        from flows.cli.shared.estimating import print_estimate

        if dry_run:
            raise ConfigError("--dry-run spends nothing and --estimate does: give one of them")
        command = f"{command} --estimate"
        print_estimate(loaded, path, pilot=pilot, command=command, json_=json_)
    elif dry_run:
        from flows.cli.shared.requests import tell_requests
        from synth.llm.first_requests import first_requests

        # in this process alone, where the requests are seen
        small = loaded.in_small().model_copy(update={"workers": 1})
        beside = path.with_name(f"{path.name}-dry-run")
        with first_requests() as plain:
            _execute("dry_run", small, beside, command=f"{command} --dry-run")
        tell_requests(loaded, plain, beside)
    else:
        _execute("pipeline", loaded, path, command=command)


def resume(
    run_id: str,
    *,
    dataset: DatasetOption = None,
    retry_failed: Flag = False,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
) -> None:
    """Go on with a run of a dataset, with the configuration that the dataset holds.

    Parameters
    ----------
    run_id
        As `synth sql "select distinct run_id from runs"` prints it.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    retry_failed
        Make failed items again; their new rows supersede the old.
    set_
        A setting to change that is no part of the run's identity: budget, concurrency, prices.
    """
    from flows.cli.commands.rephrase import run_rephrase
    from flows.runtime.settings import open_dataset
    from synth.pipeline.config import RunConfig
    from synth.pipeline.config_files import recorded_config

    store = open_dataset(dataset)
    config = recorded_config(store, run_id, set_, options=money.settings())
    if config.run_id != run_id:
        why = (
            f"--set {' '.join(set_)} changes what rows say; set budgets, prices, concurrency or "
            "counts only"
            if set_
            else "this version of the program has settings that it was made without; `synth run` "
            "with the same config makes a new run, which keeps the rows that are the same"
        )
        raise ConfigError(f"{run_id} would become another run, {config.run_id}: {why}")
    command = f"synth resume {run_id}"
    if isinstance(config, RunConfig):
        _execute("pipeline", config, store.root, command=command, retry_failed=retry_failed)
    else:
        run_rephrase(config, store.root, command=command, retry_failed=retry_failed)


def serve(*, port: Port | None = None) -> None:
    """Start the Prefect server with its UI and serve the flows as deployments, until Ctrl-C.

    Parameters
    ----------
    port
        Port of the UI on 127.0.0.1; default 4200 where it is free.
    """
    from flows.runtime.server import check_given_server, prefect_server
    from flows.runtime.settings import prefect_home

    check_given_server()
    with prefect_server(prefect_home(), say=say, port=port) as url:
        from flows.serve import serve_deployments

        say(f"the UI is at {url.removesuffix('/api')} (Ctrl-C stops it)")
        serve_deployments(say)


def offline_llm(
    *,
    port: Port = 8399,
    latency_ms: int = 0,
    log: Path | None = None,
    set_: Set = [],  # noqa: B006
) -> None:
    """Serve the offline model over HTTP, for other programs that speak the OpenAI protocol.

    It plays by rules, so it is for trying things out and for tests, never a measure of quality.

    Parameters
    ----------
    port
        Port on 127.0.0.1.
    latency_ms
        Wait this long before each answer.
    log
        File to which a line of JSON is added for each chat request and each answer.
    set_
        A setting of the provider, such as `--set misbehave.rate_limit=0.1`; several times.
    """
    from offline_llm.app import create_app
    from offline_llm.server.serving import serve as serve_app
    from offline_llm.settings.settings import OfflineSettings
    from records.settings import validate_as, with_overrides

    values = with_overrides({"latency_s": latency_ms / 1000}, set_)
    settings = validate_as(OfflineSettings, values, where="offline-llm")
    say(f"the offline model listens on http://127.0.0.1:{port}/v1 (Ctrl-C stops it)")
    serve_app(create_app(settings), "127.0.0.1", port, log=log)


def _execute(
    flow: str, config: "RunConfig", path: Path, *, command: str, retry_failed: bool = False
) -> None:
    from flows.cli.shared.entry import run_flow
    from records.store.dataset import Dataset
    from synth.judging.stages import warning_about
    from synth.pipeline.fruit import complaints, warnings

    seconds = run_flow(flow, config, path, command=command, retry_failed=retry_failed)
    store = Dataset.open(path)
    if warning := warning_about(store, config):
        say(warning)
    if flow != "dry_run":
        for warning in warnings(store, config):
            say(warning)
    say(f"done in {seconds:.0f} s; dataset {path}, report {path / 'report.html'}")
    say(f'look at it: synth sql "{OUTCOMES}" --dataset {path}')
    if flow != "dry_run" and (found := complaints(store, config)):
        raise FruitlessError("; ".join(found))
