"""Definitions of joined servers, made of programs that people write for themselves."""

import json
import shutil
from pathlib import Path

from sandboxes.mcp.joining import JoinedServerConfig
from sandboxes.mcp.launch import load_server

PROGRAMS = Path(__file__).parent


def joined_in(folder: Path, *joins: str, further: str = "") -> JoinedServerConfig:
    """`joins` of loans.yaml, contacts.yaml and whatever else can be joined, called office."""
    for name in ("loan", "contact"):
        shutil.copy(PROGRAMS / f"{name}_server.py", folder)
        definition = folder / f"{name}s.yaml"
        if not definition.exists():
            definition.write_text(f"command: python {name}_server.py\n")
    path = folder / "office.yaml"
    path.write_text(f"joins: [{', '.join(map(repr, joins))}]\n{further}")
    config = load_server(path)
    assert isinstance(config, JoinedServerConfig)
    return config


OFFICE = ("loans.yaml", "contacts.yaml")
WARD = ("contacts.yaml", "domain:clinic_desk")


BOOK = json.dumps(
    {
        "contacts": [
            {"name": "Mara Dietz", "email": "mara.dietz@example.org", "note": ""},
            {"name": "Otto Reyes", "email": "otto.reyes@example.org", "note": ""},
        ]
    }
)


def with_book(folder: Path, **further: object) -> None:
    """Defines the contacts as a server whose whole state stands in its workspace."""
    definition = {
        "command": "python contact_server.py",
        "resettable": True,
        "fixtures": {"default": {"files": {"contacts.json": BOOK}}},
    }
    (folder / "contacts.yaml").write_text(json.dumps(definition | further))
