#!/usr/bin/env python3
"""Who has no key holds nothing up, whatever he sends or leaves unsent or unread; whoever has one is served
meanwhile. The attacker is where the sandbox's commands are: on loopback."""

import contextlib
import http.client
import os
import re
import resource
import socket
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import HANDRAILD, ONE_WORKER_EACH, PATIENCE, Server, gate, marker, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

KEY = "k3y-of-the-client"
MINE = {"X-Session-API-Key": KEY}
MINE_NAMED = {"X_Session_API_Key": KEY}
FORBIDDEN = (403, b'{"detail":"Invalid API Key"}')
# of everything that a body could be sent to without a key
PATHS = ("/nope", "/execute_action", "/upload_file?destination=/tmp", "/list_files", "/ready", "/metrics",
         "/download_files", "/download_file", "/update_mcp_server", "/vscode/connection_token", "/-/auth", "/-/bearer",
         "/-/file/etc/passwd", "/-/refused", "/-/malformed", "/alive/", "//alive", "/handrail/v1/run",
         "/handrail/v1/create", "/handrail/v1/kill", "/handrail/v1/input", "/handrail/v1/output")


class Guarded(Server):
    def __init__(self, settings=None, **kw):
        kw.setdefault("env", {"SESSION_API_KEY": KEY})
        super().__init__(args=["--listen", "127.0.0.1"], settings=settings, **kw)

    def connect(self, port=None):
        c = socket.create_connection(("127.0.0.1", port or self.port), PATIENCE)
        c.settimeout(PATIENCE)
        return c

    def serves(self, what):
        """A client with the key, one of each kind."""
        for _ in range(3):
            equal(self.get("/alive").status, 200, what)
            a = self.action("echo ok", MINE)
            equal((a.status, a.status == 200 and a.json()["content"]), (200, "ok"), "%s: %r" % (what, a))
            body = '{"action":{"action":"write","args":{"path":"%s/f","content":"x"}}}' % self.work_dir
            equal(self.request("POST", "/execute_action", body, dict(
                MINE, **{"Content-Type": "application/json"})).status, 200, what)
            equal(self.get("/download_file?path=%s/f" % self.work_dir, **{"X-Session-API-Key": KEY}).status, 200, what)
            form = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="g"\r\n\r\ny\r\n--b--\r\n')
            equal(self.request("POST", "/upload_file?destination=" + self.work_dir, form, dict(
                MINE, **{"Content-Type": "multipart/form-data; boundary=b"})).status, 200, what)

    def nginx_files(self):
        """Files that nginx's workers have open below their directory; those of bodies have no name."""
        found = []
        for pid in process.descendants(self.pid):
            if process.command_line(pid) != "nginx: worker process":
                continue
            for fd in os.listdir("/proc/%d/fd" % pid):
                with contextlib.suppress(OSError):
                    name = os.readlink("/proc/%d/fd/%s" % (pid, fd))
                    if name.startswith(self.run_dir + "/nginx/temp"):
                        found.append(name)
        return found


