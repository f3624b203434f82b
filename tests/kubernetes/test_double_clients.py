"""The project's client library reads and writes the double: its models accept every answer, its
errors carry the codes, and its watch follows."""

import asyncio
from typing import Any

import pytest
from kubernetes.aio.client import (
    ApiClient,
    ApiException,
    Configuration,
    CoordinationV1Api,
    CoreV1Api,
    CustomObjectsApi,
    NetworkingV1Api,
    NodeV1Api,
    V1ConfigMap,
    V1Lease,
    V1LeaseSpec,
    V1ObjectMeta,
    V1Pod,
    VersionApi,
)
from kubernetes.aio.watch import Watch

from tests.kubernetes.doubled import DEFINITIONS, Asking, a_definition, a_kettle, a_pod, against


def client_of(ask: Asking) -> ApiClient:
    return ApiClient(configuration=Configuration(host=ask.url))


def model_of(pod: dict[str, Any]) -> V1Pod:
    model = V1Pod.from_dict(pod)
    assert model is not None
    return model


def test_pods_are_created_read_changed_listed_and_deleted() -> None:
    async def test(ask: Asking) -> None:
        async with client_of(ask) as client:
            core = CoreV1Api(client)
            made = await core.create_namespaced_pod("default", model_of(a_pod()))
            assert made.metadata is not None
            assert made.status is not None
            assert (made.metadata.name, made.status.phase) == ("p", "Pending")
            patch = {"metadata": {"labels": {"colour": "red"}}}
            changed = await core.patch_namespaced_pod("p", "default", patch)
            assert changed.metadata is not None
            assert changed.metadata.labels == {"colour": "red"}
            listed = await core.list_namespaced_pod("default", label_selector="colour in (red)")
            assert [item.metadata.name for item in listed.items if item.metadata] == ["p"]
            ended = await core.delete_namespaced_pod("p", "default")
            assert ended.metadata is not None
            assert ended.metadata.uid == made.metadata.uid
            with pytest.raises(ApiException) as refused:
                await core.read_namespaced_pod("p", "default")
            assert refused.value.status == 404

    against(test)


def test_conflicts_quotas_and_invalid_objects_are_told_apart_by_their_codes() -> None:
    async def test(ask: Asking) -> None:
        async with client_of(ask) as client:
            core = CoreV1Api(client)
            body = V1ConfigMap(metadata=V1ObjectMeta(name="m"), data={"x": "1"})
            made = await core.create_namespaced_config_map("default", body)
            await core.patch_namespaced_config_map("m", "default", {"data": {"x": "2"}})
            codes = []
            for attempt in (
                core.create_namespaced_config_map("default", body),
                core.replace_namespaced_config_map("m", "default", made),
                core.create_namespaced_config_map(
                    "default", V1ConfigMap(metadata=V1ObjectMeta(name="Not_a_name"))
                ),
                core.create_namespaced_config_map("nowhere", body),
            ):
                with pytest.raises(ApiException) as refused:
                    await attempt
                codes.append(refused.value.status)
            assert codes == [409, 409, 422, 404]

    against(test)


def test_a_lease_is_renewed() -> None:
    async def test(ask: Asking) -> None:
        async with client_of(ask) as client:
            leases = CoordinationV1Api(client)
            spec = V1LeaseSpec(holder_identity="me", lease_duration_seconds=30)
            body = V1Lease(metadata=V1ObjectMeta(name="l"), spec=spec)
            await leases.create_namespaced_lease("default", body)
            renewed = {"spec": {"renewTime": "2026-11-29T12:00:00.000000Z"}}
            lease = await leases.patch_namespaced_lease("l", "default", renewed)
            assert lease.spec is not None
            assert lease.spec.renew_time is not None
            assert lease.spec.renew_time.hour == 12
            gone = await leases.delete_namespaced_lease("l", "default")
            assert isinstance(gone, dict)
            assert gone["status"] == "Success"

    against(test)


def test_custom_resources_are_read_and_written_with_their_status() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", DEFINITIONS, a_definition({"type": "object", "properties": {}}))
        async with client_of(ask) as client:
            custom = CustomObjectsApi(client)
            place = ("tea.example", "v1", "default", "kettles")
            await custom.create_namespaced_custom_object(*place, a_kettle())
            await custom.patch_namespaced_custom_object_status(
                *place, "k", {"status": {"hot": True}}
            )
            listed = await custom.list_namespaced_custom_object(*place)
            assert isinstance(listed, dict)
            assert [item["status"] for item in listed["items"]] == [{"hot": True}]

    against(test)


def test_its_watch_sees_what_is_written_while_it_watches() -> None:
    async def test(ask: Asking) -> None:
        async with client_of(ask) as client:
            core = CoreV1Api(client)
            version = (await core.list_namespaced_pod("default")).metadata
            assert version is not None
            seen = []

            async def follow() -> None:
                watching = Watch()
                event: Any
                async for event in watching.stream(
                    core.list_namespaced_pod,
                    "default",
                    resource_version=version.resource_version,
                    timeout_seconds=30,
                ):
                    seen.append((event["type"], event["object"].metadata.name))
                    if event["type"] == "DELETED":
                        break
                await watching.close()

            task = asyncio.create_task(follow())
            await core.create_namespaced_pod("default", model_of(a_pod()))
            await core.delete_namespaced_pod("p", "default")
            await asyncio.wait_for(task, 30)
            assert seen == [("ADDED", "p"), ("DELETED", "p")]

    against(test)


def test_an_empty_cluster_answers_every_question_of_discovery() -> None:
    async def test(ask: Asking) -> None:
        async with client_of(ask) as client:
            assert (await VersionApi(client).get_code()).git_version.endswith("double")
            assert (await NodeV1Api(client).list_runtime_class()).items == []
            policies = await NetworkingV1Api(client).list_namespaced_network_policy("default")
            assert policies.items == []
            names = [item.metadata for item in (await CoreV1Api(client).list_namespace()).items]
            assert "default" in {name.name for name in names if name is not None}

    against(test)
