"""Patches do what their definitions say: RFC 6902 (the jsonpatch library as oracle), RFC 7396,
strategic merge by keys, and server-side apply by owners of fields."""

import copy
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.double.errors import ApiError
from tests.kubernetes.double.patches import json_patch, merge_patch, same
from tests.kubernetes.double.strategic import keys_of, strategic_merge
from tests.kubernetes.doubled import MAPS, PODS, Asking, a_map, a_pod, against

NAMES = st.sampled_from(["a", "b", "a/b", "m~n", ""])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "1"])
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, DOCUMENTS, max_size=3)
POINTERS = st.lists(
    NAMES.map(jsonpointer.escape) | st.sampled_from(["0", "1", "2", "-", "01"]), max_size=3
).map(lambda steps: "".join(f"/{step}" for step in steps))
OPERATIONS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "replace", "test"]),
                "path": POINTERS,
                "value": DOCUMENTS,
            }
        ),
        st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
        st.fixed_dictionaries(
            {"op": st.sampled_from(["move", "copy"]), "path": POINTERS, "from": POINTERS}
        ),
    ),
    max_size=3,
)


def refused_as_unclear(operations: list[dict[str, Any]]) -> bool:
    """Where the library has a reading of its own: the whole document removed or moved, and -."""
    return any(
        (o["op"] in ("remove", "move") and (o["path"] == "" or o.get("from") == ""))
        or "-" in o.get("from", "")
        or (o["op"] in ("replace", "remove", "test") and "-" in o["path"])
        for o in operations
    )


@given(OBJECTS, OPERATIONS)
def test_json_patches_are_those_of_the_library(
    document: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    if refused_as_unclear(operations):
        return
    try:
        expected = jsonpatch.apply_patch(copy.deepcopy(document), operations)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        with pytest.raises(ApiError):
            json_patch(copy.deepcopy(document), operations)
        return
    assert same(json_patch(copy.deepcopy(document), operations), expected)


@given(OBJECTS, OBJECTS)
def test_the_patch_between_two_documents_makes_the_second_of_the_first(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    operations = jsonpatch.make_patch(first, second).patch
    assert same(json_patch(copy.deepcopy(first), operations), second)


def defined(target: Any, patch: Any) -> Any:
    """MergePatch of RFC 7396, section 2, line by line."""
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            target = {}
        target = dict(target)
        for name, value in patch.items():
            if value is None:
                if name in target:
                    del target[name]
            else:
                target[name] = defined(target.get(name), value)
        return target
    return patch


@given(DOCUMENTS, DOCUMENTS)
def test_merge_patches_are_those_of_the_rfc(target: Any, patch: Any) -> None:
    before = copy.deepcopy(target)
    assert same(merge_patch(target, patch), defined(target, patch))
    assert same(target, before)


CONTAINERS = {
    "spec": {
        "containers": [
            {"name": "a", "image": "i", "env": [{"name": "X", "value": "1"}]},
            {"name": "b", "image": "j"},
        ],
        "tolerations": [{"key": "old"}],
    },
    "metadata": {"finalizers": ["f"]},
}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "b", "image": "k"}]}},
            {"b": "k", "a": "i"},
            id="an element is found by its key",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "c", "image": "l"}]}},
            {"a": "i", "b": "j", "c": "l"},
            id="an unknown key is a new element",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
            {"b": "j"},
            id="an element is deleted by its key",
        ),
        pytest.param(
            {"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "q"}]}},
            {"z": "q"},
            id="a list is replaced where the patch says so",
        ),
    ],
)
def test_strategic_patches_merge_lists_by_their_key(
    patch: dict[str, Any], expected: dict[str, str]
) -> None:
    merged = strategic_merge(CONTAINERS, patch, keys_of("Pod"))
    assert {c["name"]: c["image"] for c in merged["spec"]["containers"]} == expected


