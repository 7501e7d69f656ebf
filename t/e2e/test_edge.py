#!/usr/bin/env python3
"""What a client meets at the edge: keys, addresses, malformed requests, closed lists, 503."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    BUILDDIR, Libexec, Server, run_tests)
from lib.tap import equal  # noqa: E402


# ---- the contract's edge ----

def key():
    secret = "k3y-that-nobody-may-see"
    with Server(env={"SESSION_API_KEY": secret}, args=["--listen", "127.0.0.1"]) as s:
        equal(s.get("/alive").status, 200)
        for path in ("/ready", "/nowhere", "/vscode/connection_token", "/-/auth", "//alive", "/alive/"):
            for method in ("GET", "POST", "TRACE", "OPTIONS"):
                a = s.request(method, path)
                equal((a.status, a.body), (403, b'{"detail":"Invalid API Key"}'), method + " " + path)
        equal(s.get("/ready", X_Session_API_Key=secret + "x").status, 403)
        equal(s.get("/ready", X_Session_API_Key=secret).status, 200)
        a = s.get("/vscode/connection_token", X_Session_API_Key=secret)
        equal((a.status, a.body, a.headers["Content-Type"]), (200, b'{"token":null}', "application/json"))
        equal(s.request("POST", "/vscode/connection_token", headers={"X-Session-API-Key": secret}).status, 405)
        equal(s.get("/-/auth", X_Session_API_Key=secret).status, 404, "our own inner path")
        a = s.action("env; tr '\\0' '\\n' </proc/$PPID/environ; cat /proc/[0-9]*/cmdline | tr '\\0' ' '",
                     {"X-Session-API-Key": secret})
        equal(secret in a.body.decode(), False, "the key in the shell")
        for pid in [s.pid] + process.descendants(s.pid):
            for name in ("environ", "cmdline"):
                try:
                    with open("/proc/%d/%s" % (pid, name), "rb") as f:
                        equal(secret.encode() in f.read(), False, "%d %s" % (pid, name))
                except OSError:
                    pass
        s.stop()
        equal(secret in s.log(), False, "the key in the log")


def public_needs_a_key():
    with Server(env={"SESSION_API_KEY": "x"}) as s:
        if not s.wait_log("listening on 0.0.0.0:", 1):
            raise AssertionError(s.log())
    with Server() as s:
        if not s.wait_log("listening on 127.0.0.1:", 1):
            raise AssertionError(s.log())
    with Server(args=["--allow-unauthenticated"]) as s:
        if not s.wait_log("open to everybody", 1):
            raise AssertionError(s.log())


def edge_answers():
    with Server(settings={"client_max_body_bytes": 1000000}) as s:
        rows = [
            (b"GARBAGE\r\n\r\n", 400), (b"GET /alive HTTP/1.1\r\n\r\n", 400),
            (b"GET /alive HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            (b"GET /alive HTTP/9.9\r\nHost: a\r\n\r\n", 400),
            (b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            (b"GET /alive HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 70000 + b"\r\n\r\n", 400),
            (b"POST /list_files HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
            (b"POST /list_files HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 400),
        ]
        for data, status in rows:
            head, _, body = s.raw(data).partition(b"\r\n\r\n")
            equal((int(head.split()[1]), body), (status, b"Invalid HTTP request received."), data[:60])
            equal(b"content-type: text/plain; charset=utf-8" in head.lower(), True, head)
            equal(b"connection: close" in head.lower(), True, head)
        for method, path, status, body in [
                ("GET", "/nowhere", 404, b'{"detail":"Not Found"}'),
                ("POST", "/alive", 405, b'{"detail":"Method Not Allowed"}'),
                ("TRACE", "/alive", 405, b'{"detail":"Method Not Allowed"}'),
                ("HEAD", "/alive", 405, b""),
                ("GET", "//alive", 404, b'{"detail":"Not Found"}'),
                ("GET", "/%61live", 200, b'{"status":"ok"}'),
                ("GET", "/alive?x=1", 200, b'{"status":"ok"}'),
                ("GET", "/alive/", 307, b""),
                ("HEAD", "/vscode/connection_token", 405, b""),
                ("GET", "/vscode/connection_token", 200, b'{"token":null}'),
                ("GET", "/-/malformed", 404, b'{"detail":"Not Found"}')]:
            a = s.request(method, path)
            equal((a.status, a.body), (status, body), method + " " + path)
        a = s.request("POST", "/list_files", b"x" * 1000001)
        equal((a.status, a.json(), a.headers["Content-Type"]),
              (413, {"detail": "Request Entity Too Large"}, "application/json"))


def only_named_headers_pass():
    """What a worker gets is a closed list: nothing of a request turns into another variable."""
    with Libexec(handrail_worker='case "$*" in *"--pool control"*) exec "%s" "%s" ;; esac\n'
                 'exec "%s/handrail-worker" "$@"\n'
                 % (sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib",
                                                 "fcgi_echo.py"), BUILDDIR)) as lib:
        with Server(libexec=lib) as s:
            got = s.request("POST", "/nowhere/a%20b?q=1", b"body", {
                "Proxy": "http://evil", "X_Session_Api_Key": "no", "X-Session-API-Key": "yes",
                "X-Request-ID": "r1", "Idempotency-Key": "i1", "traceparent": "t1", "Cookie": "c", "Authorization": "a",
                "X-Forwarded-For": "1.2.3.4", "Content-Type": "text/x"}).json()
            request_id = got.pop("REQUEST_ID")
            equal(len(request_id), 32)
            equal(got, {"REQUEST_METHOD": "POST", "REQUEST_URI": "/nowhere/a%20b?q=1",
                        "CONTENT_TYPE": "text/x", "CONTENT_LENGTH": "4",
                        "REQUEST_SCHEME": "http", "HTTP_HOST": "127.0.0.1:%d" % s.port,
                        "HTTP_X_SESSION_API_KEY": "yes", "HTTP_X_REQUEST_ID": "r1",
                        "HTTP_IDEMPOTENCY_KEY": "i1", "HTTP_TRACEPARENT": "t1", "body": "body"})


def workers_gone_is_503():
    """Never 502: to a client that means gone for good."""
    with Libexec(handrail_worker='case "$*" in *"--pool control"*) exec "%s" "%s" die ;; esac\n'
                 'exec "%s/handrail-worker" "$@"\n'
                 % (sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib",
                                                 "fcgi_echo.py"), BUILDDIR)) as lib:
        with Server(libexec=lib) as s:
            a = s.get("/nowhere")
            equal((a.status, a.headers.get("Retry-After"), a.headers["Content-Type"]),
                  (503, "1", "application/json"))
            a.json()


TESTS = [key, public_needs_a_key, edge_answers, only_named_headers_pass, workers_gone_is_503]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
