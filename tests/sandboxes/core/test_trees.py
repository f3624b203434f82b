"""A copy of a tree leads nowhere else, and a tree can be removed whatever its modes are."""

import os
import socket
from pathlib import Path

import pytest

from sandboxes.core import trees


def test_links_and_special_files_lead_nowhere_in_a_copy(tmp_path: Path) -> None:
    source, target, outside = tmp_path / "source", tmp_path / "target", tmp_path / "outside"
    for folder in (source, target, outside):
        folder.mkdir()
    (outside / "secret").write_text("secret")
    (source / "folder").symlink_to(outside)
    (source / "file").symlink_to(outside / "secret")
    os.mkfifo(source / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(source / "socket"))
    copy = trees.Copy(limit=1 << 20)
    with trees.folder(str(source)) as from_fd, trees.folder(str(target)) as to_fd:
        copy.contents(from_fd, to_fd)
        assert copy.left_out == ["fifo", "socket"]
        assert {path.name: path.is_symlink() for path in target.iterdir()} == {
            "folder": True,
            "file": True,
        }
        (target / "swapped").symlink_to(outside)
        with (
            pytest.raises(OSError, match=r"Not a directory|symbolic links"),
            trees.folder("swapped", to_fd),
        ):
            pass


def test_a_tree_with_closed_folders_is_removed_and_links_out_of_it_are_not_followed(
    tmp_path: Path,
) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "shut/deeper").mkdir(parents=True)
    (tree / "shut/deeper/file").write_text("text")
    outside.mkdir(mode=0o500)
    (tree / "shut/link").symlink_to(outside)
    (tree / "shut/deeper").chmod(0o000)
    (tree / "shut").chmod(0o500)
    trees.remove(tree)
    assert not tree.exists()
    assert outside.stat().st_mode & 0o777 == 0o500
