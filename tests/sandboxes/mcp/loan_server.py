"""An MCP program of the kind that people write for themselves: a tool library that keeps its loans
in SQLite and its members in a JSON file. Made with the official SDK; knows nothing of us."""

import json
import sqlite3
import uuid
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("tool-library")
BASE = sqlite3.connect("loans.db", check_same_thread=False)  # the SDK calls tools in threads
BASE.executescript("""
    create table if not exists item (id integer primary key, name text, shelf text, fee real);
    create table if not exists loan (
        id text primary key, item_id integer, member text, days integer, token text
    );
""")
if not BASE.execute("select count(*) from item").fetchone()[0]:
    BASE.executemany(
        "insert into item (name, shelf, fee) values (?, ?, ?)",
        [
            ("cordless drill", "A1", 4.5),
            ("hedge trimmer", "B3", 6.0),
            ("tile cutter", "A2", 9.25),
            ("carpet cleaner", "C1", 12.0),
        ],
    )
    BASE.commit()
MEMBERS = Path("members.json")
if not MEMBERS.exists():
    MEMBERS.write_text(json.dumps({"members": [
        {"name": "Ines Falk", "phone": "555-0171", "city": "Brno"},
        {"name": "Otto Reyes", "phone": "555-0164", "city": "Graz"},
    ]}))  # fmt: skip
NEWS: list[str] = []


@server.tool()
def search_items(text: str) -> str:
    """Find things to borrow by a part of their name."""
    found = BASE.execute("select * from item where name like ?", (f"%{text}%",)).fetchall()
    rows = [dict(zip(("id", "name", "shelf", "fee"), row, strict=True)) for row in found]
    return json.dumps(rows)


@server.tool()
def lend_item(item_id: int, member: str, days: int = 7) -> str:
    """Lend an item to a member for some days."""
    if BASE.execute("select 1 from loan where item_id = ?", (item_id,)).fetchone():
        raise ValueError(f"item {item_id} is lent already")
    key = uuid.uuid4().hex
    token = uuid.uuid4().hex
    BASE.execute("insert into loan values (?, ?, ?, ?, ?)", (key, item_id, member, days, token))
    BASE.commit()
    return f"Lent item {item_id} to {member} for {days} days."


@server.tool()
def list_loans() -> str:
    """All loans that are out."""
    found = BASE.execute("select item_id, member, days from loan").fetchall()
    return (
        "\n".join(f"item {item}: {member}, {days} days" for item, member, days in found) or "none"
    )


@server.tool()
def member_phone(name: str) -> str:
    """The phone number of a member."""
    for member in json.loads(MEMBERS.read_text())["members"]:
        if member["name"] == name:
            return f"{name}: {member['phone']}"
    raise ValueError(f"no member {name!r}")


@server.tool()
def add_member(name: str, phone: str, city: str) -> str:
    """Enter a new member."""
    known = json.loads(MEMBERS.read_text())
    known["members"].append({"name": name, "phone": phone, "city": city})
    MEMBERS.write_text(json.dumps(known))
    return f"{name} is a member now."


@server.tool()
def post_news(text: str) -> str:
    """Put a notice on the board."""
    NEWS.append(text)
    return "posted"


@server.tool()
def read_news() -> str:
    """What stands on the board."""
    return "\n".join(NEWS) or "nothing"


if __name__ == "__main__":
    server.run()
