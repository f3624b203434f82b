# ruff: noqa: T201, PTH123
"""An MCP server of one file for tests: handshake era, standard library only, with bad manners.

Its second argument names how it misbehaves at the start; its tools misbehave when they are called.
"""

import json
import os
import sys
import time

TOOLS = [
    {
        "name": name,
        "description": f"The tool {name}.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": name != "write"},
    }
    for name in ("echo", "write", "fail", "refuse", "die", "hang", "uptime", "flood", "wrong name")
]
TOOLS.append(
    {
        "name": "\u56de\u58f0",
        "description": "The tool echo, in Chinese.",
        "inputSchema": {"type": "object", "properties": {"\u8bdd": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
)


def send(message: object) -> None:
    print(json.dumps(message), flush=True)


def text(said: str, *, is_error: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": said}], "isError": is_error}


def call(name: str, arguments: dict[str, object]) -> dict[str, object]:
    if name == "write":
        with open("written", "a") as file:
            file.write(json.dumps(arguments) + "\n")
    if name == "fail":
        return text("it failed", is_error=True)
    if name == "die":
        print("dying of something", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "hang":
        time.sleep(1000)
    if name == "uptime":
        return text(open("/proc/uptime").read())
    if name == "wrong name":
        return text("it has spaces")
    if name == "flood":
        return text("x" * 200_000)
    return text(json.dumps(arguments))


def answer(message: dict) -> dict[str, object]:
    method, params = message["method"], message.get("params", {})
    result: dict[str, object]
    if method == "initialize":
        info = {"name": "tiny", "version": "1"}
        version = params["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        start = int(params.get("cursor", 0))  # three pages
        result = {"tools": TOOLS[start : start + 3]}
        if start + 3 < len(TOOLS):
            result["nextCursor"] = str(start + 3)
    elif method == "tools/call" and params["name"] != "refuse":
        result = call(params["name"], params.get("arguments", {}))
    else:
        return {"error": {"code": -32601, "message": f"no {method}"}}
    return {"result": result}


def main(manners: str) -> None:
    if manners == "rubbish":
        while True:
            print("Welcome to the server!", flush=True)
            time.sleep(0.001)
    if manners == "hang":
        time.sleep(1000)
    if manners == "exit":
        sys.exit("no license key")
    print("listening on stdin", flush=True)  # some real ones greet
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            send({"jsonrpc": "2.0", "id": message["id"], **answer(message)})


main(sys.argv[1] if len(sys.argv) > 1 else "")
