#!/usr/bin/env python3
"""Processes of the dialect of E2B: the recorded conversations, and what ends a process and what does not."""

import base64
import contextlib
import fcntl
import gzip
import http.client
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.e2breplay import PATIENCE, Service, explained, frames, replay, scenarios  # noqa: E402
from lib.e2bworld import KEY, Sandbox, World  # noqa: E402
from lib.supervised import ROOT, UnixConnection, kill_wait, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

GROUPS = r"^(cmd|bg|ps|signal|connect|stream|stdin|pty|raw)\."
STREAMS = 1000
MEMORY_MAX = 30 << 20  # of server and keeper together
SECRET = {"X-Session-API-Key": KEY}
END = "/handrail/e2b/process.Process/"


def bash(script, **more):
    return dict({"process": {"cmd": "/bin/bash", "args": ["-c", script]}, "stdin": False}, **more)


def unary(s, method, **message):
    """The status and the answer of a unary call."""
    a = s.request("POST", END + method, json.dumps(message), dict(SECRET, **{"Content-Type": "application/json"}))
    return a.status, a.json()


class Stream:
    """A call with events; they arrive as they are asked for."""
    made = []

    def __init__(self, s, method, message, timeout=None, c=None, **headers):
        body = json.dumps(message).encode()
        self.c, self.data, self.seen = c or s.connection(PATIENCE), b"", 0
        headers = dict(SECRET, **{"Content-Type": "application/connect+json"}, **headers)
        if timeout is not None:
            headers["Connect-Timeout-Ms"] = str(timeout)
        self.c.request("POST", END + method, struct.pack(">BI", 0, len(body)) + body, headers)
        self.r = self.c.getresponse()
        Stream.made.append(self)
        equal(self.r.status, 200, "streams always begin")

    def next(self):
        """The next event by its name, {"error": ...} or {} of the last frame, or None if the stream was cut."""
        while len(frames(self.data)) <= self.seen:
            try:
                more = self.r.read1(65536)
            except (http.client.HTTPException, OSError):
                return None
            if not more:
                return None
            self.data += more
        flags, text = frames(self.data)[self.seen]
        self.seen += 1
        message = json.loads(text)
        return message if flags == 2 else message["event"]

    def pid(self):
        return self.next()["start"]["pid"]

    def rest(self):
        """(stdout, the end or the error) of all that comes."""
        out, last = b"", None
        while True:
            e = self.next()
            if e is None:
                return out, "cut"
            if not e or "error" in e:
                return out, last or e.get("error")
            if "data" in e:
                out += base64.b64decode(e["data"].get("stdout", e["data"].get("pty", "")))
            else:
                last = e.get("end", last)

    def close(self):
        self.r.close()
        self.c.close()


def envds(s):
    """Server and keeper, whose parent is the server or handraild."""
    return [p for p in process.descendants(s.pid)
            if os.path.basename(process.command_line(p).split(" ")[0]) == "handrail-envd"]


def server_of(s):
    return [p for p in envds(s) if not process.command_line(p).endswith("--keeper")]


def keepers(s):
    """The keeper, and its children that have no program yet."""
    return [p for p in envds(s) if process.command_line(p).endswith("--keeper")]


def keeper_of(s):
    return process.without_children(keepers(s))


def waiting_child(s):
    """The child that the keeper has forked for the next command. No command may be on its way to its program."""
    s.until("a child waits", lambda: len(keepers(s)) == 2)
    return [p for p in keepers(s) if p not in keeper_of(s)][0]


@contextlib.contextmanager
def sandbox():
    with Sandbox() as s:
        setup = {} if ROOT else {"defaultWorkdir": s.work_dir}  # the account may have no home
        equal(s.init(**setup).status, 204)
        yield s
        while Stream.made:  # nginx waits five seconds for clients that have not closed
            Stream.made.pop().close()


OK = {"exited": True, "status": "exit status 0"}
KILLED = {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}
NOT_FOUND = {"code": "not_found"}


