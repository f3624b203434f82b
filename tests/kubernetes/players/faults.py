"""What is to go wrong, as tests have asked for it; `control` takes the requests."""

from collections import Counter
from dataclasses import dataclass, field

from tests.kubernetes.players.objects import Obj, all_containers, labels_of

MISSING = "missing/"
"""Images whose name begins so are never there."""


@dataclass
class Faults:
    missing_images: set[str] = field(default_factory=set)
    """Parts of names of images that cannot be pulled for now."""
    slow: list[tuple[dict[str, str], float]] = field(default_factory=list)
    """Labels -> seconds that a Pod with them waits for its start."""
    start_s: float = 0.0
    """Seconds that every Pod waits for its start."""
    counts: Counter[str] = field(default_factory=Counter)
    """Of what was done, by name."""

    def start_delay(self, pod: Obj) -> float:
        labels = labels_of(pod)
        found = [seconds for wanted, seconds in self.slow if wanted.items() <= labels.items()]
        return max(found, default=self.start_s)

    def image_problem(self, pod: Obj) -> str | None:
        """The first image of the Pod that cannot be pulled."""
        for container in all_containers(pod):
            image = container.get("image", "")
            if image.startswith(MISSING) or any(part in image for part in self.missing_images):
                return image
        return None
