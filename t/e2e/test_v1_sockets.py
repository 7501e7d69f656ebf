#!/usr/bin/env python3
"""/sockets/bash-events of OpenHands V1: the recorded conversations of t/corpus/v1/sockets.jsonl, and what the original
does not have: large outputs, slow readers, kills."""

import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import PATIENCE, Server, gate, kill_wait, need_root, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
import test_agent_server  # noqa: E402
from test_door import call, structured  # noqa: E402
from test_v1 import KEY, V1  # noqa: E402
from test_v1_replay import Rooted, lines  # noqa: E402

WATCHES = "/proc/sys/user/max_inotify_watches"
LAST = "no JSON"  # a message whose answer shows that none came before
OTHERS = {"BYTES": (b"{}", 2), "CLOSE": (b"\x0f\xa0bye", 8)}  # frames that are not of text


def frame(data, op=1):
    size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BH", 0xfe, len(data))
    return bytes([0x80 | op]) + size + b"\1\2\3\4" + bytes(b ^ (i % 4 + 1) for i, b in enumerate(data))


class Socket:
    def __init__(self, port, target="/sockets/bash-events", headers=None, upgrade=True):
        self.c = socket.create_connection(("127.0.0.1", port), PATIENCE)
        lines = ["GET %s HTTP/1.1" % target, "Host: x", *("%s: %s" % h for h in (headers or {}).items())]
        if upgrade:
            lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
        self.c.sendall("\r\n".join(lines + ["", ""]).encode())
        self.f = self.c.makefile("rb")
        self.status = int(self.f.readline().split()[1])
        self.answer = []
        while self.answer[-1:] != [b""]:
            self.answer.append(self.f.readline().strip())
        equal(self.status != 101 or b"sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=" in
              [line.lower() for line in self.answer], True, self.answer)
        self.closed = None

    def say(self, text):
        self.c.sendall(frame(*OTHERS.get(text, (text.encode(),))))
        return self

    def hear(self):
        """Returns the next message; None at the end, whose code and reason `closed` has."""
        while True:
            head = self.f.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7f
            if size > 125:
                size = int.from_bytes(self.f.read(2 if size == 126 else 8), "big")
            data = self.f.read(size)
            if head[0] == 0x81:
                return json.loads(data)
            if head[0] == 0x88:
                self.closed = [int.from_bytes(data[:2], "big"), data[2:].decode()]
                return None

    def close(self):
        self.f.close()
        self.c.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()


def masked(messages):
    """Ids are numbered in the order in which they appear; times and texts of errors are only there."""
    names = {}
    for m in messages:
        for name in ("command_id", "id"):
            if name in m:
                m[name] = names.setdefault(m[name], len(names))
        if "detail" in m:
            equal(m["detail"][:1] in ("", "{", "["), False, m)
            m["detail"] = "D"
        equal(re.fullmatch("[-0-9]{10}T[:.0-9]{8,15}Z", m["timestamp"]) is not None, True, m)
        m["timestamp"] = "T"
    return messages


def play(port, key, ask, line):
    """Returns the status, the messages and the close of a conversation."""
    ask("DELETE", "/api/bash/bash_events")
    for command in line.get("before", ()):
        ask("POST", "/api/bash/execute_bash_command", json.dumps({"command": command}))
    headers = {k: v.replace("KEY", key) for k, v in line.get("headers", {}).items()}
    heard = []
    with Socket(port, line["target"].replace("KEY", key), headers, line.get("upgrade", True)) as w:
        if w.status == 101:
            for text, answers in line["say"]:
                if text == "RUN":
                    ask("POST", "/api/bash/execute_bash_command", json.dumps({"command": "echo run"}))
                else:
                    w.say(text.replace("KEY", key))
                while answers > 0:
                    heard.append(w.hear())
                    answers -= 1
                    if heard[-1] is None:
                        return 101, masked(heard[:-1]), w.closed
            if "close" not in line:
                w.say(LAST)
                heard.append(w.hear())
        return w.status, masked(heard), w.closed