def recordings():
    if not ROOT:
        raise Skip("needs root: the recordings have an account `user` and root")
    known, bad = explained(), []
    with World() as w:
        service = Service(w.api, w.edge, KEY, w.sandbox.clean)
        for recorded in scenarios(GROUPS):
            for pid in [p["pid"] for p in unary(w.sandbox, "List")[1].get("processes", [])]:
                unary(w.sandbox, "SendSignal", process={"pid": pid}, signal=9)
            found = replay(service, recorded)
            if bool(found) != (recorded["name"] in known):
                bad.append((recorded["name"], found))
    equal(bad, [], "differences")


def only_processes_use_directories():
    """So that the root of a box can be exchanged under the server and the keeper; both have their name."""
    with sandbox() as s:
        cat = Stream(s, "Start", dict(bash("cat"), stdin=True))
        child = cat.pid()
        s.until("cat has become its own program", lambda: len(keeper_of(s)) == 1)
        for pid in server_of(s) + keeper_of(s):
            with open("/proc/%d/comm" % pid) as f:
                equal((os.readlink("/proc/%d/cwd" % pid), f.read()), ("/", "handrail-envd\n"))
        with open("/proc/%d/net/unix" % s.pid) as f:
            bound = [line.split()[7] for line in f if line.rstrip().endswith("/keeper")]
        equal(any(path.startswith(s.run_dir) for path in bound), True, bound)
        equal(unary(s, "SendSignal", process={"pid": child}, signal=9)[0], 200)


def a_killed_server_ends_nothing():
    with sandbox() as s:
        cat = Stream(s, "Start", dict(bash("cat; exit 7"), stdin=True, tag="cat"))
        pid = cat.pid()
        ended = Stream(s, "Start", bash("exit 3"))
        old = ended.pid()
        equal(ended.rest()[1]["exitCode"], 3)
        s.until("cat has become its own program", lambda: len(keeper_of(s)) == 1)
        before = keeper_of(s)
        kill_wait(server_of(s)[0])
        equal(cat.rest(), (b"", "cut"), "a stream breaks without a last frame")
        s.until("there is another server", lambda: len(server_of(s)) == 1)
        equal(keeper_of(s), before, "the keeper")
        again = Stream(s, "Connect", {"process": {"tag": "cat"}})
        equal(again.pid(), pid)
        equal(unary(s, "SendInput", process={"pid": pid},
                    input={"stdin": base64.b64encode(b"hello\n").decode()}), (200, {}))
        equal(unary(s, "CloseStdin", process={"pid": pid}), (200, {}))
        equal(again.rest(), (b"hello\n", {"exitCode": 7, "exited": True, "status": "exit status 7",
                                         "error": "exit status 7"}))
        late = Stream(s, "Connect", {"process": {"pid": old}})
        equal((late.pid(), late.rest()[1]["exitCode"]), (old, 3), "an end is remembered")


def output_while_there_is_no_server():
    """A process that prints more than its pipe holds waits for the next server, and goes on."""
    with sandbox() as s:
        one = Stream(s, "Start", bash("read x; seq 1 100000; echo done >&2; exit 4", stdin=True))
        pid = one.pid()
        for _ in range(3):
            kill_wait(server_of(s)[0])
            s.until("there is another server", lambda: len(server_of(s)) == 1)
        again = Stream(s, "Connect", {"process": {"pid": pid}})
        equal(again.pid(), pid)
        equal(unary(s, "SendInput", process={"pid": pid}, input={"stdin": "Cg=="}), (200, {}))
        out, end = again.rest()
        equal((out, end["exitCode"]), (b"".join(b"%d\n" % n for n in range(1, 100001)), 4))


def a_killed_keeper_ends_its_processes():
    with sandbox() as s:
        one = Stream(s, "Start", bash("sleep 1000"))
        pid = one.pid()
        kill_wait(keeper_of(s)[0])
        equal(one.rest(), (b"", "cut"))
        s.until("there is another server", lambda: len(server_of(s)) == 1 and len(keeper_of(s)) == 1)
        equal(unary(s, "List"), (200, {}))
        gone = Stream(s, "Connect", {"process": {"pid": pid}})
        equal(gone.next()["error"]["code"], "not_found")
        equal(Stream(s, "Start", bash("echo new")).rest()[0], b"new\n")


