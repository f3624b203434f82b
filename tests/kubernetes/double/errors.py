"""Refusals as the API server words them: each is a `Status` object with its HTTP code."""

from typing import Any

ApiObject = dict[str, Any]


class ApiError(Exception):
    """A refusal; `status` is the metav1.Status that the client gets."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: ApiObject | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers or {}
        self.status: ApiObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            **({"details": details} if details else {}),
            "code": code,
        }


def success(
    *, name: str | None = None, group: str = "", kind: str = "", uid: str = ""
) -> ApiObject:
    """The Status of something done that has no object to show."""
    details = {"name": name, "group": group, "kind": kind, "uid": uid}
    shown = {key: value for key, value in details.items() if value}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        **({"details": shown} if shown else {}),
    }


def titled(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def details_of(resource: str, group: str, name: str) -> ApiObject:
    shown = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in shown.items() if value}


def not_found(resource: str, group: str, name: str) -> ApiError:
    message = f'{titled(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=details_of(resource, group, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: str, group: str, name: str) -> ApiError:
    message = f'{titled(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=details_of(resource, group, name))


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {titled(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=details_of(resource, group, name))


MODIFIED_SINCE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def apply_conflict(causes: list[ApiObject]) -> ApiError:
    """Fields that other managers own, as server-side apply refuses them."""
    lines = "\n".join(f"- {cause['field']}" for cause in causes)
    managers = sorted({cause["message"] for cause in causes})
    what = f"Apply failed with {len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    return ApiError(
        409, "Conflict", f"{what}: {'; '.join(managers)}:\n{lines}", details={"causes": causes}
    )


class FieldError:
    """One cause of a 422: `field`, the reason and the text, as field.Error writes them."""

    def __init__(self, reason: str, field: str, message: str) -> None:
        self.reason, self.field, self.message = reason, field, message


def required(field: str, why: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, "Required value" + (f": {why}" if why else ""))


def bad_value(field: str, value: object, why: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, f"Invalid value: {_shown(value)}: {why}")


def unsupported(field: str, value: object, supported: list[str]) -> FieldError:
    listed = ", ".join(f'"{name}"' for name in sorted(supported))
    text = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return FieldError("FieldValueNotSupported", field, text)


def duplicate(field: str, value: object) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {_shown(value)}")


def not_there(field: str, value: object) -> FieldError:
    return FieldError("FieldValueNotFound", field, f"Not found: {_shown(value)}")


def forbidden_field(field: str, why: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {why}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def invalid(kind: str, group: str, name: str, found: list[FieldError]) -> ApiError:
    """422 with a cause for each field."""
    texts = [f"{error.field}: {error.message}" for error in found]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": e.reason, "message": e.message, "field": e.field} for e in found]
    return ApiError(
        422,
        "Invalid",
        f'{titled(kind, group)} "{name}" is invalid: {listed}',
        details={**details_of(kind, group, name), "causes": causes},
    )


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(resource: str, group: str, name: str, why: str) -> ApiError:
    message = f'{titled(resource, group)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details=details_of(resource, group, name))


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_old(asked: int, oldest: int) -> ApiError:
    return expired(f"too old resource version: {asked} ({oldest})")


def not_yet(asked: int, current: int) -> ApiError:
    """A version that the server has not reached."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        504,
        "Timeout",
        f"Too large resource version: {asked}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers={"Retry-After": "1"},
    )


def not_allowed(what: str) -> ApiError:
    return ApiError(405, "MethodNotAllowed", f"the server does not allow this method on {what}")


def unsupported_media(given: str, allowed: list[str]) -> ApiError:
    listed = ", ".join(allowed)
    return ApiError(
        415,
        "UnsupportedMediaType",
        f'the body of the request was in an unknown format "{given}"; accepted are: {listed}',
    )


def unprocessable(message: str) -> ApiError:
    """422 without causes: a patch that cannot be applied."""
    return ApiError(422, "Invalid", message)


def internal(message: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")
