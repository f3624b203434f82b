"""One request as the API server sees it: verb, resource, namespace, name, subresource."""

from dataclasses import dataclass, field
from typing import Any

import orjson
import yaml
from aiohttp import web

from tests.kubernetes.double import errors
from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import Kind, Kinds
from tests.kubernetes.double.selectors import Selector, parse_fields, parse_labels

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    APPLY,
)


@dataclass
class Asked:
    """What a path and a method ask for; `kind` is None where no resource is named."""

    verb: str
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    resource_request: bool = False
    kind: Kind | None = field(default=None, repr=False)


def parse_path(method: str, path: str, query: Any) -> Asked:
    """A path of the API taken apart; the verb of what has no name depends on the query."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        asked, rest = Asked("", "", parts[1]), parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        asked, rest = Asked("", parts[1], parts[2]), parts[3:]
    else:
        return Asked(method.lower())
    asked.resource_request = True
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        asked.namespace, rest = rest[1], rest[2:]
    asked.plural = rest[0]
    asked.name = rest[1] if len(rest) > 1 else ""
    asked.subresource = "/".join(rest[2:])
    watch = query.get("watch") in ("1", "true")
    match method:
        case "GET" | "HEAD":
            asked.verb = "get" if asked.name else "watch" if watch else "list"
        case "POST":
            asked.verb = "create"
        case "PUT":
            asked.verb = "update"
        case "PATCH":
            asked.verb = "patch"
        case "DELETE":
            asked.verb = "delete" if asked.name else "deletecollection"
    return asked


def found_kind(asked: Asked, kinds: Kinds) -> Kind:
    """The kind that is asked for; 404 and 405 as the API server says them."""
    kind = kinds.find(asked.group, asked.version, asked.plural)
    if kind is None:
        raise errors.no_such_path()
    if asked.subresource and asked.subresource not in kind.subresources:
        raise errors.no_such_path()
    if not asked.subresource and asked.verb not in kind.verbs:
        raise errors.not_allowed("the requested resource")
    if asked.verb == "create" and asked.name and not asked.subresource:
        raise errors.not_allowed("the requested resource")
    if kind.namespaced and asked.namespace is None and (asked.name or asked.verb == "create"):
        raise errors.not_allowed("the requested resource")
    if not kind.namespaced and asked.namespace is not None:
        raise errors.no_such_path()
    if kind.refusal:
        raise errors.internal(kind.refusal)
    return kind


def selector_of(query: Any, kind: Kind) -> Selector:
    return Selector(
        parse_labels(query.get("labelSelector", "")),
        parse_fields(query.get("fieldSelector", ""), kind.selectable, kind.plural),
    )


def is_dry(query: Any, body: ApiObject | None = None) -> bool:
    asked = query.getall("dryRun", []) or (body or {}).get("dryRun") or []
    if wrong := [value for value in asked if value != "All"]:
        why = errors.unsupported("dryRun", wrong[0], ["All"])
        raise errors.invalid("Options", "meta.k8s.io", "", [why])
    return bool(asked)


def is_strict(query: Any) -> bool:
    """Whether unknown fields are refused; else they are dropped and told of."""
    asked = query.get("fieldValidation", "Warn")
    if asked not in (allowed := ["Ignore", "Strict", "Warn"]):
        why = errors.unsupported("fieldValidation", asked, allowed)
        raise errors.invalid("CreateOptions", "meta.k8s.io", "", [why])
    return asked == "Strict"


def number_of(query: Any, name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise errors.bad_request(
            f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        ) from None


async def body_of(request: web.Request) -> ApiObject | None:
    """The body as an object; None for none."""
    raw = await request.read()
    if not raw:
        return None
    media = request.content_type
    try:
        if media in (JSON, "application/octet-stream", "text/plain") or media.endswith("+json"):
            value = orjson.loads(raw)
        elif media in ("application/yaml", APPLY):
            # What kubectl and clients apply is nearly always JSON, which is YAML too.
            value = orjson.loads(raw) if raw.lstrip()[:1] == b"{" else yaml.safe_load(raw)
        else:
            raise errors.unsupported_media(media, [JSON, "application/yaml"])
    except (ValueError, yaml.YAMLError) as e:
        raise errors.bad_request(f"the object provided is unrecognized: {e}") from None
    return value


async def object_of(request: web.Request, kind: Kind, asked: Asked) -> ApiObject:
    """The body of a create or an update, which is of the kind and place that the path names."""
    item = await body_of(request)
    if not isinstance(item, dict):
        raise errors.bad_request("the object provided is unrecognized: it is no JSON object")
    given = (item.get("apiVersion", kind.api_version), item.get("kind", kind.kind))
    if given[0] != kind.api_version:
        raise errors.bad_request(
            f"the API version in the data ({given[0]}) does not match the expected API version "
            f"({kind.api_version})"
        )
    if given[1] != kind.kind:
        raise errors.bad_request(
            f"{given[1]} in version {kind.version!r} cannot be handled as a {kind.kind}: "
            "no kind is registered for it here"
        )
    if not isinstance(item.setdefault("metadata", {}), dict):
        raise errors.bad_request(f"metadata of a {kind.kind} is no object")
    namespace = item["metadata"].get("namespace") or asked.namespace
    if kind.namespaced and namespace != asked.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return item
