"""Repositories of strangers: read in a sandbox, whatever their settings ask for."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from records.errors import ConfigError
from sandboxes.code import file_records, reading
from sandboxes.code.reading import files_of_git
from sandboxes.local.users import apart
from tests.sandboxes.code.code_cases import project
from tests.sandboxes.code.hostile_repositories import (
    RUN_BY_ARCHIVE,
    RUN_BY_OTHERS,
    Way,
    git,
    hostile_repository,
    plain_files,
    repository,
)

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("sandboxed"),
]


def read(folder: Path, revision: str = "HEAD") -> dict[str, str]:
    return asyncio.run(files_of_git(folder, revision))


@pytest.mark.parametrize("name", RUN_BY_ARCHIVE | RUN_BY_OTHERS)
def test_settings_of_a_repository_run_nothing_on_the_host(name: str, tmp_path: Path) -> None:
    way: Way = (RUN_BY_ARCHIVE | RUN_BY_OTHERS)[name]
    trace = tmp_path / "trace"
    folder = hostile_repository(tmp_path / "r", way, trace)
    if name in RUN_BY_ARCHIVE:  # the control: git on the host runs it
        archive = ["git", "-C", str(folder), "archive", "--format=tar", "HEAD"]
        subprocess.run(archive, capture_output=True, check=False)
        assert trace.read_text() == "ran\n"
        trace.unlink()
    if way.lacks_object:
        with pytest.raises(ConfigError, match=r"cannot read HEAD of .*: git cannot read all of it"):
            read(folder)
    else:
        assert read(folder)["secret.txt"] == "$Format:%G?$\n"
    assert not trace.exists()


def test_honest_repositories_give_what_their_objects_hold(tmp_path: Path) -> None:
    odd = {"lines.txt": "a\r\nb\n", "empty": "", "deep/er/x y\u00e4.txt": "\u20ac\n", "-n": "x"}
    folder = repository(tmp_path / "r", project().files | odd | {"large.txt": "x" * 300_000})
    (folder / "picture.png").write_bytes(b"\x89\xff")
    (folder / "link").symlink_to("lines.txt")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / ".gitattributes").write_text(
        "*.txt text eol=crlf export-ignore\nempty export-subst\n"
    )
    git(folder, "-c", "core.autocrlf=false", "add", ".")
    git(folder, "commit", "-qm", "second")
    expected = {p: t for p, t in plain_files(folder).items() if len(t) < 200_000}
    assert expected.keys() >= {*project().files, *odd, "run.sh"} - {"lines.txt"}
    assert read(folder) == expected
    assert read(folder, "HEAD~1") == {
        p: t for p, t in plain_files(folder, "HEAD~1").items() if len(t) < 200_000
    }
    git(folder, "gc", "-q")  # packed objects and references
    git(folder, "tag", "-am", "x", "v1")
    for revision in ("v1", branch(folder), git(folder, "rev-parse", "HEAD").decode().strip()):
        assert read(folder, revision) == expected


def branch(folder: Path) -> str:
    return git(folder, "branch", "--show-current").decode().strip()


def test_other_shapes_of_repositories(tmp_path: Path) -> None:
    files = {"top.py": "", "below/shop/a.py": "x = 1\n", "below/tests/test_a.py": ""}
    folder = repository(tmp_path / "r", files)
    assert read(folder / "below") == {"shop/a.py": "x = 1\n", "tests/test_a.py": ""}
    (folder / "fresh").mkdir()
    with pytest.raises(ConfigError, match="'HEAD' has no folder 'fresh'"):
        read(folder / "fresh")
    for name, options in {"bare": ["--bare"], "shallow": ["--depth=1"]}.items():
        git(tmp_path, "clone", "-q", *options, f"file://{folder}", name)
        assert read(tmp_path / name) == files
    git(tmp_path, "init", "-q", "--object-format=sha256", "sha256")
    (tmp_path / "sha256" / "a.py").write_text("x = 2\n")
    git(tmp_path / "sha256", "add", ".")
    git(tmp_path / "sha256", "commit", "-qm", "first")
    assert read(tmp_path / "sha256") == {"a.py": "x = 2\n"}


def test_repositories_whose_objects_lie_elsewhere_are_refused(tmp_path: Path) -> None:
    private = repository(tmp_path / "private", {"key": "the user's own"})
    git(private, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(tmp_path, "clone", "-q", "--shared", str(private), "shared")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").symlink_to(private / ".git")
    (tmp_path / "pointing").mkdir()
    (tmp_path / "pointing" / ".git").write_text(f"gitdir: {private}/.git\n")
    for name in ("tree", "linked", "pointing"):
        with pytest.raises(ConfigError, match="leads to a repository elsewhere"):
            read(tmp_path / name)
    with pytest.raises(ConfigError, match="borrows objects of another repository"):
        read(tmp_path / "shared")
    objects = tmp_path / "objects"  # the objects themselves are a link
    repository(objects, {"a": ""})
    shutil.rmtree(objects / ".git" / "objects")
    (objects / ".git" / "objects").symlink_to(private / ".git" / "objects")
    head = git(private, "rev-parse", "HEAD").decode()
    (objects / ".git" / "refs" / "heads" / branch(objects)).write_text(head)
    assert plain_files(objects) == {"key": "the user's own"}  # the control
    with pytest.raises(ConfigError, match="cannot read HEAD"):
        read(objects)


def test_what_is_no_repository_is_told(tmp_path: Path) -> None:
    folder = repository(tmp_path / "r", {"a": ""})
    with pytest.raises(ConfigError, match="has no revision 'nowhere'"):
        read(folder, "nowhere")
    for option in ("--output=stolen", "-v", "", "HEAD main", "HEAD:a"):
        with pytest.raises(ConfigError, match=r"a revision is a branch, .*; got "):
            read(folder, option)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is no git repository"):
        read(tmp_path / "empty")
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(ConfigError, match="has no revision 'HEAD'"):
        read(tmp_path / "empty")
    with pytest.raises(ConfigError, match="cannot read"):
        read(tmp_path / "nowhere")
    name = git(folder, "rev-parse", "HEAD:a").decode().strip()
    broken = folder / ".git" / "objects" / name[:2] / name[2:]
    broken.chmod(0o644)
    broken.write_bytes(b"no object")
    with pytest.raises(ConfigError, match=r"cannot read HEAD of .*: git cannot read all of it"):
        read(folder)


def test_a_git_that_is_not_there_or_has_no_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "r", {"a": ""})
    with monkeypatch.context() as patch:
        without = tmp_path / "without_git.py"
        text = file_records.PROGRAM.read_text()
        without.write_text(text.replace('"/usr/local/bin:/usr/bin:/bin"', '"/nowhere"'))
        patch.setattr(file_records, "PROGRAM", without)
        with pytest.raises(ConfigError, match="no program git is installed"):
            read(folder)
    short = reading.LIMITS.model_copy(update={"timeout_s": 0.01})
    monkeypatch.setattr(reading, "LIMITS", short)
    with pytest.raises(ConfigError, match=r"cannot read HEAD of .* within 0.01 s"):
        read(folder)


@pytest.mark.skipif(apart() is not None, reason="sandboxes here run as the caller")
def test_a_repository_that_is_closed_to_the_users_of_sandboxes_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "r", project().files)
    os.mkfifo(folder / ".git" / "objects" / "pipe")  # opened, it would hold everything up
    before = {path: path.lstat().st_mode for path in folder.rglob("*")}
    subprocess.run(["chmod", "-R", "go-rwx", str(folder)], check=True)
    assert read(folder) == project().files
    assert all(path.lstat().st_mode & 0o077 == 0 for path in before)  # nothing was opened to others
    monkeypatch.setattr(reading, "MAX_COPY", 1_000)
    with pytest.raises(ConfigError, match=r"closed to other users, and its [0-9]+ bytes"):
        read(folder)