def recorded():
    cases = lines("sockets.jsonl")
    equal(len(cases) > 30, True)
    with V1() as s:
        for line in cases:
            status, heard, closed = play(s.port, KEY, s.ask, line)
            equal((status, heard, closed), (line["status"], line["heard"], line.get("close")), line)


def keyed(s, more="", **headers):
    return Socket(s.port, "/sockets/bash-events?session_api_key=%s%s" % (KEY, more), headers)


def outputs():
    """A command that still runs shows its whole pieces; with its end come the rest and the exit code. Each event comes
    once, in order, and is the one of the search."""
    with V1() as s:
        with keyed(s) as w:
            script = "head -c 2500000 /dev/zero | tr '\\0' a; echo b >&2; read </dev/zero; exit 3"
            id = s.ask("POST", "/api/bash/start_bash_command", json.dumps({"command": script})).json()["id"]
            got = [w.hear() for _ in range(3)]
            equal([(m["kind"], m.get("order"), len(m.get("stdout", ""))) for m in got],
                  [("BashCommand", None, 0), ("BashOutput", 0, 1 << 20), ("BashOutput", 1, 1 << 20)])
            s.ask("POST", "/api/bash/bash_commands/%s/stop" % id)
            got.append(w.hear())
            equal((got[3]["order"], len(got[3]["stdout"]), got[3]["stderr"], got[3]["exit_code"]),
                  (2, 2500000 - (2 << 20), "b\n", -15))
            w.say(LAST)
            equal(w.hear()["kind"], "BashError", "no further event")
        listed = s.ask("GET", "/api/bash/bash_events/search").json()["items"]
        equal([m["id"] for m in listed], [m["id"] for m in got])
        with keyed(s, "&resend_mode=all") as w:
            equal([w.hear() for _ in listed], listed)


def printed_later():
    """What a process in the background prints after the end is in the events, and the last one still has the end."""
    with V1() as s:
        with keyed(s) as w:
            script = "mkfifo g; (read x <g; head -c 1500000 /dev/zero | tr '\\0' a) & echo b"
            s.ask("POST", "/api/bash/start_bash_command", json.dumps({"command": script}))
            equal([w.hear()["kind"], w.hear()["exit_code"]], ["BashCommand", 0])
            with open(os.path.join(s.work_dir, "g"), "w") as g:
                g.write("x\n")

            def listed():
                return s.ask("GET", "/api/bash/bash_events/search").json()["items"]
            s.until("all is printed", lambda: len(listed()[-1].get("stdout") or "") == 1500002 - (1 << 20))
            with keyed(s, "&resend_mode=all") as other:
                equal([other.hear() for _ in range(3)], listed())


def cut_by_the_command():
    """A command that cuts its output has an end nevertheless."""
    with V1() as s:
        with keyed(s) as w:
            script = ("mkfifo g; head -c 3000000 /dev/zero | tr '\\0' a; read x <g; "
                      "%s -c 'import os; os.ftruncate(1, 0)'; exit 3")
            s.ask("POST", "/api/bash/start_bash_command", json.dumps({"command": script % sys.executable}))
            equal([w.hear()["kind"], len(w.hear()["stdout"]), len(w.hear()["stdout"])],
                  ["BashCommand", 1 << 20, 1 << 20])
            with open(os.path.join(s.work_dir, "g"), "w") as g:
                g.write("x\n")
            end = w.hear()
            equal((end["kind"], end["exit_code"], end["stdout"]), ("BashOutput", 3, None))


def many():
    """51 clients are one too many, and a slow one holds up neither commands nor others."""
    with V1() as s:
        slow = keyed(s)
        s.execute("head -c 30000000 /dev/zero | tr '\\0' a")
        others = [keyed(s) for _ in range(49)]
        with keyed(s) as w:
            equal((w.hear(), w.closed), (None, [1013, "Too many bash event connections"]))
        s.execute("echo 1")
        for w in others:
            equal([m["kind"] for m in (w.hear(), w.hear())], ["BashCommand", "BashOutput"])
            w.close()
        heard = [slow.hear() for _ in range(32)]
        equal([m["kind"] for m in heard], ["BashCommand"] + ["BashOutput"] * 29 + ["BashCommand", "BashOutput"])
        slow.close()


