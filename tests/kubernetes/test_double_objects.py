"""The double's verbs on objects are those of the API conventions: names, versions, conflicts,
preconditions, deletion with grace and finalizers, dry runs, and refusals with causes."""

import pytest

from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.doubled import (
    LEASES,
    MAPS,
    PODS,
    Asking,
    a_binding,
    a_map,
    a_node,
    a_pod,
    against,
)


def test_a_created_object_has_what_the_server_gives_it() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", MAPS, a_map(x="1"))
        metadata = made.body["metadata"]
        assert made.code == 201
        assert {"uid", "resourceVersion", "creationTimestamp"} <= set(metadata)
        assert (await ask("GET", f"{MAPS}/m")).body == made.body
        again = await ask("POST", MAPS, a_map())
        assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
        assert again.body["kind"] == "Status"

    against(test)


def test_generated_names_begin_as_asked_and_differ() -> None:
    async def test(ask: Asking) -> None:
        body: ApiObject = {**a_map(), "metadata": {"generateName": "part-"}}
        names = {(await ask("POST", MAPS, body)).body["metadata"]["name"] for _ in range(20)}
        assert len(names) == 20
        assert all(name.startswith("part-") and len(name) == 10 for name in names)

    against(test)


def test_an_update_of_an_older_version_is_a_conflict_and_changes_nothing() -> None:
    async def test(ask: Asking) -> None:
        first = (await ask("POST", MAPS, a_map(x="1"))).body
        second = await ask("PUT", f"{MAPS}/m", {**first, "data": {"x": "2"}})
        assert second.code == 200
        assert int(second.version) > int(first["metadata"]["resourceVersion"])
        stale = await ask("PUT", f"{MAPS}/m", {**first, "data": {"x": "3"}})
        assert (stale.code, stale.body["reason"]) == (409, "Conflict")
        assert (await ask("GET", f"{MAPS}/m")).body == second.body

    against(test)


def test_a_write_that_changes_nothing_is_no_new_version_and_no_event() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", MAPS, a_map(x="1"))
        async with ask.watch(MAPS, resourceVersion=made.version) as events:
            assert (await ask("PUT", f"{MAPS}/m", made.body)).version == made.version
            assert (await ask.patch(f"{MAPS}/m", {"data": {"x": "1"}})).version == made.version
            await ask("POST", MAPS, a_map("other"))
            assert await events.take(1) == [("ADDED", "other")]

    against(test)


def test_a_lease_is_updated_only_with_its_version_and_made_by_an_update() -> None:
    async def test(ask: Asking) -> None:
        lease: ApiObject = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l"},
            "spec": {"holderIdentity": "me"},
        }
        assert (await ask("PUT", f"{LEASES}/l", lease)).code == 201
        blind = await ask("PUT", f"{LEASES}/l", lease)
        assert blind.code == 422
        assert blind.causes == {("metadata.resourceVersion", "FieldValueInvalid")}
        for text, kept in (
            ("2026-11-29T13:00:00.000001+01:00", "2026-11-29T12:00:00.000001Z"),
            ("2026-11-29T12:00:00Z", None),
            ("2026-11-29T12:00:00+00:00", None),
        ):
            renewed = await ask.patch(f"{LEASES}/l", {"spec": {"renewTime": text}})
            assert renewed.code == (200 if kept else 400)
            assert kept is None or renewed.body["spec"]["renewTime"] == kept
        lease["spec"] = {"leaseDurationSeconds": 0}
        bad = await ask.patch(f"{LEASES}/l", {"spec": lease["spec"]})
        assert bad.causes == {("spec.leaseDurationSeconds", "FieldValueInvalid")}

    against(test)


