"""Stand-ins for providers of sandboxes, on loopback: what they say is said by a model, but commands are run and files
are kept, in a directory of the test's. Faults are put in front of chosen requests."""

import base64
import http.server
import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import urllib.parse


class Fault:
    """What happens instead, to the next `times` requests that match. after: it is carried out, and the answer lost."""

    def __init__(self, method, path, times=1, status=None, headers=None, after=False, cut=None):
        self.method, self.path, self.times = method, re.compile(path), times
        self.status, self.headers, self.after, self.cut = status, headers or {}, after, cut


class Request:
    def __init__(self, h):
        self.h, self.method = h, h.command
        path, _, query = h.path.partition("?")
        self.path = urllib.parse.unquote(path)
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.headers = {k.lower(): v for k, v in h.headers.items()}
        n = int(self.headers.get("content-length", 0))
        self.body = h.rfile.read(n) if n else b""

    def json(self):
        return json.loads(self.body) if self.body else {}


class StandIn:
    """answer(request) gives (status, headers, bytes), or writes the answer itself and gives None."""

    key_header, key = "x-api-key", "key-of-the-test"

    def __init__(self, directory):
        self.dir, self.faults, self.seen, self.lock = directory, [], [], threading.RLock()
        self.boxes, self.numbers = {}, itertools.count(1)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                outer.one(Request(self))

            do_GET = do_POST = do_DELETE = do_PUT = do

            def log_message(self, *unused):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *unused: None  # a client that was killed
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()

    def fault(self, *args, **more):
        self.faults.append(Fault(*args, **more))

    def take_fault(self, r):
        with self.lock:
            self.seen.append("%s %s" % (r.method, r.path))
            for f in self.faults:
                if f.times > 0 and f.method == r.method and f.path.search(r.path):
                    f.times -= 1
                    return f
        return None

    def count(self, method, path):
        return sum(1 for s in self.seen if s == "%s %s" % (method, path))

    def drop(self, r):
        r.h.close_connection = True
        try:
            r.h.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def one(self, r):
        f = self.take_fault(r)
        r.fault = f
        if f is not None and f.status is not None:
            return self.send(r, f.status, f.headers, b'{"message":"a fault"}')
        if f is not None and not f.after and f.cut is None:
            return self.drop(r)
        said = self.answer(r)
        if f is not None and f.after:
            return self.drop(r)
        return self.send(r, *said) if said is not None else None

    def send(self, r, status, headers, body):
        if isinstance(body, (dict, list)):
            headers, body = dict({"Content-Type": "application/json"}, **headers), json.dumps(body).encode()
        r.h.send_response(status)
        for k, v in headers.items():
            r.h.send_header(k, v)
        if status != 204:
            r.h.send_header("Content-Length", str(len(body)))
        r.h.end_headers()
        r.h.wfile.write(body)

    def keyed(self, r):
        return r.headers.get(self.key_header) == self.key

    def bash(self, line, env=None, cwd=None, stdin=subprocess.DEVNULL):
        """A command of the sandbox: what it prints comes in pieces."""
        return subprocess.Popen(["/bin/bash", "-c", line], cwd=cwd or self.dir, start_new_session=True, stdin=stdin,
                                env=dict({"PATH": os.environ["PATH"], "HOME": self.dir}, **(env or {})),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def frame(o, flags=0):
    b = json.dumps(o).encode()
    return struct.pack(">BI", flags, len(b)) + b


class E2B(StandIn):
    """The API, and envd of all of its sandboxes at the same address."""

    old = False

    def __init__(self, directory):
        super().__init__(directory)
        self.processes = {}

    def answer(self, r):
        if r.path.startswith(("/process.", "/files", "/health", "/filesystem.")):
            return self.plane(r)
        if not self.keyed(r):
            return 401, {}, {"code": 401, "message": "Invalid API key %s" % r.headers.get("x-api-key")}
        if r.method == "POST" and r.path == ("/sandboxes" if self.old else "/v2/sandboxes"):
            return self.create(r.json())
        if r.method == "GET" and r.path == "/v2/sandboxes":
            return self.listed(r)
        m = re.match(r"/(v2/)?sandboxes/([^/]+)(?:/(\w+))?$", r.path)
        if not m or (self.old and m.group(1)):
            return 404, {"Content-Type": "text/plain"}, b"404 page not found"
        box = self.boxes.get(m.group(2))
        if box is None:
            return 404, {}, {"code": 404, "message": "sandbox \"%s\" not found" % m.group(2)}
        return self.about(r, box, m.group(3))

    def create(self, q):
        with self.lock:
            box = {"sandboxID": "box%d" % next(self.numbers), "clientID": "0", "templateID": q["templateID"],
                   "envdVersion": "0.2.0" if self.old else "0.6.13", "envdAccessToken": "secret-of-envd",
                   "domain": None,
                   "metadata": q.get("metadata", {}), "state": "running", "timeout": q.get("timeout")}
            self.boxes[box["sandboxID"]] = box
        return 201, {}, box

    def listed(self, r):
        found = list(self.boxes.values())
        if "metadata" in r.query:
            name, value = [urllib.parse.unquote(x) for x in urllib.parse.unquote(r.query["metadata"]).split("=")]
            found = [b for b in found if b["metadata"].get(name) == value]
        at = int(r.query.get("nextToken", 0))
        headers = {"X-Next-Token": str(at + 2)} if len(found) > at + 2 else {}
        return 200, headers, found[at:at + 2]

    def about(self, r, box, what):
        if r.method == "DELETE":
            del self.boxes[box["sandboxID"]]
            return 204, {}, b""
        if what is None:
            return 200, {}, box
        if what == "timeout":
            if box["state"] == "paused":
                return 404, {}, {"code": 404, "message": "not running"}
            box["timeout"] = r.json()["timeout"]
            return 204, {}, b""
        if what == "pause":
            if box["state"] == "paused":
                return 409, {}, {"code": 409, "message": "Sandbox is already paused"}
            box["state"] = "paused"
            return 204, {}, b""
        if what in ("connect", "resume"):
            was, box["state"] = box["state"], "running"
            return 201 if was == "paused" else 200, {}, box
        if what == "metrics":
            return 200, {}, [{"cpuCount": 2, "cpuUsedPct": 12.5, "memUsed": 256, "memTotal": 1024}]
        return 404, {}, b"404 page not found"

    def plane(self, r):
        if not self.old and r.headers.get("x-access-token") != "secret-of-envd":
            return 401, {}, {"code": 401, "message": "unauthorized"}
        box = self.boxes.get(r.headers.get("e2b-sandbox-id", "")) or (list(self.boxes.values()) or [None])[-1]
        if box is None or box["state"] != "running":
            return 502, {}, {"sandboxId": "x", "message": "The sandbox was not found", "code": 502}
        if r.path == "/files":
            return self.files(r)
        if r.path == "/process.Process/Start":
            q = json.loads(r.body[5:])["process"]
            p = self.bash(q["args"][2], q.get("envs"), q.get("cwd"))
            self.processes[p.pid] = p
            return self.stream(r, p)
        if r.path == "/process.Process/Connect":
            p = self.processes.get(json.loads(r.body[5:])["process"]["pid"])
            if p is None:
                return 404, {}, {"code": "not_found", "message": "no such process"}
            return self.stream(r, p)
        if r.path == "/process.Process/SendSignal":
            p = self.processes.get(r.json()["process"]["pid"])
            if p is None:
                return 404, {}, {"code": "not_found", "message": "no such process"}
            os.kill(p.pid, signal.SIGKILL)
            return 200, {}, {}
        return 404, {}, b"404 page not found"

    def stream(self, r, p):
        """Until it ends, its time is over, or the fault's cut: so many events, then nothing more."""
        r.h.send_response(200)
        r.h.send_header("Content-Type", "application/connect+json")
        r.h.send_header("Connection", "close")
        r.h.close_connection = True
        r.h.end_headers()
        left = [r.fault.cut if r.fault is not None and r.fault.cut is not None else 1 << 30]

        def put(o, flags=0):
            with self.lock:
                if left[0] <= 0:
                    return
                left[0] -= 1
                try:
                    r.h.wfile.write(frame(o, flags))
                except OSError:
                    left[0] = 0

        def pump(f, name):
            while left[0] > 0:
                b = os.read(f.fileno(), 1000)
                if not b:
                    return
                put({"event": {"data": {name: base64.b64encode(b).decode()}}})

        put({"event": {"start": {"pid": p.pid}}})
        threads = [threading.Thread(target=pump, args=a, daemon=True)
                   for a in ((p.stdout, "stdout"), (p.stderr, "stderr"))]
        for t in threads:
            t.start()
        limit = r.headers.get("connect-timeout-ms")
        for t in threads:
            t.join(int(limit) / 1000 if limit else None)
        if left[0] <= 0:
            return None
        if threads[0].is_alive():
            p.kill()
            put({"error": {"code": "deadline_exceeded", "message": "context deadline exceeded"}}, 2)
            return None
        code = p.wait()
        self.processes.pop(p.pid, None)
        end = {"status": "exit status %d" % code, "exited": True}
        if code < 0:
            end = {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}
        elif code > 0:
            end["exitCode"] = code
        put({"event": {"end": end}})
        put({}, 2)
        return None

    def files(self, r):
        path = r.query.get("path", "")
        if r.method == "GET":
            if os.path.isdir(path):
                return 400, {}, {"code": 400, "message": "path '%s' is a directory" % path}
            if not os.path.exists(path):
                return 404, {}, {"code": 404, "message": "path '%s' does not exist" % path}
            with open(path, "rb") as f:
                return 200, {"Content-Type": "application/octet-stream"}, f.read()
        from .clouds import parts
        for _, name, content in parts(r.headers["content-type"], r.body):
            os.makedirs(os.path.dirname(path or name), exist_ok=True)
            with open(path or name, "wb") as f:
                f.write(content)
        return 200, {"Content-Type": "text/plain"}, [{"name": os.path.basename(path), "path": path, "type": "file"}]
