"""Repositories whose own settings make git run a program, and how git is led to it.

The program of each leaves a file on the host, no more. `git archive`, run on the host, runs those
of `RUN_BY_ARCHIVE`; the others belong to other commands of git.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

LACKING = """[core]
repositoryformatversion = 1
[extensions]
partialClone = o
[remote "o"]
promisor = true
"""
"""Objects that are not there are to be fetched from a remote, by whatever reaches it."""

SMUDGE = '[filter "x"]\nsmudge = @/program; cat\n'


class Way(NamedTuple):
    """In settings and files, `@` stands for the repository's `.git`, whose `program` is hostile."""

    settings: str
    attributes: str = ""
    """A committed .gitattributes."""
    files: Mapping[str, str] = {}  # a read-only default
    """Files of `.git`."""
    lacks_object: bool = False


RUN_BY_ARCHIVE = {
    "smudge filter": Way(SMUDGE, "* filter=x\n"),
    "process filter": Way('[filter "x"]\nprocess = @/program\n', "* filter=x\n"),
    "filter by info/attributes": Way(SMUDGE, files={"info/attributes": "* filter=x\n"}),
    "filter by core.attributesFile": Way(
        f"[core]\nattributesFile = @/own\n{SMUDGE}", files={"own": "* filter=x\n"}
    ),
    "include.path": Way("[include]\npath = more\n", "* filter=x\n", {"more": SMUDGE}),
    "includeIf": Way('[includeIf "gitdir:**"]\npath = more\n', "* filter=x\n", {"more": SMUDGE}),
    "config.worktree": Way(
        "[core]\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n",
        "* filter=x\n",
        {"config.worktree": SMUDGE},
    ),
    "core.sshCommand": Way(
        f"{LACKING}url = ssh://host.invalid/x\n[core]\nsshCommand = @/program\n", lacks_object=True
    ),
    "core.gitProxy": Way(
        f"{LACKING}url = git://host.invalid/x\n[core]\ngitProxy = @/program\n", lacks_object=True
    ),
    "remote.uploadpack": Way(f"{LACKING}url = .\nuploadpack = @/program\n", lacks_object=True),
    "a remote by ext": Way(
        f'{LACKING}url = ext::@/program x\n[protocol "ext"]\nallow = always\n', lacks_object=True
    ),
    "url.insteadOf": Way(
        f'{LACKING}url = https://host.invalid\n[protocol "ext"]\nallow = always\n'
        '[url "ext::@/program "]\ninsteadOf = https://\n',
        lacks_object=True,
    ),
}

RUN_BY_OTHERS = {
    "core.fsmonitor": Way("[core]\nfsmonitor = @/program\n"),
    "textconv": Way('[diff "x"]\ntextconv = @/program\n', "* diff=x\n"),
    "diff.external": Way("[diff]\nexternal = @/program\n"),
    "core.hooksPath": Way("[core]\nhooksPath = @\n"),
    "core.pager": Way("[core]\npager = @/program\n"),
    "gpg.program": Way("[gpg]\nprogram = @/program\n", "* export-subst\n"),
}


def git(folder: Path, *arguments: str, standard_input: bytes = b"") -> bytes:
    own = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    return subprocess.run(
        ["git", *own, *arguments], cwd=folder, check=True, capture_output=True, input=standard_input
    ).stdout


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A new repository with one commit of these files."""
    folder.mkdir(parents=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def hostile_repository(folder: Path, way: Way, trace: Path) -> Path:
    """With a file `secret.txt`; `trace` is what the hostile program would write."""
    files = {"secret.txt": "$Format:%G?$\n"}
    repository(folder, files | ({".gitattributes": way.attributes} if way.attributes else {}))
    own = folder / ".git"
    if way.lacks_object:
        name = git(folder, "rev-parse", "HEAD:secret.txt").decode().strip()
        (own / "objects" / name[:2] / name[2:]).unlink()
    for program in ("program", "post-checkout", "post-index-change", "reference-transaction"):
        (own / program).write_text(f"#!/bin/sh\necho ran > '{trace}'\nexit 1\n")
        (own / program).chmod(0o755)
    for path, text in way.files.items():
        (own / path).parent.mkdir(exist_ok=True)
        (own / path).write_text(text.replace("@", str(own)))
    with (own / "config").open("a") as settings:
        settings.write(way.settings.replace("@", str(own)))
    return folder


def plain_files(folder: Path, revision: str = "HEAD") -> dict[str, str]:
    """The text files of a commit, each object of it read by itself."""
    found = {}
    for line in git(folder, "ls-tree", "-r", "-z", revision).decode().split("\0")[:-1]:
        head, _, path = line.partition("\t")
        mode, kind, name = head.split()
        if kind == "blob" and mode != "120000":
            try:
                found[path] = git(folder, "cat-file", "blob", name).decode()
            except UnicodeDecodeError:
                continue
    return found
