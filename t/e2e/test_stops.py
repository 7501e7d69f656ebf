#!/usr/bin/env python3
"""Processes that are stopped (SIGSTOP) and go on: what does not need them is answered meanwhile, what
does waits, and is done once."""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import PATIENCE, Server, gate, marker, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402


class Stopped:
    """with Stopped(pids): they stand still."""

    def __init__(self, pids):
        self.pids = pids

    def __enter__(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in self.pids:
            # the signal is on its way for a moment; /proc has no event for its arrival
            while process.stat_fields(pid)[0] != b"T":
                os.sched_yield()

    def __exit__(self, *what):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)


def count(s):
    """Adds a line to a file, and says how many there are."""
    return "echo x >>%s/count; wc -l <%s/count" % (s.work_dir, s.work_dir)


def waits_for(pids_of, alive):
    """A command that is sent while they are stopped is answered when they go on, and was done once."""
    with Server(settings={"nginx_workers": 1}) as s:
        equal(s.run(count(s)), "1")
        with Stopped(pids_of(s)):
            b = s.in_background(count(s))
            if alive:
                for _ in range(20):
                    equal(s.get("/alive").status, 200)
                a = s.get("/metrics")
                equal((a.status, b.is_alive()), (200, True))
        equal(b.content(), "2")
        equal(s.run(count(s)), "3")
        equal((s.get("/alive").status, s.get("/ready").status), (200, 200))


def does_without(pids_of):
    with Server() as s:
        equal(s.run(count(s)), "1")
        with Stopped(pids_of(s)):
            for i in range(2, 12):
                equal((s.run(count(s)), s.get("/alive").status), (str(i), 200))
        equal(s.run(count(s)), "12")
        s.until("it is as before", lambda: s.get("/ready").status == 200)


def is_master(pid):
    return "master" in process.command_line(pid)


def supervisor():
    does_without(lambda s: [s.pid])


def nginx_master():
    does_without(lambda s: [p for p in s.pids("nginx") if is_master(p)])


def nginx_worker():
    def workers(s):
        return [p for m in s.pids("nginx") for p in process.children(m)]
    waits_for(workers, False)


def some_workers():
    """One of each pool: the others take its requests."""
    does_without(lambda s: [s.workers(pool)[0] for pool in ("control", "action")])


def all_action_workers():
    waits_for(lambda s: s.workers("action"), True)


def keeper():
    waits_for(lambda s: s.keeper(), True)


def shell():
    """Its keeper lets it go on at once."""
    with Server() as s:
        pid = int(s.run("echo $$"))
        os.kill(pid, signal.SIGSTOP)
        equal(s.run("echo $$"), str(pid))


def all_of_it():
    """In the middle of a command, which alone goes on: bash would tell of a job that is stopped."""
    with Server() as s:
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("(%s; exec %s); %s" % (began, door, count(s)))  # it is there when it tells
        wait()
        command = process.descendants(process.children(s.keeper()[0])[0])
        everything = [p for p in [s.pid] + process.descendants(s.pid) if p not in command]
        with Stopped(everything):
            asked = s.in_background(count(s))
        open_it()
        equal(b.content(), "1")
        equal(asked.content(), "2")
        equal((s.get("/alive").status, s.get("/ready").status), (200, 200))


TESTS = [supervisor, nginx_master, nginx_worker, some_workers, all_action_workers, keeper, shell, all_of_it]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
