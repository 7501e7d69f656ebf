#!/usr/bin/env python3
"""The service, what belongs to it, and the answers of its Engine end at random moments while sandboxes come and go:
none is lost, doubled or left over.

By hand: E2E_FLEET_KILLS=1000, how many (half an hour); E2E_FLEET_KIND=box, or docker, with a real Engine, whose
answers are cut as well; E2E_SEED, other moments."""

import collections
import http.client
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.dockerhost import IMAGE, docker, find_engine, make_image  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

KILLS = int(os.environ.get("E2E_FLEET_KILLS", "8"))
KIND = os.environ.get("E2E_FLEET_KIND", "local")
SEED = int(os.environ.get("E2E_SEED", "7"))
CLIENTS = 3


class Cut:
    """A socket before the Engine's, all of whose connections can be cut."""

    def __init__(self, path, engine):
        self.engine, self.open, self.lock = engine, set(), threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(128)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self.engine)
            with self.lock:
                self.open.add((client, engine))
            threading.Thread(target=self.pass_on, args=(client, engine), daemon=True).start()

    def pass_on(self, client, engine):
        other = {client: engine, engine: client}
        try:
            while other:
                for s in select.select(list(other), [], [])[0]:
                    data = s.recv(65536)
                    if data:
                        other[s].sendall(data)
                    else:
                        other[s].shutdown(socket.SHUT_WR)
                        ended = other.pop(s)
                        if ended not in other:
                            other = {}
                            break
        except (OSError, ValueError, KeyError):
            pass
        with self.lock:
            self.open.discard((client, engine))
            client.close()
            engine.close()

    def cut(self):
        """What was asked for is done, and nobody is told."""
        with self.lock:
            for client, engine in self.open:
                for s in (client, engine):
                    try:
                        s.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            return len(self.open)


class Client(threading.Thread):
    """Starts and stops sandboxes of sessions of its own. What it was told stays so: a session has the same sandbox
    until it is stopped, or has died, as one does whose helper is killed in the middle of it, and says why."""

    def __init__(self, fleet, number, over):
        super().__init__()
        self.fleet, self.number, self.over = fleet, number, over
        self.chance = random.Random(SEED + number)
        self.known, self.gone, self.done = {}, [], collections.Counter()

    def call(self, method, path, body):
        c = http.client.HTTPConnection("127.0.0.1", self.fleet.port, timeout=PATIENCE)
        try:
            c.request(method, path, json.dumps(body), {"X-API-Key": self.fleet.key})
            r = c.getresponse()
            return r.status, json.loads(r.read())
        finally:
            c.close()

    def turn(self):
        session = "s%d-%d" % (self.number, self.chance.randrange(2))
        path = "/start" + self.chance.choice(["", "?wait=ready"])
        was = self.known.get(session)
        status, o = self.call("POST", path, {"session_id": session})
        self.done[path, status] += 1
        if status != 200:
            return
        self.known[session] = o["runtime_id"]
        if was is not None and was != o["runtime_id"]:
            self.gone.append(was)
        if self.chance.random() < 0.6:
            self.known[session] = None  # whether it is stopped is not known until the answer is here
            self.done["/stop", self.call("POST", "/stop", {"runtime_id": o["runtime_id"]})[0]] += 1

    def run(self):
        while not self.over.is_set():
            try:
                self.turn()
            except (OSError, http.client.HTTPException, ValueError):
                self.done["cut"] += 1
                self.over.wait(0.05)


def group_of(pid):
    return (process.stat_fields(pid) or [b""] * 3)[2]


class Killer:
    def __init__(self, fleet, cut):
        self.fleet, self.cut, self.chance = fleet, cut, random.Random(SEED)
        self.done = collections.Counter()
        self.ways = {"service": self.service, "nginx": self.nginx, "workers": self.workers, "helpers": self.helpers,
                     "one helper": self.one_helper, "all": self.all}
        if cut is not None:
            self.ways["answers"] = cut.cut

    def end(self, pids):
        n = 0
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                n += 1
            except ProcessLookupError:
                pass
        return n

    def masters(self):
        return [pid for pid in process.all_pids() if self.fleet.dir + "/run/nginx.conf" in process.command_line(pid)]

    def running_helpers(self):
        return process.without_children(
            [pid for pid in process.all_pids() if "--call" in process.command_line(pid).split() and
             self.fleet.dir in process.command_line(pid)])

    def nginx(self):
        return self.end(self.masters())

    def workers(self):
        groups = {b"%d" % pid for pid in self.masters()}
        return self.end(pid for pid in process.all_pids() if group_of(pid) in groups and
                        "worker process" in process.command_line(pid))

    def helpers(self):
        return self.end(self.running_helpers())

    def one_helper(self):
        found = self.running_helpers()
        return self.end([self.chance.choice(found)] if found else [])

    def service(self):
        self.fleet.kill()
        self.fleet.start()
        return 1

    def all(self):
        """At once, as when a machine's memory is out."""
        self.end(self.running_helpers() + self.masters())
        return self.service()

    def turn(self):
        way = self.chance.choice(sorted(self.ways))
        n = self.ways[way]()
        self.done[way] += n > 0
        return n > 0


