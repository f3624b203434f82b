"""Real schemas for what we send to a cluster: Kubernetes' own, and agent-sandbox's definitions.

The definitions are no part of the project: they lie in `agent_sandbox_crds` of the folder that
`SYNTH_TEST_DATA` names, and tests that want them skip without.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

VERSIONS = ("1.29", "1.37")
"""Of Kubernetes, against whose strict schemas everything of its own is checked."""

CUSTOM = ("agents.x-k8s.io", "extensions.agents.x-k8s.io")


def is_custom(manifest: dict[str, Any]) -> bool:
    return manifest["apiVersion"].partition("/")[0] in CUSTOM


def check(manifest: dict[str, Any]) -> None:
    """AssertionError, saying where, for one that its schema does not allow, unknown fields
    included. Skips for a custom resource without the definitions."""
    what = f"{manifest['kind']} {manifest['metadata'].get('name')}"
    if is_custom(manifest):
        schema = custom_schemas()[manifest["apiVersion"], manifest["kind"]]
        problems = list(jsonschema.Draft202012Validator(schema).iter_errors(manifest))
        said = "; ".join(f"{p.json_path}: {p.message[:200]}" for p in problems)
        assert not problems, f"{what}: {said}"
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            where = ".".join(map(str, error.path))
            pytest.fail(f"{what}, Kubernetes {version}: {where}: {error.message[:300]}")


@cache
def custom_schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """(apiVersion, kind) -> schema of the object, unknown fields refused."""
    folder = crd_folder()
    if folder is None:
        pytest.skip(
            "the definitions of agent-sandbox are not here: name a folder that has them in "
            "agent_sandbox_crds/ by SYNTH_TEST_DATA"
        )
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        spec = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def crd_folder() -> Path | None:
    given = os.environ.get("SYNTH_TEST_DATA")
    folder = Path(given) / "agent_sandbox_crds" if given else None
    return folder if folder is not None and folder.is_dir() else None


def strict(schema: Any) -> Any:
    """A schema of a definition as JSON Schema that allows no field which it does not name."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", keeps)
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        made["type"] = [schema["type"], "null"]
    return made
