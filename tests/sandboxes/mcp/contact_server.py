"""An MCP program of the kind that people write for themselves: an address book in one JSON file.
Made with the official SDK; knows nothing of us."""

import json
import os
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("address-book")
BOOK = Path("contacts.json")
if not BOOK.exists():
    BOOK.write_text(json.dumps({"contacts": [
        {"name": "Ines Falk", "email": "ines.falk@example.org", "note": ""},
        {"name": "Otto Reyes", "email": "otto.reyes@example.org", "note": ""},
        {"name": "Mara Dietz", "email": "mara.dietz@example.org", "note": "rents the hall"},
    ]}))  # fmt: skip


def contacts() -> list[dict[str, str]]:
    return json.loads(BOOK.read_text())["contacts"]


@server.tool()
def find_contact(name: str) -> str:
    """What the address book has of a person."""
    return json.dumps([one for one in contacts() if name.lower() in one["name"].lower()])


@server.tool()
def search_items(text: str) -> str:
    """Search the notes on people."""
    return json.dumps([one["name"] for one in contacts() if text in one["note"]])


@server.tool()
def set_note(name: str, note: str) -> str:
    """Write a note on a person, in place of the one that is there."""
    known = contacts()
    [one] = [one for one in known if one["name"] == name]
    one["note"] = note
    BOOK.write_text(json.dumps({"contacts": known}))
    return f"Noted on {name}."


@server.tool()
def add_contact(name: str, email: str) -> str:
    """Enter a person."""
    known = [*contacts(), {"name": name, "email": email, "note": ""}]
    BOOK.write_text(json.dumps({"contacts": known}))
    return f"{name} is entered."


@server.tool()
def crash() -> str:
    """Ends the program."""
    os._exit(3)


if __name__ == "__main__":
    server.run()
