"""Types and fields of built-in kinds, from the schemas that kubernetes-validate carries.

They are those of Kubernetes' own OpenAPI document. A value of a wrong type is refused as the API
server refuses what it cannot decode, an unknown field is dropped or refused, a missing one is a
cause of a 422. Of a status nothing is required: Go writes empty values there.
"""

import logging
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from tests.kubernetes.double import errors
from tests.kubernetes.double.errors import ApiObject, FieldError
from tests.kubernetes.double.kinds import DEFINITIONS, Kind
from tests.kubernetes.double.rules.structural import path_text, type_of

log = logging.getLogger(__name__)

VERSION = "v1.37.0"


class Read(NamedTuple):
    """What decoding found: fields that are unknown (and dropped), and fields that are missing."""

    unknown: list[str]
    missing: list[FieldError]


@cache
def _definitions() -> ApiObject | None:
    spec = find_spec("kubernetes_validate")  # only its files are wanted, and no import
    if spec is None or spec.submodule_search_locations is None:
        log.warning(
            "kubernetes-validate is not installed: built-in kinds are not checked by schema"
        )
        return None
    folder = Path(spec.submodule_search_locations[0], "kubernetes-json-schema")
    text = (folder / f"{VERSION}-local-strict" / "_definitions.json").read_text()
    text = text.replace("/api/_definitions.json#", "#")
    return orjson.loads(text)["$defs"]


@cache
def _validator(kind: Kind) -> Any:
    definitions = _definitions()
    group = kind.group.split(".")[0] or "core"
    name = f"io.k8s.api.{group}.{kind.version}.{kind.kind}"
    if definitions is None or name not in definitions:
        return None
    return jsonschema_rs.validator_for(
        {"$ref": f"#/$defs/{name}", "$defs": definitions}, validate_formats=False
    )


def read(kind: Kind, item: ApiObject) -> Read:
    """Decode `item`, in place: 400 for a value that the kind's types cannot hold."""
    if kind.custom is not None or kind.address == DEFINITIONS:
        return Read([], [])
    if (validator := _validator(kind)) is None:
        return Read([], [])
    unknown: list[str] = []
    missing: list[FieldError] = []
    for error in validator.iter_errors(item):
        parts, found = list(error.instance_path), error.kind.name
        if found == "additionalProperties":
            holder = _at(item, parts)
            for name in error.kind.unexpected:
                unknown.append(path_text([*parts, name]))
                holder.pop(name, None)
        elif found == "required":
            if parts[:1] != ["status"]:
                missing.append(errors.required(path_text([*parts, error.kind.property])))
        elif found in ("type", "oneOf", "anyOf"):
            path = path_text(parts)
            raise errors.bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"json: cannot unmarshal {type_of(error.instance)} into Go struct field "
                f"{kind.kind}.{path}"
            )
    return Read(unknown, missing)


def _at(item: Any, parts: list[str | int]) -> Any:
    for part in parts:
        item = item[part]
    return item