def test_objects_have_a_largest_size() -> None:
    async def test(ask: Asking) -> None:
        big = await ask("POST", MAPS, a_map(x="1" * (1024 * 1024 + 1)))
        assert (big.code, big.causes) == (422, {("", "FieldValueTooLong")})
        values = {f"k{at}": {"note": "x" * 1000} for at in range(2000)}
        larger = await ask("POST", PODS, {**a_pod(), "spec": {**a_pod()["spec"], **values}})
        assert larger.code == 201  # what is unknown is dropped first
        env = [{"name": f"E{at}", "value": "x" * 1000} for at in range(1600)]
        container = {"name": "a", "image": "i", "env": env}
        largest = await ask("POST", PODS, a_pod("q", containers=[container]))
        assert (largest.code, "too large" in largest.body["message"]) == (500, True)
        assert (await ask("POST", MAPS, {**a_map(), "data": {"not a key": "1"}})).code == 422

    against(test)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"metadata": {"name": "Under_score"}}, ("metadata.name", "FieldValueInvalid")),
        ({"metadata": {}}, ("metadata.name", "FieldValueRequired")),
        ({"spec": {"containers": []}}, ("spec.containers", "FieldValueRequired")),
        (
            {"spec": {"containers": [{"image": "i"}]}},
            ("spec.containers[0].name", "FieldValueRequired"),
        ),
        (
            {"spec": {"containers": [{"name": "a"}]}},
            ("spec.containers[0].image", "FieldValueRequired"),
        ),
        (
            {"metadata": {"name": "p", "labels": {"a": "not a value"}}},
            ("metadata.labels", "FieldValueInvalid"),
        ),
        (
            {
                "spec": {
                    "containers": [
                        {
                            "name": "a",
                            "image": "i",
                            "volumeMounts": [{"name": "none", "mountPath": "/x"}],
                        }
                    ]
                }
            },
            ("spec.containers[0].volumeMounts[0].name", "FieldValueNotFound"),
        ),
        (
            {
                "spec": {
                    "containers": [
                        {
                            "name": "a",
                            "image": "i",
                            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
                        }
                    ]
                }
            },
            ("spec.containers[0].resources.requests", "FieldValueInvalid"),
        ),
        (
            {"spec": {**a_pod()["spec"], "restartPolicy": "Sometimes"}},
            ("spec.restartPolicy", "FieldValueNotSupported"),
        ),
    ],
)
def test_an_invalid_pod_is_refused_with_its_cause(
    change: ApiObject, cause: tuple[str, str]
) -> None:
    async def test(ask: Asking) -> None:
        refused = await ask("POST", PODS, {**a_pod(), **change})
        assert (refused.code, refused.body["reason"]) == (422, "Invalid")
        assert cause in refused.causes

    against(test)


def test_a_dry_run_answers_and_stores_nothing() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", PODS, a_pod(), dryRun="All")
        assert made.code == 201
        assert made.body["spec"]["restartPolicy"] == "Always"
        assert (await ask("GET", f"{PODS}/p")).code == 404
        await ask("POST", PODS, a_pod())
        await ask("DELETE", f"{PODS}/p", dryRun="All")
        assert (await ask("GET", f"{PODS}/p")).code == 200
        assert (await ask("POST", PODS, a_pod("q"), dryRun="Some")).code == 422

    against(test)


def test_deletion_holds_to_its_preconditions() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", MAPS, a_map())
        for wrong in ({"uid": "other"}, {"resourceVersion": "1"}):
            refused = await ask("DELETE", f"{MAPS}/m", {"preconditions": wrong})
            assert (refused.code, refused.body["reason"]) == (409, "Conflict")
        right = {"uid": made.body["metadata"]["uid"], "resourceVersion": made.version}
        done = await ask("DELETE", f"{MAPS}/m", {"preconditions": right})
        assert (done.code, done.body["status"]) == (200, "Success")
        assert (await ask("DELETE", f"{MAPS}/m")).code == 404

    against(test)


def test_a_bound_pod_stays_until_its_node_removes_it() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", "/api/v1/nodes", a_node("n", 1))
        await ask("POST", PODS, a_pod())
        assert (await ask("POST", f"{PODS}/p/binding", a_binding("n"))).code == 201
        assert (await ask("POST", f"{PODS}/p/binding", a_binding("n"))).code == 409
        marked = await ask("DELETE", f"{PODS}/p")
        assert marked.body["metadata"]["deletionGracePeriodSeconds"] == 30
        sooner = await ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5})
        assert sooner.body["metadata"]["deletionGracePeriodSeconds"] == 5
        later = await ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 60})
        assert later.body["metadata"] == sooner.body["metadata"]
        assert (await ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})).code == 200
        assert (await ask("GET", f"{PODS}/p")).code == 404

    against(test)


