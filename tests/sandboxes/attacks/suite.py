"""All attempts, in the order of the table."""

from tests.sandboxes.attacks import (
    channel,
    exhaustion,
    files,
    forgings,
    graders,
    neighbours,
    network,
    privilege,
    secrets_of_host,
    way_out,
)
from tests.sandboxes.attacks.attempt import Attempt

ATTEMPTS: list[Attempt] = [
    attempt
    for module in (
        network,
        way_out,
        files,
        privilege,
        exhaustion,
        secrets_of_host,
        channel,
        neighbours,
        graders,
        forgings,
    )
    for attempt in module.ATTEMPTS
]
