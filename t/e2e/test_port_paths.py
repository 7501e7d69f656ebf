#!/usr/bin/env python3
"""Programs of the sandbox at /port/N/: only when the settings say so, only with the session key, byte for byte, and
never as a page of the server's origin, whatever such a program answers."""

import base64
import contextlib
import hashlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import CLAIMS, PATIENCE, Server, free_port, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
from lib.www import sign_in  # noqa: E402

KEY = {"X-Session-API-Key": "of this test"}
ENV = {"SESSION_API_KEY": "of this test"}
OPEN = {"port_paths": True}
SANDBOXED = {
    "Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin"}
HOSTILE = {
    "Set-Cookie": "a=b; Path=/", "Clear-Site-Data": '"*"', "Strict-Transport-Security": "max-age=9", "Alt-Svc": "clear",
    "NEL": "{}", "Report-To": "{}", "Reporting-Endpoints": 'a="/x"', "Service-Worker-Allowed": "/",
    "Origin-Agent-Cluster": "?1", "Accept-CH": "UA"}


class Program(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked; what it must not say for its origin, it says."""
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.server.asked += 1
        if self.headers.get("Upgrade") == "websocket":
            self.web_socket()
            return
        got = self.rfile.read(int(self.headers.get("Content-Length") or 0)) + b"".join(self.chunks())
        body = json.dumps({"line": self.requestline, "headers": dict(self.headers.items()),
                           "sum": hashlib.sha256(got).hexdigest()}).encode()
        self.send_response(404 if self.path.startswith("/missing") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html")
        self.send_header("X-Accel-Redirect", "/-/file/etc/passwd")
        for name, value in HOSTILE.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def web_socket(self):
        """Sends back what comes, as it is."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while True:
            data = self.rfile.read1(65536)
            if not data:
                break
            self.wfile.write(data)
        self.close_connection = True

    def chunks(self):
        while self.headers.get("Transfer-Encoding") == "chunked":
            chunk = self.rfile.read(int(self.rfile.readline(), 16) + 2)[:-2]
            if not chunk:
                return
            yield chunk

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def log_message(self, *unused):
        pass


class OfVersionSix(http.server.ThreadingHTTPServer):
    """A program that listens on IPv6 alone, or on both versions."""
    address_family = socket.AF_INET6

    def __init__(self, host, port, both_versions=False):
        self.both_versions = both_versions
        super().__init__((host, port), Program)

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not self.both_versions)
        super().server_bind()


@contextlib.contextmanager
def program(make=lambda port: http.server.ThreadingHTTPServer(("127.0.0.1", port), Program)):
    server = make(free_port())
    server.asked, server.daemon_threads = 0, True
    t = threading.Thread(target=server.serve_forever, daemon=True)
    t.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        t.join(PATIENCE)


def opened(**how):
    return Server(env=ENV, settings=OPEN, **how)


def ask(s, p, path="/", method="GET", body=None, **headers):
    return s.request(method, "/port/%d%s" % (p.server_address[1], path), body,
                     dict(KEY, **{k.replace("_", "-"): v for k, v in headers.items()}))


def both(test):
    """At a port, and at a Unix socket."""
    def run():
        for unix in (False, True):
            with program() as p, opened(unix=unix) as s:
                test(s, p)
    run.__name__ = test.__name__
    return run


def switched_on():
    with program() as p, Server(env=ENV, settings={}) as s:
        equal((ask(s, p).status, ask(s, p).json()), (404, {"detail": "Not Found"}))
        s.write_settings(OPEN)
        s.reload()
        equal((ask(s, p).status, s.get("/ready", **KEY).status), (200, 200), "it is open")
        s.write_settings({})
        s.reload(2)
        asked = p.asked
        equal((ask(s, p).status, p.asked), (404, asked))
    with program() as p, Server(env=dict(ENV, HANDRAIL_PORT_PATHS="true")) as s:
        equal(ask(s, p).status, 200)
    # without a key any page of a browser could ask
    with program() as p, Server(settings=OPEN) as s:
        equal("port_paths has no effect without a session key" in s.log(), True, s.log())
        equal((ask(s, p).status, p.asked), (404, 0))