def test_a_pod_that_is_bound_nowhere_or_has_ended_goes_at_once() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", PODS, a_pod("waiting"))
        await ask("DELETE", f"{PODS}/waiting")
        await ask("POST", PODS, a_pod("ended", nodeName="n"))
        status = {"status": {"phase": "Succeeded"}}
        assert (await ask.patch(f"{PODS}/ended/status", status)).code == 200
        await ask("DELETE", f"{PODS}/ended")
        assert (await ask("GET", PODS)).names == []

    against(test)


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])],
)
def test_a_propagation_policy_waits_as_a_finalizer_for_the_collector(
    policy: str, finalizers: list[str]
) -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", MAPS, a_map())
        marked = await ask("DELETE", f"{MAPS}/m", {"propagationPolicy": policy})
        assert marked.body["metadata"]["finalizers"] == finalizers
        added = {"metadata": {"finalizers": [*finalizers, "x.example/more"]}}
        assert (await ask.patch(f"{MAPS}/m", added)).code == 422
        async with ask.watch(MAPS, resourceVersion=marked.version) as events:
            await ask.patch(f"{MAPS}/m", {"metadata": {"finalizers": None}})
            assert await events.take(1) == [("DELETED", "m")]
        assert (await ask("GET", f"{MAPS}/m")).code == 404

    against(test)


def test_deletecollection_takes_what_the_selector_takes() -> None:
    async def test(ask: Asking) -> None:
        for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
            await ask("POST", MAPS, a_map(name, {"colour": colour}))
        gone = await ask("DELETE", MAPS, labelSelector="colour=red")
        assert gone.names == ["a", "c"]
        assert (await ask("GET", MAPS)).names == ["b"]

    against(test)


def test_a_namespace_ends_when_it_is_finalized_and_takes_nothing_new_before() -> None:
    async def test(ask: Asking) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
        assert (await ask("POST", "/api/v1/namespaces", body)).code == 201
        assert (await ask("DELETE", "/api/v1/namespaces/n")).body["status"][
            "phase"
        ] == "Terminating"
        refused = await ask("POST", "/api/v1/namespaces/n/configmaps", a_map())
        assert refused.code == 403
        assert refused.causes == {("metadata.namespace", "NamespaceTerminating")}
        done = await ask("PUT", "/api/v1/namespaces/n/finalize", {**body, "spec": {}})
        assert done.code == 200
        assert (await ask("POST", "/api/v1/namespaces/n/configmaps", a_map())).code == 404

    against(test)


def test_status_and_spec_are_written_apart() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", PODS, {**a_pod(), "status": {"phase": "Running"}})
        assert made.body["status"]["phase"] == "Pending"
        await ask.patch(f"{PODS}/p", {"status": {"phase": "Running"}})
        assert (await ask("GET", f"{PODS}/p")).body["status"]["phase"] == "Pending"
        changed = {
            "status": {"phase": "Running", "containerStatuses": [{"name": "sandbox"}]},
            "spec": {"containers": [{"name": "other", "image": "x"}]},
        }
        told = await ask.patch(f"{PODS}/p/status", changed)
        assert told.body["spec"] == made.body["spec"]
        assert told.body["status"]["containerStatuses"][0]["imageID"] == ""
        assert told.body["metadata"]["generation"] == 1

    against(test)


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("/spec/containers/0/image", "python:3.13", 200),
        ("/spec/containers/0/command", ["other"], 422),
        ("/spec/nodeSelector", {"a": "b"}, 422),
        ("/spec/activeDeadlineSeconds", 10, 200),
        ("/spec/activeDeadlineSeconds", 100, 422),
        ("/spec/tolerations/-", {"operator": "Exists"}, 200),
    ],
)
def test_of_a_pods_spec_only_little_changes(path: str, value: object, code: int) -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", PODS, a_pod(activeDeadlineSeconds=50))
        change = [{"op": "add", "path": path, "value": value}]
        assert (await ask.patch(f"{PODS}/p", change, "json")).code == code

    against(test)


def test_eviction_deletes_with_the_options_it_is_given() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", PODS, a_pod(nodeName="n"))
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "p"},
            "deleteOptions": {"gracePeriodSeconds": 7},
        }
        assert (await ask("POST", f"{PODS}/p/eviction", eviction)).code == 201
        assert (await ask("GET", f"{PODS}/p")).body["metadata"]["deletionGracePeriodSeconds"] == 7
        assert (await ask("POST", f"{PODS}/q/eviction", eviction)).code == 404

    against(test)


def test_a_runtime_class_must_be_there_for_a_pod_that_names_it() -> None:
    async def test(ask: Asking) -> None:
        refused = await ask("POST", PODS, a_pod(runtimeClassName="gvisor"))
        assert refused.code == 403
        assert 'RuntimeClass "gvisor" not found' in refused.body["message"]
        runtime = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "gvisor"},
            "handler": "runsc",
            "scheduling": {"nodeSelector": {"sandboxed": "yes"}},
        }
        assert (await ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime)).code == 201
        made = await ask("POST", PODS, a_pod(runtimeClassName="gvisor"))
        assert made.body["spec"]["nodeSelector"] == {"sandboxed": "yes"}

    against(test)
