#!/usr/bin/env python3
"""Looking on while a command runs: /handrail/v1/ (doc/live.md)."""

import base64
import hashlib
import http.client
import json
import os
import shutil
import signal
import sys
import tempfile
import time

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


def commands(s):
    a = s.get(V1 + "commands")
    equal(a.status, 200, a)
    return a.json()["commands"]


def list_of_commands():
    with Server() as s:
        equal(commands(s), [], "those of the start are ours")
        before = time.time()
        s.action("echo one; (exit 3)", headers={"X-Request-ID": "first-of-all"})
        s.run("cd /; printf '%s\n' two")
        s.run("C-c")  # a key is no command
        one, two = commands(s)
        equal((one["id"], one["session"], one["command"], one["length"]),
              (1, "default", "echo one; (exit 3)", 18))
        equal("first-of-all" in one["key"], True, one)
        equal((one["state"], one["exit_code"], two["id"], two["exit_code"]), ("completed", 3, 2, 0))
        equal(before - 1 < one["clock"]["started"] <= two["clock"]["started"] < time.time() + 1, True)
        equal(0 <= one["clock"]["elapsed"] < PATIENCE and one["clock"]["silent"] == 0, True, one)
        equal(one["output"]["end"] <= two["output"]["start"], True, "one after the other")
        for c, text in ((one, b"one\r\n"), (two, b"two\r\n")):
            o = c["output"]
            got = s.get(V1 + "output?offset=%d" % o["start"]).body[:o["end"] - o["start"]]
            equal(got.endswith(text), True, got)
        # one that may hold a secret
        equal(s.run("SECRET=not-for-all", hidden=True), "")
        hidden = commands(s)[-1]
        equal((hidden["command"], hidden["length"], hidden["exit_code"]), ("", 0, 0))
        equal(b"not-for-all" in s.get(V1 + "output").body, False)
        equal(s.run("echo ${#SECRET}"), "11")
        # one that runs
        door, open_it = gate(s)
        began, wait = marker(s)
        b = s.in_background("echo three; %s; %s; echo '%s'" % (began, door, "x" * 3000))
        wait()
        three = commands(s)[-1]
        equal((three["state"], three["exit_code"], len(three["command"]), three["length"] > 3000),
              ("running", None, 1000, True))
        equal(three["clock"]["elapsed"] >= three["clock"]["silent"] >= 0, True, three)
        s.until("it ends where the log does",  # once all that the shell has printed is in it
                lambda: commands(s)[-1]["output"]["end"] == session(s)["output"]["end"])
        open_it()
        equal(len(b.content()), len("three\n") + 3000)
        equal(commands(s)[-1]["state"], "completed")
        # one whose client was answered before it ended, and has not asked again
        door, open_it = gate(s)
        body = {"action": {"action": "run", "timeout": 0.2, "args": {"command": "%s; (exit 9)" % door}}}
        a = s.request("POST", "/execute_action", json.dumps(body), {"Content-Type": "application/json"})
        equal((a.json()["extras"]["metadata"]["exit_code"], commands(s)[-1]["state"]), (-1, "running"))
        open_it()
        s.until("its end", lambda: commands(s)[-1]["state"] == "completed")
        equal((commands(s)[-1]["exit_code"], s.run("")), (9, ""))
        s.run("exit 7")
        equal((commands(s)[-1]["state"], commands(s)[-1]["exit_code"]), ("shell ended", 7))
        for i in range(70):
            s.run("true %d" % i)
        last = commands(s)
        equal((len(last), last[-1]["command"], last[0]["id"]), (64, "true 69", last[-1]["id"] - 63))


def keys():
    with Server() as s:
        equal(post(s, "keys", keys=["C-c"]), (409, {"detail": "no command is running"}))
        for mode, up in (("l", "[A"), ("h", "OA")):
            began, wait = marker(s)
            b = s.in_background("stty -echo -icanon; printf '\\e[?1%s'; %s; IFS= read -rsn9 x;"
                                " printf '\\e[?1l%%q\\n' \"$x\"" % (mode, began))
            wait()
            equal(post(s, "keys", keys=["Up", "F5", "Tab"])[0], 200)
            equal(b.content(), "$'\\E%s\\E[15~\\t'" % up)
        began, wait = marker(s)
        b = s.in_background("%s; cat" % began)
        wait()
        for bad in (["C-c", "Upp"], ["C-ä"], [3], [None], ["Up\0"], ["C-c"] * 1001, "C-c", None):
            equal(post(s, "keys", keys=bad)[0], 400, bad)
        equal(b.is_alive(), True, "none of those was typed")
        equal(post(s, "keys", keys=[])[0], 200)
        equal(post(s, "keys", keys=["a", "C-c"])[0], 400, "letters are input, not keys")
        # one between two programs may be for neither of them
        s.until("the end", lambda: post(s, "keys", keys=["C-c"])[0] == 409)
        b.join(PATIENCE)
        equal(b.answer.json()["extras"]["metadata"]["exit_code"], 130)


