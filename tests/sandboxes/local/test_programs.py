"""Ordinary programs run inside: the system calls that they need are let through."""

import asyncio
import shutil
from pathlib import Path

import pytest

from sandboxes.core.python_env import base_python
from sandboxes.core.sandbox import ExecResult
from sandboxes.core.template import Bind, Limits, SandboxTemplate
from sandboxes.lending.leases import lease

pytestmark = pytest.mark.usefixtures("sandboxed")

ROOMY = SandboxTemplate(limits=Limits(memory_mb=1024, processes=256, timeout_s=120))

PYTHON = r"""
import asyncio, multiprocessing, os, pathlib, pty, random, select, socket, sqlite3, subprocess
import tempfile, threading, time

def square(number):
    return number * number

def sqlite():
    with sqlite3.connect("data.db", isolation_level=None) as base:
        base.execute("pragma journal_mode = wal")
        base.execute("create table t (n)")
        base.executemany("insert into t values (?)", [(n,) for n in range(100)])
        return base.execute("select sum(n) from t").fetchone()[0]

def threads():
    found = []
    many = [threading.Thread(target=found.append, args=(n,)) for n in range(20)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    return sum(found)

async def serve():
    async def answer(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()
    async with await asyncio.start_server(answer, "localhost", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("localhost", port)
        writer.write(b"hello\n")
        said = await reader.readline()
        writer.close()
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    out, _ = await process.communicate(b"through")
    return said + out

def terminal():
    ours, theirs = pty.openpty()
    os.write(theirs, b"typed")
    return os.read(ours, 5)

def datagrams():
    one, two = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    one.bind(("127.0.0.1", 0))
    two.sendto(b"datagram", one.getsockname())
    return one.recv(100)

def limits():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
    os.nice(5)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    return resource.getrlimit(resource.RLIMIT_NOFILE)

if __name__ == "__main__":
    assert sqlite() == 4950
    assert threads() == 190
    assert asyncio.run(serve()) == b"HELLO\nthrough"
    assert datagrams() == b"datagram"
    assert terminal() == b"typed"
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
    with multiprocessing.Manager() as manager:
        shared = manager.list([1])
        shared.append(2)
        assert list(shared) == [1, 2]
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=4096) if hasattr(
        multiprocessing, "shared_memory") else None
    if block:
        block.close(), block.unlink()
    assert socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    assert subprocess.run("sleep 0 | cat; echo $0", shell=True, capture_output=True).returncode == 0
    os.mkfifo("pipe")
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a").symlink_to("b")
    random.SystemRandom().random()
    assert limits() == (100, 200)
    print("all of it")
"""

NODE = r"""
const {Worker, isMainThread, parentPort} = require("worker_threads");
const http = require("http"), fs = require("fs"), crypto = require("crypto");
const {execFileSync} = require("child_process"), dns = require("dns"), zlib = require("zlib");
if (!isMainThread) {
  parentPort.postMessage(crypto.createHash("sha256").update("x").digest("hex").length);
} else {
  const server = http.createServer((_, answer) => answer.end("served"));
  const shared = new Int32Array(new SharedArrayBuffer(8));
  Atomics.wait(shared, 0, 0, 5);
  fs.watch(".", () => {}).close();
  server.listen(0, "127.0.0.1", () => http.get({port: server.address().port}, got => {
    let text = "";
    got.on("data", part => text += part).on("end", () => {
      server.close();
      new Worker(__filename).on("message", length => dns.lookup("localhost", (_, address) => {
        const said = execFileSync("echo", ["child"]).toString().trim();
        const back = zlib.gunzipSync(zlib.gzipSync("squeezed")).toString();
        console.log(text, length, address, said, back);
      }));
    });
  }));
}
"""

C = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static void *add(void *sum) { __sync_fetch_and_add((int *)sum, 21); return 0; }
int main(void) {
  pthread_t one, two; int sum = 0;
  pthread_create(&one, 0, add, &sum); pthread_create(&two, 0, add, &sum);
  pthread_join(one, 0); pthread_join(two, 0);
  void *block = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("%d %d\n", sum, block != MAP_FAILED && nice(3) == 3);
  return system("exit 7") >> 8 == 7 ? 0 : 1;
}
"""

GIT = """
git init -q project && cd project && git config user.name A && git config user.email a@b
seq 300 > file && git add . && git commit -qm one && echo more >> file && git commit -qam two
git checkout -qb other HEAD~1 && git rebase -q main && git gc -q && git stash list && git log --oneline | wc -l
"""  # noqa: E501

SHELL = """
set -e
seq 20000 | sort -S 1M -R | sort -S 1M -n --parallel=2 | tail -1
mkdir -p tree/a && echo text > tree/a/file && ln tree/a/file tree/b && ln -s b tree/c
tar czf tree.tgz tree && mkdir out && tar xzf tree.tgz -C out && diff -r tree out/tree
cp -a tree copy && find copy -type f -newer tree.tgz -o -name b | wc -l
awk 'BEGIN { "date +%Y" | getline year; print (year > 2000) }'
(trap 'echo trapped' TERM; kill -TERM $(sh -c 'echo $PPID'); true)
perl -MFcntl=:flock -MSocket -e 'open F, ">", "lock"; flock F, LOCK_EX; print fork() ? wait() > 0 : exit, "\n"'
timeout 5 nice -n 3 sh -c 'exec true' && flock lock true && id -un && sync && echo done
"""  # noqa: E501

JAVA = """
import java.util.concurrent.*;
class Main {
  public static void main(String[] args) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    int sum = 0;
    Callable<Integer> four = () -> 4;
    for (var got : pool.invokeAll(java.util.Collections.nCopies(10, four))) sum += got.get();
    pool.shutdown();
    System.gc();
    System.out.println(sum + " " + new ProcessBuilder("true").start().waitFor());
  }
}
"""


def run(name: str, script: str, command: str) -> ExecResult:
    async def go() -> ExecResult:
        # where Debian keeps what its Java cannot start without
        kept = [str(folder) for folder in Path("/etc").glob("java-*-openjdk")]
        binds = tuple(Bind(source=folder, target=folder) for folder in kept)
        async with lease(ROOMY.model_copy(update={"binds": binds})) as sandbox:
            await sandbox.write_file(name, script.encode())
            return await sandbox.exec(["sh", "-c", command])

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("program", "name", "script", "command", "said"),
    [
        (base_python(), "all.py", PYTHON, f"{base_python()} all.py", "all of it\n"),
        ("node", "all.js", NODE, "node all.js", "served 64 127.0.0.1 child squeezed\n"),
        ("gcc", "all.c", C, "gcc -O1 -pthread all.c -o all && ./all", "42 1\n"),
        ("git", "all.sh", GIT, "sh all.sh", "2\n"),
        ("perl", "all.sh", SHELL, "sh all.sh", "20000\n1\n1\ntrapped\n1\nagent\ndone\n"),
        ("javac", "Main.java", JAVA, "java -Xmx200m Main.java", "40 0\n"),
    ],
    ids=["python", "node", "gcc", "git", "shell", "java"],
)
def test_ordinary_programs_run(
    program: str, name: str, script: str, command: str, said: str
) -> None:
    if shutil.which(program, path="/usr/bin") is None and program != base_python():
        pytest.skip(f"{program} is not installed here")
    done = run(name, script, command)
    assert (done.stdout.decode(), done.exit_code) == (said, 0), done.stderr.decode()
