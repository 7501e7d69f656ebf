#!/usr/bin/env python3
"""The edge of a box: nginx with the configuration of src/egress/edge.c, and certificates of src/egress/authority.c."""

import base64
import contextlib
import gzip
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.edgeserver import DRIVER, HEAD, SMUGGLED, Answer, Edge, Forwarder  # noqa: E402
from lib.gitserver import GitServer, make_repository  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402

API, GIT, PLAIN = ("api.test", 443, True), ("git.test", 443, True), ("plain.test", 80, False)
SECRET = "s3cr$t/\"{;}\\ '${x}+#~é" + "end"
PLACEHOLDER = "ph_" + "0123456789abcdef" * 2 + "0123"


def rules(*list_of, **more):
    return dict({"rules": {"api.test": list(list_of)}}, **more)


def credential(secret=SECRET, hosts=("api.test",), **more):
    policy = {"allowOut": ["api.test"], "rules": {"git.test": [{"paths": ["/*"]}]},
              "credentials": {"TOKEN": {"secret": "key", "hosts": list(hosts)}}}
    return Edge(dict(policy, **more), [API, GIT], {"key": secret}, {"TOKEN": PLACEHOLDER})


def reply(body=b"", *lines, status="200 OK"):
    """An answer with a length."""
    head = ["HTTP/1.1 " + status, "Content-Length: %d" % len(body)] + list(lines)
    return lambda r, f: f.write("\r\n".join(head).encode("utf-8") + b"\r\n\r\n" + body)


def refused(a, status, e, number=1):
    equal(a.status, status, "status of " + a.text)
    equal(e.upstreams[number].take(), None, "request of the server")


def methods_and_paths():
    with Edge(rules({"methods": ["GET", "HEAD"], "paths": ["/repos/me/*", "/a*b*c"]},
                    {"paths": ["/admin/*"], "deny": True},
                    {"methods": ["POST"], "paths": ["/admin/*", "/x(y|z)$", "/q.r", "/all*"]}), [API]) as e:
        for method, path, status, rule in (
                ("GET", "/repos/me/x?y=/..", 200, 1), ("HEAD", "/repos/me/", 200, 1), ("GET", "/repos/me", 403, 0),
                ("PUT", "/repos/me/x", 403, 0), ("GET", "/repos/you/../me/x", 400, 0), ("GET", "/axxbxxc", 200, 1),
                ("GET", "/abc", 200, 1), ("GET", "/acb", 403, 0), ("GET", "/abcd", 403, 0), ("GET", "/abbcc", 200, 1),
                ("POST", "/admin/x", 403, 2), ("POST", "/%61dmin/x", 403, 2), ("POST", "//admin/x", 403, 2),
                ("POST", "/x(y|z)$", 200, 3), ("POST", "/xy", 403, 0), ("POST", "/q.r", 200, 3),
                ("POST", "/qxr", 403, 0),
                ("POST", "/all%20of%20it", 200, 3), ("POST", "/x?/admin/", 403, 0), ("POST", "/all\xff\xfe", 200, 3),
                ("POST", "/all/%2E%2e/admin/x", 400, 0), ("POST", "/all/.%2e", 400, 0), ("POST", "/all/.", 400, 0),
                ("POST", "/all/..;a=b/x", 400, 0), ("POST", "/all%2f..%2fx", 400, 0), ("POST", "/all\\x", 400, 0),
                ("POST", "/all%5Cx", 400, 0), ("POST", "/all%00", 400, 0), ("POST", "/all#/x", 400, 0),
                ("POST", "/all/...", 200, 3), ("POST", "/all/.git", 200, 3), ("POST", "/all?..%2f", 200, 3),
                ("POST", "/admin;x=1/y", 400, 0), ("POST", "/all/%3bx", 400, 0), ("POST", "/all?a;b", 200, 3)):
            a = e.ask(method, path, body=b"" if method == "POST" else None)
            equal(a.status, status, "%s %s" % (method, path))
            got = e.upstreams[1].take()
            equal(got and got.line, "%s %s HTTP/1.1" % (method, path) if status == 200 else None)
            line = e.logged()
            equal((line["id"], line["status"], line["deny"]), (1, status, status != 200), path)
            if status == 403:
                equal(a.text, "network: %s api.test%s was refused: %s\n" % (method, path.split("?")[0], line["rule"]))
                equal(a.fields["content-type"], "text/plain")
            if rule:
                equal(line["rule"], "rules api.test %d" % rule)
            elif path != "/all%00":  # nginx itself reads no such request
                equal(line["rule"], "no rule" if status == 403 else "an ambiguous or malformed request", path)


