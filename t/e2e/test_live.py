#!/usr/bin/env python3
"""Looking on while a command runs: /handrail/v1/ (doc/live.md)."""

import hashlib
import http.client
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import PATIENCE, Server, gate, marker, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

V1 = "/handrail/v1/"


def session(s):
    a = s.get(V1 + "session")
    equal(a.status, 200, a)
    return a.json()


def post(s, what, **body):
    a = s.request("POST", V1 + what, json.dumps(body), {"Content-Type": "application/json"})
    return a.status, a.json()


class Follower:
    """An answer that is read as it comes."""

    def __init__(self, s, offset, follow=True):
        self.c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        self.c.request("GET", "%soutput?offset=%d%s" % (V1, offset, "&follow=true" if follow else ""))
        self.r = self.c.getresponse()
        equal((self.r.status, self.r.getheader("Content-Type"), self.r.getheader("Transfer-Encoding")),
              (200, "application/octet-stream", "chunked"))
        self.offset = int(self.r.getheader("X-Handrail-Offset"))
        self.data = b""

    def until(self, mark):
        """Reads until what was read ends with, or holds, the mark."""
        while mark not in self.data[-len(mark) - 70000:]:
            more = self.r.read1(65536)
            if not more:
                raise AssertionError("the output ended: %r" % self.data[-200:])
            self.data += more
        return self.data

    def close(self):
        self.c.close()


def while_it_runs():
    with Server() as s:
        equal(session(s)["running"], False)
        end = session(s)["output"]["end"]
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("echo one-$((1 + 1)); %s; %s; echo two-$((1 + 1))" % (began, door))
        wait()
        f = Follower(s, end)
        equal(f.offset, end)
        f.until(b"one-2\r\n")
        equal((b"two-2" in f.data, session(s)["running"] or b.is_alive()), (False, True))
        open_it()
        f.until(b"two-2\r\n")
        equal(b.content(), "one-2\ntwo-2")
        # from another offset the same bytes come, and without `follow` the answer ends
        g = Follower(s, end + 5, follow=False)
        rest = g.r.read()
        equal((g.offset, rest[:len(f.data) - 5]), (end + 5, f.data[5:]))
        equal(session(s)["output"]["end"] >= end + len(f.data), True)
        f.close()
        s.until("the follower's worker is free", lambda: s.pool("live")["busy"] == 0)
        equal(Follower(s, 1 << 60, follow=False).r.read(), b"", "an offset that is not there yet")
        for bad in ("x", "-1", "", "1x", "99999999999999999999"):
            equal(s.get(V1 + "output?offset=" + bad).status, 400, bad)


def nothing_is_lost():
    """100 MB, with the connection cut again and again, each time going on at the offset."""
    with Server(settings={"output_log_bytes": 160 << 20}) as s:
        start = session(s)["output"]["end"]
        lines = 1000000
        text = "".join("%099d\r\n" % i for i in range(lines)).encode()
        b = s.in_background("seq -f %%099.0f 0 %d; echo 'the '\"end\"" % (lines - 1), blocking=True,
                            timeout=PATIENCE * 10)
        digest, at, first, cuts, tail = hashlib.sha256(), start, None, 0, b""
        left = len(text)
        while left > 0:
            f = Follower(s, at)
            equal(f.offset, at, "nothing was dropped")
            budget = 7 << 20  # then the connection is cut
            while left > 0 and budget > 0:
                more = f.r.read1(1 << 20)
                equal(more != b"", True, "the answer goes on")
                at += len(more)
                budget -= len(more)
                if first is None:
                    tail += more
                    # what readline echoes of the command comes before its output
                    where = tail.find(b"0" * 98 + b"0\r\n" + b"0" * 98 + b"1\r\n")
                    if where < 0:
                        continue
                    first, more = where, tail[where:]
                more = more[:left]
                digest.update(more)
                left -= len(more)
            f.close()
            cuts += 1
        equal(digest.hexdigest(), hashlib.sha256(text).hexdigest(), "every byte, once, in order")
        equal(cuts > 10, True, cuts)
        b.join(PATIENCE * 4)
        equal(b.answer.status, 200)


