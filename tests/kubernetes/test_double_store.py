"""History adds up: from any version that is kept, what was there then and the events since make
what is there now, for everybody who watches and for every selection."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.kinds import Kinds
from tests.kubernetes.double.selectors import Selector, parse_labels
from tests.kubernetes.double.store import Store
from tests.kubernetes.double.watching import Hub, Watcher
from tests.kubernetes.doubled import a_map

NAMES = st.sampled_from(["a", "b", "c"])
COLOURS = st.sampled_from(["red", "blue", ""])
WRITES = st.lists(st.tuples(st.sampled_from(["put", "delete"]), NAMES, COLOURS), max_size=15)
SELECTORS = st.sampled_from(["", "colour=red", "colour!=red", "colour", "colour notin (blue)"])
MAPS = ("", "configmaps")


class Writer:
    """A cluster of config maps, written to as the lists of writes say."""

    def __init__(self, window: int) -> None:
        self.store = Store(window=window)
        self.cluster = Cluster(self.store, Kinds())
        self.hub = Hub(self.store)
        self.cluster.begin()
        self.kind = self.cluster.kinds.at(MAPS)
        self.states: dict[int, dict[str, str]] = {self.store.version: {}}

    def write(self, act: str, name: str, colour: str) -> None:
        labels = {"colour": colour} if colour else {}
        there = self.store.get(MAPS, ("default", name)) is not None
        if act == "delete" and there:
            self.cluster.delete(self.kind, "default", name)
        elif act == "put" and there:
            self.cluster.change(
                *(self.kind, "default", name),
                lambda old: {**old, "metadata": {**old["metadata"], "labels": labels}},
            )
        elif act == "put":
            self.cluster.create(self.kind, "default", a_map(name, labels))
        self.states[self.store.version] = self.listed("")

    def listed(self, selector: str) -> dict[str, str]:
        """Name -> version of what a selector takes now."""
        chosen = Selector(parse_labels(selector))
        return {
            entry.key[1]: str(entry.version)
            for entry in self.store.entries_of(MAPS)
            if chosen.takes(entry.labels, entry.fields)
        }


def followed(state: dict[str, str], lines: list[bytes]) -> dict[str, str]:
    """What a client holds that had `state` and reads these events."""
    held = dict(state)
    for line in lines:
        event: dict[str, Any] = json.loads(line)
        name = event["object"]["metadata"]["name"]
        version = event["object"]["metadata"]["resourceVersion"]
        if event["type"] == "DELETED":
            assert name in held, "nothing is deleted that was not there"
            del held[name]
        else:
            assert (name in held) is (event["type"] == "MODIFIED")
            held[name] = version
    return held


@given(WRITES, SELECTORS, st.integers(1, 20))
def test_a_list_and_the_events_since_make_what_is_there(
    writes: list[tuple[str, str, str]], text: str, window: int
) -> None:
    writer = Writer(window)
    selector = Selector(parse_labels(text))
    for write in writes:
        writer.write(*write)
    bucket = writer.store.bucket(MAPS)
    for version, state in writer.states.items():
        if version < bucket.compacted:
            continue
        then = bucket.at_version(version)
        assert {key[1]: str(entry.version) for key, entry in then.items()} == state
        watcher = Watcher(writer.kind, "default", selector)
        for event in bucket.since(version):
            watcher.offer(event)
        start = {
            k[1]: str(e.version) for k, e in then.items() if selector.takes(e.labels, e.fields)
        }
        assert followed(start, watcher.taken()) == writer.listed(text)


@given(WRITES, SELECTORS)
def test_all_who_watch_live_see_the_same(writes: list[tuple[str, str, str]], text: str) -> None:
    writer = Writer(100)
    selector = Selector(parse_labels(text))
    watchers = [Watcher(writer.kind, namespace, selector) for namespace in ("default", None)]
    for watcher in watchers:
        writer.hub.add(watcher)
    for write in writes:
        writer.write(*write)
    for watcher in watchers:
        assert followed({}, watcher.taken()) == writer.listed(text)