def parameters():
    """Parts with parameters are paths like others where no rule denies paths."""
    for denied, status in (({"methods": ["PUT"], "deny": True}, 200), ({"paths": ["/x"], "deny": True}, 400)):
        with Edge(rules(denied, {"paths": ["/*"]}), [API]) as e:
            for path in ("/a;x=1/y", "/a%3Bx"):
                equal(e.ask("GET", path).status, status, path)


def other_hosts():
    with Edge(rules({"paths": ["/*"]}, **{"allowOut": ["plain.test"], "credentials": {"T": {
            "secret": "key", "hosts": ["plain.test:80"]}}}), [API, ("api.test", 80, False)], {"key": SECRET}) as e:
        for number, port in ((1, 443), (2, 80)):
            get = "GET / HTTP/1.1\r\nConnection: close\r\n"
            for good in ("Host: api.test", "Host: API.TEST", "Host: api.test.", "Host: api.test:%d" % port):
                equal(Answer(e.raw((get + good + "\r\n\r\n").encode(), number)).status, 200, good)
                equal(e.upstreams[number].take().fields["host"], "api.test")
            for bad in ("Host: other.test", "Host: api.test:81", "Host: api.test.evil", "Host: xapi.test",
                        "Host: api.test@evil", "Host: 127.0.0.1", "Host: apixtest"):
                refused(Answer(e.raw((get + bad + "\r\n\r\n").encode(), number)), 421, e, number)
            equal(Answer(e.raw(b"GET http://api.test/y?z HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n",
                               number)).status, 200)
            equal(e.upstreams[number].take().target, "/y?z")
            for target, host in (("http://other.test/", "api.test"), ("http://api.test/", "other.test"),
                                 ("http://api.test@other.test/", "api.test")):
                text = "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host)
                status = Answer(e.raw(text.encode(), number)).status
                equal(status in (400, 421), True, target)
                equal(e.upstreams[number].take(), None)
            refused(Answer(e.raw(b"GET / HTTP/1.0\r\n\r\n", number)), 421, e, number)
            refused(Answer(e.raw(b"GET http://api.test/ HTTP/1.0\r\n\r\n", number)), 421, e, number)
            refused(Answer(e.raw(b"GET / HTTP/1.1\r\n\r\n", number)), 400, e, number)
            e.raw(b"GET /\r\n", number)
            equal(e.upstreams[number].take(), None)
        get = b"GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"
        refused(Answer(e.raw(get, 1, "other.test")), 421, e)
        equal(Answer(e.raw(get, 1, None)).status, 200)  # an address as the name has no SNI
        e.upstreams[1].take()


def smuggled():
    """Two readers of the same bytes never see another request than the one that was judged."""
    with Edge(rules({"paths": ["/ok"]}), [API]) as e:
        for data in SMUGGLED:
            e.raw((data + "GET /end HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n").encode("latin-1"))
            for r in e.upstreams[1].requests:
                equal((r.target, r.fields["host"]), ("/ok", "api.test"), data)
                lengths = ("Transfer-Encoding: chunked", "Content-Length: %d" % len(r.body))
                equal([x for x in r.lines if x[:7].lower() in ("upgrade", "transfe", "content") and x not in lengths],
                      [], data)
            e.upstreams[1].requests = []
        equal(Answer(e.raw((HEAD + "Content-Length: 0\r\nConnection: close\r\n\r\n").encode())).status, 200)
        got = e.upstreams[1].take()
        equal([x for x in got.fields if x.startswith("x-") or x in ("via", "forwarded")], [])
        e.ask("GET", "/ok", X_HTTP_Method_Override="DELETE", X_Original_URL="/secret", X_Rewrite_URL="/secret",
              Proxy_Authorization="Basic eDp5", X_Other="kept")
        equal({k: v for k, v in e.upstreams[1].take().fields.items() if k[:2] in ("x-", "pr")}, {"x-other": "kept"})


