#!/usr/bin/env python3
"""What is started before the server is ready and waits for it, and what is started after: nginx, which is
held until the shell is there, and the workers that the first answers do not need."""

import contextlib
import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import BUILDDIR, PATIENCE, Libexec, Server, gate, kill_wait, marker, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402


@contextlib.contextmanager
def shell_that_waits(**kw):
    """A server that starts, with an nginx of its own already, and what lets its shell go on."""
    with Libexec(handrail_session='cat "$HOME/go"; exec "%s/handrail-session" "$@"\n' % BUILDDIR) as lib:
        s = Server(libexec=lib, ready=None, **kw)
        go = os.path.join(s.work_dir, "go")
        os.mkfifo(go)
        with s:
            s.start(ready=False)
            with open(go, "w") as f:  # the keeper has started
                yield s, f.close
            os.unlink(go)


def nginx(s):
    s.until("nginx is started", lambda: s.pids("nginx"))
    return s.pids("nginx")[0]


def is_ready(s):
    if not s.wait_log(" ready: "):
        raise AssertionError(s.log())
    equal(s.get("/alive").status, 200)
    equal(s.run("echo hello"), "hello")


def waits_for_the_shell():
    with shell_that_waits() as (s, go):
        pid = nginx(s)
        equal(s.refused(), True, "the port")
        go()
        is_ready(s)
        equal(s.pids("nginx"), [pid], "the same one")
        equal(os.path.exists(os.path.join(s.run_dir, "nginx/hold")), False, "nothing to wait at is left")


def reloads_by_itself():
    """An administrator may tell nginx what handraild would tell it."""
    with Server() as s:
        master = nginx(s)
        old = process.children(master)
        os.kill(master, signal.SIGHUP)
        s.until("other workers", lambda: process.children(master) and not set(old) & set(process.children(master)))
        equal(s.get("/alive").status, 200)


def logs_are_reopened():
    """SIGUSR1 would end an nginx that has not begun."""
    with shell_that_waits() as (s, go):
        pid = nginx(s)
        s.send(signal.SIGUSR1)
        go()
        is_ready(s)
        equal(s.pids("nginx"), [pid])


def is_stopped():
    with shell_that_waits() as (s, _):
        pid = nginx(s)
        equal(s.stop(), -signal.SIGTERM)
        equal(process.has_ended(pid), True)


def dies():
    with shell_that_waits() as (s, _):
        kill_wait(nginx(s))
        equal(s.wait(), 3, s.log())
        equal(s.wait_log("nginx did not start", 1) is not None, True, s.log())


def is_refused():
    """What nginx says of its configuration comes before the shell is there."""
    with shell_that_waits(settings={"tls_certificate": "/dev/null", "tls_certificate_key": "/dev/null"}) as (s, _):
        equal(s.wait(), 3, s.log())
        equal(s.wait_log("nginx.*certificate", 1) is not None, True, s.log())


def goes_with_the_supervisor():
    with shell_that_waits() as (s, go):
        pid = nginx(s)
        s.send(signal.SIGKILL)
        s.wait()
        equal(process.wait_gone(pid, PATIENCE), True)
        go()
        other = os.path.join(s.work_dir, "go")
        os.unlink(other)  # the shell of before may have it open still
        os.mkfifo(other)
        s.start(ready=False)
        with open(other, "w"):
            pass
        is_ready(s)


def directory_is_a_pattern():
    """There it cannot be held: it starts when the shell is there."""
    with tempfile.TemporaryDirectory(prefix="e2e-held-") as top:
        os.chmod(top, 0o755)
        with shell_that_waits(run_dir=os.path.join(top, "a[b]*?c")) as (s, go):
            go()
            is_ready(s)
            equal(len(s.pids("nginx")), 1)


# ---- workers ----

def first_requests():
    """Whoever comes before there is a worker for him is answered as well."""
    for _ in range(5):
        with Server() as s:
            a = s.get("/download_files?path=" + s.work_dir)
            equal(a.status, 200, a)
            equal(s.get("/ready").json()["status"], "ready")
            equal(s.run("echo hello"), "hello")


def all_are_there():
    with Server(settings={"control_workers": 3, "files_workers": 1, "live_workers": 2}) as s:
        for pool, n in (("control", 3), ("files", 1), ("action", 2), ("live", 2)):
            s.until("%d workers: %s" % (n, pool), lambda p=pool: len(s.workers(p)) == n)
            equal(s.pool(pool)["workers"], n, pool)


def busy_from_the_start():
    """The only worker is busy before there may be a second."""
    with Server(settings={"action_workers": 1}) as s:
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("%s; %s; echo first" % (began, hold))
        wait()
        equal(s.run("echo second", is_static=True), "second")
        go()
        equal(b.content(), "first")


TESTS = [waits_for_the_shell, reloads_by_itself, logs_are_reopened, is_stopped, dies, is_refused,
         goes_with_the_supervisor, directory_is_a_pattern, first_requests, all_are_there, busy_from_the_start]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
