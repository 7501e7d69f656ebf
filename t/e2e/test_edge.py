#!/usr/bin/env python3
"""What a client meets at the edge: keys, addresses, malformed requests, closed lists, 503."""

import os
import sys
import urllib.parse

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


FOREIGN = ("evil.com", "evil.com.", "EVIL.com", "localhost.evil.com", "127.0.0.1.evil.com", "127.0.0.1.nip.io",
           "evil.localhost.com", "xlocalhost.io", "a.b", "evil.com:80")
LOOPBACK = ("localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.1.2.3", "[::1]", "box.localhost")
NETWORK = ("host.docker.internal", "172.17.0.2", "[fd00::2]", "runtime", "pod.ns.svc.cluster.local")


def named(s, host, path="/download_file?path=/etc/hostname", port=None, **headers):
    here = s.port
    try:
        s.port = port or here
        return s.request("GET", path, headers=dict(headers, Host=host))
    finally:
        s.port = here


def names_of_others():
    """DNS rebinding: a name of a public zone that leads here is none of a server that asks for no key."""
    with Server() as s:
        viewer = urllib.parse.urlsplit(open(os.path.join(s.top, "viewer-url")).read())
        for host in FOREIGN + NETWORK[:3]:
            for name in (host, host + ":%d" % s.port if ":8" not in host else host):
                for path in ("/alive", "/download_file?path=/etc/hostname", "/handrail/v1/output", "/handrail/",
                             "/vscode/connection_token", "/nope"):
                    a = named(s, name, path)
                    equal((a.status, "allowed_hosts" in a.json()["detail"]), (403, True), name + path)
                for path in ("/", viewer.path + "/view?path=/x.png", "/pdf.js/pdf.js"):
                    equal(named(s, name, path, viewer.port).status, 403, "viewer: " + name)
        for host in LOOPBACK:
            for name in (host, "%s:%d" % (host, s.port)):
                equal(named(s, name).status, 200, name)
                equal(named(s, name, viewer.path + "/view?path=/x.png", viewer.port).status, 404, name)
        equal(b" 200 OK" in s.raw(b"GET /alive HTTP/1.0\r\n\r\n"), True, "no name at all")
        equal(b" 403 " in s.raw(b"GET http://evil.com/alive HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                                b"GET /alive HTTP/1.0\r\n\r\n"), True)


def names_that_are_configured():
    with Server(settings={"allowed_hosts": "box.example.org, *.my.example,[fd00::9]"}) as s:
        for host, status in (("box.example.org", 200), ("Box.Example.org:80", 200), ("x.my.example", 200),
                             ("my.example", 403), ("other.example.org", 403), ("[fd00::9]", 200), ("localhost", 200)):
            equal(named(s, host).status, status, host)
        s.write_settings({"allowed_hosts": "*"})
        s.send(1)
        s.until("nginx has the new settings", lambda: named(s, "evil.com").status == 200)
    with Server(env={"HANDRAIL_ALLOWED_HOSTS": "one.example"}) as s:
        equal([named(s, h).status for h in ("one.example", "evil.com")], [200, 403])
    # nginx takes a name once, in one case, has a bucket of 64 bytes by default, and words of its own in a map
    long = ".".join(["n" * 49] * 5) + ".it"
    twice = "one.example One.Example .one.example *.one.example %s box default include %s [FD00::9] [fd00::9]" % (
        long, long.upper())
    with Server(settings={"allowed_hosts": twice}) as s:
        for host, status in (("ONE.example", 200), ("x.one.example", 200), (long, 200), ("[fd00::9]", 200),
                             ("box", 200), ("default", 200), ("evil.com", 403), ("x." + long[4:], 403)):
            equal(named(s, host).status, status, host)
    for bad in ("http://x", "a:80", "a;b", "a{", '"', "a." * 127):
        s = Server(ready=None, settings={"allowed_hosts": bad})
        with s:
            s.start(ready=False)
            equal((s.wait() != 0, "allowed_hosts" in s.log()), (True, True), s.log())


def names_in_a_network():
    """Unmodified clients of a container that has no key reach it by these; a key is worth any name."""
    with Server(args=["--listen", "0.0.0.0", "--allow-unauthenticated"]) as s:
        equal([named(s, h).status for h in NETWORK + LOOPBACK], [200] * len(NETWORK + LOOPBACK))
        equal([named(s, h).status for h in FOREIGN], [403] * len(FOREIGN))
    with Server(env={"SESSION_API_KEY": "k"}, args=["--listen", "127.0.0.1"]) as s:
        equal([named(s, h, X_Session_API_Key="k").status for h in FOREIGN], [403] * len(FOREIGN), "no such header")
        equal([named(s, h, **{"X-Session-API-Key": "k"}).status for h in FOREIGN], [200] * len(FOREIGN))


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
                ("TRACE", "/nowhere", 404, b'{"detail":"Not Found"}'),
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
        # nginx refuses TRACE before it sets the variables of its configuration
        equal([line for line in s.log().splitlines() if "uninitialized" in line], [])
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
            remote, port, *local = got.pop("HANDRAIL_CONNECTION").split()
            equal((remote, local), ("127.0.0.1", ["127.0.0.1", str(s.port)]), port)
            equal(got, {"REQUEST_METHOD": "POST", "REQUEST_URI": "/nowhere/a%20b?q=1",
                        "CONTENT_TYPE": "text/x", "CONTENT_LENGTH": "4",
                        "REQUEST_SCHEME": "http", "HTTP_HOST": "127.0.0.1:%d" % s.port,
                        "HTTP_X_SESSION_API_KEY": "yes", "HTTP_X_REQUEST_ID": "r1",
                        "HTTP_X_FORWARDED_FOR": "1.2.3.4", "HTTP_IDEMPOTENCY_KEY": "i1", "HTTP_TRACEPARENT": "t1",
                        "body": "body"})


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


TESTS = [key, names_of_others, names_that_are_configured, names_in_a_network,
         public_needs_a_key, edge_answers, only_named_headers_pass, workers_gone_is_503]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