def size_of_the_terminal():
    """For the running command alone: no later observation may differ."""
    long = "x" * 3000
    with Server() as s:
        ask = "echo $COLUMNS $LINES; stty size; echo '%s'" % long
        first = s.run(ask)
        equal(post(s, "resize", rows=24, columns=80), (409, {"detail": "no command is running"}))
        for _ in range(5):
            began, wait = marker(s)
            b = s.in_background("bash -c 'trap \"stty size; kill \\$!; exit 0\" WINCH; sleep 1000 & %s; wait'"
                                % began)
            wait()
            status, state = post(s, "resize", rows=24, columns=80)
            equal((status, state["terminal"]), (200, {"rows": 24, "columns": 80}))
            equal(b.content(), "24 80")
            equal(session(s)["terminal"], {"rows": 1000, "columns": 1000})
            equal(s.run(ask), first)
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("%s; %s; stty size; seq -s, 100 300" % (began, door))
        wait()
        for bad in ((0, 80), (24, 1001), (24, 0), (24, "80"), (None, 80), (1 << 70, 80), (24.0, 80)):
            equal(post(s, "resize", rows=bad[0], columns=bad[1])[0], 400, bad)
        equal(post(s, "resize", rows=1, columns=1)[0], 200)
        open_it()
        # the screen that observations are read from is as wide as ever
        equal(b.content(), "1 1\n" + ",".join(str(i) for i in range(100, 301)))
        equal(s.run(ask), first)


class Events:
    """The events of an answer, one after the other: (name, id, data)."""

    def __init__(self, s, query="", last=None):
        self.c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self.c.request("GET", V1 + "output" + query, headers=headers)
        self.r = self.c.getresponse()
        equal((self.r.status, self.r.getheader("Content-Type"), self.r.getheader("Cache-Control")),
              (200, "text/event-stream", "no-store"))
        self.offset = int(self.r.getheader("X-Handrail-Offset"))

    def next(self):
        name, at, data = "message", None, []
        while True:
            line = self.r.readline(4 << 20)
            if not line:
                return None
            line = line.rstrip(b"\n")
            if line.startswith(b"event: "):
                name = line[7:].decode()
            elif line.startswith(b"id: "):
                at = int(line[4:])
            elif line.startswith(b"data: "):
                data.append(line[6:])
            elif line == b"" and data:
                return name, at, json.loads(b"\n".join(data))
            elif line not in (b"", b":"):
                raise AssertionError("no line of an event: %r" % line)

    def bytes(self):
        """The next piece, which must begin where the last one ended."""
        name, at, data = self.next()
        piece = base64.b64decode(data["base64"], validate=True)
        equal((name, data["offset"] + len(piece)), ("message", at))
        return data["offset"], piece

    def close(self):
        self.c.close()


def events():
    with Server() as s:
        end = session(s)["output"]["end"]
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("printf 'a\\303'; %s; %s; printf '\\251b\\377c\\360\\237\\n'" % (began, door))
        wait()
        e, t = Events(s, "?offset=%d" % end), Events(s, "?encoding=text&offset=%d" % end)
        got, at = b"", end
        while not got.endswith(b"a\xc3"):
            begin, piece = e.bytes()
            equal(begin, at)
            got, at = got + piece, at + len(piece)
        text, last = "", None
        while last != at - 1:  # the half of a character waits for the other
            name, last, data = t.next()
            equal(name, "message")
            text += data["text"]
        equal(text[-1], "a")
        # who loses the connection now gets the torn character whole
        u = Events(s, "?encoding=text", last=last)
        equal(u.offset, last)
        open_it()
        b.content()
        want = b"a\xc3\xa9b\xffc\xf0\x9f\r\n"
        while want not in got:
            begin, piece = e.bytes()
            equal(begin, at)
            got, at = got + piece, at + len(piece)
        wanted = "a\u00e9b\ufffdc\ufffd\r\n"
        while wanted not in text:
            text += t.next()[2]["text"]
        again = ""
        while wanted[1:] not in again:
            again += u.next()[2]["text"]
        equal(again.startswith(wanted[1:]), True, again)
        for x in (e, t, u):
            x.close()
        s.until("all are free", lambda: s.pool("live")["busy"] == 0)
        # without `follow` they end; a last half of a character is told then
        s.run("printf 'z\\303' >&2")
        o = session(s)["output"]
        whole = s.get(V1 + "output?offset=%d" % end).body
        f, read = Events(s, "?follow=false&encoding=text&offset=%d" % end), ""
        while True:
            event = f.next()
            if event is None:
                break
            read, last = read + event[2]["text"], event[1]
        equal((read[:len(wanted)], last >= o["end"]), (whole.decode("utf-8", "replace")[:len(wanted)], True))
        for bad in ("offset=x", "encoding=utf-16", "offset=-1"):
            equal(s.get(V1 + "output?" + bad, Accept="text/event-stream").status, 400, bad)
        equal(s.get(V1 + "output", Accept="text/event-stream", Last_Event_ID="x").status, 400)