def headers_set():
    odd = "a\"b\\c${secrets.key}$d{e;f}'g $e ${secrets.key} #\\"
    one = {"paths": ["/one"], "transform": {"headers": {"Authorization": "Bearer ${secrets.key}", "X-Odd": odd}}}
    two = {"paths": ["/two"], "transform": {"headers": {"x-odd": "second"}}}
    with Edge(rules(one, two, {}), [API], {"key": SECRET}) as e:
        e.ask("GET", "/one", Authorization="mine", X_Odd="mine", X_More="mine")
        got = e.upstreams[1].take()
        equal(got.fields["authorization"], ("Bearer " + SECRET).encode().decode("latin-1"))
        equal(got.fields["x-odd"], odd.replace("${secrets.key}", SECRET).encode().decode("latin-1"))
        equal((len([x for x in got.lines if "mine" in x]), got.fields["x-more"]), (1, "mine"))
        e.ask("GET", "/two", Authorization="mine", X_Odd="mine")
        got = e.upstreams[1].take()
        equal((got.fields["authorization"], got.fields["x-odd"]), ("mine", "second"))
        e.ask("GET", "/three", X_Odd="mine")
        equal(e.upstreams[1].take().fields["x-odd"], "mine")
        e.ask("GET", "/three")
        equal("x-odd" in e.upstreams[1].take().fields, False)


def placeholders():
    wire = SECRET.encode().decode("latin-1")
    with credential() as e:
        for name in ("Authorization", "X-Api-Key", "Api-Key", "Private-Token", "X-Auth-Token", "X-GitHub-Token",
                     "Cookie"):
            e.ask(**{name: "a" + PLACEHOLDER + "b"})
            equal(e.upstreams[1].take().fields[name.lower()], "a" + wire + "b", name)
            e.ask(number=2, **{name: "a" + PLACEHOLDER + "b"})
            equal(e.upstreams[2].take().fields[name.lower()], "a" + PLACEHOLDER + "b", "another host")
        e.ask(X_Other=PLACEHOLDER)
        equal(e.upstreams[1].take().fields["x-other"], PLACEHOLDER)
        e.ask("GET", "/" + PLACEHOLDER + "?a=b&key=" + PLACEHOLDER + "&c")
        equal(e.upstreams[1].take().target,
              "/" + PLACEHOLDER + "?a=b&key=" + urllib.parse.quote(SECRET, safe="-_.~") + "&c")
        e.ask("POST", "/", body=PLACEHOLDER.encode())
        equal(e.upstreams[1].take().body, PLACEHOLDER.encode())
        for user in ("x-access-token", "oauth2", "git", "token", "", "ab", "a", "é"):
            e.ask(Authorization="basic " + base64.b64encode((user + ":" + PLACEHOLDER).encode()).decode())
            scheme, value = e.upstreams[1].take().fields["authorization"].split(" ")
            equal((scheme, base64.b64decode(value).decode()), ("basic", user + ":" + SECRET))
            e.ask(number=2, Authorization="Basic " + base64.b64encode((user + ":" + PLACEHOLDER).encode()).decode())
            value = e.upstreams[2].take().fields["authorization"].split(" ")[1]
            equal(base64.b64decode(value).decode(), user + ":" + PLACEHOLDER)
        for password in ("", "x-oauth-basic"):
            e.ask(Authorization="Basic " + base64.b64encode((PLACEHOLDER + ":" + password).encode()).decode())
            value = e.upstreams[1].take().fields["authorization"].split(" ")[1]
            equal(base64.b64decode(value).decode(), SECRET + ":" + password)
        e.ask(Authorization="Basic " + base64.b64encode((PLACEHOLDER + ":other").encode()).decode())
        value = e.upstreams[1].take().fields["authorization"].split(" ")[1]
        equal(base64.b64decode(value).decode(), PLACEHOLDER + ":other")


