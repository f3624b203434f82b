"""Files that hold texts or rows: where they are found, and how each is opened.

A path of this machine, a folder, a pattern such as `data/*.jsonl.zst`, or an address that `fsspec`
knows. Compressed files are decompressed as they are read.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow as pa

from records.errors import ConfigError

FORMATS = (".parquet", ".jsonl", ".txt", ".md")

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def formats_said(formats: Sequence[str] = FORMATS) -> str:
    """What is read, for people."""
    return f"{', '.join(formats)} file (lines and text may end in {' or '.join(COMPRESSIONS)})"


BUFFER_BYTES = 1 << 16
REMOTE_BUFFER_BYTES = 1 << 20

BATCH_ROWS = 64
"""Of Parquet, read together; some texts are large."""

PAGES_BYTES = 1 << 20
"""Of a column, read ahead: without a bound Parquet reads a row group's column as a whole, and there
are files of several gigabytes that are one row group."""

REMOTE_REACH = 1 << 23
"""Bytes that are rather read than asked for anew, of a file elsewhere."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")


def is_remote(path: str) -> bool:
    """Whether `fsspec` is to open it: an address, were it of this machine (`file://`)."""
    return _ADDRESS.match(path) is not None


@dataclass(frozen=True, slots=True)
class StoredFile:
    path: str
    name: str
    """Its last part, for people."""
    format: str
    """The end of its name that says how to read it, such as one of `FORMATS`."""
    compression: str | None
    system: Any = None
    """The file system of `fsspec` that has it; None: this machine."""
    has_ranges: bool = True
    """Whether who has it gives parts of it; many web servers give it whole."""

    @property
    def reach(self) -> int:
        """As `RowReader.reach`, in bytes."""
        return BUFFER_BYTES if self.system is None else REMOTE_REACH

    def begin(self, place: int) -> int:
        """As `RowReader.begin`: a compressed file begins at its beginning."""
        return 0 if self.compression or not self.has_ranges else place

    @property
    def size(self) -> int | None:
        """In bytes, as it is stored; None for a file elsewhere."""
        return Path(self.path).stat().st_size if self.system is None else None

    def unpacked(self, raw: BinaryIO, start: int) -> BinaryIO:
        """What `raw` gives, decompressed, from `start` on."""
        data = raw
        if self.compression:
            native = pa.CompressedInputStream(pa.PythonFile(raw, "r"), self.compression)
            data = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, native), BUFFER_BYTES))
        if start and data.seekable():
            data.seek(start)
            return data
        while start and (passed := data.read(min(start, REMOTE_BUFFER_BYTES))):
            start -= len(passed)
        return data

    @contextmanager
    def raw(self) -> Iterator[BinaryIO]:
        """Its bytes as they are stored."""
        if self.system is None:
            with Path(self.path).open("rb", buffering=BUFFER_BYTES) as data:
                yield data
        else:
            with self.system.open(self.path, "rb") as data:
                yield cast(BinaryIO, io.BufferedReader(data, REMOTE_BUFFER_BYTES))


def exists(path: str) -> bool:
    """Whether something of this machine lies there, or a pattern finds something."""
    return Path(path).exists() or (has_magic(path) and bool(_matches(path)))


def stored_files(
    path: str, *, setting: str = "sources.path", formats: Sequence[str] = FORMATS
) -> list[StoredFile]:
    """Every file of the formats at a path, in the order of their names. ConfigError for none."""
    what = f"{setting} = {path!r}"
    found = _remote_files(path, what, formats) if is_remote(path) else _local_files(path, formats)
    if not found:
        raise ConfigError(f"{what} holds no {formats_said(formats)}")
    return found


def _matches(pattern: str) -> list[Path]:
    # `Path.glob` takes no absolute pattern
    return [Path(one) for one in glob(pattern, recursive=True)]  # noqa: PTH207


def _local_files(path: str, formats: Sequence[str]) -> list[StoredFile]:
    root = Path(path)
    if root.is_dir():
        paths = list(root.rglob("*"))
    elif root.exists():
        paths = [root]
    else:
        paths = _matches(path)
    files = (_stored(str(p), p.name, formats) for p in sorted(paths) if p.is_file())
    return [file for file in files if file is not None]


def _remote_files(path: str, what: str, formats: Sequence[str]) -> list[StoredFile]:
    system, root = _system_of(path, what)
    try:
        if has_magic(root):
            paths = system.glob(root)
        elif _format_of(_last_part(root), formats) is not None:
            paths = [root]
        else:
            paths = system.find(root)
        files = [_stored(one, _last_part(one), formats, system) for one in sorted(paths)]
    except Exception as error:  # each file system raises what its library does
        raise ConfigError(f"{what} cannot be listed: {error}") from error
    return [file for file in files if file is not None]


def _system_of(path: str, what: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs  # takes 0.1 s, and most sources are here

    try:
        return url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"{what} cannot be opened: {error}. Addresses are opened by fsspec, "
            "and each kind has a package of its own: s3:// s3fs, gs:// gcsfs, az:// adlfs, "
            "hf:// huggingface_hub; install it beside this program"
        ) from error


def _stored(path: str, name: str, formats: Sequence[str], system: Any = None) -> StoredFile | None:
    kind = _format_of(name, formats)
    if kind is None:
        return None
    has_ranges = True
    if system is not None and "https" in system.protocol:
        has_ranges = system.info(path).get("partial", False)
    return StoredFile(path, name, *kind, system, has_ranges)


def _format_of(name: str, formats: Sequence[str]) -> tuple[str, str | None] | None:
    """(format, compression) by the end of a file's name; None for a file of another kind."""
    compression = COMPRESSIONS.get(PurePosixPath(name).suffix)
    kind = PurePosixPath(name.rpartition(".")[0] if compression else name).suffix
    if kind not in formats or (compression and kind == ".parquet"):
        return None
    return kind, compression


def _last_part(path: str) -> str:
    """Of an address, without what is asked of its server."""
    plain = path.partition("?")[0] if path.startswith("http") else path
    return PurePosixPath(plain).name