def gaps_are_told():
    with Server(settings={"output_log_bytes": 4096}) as s:
        s.run("seq 1 5000")
        e = Events(s, "?offset=7")
        name, at, data = e.next()
        equal((name, data["from"], data["to"]), ("gap", 7, at))
        begin, piece = e.bytes()
        equal((begin, at >= session(s)["output"]["end"] - 4096 - 100), (at, True))
        last = begin + len(piece)
        e.close()
        # of another server: its count began anew, and all of it is new
        s.run("seq 1 5000")
        big = session(s)["output"]["end"]
        keeper = s.keeper()[0]
        os.kill(s.pid, signal.SIGKILL)
        s.wait()
        os.kill(keeper, signal.SIGKILL)
        s.start()
        e = Events(s, last=big)
        name, at, data = e.next()
        equal((name, data["from"], data["to"], e.offset), ("gap", big, at, 0))
        equal((at, last > 0), (0, True))
        e.close()


def pieces(s, at, as_events):
    """(offset, bytes) from there on, until the connection is closed by .close()."""
    if as_events:
        e = Events(s, "?offset=0", last=at)
        equal(e.offset, at, "nothing was dropped")
        return e, e.bytes
    f = Follower(s, at)
    equal(f.offset, at, "nothing was dropped")
    where = [at]

    def more():
        p = f.r.read1(1 << 20)
        equal(p != b"", True, "the answer goes on")
        where[0] += len(p)
        return where[0] - len(p), p
    return f, more


def nothing_is_lost():
    follow_all(False)


def no_event_is_lost():
    follow_all(True)


def follow_all(as_events):
    """The connection is cut again and again while the command prints, each time going on at the
    offset."""
    megabytes = int(os.environ.get("E2E_MEGABYTES", "100"))
    with Server(settings={"output_log_bytes": (megabytes + 60) << 20}) as s:
        start = session(s)["output"]["end"]
        lines = megabytes * 10000
        text = "".join("%099d\r\n" % i for i in range(lines)).encode()
        began = time.monotonic()
        b = s.in_background("seq -f %%099.0f 0 %d; echo 'the '\"end\"" % (lines - 1), blocking=True,
                            timeout=PATIENCE * 10)
        digest, at, first, cuts, tail = hashlib.sha256(), start, None, 0, b""
        left = len(text)
        while left > 0:
            f, next_piece = pieces(s, at, as_events)
            budget = (megabytes << 20) // 14  # then the connection is cut
            while left > 0 and budget > 0:
                begin, more = next_piece()
                equal(begin, at)
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
        print("# %d MB, %d connections, %.1f s" % (megabytes, cuts, time.monotonic() - began))
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


def bound_to_one_command():
    """What is meant for one command does not come to another, and its output ends where it does."""
    with Server() as s:
        s.run("echo first")
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("%s; echo anotherone; %s; echo third" % (began, door))
        wait()
        first, second = [c["id"] for c in s.get(V1 + "commands").json()["commands"]][-2:]
        for what, more in (("signal", {"signal": "KILL"}), ("resize", {"rows": 24, "columns": 80})):
            equal(post(s, what, command=first, **more), (409, {"detail": "that command has ended"}))
            for bad in (str(second), 0, -1, float(second), True, [second]):
                equal(post(s, what, command=bad, **more)[0], 400, (what, bad))
        equal(post(s, "resize", rows=24, columns=80, command=second)[0], 200)
        for query in ("", "&follow=true"):
            a = s.get(V1 + "output?offset=0&command=%d%s" % (first, query))
            equal((a.body[-7:], b"anotherone" in a.body), (b"first\r\n", False), a.body)
        for unknown in (second + 1, 1 << 40):
            equal(s.get(V1 + "output?offset=0&command=%d&follow=true" % unknown).body, b"", unknown)
        for bad in ("x", "-1", ""):
            equal(s.get(V1 + "output?command=%s" % bad).status, 400, bad)
        open_it()
        equal(b.content(), "anotherone\nthird")


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
    """Those who follow it ask again, and miss nothing."""
    with Server() as s:
        s.run("echo old")
        list_before, end = commands(s), session(s)["output"]["end"]
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
        s.until("another keeper", again)
        equal((session(s)["output"]["end"], commands(s)), (end, list_before))
        equal(s.run("echo new"), "new")
        g = Follower(s, 0)
        whole = g.until(b"new\r\nnew\r\n")
        equal((g.offset, b"old\r\n" in whole[:end], whole.count(b"echo new\r\n")), (0, True, 1))
        g.close()
        equal([c["id"] for c in commands(s)], [1, 2])