def two_credentials():
    """Of one host, in one query and one cookie."""
    other = "ph_" + "f" * 36
    hosts = ["api.test"]
    with Edge({"credentials": {"ID": {"secret": "id", "hosts": hosts}, "KEY": {"secret": "key", "hosts": hosts},
                               "NONE": {"secret": "key", "hosts": hosts}}, "allowOut": hosts},
              [API], {"id": "the-secret-id", "key": "the-secret-key"}, {"ID": PLACEHOLDER, "KEY": other}) as e:
        e.ask("GET", "/?id=%s&key=%s" % (PLACEHOLDER, other), Cookie="a=%s; b=%s" % (other, PLACEHOLDER))
        got = e.upstreams[1].take()
        equal(got.target, "/?id=the-secret-id&key=the-secret-key")
        equal(got.fields["cookie"], "a=the-secret-key; b=the-secret-id")
        e.upstreams[1].answer = reply(b"the-secret-id the-secret-key")
        equal(e.ask().text, PLACEHOLDER + " " + other)


def forms_of(secret):
    """Texts of an answer that carry a secret."""
    raw = secret.encode()
    yield raw
    yield urllib.parse.quote(secret, safe="").encode()
    yield urllib.parse.quote(secret, safe="-_.~").lower().encode()
    yield json.dumps(secret, ensure_ascii=False).encode()
    yield json.dumps(secret, ensure_ascii=False).replace("/", "\\/").encode()
    for user in (b"", b"a:", b"ab:", b"x-access-token:"):
        yield base64.b64encode(user + raw)
        yield base64.urlsafe_b64encode(user + raw + b"more")


def carries(secret, text):
    """True if the secret can be had from the text."""
    return any(x in text for x in (secret.encode(), secret.encode()[:12], base64.b64encode(secret.encode())[4:20]))


def scrubbed():
    for secret in (SECRET, "ghp_0123456789ABCDEFGHIJabcdefghij012345", "hunter2!"):
        with credential(secret) as e:
            up = e.upstreams[1]
            for form in forms_of(secret):
                body = b"before " + form + b" between " + form + b" after"
                up.answer = reply(body, "Content-Type: application/octet-stream", "ETag: \"x\"", "X-Accel-Redirect: /x")
                a = e.ask()
                equal(a.status, 200)
                equal((a.text.count(PLACEHOLDER), carries(secret, a.body), a.text[:7], a.text[-5:]),
                      (2, False, "before ", "after"), repr(form) + a.text)
                up.answer = reply(gzip.compress(body), "Content-Encoding: gzip")
                for accepted in ({}, {"Accept-Encoding": "gzip, br"}):
                    a = e.ask(**accepted)
                    equal((a.text.count(PLACEHOLDER), carries(secret, a.body), "content-encoding" in a.fields),
                          (2, False, False), accepted)
                up.requests = []

                def pieces(r, f):
                    f.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for byte in body:
                        f.write(b"1\r\n%c\r\n" % byte)
                        f.flush()
                    f.write(b"0\r\n\r\n")
                up.answer = pieces
                a = e.ask()
                equal((a.text.count(PLACEHOLDER), a.text[:7], a.text[-5:]), (2, "before ", "after"))
                if len(form) > 8192:
                    break
            up.requests = []
            for packed in ("br", "deflate", "zstd", "gzip, br", "x-gzip", "GZIP, identity"):
                up.answer = reply(b"packed", "Content-Encoding: " + packed)
                for more in ({}, {"Accept-Encoding": packed}):
                    a = e.ask(Authorization=PLACEHOLDER, **more)
                    equal((a.status, "packed form" in a.text), (502, True), packed)
                    equal("content-encoding" in a.fields, False)
                    got = up.take()
                    equal([x for x in ("accept-encoding", "range", "if-range") if x in got.fields], [])
            up.answer = reply(b"part")
            e.ask(Range="bytes=0-3", If_Range="\"x\"")
            got = up.take()
            equal([x for x in ("range", "if-range") if x in got.fields], [])
            for status in ("401 Unauthorized", "500 Failed", "201 Created"):
                up.answer = reply(secret.encode(), "Content-Type: text/html", status=status)
                a = e.ask()
                equal((a.status, a.text), (int(status[:3]), PLACEHOLDER))


