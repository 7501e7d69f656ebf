#!/usr/bin/env python3
"""A command whose answer its client could not read, since what carries it was killed, runs once when the client sends
it again; one whose answer was read runs again. The requests have no name, and are the same bytes, so that one run too
few shows as well as one too many. E2E_UNREAD_KILLS: how many kills, 18 otherwise."""

import contextlib
import http.client
import json
import os
import random
import select
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.remoteruntime import Background, RemoteRuntime  # noqa: E402
from lib.supervised import PATIENCE  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

KILLS = int(os.environ.get("E2E_UNREAD_KILLS", "18"))
SEED = int(os.environ.get("E2E_SEED", "1"))


class Client(RemoteRuntime):
    """Sends again until somebody answers, also after what the edge says while a sandbox's nginx is away."""

    def run(self, command):
        wait = threading.Event()
        for attempt in range(100):
            try:
                status, answer = self.once(command)
                if status == 200:
                    return answer["content"]
                equal(status in (502, 503), True, repr((status, answer)))
            except (OSError, http.client.HTTPException, ValueError) as error:
                answer = error
            self.again += 1
            wait.wait(0.05)  # nobody tells a client when it may try again
        raise AssertionError("no answer in a hundred tries: %r" % (answer,))


class Killer:
    """Ends what carries a request."""

    def __init__(self, f):
        self.f = f
        self.ways = {"fleetd": self.fleetd, "its nginx": self.its_nginx, "nginx of the sandbox": self.nginx,
                     "workers of the sandbox": self.workers, "both": self.both, "all": self.all}

    def named(self, *words):
        return [pid for pid in process.all_pids()
                if all(w in process.command_line(pid) for w in words) and not process.has_ended(pid)]

    def end(self, pids):
        """Until they have closed what they had: an answer that goes to one which is still dying counts as read."""
        with contextlib.ExitStack() as stack:
            ends = []
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    ends.append(os.pidfd_open(pid))
                    stack.callback(os.close, ends[-1])
                    signal.pidfd_send_signal(ends[-1], signal.SIGKILL)
            for fd in ends:
                equal(select.select([fd], [], [], PATIENCE)[0], [fd], "a killed process has ended")

    def with_children(self, pids):
        return pids + [c for pid in pids for c in process.children(pid)]

    def fleetd(self):
        self.f.kill()
        self.f.start()

    def its_nginx(self):
        self.end(self.with_children(self.named("nginx: master", self.f.dir + "/run/nginx.conf")))

    def sandbox_nginx(self):
        masters = [p for p in self.named("nginx: master", self.f.top) if self.f.dir + "/run/nginx.conf" not in
                   process.command_line(p)]
        return self.with_children(masters)

    def sandbox_workers(self):
        return self.named("handrail-worker", "--pool action", self.f.top)

    def nginx(self):
        self.end(self.sandbox_nginx())

    def workers(self):
        self.end(self.sandbox_workers())

    def both(self):
        self.end(self.sandbox_nginx() + self.sandbox_workers())

    def all(self):
        self.end(self.sandbox_nginx() + self.sandbox_workers())
        self.its_nginx()
        self.fleetd()


def gates(f):
    top = f.path("cwd")
    for name in ("began", "gate"):
        os.mkfifo(os.path.join(top, name))
    return "echo >>%s/n; echo >%s/began; read -r x <%s/gate; echo $x" % (top, top, top), top


def lines(top):
    with open(top + "/n") as f:
        return len(f.read().split("\n")) - 1


def killed_while_it_runs():
    """Each way in turn, then by chance; the command is the same bytes each time, and each time a new one."""
    chance = random.Random(SEED)
    print("# %d kills, seed %d" % (KILLS, SEED))
    with Fleet() as f:
        killer, client = Killer(f), Client(f, f.up("s"))
        command, top = gates(f)
        ways = sorted(killer.ways)
        ways += [chance.choice(ways) for _ in range(KILLS - len(ways))]
        for n, way in enumerate(ways):
            running = Background(client.run, command)
            with open(top + "/began") as began:
                began.read()
            equal(lines(top), n + 1, way)
            killer.ways[way]()
            process.reap({f.process.pid})
            with open(top + "/gate", "w") as gate:
                gate.write("answer %d\n" % n)
            equal(running.value(), "answer %d" % n, way)
            equal(lines(top), n + 1, "after " + way)
        print("# sent again %d times" % client.again)


def read_answers_are_done_with():
    """The same command on purpose: after its answer, beside one that waits for its own, after a joined one."""
    with Fleet() as f:
        killer, client = Killer(f), Client(f, f.up("s"))
        equal([client.run("echo >>n; wc -l <n") for _ in range(5)], ["1", "2", "3", "4", "5"])
        command, top = gates(f)
        two = [Background(client.run, command) for _ in range(2)]
        for n in range(2):
            with open(top + "/began") as began:
                began.read()
            with open(top + "/gate", "w") as gate:
                gate.write("%d\n" % n)
        equal(sorted(t.value() for t in two), ["0", "1"])
        equal(client.again, 0)
        running = Background(client.run, command)
        with open(top + "/began") as began:
            began.read()
        killer.its_nginx()
        with open(top + "/gate", "w") as gate:
            gate.write("2\n")
        equal(running.value(), "2")
        running = Background(client.run, command)
        with open(top + "/began") as began:
            began.read()
        with open(top + "/gate", "w") as gate:
            gate.write("3\n")
        equal((running.value(), lines(top)), ("3", 4))


def other_clients():
    """What tells clients apart keeps them apart: here the name of their program, and the shell."""
    with Fleet() as f:
        o = f.up("s")
        command, top = gates(f)
        body = json.dumps({"action": {"action": "run", "args": {"command": command}}}).encode()

        def send(agent):
            s = socket.create_connection(("127.0.0.1", f.port))
            s.sendall(b"POST /%s/execute_action HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\nX-Session-API-Key: %s\r\n"
                      b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
                          o["runtime_id"].encode(), agent, o["session_api_key"].encode(), len(body), body))
            return s

        def answer(s):
            with s, s.makefile("rb") as text:
                return text.read().rsplit(b"\r\n", 1)[-1]

        first = send(b"one")
        with open(top + "/began") as began:
            began.read()
        Killer(f).its_nginx()
        first.close()
        f.until_answered()
        asked = {agent: send(agent) for agent in (b"one", b"two")}
        with open(top + "/gate", "w") as gate:
            gate.write("a\n")
        equal(json.loads(answer(asked[b"one"]))["content"], "a", "it is joined")
        with open(top + "/began") as began:
            began.read()
        with open(top + "/gate", "w") as gate:
            gate.write("b\n")
        equal(json.loads(answer(asked[b"two"]))["content"], "b", "another program's is its own")
        equal(lines(top), 2)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (killed_while_it_runs, read_answers_are_done_with, other_clients):
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