def refused_connections():
    """What the network's rules refused while a command ran: in its observation, and in a list."""
    top = tempfile.mkdtemp()
    path = os.path.join(top, "refused")

    def told(command):
        return s.action(command).json()["extras"]["metadata"]["suffix"]

    try:
        with Server(settings={"network_log": path}) as s:
            equal(s.get(V1 + "network").json(), {"rules": True, "refused": []})
            line = "1767225600 a.test:443 POST a.test/\\x was refused: no rule"
            suffix = told("printf '%%s\\n' '%s' '%s' >>%s" % (line, line, path))
            equal("\n[Network: POST a.test/\\x was refused: no rule, 2 times.]" in suffix, True, suffix)
            equal("Network" in told("true"), False)
            equal(s.get(V1 + "network").json()["refused"],
                  2 * [{"time": 1767225600, "target": "a.test:443", "text": line.split(" ", 2)[2]}])
            told("for i in {1..3000}; do echo 1 b.test:1 another one of them; done >>" + path)
            refused = s.get(V1 + "network").json()["refused"]
            equal((1000 < len(refused) < 3000, {r["text"] for r in refused}), (True, {"another one of them"}))
    finally:
        shutil.rmtree(top)
    with Server() as s:
        equal(s.get(V1 + "network").json(), {"rules": False, "refused": []})


def key_is_needed():
    with Server(env={"SESSION_API_KEY": "k"}, args=["--listen", "127.0.0.1"]) as s:
        for method, path in (("GET", "session"), ("GET", "output"), ("POST", "input"), ("POST", "signal"),
                             ("GET", "commands"), ("POST", "keys"), ("POST", "resize")):
            equal(s.request(method, V1 + path, "{}").status, 403, path)
        equal(s.get(V1 + "session", X_Session_API_Key="k").status, 200)


def no_page_from_elsewhere():
    """Without a key any page in a browser of this machine can send such requests, and needs no answer."""
    with Server() as s:
        host = "127.0.0.1:%d" % s.port
        for origin, status in (("http://evil.example", 403), ("http://127.0.0.1.evil.example", 403), ("null", 403),
                               ("https://" + host + "@evil.example", 403), ("http://" + host, 409), ("", 409)):
            for what, body in (("input", {"text": "x"}), ("keys", {"keys": ["Enter"]}), ("signal", {"signal": "INT"}),
                               ("resize", {"rows": 24, "columns": 80})):
                a = s.request("POST", V1 + what, json.dumps(body), {"Content-Type": "text/plain", "Origin": origin})
                equal(a.status, status, (origin, what, a.body))
        evil = {"Origin": "http://evil.example"}
        for what, body in (("create", {"name": "a"}), ("kill", {}),
                           ("run", {"action": {"action": "run", "args": {"command": "echo x"}}})):
            equal(s.request("POST", V1 + what, json.dumps(body), evil).status, 403, what)
        equal(s.request("POST", V1 + "input", "{}", dict(evil, Host="evil.example")).status, 403, "by another name")
        equal([x["name"] for x in s.get(V1 + "sessions").json()["sessions"]], ["default"])
        equal(s.get(V1 + "commands").json()["commands"], [])
        # as the original has them; a Blob without a type is sent without Content-Type
        made = os.path.join(s.work_dir, "made")
        run = json.dumps({"action": {"action": "run", "args": {"command": "touch " + made}}})
        for path, body in (("/execute_action", run), ("/list_files", "{}"), ("/update_mcp_server", "[]"),
                           ("/upload_file?destination=" + s.work_dir, "")):
            equal(s.request("POST", path, body, evil).status, 403, path)
        equal(s.request("POST", "/execute_action", run, dict(evil, Origin="null")).status, 403, "of no origin")
        equal(os.path.exists(made), False)
        equal(s.request("POST", "/execute_action", run, {"Origin": "http://localhost:5"}).status, 200, "from here")
    with Server(env={"SESSION_API_KEY": "k"}) as s:
        a = s.request("POST", V1 + "create", '{"name": "a"}', dict(evil, **{"X-Session-API-Key": "k"}))
        equal(a.status, 201, "the key says who it is")


TESTS = [no_page_from_elsewhere, while_it_runs, nothing_is_lost, no_event_is_lost, old_output_is_dropped, events,
         gaps_are_told, input_and_signals, bound_to_one_command, list_of_commands, keys, size_of_the_terminal,
         followers_take_nothing_from_actions, end_of_the_server, keeper_dies, key_is_needed,
         refused_connections]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
