#!/usr/bin/env python3
"""handraild is upgraded in place under load, again and again: the shell, its command under way and all
sockets go on. Every request is answered, and with its own answer; where connections are kept, one that
was idle may be closed, which is no answer lost.

    test_upgrades.py [UPGRADES] [--clients N] [--requests N] [--pause SECONDS]"""

import argparse
import http.client
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import PATIENCE, ROOT, Server, gate, marker, need, need_entrance, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

JSON = {"Content-Type": "application/json"}
BOUNDARY = "an-upload-of-a-test"
UPLOAD = {"Content-Type": "multipart/form-data; boundary=" + BOUNDARY}


def action(kind, **args):
    return "POST", "/execute_action", json.dumps({"action": {"action": kind, "args": args}}), JSON


class Client(threading.Thread):
    """One request after the other, each sent once: what it says is checked by what it asked."""

    def __init__(self, load, number, kept):
        super().__init__(daemon=True)
        self.load, self.number, self.kept, self.connection = load, number, kept, None
        self.cut, self.failure, self.slowest = 0, None, 0.0
        self.kinds = (self.run_one, self.read_one, self.alive_one, self.upload_one, self.ready_one)
        self.start()

    def run(self):
        n = self.number
        try:
            while not self.load.stop.is_set():
                n += 1
                self.kinds[n % len(self.kinds)]("c%d-%d" % (self.number, n))
                self.load.count()
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
            self.load.stop.set()
            self.load.count()

    def run_one(self, token):
        answer = self.ask(*action("run", command="echo " + token))
        if answer is not None:
            equal(json.loads(answer)["content"], token)

    def read_one(self, _):
        answer = self.ask(*action("read", path=self.load.file))
        if answer is not None:
            equal("here it is" in json.loads(answer)["content"], True, answer)

    def alive_one(self, _):
        self.ask("GET", "/alive")

    def ready_one(self, _):
        """A worker asks the supervisor for it."""
        answer = self.ask("GET", "/ready")
        if answer is not None:
            equal(json.loads(answer)["status"], "ready", answer)

    def upload_one(self, token):
        name = "up-%d" % self.number
        body = ("--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n\r\n%s\r\n--%s--\r\n"
                % (BOUNDARY, name, token, BOUNDARY))
        if self.ask("POST", "/upload_file?destination=" + self.load.server.work_dir, body, UPLOAD) is not None:
            with open(os.path.join(self.load.server.work_dir, name)) as f:
                equal(f.read(), token)

    def ask(self, method, path, body=None, headers=None):
        """The text, or None for a kept connection that was closed before."""
        used = self.connection is not None
        if not used:
            self.connection = self.load.server.connection()
        began = time.monotonic()
        try:
            self.connection.request(method, path, body, dict(headers or {}, **({} if self.kept else {
                "Connection": "close"})))
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            if not used:
                raise AssertionError("a fresh connection was cut: %r" % error) from error
            self.forget()
            self.cut += 1
            return None
        self.slowest = max(self.slowest, time.monotonic() - began)
        if answer.will_close or not self.kept:
            self.forget()
        equal(answer.status, 200, (method, path, text))
        return text

    def forget(self):
        self.connection.close()
        self.connection = None


class Load:
    def __init__(self, server, clients):
        self.server, self.stop = server, threading.Event()
        self.answers, self.grew = 0, threading.Condition()
        self.file = os.path.join(server.work_dir, "file")
        with open(self.file, "w") as f:
            f.write("here it is\n")
        self.clients = [Client(self, n * 1000000, kept=n % 2 == 1) for n in range(clients)]

    def count(self):
        with self.grew:
            self.answers += 1
            self.grew.notify_all()

    def wait(self, more):
        with self.grew:
            until = self.answers + more
            return self.grew.wait_for(lambda: self.answers >= until or self.stop.is_set(), PATIENCE)

    def end(self):
        self.stop.set()
        for c in self.clients:
            c.join(PATIENCE)
        for c in self.clients:
            if c.failure is not None:
                raise AssertionError("client %d: %r\n%s" % (
                    c.number, c.failure, self.server.log())) from c.failure


def who():
    return {"name": "nobody", "env": {"RUNTIME_USERNAME": "nobody", "USER": "root"}} if ROOT else {}