def handraild_is_replaced(replace):
    with sandbox() as s:
        one = Stream(s, "Start", bash("read x; echo got $x", stdin=True))
        pid = one.pid()
        replace(s)
        again = Stream(s, "Connect", {"process": {"pid": pid}})
        equal(again.pid(), pid, "the process outlives")
        unary(s, "SendInput", process={"pid": pid}, input={"stdin": base64.b64encode(b"it\n").decode()})
        equal(again.rest(), (b"got it\n", OK))


def a_waiting_child():
    """It becomes the next command, holds nothing of the others, may be killed or stopped, and ends with the keeper."""
    with sandbox() as s:
        equal(Stream(s, "Start", bash("true")).rest(), (b"", OK))
        child = waiting_child(s)
        reads = Stream(s, "Start", bash("read x || exit 5", stdin=True))
        pid = reads.pid()
        equal(s.outside(pid), child)
        s.until("the child has its program", lambda: len(keepers(s)) == 1)
        equal(Stream(s, "Start", bash("echo one")).rest(), (b"one\n", OK))
        child = waiting_child(s)
        if ROOT:
            s.until("it has its socket alone", lambda: sorted(os.listdir("/proc/%d/fd" % child)) == list("0123"))
        equal(unary(s, "CloseStdin", process={"pid": pid}), (200, {}))
        equal(reads.rest()[1]["exitCode"], 5, "the child holds no pipe")
        kill_wait(child)
        equal(Stream(s, "Start", bash("echo two")).rest(), (b"two\n", OK))
        os.kill(waiting_child(s), signal.SIGSTOP)  # the shell's account may be the keeper's own
        equal(Stream(s, "Start", bash("echo three")).rest(), (b"three\n", OK))
        child = waiting_child(s)
        kill_wait(keeper_of(s)[0])
        equal(process.wait_gone(child, PATIENCE), True, "the child ends with the keeper")


def an_upgrade_ends_nothing():
    handraild_is_replaced(lambda s: s.upgrade())


def a_killed_handraild_ends_nothing():
    if ROOT:
        raise Skip("handraild is process 1 of root's box, which ends with it: run this test as an ordinary user")
    handraild_is_replaced(lambda s: s.kill_and_start())


def descriptors(pid):
    """What the descriptors of a process are."""
    found = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    return found


def direct_socket():
    """The socket beside the server's own takes calls with the key alone, and stays until handraild ends."""
    with Sandbox(unix=True) as s:
        equal(s.init(**({} if ROOT else {"defaultWorkdir": s.work_dir})).status, 204)
        path = s.unix + ".envd"
        before = os.stat(path)
        equal((before.st_mode & 0o777, before.st_uid), (0o600, os.geteuid()))

        def connect(timeout):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout)
            sock.connect(path)
            return sock

        def direct():
            return UnixConnection(connect, PATIENCE)

        equal(server_of(s), [])
        for headers in ({}, {"X-Session-API-Key": ""}, {"X-Session-API-Key": KEY + "x"}, {"X-API-Key": KEY},
                        {"Authorization": "Bearer " + KEY}):
            c = direct()
            c.request("POST", END + "List", "{}", dict(headers, **{"Content-Type": "application/json"}))
            r = c.getresponse()
            equal((r.status, r.read()), (403, b'{"detail":"Invalid API Key"}'), headers)
            c.close()
        equal(len(server_of(s)), 1, "the first of them has started it")
        if ROOT:  # others' commands have the server's account
            script = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"%s\")' 2>&1" % path
            equal(b"PermissionError" in Stream(s, "Start", bash(script)).rest()[0], True)
        one = Stream(s, "Start", bash("read x; echo got $x", stdin=True), c=direct())
        pid = one.pid()
        with open("/proc/%d/net/unix" % s.pid) as f:
            sock = "socket:[%s]" % next(line.split()[6] for line in f if line.endswith(path + "\n"))
        equal([p for p in envds(s) if sock in descriptors(p)], server_of(s))
        kill_wait(server_of(s)[0])
        equal(one.rest(), (b"", "cut"))
        equal(Stream(s, "Connect", {"process": {"pid": pid}}, c=direct()).pid(), pid)
        s.upgrade()
        again = Stream(s, "Connect", {"process": {"pid": pid}}, c=direct())
        equal((again.pid(), os.stat(path).st_ino), (pid, before.st_ino))
        unary(s, "SendInput", process={"pid": pid}, input={"stdin": base64.b64encode(b"it\n").decode()})
        equal(again.rest(), (b"got it\n", OK))
        s.stop()
        equal(os.path.exists(path), False)


