"""Lists and watches: pages of one version, what a resourceVersion means, 410 where history ends,
bookmarks, and events as a selection sees them."""

import pytest

from tests.kubernetes.doubled import MAPS, PODS, Asking, a_map, a_pod, against

TOLD = {"k8s.io/initial-events-end": "true"}


async def made(ask: Asking, *names: str, **labels: str) -> list[str]:
    """The versions of new config maps."""
    return [(await ask("POST", MAPS, a_map(name, labels))).version for name in names]


def test_pages_are_of_one_version_whatever_is_written_between_them() -> None:
    async def test(ask: Asking) -> None:
        await made(ask, "a", "b", "c", "d", "e")
        first = await ask("GET", MAPS, limit=2)
        assert first.body["metadata"]["remainingItemCount"] == 3
        await ask("DELETE", f"{MAPS}/d")
        await made(ask, "f")
        names, page = first.names, first
        while token := page.body["metadata"].get("continue"):
            page = await ask("GET", MAPS, **{"limit": 2, "continue": token})
            assert page.version == first.version
            names += page.names
        assert names == ["a", "b", "c", "d", "e"]
        assert (await ask("GET", MAPS)).names == ["a", "b", "c", "e", "f"]
        await ask.fault(kind="compact")
        late = await ask("GET", MAPS, **{"continue": first.body["metadata"]["continue"]})
        assert (late.code, late.body["reason"]) == (410, "Expired")
        assert (await ask("GET", MAPS, **{"continue": "no token"})).code == 400

    against(test)


def test_a_list_at_an_exact_version_is_what_was_there() -> None:
    async def test(ask: Asking) -> None:
        versions = await made(ask, "a", "b", "c")
        await ask("DELETE", f"{MAPS}/a")
        exact = {"resourceVersion": versions[1], "resourceVersionMatch": "Exact"}
        assert (await ask("GET", MAPS, **exact)).names == ["a", "b"]
        assert (await ask("GET", MAPS, resourceVersion=versions[1])).names == ["b", "c"]
        ahead = await ask("GET", MAPS, resourceVersion=10_000)
        assert (ahead.code, ahead.headers["Retry-After"]) == (504, "1")
        await ask.fault(kind="compact")
        assert (await ask("GET", MAPS, **exact)).code == 410
        assert (await ask("GET", MAPS, resourceVersionMatch="Exact")).code == 422

    against(test)


def test_a_watch_goes_on_after_the_version_it_names() -> None:
    async def test(ask: Asking) -> None:
        versions = await made(ask, "a", "b")
        async with ask.watch(MAPS, resourceVersion=versions[0]) as events:
            assert await events.take(1) == [("ADDED", "b")]
            await ask.patch(f"{MAPS}/a", {"data": {"x": "1"}})
            await ask("DELETE", f"{MAPS}/a")
            assert await events.take(2) == [("MODIFIED", "a"), ("DELETED", "a")]
        async with ask.watch(MAPS) as events:
            assert await events.take(1) == [("ADDED", "b")]

    against(test)


def test_a_deleted_objects_last_event_has_the_version_of_its_deletion() -> None:
    async def test(ask: Asking) -> None:
        (version,) = await made(ask, "a")
        async with ask.watch(MAPS, resourceVersion=version) as events:
            await ask("DELETE", f"{MAPS}/a")
            last = await events.next()
        assert last is not None
        assert int(last[1]["metadata"]["resourceVersion"]) > int(version)

    against(test)


def test_a_watch_from_before_the_window_is_told_410_in_its_stream() -> None:
    async def test(ask: Asking) -> None:
        versions = await made(ask, *(f"m{n}" for n in range(6)))
        async with ask.watch(MAPS, resourceVersion=versions[0]) as events:
            event = await events.next()
            assert event is not None
            assert (event[0], event[1]["code"], event[1]["reason"]) == ("ERROR", 410, "Expired")
            assert await events.next() is None
        async with ask.watch(MAPS, resourceVersion=versions[-2]) as events:
            assert await events.take(1) == [("ADDED", "m5")]

    against(test, history=3)


def test_a_selection_sees_what_enters_it_and_what_leaves_it() -> None:
    async def test(ask: Asking) -> None:
        (version,) = await made(ask, "a", colour="blue")
        selected = {"labelSelector": "colour=red", "resourceVersion": version}
        async with ask.watch(MAPS, **selected) as events:
            for colour in ("red", "red", "blue", "red"):
                change = {"metadata": {"labels": {"colour": colour}}, "data": {"now": colour}}
                await ask.patch(f"{MAPS}/a", change)
                await ask.patch(f"{MAPS}/a", {"data": {"more": colour}})
            await ask("DELETE", f"{MAPS}/a")
            kinds = [kind for kind, _ in await events.take(6)]
        assert kinds == ["ADDED", "MODIFIED", "DELETED", "ADDED", "MODIFIED", "DELETED"]

    against(test)