def test_strategic_patches_order_replace_and_delete_as_they_say() -> None:
    merged = strategic_merge(
        CONTAINERS,
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}],
                "tolerations": [{"key": "new"}],
            },
            "metadata": {"finalizers": ["g"], "$deleteFromPrimitiveList/finalizers": ["f"]},
        },
        keys_of("Pod"),
    )
    assert [c["name"] for c in merged["spec"]["containers"]] == ["b", "a"]
    assert [e["name"] for e in merged["spec"]["containers"][1]["env"]] == ["X", "Y"]
    assert merged["spec"]["tolerations"] == [{"key": "new"}]
    assert merged["metadata"]["finalizers"] == ["g"]


@given(OBJECTS)
def test_a_strategic_patch_without_lists_is_a_merge_patch(document: dict[str, Any]) -> None:
    def without_lists(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: without_lists(v) for k, v in value.items() if not isinstance(v, list)}
        return value

    patch = without_lists(document)
    assert same(strategic_merge({"a": {"x": 1}}, patch, {}), merge_patch({"a": {"x": 1}}, patch))


def test_a_test_that_fails_is_422_and_changes_nothing() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", MAPS, a_map(x="1"))
        claim = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": made.version},
            {"op": "replace", "path": "/data/x", "value": "2"},
        ]
        assert (await ask.patch(f"{MAPS}/m", claim, "json")).body["data"] == {"x": "2"}
        late = await ask.patch(f"{MAPS}/m", claim, "json")
        assert (late.code, late.body["reason"]) == (422, "Invalid")
        stale = {"metadata": {"resourceVersion": made.version}, "data": {"x": "3"}}
        assert (await ask.patch(f"{MAPS}/m", stale)).code == 409
        assert (await ask("GET", f"{MAPS}/m")).body["data"] == {"x": "2"}

    against(test)


def test_apply_creates_changes_and_takes_back_what_one_manager_wants() -> None:
    async def test(ask: Asking) -> None:
        path, asked = f"{MAPS}/m", {"fieldManager": "one"}
        first = await ask.patch(path, a_map(x="1", y="1"), "apply", **asked)
        assert first.code == 201
        again = await ask.patch(path, a_map(x="1", y="1"), "apply", **asked)
        assert (again.code, again.version) == (200, first.version)
        other = await ask.patch(path, a_map(z="9"), "apply", fieldManager="two")
        assert other.body["data"] == {"x": "1", "y": "1", "z": "9"}
        less = await ask.patch(path, a_map(x="2"), "apply", **asked)
        assert less.body["data"] == {"x": "2", "z": "9"}
        assert (await ask.patch(path, a_map(), "apply")).code == 422

    against(test)


def test_apply_to_a_field_of_another_manager_is_a_conflict_unless_forced() -> None:
    async def test(ask: Asking) -> None:
        path = f"{MAPS}/m"
        await ask.patch(path, a_map(x="1"), "apply", fieldManager="one")
        refused = await ask.patch(path, a_map(x="2"), "apply", fieldManager="two")
        assert refused.code == 409
        assert refused.causes == {(".data.x", "FieldManagerConflict")}
        shared = await ask.patch(path, a_map(x="1"), "apply", fieldManager="two")
        assert shared.code == 200
        taken = await ask.patch(path, a_map(x="2"), "apply", fieldManager="two", force="true")
        assert taken.body["data"] == {"x": "2"}
        owners = [m["manager"] for m in taken.body["metadata"]["managedFields"]]
        assert owners == ["two"]

    against(test)


def test_apply_merges_the_containers_of_a_pod_by_name() -> None:
    async def test(ask: Asking) -> None:
        await ask.patch(f"{PODS}/p", a_pod(), "apply", fieldManager="one")
        image = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "sandbox", "image": "python:3.13"}]},
        }
        changed = await ask.patch(f"{PODS}/p", image, "apply", fieldManager="two", force="true")
        (container,) = changed.body["spec"]["containers"]
        assert container["image"] == "python:3.13"
        assert container["imagePullPolicy"] == "IfNotPresent"
        assert changed.body["metadata"]["labels"] == {"a": "b"}

    against(test)
