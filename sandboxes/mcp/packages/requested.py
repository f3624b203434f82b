"""The packages that a server runs from, as its definition asks for them and as they were taken."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from records.config import Config

PackageKind = Literal["python", "node"]

LOCKED = (
    r"^(@[\w.~-]+/)?[\w.~-]+(==|@)[\w.!+~-]+ (sha256:[0-9a-f]{64}|sha(1|256|384|512)-[\w+/=]+|-)$"
)
"""`NAME==VERSION sha256:HASH` of a wheel, `NAME@VERSION sha512-HASH` of a Node package."""

LockedPackage = Annotated[str, Field(pattern=LOCKED, max_length=500)]


class ServerPackages(Config):
    """They are installed before the server starts, by `sandboxes.installing`, and kept."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"requirements", "own_program"})

    kind: PackageKind
    requirements: tuple[str, ...] = Field(min_length=1)
    """As pip or npm read them, the one that the program is of first."""

    own_program: bool = False
    """Whether the command is the program that the first package names after itself, or its only
    one; else it is a program of any of them."""

    locked: tuple[LockedPackage, ...] = ()
    """Everything that was installed for them, in order; what the server is then told apart by.
    Empty until it is."""

    @property
    def main(self) -> str:
        """The name of the first package."""
        first = self.requirements[0]
        return node_name(first) if self.kind == "node" else re.split(r"[^\w.-]", first)[0]


def normal_name(name: str) -> str:
    """A name of a Python package as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def node_name(requirement: str) -> str:
    """The name in `@SCOPE/PACKAGE@1.2.3`."""
    return requirement[0] + requirement[1:].partition("@")[0]
