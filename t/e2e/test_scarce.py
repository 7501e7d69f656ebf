#!/usr/bin/env python3
"""Descriptors run out, and very many connections: nothing ends, and all is as before afterwards."""

import json
import os
import resource
import signal
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import browsing, process  # noqa: E402
from lib.supervised import PATIENCE, Server, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

CONNECTIONS = 10000


class Limited:
    """with Limited(pid, n): it may open n descriptors more than it has. held: a socket of its own, by
    whose connections it is brought to that; poll() refuses a limit below what it has."""

    def __init__(self, pid, more, held=None):
        self.pid, self.more, self.held, self.connections = pid, more, held, []

    def __enter__(self):
        self.was = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        # the limit is on the number of the next one, which is the first that is free
        used = {int(fd) for fd in os.listdir("/proc/%d/fd" % self.pid)}
        limit = max(used) + 1 if self.held else next(n for n in range(1 << 20) if n not in used)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (limit + self.more, self.was[1]))
        for _ in range(limit + self.more - len(used) if self.held else 0):
            c = socket.socket(socket.AF_UNIX)
            c.connect(self.held)
            self.connections.append(c)

    def __exit__(self, *what):
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.was)
        for c in self.connections:
            c.close()


class Ask(threading.Thread):
    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.answer, self.error = ask, None, None
        self.start()

    def run(self):
        try:
            self.answer = self.ask()
        except Exception as e:  # told below
            self.error = e

    def status(self):
        self.join(PATIENCE * 2)
        if self.answer is None:
            raise AssertionError("no answer: %r" % self.error)
        return self.answer.status


def descriptors(pid):
    return os.listdir("/proc/%d/fd" % pid)


def connections_of(pid, path):
    """How many a server has at its Unix socket: each is a socket with that name that does not listen."""
    inodes = set()
    with open("/proc/net/unix") as f:
        for line in f:
            words = line.split()
            if len(words) == 8 and words[7] == path and not int(words[3], 16) & 0x10000:
                inodes.add("socket:[%s]" % words[6])
    found = 0
    for fd in descriptors(pid):
        try:
            found += os.readlink("/proc/%d/fd/%s" % (pid, fd)) in inodes
        except FileNotFoundError:
            pass  # closed meanwhile
    return found


def none_left(pid_of, pool, ask, said, sock=None):
    """With no descriptor left a request waits, the log says so, and it is answered when there are
    some again. With a few more it is answered somehow."""
    one = {pool + "_workers": 1, pool + "_workers_max": 1}
    with Server(settings=one) as s:
        equal(ask(s).status, 200)
        pid = pid_of(s)
        held = sock and os.path.join(s.run_dir, sock)
        listener = held or os.path.join(s.run_dir, "fcgi", pool + ".sock")
        if held:  # its connection is kept by the worker; another has none
            old = s.workers(pool)
            os.kill(old[0], signal.SIGTERM)
            s.until("there is another worker", lambda: s.workers(pool) not in ([], old))
        # an answer comes before its connection is closed, and a descriptor that is closed later is free
        s.until("it has closed the last request's", lambda: connections_of(pid, listener) == 0)
        with Limited(pid, 0, held):
            waiting = Ask(lambda: ask(s))
            if not s.wait_log(said):
                raise AssertionError(s.log())
        equal(waiting.status(), 200)
        for more in range(1, 6):
            with Limited(pid, more, held):
                asked = Ask(lambda: ask(s))
                asked.join(1.0)  # an answer, or still waiting: both are right
            equal(asked.status() in (200, 500, 503), True, asked.answer)
        equal((ask(s).status, pid_of(s)), (200, pid), "the same process")
        equal(s.run("echo on"), "on")


def control_worker():
    process.need_hidden()
    none_left(lambda s: s.workers("control")[0], "control", lambda s: s.get("/server_info"),
              "cannot accept a connection: Too many open files")


def action_worker():
    process.need_hidden()
    none_left(lambda s: s.workers("action")[0], "action", lambda s: s.action("true"),
              "cannot accept a connection: Too many open files")


def files_worker():
    process.need_hidden()
    none_left(lambda s: s.workers("files")[0], "files", lambda s: s.get("/download_files?path=" + s.work_dir),
              "cannot accept a connection: Too many open files")


