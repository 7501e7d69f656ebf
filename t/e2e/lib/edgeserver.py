"""A box's edge: the real nginx with a generated configuration, the servers of the network as sockets that record
requests, and clients that write bytes of their own."""

import json
import os
import queue
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

from .certs import Authority
from .host import BUILD, PATIENCE
from .tap import Skip

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
DRIVER = os.path.join(BUILD, "t/e2e/edge_driver")

HEAD = "POST /ok HTTP/1.1\r\nHost: api.test\r\n"
BAD = "GET /secret HTTP/1.1\r\nHost: api.test\r\n\r\n"
# Requests to api.test for whose rules only /ok is allowed: two readers of the same bytes could see another request.
SMUGGLED = (
    HEAD + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s" % (len(BAD), BAD),
    HEAD + "Content-Length: +0\r\n\r\n" + BAD,
    HEAD + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + BAD,
    HEAD + "X: y\r\n\tContent-Length: %d\r\n\r\n%s" % (len(BAD), BAD),
    HEAD + "Host: other.test\r\n\r\n" + BAD,
    HEAD + "Content-Length: 0\n\n" + BAD,
    HEAD.replace("\r\n", "\n") + "X: y\n\n" + BAD.replace("\r\n", "\n"),
    HEAD + "X: y\rContent-Length: %d\r\n\r\n%s" % (len(BAD), BAD),
    "GET /ok HTTP/1.1\nHost: api.test\n\nGET /secret HTTP/1.1\nHost: api.test\n\n",
    "GET /ok HTTP/1.1\r\nHost: api.test\r\nContent-Length: %d\r\n\r\n%s" % (len(BAD), BAD),
    HEAD + "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BAD), BAD),
    HEAD + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n" + BAD,
    HEAD + "Transfer-Encoding: chunked\r\n\r\n0;%s\r\n\r\n%s" % ("a" * 100, BAD),
    HEAD + "Transfer-Encoding: chunked\r\n\r\n00000000000000000000\r\n\r\n" + BAD,
    HEAD + "Connection: Host, Transfer-Encoding\r\n\r\n" + BAD,
    "GET /ok HTTP/1.1 HTTP/1.1\r\nHost: api.test\r\n\r\n" + BAD,
    "GET /ok\r\nHost: api.test\r\n\r\n" + BAD,
    "GET /ok HTTP/1.1\r\nHost: api.test\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n" + BAD,
    "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n" + BAD,
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + BAD,
    "GET /ok\x00/secret HTTP/1.1\r\nHost: api.test\r\n\r\n" + BAD,
    "GET /ok /secret HTTP/1.1\r\nHost: api.test\r\n\r\n" + BAD)


def read_head(f):
    """The lines of one head, or None at the end."""
    lines = []
    while True:
        line = f.readline()
        if not line:
            return None
        if line == b"\r\n":
            return lines
        lines.append(line[:-2].decode("latin-1"))


def read_body(f, fields):
    if fields.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            n = int(f.readline(), 16)
            body += f.read(n)
            f.readline()
            if n == 0:
                return body
    return f.read(int(fields.get("content-length", 0)))


