"""All attempts, and what is checked of them."""

from tests.sandboxes.attacks import files, network
from tests.sandboxes.attacks.attempt import Attempt

GROUPS = {
    "network": network.ATTEMPTS,
    "files outside": files.ATTEMPTS,
}
ATTEMPTS: list[Attempt] = [attempt for group in GROUPS.values() for attempt in group]
