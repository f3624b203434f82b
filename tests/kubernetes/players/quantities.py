"""Quantities of resources, and what a Pod asks for of them."""

from collections.abc import Iterable
from decimal import Decimal

from tests.kubernetes.players.objects import Obj

FACTORS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20),
    "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip

Amounts = dict[str, Decimal]

NOTHING = Decimal(0)

_parsed: dict[str, Decimal] = {}


def amount(quantity: str | float) -> Decimal:
    """In the resource's unit: cores, bytes, pieces."""
    text = str(quantity)
    found = _parsed.get(text)
    if found is None:
        number = text.rstrip("numkMGTPEi") if text[-1:].isalpha() else text
        found = _parsed[text] = Decimal(number) * FACTORS[text[len(number) :]]
    return found


def amounts(quantities: dict[str, str] | None) -> Amounts:
    return {name: amount(quantity) for name, quantity in (quantities or {}).items()}


def asked(container: Obj) -> Amounts:
    """A limit without a request is the request, as the API server's defaults have it."""
    resources = container.get("resources") or {}
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def total(parts: Iterable[Amounts]) -> Amounts:
    found: Amounts = {}
    for part in parts:
        for name, value in part.items():
            found[name] = found.get(name, NOTHING) + value
    return found


def requests_of(pod: Obj) -> Amounts:
    """What the scheduler reserves: the containers together or the largest init container, and the
    overhead of the runtime class; a place among the node's Pods."""
    spec = pod["spec"]
    found = total(asked(container) for container in spec["containers"])
    for container in spec.get("initContainers") or []:
        for name, value in asked(container).items():
            found[name] = max(found.get(name, NOTHING), value)
    return total([found, amounts(spec.get("overhead")), {"pods": Decimal(1)}])