@both
def key_alone(s, p):
    path = "/port/%d/" % p.server_address[1]
    page = dict(sign_in(s, KEY)[1])
    del page["X-Session-API-Key"]
    equal(s.request("GET", "/handrail/v1/me", headers=page).status, 200)
    for headers in ({}, {"X-Session-API-Key": "of this tesT"}, {"X-API-Key": "of this test"},
                    {"Authorization": "Bearer of this test"}, page,
                    {"X-Handrail-Origin": "own"}, {"Upgrade": "websocket", "Connection": "Upgrade"}):
        for method in ("GET", "POST"):
            a = s.request(method, path, "x" * 100000 if method == "POST" else None, headers)
            equal((a.status, a.json()), (403, {"detail": "Invalid API Key"}), (method, headers))
    # nobody learns without it which ports are the server's own
    equal([s.get("/port/%s/" % port).status for port in (s.port, 0, 99999)], [403] * 3)
    equal(p.asked, 0)


@both
def byte_for_byte(s, p):
    for path in ("/", "/a%2Fb//c%20d?x=%2F&y=a+b&z", "/x/../y", "/%e2%82%ac", "/port/1/", "/a;b=c", "/?", "//"):
        for method in ("GET", "DELETE", "OPTIONS"):
            equal(ask(s, p, path, method).json()["line"], "%s %s HTTP/1.1" % (method, path))
    body = os.urandom(3 << 20)
    for method in ("POST", "PUT"):
        equal(ask(s, p, "/up", method, body).json()["sum"], hashlib.sha256(body).hexdigest())
    equal(ask(s, p, "/missing").json()["line"], "GET /missing HTTP/1.1")
    equal(ask(s, p, "/missing").status, 404)


@both
def nothing_of_ours(s, p):
    """Neither the key nor a cookie reaches the program; the rest of the head does."""
    page = sign_in(s, KEY)[1]
    told = ask(s, p, X_API_Key="k", Cookie=page["Cookie"], X_Handrail_Page=page["X-Handrail-Page"],
               Authorization="Basic eA==", X_More="1", X_Forwarded_Prefix="/before").json()["headers"]
    told = {k.lower(): v for k, v in told.items()}
    for name in ("x-session-api-key", "x-api-key", "cookie", "x-handrail-page", "x-handrail-origin"):
        equal(name in told, False, (name, told))
    equal((told["authorization"], told["x-more"], told["x-forwarded-prefix"]),
          ("Basic eA==", "1", "/before/port/%d" % p.server_address[1]))
    equal("of this test" in json.dumps(told), False)


@both
def no_page_of_ours(s, p):
    a = ask(s, p)
    equal({k: a.headers.get(k) for k in SANDBOXED}, SANDBOXED)
    equal({k: v for k, v in a.headers.items() if k in HOSTILE}, {})
    equal("root:" in a.body.decode(), False)
    # a redirection and an error of a program have no more
    equal(ask(s, p, "/missing").headers.get("Content-Security-Policy"), "sandbox")
    # no browser loads it at the page's origin, even where a proxy adds the key
    for dest, status in (("document", 403), ("iframe", 403), ("image", 403), ("empty", 200), ("websocket", 200)):
        equal(ask(s, p, Sec_Fetch_Dest=dest).status, status, dest)
    equal(ask(s, p, X_Handrail_Origin="own", Sec_Fetch_Dest="document").status, 200)
    # the one who gives it an origin of its own gets what it says, with its cookies
    a = ask(s, p, X_Handrail_Origin="own", Cookie="c=d")
    equal({k: a.headers.get(k) for k in HOSTILE}, HOSTILE)
    equal([k for k in SANDBOXED if k in a.headers], [])
    told = {k.lower(): v for k, v in a.json()["headers"].items()}
    equal((told["cookie"], "x-handrail-origin" in told, "x-session-api-key" in told, "x-forwarded-prefix" in told),
          ("c=d", False, False, False))


