"""Commands about where foreign code runs: sandbox doctor."""

from typing import Annotated

from cyclopts import App, Parameter

Json = Annotated[bool, Parameter(name="--json", negative="")]


def register(app: App) -> None:
    sandbox = App(name="sandbox", help="What runs foreign code here.")
    sandbox.command(doctor)
    app.command(sandbox)


def doctor(*, json_: Json = False) -> None:
    """Say what the sandbox of this machine can enforce and what it cannot.

    Parameters
    ----------
    json_
        Print a JSON list of objects.
    """
    from flows.cli_data import print_result
    from records.query import Result
    from sandboxes.doctor import Enforcement, enforceable

    rows = [tuple(found) for found in enforceable()]
    print_result(Result(list(Enforcement._fields), rows), json_=json_)