def keyless():
    """Connections without a key hold up nobody, and their messages are short."""
    with V1() as s:
        with keyed(s) as w:
            held = [Socket(s.port) for _ in range(140)]
            s.execute("echo 1")
            equal([w.hear()["kind"], w.hear()["stdout"]], ["BashCommand", "1\n"])
            with keyed(s, "&resend_mode=all") as late:
                equal([late.hear()["kind"], late.hear()["stdout"]], ["BashCommand", "1\n"])
            equal(held[0].hear(), None, "the first one made room")
            held[-1].c.sendall(b"\x81\xff" + (1 << 20).to_bytes(8, "big") + b"\0\0\0\0")
            equal((held[-1].hear(), held[-1].closed), (None, [1009, "a frame of 1048576 bytes"]))
            for one in held:
                one.close()


def stopped():
    """Clients hear of the server's end, as the original's do."""
    with V1() as s, keyed(s) as w, Socket(s.port) as other:
        w.say(LAST).hear()
        s.stop()
        for one in (w, other):
            equal((one.hear(), one.closed), (None, [1012, ""]))


def too_large():
    """A client that still sends hears the reason."""
    with V1() as s, keyed(s) as w, ThreadPoolExecutor(1) as beside:
        beside.submit(w.c.sendall, b"\x81\xff" + (8 << 20).to_bytes(8, "big") + bytes(4 + (8 << 20)))
        equal((w.hear(), w.closed), (None, [1009, "a frame of 8388608 bytes"]))


