#!/usr/bin/env python3
"""Faults beneath the dialect of E2B, inside of one sandbox: processes of the server that are killed during calls,
commands that signal all they can, requests that no client would send.

    test_e2b_faults.py [CASE...]"""

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.e2breplay import PATIENCE  # noqa: E402
from lib.e2bworld import KEY, ROOT  # noqa: E402
from lib.supervised import kill_wait, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
from test_e2b_files import home, names, upload  # noqa: E402
from test_e2b_process import END, KILLED, OK, Stream, bash, keeper_of, sandbox, server_of, unary  # noqa: E402

STARTS = 60
KILLS = 4


def alive(s):
    equal(Stream(s, "Start", bash("echo alive")).rest(), (b"alive\n", OK))


def counted(s, log, kill):
    """Starts commands one after the other while `kill` is called; each adds its number to the file `log`. Returns how
    each number's stream went."""
    went = {}

    def start():
        for n in range(STARTS):
            try:
                one = Stream(s, "Start", bash("echo %d >>%s; echo did %d" % (n, log, n)))
                went[n] = one.rest()
                one.close()
            except (OSError, AssertionError, ValueError) as why:
                went[n] = why
    t = threading.Thread(target=start)
    t.start()
    for _ in range(KILLS):
        before = len(went)
        s.until("some were started", lambda: len(went) > before + 2 or not t.is_alive())
        kill()
    t.join(PATIENCE)
    equal(len(went), STARTS)
    return went


def check_counted(s, log, went):
    """No command ran twice, and each whose end was reported ran."""
    s.until("nothing runs", lambda: unary(s, "List") == (200, {}))
    ran = [int(n) for n in s.inside("cat %s" % log).split()]
    equal(len(ran), len(set(ran)), "none ran twice")
    whole = [n for n, w in went.items() if w == (b"did %d\n" % n, OK)]
    equal([n for n in whole if n not in ran], [], "what was reported happened")
    equal(len(whole) >= STARTS - 3 * KILLS, True, went)


def starts_while_the_server_is_killed():
    with sandbox() as s:
        alive(s)
        log = home(s) + "/starts"

        def kill():
            s.until("there is a server", lambda: len(server_of(s)) == 1)
            kill_wait(server_of(s)[0])
            s.until("there is another", lambda: len(server_of(s)) == 1)
        check_counted(s, log, counted(s, log, kill))


def nginx_of(s):
    """The master, whose children are the workers."""
    return s.pids("nginx")[0]