def deadlines():
    with sandbox() as s:
        began = time.monotonic()
        one = Stream(s, "Start", bash("echo a; exec sleep 1000"), 300)
        pid = one.pid()
        equal(one.rest(), (b"a\n", {"code": "deadline_exceeded", "message": "context deadline exceeded"}))
        equal(0.3 <= time.monotonic() - began < PATIENCE, True, "the time")
        s.until("the process is gone", lambda: unary(s, "List") == (200, {}))
        left = Stream(s, "Start", bash("exec sleep 1000"), 300)
        pid = left.pid()
        left.close()
        s.until("the deadline counts without a client", lambda: unary(s, "List") == (200, {}))
        late = Stream(s, "Connect", {"process": {"pid": pid}})
        equal((late.pid(), late.rest()[1]), (pid, KILLED))
        kept = Stream(s, "Start", bash("exec sleep 1000"))
        pid = kept.pid()
        joined = Stream(s, "Connect", {"process": {"pid": pid}}, 200)
        equal((joined.pid(), joined.rest()[1]["code"]), (pid, "deadline_exceeded"))
        equal(unary(s, "List")[1]["processes"][0]["pid"], pid, "the deadline of a reader ends no process")
        for text in ("0", "-5"):
            equal(Stream(s, "Start", bash("echo x"), text).next()["error"]["code"], "deadline_exceeded")
        equal(Stream(s, "Start", bash("echo x"), 2 ** 63 - 1).rest()[0], b"x\n", "the longest deadline")


def tags():
    with sandbox() as s:
        first = Stream(s, "Start", bash("exit 1", tag="t"))
        first.pid()
        equal(first.rest()[1]["exitCode"], 1)
        second = Stream(s, "Start", bash("read x; exit 2", stdin=True, tag="t"))
        pid = second.pid()
        equal(Stream(s, "Connect", {"process": {"tag": "t"}}).pid(), pid, "the later one")
        for _ in range(3):
            Stream(s, "Start", bash("exit 0")).rest()
        equal(unary(s, "CloseStdin", process={"tag": "t"}), (200, {}))
        equal(second.rest()[1]["exitCode"], 2)
        equal(unary(s, "SendSignal", process={"tag": "t"}, signal=9)[0], 404)


def many_readers():
    with sandbox() as s:
        one = Stream(s, "Start", bash("read x; seq 1 20000; exit 9", stdin=True))
        pid = one.pid()
        others = [Stream(s, "Connect", {"process": {"pid": pid}}) for _ in range(20)]
        for o in others:
            equal(o.pid(), pid)
        found, threads = [], []
        for o in [one] + others:
            threads.append(threading.Thread(target=lambda o=o: found.append(o.rest())))
            threads[-1].start()
        unary(s, "SendInput", process={"pid": pid}, input={"stdin": "Cg=="})
        for t in threads:
            t.join(PATIENCE)
        wanted = b"".join(b"%d\n" % n for n in range(1, 20001))
        equal([(out == wanted, end["exitCode"]) for out, end in found], [(True, 9)] * 21)


