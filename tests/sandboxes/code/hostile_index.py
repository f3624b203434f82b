"""A package index of this machine whose packages are more than they seem."""

import base64
import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


def wheel(name: str, files: Mapping[str, bytes], *, needs: tuple[str, ...] = ()) -> bytes:
    """A wheel of version 1.0, every file in its RECORD."""
    info = f"{name}-1.0.dist-info"
    needed = "".join(f"Requires-Dist: {need}\n" for need in needs)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needed}"
    files = {
        **files,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, data in files.items():
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={found},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return buffer.getvalue()


def zip64(data: bytes) -> bytes:
    """The archive with a zip64 end that names a directory beyond all that it holds."""
    end = data.rindex(b"PK\5\6")
    record = struct.pack(
        "<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1 << 40, 1 << 40, 1 << 62, 1 << 62
    )
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    return data[:end] + record + locator + data[end:]


def source(name: str, setup: str, files: Mapping[str, bytes] = {}) -> bytes:
    """A source distribution of version 1.0, whose setup.py is what building it would run."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
        for path, data in {"setup.py": setup.encode(), "PKG-INFO": metadata, **files}.items():
            member = tarfile.TarInfo(f"{name}-1.0/{path}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


class ServedIndex:
    """`url` of the index; `packages` are what it has, by file name. Where it wants a `login`, that
    is the header Authorization."""

    def __init__(self, url: str) -> None:
        self.url, self.packages, self.asked = url, dict[str, bytes](), list[str]()
        self.login: str | None = None

    def answer(self, path: str) -> bytes | None:
        self.asked.append(path)
        last = path.rstrip("/").rpartition("/")[2]
        if last in self.packages:
            return self.packages[last]
        links = [f'<a href="/files/{file}">{file}</a>' for file in self.packages
                 if file.partition("-")[0].replace("_", "-") == last]  # fmt: skip
        return "".join(links).encode() if links else None


@contextmanager
def serve_index() -> Iterator[ServedIndex]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = index.login in (None, self.headers.get("Authorization"))
            data = index.answer(self.path) if allowed else None
            self.send_response(401 if not allowed else 404 if data is None else 200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index = ServedIndex(f"http://127.0.0.1:{server.server_address[1]}/simple")
        Thread(target=server.serve_forever, daemon=True).start()
        yield index
        server.shutdown()