def pump(a, b):
    """Copies both ways until one of the two ends."""
    def copy(source, to):
        try:
            while True:
                piece = source.recv(65536)
                if not piece:
                    break
                to.sendall(piece)
        except OSError:
            pass
        for s in (source, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    t = threading.Thread(target=copy, args=(a, b), daemon=True)
    t.start()
    copy(b, a)
    t.join()
    a.close()
    b.close()


class Forwarder:
    """A port of this machine for clients that know no Unix sockets; Forwarder.to is the socket's path."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.to = self.listener.getsockname()[1], None
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            other = socket.socket(socket.AF_UNIX)
            other.connect(self.to)
            threading.Thread(target=pump, args=(s, other), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Request:
    def __init__(self, lines, body):
        self.line = lines[0]
        self.method, self.target = lines[0].split(" ")[:2]
        self.lines = lines[1:]
        self.fields = {x.split(": ", 1)[0].lower(): x.split(": ", 1)[1] for x in lines[1:]}
        self.body = body


class Upstream:
    """The server of one host; answer(request, file) writes the answer. Requests are kept in .requests."""

    def __init__(self, path, context):
        self.context, self.requests, self.connections = context, [], []
        self.relay = None  # a port that answers instead
        self.heads = queue.Queue()  # of requests whose body may still come
        self.answer = lambda r, f: f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o666)  # root's nginx has workers of another account
        self.listener.listen(64)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            self.connections.append(s)
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            if self.context:
                s = self.context.wrap_socket(s, server_side=True)
                self.connections.append(s)
            if self.relay:
                return pump(s, socket.create_connection(("127.0.0.1", self.relay)))
            f = s.makefile("rwb")
            while True:
                lines = read_head(f)
                if lines is None:
                    return
                r = Request(lines, b"")
                self.heads.put(r)
                r.body = read_body(f, r.fields)
                self.requests.append(r)
                if self.answer(r, f) == "close":
                    return
                f.flush()
        except (OSError, ValueError):
            pass
        finally:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def take(self):
        """The one request since the last call; None: there was none."""
        got, self.requests = self.requests, []
        if len(got) > 1:
            raise AssertionError("%d requests: %s" % (len(got), [r.line for r in got]))
        return got[0] if got else None

    def end_connections(self):
        for s in self.connections:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        if self.listener.fileno() >= 0:
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.connections:
            s.close()


class Answer:
    def __init__(self, data, f=None):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1]) if lines[0].startswith("HTTP/") else None
        self.lines = lines[1:]
        self.fields = {x.split(":", 1)[0].lower(): x.split(":", 1)[1].strip() for x in self.lines if ":" in x}
        if self.fields.get("transfer-encoding") == "chunked":
            whole, rest = b"", self.body
            while rest:
                n, _, rest = rest.partition(b"\r\n")
                n = int(n, 16)
                if n == 0:
                    break
                whole, rest = whole + rest[:n], rest[n + 2:]
            self.body = whole
        self.text = self.body.decode("latin-1")


class Edge:
    """hosts: (name, port, tls) with the ids 1, 2, ..."""

    def __init__(self, policy, hosts, secrets={}, placeholders={}):
        if NGINX is None:
            raise Skip("needs nginx: apt-get install nginx-light")
        self.dir = tempfile.mkdtemp(prefix="handrail-edge-")
        self.hosts, self.process, self.upstreams = hosts, None, {}
        os.mkdir(self.path("edge"))
        os.chmod(self.path("edge"), 0o711)
        self.certify(*[name for name, port, tls in hosts if tls])
        world = Authority(self.dir, "world")
        with open(world.pem) as f, open(self.path("trust.pem"), "a") as trust:
            trust.write(f.read())
        for i, (name, port, tls) in enumerate(hosts, 1):
            context = None
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*world.make(name, i, names="DNS:" + name))
            self.upstreams[i] = Upstream(self.path("edge/out-%d" % i), context)
        self.log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.log.bind(self.path("edge/log"))
        self.log.settimeout(PATIENCE)
        os.chmod(self.path("edge/log"), 0o666)
        self.configure(policy, secrets, placeholders)
        self.start()

    def path(self, name):
        return os.path.join(self.dir, name)

    def configure(self, policy, secrets, placeholders):
        self.write("policy.json", policy)
        self.write("secrets.json", secrets)
        self.write("placeholders.json", placeholders)
        self.drive("config", self.path("policy.json"), self.path("secrets.json"), self.path("placeholders.json"),
                   self.dir, *[x for i, (name, port, tls) in enumerate(self.hosts, 1)
                               for x in (str(i), name, str(port), "s" if tls else "p")])

    def write(self, name, value):
        with open(self.path(name), "w") as f:
            json.dump(value, f)

    def drive(self, *words):
        done = subprocess.run([DRIVER] + list(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise AssertionError(done.stdout.decode("utf-8", "replace"))
        return done.stdout.decode()

    def certify(self, *names):
        self.drive("certify", self.dir, *names)

    def start(self):
        self.stderr = open(self.path("stderr"), "wb")
        self.process = subprocess.Popen([NGINX, "-c", self.path("nginx.conf"), "-e", "stderr"], cwd=self.path("edge"),
                                        stderr=self.stderr)
        for i in range(1, len(self.hosts) + 1):
            self.connect(i).close()

    def connect(self, number):
        """A connection to a server, which nginx may not have opened yet."""
        while True:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(PATIENCE)
            try:
                s.connect(self.path("edge/in-%d" % number))
                return s
            except OSError:
                s.close()
                if self.process.poll() is not None:
                    with open(self.path("stderr")) as f:
                        raise AssertionError("nginx ended: " + f.read())
                try:
                    self.process.wait(0.02)
                except subprocess.TimeoutExpired:
                    pass

    def open(self, number=1, sni=""):
        """A connection; sni "": the host's name, None: none."""
        name, port, tls = self.hosts[number - 1]
        s = self.connect(number)
        if tls:
            context = ssl.create_default_context(cafile=self.path("ca.crt"))
            if sni == "":
                return context.wrap_socket(s, server_hostname=name)
            context.check_hostname = False
            return context.wrap_socket(s, server_hostname=sni)
        return s

    def raw(self, data, number=1, sni=""):
        """Sends bytes; all that comes back until the end."""
        with self.open(number, sni) as s:
            try:
                s.sendall(data)
            except OSError:
                pass
            got = b""
            while True:
                try:
                    piece = s.recv(65536)
                except (ConnectionError, ssl.SSLError):
                    break
                if not piece:
                    break
                got += piece
        return got

    def ask(self, method="GET", target="/", number=1, body=None, host=None, **fields):
        """One request; names of fields have '_' for '-'."""
        head = "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n" % (
            method, target, host or self.hosts[number - 1][0])
        for name, value in fields.items():
            head += "%s: %s\r\n" % (name.replace("_", "-"), value)
        if body is not None:
            head += "Content-Length: %d\r\n" % len(body)
        return Answer(self.raw(head.encode("latin-1") + b"\r\n" + (body or b""), number))

    def logged(self):
        """The next line of the log."""
        line = self.log.recv(65536)
        return json.loads(line[line.index(b"egress: ") + len(b"egress: "):].decode())

    def drain(self):
        """Forgets the lines of the log that are there."""
        self.log.setblocking(False)
        try:
            while True:
                self.log.recv(65536)
        except BlockingIOError:
            pass
        self.log.settimeout(PATIENCE)

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)
            self.stderr.close()
        for u in self.upstreams.values():
            u.close()
        self.log.close()
        shutil.rmtree(self.dir)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