def scrubbed_headers():
    secret = "ghp_0123456789ABCDEFGHIJabcdefghij012345"
    with credential(secret) as e:
        up = e.upstreams[1]
        for name in ("Location", "Refresh", "Link", "Content-Location", "WWW-Authenticate", "Content-Disposition",
                     "Cache-Control", "Content-Language", "Content-Type", "Expires"):
            up.answer = reply(b"", name + ": plain/x?y", status="401 No")
            equal(e.ask().fields.get(name.lower()), "plain/x?y", name)
            up.answer = reply(b"", name + ": a?k=%s&b" % secret, status="401 No")
            equal(e.ask().fields.get(name.lower()), "a?k=%s&b" % PLACEHOLDER, name)
            up.answer = reply(b"", name + ": %s %s" % (secret, secret), status="302 Found")
            equal(e.ask().fields.get(name.lower()), None, name)
        up.answer = reply(b"", "Set-Cookie: a=b", "Set-Cookie: k=" + secret)
        a = e.ask()
        equal((a.status, [x for x in a.lines if "ookie" in x or secret in x]), (200, []))
        e.upstreams[2].answer = reply(b"", "Set-Cookie: a=b", "Set-Cookie: c=d", "Link: <x>", "Link: <y>")
        equal(len([x for x in e.ask(number=2).lines if "ookie" in x or "Link" in x]), 4)


def streams():
    """The first bytes arrive before the last ones are there, with and without secrets."""
    with credential() as e:
        for number in (1, 2):
            more = threading.Event()

            def events(r, f):
                f.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
                f.write(b"e\r\ndata: first\n\n\n\r\n")
                f.flush()
                if not more.wait(PATIENCE):
                    raise AssertionError("the first event did not arrive")
                f.write(b"4\r\nlast\r\n0\r\n\r\n")
            e.upstreams[number].answer = events
            name = e.hosts[number - 1][0].encode()
            with e.open(number) as s:
                s.sendall(b"GET /events HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % name)
                got = b""
                while b"data: first\n\n" not in got:
                    piece = s.recv(4096)
                    equal(bool(piece), True, got)
                    got += piece
                more.set()
                while not got.endswith(b"0\r\n\r\n"):
                    got += s.recv(4096)
                equal(b"last" in got, True)


def uploads():
    """20 MB, of which the server sees the first bytes before the client has sent the last ones."""
    size = 20 << 20
    with credential() as e:
        for number in (1, 2):
            got = []

            def count(r, f):
                got.append((r.method, len(r.body), r.body[:4], r.body[-4:]))
                f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            up = e.upstreams[number]
            up.answer = count
            name = e.hosts[number - 1][0]
            with e.open(number) as s:
                s.sendall(b"PUT /big HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (
                    name.encode(), size))
                s.sendall(b"head" + b"x" * (1 << 20))
                equal(up.heads.get(timeout=PATIENCE).target, "/big")  # the client still owes bytes
                s.sendall(b"x" * (size - (1 << 20) - 8) + b"tail")
                equal(s.recv(4096)[:15], b"HTTP/1.1 200 OK")
            equal(got, [("PUT", size, b"head", b"tail")])
        equal(os.listdir(e.path("temp")), [])


def websockets():
    with credential() as e:
        for number in (1, 2):
            def echo(r, f):
                f.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
                f.flush()
                f.write(f.readline())
                f.flush()
                return "close"
            up = e.upstreams[number]
            up.answer = echo
            with e.open(number) as s:
                s.sendall(b"GET /ws HTTP/1.1\r\nHost: %s\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
                          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\nAuthorization: %s\r\n\r\n" % (
                              e.hosts[number - 1][0].encode(), PLACEHOLDER.encode()))
                f = s.makefile("rb")
                equal(f.readline(), b"HTTP/1.1 101 Switching Protocols\r\n")
                while f.readline() != b"\r\n":
                    pass
                s.sendall(b"ping\n")
                equal(f.readline(), b"ping\n")
            got = up.take()
            equal((got.fields["upgrade"], got.fields["connection"]), ("websocket", "upgrade"))
            equal(got.fields["authorization"] == PLACEHOLDER, number == 2)


