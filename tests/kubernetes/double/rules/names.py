"""Names, labels and annotations: what their texts may be."""

import re
import secrets
from typing import Any

from tests.kubernetes.double.errors import ApiObject, FieldError, bad_value, required
from tests.kubernetes.double.kinds import Kind
from tests.kubernetes.double.selectors import KEY, VALUE

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL = re.compile(_LABEL)
SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
MOST_ANNOTATIONS_BYTES = 256 * 1024

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
SERVICE_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names: no vowels, so that no words come of it."""


def generated(prefix: str) -> str:
    """A name for `generateName`: the prefix, cut to 58 letters, and five more."""
    return prefix[:58] + "".join(secrets.choice(_SUFFIX) for _ in range(5))


def label_errors(value: Any, field: str, *, most: int = 63) -> list[FieldError]:
    if not isinstance(value, str) or not value:
        return [required(field)]
    if len(value) > most:
        return [bad_value(field, value, f"must be no more than {most} characters")]
    return [] if LABEL.fullmatch(value) else [bad_value(field, value, LABEL_TEXT)]


def subdomain_errors(value: Any, field: str) -> list[FieldError]:
    if not isinstance(value, str) or not value:
        return [required(field)]
    if len(value) > 253:
        return [bad_value(field, value, "must be no more than 253 characters")]
    return [] if SUBDOMAIN.fullmatch(value) else [bad_value(field, value, SUBDOMAIN_TEXT)]


def name_errors(kind: Kind, name: Any) -> list[FieldError]:
    """What is wrong with an object's own name; roles may have any that is a path's part."""
    field = "metadata.name"
    if not name:
        return [required(field, "name or generateName is required")]
    if kind.group == "rbac.authorization.k8s.io":
        wrong = name in (".", "..") or "/" in name or "%" in name
        return [bad_value(field, name, "may not be '.', '..' or hold '/' or '%'")] if wrong else []
    if kind.plural == "services":
        good = len(name) <= 63 and SERVICE.fullmatch(name)
        return [] if good else [bad_value(field, name, SERVICE_TEXT)]
    if kind.plural == "namespaces":
        return label_errors(name, field)
    return subdomain_errors(name, field)


def metadata_errors(kind: Kind, item: ApiObject) -> list[FieldError]:
    metadata = item["metadata"]
    found = name_errors(kind, metadata.get("name"))
    found += qualified_errors(metadata.get("labels"), "metadata.labels", values=True)
    annotations = metadata.get("annotations") or {}
    found += qualified_errors(annotations, "metadata.annotations", values=False)
    size = sum(len(str(k)) + len(str(v)) for k, v in annotations.items())
    if size > MOST_ANNOTATIONS_BYTES:
        why = f"must have at most {MOST_ANNOTATIONS_BYTES} bytes"
        found.append(FieldError("FieldValueTooLong", "metadata.annotations", f"Too long: {why}"))
    for at, owner in enumerate(metadata.get("ownerReferences") or []):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                found.append(
                    bad_value(f"metadata.ownerReferences[{at}].{key}", "", "must not be empty")
                )
    controllers = [o for o in metadata.get("ownerReferences") or [] if o.get("controller")]
    if len(controllers) > 1:
        why = "Only one reference can have Controller set to true"
        found.append(bad_value("metadata.ownerReferences", "", why))
    for at, name in enumerate(metadata.get("finalizers") or []):
        if not isinstance(name, str) or not KEY.fullmatch(name):
            found.append(bad_value(f"metadata.finalizers[{at}]", name, "name part must be a name"))
    return found


def qualified_errors(pairs: Any, field: str, *, values: bool) -> list[FieldError]:
    """Keys of labels or annotations, and the values of labels."""
    found = []
    for key, value in (pairs or {}).items():
        prefix, _, name = key.lower().rpartition("/") if not values else key.rpartition("/")
        if not KEY.fullmatch(f"{prefix}/{name}" if prefix else name) or len(name) > 63:
            why = (
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
                "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                "'123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            )
            found.append(bad_value(field, key, why))
        elif values and isinstance(value, str):
            if len(value) > 63:
                found.append(bad_value(field, value, "must be no more than 63 characters"))
            elif not VALUE.fullmatch(value):
                why = (
                    "a valid label must be an empty string or consist of alphanumeric characters, "
                    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
                found.append(bad_value(field, value, why))
    return found
