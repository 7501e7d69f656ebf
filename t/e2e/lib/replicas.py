"""Two replicas of handrail-fleetd with the engine "kubernetes" on one API server, and the calls of clients."""

import http.client
import json
import os
import subprocess
import threading
import time

from .fleet import free_port, until_ready
from .host import BUILD, PATIENCE
from .tap import equal


class Replica:
    def __init__(self, fleet, name):
        self.fleet, self.dir, self.process = fleet, fleet.path(name), None
        self.address = ("127.0.0.1", free_port())

    def start(self):
        self.process = subprocess.Popen(
            self.fleet.command + ["--state-dir", self.dir, "--listen", "%s:%d" % self.address] +
            list(self.fleet.options), env=self.fleet.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            universal_newlines=True)
        until_ready(self.process)
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.fleet.until(self.alive, lambda there: there)
        return self

    def alive(self):
        try:
            return self.call("GET", "/alive")[0] == 200
        except OSError:
            return False

    def call(self, method, path, body=None, key=None, **headers):
        c = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        try:
            c.request(method, path, json.dumps(body) if body is not None else None,
                      dict({"X-API-Key": key or self.fleet.key},
                           **{k.replace("_", "-"): v for k, v in headers.items()}))
            r = c.getresponse()
            text = r.read()
            return r.status, json.loads(text) if text[:1] in b"{[" else text
        finally:
            c.close()

    def ok(self, *argv, **more):
        status, answer = self.call(*argv, **more)
        equal(status, 200, "%s %r" % (argv, answer))
        return answer

    def begin(self, session, wait=True, **more):
        return self.call("POST", "/start" + ("?wait=ready" if wait else ""), dict(
            {"session_id": session, "image": self.fleet.IMAGE, "command": []}, **more))

    def state(self, session):
        return self.ok("GET", "/sessions/" + session)["state"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        equal(self.process.wait(PATIENCE), 0, "it ends")


class Replicas:
    """Of a Host whose environment leads to the API server; IMAGE is that of its sandboxes."""

    def make(self, options, *settings):
        self.options = options
        self.command = [os.path.join(BUILD, "handrail-fleetd"), "--engine", "kubernetes"]
        for s in settings:
            self.command += ["--set", s]
        self.key = subprocess.run(self.command + ["--state-dir", self.path("one"), "--init"], env=self.env,
                                  stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout.strip()
        self.one, self.two = Replica(self, "one"), Replica(self, "two")

    def begin(self):
        self.one.start()
        self.two.start()
        return self

    def end(self):
        self.one.end()
        self.two.end()

    @staticmethod
    def until(what, wanted, patience=PATIENCE):
        """A change of the other replica is told to those who ask."""
        pause, end, found = threading.Event(), time.monotonic() + patience, None
        while time.monotonic() < end:
            found = what()
            if wanted(found):
                return found
            pause.wait(0.05)
        raise AssertionError("it does not come: %r" % (found,))

    def at_once(self, n, what):
        """what(i) in threads that begin together."""
        done, gate = [None] * n, threading.Barrier(n)

        def one(i):
            gate.wait()
            done[i] = what(i)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return done
