"""Resource quotas: what an object counts, what a namespace has used, what is refused.

Usage follows the store's events, so it needs no pass over a namespace. Pods that have ended count
nothing but as objects. Scopes of quotas are not looked at.
"""

from collections import Counter
from decimal import Decimal
from typing import Any

from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import Address
from tests.kubernetes.double.rules.quantities import parse_quantity, written
from tests.kubernetes.double.store import Entry, Event

COMPUTE = ("cpu", "memory", "ephemeral-storage")
_PLAIN = {
    *("pods", "services", "secrets", "configmaps", "resourcequotas", "persistentvolumeclaims"),
}
"""Resources that a quota may count by their bare name; all others as `count/NAME.GROUP`."""

Charge = dict[str, Decimal]


def charge(address: Address, item: ApiObject) -> Charge | None:
    """What one object counts, by the names that quotas use; None where only its number counts."""
    if address != ("", "pods"):
        return None
    spec = item["spec"]
    found: Charge = {}
    for side in ("requests", "limits"):
        for name in COMPUTE:
            amount = _of_pod(spec, side, name)
            if amount is not None:
                found[f"{side}.{name}"] = amount
                if side == "requests":
                    found[name] = amount
    return found


def _of_pod(spec: ApiObject, side: str, name: str) -> Decimal | None:
    """The sum of the containers, or the largest init container if that is more; overhead too."""

    def of(container: ApiObject) -> Decimal | None:
        value = ((container.get("resources") or {}).get(side) or {}).get(name)
        return None if value is None else parse_quantity(value)

    running = [of(container) for container in spec.get("containers") or []]
    if any(amount is None for amount in running):
        return None
    first = [of(container) or Decimal(0) for container in spec.get("initContainers") or []]
    total = max([sum((a for a in running if a is not None), Decimal(0)), *first])
    return total + parse_quantity((spec.get("overhead") or {}).get(name, 0))


class Usage:
    """What each namespace has used, kept up with every write."""

    def __init__(self) -> None:
        self._used: dict[str, Counter[str]] = {}

    def of(self, namespace: str) -> "Counter[str]":
        return self._used.setdefault(namespace, Counter())

    def follow(self, address: Address, event: Event) -> None:
        if event.old is not None:
            self._count(address, event.old, -1)
        if not event.removed:
            self._count(address, event.new, 1)

    def add(self, address: Address, entry: Entry) -> None:
        self._count(address, entry, 1)

    def _count(self, address: Address, entry: Entry, sign: int) -> None:
        used = self.of(entry.key[0])
        group, plural = address
        used[f"count/{plural}.{group}" if group else f"count/{plural}"] += sign
        if not group and plural in _PLAIN:
            if plural == "pods" and entry.fields["status.phase"] in ("Succeeded", "Failed"):
                return
            used[plural] += sign
        for name, amount in (entry.charge or {}).items():
            used[name] += sign * amount  # type: ignore[assignment]  # exact numbers, not only whole


def judge(
    quota: ApiObject,
    used: "Counter[str]",
    address: Address,
    item: ApiObject,
    asked: Any,
) -> tuple[str, ApiObject | None]:
    """Why a quota refuses a new object, else what it has used with it (None if not concerned)."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    group, plural = address
    counted = {f"count/{plural}.{group}" if group else f"count/{plural}"}
    if not group and plural in _PLAIN:
        counted.add(plural)
    delta: dict[str, Decimal] = {name: Decimal(1) for name in hard if name in counted}
    quota_name = quota["metadata"]["name"]
    if address == ("", "pods"):
        missing = []
        for name in hard:
            side, _, resource = name.rpartition(".")
            if (resource if side else name) in COMPUTE:
                if name in asked:
                    delta[name] = asked[name]
                else:
                    missing.append(name)
        if missing:
            names = ", ".join(c["name"] for c in item["spec"]["containers"])
            text = "; ".join(f"must specify {name} for: {names}" for name in sorted(missing))
            return f"failed quota: {quota_name}: {text}", None
    over = [n for n in sorted(delta) if Decimal(used[n]) + delta[n] > parse_quantity(hard[n])]
    if over:
        shown = [
            ",".join(f"{n}={written(amount(n), str(hard[n]))}" for n in over)
            for amount in (
                lambda n: delta[n],
                lambda n: Decimal(used[n]),
                lambda n: parse_quantity(hard[n]),
            )
        ]
        text = f"requested: {shown[0]}, used: {shown[1]}, limited: {shown[2]}"
        return f"exceeded quota: {quota_name}, {text}", None
    if not delta:
        return "", None
    with_it = {n: written(Decimal(used[n]) + delta.get(n, Decimal(0)), str(hard[n])) for n in hard}
    return "", with_it
