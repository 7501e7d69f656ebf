"""Stand-ins for providers of sandboxes, on loopback: what they say is said by a model, but commands are run and files
are kept, in a directory of the test's. Faults are put in front of chosen requests."""

import base64
import http.client
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
    """What happens instead, to the next `times` requests that match. after: it is carried out, and the answer lost, or
    status in its place."""

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
        self.boxes, self.numbers, self.started = {}, itertools.count(1), []
        self.edit = lambda r, o: o  # what is said instead of JSON; bytes: as they are
        self.put = []  # files that were uploaded
        self.unlisted = set()  # those that exist and that lists do not have yet
        # where a sandbox's /openhands is, and what its port 4444 is on this machine; see serving()
        self.openhands = self.port = None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

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
        self.end_programs()
        for name in self.put:  # a sandbox's end removes its /tmp, which is this machine's here
            if name.startswith("/tmp/.handrail-") and os.path.exists(name):
                os.unlink(name)
        self.server.shutdown()
        self.server.server_close()

    def serving(self, port):
        """A server may run in its sandboxes; who runs it may do all there, as with sudo."""
        self.openhands, self.port = os.path.join(self.dir, "openhands"), port
        put_sudo(self.dir)

    def end_programs(self):
        """As a sandbox's end ends them."""
        for p in self.started:
            if p.poll() is None:
                p.terminate()
                p.wait()

    def forward(self, r):
        """To the server in the sandbox, as the provider's proxy does."""
        c = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            c.request(r.method, r.h.path, r.body or None, {k: v for k, v in r.headers.items()
                                                           if k not in ("host", "connection", "content-length")})
            a = c.getresponse()
            body = a.read()
        except OSError:
            return 502, {}, {"message": "nothing listens at that port"}
        finally:
            c.close()
        return a.status, {"Content-Type": a.headers.get("Content-Type", "text/plain")}, body

    def listable(self):
        return [b for name, b in self.boxes.items() if name not in self.unlisted]

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
            if f.after:
                self.answer(r)
            return self.send(r, f.status, f.headers, b'{"message":"a fault"}')
        if f is not None and not f.after and f.cut is None:
            return self.drop(r)
        said = self.answer(r)
        if f is not None and f.after:
            return self.drop(r)
        return self.send(r, *said) if said is not None else None

    def send(self, r, status, headers, body):
        if isinstance(body, (dict, list)):
            body = self.edit(r, body)
            headers = dict({"Content-Type": "application/json"}, **headers)
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
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
        path = os.environ["PATH"]
        if self.openhands is not None:
            line = re.sub(r"\b4444\b", str(self.port), line.replace("/openhands", self.openhands))
            path = os.path.join(self.dir, "bin") + ":" + path
        p = subprocess.Popen(["/bin/bash", "-c", line], cwd=cwd or self.dir, start_new_session=True, stdin=stdin,
                             env=dict({"PATH": path, "HOME": self.dir}, **(env or {})),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(p)
        return p

    def background(self, line):
        """A program whose output nobody reads."""
        p = self.bash(line)
        for f in (p.stdout, p.stderr):
            threading.Thread(target=drain, args=(f,), daemon=True).start()
        return p


def put_sudo(directory):
    os.mkdir(os.path.join(directory, "bin"))
    with open(os.path.join(directory, "bin/sudo"), "w") as f:
        f.write("#!/bin/sh\nshift\nexec \"$@\"\n")
    os.chmod(f.name, 0o755)
    # a login shell makes a PATH of its own
    with open(os.path.join(directory, ".bash_profile"), "w") as f:
        f.write("PATH=%s:$PATH\n" % os.path.join(directory, "bin"))


def encoded(o):
    """Its JSON; a surrogate of Python's "surrogateescape" stands for a byte that is no UTF-8."""
    return json.dumps(o, ensure_ascii=False).encode("utf-8", "surrogateescape")


def drain(f):
    with f:
        while f.read(65536):
            pass


def frame(o, flags=0):
    b = o if isinstance(o, bytes) else encoded(o)
    return struct.pack(">BI", flags, len(b)) + b


class E2B(StandIn):
    """The API, and envd of all of its sandboxes at the same address."""

    old = False

    def __init__(self, directory):
        super().__init__(directory)
        self.processes = {}
        self.last_words = ""  # the end of a command has them in it
        self.cells = {}  # what the code interpreter answers, lines, by the cell's text

    def answer(self, r):
        if r.headers.get("e2b-sandbox-port") == "4444":
            return self.forward(r)
        if r.headers.get("e2b-sandbox-port") == "49999" and r.path == "/execute":
            return 200, {}, b"".join(encoded(o) + b"\n" for o in self.cells[r.json()["code"]])
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
        found = self.listable()
        if "metadata" in r.query:
            name, value = [urllib.parse.unquote(x) for x in urllib.parse.unquote(r.query["metadata"]).split("=")]
            found = [b for b in found if b["metadata"].get(name) == value]
        at = int(r.query.get("nextToken", 0))
        headers = {"X-Next-Token": str(at + 2)} if len(found) > at + 2 else {}
        return 200, headers, found[at:at + 2]

    def about(self, r, box, what):
        if r.method == "DELETE":
            self.end_programs()
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
        cut = threading.Semaphore(0)  # once for each stream that is over, and for a cut

        def put(o, flags=0):
            with self.lock:
                if left[0] <= 0:
                    return
                left[0] -= 1
                try:
                    r.h.wfile.write(frame(self.edit(r, o), flags))
                except OSError:
                    left[0] = 0
                if left[0] == 0:
                    cut.release()

        def pump(f, name):
            while left[0] > 0 or r.fault is None:
                b = os.read(f.fileno(), 1000)
                if not b:
                    break
                put({"event": {"data": {name: base64.b64encode(b).decode()}}})
            cut.release()

        put({"event": {"start": {"pid": p.pid}}})
        threads = [threading.Thread(target=pump, args=a, daemon=True)
                   for a in ((p.stdout, "stdout"), (p.stderr, "stderr"))]
        for t in threads:
            t.start()
        limit = r.headers.get("connect-timeout-ms")
        for _ in threads:
            cut.acquire(timeout=int(limit) / 1000 if limit else None)
            if left[0] <= 0:
                return None
        if threads[0].is_alive():
            p.kill()
            put({"error": {"code": "deadline_exceeded", "message": "context deadline exceeded"}}, 2)
            return None
        code = p.wait()
        self.processes.pop(p.pid, None)
        end = {"status": "exit status %d" % code, "exited": True, "error": self.last_words}
        if code < 0:
            said = {signal.SIGINT: "signal: interrupt"}.get(-code, "signal: killed")  # of those that tests send
            end = {"exitCode": -1, "status": said, "error": said}
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
            self.put.append(path or name)
            with open(path or name, "wb") as f:
                f.write(content)
        return 200, {"Content-Type": "text/plain"}, [{"name": os.path.basename(path), "path": path, "type": "file"}]


class Daytona(StandIn):
    """The API, and the toolbox of all of its sandboxes at the address that it tells."""

    key_header = "authorization"
    waits = 2  # looks until one is started
    previews = 0

    def answer(self, r):
        if r.headers.get("x-daytona-preview-token") == "preview-%d" % self.previews:
            return self.forward(r)
        if r.headers.get("authorization") != "Bearer " + self.key:
            return 401, {}, {"statusCode": 401, "message": "Invalid credentials"}
        m = re.match(r"/toolbox/([^/]+)(/.*)$", r.path)
        if m:
            return self.toolbox(r, m.group(2))
        if r.path == "/sandbox" and r.method == "POST":
            q = r.json()
            with self.lock:
                box = {"id": "box%d" % next(self.numbers), "labels": q["labels"], "state": "creating",
                       "toolboxProxyUrl": self.url + "/toolbox", "waits": self.waits, "to": "started"}
                self.boxes[box["id"]] = box
            return 200, {}, box
        if r.path == "/sandbox":
            want = json.loads(r.query.get("labels", "{}"))
            found = [b for b in self.listable() if all(b["labels"].get(k) == v for k, v in want.items())]
            return 200, {}, {"items": found, "nextCursor": None}
        m = re.match(r"/sandbox/([^/]+)(/.*)?$", r.path)
        box = self.boxes.get(m.group(1)) if m else None
        if box is None:
            return 404, {}, {"statusCode": 404, "message": "not found"}
        if r.method == "DELETE":
            self.end_programs()
            del self.boxes[box["id"]]
            return 200, {}, box
        if m.group(2) == "/ports/4444/preview-url":
            self.previews += 1  # another token each time, and the last one alone counts
            return 200, {}, {"url": self.url, "token": "preview-%d" % self.previews}
        if m.group(2) == "/stop":
            self.end_programs()
        if m.group(2) in ("/stop", "/start"):
            box.update(state="stopping" if m.group(2) == "/stop" else "starting", waits=self.waits,
                       to="stopped" if m.group(2) == "/stop" else "started")
        elif m.group(2) is None:
            box["waits"] -= 1
            if box["waits"] <= 0:
                box["state"] = box["to"]
        else:
            return 404, {}, {"statusCode": 404, "message": "no such route"}
        return 200, {}, box

    def toolbox(self, r, path):
        if path == "/process/execute":
            q = r.json()
            p = self.bash(q["command"], q.get("envs"), q.get("cwd"))
            try:
                out, err = p.communicate(timeout=q.get("timeout"))
            except subprocess.TimeoutExpired:
                p.kill()
                return 408, {}, {"statusCode": 408, "message": "command execution timeout"}
            code = p.returncode if p.returncode >= 0 else 128 - p.returncode
            return 200, {}, {"exitCode": code, "result": (out + err).decode("utf-8", "replace")}
        if path == "/process/session":
            return 201, {}, b""
        if path.startswith("/process/session/"):
            self.background(r.json()["command"])
            return 202, {}, {"cmdId": "one"}
        if path == "/files/download":
            if not os.path.isfile(r.query["path"]):
                return (404 if not os.path.exists(r.query["path"]) else 400), {}, b""
            with open(r.query["path"], "rb") as f:
                return 200, {"Content-Type": "application/octet-stream"}, f.read()
        if path == "/files/bulk-upload":
            from .clouds import parts
            found = {name: content for name, _, content in parts(r.headers["content-type"], r.body)}
            to = found["files[0].path"].decode()
            os.makedirs(os.path.dirname(to), exist_ok=True)
            self.put.append(to)
            with open(to, "wb") as f:
                f.write(found["files[0].file"])
            return 200, {}, {"files": [{"path": to}]}
        return 404, {}, {"statusCode": 404, "message": "no such route"}


class Runloop(StandIn):
    """Devboxes. What a command prints is kept, and told from an offset on."""

    key_header = "authorization"

    def __init__(self, directory):
        super().__init__(directory)
        self.runs, self.keys = {}, {}

    def answer(self, r):
        if r.headers.get("authorization") != "Bearer " + self.key:
            return 401, {}, {"message": "unauthorized", "code": 401}
        # a request that is sent again with its key counts once
        key = r.headers.get("x-request-id")
        if key is not None and key in self.keys:
            return self.keys[key]
        said = self.act(r)
        if key is not None and said is not None:
            self.keys[key] = said
        return said

    def act(self, r):
        if r.path == "/v1/devboxes" and r.method == "POST":
            q = r.json()
            with self.lock:
                box = {"id": "dbx_%d" % next(self.numbers), "name": q["name"], "status": "provisioning",
                       "metadata": q["metadata"], "polls": 1}
                self.boxes[box["id"]] = box
            return 200, {}, box
        if r.path == "/v1/devboxes":
            return 200, {}, {"devboxes": self.listable(), "has_more": False}
        m = re.match(r"/v1/devboxes/([^/]+)(?:/(.*))?$", r.path)
        box = self.boxes.get(m.group(1)) if m else None
        if box is None:
            return 404, {}, {"message": "devbox not found", "code": 404}
        return self.about(r, box, m.group(2))

    def about(self, r, box, what):
        if what is None:
            return 200, {}, box
        if what == "create_tunnel":
            return 200, {}, {"devbox_id": box["id"], "port": 4444, "url": "http://127.0.0.1:%s" % self.port}
        if what == "shutdown":
            self.end_programs()
            del self.boxes[box["id"]]
            return 200, {}, dict(box, status="shutdown")
        if what in ("suspend", "resume"):
            box["status"] = "suspended" if what == "suspend" else "running"
            return 200, {}, box
        if what == "wait_for_status":
            box["polls"] -= 1
            if box["polls"] >= 0:
                return 408, {}, {"message": "timeout", "code": 408}
            if box["status"] == "provisioning":
                box["status"] = "running"
            return 200, {}, box
        if what == "keep_alive":
            return 200, {}, {}
        if what == "download_file":
            path = r.json()["path"]
            if not os.path.isfile(path):
                return 400, {}, {"message": "file not found: " + path, "code": 400}
            with open(path, "rb") as f:
                return 200, {"Content-Type": "application/octet-stream"}, f.read()
        if what == "upload_file":
            from .clouds import parts
            found = {name: content for name, _, content in parts(r.headers["content-type"], r.body)}
            to = found["path"].decode()
            os.makedirs(os.path.dirname(to), exist_ok=True)
            self.put.append(to)
            with open(to, "wb") as f:
                f.write(found["file"])
            return 200, {}, {}
        return self.execution(r, box, what)

    def execution(self, r, box, what):
        if what == "execute_async":
            with self.lock:
                name = "exe_%d" % next(self.numbers)
            self.runs[name] = self.bash(r.json()["command"]), {"stdout": b"", "stderr": b""}
            return 200, {}, {"devbox_id": box["id"], "execution_id": name, "status": "running"}
        m = re.match(r"executions/([^/]+)/(\w+)$", what)
        if not m or m.group(1) not in self.runs:
            return 404, {}, {"message": "no such execution", "code": 404}
        p, kept = self.runs[m.group(1)]
        if m.group(2) == "kill":
            os.killpg(p.pid, signal.SIGKILL)
            return 200, {}, {}
        if m.group(2) == "wait_for_status":
            code = p.wait()
            return 200, {}, {"status": "completed", "exit_status": code if code >= 0 else 128 - code,
                             "execution_id": m.group(1)}
        name = m.group(2).split("_")[1]
        f = getattr(p, name)
        r.h.send_response(200)
        r.h.send_header("Content-Type", "text/event-stream")
        r.h.send_header("Connection", "close")
        r.h.close_connection = True
        r.h.end_headers()
        at, left = int(r.query.get("offset", 0)), r.fault.cut if r.fault and r.fault.cut is not None else 1 << 30

        def tell(b, offset):
            text = b.decode("utf-8", "surrogateescape")
            o = self.edit(r, {"output": text, "offset": offset})
            r.h.wfile.write(b"data: " + (o if isinstance(o, bytes) else encoded(o)) + b"\n\n")

        if at < len(kept[name]):
            tell(kept[name][at:], at)
            left -= 1
        while left > 0:
            b = os.read(f.fileno(), 1000)
            if not b:
                break
            offset = len(kept[name])
            kept[name] += b
            tell(b, offset)
            left -= 1
        return None
