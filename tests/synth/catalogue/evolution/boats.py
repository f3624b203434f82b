"""Tools of the boat hire in the form in which a model writes them, and a model that writes them."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from synth.llm.probing.questions import REPORT

Tool = dict[str, Any]
BOATS = Path(__file__).parent / "boat_hire.yaml"


def entries(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def tool(name: str, description: str, /, *semantics: Tool, **params: Any) -> Tool:
    """`params`: name -> type, or members beside name and description."""
    said = [
        {"name": n, "description": f"The {n}."} | ({"type": p} if isinstance(p, str) else p)
        for n, p in params.items()
    ]
    return {
        "name": name,
        "description": description,
        "parent": "",
        "params": said,
        "semantics": list(semantics),
    }


def ref(entity: str) -> dict[str, Any]:
    return {"type": "string", "ref": entity}


def read(entity: str, **members: Any) -> Tool:
    key = {} if members else {"key": f"args.{entity}_id"}
    return {"op": "read", "entity": entity, "as": entity} | key | members


def update(target: str, **values: str) -> Tool:
    return {"op": "update", "target": target, "set": entries(**values)}


def need(that: str, error: str) -> Tool:
    return {"op": "require", "that": that, "error": error, "message": f"It must be {error}."}


def done(**values: str) -> Tool:
    return {"op": "return", "value": entries(**values)}


FIND = tool(
    "find_boats_of_kind",
    "Find the boats of one kind that are free now. Returns boats.",
    read("boat", where="boat.kind == args.kind and boat.status == 'free'", **{"as": "boats"}),
    done(boats="boats"),
    kind={"type": "enum", "values": ["rowing", "sailing", "electric"]},
)
RAISE = tool(
    "raise_hourly_rate",
    "Raise what a boat costs an hour. Returns name and hourly_rate.",
    read("boat"),
    update("boat", hourly_rate="boat.hourly_rate + args.more"),
    done(name="boat.name", hourly_rate="boat.hourly_rate"),
    boat_id=ref("boat"),
    more={"type": "number", "min": 1, "max": 50},
)
SHORTEN = tool(
    "shorten_trip",
    "Take hours off a trip that is planned. One that has begun is refused, and so is one that "
    "would have no hour left. Returns guest and hours.",
    read("trip"),
    need("trip.status == 'planned'", "planned"),
    need("trip.hours > args.less", "long_enough"),
    update("trip", hours="trip.hours - args.less"),
    done(guest="trip.guest", hours="trip.hours"),
    trip_id=ref("trip"),
    less={"type": "integer", "min": 1, "max": 4},
)
GOOD = [FIND, RAISE, SHORTEN]


MODEL = "scripted"
WEATHER = {"city": "Lisbon", "celsius": 21, "rains": False}


@contextmanager
def generator(answer: Callable[[dict[str, Any]], Any]) -> Iterator[str]:
    """The base URL of an endpoint that answers a chat request with `answer(request)` as JSON, or
    as the text that it is. It lists its model and passes the probe of a run by itself: `answer`
    sees the requests of the evolution only."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = WEATHER if _is_probe(body) else answer(body)
            content = said if isinstance(said, str) else json.dumps(said)
            reply = {
                "id": "x",
                "object": "chat.completion",
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": content},
                    }
                ],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10},
            }
            self._reply(reply)

        def _reply(self, reply: dict[str, Any]) -> None:
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _is_probe(request: dict[str, Any]) -> bool:
    return request["messages"] == REPORT


def section(request: dict[str, Any], heading: str) -> Any:
    """The JSON below a heading of the newest message that has it; None if none has."""
    pattern = rf"^## {heading}\n```json\n(.*?)\n```$"
    for message in reversed(request["messages"]):
        if found := re.search(pattern, message["content"], re.DOTALL | re.MULTILINE):
            return json.loads(found[1])
    return None


def plain_tools(request: dict[str, Any]) -> dict[str, Any]:
    """A generator of simple tools for any domain: reads and changes of single fields."""
    if section(request, "Problems") is not None:
        return {"tools": []}
    domain, wanted = section(request, "Domain"), section(request, "Wanted")
    taken = {t["name"] for t in section(request, "Tools that exist")}
    parents = section(request, "Parents")
    first = parents[0] if parents else {"name": ""}
    parent = (first[0] if isinstance(first, list) else first)["name"]
    made = [t | {"parent": parent} for t in _plain(domain) if t["name"] not in taken]
    start = wanted["draw"] % max(len(made), 1)
    return {"tools": (made[start:] + made[:start])[: wanted["count"]]}


def _plain(domain: dict[str, Any]) -> Iterator[Tool]:
    for name, entity in domain["entities"].items():
        key = entity["key"]
        for field, spec in entity["fields"].items():
            if field == key or spec["type"] in ("list", "object", "ref") or field == "status":
                continue
            param = {k: spec[k] for k in ("type", "values", "min", "max") if k in spec}
            words = field.replace("_", " ")
            own = {f"{name}_id": ref(name), "given": param}
            row = {"op": "read", "entity": name, "key": f"args.{name}_id", "as": "row"}
            yield tool(
                f"change_{field}_of_{name}",
                f"Change the {words} of one {name}. Returns the {words} and its id.",
                row,
                {"op": "update", "target": "row", "set": entries(**{field: "args.given"})},
                done(**{field: f"row.{field}", "id": f"row.{key}"}),
                **own,
            )
            listed = {"op": "read", "entity": name, "as": "rows"}
            yield tool(
                f"search_{name}_by_{field}",
                f"Search each {name} with a given {words}. Returns the rows that have it.",
                listed | {"where": f"{name}.{field} == args.given"},
                done(rows="rows"),
                given=param,
            )
            yield tool(
                f"look_at_{field}_of_{name}",
                f"Look at the {words} of one {name}. Returns that and its id.",
                row,
                done(**{field: f"row.{field}", "id": f"row.{key}"}),
                **{f"{name}_id": ref(name)},
            )
