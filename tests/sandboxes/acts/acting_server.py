# ruff: noqa: T201
"""An MCP server of one file whose tools do to it whatever an agent may want to do to a server."""

import json
import os
import subprocess
import sys
import time

OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = [
    {
        "name": name,
        "description": f"The tool {name}.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": name == "echo"},
        **({"outputSchema": OUTPUT} if name == "promise" else {}),
    }
    for name in ("echo", "shell", "die", "hang", "rubbish", "endless_line", "half", "promise")
]


def say(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


def done(name: str, given: dict) -> str:
    if name == "shell":
        ran = subprocess.run(["sh", "-c", given["command"]], capture_output=True, check=False)
        return f"{ran.returncode} " + ran.stdout.decode(errors="replace")[:1000]
    if name == "die":
        print("dying of something", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "hang":
        time.sleep(1000)
    if name == "rubbish":
        say("rubbish\n" * 5000)
        time.sleep(1000)
    if name == "endless_line":
        while True:
            say("x" * 100_000)
    return json.dumps(given)


def result(name: str, given: dict) -> str:
    text = '"cut \\ud83d"' if name == "half" else json.dumps(done(name, given))
    extra = ', "structuredContent": {"n": "one"}' if name == "promise" else ""
    return f'{{"content": [{{"type": "text", "text": {text}}}]{extra}}}'


def answer(message: dict) -> str:
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "acting", "version": "1"}
        told = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        return json.dumps(told)
    if message["method"] == "tools/list":
        return json.dumps({"tools": TOOLS})
    return result(message["params"]["name"], message["params"].get("arguments", {}))


for asked in sys.stdin:
    request = json.loads(asked)
    if "id" in request and request["method"] in ("initialize", "tools/list", "tools/call"):
        say(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {answer(request)}}}\n')
    elif "id" in request:
        error = '{"code": -32601, "message": "no such method"}'
        say(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "error": {error}}}\n')
