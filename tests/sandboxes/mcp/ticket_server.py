"""An MCP program that makes up ids: a help desk, whose tickets are rows in SQLite with a UUID, and
which has a helper process of its own make the code that a guest is given."""

import json
import sqlite3
import subprocess
import sys
import uuid

from mcp.server import MCPServer

server = MCPServer("help-desk")
BASE = sqlite3.connect("desk.db", check_same_thread=False)  # the SDK calls tools in threads
BASE.execute("create table if not exists ticket (id text primary key, title text, state text)")


@server.tool()
def open_ticket(title: str) -> str:
    """Open a ticket. Answers with its id."""
    key = str(uuid.uuid4())
    BASE.execute("insert into ticket values (?, ?, 'open')", (key, title))
    BASE.commit()
    return json.dumps({"id": key, "title": title})


@server.tool()
def close_ticket(ticket_id: str) -> str:
    """Close a ticket by its id."""
    if not BASE.execute("update ticket set state = 'closed' where id = ?", (ticket_id,)).rowcount:
        raise ValueError(f"no ticket {ticket_id!r}")
    BASE.commit()
    return "closed"


@server.tool()
def guest_code() -> str:
    """A code with which a guest can come in."""
    program = "import secrets; print(secrets.token_hex(8))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return done.stdout.decode().strip()


if __name__ == "__main__":
    server.run()