def servers_of(f):
    """Of sandboxes of the kind local: processes that lead a server each."""
    return [pid for pid in process.all_pids() if "handraild" in process.command_line(pid).split(" ")[0] and
            f.top in process.command_line(pid) and not process.has_ended(pid)]


def boxes():
    """The ids of those that have control groups."""
    found = set()
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(top) == "handrail":
            found |= {n[:32] for n in names if re.match("[0-9a-f]{32}-", n)}
            names[:] = []
    return sorted(found)


def containers():
    if KIND == "box":
        return boxes()
    done = docker("ps", "-a", "--filter", "name=openhands-runtime-", "--format", "{{.Names}}", universal_newlines=True)
    equal(done.returncode, 0, done.stderr)
    return sorted(name[len("openhands-runtime-"):] for name in done.stdout.split())


def check(f, clients, steady):
    found = f.until(f.sandboxes, lambda all: {s["state"] for s in all} <= {"running"})
    alive = sorted(s["runtime_id"] for s in found)
    equal(sorted(s["session_id"] for s in found), sorted({s["session_id"] for s in found}), "one of each session")
    for c in clients:
        for session, known in c.known.items():
            if known is not None and [s["runtime_id"] for s in found if s["session_id"] == session] != [known]:
                c.gone.append(known)
        for id in c.gone:
            s = f.call("GET", "/runtime/" + id)[1]
            equal((s.get("state"), s.get("reason", "") != ""), ("died", True), "none is lost: %r" % s)
    f.until(lambda: sorted({n.split(".")[0] for n in os.listdir(f.path("fleet", "sandboxes"))}),
            lambda names: names == alive)
    if KIND == "local":
        f.until(lambda: len(servers_of(f)), lambda n: n == len(alive))
        equal(sorted(os.listdir(f.path("fleet", "work"))), alive, "a workspace for each, and no other")
    else:
        f.until(containers, lambda names: names == alive)
    equal(f.run(steady, "echo $KEPT $$"), steady["said"], "the same shell")
    for s in found:
        equal(f.call("GET", "/%s/alive" % s["runtime_id"], key="")[0], 200, "it answers")
    f.until(lambda: [line for line in map(process.command_line, process.children(f.process.pid))
                     if "nginx" not in line and "--call" not in line], lambda dead: dead == [])
    for s in found:
        equal(f.call("POST", "/stop", {"runtime_id": s["runtime_id"]})[0], 200)
    f.settled()
    equal(servers_of(f) if KIND == "local" else containers(), [], "nothing is left")


def kills():
    cut = None
    if KIND == "docker":
        top = tempfile.mkdtemp(prefix="e2e-cut-")
        cut = Cut(os.path.join(top, "socket"), os.environ["DOCKER_HOST"][len("unix://"):])
        f = Fleet("--image", IMAGE, "--set", "sandbox.use_host_network=true", "--set",
                  "sandbox.runtime_binding_address=127.0.0.1", "--set", "core.run_as_openhands=false", kind="docker",
                  DOCKER_HOST="unix://" + os.path.join(top, "socket"))
    else:
        f = Fleet(kind=KIND)
    try:
        with f:
            steady = f.up("steady")
            steady["said"] = f.run(steady, "KEPT=it; echo $KEPT $$")
            over, killer = threading.Event(), Killer(f, cut)
            clients = [Client(f, n, over) for n in range(CLIENTS)]
            for c in clients:
                c.start()
            done = 0
            try:
                while done < KILLS:
                    select.select([], [], [], killer.chance.random())
                    done += killer.turn()
                    f.until_answered()
                    process.reap({f.process.pid})
                    if done % 100 == 0:
                        print("# %d of %d" % (done, KILLS), flush=True)
            finally:
                over.set()
                for c in clients:
                    c.join()
            check(f, clients, steady)
            print("# %d kills: %s; requests: %s; died: %d" % (done, dict(killer.done), dict(sum(
                (c.done for c in clients), collections.Counter())), sum(len(c.gone) for c in clients)), flush=True)
        # __exit__ has stopped all that was left
    finally:
        if cut is not None:
            cut.listener.close()
            shutil.rmtree(top, ignore_errors=True)


def main():
    process.become_subreaper()
    if KIND == "docker":
        find_engine()
        top = tempfile.mkdtemp(prefix="test-fleet-kills-")
        make_image(top)
    tap = Tap()
    tap.run("kills", kills)
    if KIND == "docker":
        docker("rmi", "-f", IMAGE)
        shutil.rmtree(top, ignore_errors=True)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
