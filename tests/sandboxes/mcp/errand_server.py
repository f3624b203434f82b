"""An MCP program that begins with nothing: errands on lists, in SQLite, with ids made up at random.
Made with the official SDK; knows nothing of us."""

import json
import sqlite3
import uuid

from mcp.server import MCPServer

server = MCPServer("errands")
BASE = sqlite3.connect("errands.db", check_same_thread=False)  # the SDK calls tools in threads
BASE.executescript("""
    create table if not exists list (id text primary key, name text);
    create table if not exists errand (
        id text primary key, list_id text, what text, cost real, done integer
    );
""")


@server.tool()
def add_list(name: str) -> str:
    """Begin a list of errands."""
    key = uuid.uuid4().hex[:8]
    BASE.execute("insert into list values (?, ?)", (key, name))
    BASE.commit()
    return json.dumps({"id": key, "name": name})


@server.tool()
def lists() -> str:
    """All lists with their ids."""
    return json.dumps(BASE.execute("select id, name from list order by name").fetchall())


@server.tool()
def add_errand(list_id: str, what: str, cost: float) -> str:
    """Put an errand on a list."""
    if not BASE.execute("select 1 from list where id = ?", (list_id,)).fetchone():
        raise ValueError(f"no list {list_id!r}")
    key = uuid.uuid4().hex[:8]
    BASE.execute("insert into errand values (?, ?, ?, ?, 0)", (key, list_id, what, cost))
    BASE.commit()
    return json.dumps({"id": key})


@server.tool()
def errands(list_id: str) -> str:
    """The errands of a list with their ids and costs."""
    query = "select id, what, cost, done from errand where list_id = ? order by what"
    return json.dumps(BASE.execute(query, (list_id,)).fetchall())


@server.tool()
def finish(errand_id: str) -> str:
    """Mark an errand as done."""
    BASE.execute("update errand set done = 1 where id = ?", (errand_id,))
    BASE.commit()
    return "done"


@server.tool()
def ask(query: str) -> str:
    """Run a query in SQL over the tables `list` and `errand`."""
    rows = BASE.execute(query).fetchall()
    BASE.commit()
    return json.dumps(rows)


if __name__ == "__main__":
    server.run()
