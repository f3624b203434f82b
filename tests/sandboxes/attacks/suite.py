"""All attempts, in the order of the table."""

from tests.sandboxes.attacks.agent import channel, left_behind, reaching, steering
from tests.sandboxes.attacks.attempt import Attempt
from tests.sandboxes.attacks.graded import forgings, graders
from tests.sandboxes.attacks.kernel import accounting, exhaustion, privilege, quotas, rights
from tests.sandboxes.attacks.outside import (
    files,
    folders,
    neighbours,
    network,
    processes,
    secrets_of_host,
    sockets,
    told,
    way_out,
)

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
