"""All attempts, in the order of the table."""

from tests.sandboxes.attacks import (
    channel,
    exhaustion,
    files,
    neighbours,
    network,
    privilege,
    secrets_of_host,
)
from tests.sandboxes.attacks.attempt import Attempt

ATTEMPTS: list[Attempt] = [
    attempt
    for module in (network, files, privilege, exhaustion, secrets_of_host, channel, neighbours)
    for attempt in module.ATTEMPTS
]
