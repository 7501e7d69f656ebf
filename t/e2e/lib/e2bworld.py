"""A stand-in of the fleet for tests of the dialect of E2B: one sandbox, POST and DELETE of sandboxes, and the edge that
checks the token and passes requests on with the server's key. Root's sandbox is a box with an account `user`."""

import base64
import contextlib
import hashlib
import http.server
import json
import os
import secrets
import socket
import socketserver
import subprocess
import tempfile
import threading
import urllib.parse

if os.geteuid() == 0:
    os.environ["E2E_BACKEND"] = "box"  # for lib.supervised
from .supervised import ROOT, Server  # noqa: E402

UID = 4242  # the account's number where the conversations were recorded
KEY = "key-of-the-sandbox"
PREFIXES = {"49983": "/handrail/e2b", "49999": "/handrail/e2b/code"}
CLOSED = {"/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"}
HEAD_MAX = 1 << 20


def sign(path, operation, user, token, expiration=None):
    text = "%s:%s:%s:%s" % (path, operation, user, token) + ("" if expiration is None else ":" + expiration)
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


class Sandbox(Server):
    """A server for the dialect; root's has the user's account, which handraild makes in the box."""

    def __init__(self, env=None, **more):
        before = tempfile.tempdir
        tempfile.tempdir = "/var/tmp" if ROOT else None  # clean() empties /tmp
        try:
            super().__init__(name="user" if ROOT else None, env=dict({"SESSION_API_KEY": KEY}, **(env or {})),
                             ready=None, **more)
        finally:
            tempfile.tempdir = before
        if ROOT:
            del self.env["USER"]  # so that handraild makes the account
            self.args[self.args.index("--user-id") + 1] = str(UID)
        self.start()
        if ROOT:  # with a group of its own, as in E2B's templates
            self.inside("sed -i -E '/^user:/d; s/\\<user\\>//' /etc/group; echo user:x:%d: >>/etc/group; sed -i "
                        "'s/^user:.*/user:x:%d:%d::\\/home\\/user:\\/bin\\/bash/' /etc/passwd" % (UID, UID, UID))

    def init(self, **document):
        if ROOT:
            document = dict({"defaultUser": "user", "defaultWorkdir": "/home/user"}, **document)
        return self.ask("POST", "/init", json.dumps(document))

    def ask(self, method, path, body=None, headers=None, **more):
        """A request for which the edge is not needed."""
        headers = dict({"X-Session-API-Key": KEY}, **(headers or {}))
        return self.request(method, "/handrail/e2b" + path, body, headers, **more)

    def call(self, name, user=None, **message):
        """A unary call of filesystem.Filesystem."""
        headers = {"Content-Type": "application/json"}
        if user is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(user.encode() + b":").decode()
        return self.ask("POST", "/filesystem.Filesystem/" + name, json.dumps(message), headers)

    def inside(self, script, check=True):
        """Runs a script as the root of the box, or here without one."""
        command = ["/bin/sh", "-c", script]
        if ROOT:
            mounts = [os.readlink("/proc/%s/ns/mnt" % pid) for pid in (self.pid, "self")]
            if mounts[0] == mounts[1]:  # scripts change /etc, and empty /tmp
                raise AssertionError("the server has no mounts of its own")
            command = ["nsenter", "-t", str(self.pid), "-m", "-p", "-i", "-n", "-u"] + command
        p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True)
        if check and p.returncode != 0:
            raise AssertionError("%s: %d %s" % (script, p.returncode, p.stdout))
        return p.stdout

    def clean(self, setup=None):
        """The directories of a scenario, as they were before each recording. A build that is mounted below /tmp is
        read-only (lib/boxed.py)."""
        self.inside("pkill -9 -u %d; cd /; rm -rf /home/user /srv/x; find /tmp -xdev -mindepth 1 -delete; "
                    "mkdir -p /home/user; chown user:user /home/user; chmod 755 /home/user; %s" % (UID, setup or ":"),
                    check=False)


# ---- the edge ----

