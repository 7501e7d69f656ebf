#!/usr/bin/env python3
"""Processes of every kind are killed at random instants while clients send mixed actions, each of which
writes a line of its own to a file. Afterwards every action that was acknowledged must be there
exactly once, every other one at most once, and no answer may be another's or not one of ours.

    test_kills.py [ACTIONS] [--seed N] [--clients N] [--gap N]

The seed is printed. --gap: at most so many answers between two kills."""

import argparse
import collections
import http.client
import json
import os
import random
import select
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import PATIENCE, ROOT, Server, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

KINDS = ("worker", "worker", "nginx worker", "nginx master", "keeper", "handraild",
         "upgrade")  # which is no death, but replaces as much
TRIES_SECONDS = 60  # a client gives an action up that gets no answer for so long


class Action:
    """One action and what became of it."""

    def __init__(self, rng, number, path):
        self.number, self.token = number, "t%08d" % number
        self.name = rng.choice(("X-Request-ID", "Idempotency-Key", "event", None))
        line = "echo %s >>%s" % (self.token, path)
        self.args = {"command": rng.choice((
            "%s; echo %s", "%s; seq 2000; echo %s", "/bin/true; %s; /bin/echo %s",
            "{ read -t 0.00%d x; %%s; } <>%s.wait; echo %%s" % (rng.randrange(1, 9), path),
        )) % (line, self.token)}
        if rng.random() < 0.03:
            self.args["is_static"] = True
        self.acknowledged, self.statuses, self.errors, self.replayed = False, [], 0, False
        self.seconds = 0.0

    def request(self):
        action = {"action": "run", "args": self.args}
        head = {"Content-Type": "application/json"}
        if self.name == "event":
            action.update(id=self.number, timestamp="2026-01-01T00:00:00")
        elif self.name is not None:
            head[self.name] = "action-%d" % self.number
        return json.dumps({"action": action}), head


class Client(threading.Thread):
    """Sends its share of the actions over a kept connection. One with a name is repeated until it is
    answered, as a careful client does; one without is sent once."""

    def __init__(self, chaos):
        super().__init__(daemon=True)
        self.chaos, self.connection, self.failure = chaos, None, None
        self.start()

    def run(self):
        try:
            for action in iter(self.chaos.next, None):
                began = time.monotonic()
                while not self.send(action) and action.name is not None:
                    if time.monotonic() - began > TRIES_SECONDS:
                        raise AssertionError("no answer to %r" % action.__dict__)
                    self.chaos.up.wait(PATIENCE)  # set unless handraild is being started again
                action.seconds = time.monotonic() - began
                self.chaos.done(action)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
            self.chaos.stop.set()

    def send(self, action):
        """Whether that was an answer to keep."""
        body, head = action.request()
        if self.connection is None:
            self.connection = self.chaos.server.connection()
        try:
            self.connection.request("POST", "/execute_action", body, head)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            action.errors += 1
            return False
        return self.judge(action, answer, text)

    def judge(self, action, answer, text):
        action.statuses.append(answer.status)
        if answer.headers["Content-Type"] != "application/json":
            raise AssertionError("%d %r" % (answer.status, text[:300]))
        body = json.loads(text)
        if answer.status == 503:
            equal(answer.headers["Retry-After"], "1")
            return False
        if answer.status == 500:
            equal("second time" in body["detail"], True, body)
            return True
        equal(answer.status, 200, body)
        action.replayed = "Idempotent-Replayed" in answer.headers
        if body["observation"] == "error":  # the shell was killed over it
            equal(body["content"].startswith("Bash session was likely interrupted"), True, body)
            return True
        equal(body["content"].splitlines()[-1:], [action.token], "another's answer")
        action.acknowledged = True
        return True