def own_ports():
    with opened(args=["--plugins", "vscode"], ready=None) as s:
        editor = free_port()
        s.env["VSCODE_PORT"] = str(editor)
        s.start()
        with open(os.path.join(s.top, "viewer-url")) as f:
            viewer = int(f.read().split(":")[2].split("/")[0])
        for port in (s.port, viewer, editor, 0, 65536, 99999, "08000", "8000x", "8000%2f", "", "-1"):
            for origin in ({}, {"X-Handrail-Origin": "own"}):
                a = s.request("GET", "/port/%s/alive" % port, headers=dict(KEY, **origin))
                equal((a.status, a.json()), (404, {"detail": "Not Found"}), (port, origin))
        for path in ("/port", "/port/", "/port/8000", "/%70ort/8000/", "/x/../port/8000/"):
            equal(s.get(path, **KEY).status, 404, path)


def nobody_there():
    with opened() as s:
        a = s.get("/port/%d/" % free_port(), **KEY)
        equal((a.status, a.json(), a.headers["Retry-After"]),
              (503, {"detail": "no program of the sandbox answers on this port"}, "1"))


def ends_early(listener):
    """A program that ends within a request. One that ends before it sees any of it was sent none."""
    with listener.accept()[0] as s:
        s.recv(1)


def version_six():
    """A program on ::1, or on [::], is reached like one on 127.0.0.1, with a body of any length and with one that comes
    in chunks. One on 127.0.0.1 comes first, and gets each request once."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as why:
        raise Skip("needs IPv6 on loopback: %s" % why) from why
    body = os.urandom(3 << 20)
    with opened() as s:
        for make in (lambda port: OfVersionSix("::1", port), lambda port: OfVersionSix("::", port),
                     lambda port: OfVersionSix("::", port, both_versions=True)):
            with program(make) as p:
                for headers in ({}, {"X-Handrail-Origin": "own"}):
                    a = ask(s, p, "/a%20b?c", **headers)
                    equal((a.status, a.json()["line"]), (200, "GET /a%20b?c HTTP/1.1"))
                    equal("Content-Security-Policy" in a.headers, not headers)
                    for data in (b"x", body):
                        equal(ask(s, p, "/", "POST", data, **headers).json()["sum"], hashlib.sha256(data).hexdigest())
                    equal(ask(s, p, "/", "POST", iter([b"in ", b"chunks"]), **headers).json()["sum"],
                          hashlib.sha256(b"in chunks").hexdigest())
                equal(ask(s, p, Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Key="x").status, 101)
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as four, \
                program(lambda port: OfVersionSix("::1", four.getsockname()[1])) as six:
            for method, data in (("GET", None), ("POST", b"x"), ("POST", iter([b"x"]))):
                t = threading.Thread(target=lambda: ends_early(four), daemon=True)
                t.start()
                equal((ask(s, six, "/", method, data).status, six.asked), (503, 0), method)
                t.join(PATIENCE)


def port_stays_free():
    """A request with a body does not keep a program from its port, not even one without SO_REUSEADDR."""
    port = free_port()
    CLAIMS.pop().close()  # it stays this test's by the claim before, and nothing is bound to it
    taking = ("import socket, sys\nwhile True:\n"
              "    with socket.socket() as s: s.bind(('127.0.0.1', int(sys.argv[1])))")
    with opened() as s, subprocess.Popen([sys.executable, "-c", taking, str(port)], stderr=subprocess.PIPE) as p:
        try:
            for _ in range(300):
                equal(s.request("POST", "/port/%d/" % port, b"x", KEY).status, 503)
            equal(p.poll(), None, p.poll() and p.stderr.read())
        finally:
            p.kill()


@contextlib.contextmanager
def certificate():
    """The files of a certificate and its key."""
    with tempfile.TemporaryDirectory() as top:
        made = os.path.join(top, "cert"), os.path.join(top, "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a", "-days", "1",
                        "-out", made[0], "-keyout", made[1]], stderr=subprocess.DEVNULL, check=True)
        yield made


def by_tls():
    """A program with TLS is asked for the name in the client's Host, without its port; an address is no such name."""
    names = []
    with certificate() as made, program() as p, opened() as s:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*made)
        context.sni_callback = lambda sock, name, _: names.append(name)
        p.socket = context.wrap_socket(p.socket, server_side=True)
        for host in ("a.example.test:8000", "b.example.test", "127.0.0.1:8000", "[::1]:8000"):
            for method, body in (("GET", None), ("POST", b"x")):
                a = ask(s, p, "/", method, body, X_Handrail_Scheme="https", Host=host)
                equal((a.status, a.json()["headers"]["Host"]), (200, host))
    equal(names, ["a.example.test"] * 2 + ["b.example.test"] * 2 + [None] * 4)