def read_head(sock):
    """The bytes up to the end of a head, and those after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more or len(data) > HEAD_MAX:
            return None, b""
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    return head.decode("latin-1"), rest


def pump(source, target):
    """Passes all bytes on, and the end: of a client that leaves, too."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def refuse(sock, status, message, **more):
    body = json.dumps(dict({"code": status, "message": message}, **more)).encode()
    sock.sendall(b"HTTP/1.1 %d No\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n"
                 b"Connection: close\r\n\r\n" % (status, len(body)) + body)


class Edge(socketserver.BaseRequestHandler):
    def handle(self):
        head, rest = read_head(self.request)
        if head is None:
            return
        lines = head.split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:])}
        path = target.partition("?")[0]
        world, port = self.server.world, headers.get("e2b-sandbox-port", "49983")
        if method == "OPTIONS":
            self.request.sendall(b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n"
                                 b"Access-Control-Max-Age: 7200\r\nConnection: close\r\n\r\n")
        elif path in CLOSED and port == "49983":
            refuse(self.request, 404, "not found", path=path)
        elif port == "49983" and path != "/health" and not self.admitted(world, method, target, headers):
            refuse(self.request, 401, "unauthorized access, please provide a valid access token or method signing if "
                   "supported")
        else:
            gone = ("x-access-token:", "connection:")
            lines = [line for line in lines[1:] if not line.lower().startswith(gone)]
            lines = ["%s %s%s HTTP/1.1" % (method, PREFIXES.get(port, "/port/" + port), target),
                     "X-Session-API-Key: " + KEY, "Connection: close"] + lines
            more = "\r\nAccess-Control-Allow-Origin: *" if "origin" in headers else ""
            self.relay(world, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + rest, more + "\r\n\r\n")

    @staticmethod
    def admitted(world, method, target, headers):
        if headers.get("x-access-token") == world.token:
            return True
        url = urllib.parse.urlsplit(target)
        q = dict(urllib.parse.parse_qsl(url.query))
        wanted = sign(q.get("path", ""), "write" if method == "POST" else "read", q.get("username", ""), world.token,
                      q.get("signature_expiration"))
        return url.path == "/files" and q.get("signature") == wanted

    def relay(self, world, data, end):
        with world.sandbox.connect() as upstream:
            upstream.settimeout(None)
            upstream.sendall(data)
            forth = threading.Thread(target=self.forth, args=(upstream,), daemon=True)
            forth.start()
            head, rest = read_head(upstream)
            if head is not None:
                self.request.sendall((head + end).encode("latin-1") + rest)
                pump(upstream, self.request)
            with contextlib.suppress(OSError):
                self.request.shutdown(socket.SHUT_RDWR)
            forth.join()

    def forth(self, upstream):
        pump(self.request, upstream)
        with contextlib.suppress(OSError):
            upstream.shutdown(socket.SHUT_RDWR)


class Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64


# ---- the control API ----

class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        world = self.server.world
        world.id, world.token = secrets.token_hex(16), "ea_" + secrets.token_hex(20)
        a = world.sandbox.init(envVars=body.get("envVars") or {}, sandboxId=world.id,
                               templateId=body.get("templateID", "base"))
        if a.status != 204:
            return self.answer(500, {"code": 500, "message": repr(a)})
        return self.answer(201, {"templateID": "base", "sandboxID": world.id, "clientID": "x", "envdVersion": "0.6.13",
                                 "envdAccessToken": world.token, "domain": None})

    def do_DELETE(self):
        self.answer(204, None)

    def answer(self, status, value):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class World:
    """with World() as w: w.sandbox, and the addresses w.api and w.edge."""

    def __init__(self, **more):
        self.id, self.token = "", ""
        self.sandbox = Sandbox(**more)
        self.listeners = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api), Listener(("127.0.0.1", 0), Edge)]
        self.api, self.edge = ("http://127.0.0.1:%d" % s.server_address[1] for s in self.listeners)
        for s in self.listeners:
            s.world = self
            threading.Thread(target=s.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        for s in self.listeners:
            s.shutdown()
            s.server_close()
        self.sandbox.__exit__(*what)
