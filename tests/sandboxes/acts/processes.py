"""Acts against processes: the agent kills, stops, multiplies or never comes to an end."""

from tests.sandboxes.acts.act import Act, py, sh

EACH = """
for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || kill -{signal} ${{p#/proc/}}; done 2>/dev/null
true"""

KILLING: tuple[Act, ...] = (
    sh("kill everything", "kill -9 -1"),
    sh("kill what is called python", "pkill -f python; pkill -9 -f python"),
    sh("kill by pkill whatever can be", "pkill -9 ."),
    sh("killall5", "/usr/sbin/killall5 -9; /usr/sbin/killall5 -15"),
    sh("kill each process by its number", EACH.format(signal=9)),
    sh("stop everything", "kill -STOP -1"),
    sh("stop each process by its number", EACH.format(signal="STOP")),
    sh("every signal to process 1", "for s in $(seq 1 64); do kill -$s 1; done 2>/dev/null; true"),
    sh("every signal to everything", "for s in $(seq 1 64); do kill -$s -1; done 2>/dev/null"),
    sh("kill its parent", "kill -9 $PPID; kill -STOP $PPID"),
    sh("kill itself", "kill -9 $$"),
    sh("crash", "kill -SEGV $$"),
    sh("leave by a status that is none", "exit 4711"),
    py(
        "signals by pidfd",
        """
        import signal, os
        for pid in (1, 2):
            try:
                signal.pidfd_send_signal(os.pidfd_open(pid), 9)
            except OSError as error:
                print(error)
        """,
    ),
    py(
        "signals from threads while it ends",
        """
        import os, threading
        def shoot():
            for _ in range(1000):
                try:
                    os.kill(1, 10)
                    os.kill(1, 12)
                except OSError:
                    pass
        threads = [threading.Thread(target=shoot) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        """,
    ),
    sh(
        "limits and priorities of process 1",
        """
        prlimit --pid 1 --nofile=3 --as=1000 --cpu=1; renice -n 19 -p 1; ionice -c 3 -p 1
        chrt -p 1 1; taskset -p 1 1; true""",
    ),
    sh("nice, renice, ionice of its own", "nice -n 19 true; renice -n 19 $$; ionice -c 3 true"),
    sh("real time", "chrt -f 99 true; chrt -r 1 true; chrt -d 1 true; true"),
    sh("small limits for itself", "ulimit -n 3; ulimit -u 0; ulimit -f 0; ls; ulimit -v 1000; ls"),
    sh("descriptors closed", "exec 0<&- 1>&- 2>&-; ls"),
    py(
        "all descriptors closed, those of others too",
        """
        import os
        for pid in ("self", "1", str(os.getppid())):
            for fd in range(64):
                try:
                    os.close(os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR))
                except OSError:
                    pass
        os.closerange(0, 1024)
        """,
        code={None},
    ),
    sh(
        "writing to what /proc has of process 1",
        """
        for f in /proc/1/* /proc/1/fd/* /proc/1/task/1/*; do echo 1 > $f; done 2>/dev/null
        true""",
    ),
    sh(
        "score for the kernel's choice",
        "echo -1000 > /proc/self/oom_score_adj; echo -1000 > "
        "/proc/1/oom_score_adj; echo 1000 > /proc/1/oom_score_adj; true",
    ),
)

MULTIPLYING: tuple[Act, ...] = (
    sh("fork bomb", "b() { b | b & }; b", code={None, "timed_out"}),
    py(
        "threads without end",
        """
        import threading, time
        for n in range(10_000):
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        """,
    ),
    py(
        "zombies",
        """
        import os, time
        try:
            while True:
                if os.fork() == 0:
                    os._exit(0)
        except OSError as error:
            print(error)
        """,
    ),
    sh("a thousand short processes", "for i in $(seq 1000); do /bin/true & done; wait"),
    sh("background daemon that holds stdout", "sleep 1000 & (setsid sleep 1000 &) ; echo started"),
    sh(
        "daemon that ignores signals",
        "setsid sh -c \"trap '' 1 2 3 15; while :; do sleep 1; done\" &",
    ),
    sh("stopped child", "sleep 1000 & kill -STOP $!"),
    py(
        "processes that make each other anew",
        """
        import os, time
        for _ in range(4):
            if os.fork() == 0:
                os.setsid()
                while True:
                    try:
                        if os.fork():
                            os._exit(0)
                    except OSError:
                        pass
        """,
    ),
)

NEVER_ENDING: tuple[Act, ...] = tuple(
    sh(name, script, code="timed_out")
    for name, script in {
        "a shell that never ends": "while :; do :; done",
        "a sleep": "sleep 1000",
        "waiting for input that does not come": "mkfifo /tmp/never; cat /tmp/never",
        "following a file": "tail -f /dev/null",
        "all signals trapped": "trap '' $(seq 1 8) $(seq 10 15); while :; do sleep 1; done",
        "stopping itself": "kill -STOP $$",
        "output without end": "yes",
        "errors and output without end": "yes & yes >&2",
        "reading zeros without end": "cat /dev/zero > /dev/null",
        "a pipe that nobody reads": "yes | sleep 1000",
        "a fork bomb of sessions": """python -c 'import os
while True:
    try:
        os.fork() == 0 and os.setsid()
    except OSError:
        pass'""",
    }.items()
)
