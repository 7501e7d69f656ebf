"""A handrail-fleetd for a test, with its operator's key, and the calls of clients."""

import http.client
import json
import os
import socket
import subprocess
import threading

from .host import BUILD, PATIENCE, SRC, Host
from .tap import equal


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until_ready(process):
    """What a handrail-fleetd says on stderr until it listens."""
    said = []
    for line in process.stderr:
        said.append(line)
        if "ready: listening" in line:
            return said
    raise AssertionError("it does not start: " + "".join(said))


def listen(port, key, query="", **headers):
    """The status, and the events of a stream as they come; it ends with the connection."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    c.request("GET", "/handrail/v1/events" + query, headers=dict(
        {"X-API-Key": key, "Accept": "text/event-stream"}, **{k.replace("_", "-"): v for k, v in headers.items()}))
    r = c.getresponse()

    def events():
        kind = None
        try:
            for line in r:
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    yield kind or json.loads(line[6:])
                    kind = None
        except http.client.IncompleteRead:
            pass  # nginx was killed
    return r.status, events(), c


class Fleet(Host):
    def __init__(self, *options, kind="local", **env):
        super().__init__(**env)
        self.kind, self.options, self.port, self.process = kind, options, free_port(), None
        self.env["HANDRAIL_FLEETD"] = os.path.join(BUILD, "handrail-fleetd")
        self.dir = self.path("fleet")
        self.key = self.ok("fleet", "-q", "init", self.dir).strip()
        self.secrets = [self.key]
        self.env.update(SANDBOX_API_KEY=self.key, SANDBOX_REMOTE_RUNTIME_API_URL="http://127.0.0.1:%d" % self.port,
                        SANDBOX_RUNTIME_CONTAINER_IMAGE="none:1")

    def words(self):
        return [self.env["HANDRAIL_FLEETD"], "--state-dir", self.dir, "--kind", self.kind, "--listen",
                "127.0.0.1:%d" % self.port] + list(self.options)

    def its_environment(self):
        return {k: v for k, v in self.env.items() if not k.startswith("SANDBOX_")}

    def spawn(self, *options):
        return subprocess.Popen(self.words() + list(options), env=self.its_environment(), stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, universal_newlines=True)

    def start(self):
        self.process = self.spawn()
        self.log = until_ready(self.process)
        self.reader = threading.Thread(target=self.log.extend, args=(self.process.stderr,), daemon=True)
        self.reader.start()
        self.until_answered()
        return self

    def said(self):
        return "".join(self.log)

    def until_answered(self):
        """nginx of the predecessor may hold the port a moment longer, and ours comes behind it."""
        until = threading.Event()
        for _ in range(int(PATIENCE * 20)):
            try:
                if self.call("GET", "/alive", key="")[0] == 200:
                    return
            except OSError:
                pass
            until.wait(0.05)  # a connection that is refused tells of no event
        raise AssertionError("nobody answers")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        try:
            if self.process.poll() is not None:
                self.start()
            self.call("POST", "/handrail/v1/pools", {"pools": []})
            for s in self.sandboxes():
                self.call("POST", "/stop", {"runtime_id": s["runtime_id"]}, key=s["owner"])
            self.settled()
            # what died is told as such first, and ended behind that
            # layers stay as long as snapshots
            self.until(lambda: sorted(n for n in os.listdir(self.path("fleet", "sandboxes"))
                                      if n not in ("snapshots", "layers")),
                       lambda records: records == [])
            if self.kind == "local":
                self.until(lambda: os.listdir(self.path("fleet", "work")), lambda workspaces: workspaces == [])
            equal([n for n in os.listdir(self.path("tmp")) if "workspace" in n], [], "nor elsewhere")
        finally:
            self.process.terminate()
            equal(self.process.wait(PATIENCE), 0, "it ends")
            super().__exit__()
        self.reader.join()
        equal([s for s in self.secrets if s in self.said()], [], "no key is in its log")

    owners = {}

    def call(self, method, path, body=None, key=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            c.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body),
                      dict({"X-API-Key": self.key if key is None else key},
                           **{k.replace("_", "-"): v for k, v in headers.items()}))
            r = c.getresponse()
            text = r.read()
            self.head = r.headers
            try:
                return r.status, json.loads(text)
            except ValueError:
                return r.status, text
        finally:
            c.close()

    def listen(self, query="", key=None, **headers):
        return listen(self.port, self.key if key is None else key, query, **headers)

    def sandboxes(self):
        found = self.call("GET", "/handrail/v1/sandboxes")[1]["sandboxes"]
        return [dict(s, owner=self.owners.get(s["key"], self.key)) for s in found]

    def until(self, what, wanted):
        """The store tells of changes to those who ask: each start or stop is waited for by ?wait=ready."""
        pause = threading.Event()
        for _ in range(int(PATIENCE * 20)):
            found = what()
            if wanted(found):
                return found
            pause.wait(0.05)
        raise AssertionError("it does not come: %r" % (found,))

    def settled(self):
        self.until(self.sandboxes, lambda all: all == [])

    def make_key(self, name, **more):
        status, answer = self.call("POST", "/handrail/v1/keys", dict({"name": name}, **more))
        equal(status, 200, "a key")
        self.owners[answer["id"]] = answer["key"]
        self.secrets.append(answer["key"])
        return answer["key"]

    def up(self, session, key=None, **more):
        status, o = self.call("POST", "/start?wait=ready", dict({"session_id": session}, **more), key=key)
        equal((status, o.get("state")), (200, "running"), repr(o))
        self.secrets.append(o["session_api_key"])
        return o

    def run(self, o, command):
        status, answer = self.call("POST", "/%s/execute_action" % o["runtime_id"], {
            "action": {"action": "run", "args": {"command": command}}}, key="",
            X_Session_API_Key=o["session_api_key"], Content_Type="application/json")
        equal(status, 200, repr(answer))
        return answer["content"]

    def replay(self, name, image, left_out=()):
        """A recorded client's conversation (t/corpus/fleet), without the calls in left_out."""
        known, session = {"@image@": image}, ""
        with open(os.path.join(SRC, "t", "corpus", "fleet", name)) as lines:
            for line in lines:
                for placeholder, value in known.items():
                    line = line.replace(placeholder, value)
                e = json.loads(line)
                if e["path"] in left_out:
                    continue
                said, want = "%s %s" % (e["method"], e["path"]), e.get("answer", {})
                headers = {"X_Session_API_Key": session} if "X-Session-API-Key" in e["keys"] else {}

                def ask():
                    return self.call(e["method"], e["path"], e.get("body"), **headers)

                # a client asks until it is what it waits for
                waits = e["path"].startswith(("/runtime/", "/sessions/")) and e["status"] == 200
                status, answer = self.until(ask, lambda a: a[1]["pod_status"] == want["pod_status"]) if waits else ask()
                equal(status, e["status"], "%s: %r" % (said, answer))
                if e["path"] == "/start":
                    known["@id@"], session = answer["runtime_id"], answer["session_api_key"]
                    equal(answer["url"], "http://127.0.0.1:%d/%s" % (self.port, answer["runtime_id"]))
                    want = dict(want, runtime_id=known["@id@"])
                equal({k: answer[k] for k in want}, want, said)
