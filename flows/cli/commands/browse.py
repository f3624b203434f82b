"""Command `synth browse`: datasets as pages on this machine."""

from typing import Annotated

from cyclopts import App, Parameter

from flows.cli.shared.options import Port
from flows.cli.shared.output import say


def register(app: App) -> None:
    app.command(browse)


def browse(
    *paths: Annotated[str, Parameter(name="DATASET")],
    port: Port = 8420,
    labeller: str | None = None,
) -> None:
    """Show datasets as pages on this machine, until Ctrl-C. A run may write them meanwhile.

    Runs, yields and costs; trajectories by facets or SQL; each conversation with what its calls
    changed and why it was rejected; tools, environments, rewrites; two runs or judges compared.
    Verdicts can be labelled there; the next run, or `synth label import DATASET`, takes the
    labels in. The address that is printed holds a key, and only this machine can reach it.

    Parameters
    ----------
    paths
        Folders of datasets; default $SYNTH_DATASET, else data/demo.
    port
        Where to listen on 127.0.0.1; 0 takes a free one, and addresses of rows change with it.
    labeller
        Who labels, until a form says another name; default the name of this user.
    """
    import getpass

    from flows.runtime.settings import open_dataset
    from synth.browser.serving import serve_browser

    datasets = [open_dataset(path) for path in paths or (None,)]
    serve_browser(
        datasets,
        port=port,
        labeller=labeller or getpass.getuser(),
        on_ready=lambda address: print(address, flush=True),  # noqa: T201
        say=say,
    )