class Bounded(V1):
    """A server in a user namespace, whose inotify watches a test can limit."""

    def __init__(self):
        done = subprocess.run(["unshare", "-Ur", "cat", WATCHES], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skip("no user namespaces for this account: " + done.stderr.strip())
        self.most = done.stdout.strip()
        Server.__init__(self, env={"SESSION_API_KEY": KEY, "RUNTIME_USERNAME": "root", "USER": "root"},
                        prefix=("unshare", "-Ur"), args=["--listen", "127.0.0.1"], settings={"openhands_v1": True})

    def limit(self, n):
        subprocess.run(["nsenter", "-t", str(self.pid), "-U", "--preserve-credentials", "sh", "-c",
                        "echo %s >%s" % (n, WATCHES)], check=True)


def unwatched():
    """A client whose events cannot be followed is closed, and the log says why, once. So is one whose directory of
    commands is removed; the next one makes it again."""
    with Bounded() as s:
        s.execute("echo 1")
        with keyed(s) as w, keyed(s) as other:
            w.say(LAST).hear()
            other.say(LAST).hear()
            s.limit(0)
            id = s.begin("sleep 100").json()["id"]
            for one in (w, other):
                while one.hear() is not None:
                    pass
                equal(one.closed, [1011, "Events cannot be followed"])
        for _ in range(2):
            with keyed(s) as w:
                equal((w.hear(), w.closed), (None, [1011, "Events cannot be followed"]))
        equal(bool(s.wait_log(r"cannot be watched \(see fs\.inotify\.max_user_watches\)")), True)
        equal(s.log().count("cannot be watched"), 1)
        equal(s.finish(id)[0], -9, "its minder cannot watch it")
        s.limit(s.most)
        with keyed(s) as w:
            s.execute("echo 2")
            equal([w.hear()["kind"], w.hear()["stdout"]], ["BashCommand", "2\n"])
            shutil.rmtree(os.path.join(s.run_dir, "v1"))
            equal((w.hear(), w.closed), (None, [1011, "Events cannot be followed"]))
        with keyed(s) as w:
            s.execute("echo 3")
            equal([w.hear()["kind"], w.hear()["stdout"]], ["BashCommand", "3\n"])


def unwatched_from_the_start():
    """The log names the limit, too, if nothing at all can be watched."""
    with Bounded() as s:
        s.limit(0)
        with keyed(s) as w:
            equal((w.hear(), w.closed), (None, [1011, "Events cannot be followed"]))
        equal(bool(s.wait_log(r"/v1/? cannot be watched \(see fs\.inotify\.max_user_watches\)")), True, s.log())


def watches_of_minders(s):
    """The number of files that the minders of commands watch."""
    n = 0
    for pid in process.descendants(s.pid):
        if "handrail-bound" not in process.command_line(pid).split(" ")[0]:
            continue
        for fd in os.listdir("/proc/%d/fdinfo" % pid):
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
                n += f.read().count("inotify wd:")
    return n


def unwatched_wait():
    """One call of the tool wait lasts until the end of a command that cannot be watched."""
    with Bounded() as s, ThreadPoolExecutor(1) as beside:
        by = {"X-Session-API-Key": KEY}
        door, open_it = gate(s)
        handle = structured(call(s, "run", by, command=door, background=True))["handle"]
        s.until("the minder watches its command", lambda: watches_of_minders(s) == 3)
        s.limit(0)
        got = beside.submit(call, s, "wait", by, handle=handle, wait_s=300)
        s.until("it waits", lambda: s.ask("GET", "/ready").json()["components"]["pool_action"]["busy"] == 1)
        open_it()
        r = structured(got.result(PATIENCE))
        equal((r["running"], r["exit_code"]), (False, 0), r)


def account():
    """Commands have the shell's account, with root's server, too."""
    need_root()
    with Rooted() as s:
        with keyed(s) as w:
            w.say('{"command": "id -un"}')
            equal([w.hear()["kind"], w.hear()["stdout"]], ["BashCommand", "nobody\n"])


def killed():
    """A killed program costs connections: the next one starts another, with all events."""
    with V1() as s:
        with keyed(s) as w:
            s.execute("echo 1")
            first = [w.hear(), w.hear()]
            kill_wait(pid_of(s))
            equal(w.hear(), None)
        s.until("it is back", lambda: again(s, first))


def again(s, first):
    with keyed(s, "&resend_all=1") as w:
        return w.status == 101 and [w.hear(), w.hear()] == first


def pid_of(s):
    return next(pid for pid in process.descendants(s.pid) if "handrail-bash-events" in process.command_line(pid))


def without_keys():
    """Pages of other origins are refused as by the other routes."""
    with Server(ready=None, args=["--listen", "127.0.0.1"],
                settings={"openhands_v1": True, "allow_unauthenticated": True}) as s:
        s.start()
        for origin, status in (("http://evil.example", 403), ("http://localhost:3000", 101)):
            with Socket(s.port, headers={"Origin": origin}) as w:
                equal(w.status, status, origin)
        with Socket(s.port) as w:
            equal(w.say('{"command": "echo 1"}').hear()["kind"], "BashCommand")
            equal(w.hear()["stdout"], "1\n")


def fleet_key():
    other = "the-key-that-the-fleet-gives"
    digest = hashlib.sha256(other.encode()).hexdigest()
    with V1() as s:
        for front, good in ((KEY + " " + digest, True), ("x " + digest, False), (KEY, False),
                            (KEY + " " + "0" * 64, False)):
            with Socket(s.port, headers={"X-Handrail-Front": front}) as w:
                w.say(json.dumps({"type": "auth", "session_api_key": other})).say(LAST)
                equal(w.hear() is not None, good, front)


def beside_an_agent_server():
    """The plugin agent-server has the other sockets, and handrail's commands are seen here nevertheless."""
    with test_agent_server.Agent() as s:
        s.ask("GET", "/api/settings")
        headers = {"X-Session-API-Key": test_agent_server.KEY}
        other = test_agent_server.Socket(s, "/sockets/events/1", "X-Session-API-Key: " + test_agent_server.KEY)
        with Socket(s.port, headers=headers) as w, other:
            s.ask("POST", "/api/bash/execute_bash_command", '{"command": "echo 1"}')
            equal([w.hear()["kind"], w.hear()["stdout"]], ["BashCommand", "1\n"])
            equal(other.hear(), "open")


if __name__ == "__main__":
    sys.exit(run_tests([recorded, outputs, printed_later, cut_by_the_command, many, keyless, stopped, too_large,
                        unwatched, unwatched_from_the_start, unwatched_wait, account, killed, without_keys, fleet_key,
                        beside_an_agent_server]))