def memory(s):
    """Anonymous memory of server and keeper, in bytes."""
    total = 0
    for pid in server_of(s) + keeper_of(s):
        with open("/proc/%d/status" % pid) as f:
            total += sum(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon"))
    return total


def a_slow_reader():
    """It holds its own process back, and neither memory nor others."""
    with sandbox() as s:
        slow = Stream(s, "Start", bash("yes"))
        pid = slow.pid()
        before = memory(s)
        equal(Stream(s, "Start", bash("echo quick")).rest()[0], b"quick\n")
        s.until("the process waits", lambda: sleeps(s, pid))
        equal(memory(s) - before < 2 << 20, True, "the memory is bounded")
        slow.close()
        equal(unary(s, "SendSignal", process={"pid": pid}, signal=9), (200, {}))


def sleeps(s, pid):
    """Whether the process sleeps in a write: its pipe is full."""
    with open("/proc/%d/stat" % s.outside(pid)) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


def sanitized(s):
    """Whether the server has a sanitizer, whose shadow is memory, too."""
    with open("/proc/%d/maps" % server_of(s)[0]) as f:
        return "libasan" in f.read()


def a_thousand_streams():
    with sandbox() as s:
        Stream(s, "Start", bash("true")).rest()
        keep = Stream(s, "Start", bash("exec sleep 1000"))
        pid = keep.pid()
        streams = []
        for _ in range(STREAMS):  # nginx gets more connections before the first request is refused
            streams.append(Stream(s, "Connect", {"process": {"pid": pid}}))
            equal(streams[-1].pid(), pid)
        used = memory(s)
        equal(used < MEMORY_MAX * (2 if sanitized(s) else 1), True, "%d bytes" % used)
        equal(unary(s, "SendSignal", process={"pid": pid}, signal=15), (200, {}))
        for o in streams:
            equal(o.rest()[1]["status"], "signal: terminated")
            o.close()


def hostile_bodies():
    with sandbox() as s:
        stream = dict(SECRET, **{"Content-Type": "application/connect+json"})
        plain = dict(SECRET, **{"Content-Type": "application/json"})
        deep = b'{"process":' * 5000
        big = b'{"tag":"' + b"x" * (40 << 20) + b'"}'
        for body in (deep, b'{"process":{"cmd":"a\\u0000b"}}', b'{"process":{"args":[1]}}', b"[]", b'"x"', b"\xff\xfe{",
                     b'{"process":{"envs":{"a":1}}}', b'{"pty":{"size":{"rows":1e99}}}', b'{"tag":[],"stdin":"yes"}'):
            framed = struct.pack(">BI", 0, len(body)) + body
            a = s.request("POST", END + "Start", framed, stream)
            equal((a.status, json.loads(frames(a.body)[-1][1])["error"]["code"]), (200, "invalid_argument"), body[:60])
        many = {"process": {"cmd": "/bin/true", "envs": {"A%d" % i: "" for i in range(20000)}}}
        why = Stream(s, "Start", many).next()["error"]
        equal((why["code"], "argument list too long" in why["message"]), ("invalid_argument", True), why)
        for head in (b"\0\xff\xff\xff\xff", b"\0", b"\3\0\0\0\0", b"\1\0\0\0\2{}"):
            a = s.request("POST", END + "Start", head, stream)
            equal((a.status, "error" in json.loads(frames(a.body)[-1][1])), (200, True), head)
        # little data may become much
        for size in (16 << 20, 48 << 20):
            bomb = gzip.compress(b'{"keepalive":{}}' + b" " * size)
            a = s.request("POST", END + "StreamInput", struct.pack(">BI", 1, len(bomb)) + bomb,
                          dict(stream, **{"Connect-Content-Encoding": "gzip"}))
            flags, text = frames(a.body)[-1]
            text = gzip.decompress(text) if flags & 1 else text
            equal((a.status, b"decompress" in text), (200, size > 32 << 20), text)
        with contextlib.suppress(OSError):
            equal(s.request("POST", END + "List", big, plain).status in (413, 503), True)
        for kind in ("application/proto", "application/grpc", "application/grpc-web+proto", "text/plain"):
            equal(s.request("POST", END + "List", b"", dict(SECRET, **{"Content-Type": kind})).status, 415, kind)
        equal(s.request("POST", END + "List", b"{}", {"Content-Type": "application/json"}).status in (401, 403), True)
        equal(Stream(s, "Start", bash("echo alive")).rest()[0], b"alive\n")


def bounds_of_variables():
    """The sandbox's variables and those of a command count together."""
    with sandbox() as s:
        equal(s.init(envVars={"A": "1", "B": "2"}, **({} if ROOT else {"defaultWorkdir": s.work_dir})).status, 204)
        most = 16384 - int(Stream(s, "Start", bash("env | grep -cE '^(E2B_.*|A|B)='")).rest()[0])
        many = {"C%d" % i: "" for i in range(most)}
        echo = {"process": {"cmd": "/bin/bash", "args": ["-c", "echo $A"], "envs": many}, "stdin": False}
        equal(Stream(s, "Start", echo).rest(), (b"1\n", OK))
        many["more"] = ""
        why = Stream(s, "Start", echo).next()["error"]
        equal((why["code"], "argument list too long" in why["message"]), ("invalid_argument", True), why)


def signals_and_groups():
    """kill 0 of a command ends neither handrail nor other commands of the server's account."""
    with sandbox() as s:
        other = Stream(s, "Start", bash("read x; echo lives", stdin=True))
        pid = other.pid()
        if not ROOT:
            equal(Stream(s, "Start", bash("kill -9 0")).rest()[1], KILLED)
        equal(unary(s, "SendInput", process={"pid": pid}, input={"stdin": "Cg=="}), (200, {}))
        equal(other.rest(), (b"lives\n", OK))


class Sender:
    """A StreamInput: the messages arrive as they are sent."""

    def __init__(self, s, length=None, **headers):
        self.c, self.chunked = s.connection(PATIENCE), length is None
        self.c.putrequest("POST", END + "StreamInput")
        framing = "Transfer-Encoding" if self.chunked else "Content-Length"
        headers = {**SECRET, "Content-Type": "application/connect+json", framing: length or "chunked", **headers}
        for name, value in headers.items():
            self.c.putheader(name, value)
        self.c.endheaders()

    def raw(self, data):
        self.c.send(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)

    def send(self, **message):
        self.raw(framed(message))

    def stdin(self, text, **more):
        self.send(data={"input": {"stdin": base64.b64encode(text).decode()}}, **more)

    def end(self, cut=False):
        """Status, messages; of a cut body nothing."""
        if cut:
            self.c.sock.shutdown(socket.SHUT_RDWR)
            return self.c.close()
        if self.chunked:
            self.c.send(b"0\r\n\r\n")
        return self.answer()

    def answer(self):
        r = self.c.getresponse()
        found = [json.loads(text) for _, text in frames(r.read())]
        self.c.close()
        return r.status, found


def framed(message):
    body = json.dumps(message).encode()
    return struct.pack(">BI", 0, len(body)) + body


def until(stream, text):
    """Reads the output until it is this one."""
    out = b""
    while out != text:
        out += base64.b64decode(stream.next()["data"]["stdout"])
        equal(text.startswith(out), True, out[-100:])


def input_as_it_arrives():
    with sandbox() as s:
        cat = Stream(s, "Start", dict(bash("exec cat"), stdin=True, tag="cat"))
        pid = cat.pid()
        one = Sender(s)
        one.send(start={"process": {"tag": "cat"}})
        for n in range(3):
            one.stdin(b"line %d\n" % n)
            until(cat, b"line %d\n" % n)
        # another one waits for nobody, and a message may arrive in pieces
        whole = framed({"start": {"process": {"pid": pid}}}) + framed({"data": {"input": {"stdin": "cGllY2U="}}})
        two = Sender(s, str(len(whole)))
        for n in range(0, len(whole), 7):
            two.raw(whole[n:n + 7])
        until(cat, b"piece")
        equal(two.end(), (200, [{}, {}]))
        one.send(keepalive={})
        one.stdin(b"last")
        until(cat, b"last")
        equal(one.end(), (200, [{}, {}]))
        # a cut body: the messages before the cut count
        three = Sender(s)
        whole = framed({"start": {"process": {"pid": pid}}}) + framed({"data": {"input": {"stdin": "Y3V0"}}})
        three.raw(whole + b"\0\0")
        until(cat, b"cut")
        three.end(cut=True)
        # messages that are wrong end the call, not the process
        for bad, code in (({"data": {"input": {"stdin": "YQ=="}}}, "failed_precondition"),
                          ({"start": {"process": {"pid": 1}}}, "not_found"), ({"start": 5}, "invalid_argument")):
            four = Sender(s)
            four.send(**bad)
            status, found = four.answer()
            equal((status, found[-1]["error"]["code"]), (200, code), bad)
        equal(unary(s, "SendInput", process={"pid": pid}, input={"stdin": "YQ=="}), (200, {}))
        until(cat, b"a")
        equal(s.request("GET", END + "StreamInput", None, SECRET).status, 405)
        # the end of the process ends a body that has none
        five = Sender(s)
        five.send(start={"process": {"pid": pid}})
        five.stdin(b"b")
        until(cat, b"b")
        equal(unary(s, "CloseStdin", process={"pid": pid}), (200, {}))
        equal(cat.rest(), (b"", OK))
        equal(five.answer(), (200, [{}, {}]))


def early_answers():
    """The answer to a call reaches a client whose messages are on their way."""
    with sandbox() as s:
        message = framed({"data": {"input": {"stdin": "x" * (1 << 20)}}}) * 4
        whole = framed({"start": {"process": {"pid": 1}}}) + message
        for n, length in enumerate((None, str(len(whole))) * 10):
            one = Sender(s, length)
            with contextlib.suppress(ConnectionError):
                one.raw(whole)
            status, found = one.answer()
            equal((status, [m["error"]["code"] for m in found]), (200, ["not_found"]), n)
        for n in range(10):
            two = Sender(s, **{"Content-Type": "text/plain"})
            with contextlib.suppress(ConnectionError):
                two.raw(whole)
            equal(two.answer(), (415, []), n)


def much_input():
    """A process that reads nothing holds its sender back, not the others, in little memory."""
    with sandbox() as s:
        idle = Stream(s, "Start", dict(bash("read go; exec sha1sum"), stdin=True))
        pid = idle.pid()
        one, piece, sent = Sender(s), b"x" * 60000, 0
        one.send(start={"process": {"pid": pid}})
        one.stdin(b"go\n")
        stop = Stream(s, "Start", bash("exec sleep 1000"))
        equal(unary(s, "SendSignal", process={"pid": pid}, signal=9)[0], 200)
        equal(idle.rest()[1], KILLED)
        equal(one.answer(), (200, [{}, {}]))
        held = Stream(s, "Start", dict(bash("exec sleep 1000"), stdin=True))
        two = Sender(s)
        two.send(start={"process": {"pid": held.pid()}})
        two.c.sock.settimeout(1)
        with contextlib.suppress(socket.timeout):
            while sent < 100 << 20:
                two.stdin(piece)
                sent += len(piece)
        equal(sent < 20 << 20, True, "%d bytes were taken" % sent)
        equal(Stream(s, "Start", bash("echo alive")).rest()[0], b"alive\n")
        used = memory(s)
        equal(used < MEMORY_MAX * (2 if sanitized(s) else 1), True, "%d bytes" % used)
        two.end(cut=True)
        for o in (stop, held):
            o.close()


def held_input():
    """The bytes that wait in all calls are bounded; those of a call that has left do not count."""
    piece = b" " * (1 << 20)
    with sandbox() as s:
        senders = []
        for _ in range(6):
            senders.append(Sender(s))
            senders[-1].raw(struct.pack(">BI", 0, 31 << 20))
            with contextlib.suppress(ConnectionError):
                for _ in range(30):
                    senders[-1].raw(piece)
        refused = select.select([one.c.sock for one in senders], [], [], PATIENCE)[0]
        equal(bool(refused), True, "one of them is refused")
        status, found = senders.pop([one.c.sock for one in senders].index(refused[0])).answer()
        equal((status, found[-1]["error"]["code"]), (200, "resource_exhausted"), found)
        equal("160 MiB" in found[-1]["error"]["message"], True, found)
        senders.pop().end(cut=True)
        count = Stream(s, "Start", dict(bash("exec wc -c"), stdin=True))
        pid = count.pid()
        data = {"input": {"stdin": base64.b64encode(piece * 12).decode()}}

        def taken():
            one = Sender(s)
            with contextlib.suppress(ConnectionError):
                one.send(start={"process": {"pid": pid}})
                one.send(data=data)
                one.c.send(b"0\r\n\r\n")
            return one.answer() == (200, [{}, {}])
        s.until("the bytes of the one that left do not count", taken)
        for one in senders:
            one.end(cut=True)
        equal(unary(s, "SendInput", process={"pid": pid}, **data), (200, {}))
        equal(unary(s, "CloseStdin", process={"pid": pid}), (200, {}))
        out, end = count.rest()
        equal((int(out), end), (24 << 20, OK))


def a_sender_that_leaves():
    """It takes back the bytes that a process has not read yet."""
    with sandbox() as s:
        held = Stream(s, "Start", dict(bash("kill -STOP $$; exec wc -c"), stdin=True))
        pid = held.pid()

        at, out = "/proc/%d/fd/" % server_of(s)[0], s.outside(pid)

        def sockets():
            found = 0
            for name in os.listdir(at):
                with contextlib.suppress(FileNotFoundError):
                    found += os.readlink(at + name).startswith("socket:")
            return found

        def waiting():
            with open("/proc/%d/fd/0" % out, "rb", buffering=0) as f:
                return struct.unpack("i", fcntl.ioctl(f, termios.FIONREAD, bytes(4)))[0]
        before = sockets()
        one = Sender(s)
        one.send(start={"process": {"pid": pid}})
        one.stdin(b"x" * 200000)
        s.until("it has stopped", lambda: open("/proc/%d/stat" % out).read().rpartition(") ")[2][0] == "T")
        s.until("the pipe is full", lambda: waiting() > 0)
        one.end(cut=True)
        s.until("the sender is gone", lambda: sockets() == before)
        os.kill(out, signal.SIGCONT)
        equal(unary(s, "CloseStdin", process={"pid": pid}), (200, {}))
        text, end = held.rest()
        equal((0 < int(text) < 200000, end), (True, OK), text)


def new_groups():
    """A command has the groups that its account has got a moment ago."""
    if not ROOT:
        raise Skip("needs root: others' boxes have one account")
    with sandbox() as s:
        for n in range(3):
            s.inside("echo new%d:x:%d:user >>/etc/group" % (n, 7000 + n))
            found = Stream(s, "Start", bash("id -G")).rest()[0].split()
            equal([b"%d" % (7000 + m) in found for m in range(3)], [m <= n for m in range(3)], found)


def a_client_that_leaves_ends_nothing():
    with sandbox() as s:
        one = Stream(s, "Start", bash("read x; echo more; exit 6", stdin=True))
        pid = one.pid()
        one.c.sock and one.c.sock.shutdown(socket.SHUT_RDWR)
        one.close()
        again = Stream(s, "Connect", {"process": {"pid": pid}})
        equal(again.pid(), pid)
        unary(s, "SendInput", process={"pid": pid}, input={"stdin": "Cg=="})
        equal(again.rest()[0], b"more\n")


if __name__ == "__main__":
    sys.exit(run_tests([
        recordings, only_processes_use_directories, a_killed_server_ends_nothing, output_while_there_is_no_server,
        a_killed_keeper_ends_its_processes, a_waiting_child, an_upgrade_ends_nothing,
        a_killed_handraild_ends_nothing, direct_socket, deadlines, tags, many_readers, a_slow_reader,
        a_thousand_streams, hostile_bodies, bounds_of_variables, input_as_it_arrives, early_answers, much_input,
        held_input, a_sender_that_leaves, signals_and_groups, new_groups, a_client_that_leaves_ends_nothing]))