def servers_certificate():
    """A server that the machine does not trust, and one of another name, get no request."""
    with Edge(rules({"paths": ["/*"]}), [API, ("git.test", 443, True)]) as e:
        equal(e.ask().status, 200)
        e.upstreams[1].context = e.upstreams[2].context
        e.upstreams[1].take()
        e.upstreams[1].end_connections()
        a = e.ask()
        equal((a.status, a.text), (502, "network: api.test could not be reached, or its certificate is not valid\n"))
        equal(e.upstreams[1].take(), None)


def no_second_try():
    """A server that ends without an answer is asked once."""
    with Edge(rules({"paths": ["/*"]}), [API]) as e:
        e.upstreams[1].answer = lambda r, f: "close"
        equal(e.ask("GET", "/once").status, 502)
        equal(e.upstreams[1].take().target, "/once")
        e.upstreams[1].close()
        equal(e.ask().status, 502)


def log():
    with credential() as e:
        e.ask("GET", "/a\"b\\c?key=" + PLACEHOLDER, Authorization="Bearer " + PLACEHOLDER)
        line = e.log.recv(65536).decode()
        equal(json.loads(line[line.index("egress: ") + 8:])["path"], "/a\"b\\c")
        equal(SECRET in line, False)
        e.ask("GET", "/\xff" + "a" * 3000)
        equal(e.logged()["path"], "/")
        e.ask("GET", "/" + "a" * 3000)
        equal(e.logged()["path"], "/" + "a" * 999)
        e.raw(b"\xff\xfe\r\n\r\n")
        line = e.logged()
        equal((line["id"], line["status"], line["deny"]), (1, 400, True))
        e.ask("GET", "/", host="a\x22b")
        equal(e.logged()["deny"], True)
        e.upstreams[1].answer = lambda r, f: "close"  # errors of nginx have the target with its secrets
        e.ask("GET", "/?" + PLACEHOLDER)
        with open(e.path("stderr")) as f:
            equal([x for x in f if "[warn]" not in x], [])


def reloaded():
    """A changed configuration holds for the next request; a stream that is open goes on."""
    secrets = {"key": "the-first-key"}
    with Edge(rules({"transform": {"headers": {"X-Key": "${secrets.key}"}}}, {"paths": ["/*"]}), [API], secrets) as e:
        e.ask()
        equal(e.upstreams[1].take().fields["x-key"], "the-first-key")
        more = threading.Event()

        def slow(r, f):
            f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhead\n")
            f.flush()
            if more.wait(PATIENCE):
                f.write(b"tail\n")
        e.upstreams[1].answer = slow
        with e.open() as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
            got = b""
            while b"head\n" not in got:
                got += s.recv(4096)
            e.upstreams[1].answer = reply()
            e.configure(rules({"methods": ["GET"], "transform": {"headers": {"X-Key": "${secrets.key}"}}}),
                        {"key": "the-second-key"}, {})
            e.process.send_signal(signal.SIGHUP)
            e.upstreams[1].requests = []
            key = None
            while key != "the-second-key":  # a worker of before may take connections until it has its signal
                e.ask()
                key = e.upstreams[1].take().fields["x-key"]
            while e.ask("PUT", "/", body=b"").status != 403:
                pass
            more.set()
            while b"tail\n" not in got:
                piece = s.recv(4096)
                equal(bool(piece), True, got)
                got += piece


