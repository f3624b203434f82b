"""Archives that are more than they seem: a few kilobytes that unpack to millions of things.

They are put together of gzip members, each compressed once, so that making one takes no time.
"""

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

MEMBER = 8 << 20
"""Bytes that one gzip member of a bomb unpacks to."""


def header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def content(data: bytes) -> bytes:
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def packed_tar(files: Mapping[str, bytes], *more: bytes) -> bytes:
    """A .tar.gz of these files, with blocks of one's own at the end."""
    blocks = [header(name, len(data)) + content(data) for name, data in files.items()]
    return gzip.compress(b"".join([*blocks, *more, bytes(1024)]))


@cache
def zeros() -> bytes:
    return gzip.compress(bytes(MEMBER))


def of_zeros(first: bytes, size: int) -> Iterator[bytes]:
    yield gzip.compress(first)
    for _ in range(size // MEMBER):
        yield zeros()


def large_file() -> Iterator[bytes]:
    """10 GB."""
    yield from of_zeros(header("p-1/a.txt", 10 << 30), 10 << 30)


def many_small_files() -> Iterator[bytes]:
    """Texts of 190 kB, a hundred thousand of them."""
    text = gzip.compress(header("p-1/a.txt", 190_000) + content(b" " * 190_000))
    for _ in range(1000):
        yield text * 100


def many_entries() -> Iterator[bytes]:
    """A million empty folders."""
    folders = b"".join(header(f"p-1/{n}", kind=tarfile.DIRTYPE) for n in range(1000))
    yield gzip.compress(folders) * 1000


def many_files() -> Iterator[bytes]:
    """Five thousand empty ones, each by its own name."""
    yield gzip.compress(b"".join(header(f"p-1/{n}") for n in range(5000)))


def pax_header() -> Iterator[bytes]:
    """2 GB of what describes one file."""
    yield from of_zeros(header("p-1/a", 2 << 30, tarfile.XHDTYPE), 2 << 30)


def pax_of_records() -> Iterator[bytes]:
    """As many settings of one file as there is room for."""
    records = b"".join(b"19 comment%04d=abc\n" % (n % 10_000) for n in range(400_000))
    yield gzip.compress(header("p-1/a", 20 * len(records), tarfile.XHDTYPE))
    yield gzip.compress(records) * 20


def long_name() -> Iterator[bytes]:
    """A name of 2 GB."""
    yield from of_zeros(header("././@LongLink", 2 << 30, tarfile.GNUTYPE_LONGNAME), 2 << 30)


def name_of_100_kb() -> Iterator[bytes]:
    name = b"p-1/" + b"x" * 100_000 + b"\0"
    yield gzip.compress(
        header("././@LongLink", len(name), tarfile.GNUTYPE_LONGNAME)
        + content(name)
        + header("p-1/x")
        + bytes(1024)
    )


def deep_path() -> Iterator[bytes]:
    yield packed_tar({"p-1/" + "d/" * 40_000 + "a.py": b""})


def sparse_map() -> Iterator[bytes]:
    """A sparse file whose map says that it has a thousand million parts."""
    numbers = content(b"1000000000\n" + b"0\n" * 2_000_000)
    records = b""
    for key, value in {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}.items():
        line = f" {key}={value}\n".encode()
        records += str(len(line) + 2).encode() + line
    first = header("p-1/x", len(records), tarfile.XHDTYPE) + content(records)
    yield gzip.compress(first + header("p-1/a", 1 << 30)) + gzip.compress(numbers) * 2


def cut_off() -> Iterator[bytes]:
    yield packed_tar({"p-1/a.py": bytes(range(256)) * 500})[:300]


def no_archive() -> Iterator[bytes]:
    yield gzip.compress(b"this is no archive" * 100)


def no_gzip() -> Iterator[bytes]:
    yield b"this is no gzip file" * 100


def negative_size() -> Iterator[bytes]:
    line = b"22 size=-1000000000000\n"
    yield packed_tar(
        {}, header("p-1/x", len(line), tarfile.XHDTYPE), content(line), header("p-1/a")
    )


BOMBS: dict[Callable[[], Iterator[bytes]], str] = {
    large_file: "unpacks to more than 300000000 bytes",
    many_small_files: "it has more than 2000 files or 8000000 bytes",
    many_entries: "it has more than 50000 entries",
    many_files: "it has more than 2000 files",
    pax_header: "takes more than [0-9]+ bytes of memory",
    pax_of_records: "takes more than [0-9]+ bytes of memory",
    long_name: "takes more than [0-9]+ bytes of memory",
    name_of_100_kb: "a path is too long or too deep",
    deep_path: "a path is too long or too deep",
    sparse_map: "it cannot be read",
    cut_off: "it cannot be read",
    no_archive: "it cannot be read",
    no_gzip: "it cannot be read",
    negative_size: "it cannot be read",
}
"""What makes an archive -> a pattern of what is said of it."""


def written(make: Callable[[], Iterator[bytes]], path: Path) -> Path:
    with path.open("wb") as out:
        out.writelines(make())
    return path


def honest_archive(files: Mapping[str, str], path: Path) -> Path:
    """A source distribution, with what is left out beside the files: links, a device, a picture,
    paths that lead out of it, a sparse file."""
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"shop-1.0/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        for name, kind in {
            "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "device": tarfile.CHRTYPE,
            "pipe": tarfile.FIFOTYPE,
        }.items():  # fmt: skip
            info = tarfile.TarInfo(f"shop-1.0/{name}")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        for name in ("shop-1.0/../../outside.py", "/outside.py", "shop-1.0//a.py", "a\nb"):
            tar.addfile(tarfile.TarInfo(name))
        picture = tarfile.TarInfo("shop-1.0/picture.png")
        picture.size = 2
        tar.addfile(picture, io.BytesIO(b"\x89\xff"))
    return path