def answer(c):
    """Status and body of an answer with a length."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = c.recv(65536)
        if not more:
            raise AssertionError("closed after %r" % data)
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
    while len(body) < length:
        body += c.recv(65536)
    return int(head.split()[1]), body


def ends(c):
    """The server closes, with whatever of ours unread."""
    with contextlib.suppress(ConnectionResetError):
        while c.recv(65536):
            pass


def head(path, *lines, method="POST"):
    return "\r\n".join(("%s %s HTTP/1.1" % (method, path), "Host: x") + lines + ("", "")).encode()


def hold(s, stack, number, *data):
    """So many connections, each with one of data sent; until the end of the test."""
    held = []
    for i in range(number):
        c = stack.enter_context(s.connect())
        c.sendall(data[i % len(data)])
        held.append(c)
    return held


HALF = "Content-Length: 1000"
HALVES = (head("/execute_action", HALF) + b"{", head("/execute_action", HALF, "X-Session-API-Key: x") + b"{",
          head("/execute_action", "Transfer-Encoding: chunked") + b"5\r\nab", head("/handrail/v1/run", HALF) + b"{",
          head("/handrail/v1/create", HALF), head("/handrail/v1/kill", HALF, "X-Session-API-Key: " + "x" * 9000))


def half_bodies():
    """More than there are places for actions, by far."""
    with contextlib.ExitStack() as stack, Guarded({"action_workers_max": 4}) as s:
        held = hold(s, stack, 60, *HALVES)
        s.serves("half bodies")
        for c in held:
            equal(answer(c), FORBIDDEN)
            ends(c)
        held = hold(s, stack, 60, head("/execute_action", HALF, "Expect: 100-continue"))
        s.serves("bodies that wait to be asked for")


def half_uploads():
    multipart = "Content-Type: multipart/form-data; boundary=b"
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf'
    with contextlib.ExitStack() as stack, Guarded(dict(ONE_WORKER_EACH, files_workers_max=2)) as s:
        path = "/upload_file?destination=" + s.work_dir
        held = hold(s, stack, 40, head(path, multipart, "Content-Length: 100000") + part,
                    head(path, multipart, "Transfer-Encoding: chunked") + b"%x\r\n" % len(part) + part + b"\r\n",
                    head("/download_files?path=" + s.work_dir, "Content-Length: 10"))
        s.serves("half uploads")
        for c in held:
            equal(answer(c), FORBIDDEN)
            ends(c)
        equal(sorted(os.listdir(s.work_dir)), ["f", "g"])


def bodies_go_nowhere():
    """A body without a key is neither kept nor asked for, and its connection has an end."""
    megabyte = b"x" * (1 << 20)
    with Guarded() as s:
        rows = [("POST", path, FORBIDDEN) for path in PATHS] + [
            ("TRACE", "/nope", FORBIDDEN), ("PUT", "/ready", FORBIDDEN), ("GET", "/ready", FORBIDDEN),
            ("POST", "/alive", (405, b'{"detail":"Method Not Allowed"}')),
            ("GET", "/alive?x=1", (200, b'{"status":"ok"}')),
            ("TRACE", "/alive", (405, b'{"detail":"Method Not Allowed"}')),
            ("DELETE", "/server_info", (405, b'{"detail":"Method Not Allowed"}'))]
        for method, path, want in rows:
            with s.connect() as c:
                c.sendall(head(path, "Content-Length: 100000000", method=method))
                got = answer(c)
                equal(got, want, "%s %s" % (method, path))
                equal(s.nginx_files(), [], path)
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    for _ in range(3):
                        c.sendall(megabyte)
                equal(s.nginx_files(), [], path)
        for path, want in (("/nope", 403), ("/alive", 413), ("/server_info", 413)):
            with s.connect() as c, contextlib.suppress(ConnectionResetError, BrokenPipeError):
                c.sendall(head(path, "Transfer-Encoding: chunked") + b"100000\r\n" + megabyte)
                equal(answer(c)[0], want, path)
                equal(s.nginx_files(), [], path)
        # whoever sends on and on is cut
        with s.connect() as c:
            c.sendall(head("/nope", "Content-Length: 1000000000000"))
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                while True:
                    c.sendall(megabyte)
        s.serves("after all that")


def refusals_arrive():
    """A client that sends what it has to say before it reads gets the refusal, not a reset."""
    with Guarded() as s:
        for size in (0, 1, 1000, 200000):
            for wrong in ({}, {"X-Session-API-Key": "wrong"}):
                for _ in range(10):
                    a = s.request("POST", "/execute_action", b"x" * size, dict(wrong, **{"Content-Type": "text/plain"}))
                    equal((a.status, a.body, a.headers["Content-Type"]), FORBIDDEN + ("application/json",), size)


def viewer_readers():
    """Those who read nothing of what the viewer shows them."""
    with contextlib.ExitStack() as stack, Guarded(dict(ONE_WORKER_EACH, files_workers_max=2)) as s:
        with open(os.path.join(s.top, "viewer-url")) as f:
            url = urllib.parse.urlsplit(f.read())
        port, base = url.port, url.path
        path = os.path.join(s.work_dir, "large.png")
        with open(path, "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n")
            f.truncate(64 << 20)
        os.chmod(path, 0o644)
        full = 0
        for _ in range(20):
            c = stack.enter_context(socket.socket())
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.settimeout(PATIENCE)
            c.connect(("127.0.0.1", port))
            c.sendall(head(base + "/view?path=" + path, method="GET"))
            full += c.recv(12) == b"HTTP/1.1 503"
        equal(full, 16, "those who found no place")
        s.serves("slow readers of the viewer")
        # it says so itself, and that it is there
        for target, status in ((base + "/view?path=" + path, 503), ("/", 200)):
            with s.connect(port) as c:
                c.sendall(head(target, method="GET"))
                equal(answer(c)[0], status, target)


@contextlib.contextmanager
def open_files(number):
    """So many more than usual, of our own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number + 200:
        raise Skip("needs more open files: ulimit -Hn %d" % (number + 200))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number + 200), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


HEADS = (b"POST /execute_action HTTP/1.1\r\nX-Slow: ", b"G", b"", b"GET /alive HTTP/1.1\r\nHost: x\r\n" * 10)


def half_heads():
    with open_files(850), contextlib.ExitStack() as stack, Guarded() as s:
        hold(s, stack, 850, *HEADS)
        s.serves("half heads")
        equal("worker_connections are not enough" in s.log(), False, s.log())


