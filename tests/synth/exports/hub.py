"""A stand-in of the Hugging Face hub's API, over real HTTP on this machine.

It has what the hub's own client calls to make a data set and put a folder into it: who one is, a
new repository, how each file is to be sent, files in a commit, and large ones by Git LFS. What was
sent is kept as it arrived.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml

TOKEN = "hf_" + "x" * 34


@dataclass
class Hub:
    large: tuple[str, ...] = (".parquet",)
    """Endings of files that go by LFS."""
    refuses: int | None = None
    """Status with which every commit is answered."""
    url: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """By name: the files by path."""
    private: set[str] = field(default_factory=set)
    objects: dict[str, bytes] = field(default_factory=dict)
    """Large files by the sha256 that their sender told."""
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub, listening on a free port until the block ends."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        self.hub.requests.append(format % args)

    def do_GET(self) -> None:
        if not self._known():
            return
        if self.path == "/api/whoami-v2":
            self._answer(200, {"type": "user", "name": "somebody", "auth": {}})
        else:
            self._answer(404, {"error": f"no {self.path} here"})

    def do_PUT(self) -> None:
        content = self._body()
        oid = self.path.rpartition("/")[2]
        if hashlib.sha256(content).hexdigest() == oid:
            self.hub.objects[oid] = content
            self._answer(200, {})
        else:
            self._answer(400, {"error": "the content is not what was told"})

    def do_POST(self) -> None:
        body = self._body()
        if not self._known():
            return
        path, hub = self.path.partition("?")[0], self.hub
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            assert asked["type"] == "dataset"
            url = f"{hub.url}/datasets/{name}"
            if name in hub.repositories:
                told = {"error": "You already created this dataset repo", "url": url}
                self._answer(409, told)
                return
            hub.repositories[name] = {}
            hub.private |= {name} if asked.get("visibility") == "private" else set()
            self._answer(200, {"url": url})
        elif path == "/api/validate-yaml":
            front = yaml.safe_load(json.loads(body)["content"].split("---\n")[1])
            self._answer(200, {"errors": [] if front else ["no front matter"], "warnings": []})
        elif "/preupload/" in path:
            files = [
                {
                    "path": one["path"],
                    "uploadMode": "lfs" if one["path"].endswith(hub.large) else "regular",
                    "shouldIgnore": False,
                }
                for one in json.loads(body)["files"]
            ]
            self._answer(200, {"files": files})
        elif path.endswith("/info/lfs/objects/batch"):
            objects = [
                {
                    "oid": one["oid"],
                    "size": one["size"],
                    "actions": {"upload": {"href": f"{hub.url}/objects/{one['oid']}"}},
                }
                for one in json.loads(body)["objects"]
            ]
            self._answer(200, {"transfer": "basic", "objects": objects})
        elif "/commit/" in path:
            self._commit(path, body)
        else:
            self._answer(404, {"error": f"no {path} here"})

    def _commit(self, path: str, body: bytes) -> None:
        if self.hub.refuses is not None:
            self._answer(self.hub.refuses, {"error": "You need to accept the terms first"})
            return
        name = path.removeprefix("/api/datasets/").partition("/commit/")[0]
        files = self.hub.repositories[name]
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
        url = f"{self.hub.url}/datasets/{name}/commit/{'a' * 40}"
        self._answer(200, {"commitUrl": url, "commitOid": "a" * 40})

    def _known(self) -> bool:
        if self.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        self._answer(401, {"error": "Invalid username or password."})
        return False

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
