"""Custom resources: a definition serves its group at once, and its schema prunes, defaults and
validates. The kinds of agent-sandbox are held to their real definitions (SYNTH_TEST_DATA)."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.double.rules.structural import Structural
from tests.kubernetes.doubled import (
    DEFINITIONS,
    KETTLES,
    Asking,
    a_definition,
    a_kettle,
    against,
)

SPEC = {
    "type": "object",
    "required": ["litres"],
    "properties": {
        "litres": {"type": "integer", "minimum": 1, "maximum": 5},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "lid": {"type": "object", "properties": {"open": {"type": "boolean", "default": False}}},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "tags": {
            "type": "array",
            "items": {"type": "string", "pattern": "^[a-z]+$"},
            "x-kubernetes-list-type": "set",
        },
        "spouts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "flow": {"type": "integer"}},
            },
        },
        "made": {"type": "string", "format": "date-time"},
    },
    "x-kubernetes-validations": [
        {"rule": "self.litres == oldSelf.litres", "message": "litres is immutable"}
    ],
}


async def defined(ask: Asking, **version: Any) -> None:
    assert (await ask("POST", DEFINITIONS, a_definition(SPEC, **version))).code == 201


def test_a_definition_serves_its_kind_until_it_is_deleted() -> None:
    async def test(ask: Asking) -> None:
        assert (await ask("GET", KETTLES)).code == 404
        await defined(ask)
        conditions = (await ask("GET", f"{DEFINITIONS}/kettles.tea.example")).body["status"]
        assert {c["type"]: c["status"] for c in conditions["conditions"]}["Established"] == "True"
        listed = (await ask("GET", "/apis/tea.example/v1")).body["resources"]
        assert {r["name"] for r in listed} == {"kettles", "kettles/status"}
        await ask("POST", KETTLES, a_kettle(litres=1))
        async with ask.watch(KETTLES) as events:
            await events.take(1)
            assert (await ask("DELETE", f"{DEFINITIONS}/kettles.tea.example")).code == 200
            assert await events.take(1) == [("DELETED", "k")]
        assert (await ask("GET", KETTLES)).code == 404
        groups = (await ask("GET", "/apis")).body["groups"]
        assert "tea.example" not in {group["name"] for group in groups}

    against(test)


def test_a_definition_waits_for_the_finalizers_of_its_objects() -> None:
    async def test(ask: Asking) -> None:
        await defined(ask)
        kettle = a_kettle(litres=1)
        kettle["metadata"]["finalizers"] = ["tea.example/pour"]
        await ask("POST", KETTLES, kettle)
        ending = await ask("DELETE", f"{DEFINITIONS}/kettles.tea.example")
        assert ending.body["metadata"]["deletionTimestamp"]
        assert (await ask("GET", f"{KETTLES}/k")).body["metadata"]["deletionTimestamp"]
        await ask.patch(f"{KETTLES}/k", {"metadata": {"finalizers": None}})
        assert (await ask("GET", f"{DEFINITIONS}/kettles.tea.example")).code == 404
        assert (await ask("GET", KETTLES)).code == 404

    against(test)


def test_unknown_fields_go_and_defaults_come() -> None:
    async def test(ask: Asking) -> None:
        await defined(ask)
        given = a_kettle(
            litres=2, lid={"steam": 1}, any={"kept": {"x": 1}}, port="http", colour=None
        )
        made = await ask("POST", KETTLES, given)
        assert made.code == 201
        assert made.body["spec"] == {
            "litres": 2,
            "lid": {"open": False},
            "any": {"kept": {"x": 1}},
            "port": "http",
            "colour": "red",
        }
        assert made.headers.getall("Warning") == ['299 - "unknown field \\"spec.lid.steam\\""']
        strict = await ask("POST", KETTLES, given, fieldValidation="Strict")
        assert strict.code == 400
        assert 'unknown field "spec.lid.steam"' in strict.body["message"]

    against(test)


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({}, ("spec.litres", "FieldValueRequired")),
        ({"litres": 9}, ("spec.litres", "FieldValueInvalid")),
        ({"litres": "two"}, ("spec.litres", "FieldValueTypeInvalid")),
        ({"litres": 1, "colour": "green"}, ("spec.colour", "FieldValueNotSupported")),
        ({"litres": 1, "tags": ["a", "B"]}, ("spec.tags[1]", "FieldValueInvalid")),
        ({"litres": 1, "tags": ["a", "a"]}, ("spec.tags[1]", "FieldValueDuplicate")),
        ({"litres": 1, "spouts": [{"flow": 1}]}, ("spec.spouts[0].name", "FieldValueRequired")),
        (
            {"litres": 1, "spouts": [{"name": "a"}, {"name": "a"}]},
            ("spec.spouts[1]", "FieldValueDuplicate"),
        ),
        ({"litres": 1, "made": "yesterday"}, ("spec.made", "FieldValueInvalid")),
        ({"litres": 1, "port": 1.5}, ("spec.port", "FieldValueTypeInvalid")),
    ],
)
def test_what_the_schema_does_not_allow_is_refused_with_its_cause(
    spec: dict[str, Any], cause: tuple[str, str]
) -> None:
    async def test(ask: Asking) -> None:
        await defined(ask)
        refused = await ask("POST", KETTLES, a_kettle(**spec))
        assert refused.code == 422
        assert cause in refused.causes

    against(test)


def test_generation_counts_changes_of_the_spec_and_status_is_apart() -> None:
    async def test(ask: Asking) -> None:
        await defined(ask)
        made = await ask("POST", KETTLES, {**a_kettle(litres=1), "status": {"hot": True}})
        assert "status" not in made.body
        hot = await ask.patch(
            f"{KETTLES}/k/status", {"status": {"hot": True}, "spec": {"litres": 3}}
        )
        assert (hot.body["spec"]["litres"], hot.body["status"]) == (1, {"hot": True})
        assert hot.body["metadata"]["generation"] == 1
        red = await ask.patch(f"{KETTLES}/k", {"spec": {"colour": "blue"}, "status": None})
        assert red.body["metadata"]["generation"] == 2
        assert red.body["status"] == {"hot": True}
        fixed = await ask.patch(f"{KETTLES}/k", {"spec": {"litres": 3}})
        assert "litres is immutable" in fixed.body["message"]
        by_keys = await ask.patch(f"{KETTLES}/k", {"spec": {}}, "strategic")
        assert by_keys.code == 415

    against(test)


def test_scale_reads_and_writes_the_paths_of_the_definition() -> None:
    async def test(ask: Asking) -> None:
        paths = {"specReplicasPath": ".spec.litres", "statusReplicasPath": ".status.litres"}
        definition = a_definition(
            {"type": "object", "properties": {"litres": {"type": "integer"}}},
            subresources={"status": {}, "scale": paths},
        )
        await ask("POST", DEFINITIONS, definition)
        await ask("POST", KETTLES, a_kettle(litres=1))
        scaled = await ask.patch(f"{KETTLES}/k/scale", {"spec": {"replicas": 4}})
        assert (scaled.body["kind"], scaled.body["spec"]) == ("Scale", {"replicas": 4})
        assert (await ask("GET", f"{KETTLES}/k")).body["spec"] == {"litres": 4}

    against(test)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "other.tea.example"}}, "metadata.name"),
        ({"spec": {"group": "tea.example"}}, "spec.versions"),
    ],
)
def test_a_definition_must_be_one(change: dict[str, Any], field: str) -> None:
    async def test(ask: Asking) -> None:
        refused = await ask("POST", DEFINITIONS, {**a_definition(SPEC), **change})
        assert refused.code == 422
        assert field in {cause for cause, _ in refused.causes}

    against(test)


def test_completing_twice_changes_nothing() -> None:
    schema = Structural(a_definition(SPEC)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "k")
    item = a_kettle(litres=1, lid={"steam": 1}, tags=["a"])
    assert schema.complete(item) == ["spec.lid.steam"]
    once = {**item, "spec": {**item["spec"]}}
    assert schema.complete(item) == []
    assert item == once


@pytest.fixture
def crds() -> Path:
    folder = Path(os.environ.get("SYNTH_TEST_DATA", "/nowhere"), "agent_sandbox_crds")
    if not folder.is_dir():
        pytest.skip("SYNTH_TEST_DATA names no folder with agent_sandbox_crds")
    return folder


def test_the_real_definitions_of_agent_sandbox_hold(crds: Path) -> None:
    async def test(ask: Asking) -> None:
        base = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
        claim: dict[str, Any] = {
            "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
            "kind": "SandboxClaim",
            "metadata": {"name": "c"},
            "spec": {"warmPoolRef": {"name": "w"}},
        }
        assert (await ask("POST", f"{base}/sandboxclaims", claim)).code == 201
        claim = {**claim, "metadata": {"name": "d"}, "spec": {}}
        refused = await ask("POST", f"{base}/sandboxclaims", claim)
        assert ("spec.warmPoolRef", "FieldValueRequired") in refused.causes
        pool = {
            "apiVersion": claim["apiVersion"],
            "kind": "SandboxWarmPool",
            "metadata": {"name": "w"},
            "spec": {"sandboxTemplateRef": {"name": "t"}, "unheard": 1},
        }
        made = await ask("POST", f"{base}/sandboxwarmpools", pool)
        assert made.body["spec"] == {"sandboxTemplateRef": {"name": "t"}, "replicas": 1}
        scaled = await ask.patch(f"{base}/sandboxwarmpools/w/scale", {"spec": {"replicas": 7}})
        assert scaled.body["spec"] == {"replicas": 7}
        older = await ask("GET", f"{base}/sandboxclaims".replace("v1beta1", "v1alpha1"))
        assert older.code == 500
        assert "conversion webhook" in older.body["message"]
        sandbox = {
            "apiVersion": "agents.x-k8s.io/v1beta1",
            "kind": "Sandbox",
            "metadata": {"name": "s"},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "a", "image": "i"}]}}},
        }
        place = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"
        assert (await ask("POST", place, sandbox)).code == 201
        claims = [{"metadata": {"name": "v"}, "spec": {}}]
        late = await ask.patch(f"{place}/s", {"spec": {"volumeClaimTemplates": claims}})
        assert "volumeClaimTemplates is immutable" in late.body["message"]

    against(test, crds=crds)