def http_two():
    """A body that comes by HTTP/2, without a length, reaches a program on ::1 as a whole, and one on 127.0.0.1."""
    body = os.urandom(3 << 20)
    with certificate() as made:
        with Server(env=ENV, settings=dict(OPEN, tls_certificate=made[0], tls_certificate_key=made[1])) as s:
            for make in ((), (lambda port: OfVersionSix("::1", port),)):
                for method in ("POST", "GET"):
                    with program(*make) as p:
                        out = subprocess.run(
                            ["curl", "-sSk", "--http2", "-X", method, "-T", "-", "-w",
                             "\n%{http_version} %{http_code}",
                             "-H", "X-Session-API-Key: " + KEY["X-Session-API-Key"],
                             "https://127.0.0.1:%d/port/%d/" % (s.port, p.server_address[1])],
                            input=body, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout.split(b"\n")
                        equal((json.loads(out[0])["sum"], out[-1], p.asked),
                              (hashlib.sha256(body).hexdigest(), b"2 200", 1), method)


@both
def web_socket(s, p):
    """It outlives an upgrade in place."""
    c = s.connection()
    c.connect()
    with c.sock as sock:
        sock.sendall(("GET /port/%d/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                      "X-Session-API-Key: of this test\r\n\r\n" % p.server_address[1]).encode())
        f = sock.makefile("rb")
        equal(f.readline(), b"HTTP/1.1 101 Switching Protocols\r\n")
        head = b"".join(iter(f.readline, b"\r\n"))
        equal(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, True, head)
        frame = b"\x81\x85\x00\x00\x00\x00hello"
        sock.sendall(frame)
        equal(f.read(len(frame)), frame)
        s.upgrade()
        sock.sendall(frame)
        equal(f.read(len(frame)), frame)


@both
def no_answer_of_anothers(s, p):
    """What a program sends beyond its answer reaches nobody else's request."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        def serve():
            c, _ = listener.accept()
            with c:
                c.recv(65536)
                c.sendall(b"not HTTP\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
        t = threading.Thread(target=serve, daemon=True)
        t.start()
        c = s.connection()
        c.connect()
        with c.sock as sock:
            request = "GET %s HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: of this test\r\n\r\n"
            sock.sendall((request % "/port/%d/" % listener.getsockname()[1]).encode())
            sock.sendall((request % "/alive").encode())
            said = b""
            while True:
                try:
                    chunk = sock.recv(65536)
                except ConnectionResetError:
                    break
                if not chunk:
                    break
                said += chunk
        t.join(PATIENCE)
        equal(said.count(b'{"status":"ok"}'), 0, said)
    equal(ask(s, p).status, 200)


if __name__ == "__main__":
    sys.exit(run_tests([switched_on, key_alone, byte_for_byte, nothing_of_ours, no_page_of_ours, own_ports,
                        nobody_there, version_six, port_stays_free, by_tls, http_two, web_socket,
                        no_answer_of_anothers]))
