"""All attempts, in the order of the table."""

from tests.sandboxes.attacks import (
    accounting,
    channel,
    exhaustion,
    files,
    folders,
    forgings,
    graders,
    left_behind,
    neighbours,
    network,
    privilege,
    processes,
    quotas,
    reaching,
    rights,
    secrets_of_host,
    sockets,
    steering,
    told,
    way_out,
)
from tests.sandboxes.attacks.attempt import Attempt

ATTEMPTS: list[Attempt] = [
    attempt
    for module in (
        network,
        sockets,
        way_out,
        files,
        folders,
        privilege,
        rights,
        processes,
        exhaustion,
        secrets_of_host,
        told,
        reaching,
        steering,
        channel,
        left_behind,
        neighbours,
        quotas,
        accounting,
        graders,
        forgings,
    )
    for attempt in module.ATTEMPTS
]
