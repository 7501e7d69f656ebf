"""As much of a Kubernetes API server as the kind "kubernetes" talks to, with a node that runs every pod at
once: its server is one of this machine. What goes wrong in it is for the test to say."""

import base64
import copy
import hashlib
import http.server
import json
import select
import socket
import struct
import threading
import urllib.parse


class WebSocket:
    """The server's side of one connection; messages are bytes."""

    def __init__(self, handler, protocol):
        key = handler.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.sock = handler.connection
        handler.close_connection = True
        self.sock.sendall(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n"
                           % (accept, protocol)).encode())

    def send(self, payload, op=2):
        n = len(payload)
        head = bytes([0x80 | op]) + (bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n))
        self.sock.sendall(head + payload)

    def exactly(self, n):
        got = b""
        while len(got) < n:
            piece = self.sock.recv(n - len(got))
            if not piece:
                raise EOFError
            got += piece
        return got

    def receive(self):
        """(op, payload) of a frame; a client's are whole and masked."""
        first, second = self.exactly(2)
        n = second & 0x7f
        if n == 126:
            n = struct.unpack(">H", self.exactly(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.exactly(8))[0]
        assert second & 0x80, "a client masks"
        mask = self.exactly(4)
        data = self.exactly(n)
        return first & 15, bytes(b ^ mask[i & 3] for i, b in enumerate(data))


def running(pod):
    pod["status"] = {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": [
        {"name": "runtime", "image": pod["spec"]["containers"][0]["image"], "state": {"running": {}}}]}


