"""`synth`: the command line. Machine output on stdout, progress and errors on stderr.

Exit codes: 0 done, 1 the run failed or left items to be tried again, 2 wrong use or configuration,
3 stopped by budget. Heavy imports (Prefect, DuckDB, MCP) happen inside the commands that need them.
"""

import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version

from cyclopts import App, CycloptsError

from flows.cli.commands import browse as cli_browse
from flows.cli.commands import code as cli_code
from flows.cli.commands import data as cli_data
from flows.cli.commands import grade as cli_grade
from flows.cli.commands import imports as cli_import
from flows.cli.commands import label as cli_label
from flows.cli.commands import probe as cli_probe
from flows.cli.commands import rephrase as cli_rephrase
from flows.cli.commands import run as cli_run
from flows.cli.commands import sandbox as cli_sandbox
from flows.cli.shared.going_on import goes_on, last_lines
from flows.cli.tool_commands import domain as cli_domain
from flows.cli.tool_commands import tools as cli_tools
from records.errors import BudgetError, ConfigError, SynthError, UnavailableError

app = App(
    name="synth",
    help="Make, check, query and export training data for tool-using agents.\n\n"
    "Start with `synth demo`; `synth browse`, `synth sql`, `synth report` and `synth view` look at "
    "what it made.",
    version=lambda: version("agentic-synth"),
    suppress_keyboard_interrupt=False,  # `run` says what comes of it
)
cli_run.register(app)
cli_probe.register(app)
cli_data.register(app)
cli_import.register(app)
cli_grade.register(app)
cli_rephrase.register(app)
cli_label.register(app)
cli_browse.register(app)
cli_tools.register(app)
cli_domain.register(app)
cli_code.register(app)
cli_sandbox.register(app)


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be told to end is Ctrl-C
    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # duckdb's binding reports "leaks" when the interpreter is taken down orderly


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; a user's mistake prints no traceback."""
    try:
        code = app(arguments, exit_on_error=False, print_error=True, result_action="return_value")
    except CycloptsError:
        return 2  # already printed, with the command's usage
    except (KeyboardInterrupt, BaseExceptionGroup, SynthError) as error:
        message, code = _told(error)
        print("\n".join([f"synth: {message}", *last_lines(error, arguments)]), file=sys.stderr)  # noqa: T201
    return code if isinstance(code, int) else 0  # `sandbox run` passes on its command's


def _told(error: BaseException) -> tuple[str, int]:
    """What is said of the end, and the exit code."""
    match error:
        case KeyboardInterrupt() if not goes_on(error):
            return "stopped", 1
        case BudgetError() if not goes_on(error):
            return str(error), 3
        case UnavailableError() if not goes_on(error):
            return str(error), 1
        case KeyboardInterrupt():
            return "stopped; the same command goes on from here", 1
        case BaseExceptionGroup():
            return "\n".join(_lines_of(error)), 1
        case ConfigError():
            return str(error), 2
        case BudgetError():
            return f"{error}\nNothing is lost: raise the budget and run the same command again.", 3
        case UnavailableError():
            return f"{error}\nNothing is lost: what was not made is pending.", 1
        case _:
            return str(error), 1


def _lines_of(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [str(error), *(line for inner in error.exceptions for line in _lines_of(inner))]
    return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    main()
