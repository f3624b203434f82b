"""Seeded randomness: the same seed draws the same, and no two processes of a sandbox draw alike."""

import asyncio
import shutil
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from sandboxes.core.python_env import base_python
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.leases import lease

pytestmark = pytest.mark.usefixtures("sandboxed")

INSTANT = "2026-03-02T09:00:00"
NODE_MISSING = shutil.which("node", path="/usr/bin") is None


def drawn(seed: int | None, argv: Sequence[str]) -> list[str]:
    """Lines that a program prints in a fresh sandbox."""

    async def go() -> list[str]:
        async with lease(SandboxTemplate(clock=INSTANT, seed=seed)) as sandbox:
            done = await sandbox.exec(argv)
            assert (done.exit_code, done.stderr) == (0, b"")
            return done.stdout.decode().splitlines()

    return asyncio.run(go())


def check_follows_the_seed(argv: Sequence[str]) -> list[str]:
    first, again, other, chance = (drawn(seed, argv) for seed in (5, 5, 6, None))
    assert first == again
    assert len(set(first)) == len(first), "no two draws are alike"
    assert not {*first} & {*other}
    assert not {*first} & {*chance}
    return first


PYTHON = """
import os, random, secrets, sys, tempfile, uuid
print(uuid.uuid4())
print(uuid.uuid1())
print(os.urandom(8).hex())
print(os.getrandom(8).hex())
print(secrets.token_hex(8))
print(random.random())
print(random.Random().random())
print(random.SystemRandom().random())
print(tempfile.mktemp())
random.seed()
print(random.random())
"""


def test_all_that_python_draws_follows_the_seed() -> None:
    assert len(check_follows_the_seed([base_python(), "-c", PYTHON])) == 10


def test_a_seed_that_a_program_sets_itself_is_kept() -> None:
    own = [base_python(), "-c", "import random; print(random.Random(3).random())"]
    assert drawn(5, own) == drawn(None, own)


FAMILY = """
import os, subprocess, sys, uuid
print(uuid.uuid4(), flush=True)
for _ in range(2):
    if not os.fork():
        import random
        print(uuid.uuid4())
        print(random.random(), flush=True)
        os._exit(0)
    os.wait()
helper = [sys.executable, "-c", "import uuid; print(uuid.uuid4())"]
started = [subprocess.Popen(helper, stdout=subprocess.PIPE, text=True) for _ in range(3)]
print(*sorted(one.communicate()[0].strip() for one in started), sep=chr(10))
print(uuid.uuid4())
"""


def test_python_processes_of_one_sandbox_never_draw_alike() -> None:
    """Forked ones, and helpers that run at the same time with the same command."""
    assert len(check_follows_the_seed([base_python(), "-c", FAMILY])) == 9


NODE = """
import { randomBytes, randomFillSync, randomInt, randomUUID, webcrypto } from "node:crypto";
import { execFileSync } from "node:child_process";
import { Worker } from "node:worker_threads";
const hex = (view) => Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("hex");
console.log(randomUUID());
console.log(webcrypto.randomUUID());
console.log(hex(webcrypto.getRandomValues(new Uint32Array(4))));
console.log(randomBytes(8).toString("hex"));
console.log(randomInt(2 ** 47));
console.log(Math.random());
console.log(hex(randomFillSync(new Uint16Array(8), 1, 6)));
const later = (size) => new Promise((r) => randomBytes(size, (_, b) => r(b.toString("hex"))));
console.log((await Promise.all([later(9), later(10), later(11)])).join("\\n"));
const helper = "console.log(crypto.randomUUID()); console.log(Math.random())";
for (let i = 0; i < 2; i++) process.stdout.write(execFileSync(process.execPath, ["-e", helper]));
const said = "require('worker_threads').parentPort.postMessage(require('crypto').randomUUID())";
const thread = new Worker(said, { eval: true, execArgv: [] });
thread.on("message", (uuid) => console.log(uuid));
await new Promise((done) => thread.on("exit", done));
"""


@pytest.mark.skipif(NODE_MISSING, reason="no node in /usr/bin")
def test_all_that_node_draws_follows_the_seed() -> None:
    """Also in helper processes and threads, and in answers that come later."""
    lines = check_follows_the_seed(["node", "--input-type=module", "-e", NODE])
    assert len(lines) == 15
    assert lines[6].startswith("0000")
    assert lines[6].endswith("0000"), "only what was asked for is filled"


WRONG = """
const crypto = require("crypto");
const wrong = [
  () => crypto.randomBytes(-1),
  () => crypto.randomInt(5, 5),
  () => crypto.randomFillSync(3),
  () => crypto.webcrypto.getRandomValues(new Float32Array(1)),
  () => crypto.randomUUID(5),
];
for (const call of wrong) {
  try { call(); console.log("no error"); } catch (error) { console.log(error.code || error.name); }
}
"""


@pytest.mark.skipif(NODE_MISSING, reason="no node in /usr/bin")
def test_node_refuses_the_same_arguments_as_without_a_seed() -> None:
    refused = drawn(5, ["node", "-e", WRONG])
    assert refused == drawn(None, ["node", "-e", WRONG])
    assert "no error" not in refused


def test_a_seed_needs_a_stopped_clock() -> None:
    with pytest.raises(ValidationError, match="seed 5 without"):
        SandboxTemplate(seed=5)