class Threads(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # where the queue is full a connection is tried again after a second, and after three

    def handle_error(self, *unused):
        """A client that goes away is none."""


class Stub:
    """A sandbox's server at that port, 0: any free one. commands: what was run in any of them; info: the answer to
    each GET."""

    def __init__(self, port=0):
        self.commands, self.info, stub = [], {"status": "ok"}, self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def do_GET(self):
                self.say(stub.info)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.commands.append(body["action"].get("args", {}).get("command", ""))
                self.say({"observation": "run", "content": "", "extras": {
                    "command": "", "metadata": {"exit_code": 0}}, "success": True})

            def say(self, o):
                text = json.dumps(o).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self.http = Threads(("127.0.0.1", port), Handler)
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def end(self):
        self.http.shutdown()
        self.http.server_close()


class ApiServer:
    """port: where the server of every pod is; tls: an ssl.SSLContext. Attributes that tests set: node (what becomes
    of a new pod), failures
    (answers that come first: (status, headers, body), None: the connection ends), cuts (streams that end after one
    event each), forgotten (watches that are answered with 410), tokens, denied (a pair of verb and resource of what
    nobody may do), page (of lists, at most), lingering (paths of what is only marked when it is deleted), agents (the
    version of agents.x-k8s.io that is served), controller (what becomes of a Sandbox that is new or changed), silent
    (the kind whose watches tell nothing)."""

    def __init__(self, port=0, tls=None):
        self.lock = threading.Condition()
        self.objects, self.changes, self.version = {}, [], 1000
        self.requests, self.failures, self.tokens, self.denied = [], [], {"good"}, set()
        self.port, self.node, self.log = port, running, ["handraild ready: listening on 0.0.0.0:8080"]
        self.lingering, self.agents, self.controller, self.silent = set(), None, self.sandbox, None
        self.cuts, self.forgotten, self.page, self.ended = 0, 0, 500, False
        with self.lock:
            self.put("/api/v1/nodes/n", {"metadata": {"name": "n"}, "status": {
                "conditions": [{"type": "Ready", "status": "True"}]}})
            self.put("/apis/storage.k8s.io/v1/storageclasses/s", {"metadata": {"name": "s", "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true"}}})
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def any(self):
                try:
                    server.handle(self)
                except (BrokenPipeError, ConnectionResetError, EOFError):
                    self.close_connection = True
            do_GET = do_POST = do_PATCH = do_DELETE = any

        self.http = Threads(("127.0.0.1", 0), Handler)
        self.url = "http%s://127.0.0.1:%d" % ("s" if tls else "", self.http.server_port)
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with self.lock:
            self.ended = True
            self.lock.notify_all()
        self.http.shutdown()
        self.http.server_close()

    # ---- objects ----

    def put(self, path, o, kind="MODIFIED"):
        """Below the lock."""
        self.version += 1
        o["metadata"]["resourceVersion"] = str(self.version)
        if kind == "DELETED":
            del self.objects[path]
        else:
            self.objects[path] = o
        self.changes.append((self.version, path, kind, copy.deepcopy(o)))
        self.lock.notify_all()

    def change(self, path, fn):
        with self.lock:
            o = copy.deepcopy(self.objects[path])
            fn(o)
            self.put(path, o)

    def remove(self, path):
        with self.lock:
            self.delete(path)

    def names(self):
        with self.lock:
            return sorted(p.rsplit("/", 1)[1] for p in self.objects if "/namespaces/" in p)

    def sent(self, method, part=""):
        """Bodies of requests, as they came."""
        with self.lock:
            return [body for m, path, _, body in self.requests if m == method and part in path]

    # ---- requests ----

    @staticmethod
    def answer(h, status, o, headers=()):
        body = json.dumps(o).encode() if not isinstance(o, bytes) else o
        h.send_response(status)
        for name, value in headers:
            h.send_header(name, value)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def refuse(self, h, status, reason, message, headers=()):
        self.answer(h, status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                                "reason": reason, "message": message}, headers)

    def handle(self, h):
        body = h.rfile.read(int(h.headers.get("Content-Length") or 0))
        path, _, query = h.path.partition("?")
        q = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        with self.lock:
            self.requests.append((h.command, h.path, dict(h.headers), json.loads(body) if body else None))
            self.lock.notify_all()
            failure = self.failures.pop(0) if self.failures else 0
        if failure is None:
            h.close_connection = True
            h.connection.shutdown(socket.SHUT_RDWR)
        elif failure:
            self.answer(h, failure[0], failure[2], failure[1])
        elif (h.headers.get("Authorization") or "")[7:] not in self.tokens:
            self.refuse(h, 401, "Unauthorized", "Unauthorized")
        elif path.endswith("/selfsubjectaccessreviews"):
            a = json.loads(body)["spec"]["resourceAttributes"]
            self.answer(h, 201, {"status": {"allowed": (a["verb"], a["resource"]) not in self.denied}})
        elif path == "/apis/agents.x-k8s.io" and self.agents:
            self.answer(h, 200, {"kind": "APIGroup", "versions": [{"version": self.agents}]})
        elif path.startswith("/apis/agents.x-k8s.io") and path.split("/")[3:4] != [self.agents]:
            self.refuse(h, 404, "NotFound", "the server could not find the requested resource")
        elif path == "/version":
            self.answer(h, 200, {"gitVersion": "v1.0.0"})
        elif path.endswith("/portforward"):
            self.portforward(h)
        elif path.endswith("/exec"):
            self.exec(h, [v for k, v in urllib.parse.parse_qsl(query) if k == "command"])
        elif path.endswith("/log"):
            self.follow_log(h, path[:-4], q.get("follow") == "true")
        elif "watch" in q:
            self.watch(h, path, q)
        else:
            self.plain(h, path, q, body)

    def plain(self, h, path, q, body):
        verb = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[h.command]
        parts = path.split("/namespaces/", 1)[-1].split("/")
        if len(parts) > 1 and (verb, parts[1]) in self.denied:
            self.refuse(h, 403, "Forbidden", '%s is forbidden: User "eve" cannot %s resource "%s" in API group "" in '
                        'the namespace "%s"' % (parts[1], verb, parts[1], parts[0]))
            return
        with self.lock:
            o = copy.deepcopy(self.objects.get(path))
            if h.command == "GET" and o is None and "/storageclasses/" in path:
                self.refuse(h, 404, "NotFound", "storageclasses not found")
            elif h.command == "GET" and (len(parts) == 2 or parts[0] == ""):
                self.listing(h, path, q)
            elif h.command == "GET" and len(parts) == 1:
                self.answer(h, 200, {"kind": "Namespace"})
            elif h.command == "POST":
                o = json.loads(body)
                path += "/" + o["metadata"]["name"]
                if path in self.objects:
                    self.refuse(h, 409, "AlreadyExists", "it already exists")
                    return
                self.new(path, o)
                self.answer(h, 201, o)
            elif h.command == "PATCH":
                self.patch(h, path, o, json.loads(body))
            elif o is None:
                self.refuse(h, 404, "NotFound", '%s "%s" not found' % (parts[1], parts[-1]))
            elif h.command == "GET":
                self.answer(h, 200, o)
            else:
                wanted = json.loads(body or b"{}").get("preconditions") or {}
                if any(o["metadata"][k] != v for k, v in wanted.items()):
                    self.refuse(h, 409, "Conflict", "Precondition failed")
                    return
                if path in self.lingering:
                    o["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                    self.put(path, o)
                else:
                    self.delete(path)
                self.answer(h, 200, o)

    def delete(self, path):
        """With what it owns before it; a Sandbox's pod comes back."""
        o = copy.deepcopy(self.objects[path])
        for p, other in list(self.objects.items()):
            if o["metadata"].get("uid") in [r["uid"] for r in other["metadata"].get("ownerReferences", ())]:
                self.put(p, copy.deepcopy(other), "DELETED")
        self.put(path, o, "DELETED")
        for r in o["metadata"].get("ownerReferences", ()):
            self.controller(next(p for p, other in self.objects.items() if other["metadata"].get("uid") == r["uid"]))

    def sandbox(self, path):
        """As the controller of agent-sandbox: a pod of the same name, or none."""
        o = self.objects[path]
        pod = "/api/v1/%s/pods/%s" % (path.split("/", 4)[4].rsplit("/", 2)[0], o["metadata"]["name"])
        runs = o["spec"].get("replicas", 1) == 1 if self.agents == "v1alpha1" else \
            o["spec"].get("operatingMode", "Running") == "Running"
        if runs and pod not in self.objects:
            made = copy.deepcopy(o["spec"]["podTemplate"])
            made["metadata"].update(name=o["metadata"]["name"], ownerReferences=[{
                "apiVersion": o["apiVersion"], "kind": "Sandbox", "name": o["metadata"]["name"],
                "uid": o["metadata"]["uid"], "controller": True}])
            self.new(pod, dict(made, kind="Pod"))
        elif not runs and pod in self.objects:
            self.put(pod, copy.deepcopy(self.objects[pod]), "DELETED")

    def new(self, path, o):
        o["metadata"]["uid"] = "uid-%d" % self.version
        self.encode(o)
        self.put(path, o, "ADDED")
        if o["kind"] == "Sandbox":
            self.controller(path)
        if o["kind"] == "Pod" and self.node:
            o = copy.deepcopy(o)
            self.node(o)
            self.put(path, o)

    @staticmethod
    def encode(o):
        """What a Secret is given as text."""
        if "stringData" in o:
            o.setdefault("data", {}).update({k: base64.b64encode(v.encode()).decode()
                                             for k, v in o.pop("stringData").items()})

    def patch(self, h, path, o, body):
        kind = h.headers["Content-Type"]
        if kind == "application/apply-patch+yaml":
            if o is None:
                o = body
                self.new(path, o)
            else:
                self.put(path, dict(o, **{k: v for k, v in body.items() if k != "metadata"}))
        elif o is None:
            self.refuse(h, 404, "NotFound", "not found")
            return
        elif kind == "application/json-patch+json":
            labels = o["metadata"]["labels"]
            for op in body:
                name = op["path"].rsplit("/", 1)[1].replace("~1", "/")
                if op["op"] == "test" and labels.get(name) != op["value"]:
                    self.refuse(h, 422, "Invalid", "the test failed")
                    return
                if op["op"] == "remove":
                    del labels[name]
                elif op["op"] == "add":
                    labels[name] = op["value"]
            self.put(path, o)
        else:
            def merge(to, what):
                for k, v in what.items():
                    if isinstance(v, dict):
                        merge(to.setdefault(k, {}), v)
                    elif v is None:
                        to.pop(k, None)
                    else:
                        to[k] = v
            if body["metadata"].pop("resourceVersion", o["metadata"]["resourceVersion"]) != \
                    o["metadata"]["resourceVersion"]:
                self.refuse(h, 409, "Conflict", "the object has been modified")
                return
            if body["metadata"].get("uid") not in (None, o["metadata"].get("uid")):
                self.refuse(h, 422, "Invalid", "metadata.uid: field is immutable")
                return
            merge(o, body)
            self.encode(o)
            self.put(path, o)
            if o.get("kind") == "Sandbox":
                self.controller(path)
        self.answer(h, 200, self.objects[path])

    @staticmethod
    def chosen(o, q):
        field, label = q.get("fieldSelector", ""), q.get("labelSelector", "")
        if field.startswith("metadata.name=") and o["metadata"]["name"] != field[14:]:
            return False
        labels = o["metadata"].get("labels", {})
        for part in label.split(",") if label else ():
            name, equals, value = part.partition("=")
            if labels.get(name) != value if equals else name not in labels:
                return False
        return True

    def listing(self, h, path, q):
        found = [o for p, o in sorted(self.objects.items())
                 if p.rsplit("/", 1)[0] == path and self.chosen(o, q)]
        begin, n = int(q.get("continue") or 0), min(int(q.get("limit") or 500), self.page)
        meta = {"resourceVersion": str(self.version)}
        if len(found) > begin + n:
            meta["continue"] = str(begin + n)
        self.answer(h, 200, {"metadata": meta, "items": found[begin:begin + n]})

    # ---- streams ----

    @staticmethod
    def chunk(h, data):
        h.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        h.wfile.flush()

    def begin(self, h):
        h.send_response(200)
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        h.wfile.flush()

    def watch(self, h, path, q):
        version = int(q["resourceVersion"] or 0)
        self.begin(h)
        with self.lock:
            if self.forgotten:
                self.forgotten -= 1
                self.chunk(h, json.dumps({"type": "ERROR", "object": {
                    "kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}).encode() + b"\n")
                self.chunk(h, b"")
                return
            while not self.ended:
                for at, where, kind, o in self.changes if not path.endswith("/%s" % self.silent) else ():
                    if at <= version or where.rsplit("/", 1)[0] != path or not self.chosen(o, q):
                        continue
                    version = at
                    self.chunk(h, json.dumps({"type": kind, "object": o}).encode() + b"\n")
                    if self.cuts:
                        # not even the end of the stream is told
                        self.cuts -= 1
                        h.close_connection = True
                        h.connection.shutdown(socket.SHUT_RDWR)
                        return
                self.lock.wait()

    def follow_log(self, h, pod, follow):
        with self.lock:
            there = pod in self.objects
        if not there:
            self.refuse(h, 404, "NotFound", "no such pod")
            return
        self.begin(h)
        for line in self.log:
            self.chunk(h, line.encode() + b"\n")
        with self.lock:
            while follow and not self.ended and pod in self.objects:
                self.lock.wait()
        self.chunk(h, b"")

    def portforward(self, h):
        with self.lock:
            if h.path.partition("?")[0][:-12] not in self.objects:
                self.refuse(h, 404, "NotFound", "no such pod")
                return
        ws = WebSocket(h, "v4.channel.k8s.io")
        for channel in (0, 1):
            ws.send(bytes([channel]) + struct.pack("<H", 8080))
        try:
            to = socket.create_connection(("127.0.0.1", self.port))
        except ConnectionRefusedError:
            ws.send(b"\x01an error occurred forwarding 8080: connection refused")
            return
        with to:
            while True:
                # what TLS has read already is not told by select
                waits = hasattr(ws.sock, "pending") and ws.sock.pending() > 0
                ready = select.select([ws.sock, to], [], [], 0 if waits else None)[0]
                if waits or ws.sock in ready:
                    op, data = ws.receive()
                    if op == 8:
                        return
                    to.sendall(data[1:])
                if to in ready:
                    data = to.recv(30000)
                    if not data:
                        ws.send(struct.pack(">H", 1000), 8)
                        return
                    ws.send(b"\0" + data)

    def exec(self, h, words):
        """Prints its words and its input, and ends with the status that the last word is."""
        ws = WebSocket(h, "v5.channel.k8s.io")
        ws.send(b"", 9)  # a ping between
        text = b""
        while True:
            op, data = ws.receive()
            if op == 10:
                continue
            if data[:1] == b"\xff":
                break
            text += data[1:]
        ws.send(b"\1" + " ".join(words).encode() + b"\n" + text)
        ws.send(b"\2told\n")
        code = int(words[-1]) if words[-1].isdigit() else 0
        status = {"status": "Success"} if code == 0 else {
            "status": "Failure", "reason": "NonZeroExitCode", "message": "caf\xe9", "details": {
                "causes": [{"reason": "ExitCode", "message": str(code)}]}}
        # a text of the runtime's need not be UTF-8
        ws.send(b"\3" + json.dumps(status, ensure_ascii=False).encode("latin-1"))
        ws.send(struct.pack(">H", 1000), 8)