def starts_while_nginx_is_killed():
    """A stream breaks without a last frame, its process lives, and no request is repeated."""
    with sandbox() as s:
        kept = Stream(s, "Start", bash("read x; echo more; exit 5", stdin=True))
        pid = kept.pid()
        log = home(s) + "/starts"

        def kill():
            for victim in process.children(nginx_of(s)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
        check = counted(s, log, kill)
        equal(kept.rest(), (b"", "cut"))
        again = Stream(s, "Connect", {"process": {"pid": pid}})
        equal(again.pid(), pid)
        equal(unary(s, "SendInput", process={"pid": pid}, input={"stdin": "Cg=="}), (200, {}))
        equal(again.rest()[0], b"more\n")
        check_counted(s, log, check)


def writes_while_workers_are_killed():
    """A file is the old one or the new one, and nothing lies beside it."""
    if not ROOT:
        raise Skip("needs root: the workers' files are looked at")
    with sandbox() as s:
        top = home(s) + "/w"
        s.inside("mkdir %s" % top)
        equal(upload(s, top + "/f", b"0" * 100000).status, 200)
        done, last = threading.Event(), [b"0" * 100000]

        def kill():
            while not done.is_set():
                for victim in s.workers("files"):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                done.wait(0.05)
        t = threading.Thread(target=kill)
        t.start()
        answered = 0
        for n in range(40):
            data = b"%d" % (n % 10) * 100000
            a = upload(s, top + "/f", data)
            answered += a.status == 200
            last = [data] if a.status == 200 else last + [data]
        done.set()
        t.join()
        a = s.ask("GET", "/files?path=%s/f" % top)
        equal((a.status, a.body in last), (200, True), "the file is whole, and not older than the last answer")
        equal((names(s, top), answered > 0), (["f"], True))


def cut_forms():
    """An upload that breaks off changes nothing, in a form, chunked, or compressed."""
    with sandbox() as s:
        top = home(s) + "/cut"
        s.inside("mkdir %s; echo old >%s/f" % (top, top))
        part = b"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" + b"n" * 100000
        for kind, more, body in (
                ("multipart/form-data; boundary=B", "Content-Length: 200000", part),
                ("multipart/form-data; boundary=B", "Transfer-Encoding: chunked", b"fffff\r\n" + part),
                ("application/octet-stream", "Transfer-Encoding: chunked", b"186a0\r\n" + b"n" * 100000 + b"\r\n"),
                ("application/octet-stream", "Content-Encoding: gzip\r\nContent-Length: 50", b"\x1f\x8b\x08\0\0\0\0\0"),
                ("application/octet-stream", "Transfer-Encoding: chunked", b"zz\r\nnew\r\n0\r\n\r\n"),
                ("application/octet-stream", "Transfer-Encoding: chunked", b"-1\r\nnew\r\n0\r\n\r\n")):
            with s.connect() as c:
                c.sendall(("POST /handrail/e2b/files?path=%s/f HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: %s\r\n"
                           "Content-Type: %s\r\n%s\r\n\r\n" % (top, KEY, kind, more)).encode() + body)
                c.shutdown(socket.SHUT_WR)
                with contextlib.suppress(OSError):
                    while c.recv(65536):
                        pass
            equal((names(s, top), s.inside("cat %s/f" % top)), (["f"], "old\n"), (kind, more))
        equal(upload(s, top + "/f", b"new").status, 200)


def odd_requests():
    """Heads and lengths that lie reach no process, and the server answers the next request."""
    with sandbox() as s:
        alive(s)
        server = server_of(s)
        head = ("POST %sStart HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: %s\r\n"
                "Content-Type: application/connect+json\r\n" % (END, KEY))
        ran = home(s) + "/ran"
        body = b'{"process":{"cmd":"/bin/touch","args":["%s"]}}' % ran.encode()
        frame = struct.pack(">BI", 0, len(body)) + body
        for more, data in (
                ("Content-Length: %d\r\n" % (len(frame) + 1), frame),  # cut
                ("Content-Length: -1\r\n", frame), ("Content-Length: 1\r\nContent-Length: 2\r\n", frame),
                ("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(frame), b"ffff\r\n" + frame),
                ("Content-Length: 9\r\n", struct.pack(">BI", 0, 4) + body[:4]),
                ("Content-Length: %d\r\n" % len(frame), struct.pack(">BI", 0, 0xFFFFFFFF) + body),
                ("X: %s\r\nContent-Length: %d\r\n" % ("x" * (1 << 20), len(frame)), frame),
                ("".join("X-%d: x\r\n" % i for i in range(20000)) + "Content-Length: %d\r\n" % len(frame), frame)):
            with s.connect() as c, contextlib.suppress(OSError):
                c.sendall((head + more + "\r\n").encode() + data)
                c.shutdown(socket.SHUT_WR)
                while c.recv(65536):
                    pass
        equal(unary(s, "List"), (200, {}))
        equal(names(s, home(s)).count("ran"), 0, "none was started")
        equal(server_of(s), server, "no request ended the server")
        alive(s)


def commands_that_signal_all():
    """kill -1 of a command ends what its account may end. The service answers again after that."""
    if not ROOT:
        raise Skip("needs root, whose sandbox is a box: without one kill -1 ends all processes of the account")
    with sandbox() as s:
        other = Stream(s, "Start", bash("exec sleep 1000"))
        other.pid()
        keepers, servers = keeper_of(s), server_of(s)
        last = Stream(s, "Start", bash("kill -9 -1; kill -9 0"))
        equal(last.rest()[1], KILLED)
        equal(other.rest()[1], KILLED)
        equal((keeper_of(s), server_of(s)), (keepers, servers), "the server has another account")
        equal(unary(s, "List"), (200, {}))
        # root's command is of the server's own account
        with contextlib.suppress(AssertionError, OSError, ValueError):
            Stream(s, "Start", bash("kill -9 -1"), Authorization="Basic cm9vdDo=").rest()
        s.until("the service answers", lambda: unary_or_none(s) == (200, {}))
        alive(s)


def unary_or_none(s):
    try:
        return unary(s, "List")
    except (OSError, ValueError):
        return None


def idle():
    """Neither server nor keeper wakes up while a command runs that prints nothing, and its client waits."""
    with sandbox() as s:
        alive(s)
        one = Stream(s, "Start", bash("exec sleep 1000"))
        pid = one.pid()
        ours = keeper_of(s) + server_of(s)
        fds = [os.pidfd_open(p) for p in ours]
        before, now = None, [process.context_switches(p) for p in ours]
        while before != now:
            equal(select.select(fds, [], [], 0.5)[0], [], "deaths")
            before, now = now, [process.context_switches(p) for p in ours]
        equal(select.select(fds, [], [], 3)[0], [], "deaths")
        equal([process.context_switches(p) for p in ours], now)
        for fd in fds:
            os.close(fd)
        equal(unary(s, "SendSignal", process={"pid": pid}, signal=9), (200, {}))


if __name__ == "__main__":
    sys.exit(run_tests([
        starts_while_the_server_is_killed, starts_while_nginx_is_killed, writes_while_workers_are_killed, cut_forms,
        odd_requests, commands_that_signal_all, idle]))