def more_than_there_are_connections():
    """nginx gets more, and those whom it has already keep theirs."""
    with open_files(900), contextlib.ExitStack() as stack, Guarded({"nginx_connections": 200}) as s:
        began, wait = marker(s)
        door, open_it = gate(s)
        running = s.in_background("%s; %s; echo done" % (began, door), MINE)
        wait()
        for _ in range(700):
            c = stack.enter_context(s.connect())
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                c.sendall(b"GET /alive HTTP/1.1\r\nX-Slow: ")

        def alive():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return s.get("/alive").status == 200
        s.until("there is room", alive)
        equal("nginx run out: raising the limit to 800" in s.log(), True, s.log())
        s.until("the full worker takes no more", lambda: any(
            "is shutting down" in process.command_line(pid) for pid in process.descendants(s.pid)))
        open_it()
        running.join()
        equal(running.answer.json()["content"], "done")
        s.serves("after that")


def slow_heads_end():
    """A byte now and then does not prolong it."""
    with Guarded({"client_header_timeout": 1}) as s, s.connect() as c:
        c.settimeout(0.2)
        c.sendall(b"GET /alive HTTP/1.1\r\nX: ")

        def cut():
            try:
                c.sendall(b"x")
                return c.recv(100) == b""
            except socket.timeout:
                return False
            except (ConnectionResetError, BrokenPipeError):
                return True
        s.until("it is cut", cut)


def keys_of_a_file():
    """nginx knows the first by itself; a worker knows all."""
    s = Guarded(ready=None, env={})
    with s:
        path = os.path.join(s.top, "keys")

        def keys(*words):
            with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as f:
                f.write("\n".join(words) + "\n")
        s.write_settings({"session_api_key_file": path, "action_workers_max": 4})
        s.args += ["--config", s.settings_file()]
        keys("first-k3y", KEY, "third-k3y")
        s.start()

        def statuses():
            return [s.get("/ready", X_Session_API_Key=k).status
                    for k in ("first-k3y", KEY, "third-k3y", "fourth-k3y", "first-k3", "")]
        equal(statuses(), [200, 200, 200, 403, 403, 403])
        with contextlib.ExitStack() as stack:
            held = hold(s, stack, 30, *HALVES)
            s.serves("half bodies")
            for c in held:
                equal(answer(c), FORBIDDEN)
        keys("fourth-k3y")
        s.send(1)
        equal(s.wait_log(" reloaded$") is not None, True)
        s.until("the new key alone", lambda: statuses() == [403, 403, 403, 200, 403, 403])
        with open(os.path.join(s.run_dir, "nginx", "nginx.conf")) as f:
            text = f.read()
        equal([k for k in ("first-k3y", KEY, "third-k3y", "fourth-k3y") if k in text], [], "keys in the configuration")


def another_nginx():
    """What is printed for another nginx holds nothing of the key, and asks a worker."""
    with Guarded() as s:
        for part in ("site", "all", "server"):
            text = subprocess.run([HANDRAILD, "--print-nginx", part] + s.args, env=s.env, check=True,
                                  stdout=subprocess.PIPE).stdout.decode()
            equal(("auth_request /-/auth;" in text, "secure_link" in text, KEY in text), (True, False, False), part)
            # the other locations of that server are not ours, so nothing stands in front of them
            body = re.sub(r"#.*", "", text)
            equal([b for b in re.split(r"\blocation\b[^{]*\{", body) if "auth_request" in b.split("}")[-1]], [], part)


def long_queries():
    """Up to the longest head that is allowed; what is longer is no server's error."""
    with Guarded() as s:
        name = os.path.join(s.work_dir, "f")
        with open(name, "w") as f:
            f.write("content")
        for size in (1000, 31000, 33000, 50000, 62000):
            a = s.get("/download_file?path=%s&pad=%s" % (name, "a" * (size - len(name) - 30)), **MINE_NAMED)
            equal((a.status, a.body), (200, b"content"), size)
        for size in range(62000, 67000, 250):
            a = s.get("/download_file?path=%s&pad=%s" % (name, "a" * size), **MINE_NAMED)
            equal(a.status in (200, 400), True, "%d: %r" % (size, a))
        equal((a.status, a.body), (400, b"Invalid HTTP request received."))
        # the parts of a head that are passed on, together
        for size in range(20000, 34000, 1000):
            a = s.get("/download_file?path=%s&pad=%s" % (name, "a" * size), X_Request_ID="b" * size, **MINE_NAMED)
            equal(a.status in (200, 400), True, "%d: %r" % (size, a))
        equal(s.get("/ready?" + "a" * 70000).status, 400, "without a key as well")



TESTS = [half_bodies, half_uploads, bodies_go_nowhere, refusals_arrive, viewer_readers, half_heads,
         more_than_there_are_connections, slow_heads_end, keys_of_a_file, another_nginx, long_queries]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
