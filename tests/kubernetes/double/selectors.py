"""Label and field selectors, parsed as the API server parses them.

A label selector is requirements joined by commas: `a=b`, `a==b`, `a!=b`, `a in (x,y)`,
`a notin (x)`, `a`, `!a`, `a>1`, `a<1`. An object without the label fulfils `!=` and `notin`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.kubernetes.double.errors import bad_request

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY = re.compile(
    rf"(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?{_NAME}"
)
VALUE = re.compile(rf"(?:{_NAME})?")
_SETS = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_PAIR = re.compile(r"(?P<key>[^\s!=<>]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s!=<>]*)")
_THERE = re.compile(r"(?P<not>!?)\s*(?P<key>[^\s!=<>(),]+)")

Labels = Mapping[str, str]


class Requirement(NamedTuple):
    key: str
    operator: str
    """One of in, notin, exists, absent, gt, lt."""
    values: frozenset[str] = frozenset()

    def holds(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
        try:
            number, bound = int(value or ""), int(next(iter(self.values)))
        except ValueError:
            return False
        return number > bound if self.operator == "gt" else number < bound


def _parts(text: str) -> list[str]:
    """The requirements between the commas that stand outside parentheses."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def parse_labels(text: str) -> list[Requirement]:
    """The requirements of a label selector; 400 where it cannot be read."""
    if not text.strip():
        return []
    return [_requirement(part.strip(), text) for part in _parts(text)]


def _requirement(part: str, whole: str) -> Requirement:
    if match := _SETS.fullmatch(part):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return _checked(Requirement(match["key"], match["operator"], values), whole)
    if match := _PAIR.fullmatch(part):
        operator = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}[match["operator"]]
        return _checked(Requirement(match["key"], operator, frozenset({match["value"]})), whole)
    if match := _THERE.fullmatch(part):
        return _checked(Requirement(match["key"], "absent" if match["not"] else "exists"), whole)
    raise bad_request(f"unable to parse requirement: found '{part}' in label selector '{whole}'")


def _checked(requirement: Requirement, whole: str) -> Requirement:
    key, operator, values = requirement
    prefix, _, name = key.rpartition("/")
    if not KEY.fullmatch(key) or len(name) > 63 or len(prefix) > 253:
        raise bad_request(
            f'unable to parse requirement: <nil>: Invalid value: "{key}": name part must consist '
            f"of alphanumeric characters, '-', '_' or '.' (label selector '{whole}')"
        )
    if operator in ("gt", "lt"):
        if not re.fullmatch(r"-?\d+", next(iter(values))):
            raise bad_request(f"for 'Gt', 'Lt' operators, the value must be an integer: {whole}")
    elif wrong := [v for v in values if not VALUE.fullmatch(v) or len(v) > 63]:
        raise bad_request(
            f'unable to parse requirement: values[0]: Invalid value: "{wrong[0]}": a valid label '
            f"must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
        )
    return requirement


class FieldRequirement(NamedTuple):
    field: str
    equal: bool
    value: str

    def holds(self, fields: Labels) -> bool:
        return (fields.get(self.field, "") == self.value) is self.equal


def parse_fields(text: str, known: frozenset[str], kind: str) -> list[FieldRequirement]:
    """The requirements of a field selector; 400 for a field that `kind` is not selected by."""
    found = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        match = re.fullmatch(r"([^=!\s]+)\s*(==|=|!=)\s*(.*)", part)
        if not match:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        if match[1] not in known:
            raise bad_request(
                f'Unable to find "{kind}" that match field selector "{text}": '
                f"field label not supported: {match[1]}"
            )
        found.append(FieldRequirement(match[1], match[2] != "!=", match[3]))
    return found


class Selector(NamedTuple):
    """What a list, watch or deletecollection asks for."""

    labels: Sequence[Requirement] = ()
    fields: Sequence[FieldRequirement] = ()

    def takes(self, labels: Labels, fields: Labels) -> bool:
        return all(r.holds(labels) for r in self.labels) and all(
            r.holds(fields) for r in self.fields
        )

    @property
    def name(self) -> str | None:
        """The one name that is asked for, where only one is."""
        for field, equal, value in self.fields:
            if field == "metadata.name" and equal:
                return value
        return None

    @property
    def empty(self) -> bool:
        return not self.labels and not self.fields