def old_output_is_dropped():
    with Server(settings={"output_log_bytes": 4096}) as s:
        s.run("seq 1 5000")
        o = session(s)["output"]
        equal(o["end"] - o["start"], 4096)

        def same():  # the last prompt may still be on its way
            f, now = Follower(s, 0, follow=False), session(s)["output"]
            return (f.offset, len(f.r.read())) == (now["start"], 4096)
        s.until("the oldest that is kept", same)


def input_and_signals():
    with Server() as s:
        equal(post(s, "input", text="echo never\n"), (409, {"detail": "no command is running"}))
        equal(post(s, "signal", signal="INT")[0], 409)
        began, wait = marker(s)
        b = s.in_background("%s; IFS= read -r line; echo got-$line" % began)
        wait()
        status, state = post(s, "input", text="a line\n")
        equal((status, state["name"]), (200, "default"))
        equal("got-a line" in b.content(), True, b.content())
        began, wait = marker(s)
        b = s.in_background("%s; sleep 1000; echo after" % began)
        wait()
        s.until("the signal", lambda: post(s, "signal", signal="TERM")[0] == 200)
        b.join(PATIENCE)
        equal(b.answer.status, 200)
        equal(post(s, "signal", signal="NONSENSE")[0], 400)
        equal(post(s, "signal", text="INT")[0], 400)
        equal(s.request("POST", V1 + "input", b"[", {"Content-Type": "application/json"}).status, 400)
        equal(s.run("echo still; echo never | wc -l"), "still\n1")


def followers_take_nothing_from_actions():
    with Server(settings={"live_workers_max": 3, "action_workers_max": 2}) as s:
        end = session(s)["output"]["end"]
        followers = [Follower(s, end) for _ in range(3)]
        a = s.get(V1 + "output?offset=0&follow=true")
        equal((a.status, a.headers.get("Retry-After")), (429, "1"))
        for i in range(20):
            equal(s.run("echo act-$((%d + 0))" % i), "act-%d" % i)
        for f in followers:
            f.until(b"act-19\r\n")
        # one that reads nothing holds up nobody
        equal(s.run("seq 1 300000 | tail -n 1"), "300000")
        s.run("seq 1 200000 >/dev/tty; echo done")
        for f in followers:
            f.close()
        s.until("all are free", lambda: s.pool("live")["busy"] == 0)


def end_of_the_server():
    """A follower has no end of its own: reload and end must not wait for it."""
    with Server() as s:
        f = Follower(s, 0)
        s.send(signal.SIGHUP)
        if not s.wait_log(" reloaded$"):
            raise AssertionError(s.log())
        while f.r.read1(65536):
            pass  # ends in order: http.client would raise otherwise
        g = Follower(s, session(s)["output"]["end"])
        s.run("echo more")
        g.until(b"more\r\n")
        equal(s.stop(), -signal.SIGTERM)
        while g.r.read1(65536):
            pass


def keeper_dies():
    with Server() as s:
        f = Follower(s, 0)
        os.kill(s.keeper()[0], signal.SIGKILL)
        while True:
            try:
                if not f.r.read1(65536):
                    break
            except http.client.IncompleteRead:
                break
        def again():
            a = s.get(V1 + "session")
            return a.status == 200 and a.json()["ready"]
        s.until("a new shell", again)
        equal(s.run("echo new"), "new")


def key_is_needed():
    with Server(env={"SESSION_API_KEY": "k"}, args=["--listen", "127.0.0.1"]) as s:
        for method, path in (("GET", "session"), ("GET", "output"), ("POST", "input"), ("POST", "signal")):
            equal(s.request(method, V1 + path, "{}").status, 403, path)
        equal(s.get(V1 + "session", X_Session_API_Key="k").status, 200)


TESTS = [while_it_runs, nothing_is_lost, old_output_is_dropped, input_and_signals,
         followers_take_nothing_from_actions, end_of_the_server, keeper_dies, key_is_needed]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