class Chaos:
    def __init__(self, server, count, clients, seed, gap):
        self.server, self.rng, self.gap = server, random.Random(seed), gap
        self.path = os.path.join(server.work_dir, "lines")
        with open(self.path, "w"):
            os.chmod(self.path, 0o666)
        os.mkfifo(self.path + ".wait")  # nothing ever comes: to read it is to wait
        os.chmod(self.path + ".wait", 0o666)
        self.actions = [Action(self.rng, n, self.path) for n in range(count)]
        self.todo, self.answered = iter(self.actions), 0
        self.lock = threading.Condition()
        self.stop, self.up = threading.Event(), threading.Event()
        self.up.set()
        self.kills = collections.Counter()
        self.clients = [Client(self) for _ in range(clients)]

    def next(self):
        with self.lock:
            return None if self.stop.is_set() else next(self.todo, None)

    def done(self, _):
        with self.lock:
            self.answered += 1
            self.lock.notify_all()

    def busy(self):
        return any(c.is_alive() for c in self.clients) and not self.stop.is_set()

    def pids(self, kind):
        """Of our server, whoever their parent is by now."""
        found, masters = [], []
        for pid in process.all_pids():
            text = process.command_line(pid)
            if self.server.run_dir not in text:
                continue
            if "nginx: master" in text:
                masters.append(pid)
            elif kind == "worker" and " --pool " in text:
                found.append(pid)
            elif kind == "keeper" and " --init-command " in text:
                found.append(pid)
        if kind == "nginx master":
            return masters
        if kind == "nginx worker":
            return [w for m in masters for w in process.children(m)]
        return process.without_children(found)

    def reap(self):
        """We are the parent of what a killed handraild leaves."""
        for pid in process.children(os.getpid()):
            fields = process.stat_fields(pid)
            if pid != self.server.pid and fields is not None and fields[0] == b"Z":
                os.waitpid(pid, 0)

    def kill(self):
        kind = self.rng.choice(KINDS)
        if kind == "handraild":
            self.up.clear()
            self.server.popen.kill()
            self.server.wait()
            self.server.start()
            self.up.set()
            self.reap()
        elif kind == "upgrade":
            ready = sum(" ready: " in line for line in self.server.lines if line)
            self.server.send(signal.SIGUSR2)
            if not self.server.wait_log(" ready: ", count=ready + 1):
                raise AssertionError("no upgrade")
        else:
            pids = self.pids(kind)
            if not pids:
                return
            try:
                os.kill(self.rng.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                return
        self.kills[kind] += 1

    def run(self):
        while self.busy():
            with self.lock:
                until = self.answered + self.rng.randrange(self.gap + 1)
                self.lock.wait_for(lambda: self.answered >= until or not self.busy(), 1)
            select.select([], [], [], self.rng.random() * 0.003)  # anywhere within an action
            if self.busy():
                self.kill()
        for c in self.clients:
            c.join(PATIENCE)
            if c.failure is not None:
                raise c.failure

    def check(self):
        with open(self.path) as f:
            lines = collections.Counter(f.read().split("\n"))
        del lines[""]
        wrong = [(a.token, lines[a.token], a.__dict__) for a in self.actions
                 if lines[a.token] > 1 or (a.acknowledged and lines[a.token] != 1)]
        strange = set(lines) - {a.token for a in self.actions}
        equal((wrong, strange), ([], set()))

    def tell(self, seconds):
        a = self.actions
        statuses = collections.Counter(s for x in a for s in x.statuses)
        print("# %d actions in %.1f s, %d kills: %s" % (
            len(a), seconds, sum(self.kills.values()),
            ", ".join("%d %s" % (n, k) for k, n in sorted(self.kills.items()))))
        print("# acknowledged %d, not %d; answers %s; cut connections %d; replayed %d; slowest %.2f s" % (
            sum(x.acknowledged for x in a), sum(not x.acknowledged for x in a), dict(statuses),
            sum(x.errors for x in a), sum(x.replayed for x in a), max(x.seconds for x in a)))
        sys.stdout.flush()


def kills():
    print("# seed %d" % OPTIONS.seed)
    # an account without start-up files: those of a person may take a lock that a kill leaves behind
    who = {"name": "nobody", "env": {"RUNTIME_USERNAME": "nobody", "USER": "root"}} if ROOT else {}
    with Server(settings={"action_workers": 3, "control_workers": 1, "files_workers": 1}, **who) as s:
        chaos = Chaos(s, OPTIONS.actions, OPTIONS.clients, OPTIONS.seed, OPTIONS.gap)
        began = time.monotonic()
        try:
            chaos.run()
        except BaseException:
            print("# " + s.log().replace("\n", "\n# "))
            raise
        chaos.tell(time.monotonic() - began)
        chaos.check()
        equal(s.run("echo still here"), "still here")
        equal(s.stop(), -signal.SIGTERM)
        chaos.reap()


def options():
    p = argparse.ArgumentParser()
    p.add_argument("actions", type=int, nargs="?", default=300)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    p.add_argument("--clients", type=int, default=4)
    p.add_argument("--gap", type=int, default=5)
    return p.parse_args()


if __name__ == "__main__":
    OPTIONS = options()
    sys.argv[1:] = []
    sys.exit(run_tests([kills]))
