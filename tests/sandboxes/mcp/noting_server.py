"""An MCP program that notes its calls, in a way that its arguments say: articles in SQLite, members
in JSON. Made with the official SDK; knows nothing of us.

`events`: every call is a row of a table. `views`: reading an article counts it and says when.
`json`, `text`: every call is a row of a JSON file, or a line of a text. `ledger`: only what is
written is. `hints` beside one of these: the tools say whether they read.
"""

import json
import sqlite3
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

MODES = sys.argv[1:]
server = MCPServer("library")
BASE = sqlite3.connect("library.db", check_same_thread=False)  # the SDK calls tools in threads
BASE.executescript("""
    create table article (id integer primary key, title text, shelf text, views integer default 0,
                          last_read_at text);
    create table loan (id integer primary key, article_id integer, member text);
    create table events (id integer primary key, tool text);
    create table ledger (id integer primary key, entry text);
    insert into article (title, shelf) values ('Sourdough basics', 'B2'), ('Knots', 'C7');
""")
BASE.commit()
Path("members.json").write_text(
    json.dumps({"members": [{"name": "Ines Falk", "phone": "555-0171"}]})
)
READS = ToolAnnotations(read_only_hint=True) if "hints" in MODES else None


def note(tool: str, *, writes: bool = False) -> None:
    if "events" in MODES:
        BASE.execute("insert into events (tool) values (?)", (tool,))
    if "json" in MODES:
        path = Path("requests.json")
        noted: list[Any] = json.loads(path.read_text()) if path.exists() else []
        path.write_text(json.dumps([*noted, {"number": len(noted), "tool": tool}]))
    if "text" in MODES:
        with Path("requests.txt").open("a") as file:
            file.write(f"{tool}\n")
    if writes:
        BASE.execute("insert into ledger (entry) values (?)", (tool,))
    BASE.commit()


@server.tool(annotations=READS)
def find_article(text: str) -> str:
    """Find articles by a part of their title."""
    note("find_article")
    query = "select id, title from article where title like ?"
    return json.dumps(BASE.execute(query, (f"%{text}%",)).fetchall())


@server.tool(annotations=READS)
def read_article(article_id: int) -> str:
    """Title and shelf of an article."""
    if "views" in MODES:
        now = datetime.now().isoformat()
        change = "update article set views = views + 1, last_read_at = ? where id = ?"
        BASE.execute(change, (now, article_id))
    note("read_article")
    query = "select title, shelf from article where id = ?"
    return json.dumps(BASE.execute(query, (article_id,)).fetchone())


@server.tool(annotations=READS)
def member_phone(name: str) -> str:
    """The phone number of a member."""
    note("member_phone")
    for member in json.loads(Path("members.json").read_text())["members"]:
        if member["name"] == name:
            return f"{name}: {member['phone']}"
    raise ValueError(f"no member {name!r}")


@server.tool()
def lend(article_id: int, member: str) -> str:
    """Lend an article to a member."""
    BASE.execute("insert into loan (article_id, member) values (?, ?)", (article_id, member))
    note("lend", writes=True)
    return "lent"


@server.tool()
def move(article_id: int, shelf: str) -> str:
    """Put an article on another shelf."""
    BASE.execute("update article set shelf = ? where id = ?", (shelf, article_id))
    note("move", writes=True)
    return "moved"


@server.tool()
def feature(article_id: int) -> str:
    """Show an article to more people: counts as a hundred views."""
    BASE.execute("update article set views = views + 100 where id = ?", (article_id,))
    note("feature", writes="ledger" in MODES)
    return "featured"


if __name__ == "__main__":
    server.run()
