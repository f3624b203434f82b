"""Entries of a registry: both forms, and what can be done with each."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_specs.importing.registry_entries import read_entry, read_page

ENTRY: dict[str, Any] = {
    "server": {
        "name": "com.example/shop",
        "description": "Orders.\x1b[8m",
        "version": "1.2.0",
        "repository": {"url": "https://code.example/shop", "source": "git"},
        "remotes": [{"type": "streamable-http", "url": "https://Shop.example/mcp"}],
        "packages": [{"registryType": "npm", "identifier": "@a/shop", "version": "1.2.0"}],
        "_meta": {
            "io.modelcontextprotocol.registry/publisher-provided": {"license": "mit license"}
        },
    },
    "_meta": {
        "io.modelcontextprotocol.registry/official": {"status": "active", "isLatest": True}
    },
}  # fmt: skip
FIRST_FORM: dict[str, Any] = {
    "name": "com.example/shop",
    "description": "Orders.",
    "status": "deprecated",
    "repository": {"url": "https://code.example/shop"},
    "version_detail": {"version": "0.9.0", "is_latest": False},
    "packages": [{"registry_name": "pypi", "name": "shop", "version": "0.9.0"}],
    "remotes": [{"transport_type": "sse", "url": "https://shop.example/sse"}],
}


def test_todays_form() -> None:
    entry = read_entry(ENTRY)
    assert entry is not None
    assert (entry.name, entry.version, entry.status) == ("com.example/shop", "1.2.0", "active")
    assert (entry.license, entry.is_latest) == ("MIT", True)
    assert entry.description == "Orders. [8m"
    assert entry.packages == ("npm:@a/shop@1.2.0",)
    assert entry.remotes == (("https://Shop.example/mcp", "shop.example", None),)


def test_the_first_form() -> None:
    entry = read_entry(FIRST_FORM)
    assert entry is not None
    assert (entry.version, entry.status, entry.is_latest) == ("0.9.0", "deprecated", False)
    assert entry.packages == ("pypi:shop@0.9.0",)
    assert [remote.fault for remote in entry.remotes] == ["sse_only"]


@pytest.mark.parametrize(
    ("remote", "fault"),
    [
        ({"url": "https://a.example/mcp"}, None),
        ({"url": "https://a.example/mcp", "headers": [{"name": "X-Trace"}]}, None),
        ({"url": "https://a.example/", "headers": [{"isRequired": True}]}, "needs_secret"),
        ({"url": "https://{tenant}.example/mcp"}, "needs_variables"),
        ({"url": "https://a.example/mcp", "type": "sse"}, "sse_only"),
        ({"url": "file:///etc/passwd"}, "bad_url"),
        ({"url": "https://u:p@a.example/"}, "bad_url"),
        ({"url": "https://a.example:port/"}, "bad_url"),
        ({"url": "http://[::1"}, "bad_url"),
        ({"url": f"https://a.example/{'x' * 482}"}, None),
        ({"url": f"https://a.example/{'x' * 483}"}, "bad_url"),
        ({"url": "https://a.example/\x1bmcp"}, "bad_url"),
        ({}, "bad_url"),
    ],
)
def test_which_remotes_can_be_asked(remote: dict[str, Any], fault: str | None) -> None:
    server = ENTRY["server"] | {"remotes": [remote]}
    entry = read_entry({"server": server})
    assert entry is not None
    assert entry.remotes[0].fault == fault


@pytest.mark.parametrize("cursor", ["nextCursor", "next_cursor"])
def test_pages_have_a_cursor_or_are_the_last(cursor: str) -> None:
    servers = [ENTRY, {"server": {"name": "no slash"}}]
    page = read_page({"servers": servers, "metadata": {cursor: "c"}})
    assert page is not None
    assert page.cursor == "c"
    assert [entry and entry.name for entry in page.entries] == ["com.example/shop", None]
    last = read_page({"servers": []})
    assert last is not None
    assert last.cursor is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["servers", "server", "name", "remotes", "url", "_meta", "packages"]),
            inner,
            max_size=4,
        )
    ),
)


@given(ANYTHING)
def test_whatever_a_registry_answers_is_read_or_refused(answer: Any) -> None:
    page = read_page(answer)
    assert page is None or all(entry is None or entry.name for entry in page.entries)
    entry = read_entry({"server": {"name": "a/b"} | (answer if isinstance(answer, dict) else {})})
    assert entry is None or entry.name