def until_ready(s, count):
    if not s.wait_log(" ready: ", count=count):
        raise AssertionError("no upgrade %d\n%s" % (count - 1, s.log()))


def upgrades_under_load(**how):
    """Requests of every kind, over fresh connections and kept ones; every second time nginx is replaced,
    too, as its configuration is another one."""
    with Server(settings={}, **how, **who()) as s:
        load = Load(s, OPTIONS.clients)
        start = time.monotonic()
        try:
            for n in range(OPTIONS.upgrades):
                s.write_settings({"keepalive_timeout": 75 - n // 2 % 2})
                s.send(signal.SIGUSR2)
                until_ready(s, n + 2)
                load.stop.wait(OPTIONS.pause)
                if not load.wait(OPTIONS.requests // OPTIONS.upgrades) or load.stop.is_set():
                    break
        finally:
            load.end()
        cut = sum(c.cut for c in load.clients)
        print("# %d upgrades, %d answers in %.1f s, the slowest after %.3f s, %d idle connections closed" % (
            OPTIONS.upgrades, load.answers - cut, time.monotonic() - start,
            max(c.slowest for c in load.clients), cut))
        equal(cut <= OPTIONS.upgrades // 2 * OPTIONS.clients, True, cut)
        one_of_each(s)


def nothing_is_refused():
    upgrades_under_load()


def nothing_is_refused_at_a_unix_socket():
    upgrades_under_load(unix=True)


def one_of_each(s):
    """The old nginx and the old workers have ended."""
    master(s)
    s.until("the old workers end", lambda: len(s.pids("handrail-worker")) == len(set(
        w for pool in ("control", "files", "action", "live") for w in s.workers(pool))))


def masters(s):
    return {p for p in s.pids("nginx") if "master" in process.command_line(p)}


def master(s):
    """The only one: the old one may take a moment to end."""
    s.until("one nginx is left", lambda: len(masters(s)) == 1)
    return masters(s).pop()


def kept_connections():
    """An nginx that would be started again as it is goes on, and no connection is closed: one that is
    idle would be, and what is on its way to it is cut."""
    with Server(settings={}, **who()) as s:
        connections = [s.connection() for _ in range(8)]

        def ask():
            answers = []
            for c in connections:
                c.request("GET", "/alive")
                answer = c.getresponse()
                answers.append((answer.status, answer.will_close))
                answer.read()
            return answers
        equal(ask(), [(200, False)] * 8)
        sockets, before = [c.sock for c in connections], master(s)
        for n in range(3):
            s.send(signal.SIGUSR2)
            until_ready(s, n + 2)
            equal(ask(), [(200, False)] * 8)
        equal(([c.sock for c in connections], master(s)), (sockets, before))
        one_of_each(s)
        # it is ours as before: one that dies is replaced, and its words are in our log
        os.kill(before, signal.SIGKILL)
        s.until("there is another", lambda: masters(s) - {before})
        s.until("it answers", lambda: s.get("/ready").json()["components"]["nginx"]["state"] == "ready")
        # with other settings there is another one
        before = master(s)
        s.write_settings({"keepalive_timeout": 0})
        s.send(signal.SIGUSR2)
        until_ready(s, 5)
        equal((s.get("/alive").headers["Connection"], master(s) != before), ("close", True))
        for c in connections:
            c.close()


def another_nginx():
    """Its program was replaced meanwhile: it is the new one that runs then."""
    with tempfile.TemporaryDirectory(prefix="e2e-nginx-") as top:
        os.chmod(top, 0o755)
        program = os.path.join(top, "nginx")
        shutil.copy(need("nginx"), program)
        with Server(settings={"nginx": program}, shown=[top], **who()) as s:
            before = master(s)
            s.upgrade()
            equal(master(s), before)
            shutil.copy(need("nginx"), program + ".new")
            os.rename(program + ".new", program)
            s.send(signal.SIGUSR2)
            until_ready(s, 3)
            equal(master(s) != before, True)
            equal(os.readlink("/proc/%d/exe" % master(s)), program)
            equal(s.run("echo on"), "on")


def command_under_way():
    """It comes to its answer, however often."""
    with Server(**who()) as s:
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("X=kept; %s; %s; echo result" % (began, hold))
        wait()
        for n in range(4):
            s.send(signal.SIGUSR2)
            until_ready(s, n + 2)
        go()
        equal(b.content(), "result")
        equal(s.run("echo $X"), "kept")
        one_of_each(s)


def in_quick_succession():
    """One that is asked for while another starts comes after it; so does the end."""
    with Server(**who()) as s:
        load = Load(s, OPTIONS.clients)
        try:
            for n in range(8):
                s.send(signal.SIGUSR2)
                if not s.wait_log("continuing as", count=n + 1):
                    raise AssertionError(s.log())
            until_ready(s, 2)
            load.wait(2 * OPTIONS.clients)
        finally:
            load.end()
        one_of_each(s)
        s.send(signal.SIGUSR2)
        equal(s.stop(), -signal.SIGTERM)


def the_end_is_not_lost():
    """At whatever moment of an upgrade it is told to end."""
    for moment, count in ((" ready: ", 1), (" ready: ", 1), ("continuing as", 1), ("run directory", 2),
                          ("continuing with the shell", 1), (" ready: ", 2)):
        with Server(**who()) as s:
            s.send(signal.SIGUSR2)
            if not s.wait_log(moment, count=count):
                raise AssertionError(s.log())
            equal(s.stop(), -signal.SIGTERM)


def sockets_stay():
    """The same ones, the viewer's port too; also those of a session."""
    with Server(**who()) as s:
        s.run("true")
        sockets = [os.path.join(s.run_dir, "fcgi", pool + ".sock")
                   for pool in ("control", "files", "action", "live")]
        sockets.append(os.path.join(s.run_dir, "session.sock"))
        before = [os.stat(path).st_ino for path in sockets]
        viewer = open(os.path.join(s.top, "viewer-url")).read()
        s.upgrade()
        equal([os.stat(path).st_ino for path in sockets], before)
        equal(open(os.path.join(s.top, "viewer-url")).read(), viewer)
        equal(s.run("echo on"), "on")
        # a shell that goes on without its supervisor's socket would not be found again
        for pid in s.keeper():
            os.kill(pid, signal.SIGKILL)
        equal(s.run("echo again"), "again")
        equal(os.stat(sockets[-1]).st_ino, before[-1])


def a_directory_of_its_own():
    """Where the account has no place for it but TMPDIR, it is another one at each start, but not at an upgrade."""
    need_entrance()
    s = Server(user="nobody" if ROOT else None, ready=None)
    at = s.args.index("--run-dir")
    del s.args[at:at + 2]
    s.env["TMPDIR"] = s.top
    with s:
        s.start()
        before = [n for n in os.listdir(s.top) if n.startswith("handrail-")]
        shell = s.run("kept=here; echo $$")
        s.upgrade()
        equal(s.run("echo $$ $kept"), shell + " here")
        equal([n for n in os.listdir(s.top) if n.startswith("handrail-")], before)
        equal(s.stop(), -signal.SIGTERM)
        equal([n for n in os.listdir(s.top) if n.startswith("handrail-")], [])


def never_without_a_socket():
    """After a killed handraild each new socket takes the place of the old one."""
    with Server(**who()) as s:
        path = os.path.join(s.run_dir, "fcgi", "control.sock")
        missing, stop = [], threading.Event()

        def look():
            while not stop.is_set():
                try:
                    os.stat(path)
                except FileNotFoundError:
                    missing.append(time.monotonic())
        before = os.stat(path).st_ino
        t = threading.Thread(target=look, daemon=True)
        t.start()
        try:
            s.kill_and_start()
        finally:
            stop.set()
            t.join(PATIENCE)
        equal((missing, os.stat(path).st_ino != before), ([], True))
        equal(s.run("echo on"), "on")


def options():
    p = argparse.ArgumentParser()
    p.add_argument("upgrades", type=int, nargs="?", default=10)
    p.add_argument("--clients", type=int, default=6)
    p.add_argument("--requests", type=int, default=500)
    p.add_argument("--pause", type=float, default=0, help="between two upgrades")
    return p.parse_args()


TESTS = [nothing_is_refused, nothing_is_refused_at_a_unix_socket, kept_connections, another_nginx, command_under_way,
         in_quick_succession, the_end_is_not_lost, sockets_stay, a_directory_of_its_own, never_without_a_socket]

if __name__ == "__main__":
    OPTIONS = options()
    sys.argv[1:] = []
    sys.exit(run_tests(TESTS))
