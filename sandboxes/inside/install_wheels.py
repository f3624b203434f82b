"""Runs pip so that it builds nothing: what is no wheel is refused, wherever it comes from.

Arguments: the folder that pip is in, then pip's own. Its option `--only-binary` alone does not
reach what a package depends on by an address, which pip would build, and so run.
"""

# This program runs alone in a bare interpreter.
import sys
from typing import Any

sys.path.insert(0, sys.argv.pop(1))

from pip._internal.cli.main import main
from pip._internal.distributions.sdist import SourceDistribution
from pip._internal.exceptions import InstallationError
from pip._internal.operations import prepare

fetch = prepare.unpack_url


def fetch_wheel(link: Any, *args: Any, **options: Any) -> Any:
    if not link.is_wheel:
        raise InstallationError(f"{link.filename} is no wheel, and nothing is built here")
    return fetch(link, *args, **options)


def refuse(package: Any, *_: Any) -> None:
    raise InstallationError(f"{package.req} has no wheel, and nothing is built here")


prepare.unpack_url = fetch_wheel
building: Any = SourceDistribution
building.prepare_distribution_metadata = refuse
sys.exit(main())
