"""What an API server refuses, named by what the caller should do about it.

A request that was refused for what it asks is a ConfigError, since asking again changes nothing:
rights that are missing, an object that is not valid. What passes is an `ApiError`, and a
`BackpressureError` where the cluster has no room for more.
"""

import json
from collections.abc import Mapping

from records.errors import ConfigError, SynthError
from sandboxes.core.body import BackpressureError, InfrastructureError

THROTTLED, GONE, CONFLICT, NOT_FOUND, INVALID = 429, 410, 409, 404, 422
UNAUTHORIZED, FORBIDDEN, BAD_REQUEST = 401, 403, 400

LATER_S = 1.0
"""To wait after 429 without a Retry-After."""


class ApiError(InfrastructureError):
    """An API server has refused a request, or none was reached (code 0)."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__("api_server", detail)
        self.code = code


def refusal(code: int, body: bytes, asked: str) -> SynthError:
    """The error for an answer that is none. `asked` says what was: method and path."""
    said = message_of(body)
    if code == FORBIDDEN and "exceeded quota" in said:
        return BackpressureError("quota", f"a quota of the namespace is used up: {said}")
    if code == THROTTLED:
        return BackpressureError("throttled", f"the API server throttles {asked}: {said}")
    if code == UNAUTHORIZED:
        return ConfigError(
            f"the API server does not know us ({asked}: {said}); log in again, or name another "
            "kubeconfig or context in the settings of Kubernetes"
        )
    if code == FORBIDDEN:
        return ConfigError(
            f"the API server forbids {asked}: {said}; grant it "
            "(kubectl apply -k deploy/kubernetes makes a role that has all rights needed)"
        )
    if code == NOT_FOUND and "namespaces" in said and not asked.startswith("GET "):
        return ConfigError(f"{asked}: {said}; make it (kubectl apply -k deploy/kubernetes)")
    if code in (BAD_REQUEST, INVALID):
        return ConfigError(f"the API server takes an object of ours for invalid, {asked}: {said}")
    return ApiError(code, f"the API server answers {asked} with {code}: {said}")


def message_of(body: bytes) -> str:
    """What a metav1.Status says, or the text itself."""
    try:
        found = json.loads(body)
        return str(found["message"])[:1000]
    except (ValueError, KeyError, TypeError):
        return body[:300].decode(errors="replace")


def retry_after(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", LATER_S)))
    except ValueError:
        return LATER_S