def clients():
    """TLS clients of this machine accept the certificates."""
    with Edge(rules({"paths": ["/*"]}), [API]) as e:
        e.upstreams[1].answer = reply(b"hello")
        curl = ["curl", "-sS", "--unix-socket", e.path("edge/in-1"), "--cacert", e.path("ca.crt")]
        for version in ("--http1.1", "--http2"):
            done = subprocess.run(curl + [version, "-w", " %{http_version}", "https://api.test/x"], capture_output=True,
                                  timeout=PATIENCE)
            equal((done.stdout, done.stderr), (b"hello 2" if "2" in version else b"hello 1.1", b""), version)
            equal(e.upstreams[1].take().line, "GET /x HTTP/1.1")
            done = subprocess.run(curl + [version, "-T", DRIVER, "https://api.test/upload"], capture_output=True,
                                  timeout=PATIENCE)
            with open(DRIVER, "rb") as f:
                equal(e.upstreams[1].take().body == f.read(), True)
        done = subprocess.run(curl + ["--http2", "-H", "Host: other.test", "https://api.test/x"], capture_output=True)
        equal(done.stdout, b"network: GET api.test/x was refused: not a request to api.test\n")
        equal(e.upstreams[1].take(), None)
        done = subprocess.run(["openssl", "verify", "-x509_strict", "-CAfile", e.path("ca.crt"), "-purpose",
                               "sslserver", "-verify_hostname", "api.test", e.path("certs/api.test.crt")],
                              capture_output=True)
        equal(done.returncode, 0, done.stderr.decode())


def programs():
    """git clones with the placeholder as its password; Python and Node accept the certificate."""
    port = Forwarder()
    with contextlib.closing(port), tempfile.TemporaryDirectory(prefix="handrail-") as top:
        policy = {"credentials": {"TOKEN": {"secret": "key", "hosts": ["localhost:%d" % port.port]}},
                  "allowOut": ["localhost:%d" % port.port]}
        with Edge(policy, [("localhost", port.port, True)], {"key": "the-secret"}, {"TOKEN": PLACEHOLDER}) as e:
            port.to = e.path("edge/in-1")
            up = e.upstreams[1]
            up.answer = reply(b"hello the-secret")
            url = "https://localhost:%d/" % port.port
            context = ssl.create_default_context(cafile=e.path("ca.crt"))
            if hasattr(ssl, "VERIFY_X509_STRICT"):
                context.verify_flags |= ssl.VERIFY_X509_STRICT
            with urllib.request.urlopen(url + "python", context=context, timeout=PATIENCE) as answer:
                equal(answer.read().decode(), "hello " + PLACEHOLDER)
            equal(up.take().fields["host"], "localhost:%d" % port.port)
            if shutil.which("node"):
                script = "require('https').get(process.argv[1], r => r.pipe(process.stdout))"
                done = subprocess.run(["node", "-e", script, url + "node"], capture_output=True, timeout=PATIENCE,
                                      env=dict(os.environ, NODE_EXTRA_CA_CERTS=e.path("ca.crt")))
                equal((done.stdout.decode(), done.stderr.decode()), ("hello " + PLACEHOLDER, ""))
                up.take()
            repository = os.path.join(top, "r.git")
            make_repository(repository)
            with GitServer(top, {"x-access-token": "the-secret", "git": "the-secret"}, smart=True) as server:
                up.relay = server.http.server_address[1]
                up.end_connections()
                env = dict(os.environ, GIT_SSL_CAINFO=e.path("ca.crt"), GIT_CONFIG_GLOBAL="/dev/null",
                           GIT_TERMINAL_PROMPT="0")
                for user in ("x-access-token", "git"):
                    clone = os.path.join(top, "clone-" + user)
                    of_user = url.replace("//", "//%s:%s@" % (user, PLACEHOLDER))
                    done = subprocess.run(["git", "clone", "-q", of_user + "r.git", clone], capture_output=True,
                                          timeout=PATIENCE, env=env)
                    equal((done.returncode, done.stderr.decode()), (0, ""))
                    with open(os.path.join(clone, "file")) as f:
                        equal(f.read(), "in main\n")


CASES = [methods_and_paths, parameters, other_hosts, smuggled, headers_set, placeholders, two_credentials, scrubbed,
         scrubbed_headers, streams, uploads, websockets, servers_certificate, no_second_try, log, reloaded, clients,
         programs]


def main():
    if not os.path.exists(DRIVER):
        skip_all("the edge of boxes is not built (configure --enable-box)")
    tap = Tap()
    for case in CASES:
        if len(sys.argv) < 2 or case.__name__ in sys.argv[1:]:
            tap.run(case.__name__, case)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