def test_field_selectors_follow_phase_node_and_name() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", PODS, a_pod("a", nodeName="n1"))
        await ask("POST", PODS, a_pod("b"))
        for field, names in (
            ("spec.nodeName=n1", ["a"]),
            ("spec.nodeName=", ["b"]),
            ("metadata.name=b,status.phase=Pending", ["b"]),
            ("status.phase!=Pending", []),
        ):
            assert (await ask("GET", PODS, fieldSelector=field)).names == names
        assert (await ask("GET", PODS, fieldSelector="spec.colour=red")).code == 400
        version = (await ask("GET", PODS)).version
        running = {"fieldSelector": "status.phase=Running", "resourceVersion": version}
        async with ask.watch(PODS, **running) as events:
            await ask.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
            assert await events.take(1) == [("ADDED", "a")]

    against(test)


def test_bookmarks_bring_a_quiet_watch_forward() -> None:
    async def test(ask: Asking) -> None:
        (version,) = await made(ask, "a")
        asked = {"resourceVersion": version, "allowWatchBookmarks": "true"}
        async with ask.watch(MAPS, **asked) as events:
            await ask("POST", PODS, a_pod())
            event = await events.next()
            assert event is not None
            assert event[0] == "BOOKMARK"
            newest = event[1]["metadata"]["resourceVersion"]
        assert int(newest) > int(version)

    against(test, bookmark_s=0.05)


def test_initial_events_end_with_a_bookmark_that_says_so() -> None:
    async def test(ask: Asking) -> None:
        await made(ask, "a", "b")
        asked = {
            "sendInitialEvents": "true",
            "allowWatchBookmarks": "true",
            "resourceVersionMatch": "NotOlderThan",
        }
        async with ask.watch(MAPS, **asked) as events:
            assert await events.take(2) == [("ADDED", "a"), ("ADDED", "b")]
            event = await events.next()
            assert event is not None
            assert (event[0], event[1]["metadata"]["annotations"]) == ("BOOKMARK", TOLD)
        without = await ask("GET", MAPS, watch="true", sendInitialEvents="true")
        assert without.code == 422

    against(test)


def test_a_watch_ends_after_its_seconds() -> None:
    async def test(ask: Asking) -> None:
        async with ask.watch(MAPS, timeoutSeconds=1) as events:
            assert await events.next() is None

    against(test)


def test_every_watcher_gets_every_event_once_and_in_order() -> None:
    async def test(ask: Asking) -> None:
        version = (await ask("GET", MAPS)).version
        one = {"resourceVersion": version, "fieldSelector": "metadata.name=m3"}
        async with (
            ask.watch(MAPS, resourceVersion=version) as here,
            ask.watch("/api/v1/configmaps", resourceVersion=version) as everywhere,
            ask.watch(MAPS, **one) as pinned,
        ):
            expected = [("ADDED", f"m{n}") for n in range(200)]
            await made(ask, *(f"m{n}" for n in range(200)))
            assert await here.take(200) == expected
            assert await everywhere.take(200) == expected
            assert await pinned.take(1) == [("ADDED", "m3")]

    against(test)


def test_a_closed_watch_is_forgotten() -> None:
    async def test(ask: Asking) -> None:
        async with ask.watch(MAPS):
            assert len(ask.double.hub) == 1
        for _ in range(50):
            await ask("GET", MAPS)
            if not len(ask.double.hub):
                break
        assert len(ask.double.hub) == 0

    against(test)


@pytest.mark.parametrize("include", ["Metadata", "Object", "None"])
def test_a_table_has_a_row_for_each_object(include: str) -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", PODS, a_pod())
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        query = {"includeObject": include}
        async with ask.session.get(ask.url + PODS, headers=headers, params=query) as answer:
            table = await answer.json()
        assert table["kind"] == "Table"
        names = [column["name"] for column in table["columnDefinitions"]]
        cells = dict(zip(names, table["rows"][0]["cells"], strict=True))
        assert (cells["Name"], cells["Ready"], cells["Status"]) == ("p", "0/1", "Pending")
        shown = table["rows"][0].get("object", {}).get("kind")
        assert shown == {"Metadata": "PartialObjectMetadata", "Object": "Pod"}.get(include)

    against(test)