def keeper():
    none_left(lambda s: s.keeper()[0], "action", lambda s: s.action("true"),
              "cannot accept a connection: Too many open files", "session.sock")


def supervisor():
    """It cannot start what it is asked for, and says why."""
    process.need_hidden()
    with Server() as s:
        s.workers("live")  # all there
        at_rest = len(descriptors(s.pid))
        equal(s.run("echo static", is_static=True), "static")
        for more in range(4):
            # what it had for the last one it closes when that has ended: it would be free again
            s.until("it is at rest", lambda: len(descriptors(s.pid)) == at_rest)
            with Limited(s.pid, more):
                a = s.action("echo static", is_static=True)
                equal((a.status, "Too many open files" in a.json()["content"]), (200, True), a)
                equal((s.get("/alive").status, s.run("echo on")), (200, "on"))
        equal(s.run("echo static", is_static=True), "static")
        equal(s.get("/ready").status, 200)


def plugin(name, args, path, body, why):
    if why:
        raise Skip(why)

    def ask(s):
        return s.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    with Server(args=["--plugins", name] + args) as s:
        equal(ask(s).status, 200)
        (pid,) = s.pids("handrail-" + name)
        listener = os.path.join(s.run_dir, "plugin", name + ".sock")
        s.until("it has closed the last request's", lambda: connections_of(pid, listener) == 0)
        with Limited(pid, 0, listener):
            waiting = Ask(lambda: ask(s))
            if not s.wait_log("cannot accept a connection: Too many open files"):
                raise AssertionError(s.log())
            before = len(s.lines)
            process.wait_gone(pid, 1.0)
            equal(len(s.lines) - before < 50, True, s.log()[-2000:])  # it tries ten times a second, and does not spin
        equal(waiting.status(), 200)
        equal(s.pids("handrail-" + name), [pid], name + ": the same process\n" + s.log())


def plugins():
    """A plugin that has no descriptor left says so, rests, and takes the request when it has some again."""
    process.need_hidden()
    action = {"action": "run_ipython", "args": {"code": "1"}}
    page = {"action": "browse_interactive", "args": {"browser_actions": "noop()"}}
    kernels = os.path.exists("/usr/share/jupyter/kernels")
    plugin("jupyter", [], "/execute_action", {"action": action},
           "" if kernels else "there is no kernel: apt-get install python3-ipykernel")
    plugin("browser", [], "/execute_action", {"action": page}, browsing.missing())
    plugin("mcp", [], "/update_mcp_server", [], "")


def resident(pids):
    total = 0
    for pid in pids:
        with open("/proc/%d/statm" % pid) as f:
            total += int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return total


def ten_thousand_connections():
    """Each has asked and been answered, and stays. The rest of the server does not notice."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CONNECTIONS + 2000:
        raise Skip("needs %d descriptors: raise the hard limit (ulimit -Hn)" % (CONNECTIONS + 2000))
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 1000, hard))
    connections = []
    try:
        with Server(settings={"nginx_connections": CONNECTIONS + 1000, "nginx_workers": 1,
                              "keepalive_timeout": 600}) as s:
            request = b"GET /alive HTTP/1.1\r\nHost: x\r\n\r\n"
            nginx = [p for m in s.pids("nginx") for p in process.children(m)]
            equal(s.get("/alive").status, 200)
            before = resident(nginx)
            for _ in range(CONNECTIONS):
                c = socket.create_connection(("127.0.0.1", s.port), PATIENCE)
                # at the end no port may wait for what will not come
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                c.sendall(request)
                equal(c.recv(4096).startswith(b"HTTP/1.1 200 "), True)
                connections.append(c)
            grown = resident(nginx) - before
            print("# %d connections: nginx has grown by %.1f MB" % (CONNECTIONS, grown / 1e6))
            equal(grown < 32e6, True, grown)
            for i in range(20):
                equal((s.get("/alive").status, s.run("echo %d" % i)), (200, str(i)))
            for c in connections[::100]:  # none was closed for another
                c.sendall(request)
                equal(c.recv(4096).startswith(b"HTTP/1.1 200 "), True)
            for c in connections:
                c.close()
            equal(s.run("echo on"), "on")
    finally:
        for c in connections:
            c.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


TESTS = [control_worker, action_worker, files_worker, keeper, supervisor, plugins, ten_thousand_connections]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
