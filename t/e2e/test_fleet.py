#!/usr/bin/env python3
"""handrail-fleetd as its clients and operators meet it: real nginx, real sandboxes of the kind local."""

import http.client
import json
import os
import pwd
import random
import re
import resource
import select
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.certs import Authority  # noqa: E402
from lib.fleet import Fleet, free_port  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC  # noqa: E402
from lib.metrics import samples  # noqa: E402
from lib.seat import Seat  # noqa: E402
from lib.supervised import ROOT, find_program, need_entrance  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402

STAND_IN = os.path.join(SRC, "t", "e2e", "vscode_server.py")

# What the first version of the store was made by.
SERVER = """
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); print("up", flush=True)
while True:
    c, _ = s.accept(); head = b""
    while b"\\r\\n\\r\\n" not in head:
        got = c.recv(4096)
        if not got: break
        head += got
    if b"Upgrade: websocket" in head:
        c.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n")
        data = c.recv(100); c.sendall(data[::-1])
    else:
        c.sendall(b"HTTP/1.1 200 OK\\r\\nX-Accel-Redirect: /-/route\\r\\nSet-Cookie: a=b; Domain=.dom.example\\r\\n"
                  b"X-Long: %s\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (b"x" * 30000, len(head), head))
    c.close()
"""


BAD_SERVER = """
import socket, sys, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); print("up", flush=True)
def serve(c):
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        head += c.recv(4096) or b"\\r\\n\\r\\n"
    path = head.split(b" ")[1]
    ok = b"HTTP/1.1 200 OK\\r\\n"
    try:
        if path == b"/endless-head":
            c.sendall(ok)
            while True: c.sendall(b"X-A: b\\r\\n" * 1000)
        elif path == b"/long-head": c.sendall(ok + b"X-A: " + b"b" * (1 << 20) + b"\\r\\n\\r\\n")
        elif path == b"/no-http": c.sendall(b"\\x00\\x01\\x02" * 100000)
        elif path == b"/two":
            c.sendall(ok + b"Content-Length: 5\\r\\n\\r\\nfirst" + ok + b"Content-Length: 6\\r\\n\\r\\nsecond")
        elif path == b"/redirect":
            c.sendall(b"HTTP/1.1 302 F\\r\\nLocation: http://169.254.169.254/\\r\\nContent-Length: 0\\r\\n\\r\\n")
        elif path == b"/cookie":
            c.sendall(ok + b"Set-Cookie: a=b; Domain=.example; Path=/\\r\\nContent-Length: 0\\r\\n\\r\\n")
        elif path == b"/slow": c.sendall(ok + b"Content-Length: 1000000\\r\\n\\r\\nx"); c.recv(1)
        elif path == b"/slow-head": c.sendall(ok + b"X-A: b"); c.recv(1)
        elif path == b"/inner":
            c.sendall(ok + b"X-Handrail-Server-Key: k\\r\\nX-Handrail-At: h\\r\\nContent-Length: 0\\r\\n\\r\\n")
    except OSError: pass
    c.close()
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


def by_the_command():
    """handrail -r remote against it."""
    with Fleet() as f:
        f.env["RUNTIME"] = "remote"
        f.ok("up", "-e", "GREETING=a b")
        equal(f.ok("run", "echo $GREETING"), "a b\n")
        with open(f.path("cwd", "file"), "w") as out:
            out.write("content\n")
        f.ok("put", "file", f.path("tmp", "copied"))
        equal(f.ok("run", "cat " + f.path("tmp", "copied")), "content\n")
        equal(Seat(f, "sh", "sh", "-c", "stty size; read x; echo $x; exit 5").until("33 77\r\n").type("typed\r").end(5),
              "33 77\r\ntyped\r\ntyped\r\n", "a terminal")
        equal(f.ok("doctor", "remote").count("ok "), 2)
        equal("default" in f.ok("fleet", "ps"), True, "the operator sees it")
        f.ok("down", "-q")
        equal(f.ok("fleet", "drain"), "")
        f.fails(1, "an operator has drained it", "up")
        f.ok("fleet", "drain", "off")
        equal(len(f.ok("fleet", "keys", "make", "-o", "read", "x").strip()) > 40, True, "a key")
        equal("read" in f.ok("fleet", "keys"), True, "is listed")
        # options behind the words are not of the words
        for words in (("keys", "make", "behind", "--scope", "admin", "--most", "3"),
                      ("keys", "make", "--scope", "admin", "behind", "--most=3"),
                      ("keys", "--most", "3", "make", "behind", "-o", "admin")):
            f.ok("fleet", *words)
            k = f.call("GET", "/handrail/v1/keys")[1]["keys"][-1]
            equal((k["name"], k["scopes"], k["sandboxes"]), ("behind", ["read", "use", "admin"], 3), words)
        f.fails(2, "there is no option", "fleet", "keys", "make", "behind", "--nonsense")
        f.fails(2, "usage", "fleet", "keys", "make", "behind", "another")


def cannot_pause():
    """The back-end local says so at once, and is not told to be paused for a moment."""
    with Fleet("--image", "i:1") as f:
        o = f.up("s")
        its = {"runtime_id": o["runtime_id"]}
        for path in ("/pause", "/handrail/v1/sandboxes/pause"):
            status, answer = f.call("POST", path, its)
            equal((status, "cannot pause sandboxes" in answer["detail"]), (501, True), path)
        s = f.call("GET", "/sessions/s")[1]
        equal((s["state"], [e["what"] for e in s["events"]]), ("running", ["starting", "running"]))
        equal(f.call("POST", "/pause", {"runtime_id": "0" * 32})[0], 404)
        equal(f.call("POST", "/resume", its)[0], 200, "it runs")
        f.call("POST", "/stop", its)
        f.until(lambda: f.call("GET", "/sessions/s")[1]["state"], lambda state: state == "stopped")
        equal(f.call("POST", "/pause", its)[0], 409, "one that ended")


def batch():
    """As openhands-ai 1.11 asks: ids, each a session's name, and a list."""
    with Fleet("--image", "i:1") as f:
        other = f.make_key("other")
        a, b, c = f.up("a.b:c"), f.up("b"), f.up("its", key=other)
        f.up("batch")
        status, found = f.call("GET", "/sessions/batch?ids=a.b%3Ac&ids=none&ids=its&ids=b")
        equal((status, [(s["session_id"], s["runtime_id"], s["session_api_key"], s["status"]) for s in found]),
              (200, [(o["session_id"], o["runtime_id"], o["session_api_key"], "running") for o in (a, b)]))
        equal(f.call("GET", "/sessions/batch?ids=none"), (200, []))
        equal(f.call("GET", "/sessions/batch?ids=its", key=other)[1][0]["runtime_id"], c["runtime_id"])
        equal(f.call("GET", "/sessions/batch?ids=b", key="x")[0], 401)
        equal(f.call("GET", "/sessions/batch")[1]["session_id"], "batch", "a session of that name")
        equal([s["session_id"] for s in f.call("GET", "/sessions/batch?ids=b" + "&ids=none" * 99)[1]], ["b"])
        status, refused = f.call("GET", "/sessions/batch?ids=b" + "&ids=none" * 100)
        equal((status, "at most 100" in refused["detail"]), (400, True), refused)


def nulls_and_doubles():
    """No text with a null character is the one before it; of a parameter that comes twice the last one counts."""
    with Fleet("--image", "i:1") as f:
        o = f.up("a")
        for body in ({"session_id": "a\0b"}, {"session_id": "n", "image": "i\0:1"},
                     {"session_id": "n", "environment": {"X": "a\0b"}},
                     {"session_id": "n", "command": ["a", "b\0c"]}):
            equal(f.call("POST", "/start", body)[0], 400, repr(body))
        for path in ("/stop", "/pause", "/resume"):
            equal(f.call("POST", path, {"runtime_id": o["runtime_id"] + "\0"})[0], 400, path)
        equal(f.call("POST", "/handrail/v1/keys", {"name": "n", "scope": "read\0"})[0], 400)
        equal(f.call("POST", "/handrail/v1/pools", {"pools": [{"name": "p\0q", "size": 0, "request": {}}]})[0], 400)
        for path in ("/sessions/a%00b", "/runtime/" + o["runtime_id"] + "%00"):
            equal(f.call("GET", path)[0] in (400, 404), True, path)  # 400 is nginx's
        equal(f.call("GET", "/sessions/batch?ids=a%00b"), (200, []))
        equal(f.call("GET", "/image_exists?image=none&image=i%3A1")[0] in (200, 503), True)
        query = "?runtime_id=%s&runtime_id=%s" % ("0" * 32, o["runtime_id"])
        equal({e["runtime_id"] for e in f.call("GET", "/handrail/v1/events" + query)[1]["events"]}, {o["runtime_id"]})
        equal(len(f.call("GET", "/handrail/v1/events?limit=9&limit=1")[1]["events"]), 1)
        equal([r["session_id"] for r in f.call("GET", "/list")[1]["runtimes"]], ["a"])


def revoked():
    """A key's sandboxes go on without it, or are stopped with it; those of others are left alone."""
    with Fleet("--image", "i:1") as f:
        a, b = f.make_key("a"), f.make_key("b")
        of = {"a": f.up("s", key=a), "b": f.up("s", key=b)}
        ids = {k["name"]: k["id"] for k in f.call("GET", "/handrail/v1/keys")[1]["keys"]}
        equal("1 sandboxes of the key continue" in f.ok("fleet", "keys", "revoke", str(ids["a"])), True)
        equal(f.call("POST", "/stop", {"runtime_id": of["a"]["runtime_id"]}, key=a)[0], 401)
        equal(f.run(of["a"], "echo goes on"), "goes on")
        equal("are stopped" in f.ok("fleet", "keys", "revoke", str(ids["a"]), "--stop"), True)
        f.until(f.sandboxes, lambda all: [s["key"] for s in all] == [ids["b"]])
        equal(f.run(of["b"], "echo too"), "too")
        equal(f.call("POST", "/handrail/v1/keys/revoke", {"id": 99, "stop": True})[0], 404)


def what_a_start_gives():
    with Fleet("--image", "default:1") as f:
        o = f.up("s", environment={"X": "1"}, command=["a", "--plugins", "agent_skills", "--username", "me"])
        equal(f.run(o, "echo $X"), "1")
        equal(f.up("s")["runtime_id"], o["runtime_id"], "the same again")
        equal([r["runtime_id"] for r in f.call("GET", "/list")[1]["runtimes"]], [o["runtime_id"]])
        status, s = f.call("GET", "/sessions/s")
        equal((status, s["status"], s["pod_status"], [e["what"] for e in s["events"]]),
              (200, "running", "ready", ["starting", "running"]))
        equal(f.call("GET", "/runtime/" + o["runtime_id"])[1]["runtime_id"], o["runtime_id"])
        for path in ("/sessions/s", "/runtime/" + o["runtime_id"]):
            equal(f.call("GET", path + "?logs=true")[1]["runtime_id"], o["runtime_id"], path)
        equal(f.call("GET", "/sessions/none")[0], 404)
        equal(f.call("POST", "/stop", {"runtime_id": o["runtime_id"]})[0], 200)
        again = f.up("s")
        equal(again["runtime_id"] == o["runtime_id"], False, "another life")
        equal(f.call("POST", "/stop", {"runtime_id": o["runtime_id"]})[0], 200, "a late stop")
        equal(f.call("GET", "/sessions/s")[1]["status"], "running", "hits nothing newer")
        equal(f.call("POST", "/pause", {"runtime_id": "0" * 32})[0], 404)
        equal(f.call("GET", "/registry_prefix"), (200, {"registry_prefix": ""}))
        equal(f.call("POST", "/build", b"x")[0], 501, "not built here")


def wrong_requests():
    with Fleet() as f:
        for body, status in ((b"{", 400), (b"[]", 400), (b"", 400), ({"session_id": 7}, 400),
                             ({"session_id": "a/b"}, 400), ({"session_id": "a", "environment": {"a b": "c"}}, 400),
                             ({"session_id": "a", "environment": {"A": 1}}, 400), ({"session_id": "x" * 300}, 400),
                             ({"session_id": "a", "resource_factor": 0}, 400), (b" " * (1 << 20) + b"x", 413),
                             ({"session_id": "a", "command": 7}, 400), ({"session_id": "a", "image": []}, 400)):
            equal(f.call("POST", "/start", body)[0], status, repr(body)[:80])
        for path in ("/stop", "/pause", "/resume"):
            for body in (None, b"", b"null", b"[]", {}, {"runtime_id": 7}):
                equal(f.call("POST", path, body)[0], 400, "%s %r" % (path, body))
        equal(f.call("GET", "/start")[0], 405)
        for path in ("/-/route", "/-/route-short"):
            equal(f.call("GET", path)[0], 404, "nginx's own")
        equal(f.call("GET", "/-/sandbox")[0], 404)
        equal(f.sandboxes(), [], "nothing was made")


def lists():
    """Chosen by status and in pages; one key's list holds nothing of another."""
    with Fleet() as f:
        other = f.make_key("other")
        f.up("x", key=other)
        ids = [f.up(s)["runtime_id"] for s in ("a", "b", "c")]

        def listed(query):
            return [r["runtime_id"] for r in f.call("GET", "/list" + query)[1]["runtimes"]]

        f.call("POST", "/stop", {"runtime_id": ids[1]})
        rest = f.until(lambda: listed(""), lambda found: len(found) == 2)
        equal(listed("?all=true&status=stopped"), [ids[1]])
        equal(sorted(rest), sorted([ids[0], ids[2]]))
        equal(listed("?status=running&limit=1"), rest[:1])
        equal(listed("?limit=1&after=" + rest[0]), rest[1:])
        equal(listed("?after=" + rest[1]), [])
        equal(listed("?status=paused"), [])
        equal([f.call("GET", "/list?limit=" + n)[0] for n in ("0", "-1", "x", "1x")], [400] * 4)


def hostile_sandbox():
    """What a program in a sandbox answers is its own trouble: not the next client's, and not the service's."""
    with Fleet() as f:
        o = f.up("s")
        port = int(f.run(o, "echo $APP_PORT_1"))
        with open(f.path("cwd", "bad.py"), "w") as out:
            out.write(BAD_SERVER)
        f.run(o, "python3 %s %d >/tmp/out.%s 2>&1 & while ! grep -q up /tmp/out.%s; do read -t 0.1 <> <(:); done; "
                 "rm /tmp/out.%s" % ((f.path("cwd", "bad.py"), port) + (o["runtime_id"],) * 3))
        to = {"X_Sandbox_ID": o["runtime_id"], "X_Sandbox_Port": str(port)}
        for path in ("/endless-head", "/long-head", "/nothing"):
            equal(f.call("GET", path, key="", **to)[0], 502, path)
        # nginx takes what is no HTTP for HTTP/0.9 and passes it on; nothing of it answers another request
        with socket.create_connection(("127.0.0.1", f.port), PATIENCE) as s:
            s.sendall(("GET /no-http HTTP/1.1\r\nHost: h\r\nX-Sandbox-ID: %s\r\nX-Sandbox-Port: %d\r\n\r\n"
                       % (o["runtime_id"], port)).encode())
            s.sendall(b"GET /alive HTTP/1.1\r\nHost: h\r\n\r\n")
            said = b""
            while True:
                try:
                    got = s.recv(65536)
                except ConnectionResetError:  # what it has not read yet
                    break
                if got == b"":
                    break
                said += got
            equal(said.count(b"ok"), 0, "the connection ends with it")
        # a second answer behind the first is not the answer to the next request
        c = http.client.HTTPConnection("127.0.0.1", f.port, timeout=PATIENCE)
        for path, want in (("/two", b"first"), ("/alive", b'{"status":"ok"}')):
            # it comes on a new connection
            c.request("GET", path, headers={k.replace("_", "-"): v for k, v in to.items()} if path == "/two" else {})
            equal(c.getresponse().read(), want, path)
        c.close()
        # a redirect is the client's to follow, and leads the service nowhere
        status, _ = f.call("GET", "/redirect", key="", **to)
        equal((status, f.head["Location"]), (302, "http://169.254.169.254/"))
        status, _ = f.call("GET", "/inner", key="", **to)
        equal((status, f.head["X-Handrail-Server-Key"]), (200, None), "what only the service says")
        f.call("GET", "/cookie", key="", Host="fleet.example", **to)
        equal(f.head["Set-Cookie"], "a=b; Domain=fleet.example; Path=/", "none for the names above")
        # more that take their time than the service has threads
        for path, said in (("/slow", b"HTTP/1.1 200"), ("/slow-head", b"")):
            slow = []
            for _ in range(33):
                slow.append(socket.create_connection(("127.0.0.1", f.port), PATIENCE))
                slow[-1].sendall(("GET %s HTTP/1.1\r\nHost: h\r\nX-Sandbox-ID: %s\r\nX-Sandbox-Port: %d\r\n\r\n"
                                  % (path, o["runtime_id"], port)).encode())
            for s in slow if said else ():
                equal(s.recv(100)[:12], said)
            equal(f.call("GET", "/alive", key="")[0], 200, "the service beside " + path)
            equal(f.call("GET", "/%s/alive" % o["runtime_id"], key="")[0], 200, "its sandbox beside " + path)
            for s in slow:
                s.close()
        equal(f.call("GET", "/sessions/s")[1]["state"], "running")


def clients_that_vanish():
    """Whoever starts and is gone has started one; it is there for who comes again, once."""
    with Fleet() as f:
        for n in range(6):
            body = json.dumps({"session_id": "s"}).encode()
            with socket.create_connection(("127.0.0.1", f.port), PATIENCE) as s:
                s.sendall(b"POST /start%s HTTP/1.1\r\nHost: h\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n%s" % (
                    b"?wait=ready" if n % 2 else b"", f.key.encode(), len(body) + (n == 5), body))
        o = f.up("s")
        equal([s["runtime_id"] for s in f.sandboxes()], [o["runtime_id"]])


def slow_bodies():
    """Who has no key holds nobody up, however a body that is passed on as it comes is asked for."""
    with Fleet() as f:
        o = f.up("s")
        nobody = b"0" * 32
        for line, head, want in ((b"POST /build?x", b"", 401), (b"POST /%62uild", b"", 404), (b"GET /build", b"", 405),
                                 (b"PUT /build", b"", 405), (b"POST /" + nobody + b"/x", b"", 404),
                                 (b"POST /start", b"X-Sandbox-ID: " + nobody + b"\r\n", 404)):
            slow = []
            for _ in range(33):  # one more than there are threads for requests
                slow.append(socket.create_connection(("127.0.0.1", f.port), PATIENCE))
                slow[-1].sendall(line + b" HTTP/1.1\r\nHost: h\r\n" + head +
                                 b"Content-Length: 1000000000\r\n\r\nbegin")
            equal(f.call("GET", "/alive", key="")[0], 200, line)
            equal(f.call("GET", "/%s/alive" % o["runtime_id"], key="")[0], 200, "its sandbox beside " + repr(line))
            for s in slow:
                equal(s.recv(100)[9:12], b"%d" % want, line)
                s.close()


def no_descriptors():
    """A thread for requests that finds none waits until there are some again."""
    with Fleet() as f:
        def threads():
            return len(os.listdir("/proc/%d/task" % f.process.pid))

        before = threads()
        limits = resource.prlimit(f.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(f.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        waiting = []
        for _ in range(24):
            waiting.append(socket.create_connection(("127.0.0.1", f.port), PATIENCE))
            waiting[-1].sendall(b"GET /alive HTTP/1.1\r\nHost: h\r\n\r\n")
        f.until(lambda: "requests cannot be taken" in f.said(), bool)
        equal(threads(), before)
        resource.prlimit(f.process.pid, resource.RLIMIT_NOFILE, limits)
        for s in waiting:
            equal(s.recv(100)[9:12], b"200")
            s.close()
        for _ in range(33):
            equal(f.call("GET", "/alive", key="")[0], 200)


def keys_and_tenants():
    """One key does nothing to the sandboxes of another, and learns nothing of them."""
    with Fleet() as f:
        a, b, reader = f.make_key("a", sandboxes=1), f.make_key("b"), f.make_key("r", scope="read")
        for key, status in (("", 401), ("hrk_" + "0" * 48, 401), (a + "x", 401), (a[:-1], 401)):
            equal(f.call("GET", "/list", key=key)[0], status, key)
        o = f.up("s", key=a)
        equal(f.call("POST", "/start", {"session_id": "t"}, key=a)[0], 429)
        equal(f.head["Retry-After"], "15")
        for path in ("/sessions/s", "/runtime/" + o["runtime_id"]):
            equal(f.call("GET", path, key=b)[0], 404, path)
        for path in ("/stop", "/pause", "/resume"):
            equal(f.call("POST", path, {"runtime_id": o["runtime_id"]}, key=b)[0], 404, path)
            equal(f.call("POST", path, {"runtime_id": o["runtime_id"]}, key=reader)[0], 403, path)
        equal(f.call("GET", "/list", key=b)[1]["runtimes"], [])
        equal(f.call("GET", "/handrail/v1/sandboxes", key=b)[0], 403)
        p = f.up("s", key=b)
        equal(p["runtime_id"] == o["runtime_id"], False, "the same name of another key")
        status, _ = f.call("POST", "/%s/execute_action" % o["runtime_id"], {"action": {}}, key=b,
                           X_Session_API_Key=p["session_api_key"], Content_Type="application/json")
        equal(status, 403, "the session key of another sandbox")
        with open(f.path("fleet", "fleet.db"), "rb") as db:
            text = db.read()
        equal([k.encode() in text for k in (a, b, f.key)], [False] * 3, "keys are kept as sums")
        ids = {k["name"]: k["id"] for k in f.call("GET", "/handrail/v1/keys")[1]["keys"]}
        f.call("POST", "/stop", {"runtime_id": p["runtime_id"]}, key=b)
        equal(f.call("POST", "/handrail/v1/keys/revoke", {"id": ids["b"]})[0], 200)
        equal(f.call("GET", "/list", key=b)[0], 401, "revoked")


def document():
    with open(os.path.join(SRC, "doc", "fleet.openapi.json")) as f:
        return json.load(f)


def routes_of_the_document():
    """Each row of the service's tables is in the document, with its scope, and each of that is a row."""
    rows = {}
    for name, top in (("api.c", ""), ("operator.c", "/handrail/v1/")):
        with open(os.path.join(SRC, "src", "fleet", "api", name)) as f:
            for method, path, scope in re.findall(r'{"(GET|POST)", "([^"]+)",(?: HR_SCOPE_(\w+),)?', f.read()):
                rows[method.lower(), top + path] = (scope or "admin").lower()
    del rows["get", "/handrail/v1/"], rows["post", "/handrail/v1/"]  # what the second table has
    rows.update({("get", "/" + name): None for name in ("health", "alive", "ready", "metrics")})
    paths = document()["paths"]
    with open(os.path.join(SRC, "src", "fleet", "api", "console.c")) as f:
        ours = {(method.lower(), "/handrail/v1/" + name)
                for method, name in re.findall(r'is_call\(q, "(\w+)", "(\w+)"\)', f.read())}
    equal({(method, path) for path in paths for method, op in paths[path].items() if "x-server" in op}, ours)
    rows.update(dict.fromkeys(ours))
    equal({(method, re.sub("{.*", "", path)): op.get("x-scope")
           for path in paths for method, op in paths[path].items()}, rows)


def tenants():
    """A key of another does nothing by any call of the document, and neither does none, or one that may only read."""
    with Fleet() as f:
        a, b, reader = f.make_key("a", sandboxes=1), f.make_key("b"), f.make_key("r", scope="read")
        o = f.up("s", key=b)
        known = {"runtime_id": o["runtime_id"], "session_id": "s", "build_id": "0" * 32, "image": "x:1", "name": "n",
                 "id": 2, "all": "true", "network": {}}
        before = f.call("GET", "/runtime/" + o["runtime_id"], key=b)[1]
        for path, method, op in ((p, m, op) for p, ops in document()["paths"].items() for m, op in ops.items()):
            if "x-server" in op:  # there is no console: that of others is test_fleet_console's
                continue
            query = {p["name"]: known[p["name"]] for p in op.get("parameters", ()) if
                     p["in"] == "query" and p["name"] in known}
            body = None
            for kind, what in op.get("requestBody", {}).get("content", {}).items():
                schema = what["schema"]
                names = schema.get("properties", ["session_id"])
                body = {n: known[n] for n in names if n in known} if kind == "application/json" else b""
            for who, key, want in (("none", "", 401), ("reader", reader, 403), ("a", a, None)):
                status, answer = f.call(method.upper(), path.format(**known) + "?" + urllib.parse.urlencode(query),
                                        body, key=key)
                said = "%s %s as %s: %s %r" % (method, path, who, status, answer)
                scope = op.get("x-scope")
                if scope is None:
                    equal(status, 200, said)
                elif key == "" or (who == "reader" and scope != "read"):
                    equal(status, want, said)
                elif scope == "admin":
                    equal(status, 403, said)
                else:
                    equal(str(status) in op["responses"], True, "not in the document: " + said)
                if who == "a" and scope != "admin" and ("runtime_id" in path or "runtime_id" in (body or ())):
                    equal(status, 404, said)
                secrets = (o["runtime_id"], o["session_api_key"])
                equal([secret for secret in secrets if secret in repr(answer)], [], said)
        equal(f.call("GET", "/runtime/" + o["runtime_id"], key=b)[1], before, "nothing became of it")
        equal([s["session_id"] for s in f.call("GET", "/list", key=a)[1]["runtimes"]], ["s"], "its own of that name")


def events():
    """As they come, of one's own sandboxes; a stream goes on where its client left it, and ends with its key."""
    with Fleet() as f:
        mine, other = f.make_key("mine"), f.make_key("other")
        f.up("x", key=other)
        status, told, c = f.listen(key=mine)
        o = f.up("s", key=mine)
        first, second = next(told), next(told)
        equal((status, [(e["runtime_id"], e["what"], e["detail"]) for e in (first, second)]),
              (200, [(o["runtime_id"], "starting", "s"), (o["runtime_id"], "running", "")]))
        f.kill()
        equal(list(told), [], "it ends with the service")
        f.start()
        _, told, c = f.listen(key=mine, Last_Event_ID=str(first["id"]))
        f.call("POST", "/stop", {"runtime_id": o["runtime_id"]}, key=mine)
        equal([next(told)["id"], next(told)["what"], next(told)["what"]], [second["id"], "stopping", "stopped"])
        page = f.call("GET", "/handrail/v1/events?limit=1&after=%d" % first["id"], key=mine)[1]["events"]
        equal(page, [second])
        equal(next(f.listen("?runtime_id=" + o["runtime_id"], key=mine)[1]), first)
        equal(f.call("GET", "/handrail/v1/events?runtime_id=" + o["runtime_id"], key=other)[1], {"events": []})
        equal([f.listen("?all=true", key=mine)[0], f.listen("?all=true")[0], f.listen(key="")[0]], [403, 200, 401])
        of_all = f.call("GET", "/handrail/v1/events?all=true")[1]["events"]
        equal({e["runtime_id"] for e in of_all} > {o["runtime_id"]}, True, "the operator's")
        equal(next(f.listen(key=mine, Last_Event_ID="1000000")[1]), "gap", "of another store")
        for wrong in ("?after=-1", "?after=x", "?limit=0", "?limit=1001", "?limit=1x"):
            equal(f.call("GET", "/handrail/v1/events" + wrong)[0], 400, wrong)
        # one key has eight; those that were left make room
        many = [f.listen(key=other) for _ in range(8)]
        equal([m[0] for m in many], [200] * 8)
        equal(f.listen(key=other)[0], 429)
        equal(f.call("GET", "/list", key=other)[0], 200, "requests have their threads")
        for m in many:
            m[1].close()
            m[2].close()
        del many, m
        f.until(lambda: f.listen(key=other)[0], lambda status: status == 200)
        ids = {k["name"]: k["id"] for k in f.call("GET", "/handrail/v1/keys")[1]["keys"]}
        f.call("POST", "/handrail/v1/keys/revoke", {"id": ids["mine"]})
        equal(list(told), [], "it ends with its key")
        c.close()


def routes():
    """By path, header and name; what a sandbox is told and what it may say."""
    with Fleet("--domain", "dom.example") as f:
        o = f.up("s")
        rid = o["runtime_id"]
        equal(f.call("GET", "/%s/alive" % rid, key="")[0], 200, "by path")
        equal(list(o["work_hosts"]), ["http://work-%d-%s.dom.example:%d" % (i, rid, f.port) for i in (1, 2)])
        equal(f.call("GET", "/%s/health" % rid, key="")[0], 200, "as a client of V1 asks")
        equal(f.call("GET", "/alive", key="", X_Sandbox_ID=rid)[1], {"status": "ok"}, "by header")
        equal(f.call("GET", "/list", X_Sandbox_ID=rid), (403, {"detail": "Invalid API Key"}), "not our own call")
        run = {"action": {"action": "run", "args": {"command": "echo by header"}}}
        status, answer = f.call("POST", "/execute_action", run, key="", X_Sandbox_ID=rid,
                                X_Session_API_Key=o["session_api_key"])
        equal((status, answer["content"]), (200, "by header"), "with its method and its body")
        big = {"action": {"action": "write", "args": {"path": f.path("cwd", "big"), "content": "x" * (3 << 20)}}}
        for path, more in (("/%s/execute_action" % rid, {}), ("/execute_action", {"X_Sandbox_ID": rid})):
            status, answer = f.call("POST", path, big, key="", X_Session_API_Key=o["session_api_key"], **more)
            equal((status, answer["observation"]), (200, "write"), "a body that is longer than any of the service's")
            equal(os.path.getsize(f.path("cwd", "big")) >> 20, 3)
            os.unlink(f.path("cwd", "big"))
        with open(f.path("cwd", "server.py"), "w") as out:
            out.write(SERVER)
        port = int(f.run(o, "echo $APP_PORT_1"))
        f.run(o, "python3 %s %d >/tmp/out.%s 2>&1 & while ! grep -q up /tmp/out.%s; do read -t 0.1 <> <(:); done; "
                 "rm /tmp/out.%s" % (f.path("cwd", "server.py"), port, rid, rid, rid))
        for name in (str(port), "work-1"):
            status, head = f.call("GET", "/%2Fa?b=%20", Host="%s-%s.dom.example" % (name, rid), Cookie="c=d")
            equal((status, head.split(b"\r\n")[0]), (200, b"GET /%2Fa?b=%20 HTTP/1.1"), name)
            equal(f.key.encode() in head, False, "the key of the service")
            equal(f.head.get_all("Set-Cookie"), ["a=b; Domain=%s-%s.dom.example" % (name, rid)], "its own cookies")
            equal(len(f.head["X-Long"]), 30000, "a long head of an answer")
        status, head = f.call("GET", "/x", X_Sandbox_ID=rid, X_Sandbox_Port=str(port))
        equal((status, b"X-Sandbox" in head), (200, False))
        for wrong in ("22", "0", str(f.port), "x", "1;2"):
            equal(f.call("GET", "/x", X_Sandbox_ID=rid, X_Sandbox_Port=wrong)[0], 404, wrong)
        with socket.create_connection(("127.0.0.1", f.port), PATIENCE) as s:
            s.sendall(("GET /ws HTTP/1.1\r\nHost: %d-%s.dom.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       "\r\n" % (port, rid)).encode())
            head = b""
            while b"\r\n\r\n" not in head:
                head += s.recv(4096)
            equal(head.split(b"\r\n")[0], b"HTTP/1.1 101 Switching Protocols")
            s.sendall(b"abc")
            equal(s.recv(100), b"cba", "both ways")
        equal(f.call("GET", "/%s/alive" % ("0" * 32))[0], 404)
        equal(f.call("GET", "/alive", key="", Host="%s.dom.example" % rid)[1], {"status": "ok"}, "the server's name")
        f.call("POST", "/stop", {"runtime_id": rid})
        equal(f.call("GET", "/%s/alive" % rid)[0], 409, "stopped")


def editor():
    """VS Code of a sandbox at the address that its clients make of the sandbox's own."""
    f = Fleet("--domain", "dom.example")
    f.env["HANDRAIL_VSCODE_SERVER"] = f.path("server")
    f.env["RUNTIME_USERNAME"] = pwd.getpwuid(os.geteuid()).pw_name  # the plugin serves no other ordinary user
    with open(f.path("server"), "w") as out:
        out.write('#!/bin/sh\nexec python3 "%s" "%s" "$@"\n' % (STAND_IN, f.path("seen")))
    os.chmod(f.path("server"), 0o755)
    with f:
        o = f.up("s", command=["a", "--plugins", "vscode", "--username", "me"])
        rid, key = o["runtime_id"], {"key": "", "X_Session_API_Key": o["session_api_key"]}
        f.until(lambda: f.call("GET", "/%s/ready" % rid, **key)[1]["components"]["plugins"]["vscode"]["state"],
                lambda state: state == "ready")
        token = f.call("GET", "/%s/vscode/connection_token" % rid, **key)[1]["token"]
        equal(f.call("GET", "/%s/vscode?tkn=%s&folder=/w" % (rid, token), key="")[0], 301)
        equal(f.head["Location"], "vscode/?tkn=%s&folder=/w" % token)
        equal(f.call("GET", "/%s/vscode/?tkn=%s&folder=/w" % (rid, token), key="")[0], 302)
        cookie = {"key": "", "Cookie": f.head["Set-Cookie"]}
        for path, before, more in (("/%s/vscode/a" % rid, "/%s/vscode" % rid, {}),
                                   ("/%s/vscode/a" % rid, "/op/%s/vscode" % rid, {"X_Forwarded_Prefix": "/op"}),
                                   ("/vscode/a", "/vscode", {"Host": "%s.dom.example" % rid}),
                                   ("/vscode/a", "/vscode", {"X_Sandbox_ID": rid})):
            status, seen = f.call("GET", path, **cookie, **more)
            equal((status, seen["path"], seen["headers"]["x-forwarded-prefix"]), (200, "/a", before), more)


def many_at_once():
    """Requests wait for the service: nginx is refused by a list of those that is full, and says 503."""
    with Fleet() as f:
        os.kill(f.process.pid, signal.SIGSTOP)
        waiting = []
        try:
            for _ in range(700):
                s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                waiting.append(s)
                s.connect(os.path.join(f.dir, "run", "fleet.sock"))
        finally:
            os.kill(f.process.pid, signal.SIGCONT)
            for s in waiting:
                s.close()
        equal(f.call("GET", "/list"), (200, {"runtimes": []}))


def sample_site():
    """The site of the examples, with TLS and a certificate for all names, in another nginx before the service."""
    domain = "fleet.example.org"
    with Fleet("--domain", domain) as f:
        o = f.up("s")
        ca = Authority(f.top, "ca")
        pem, key = ca.make("site", 1, names="DNS:%s,DNS:*.%s" % (domain, domain))
        for part in ("http", "server", "routes"):
            with open(f.path("tmp", part), "w") as out:
                subprocess.run([f.env["HANDRAIL_FLEETD"], "--state-dir", f.dir, "--domain", domain, "--print-nginx",
                                part], check=True, stdout=out, env=f.env)
        with open(os.path.join(SRC, "conf", "handrail-fleet.nginx")) as sample:
            site = sample.read()
        for old, new in (("/etc/nginx/handrail-fleet-", f.path("tmp", "")), (".conf;", ";"),
                         ("/etc/ssl/certs/%s.pem" % domain, pem), ("/etc/ssl/private/%s.key" % domain, key),
                         ("listen 80;", "listen unix:%s;" % f.path("tmp", "plain")),
                         ("listen 443 ", "listen unix:%s " % f.path("tmp", "tls"))):
            equal(old in site, True, old)
            site = site.replace(old, new)
        temporary = "".join("%s_temp_path %s;\n" % (kind, f.path("tmp", kind)) for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(f.path("tmp", "nginx.conf"), "w") as out:
            out.write("%sdaemon off; pid %s; error_log stderr;\nevents { }\nhttp {\naccess_log off;\n"
                      "server_names_hash_bucket_size 128;\n%s%s}\n" % (
                          "user nobody nogroup;\n" if os.getuid() == 0 else "", f.path("tmp", "pid"), temporary, site))
        nginx = [find_program("nginx"), "-e", "stderr", "-c", f.path("tmp", "nginx.conf")]
        checked = subprocess.run(nginx + ["-t"], stderr=subprocess.PIPE, universal_newlines=True)
        equal(checked.returncode, 0, checked.stderr)
        server = subprocess.Popen(nginx)
        try:
            def ask(host, path, **headers):
                context = ssl.create_default_context(cafile=ca.pem)
                context.set_alpn_protocols(["h2", "http/1.1"])
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(PATIENCE)
                    s.connect(f.path("tmp", "tls"))
                    with context.wrap_socket(s, server_hostname=host) as t:
                        equal(t.selected_alpn_protocol(), "http/1.1")
                        head = "".join("%s: %s\r\n" % (k.replace("_", "-"), v) for k, v in headers.items())
                        t.sendall(("GET %s HTTP/1.0\r\nHost: %s\r\n%s\r\n" % (path, host, head)).encode())
                        r = http.client.HTTPResponse(t)
                        r.begin()
                        return r.status, json.loads(r.read())

            def until_there():
                try:
                    return ask(domain, "/alive")
                except OSError:
                    return None

            equal(f.until(until_there, lambda a: a is not None), (200, {"status": "ok"}))
            equal(ask(domain, "/runtime/" + o["runtime_id"], X_API_Key=f.key)[1]["url"],
                  "https://%s/%s" % (domain, o["runtime_id"]), "as the client came")
            equal(ask("%s.%s" % (o["runtime_id"], domain), "/alive"), (200, {"status": "ok"}), "the sandbox's name")
            equal(ask("%s.%s" % ("0" * 32, domain), "/list", X_API_Key=f.key)[0], 404, "a name is no way to the API")
        finally:
            server.terminate()
            server.wait()


def settings_of_a_back_end():
    """--set knows the settings of the back-end of --kind, wherever that stands."""
    with Fleet() as f:
        for words, status in ((("--kind", "box", "--set", "box.root=/"), 0),
                              (("--set", "box.root=/", "--kind", "box"), 0),
                              (("--set", "box.root=/", "--kind", "docker"), 2), (("--set", "box.root=/"), 2)):
            done = subprocess.run([f.env["HANDRAIL_FLEETD"], "--state-dir", f.dir, "--print-nginx", "http", *words],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, env=f.env)
            equal((done.returncode, 'no setting "box.root"' in done.stderr), (status, status == 2), (words, done))


def names_in_urls():
    """What clients are told by name leads to the server; the V1 SDK takes no path."""
    with Fleet("--domain", "dom.example", "--url-by-name") as f:
        o = f.up("s")
        name = "%s.dom.example:%d" % (o["runtime_id"], f.port)
        equal(o["url"], "http://" + name)
        equal(f.call("GET", "/health", key="", Host=name)[1], {"status": "ok"})
        status, answer = f.call("POST", "/execute_action", {"action": {"action": "run", "args": {"command": "echo a"}}},
                                key="", Host=name, X_Session_API_Key=o["session_api_key"])
        equal((status, answer["content"]), (200, "a"))
        equal(f.call("GET", "/list", Host=name)[0] in (403, 404), True, "not our own call")


def one_that_dies():
    """It is told of, with why, and not replaced but by a start."""
    with Fleet() as f:
        o = f.up("s")
        with open(f.path("fleet", "sandboxes", o["runtime_id"] + ".json")) as record:
            os.kill(json.load(record)["backend"]["pid"], signal.SIGKILL)
        s = f.until(lambda: f.call("GET", "/sessions/s")[1], lambda s: s["state"] != "running")
        equal((s["status"], s["pod_status"], s["reason"]), ("error", "failed", "exited"))
        equal(f.up("s")["runtime_id"] == o["runtime_id"], False, "another one")
    # what the killed server left, its nginx among it, was ended with it or is ended here
        f.end_orphans(o["runtime_id"])


def one_half_cleared_away():
    """Whoever cleared it away was killed when the record was gone: the rest goes with the next one who does."""
    with Fleet() as f:
        o = f.up("s")
        record = f.path("fleet", "sandboxes", o["runtime_id"] + ".json")
        with open(record) as text:
            pid = json.load(text)["backend"]["pid"]
        os.unlink(record)
        os.kill(pid, signal.SIGKILL)
        equal(f.call("POST", "/stop", {"runtime_id": o["runtime_id"]})[0], 200)
        f.until(lambda: f.call("GET", "/sessions/s")[1], lambda s: s["state"] == "stopped")
        equal(os.listdir(f.path("fleet", "sandboxes")), [])
        f.end_orphans(o["runtime_id"])


def home_of_a_start_that_was_killed():
    """A home directory without a record, which a helper that was killed has made, does not keep the service from
    starting."""
    with Fleet() as f:
        f.kill()
        left = f.path("fleet", "sandboxes", "0123456789abcdef" * 2 + ".own")
        os.makedirs(os.path.join(left, ".cache"))
        f.start()
        equal(os.path.exists(left), False)


def idle():
    """A command that runs is activity; after it the sandbox is to be paused (which this kind cannot)."""
    with Fleet("--idle-pause", "1") as f:
        o = f.up("s")
        # it may take more than the second of idleness until it begins
        begin, end = map(int, f.run(o, "date +%s; sleep 3.5; date +%s").split())
        events = [e for e in f.call("GET", "/sessions/s")[1]["events"]
                  if e["what"] == "pausing" and begin < e["time"] < end]
        equal(events, [], "not while a command runs")
        f.until(lambda: f.call("GET", "/sessions/s")[1],
                lambda s: ("pausing", "idle") in [(e["what"], e["detail"]) for e in s["events"]])


def open_stream():
    """A sandbox is not idle as long as a request to it lasts, whatever that asks."""
    with Fleet("--idle-pause", "1") as f:
        o = f.up("s")
        c = http.client.HTTPConnection("127.0.0.1", f.port, timeout=PATIENCE)
        c.request("GET", "/%s/handrail/v1/events" % o["runtime_id"], headers={
            "X-Session-API-Key": o["session_api_key"], "Accept": "text/event-stream"})
        stream = c.getresponse()
        equal(stream.status, 200)

        def its():
            return f.call("GET", "/runtime/" + o["runtime_id"])[1]

        def later(seconds):
            begin = its()["active"]
            return f.until(its, lambda s: s["active"] > begin + seconds)["events"]

        def pauses(events):
            return [e["id"] for e in events if e["what"] == "pausing"]

        # each time that it is looked at it counts as used; a first look may have begun before the stream
        before = pauses(later(1))
        equal(pauses(later(3)), before)
        stream.close()
        c.close()
        f.until(its, lambda s: pauses(s["events"]) != before)


def held_without_a_key():
    """A connection that is held open without the sandbox's key keeps it from nothing."""
    with Fleet("--idle-pause", "1") as f:
        o = f.up("s")
        port = int(f.run(o, "echo $APP_PORT_1"))
        silent = socket.socket()
        silent.bind(("127.0.0.1", port))  # an application that never answers
        silent.listen()
        held = []
        for request in ("POST /%s/alive HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nx" % o["runtime_id"],
                        "GET /x HTTP/1.1\r\nHost: h\r\nX-Sandbox-ID: %s\r\nX-Sandbox-Port: %d\r\n\r\n" % (
                            o["runtime_id"], port)):
            held.append(socket.create_connection(("127.0.0.1", f.port), PATIENCE))
            held[-1].sendall(request.encode())
        silent.settimeout(PATIENCE)
        held += [silent.accept()[0], silent]

        def pauses():
            return [e["id"] for e in f.call("GET", "/sessions/s")[1]["events"] if e["what"] == "pausing"]

        # a first one may have begun before
        before = pauses()
        f.until(pauses, lambda now: len(now) >= len(before) + 2)
        held[1].setblocking(False)
        try:
            equal(held[1].recv(1), "nothing: it is still held")
        except BlockingIOError:
            pass
        for c in held:
            c.close()


def no_rights():
    """The message names the option, where the account may not make the directory of the fleet."""
    need_entrance()
    closed = tempfile.mkdtemp(prefix="e2e-fleet-")
    try:
        os.chmod(closed, 0o555)
        done = subprocess.run([os.path.join(BUILD, "handrail-fleetd"), "--init", "--state-dir", closed + "/fleet"],
                              user="nobody" if ROOT else None, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=PATIENCE)
        equal((done.returncode, "Permission denied; choose a directory of yours with --state-dir" in done.stderr),
              (1, True), done.stderr)
    finally:
        os.rmdir(closed)


def one_service():
    with Fleet() as f:
        p = f.spawn()
        equal(("another process serves" in p.communicate(timeout=PATIENCE)[1], p.returncode), (True, 1), "a second one")
        p = f.spawn("--log-level", "loud")
        equal((p.communicate(timeout=PATIENCE)[1], p.returncode),
              ("handrail-fleetd: --log-level must be error, warning, notice, info or debug\n", 2))
        nginx = [pid for pid in process.all_pids() if f.dir + "/run/nginx.conf" in process.command_line(pid)]
        equal(len(nginx), 1, "nginx")

        def group():
            return [pid for pid in process.all_pids() if not process.has_ended(pid) and
                    (process.stat_fields(pid) or [b""] * 3)[2] == b"%d" % nginx[0]]

        equal(len(group()) > 1, True, "its workers")
        held = [n for n in os.listdir("/proc/%d/fd" % nginx[0])
                if os.readlink("/proc/%d/fd/%s" % (nginx[0], n)).endswith("/run/nginx.lock")]
        equal(len(held), 1, "which have the lock from it")
        with open("/proc/%d/fdinfo/%s" % (nginx[0], held[0])) as info:
            flags = int(re.search("flags:\\s+([0-7]+)", info.read()).group(1), 8)
        equal(flags & os.O_ACCMODE, os.O_RDONLY, "and cannot write whom the next service ends")
        os.kill(nginx[0], signal.SIGKILL)
        f.until(group, lambda left: left == [])  # they would answer beside those of the next one
        f.until_answered()
        # both at once, as when the machine's memory is out: nobody is there to end the workers
        nginx = [pid for pid in process.all_pids() if f.dir + "/run/nginx.conf" in process.command_line(pid)]
        f.process.send_signal(signal.SIGSTOP)
        os.kill(nginx[0], signal.SIGKILL)
        f.kill()
        equal(len(group()) > 1, True, "its workers live on")
        f.start()
        equal(group(), [], "until the next one begins")


def named():
    """An address by its name, which a root that nobody has set up does not know."""
    try:
        socket.getaddrinfo("localhost", None)
        return ("localhost:%d",)
    except socket.gaierror as e:
        print("# localhost is not tried: %s; /etc/hosts has it on most machines" % e)
        return ()


def doctor():
    """What is missing is said, with what mends it; the exit status tells whether anything is."""
    with Fleet() as f:
        def look(*options, directory=f.dir, listen=f.port):
            done = f("fleet", "doctor", "--state-dir", directory, "--kind", "local", "--listen",
                     listen if isinstance(listen, str) else "127.0.0.1:%d" % listen, *options)
            lines = [line.split(None, 1) for line in done.stdout.splitlines()]
            bad = [text for ok, text in lines if ok == "BAD" and not text.startswith("open files")]
            equal(done.returncode, 1 if any(ok == "BAD" for ok, _ in lines) else 0, done.stdout + done.stderr)
            return bad, " ".join(" ".join(line) for line in lines)

        bad, said = look()
        equal((bad, "a service has it" in said, "answers" in said), ([], True, True), said)
        for listen in ("%d", "*:%d", "0.0.0.0:%d") + named():
            equal(look(listen=listen % f.port)[0], [], listen)
        equal("is not the address of the running service" in look(listen=free_port())[0][0], True)
        f.kill()
        by_path = "unix:" + f.path("tmp", "listen")
        bad, said = look(listen=by_path)
        equal((bad, "a service has it" in said), ([], False), said)
        with f.spawn("--listen", by_path) as p:
            for line in p.stderr:
                if "ready: listening" in line:
                    break
            bad, said = look(listen=by_path)
            equal((bad, "answers" in said), ([], True), said)
            p.terminate()
            p.communicate()
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(by_path[5:])
        equal("rm " + by_path[5:] in look(listen=by_path)[0][0], True)
        os.unlink(by_path[5:])
        f.ok("fleet", "-q", "init", f.path("other"))  # and nginx has gone
        with socket.create_server(("127.0.0.1", 0)) as s:
            bad, said = look(directory=f.path("other"), listen=s.getsockname()[1])
            equal((len(bad), "another program listens" in bad[0]), (1, True), said)
        bad, said = look(directory=f.path("other"), listen=free_port())
        equal((bad, "no service has it" in said, "1 of operators" in said), ([], True, True), said)
        db = sqlite3.connect(f.path("other", "fleet.db"))
        db.execute("UPDATE keys SET revoked = 1")
        db.commit()
        equal("handrail fleet init" in look(directory=f.path("other"), listen=free_port())[0][0], True)
        db.execute("PRAGMA user_version = 99")
        db.close()
        bad, said = look("--no-nginx", "--socket-group", "nobody-of-this-name", "--max-factors", "1000000",
                         "--memory-mb", "1000000", directory=f.path("other"))
        # no ordinary user's nginx reads Debian's configuration, since it opens its pid file and its log
        nginx = "--print-nginx" if os.geteuid() == 0 else "nginx -T prints why"
        for text in ("version 99", nginx, "groupadd", "reduce --max-factors or --memory-mb"):
            equal(len([line for line in bad if text in line]) > 0, True, text + ": " + said)
        os.chmod(f.path("other"), 0o777)
        for directory, text in ((f.path("other"), "chmod go-w"), (f.path("none"), "handrail fleet init")):
            bad, said = look("--domain", "Bad", directory=directory, listen=free_port())
            equal((text in bad[0], "is not a domain" in said), (True, True), said)
        equal(f("fleet", "doctor", "--nonsense").returncode, 2)


def full_disk():
    """What cannot be written down is refused and not begun; what runs goes on; later all is well again."""
    if os.getuid() != 0:
        raise Skip("needs root: it mounts a small file system")
    f = Fleet()
    kept = f.path("kept")
    shutil.copytree(f.dir, kept)
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=711", "none", f.dir], stderr=subprocess.PIPE,
                       universal_newlines=True)
    if r.returncode != 0:
        shutil.rmtree(f.top)
        raise Skip("no file system may be mounted here: " + r.stderr.strip())
    try:
        shutil.copytree(kept, f.dir, dirs_exist_ok=True)
        os.chmod(f.dir, 0o711)
        with f:
            o = f.up("a")
            with open(os.path.join(f.dir, "fill"), "wb", buffering=0) as fill:
                try:
                    while fill.write(b"x" * 4096) > 0:
                        pass
                except OSError:
                    pass
            for n in range(3):
                equal((f.call("POST", "/start", {"session_id": "b"})[0], f.head["Retry-After"]), (503, "2"))
            equal(f.call("POST", "/handrail/v1/keys", {"name": "x"})[0], 503)
            equal(f.run(o, "echo it goes on"), "it goes on")
            equal([s["session_id"] for s in f.sandboxes()], ["a"])
            equal([a["alert"] for a in f.call("GET", "/handrail/v1/alerts")[1]["alerts"]], ["store"])
            os.unlink(os.path.join(f.dir, "fill"))
            f.up("b")
            told = f.call("GET", "/handrail/v1/alerts")[1]
            equal((told["alerts"], [a["state"] for a in told["history"]]), ([], ["firing", "resolved"]))
            f.kill()
            f.start()
            equal(sorted((s["session_id"], s["state"]) for s in f.sandboxes()), [("a", "running"), ("b", "running")])
    finally:
        subprocess.run(["umount", "-l", f.dir], check=True)
        shutil.rmtree(f.top, ignore_errors=True)


def pool():
    """One that waits is what a start is given, with its environment; a drain and the pool outlive the service."""
    with Fleet() as f:
        def warm():
            return f.call("GET", "/handrail/v1/pools")[1]["pools"]

        f.ok("fleet", "pools", "set", "p", "1", "-i", "some:1")
        waiting = f.until(f.sandboxes, lambda all: [s["state"] for s in all] == ["warm"])[0]
        equal(f.call("GET", "/list")[1]["runtimes"], [], "nobody's")
        equal(f.call("GET", "/runtime/" + waiting["runtime_id"])[0], 404)
        equal(f.call("GET", "/%s/alive" % waiting["runtime_id"], key="")[0], 404, "and no way to it")
        o = f.up("s", image="some:1", environment={"A_B": "it's \"$HOME\" `x`"})
        equal(o["runtime_id"], waiting["runtime_id"])
        equal(f.run(o, 'echo "$A_B"'), "it's \"$HOME\" `x`")
        f.until(warm, lambda all: all[0]["warm"] == 1)
        metrics = f.call("GET", "/metrics")[1].decode()
        for line in ('creations_total{outcome="ok",path="warm"} 1', 'phase_seconds_count{phase="claim"} 1',
                     'phase_seconds_bucket{phase="create",le="+Inf"} 2', 'phase_seconds_count{phase="queue"} 3',
                     'phase_seconds_count{phase="stop"} 0', 'sandboxes{state="warm"} 1'):
            equal("handrail_fleet_%s\n" % line in metrics, True, line + " is not in " + metrics)
        samples(metrics)
        equal(o["runtime_id"] in metrics, False, "nothing is told of a sandbox")
        f.ok("fleet", "drain")
        f.kill()
        f.start()
        equal(f.call("POST", "/start", {"session_id": "t", "image": "some:1"})[0], 503, "still drained")
        f.ok("fleet", "drain", "off")
        equal(f.run(o, 'echo "$A_B"'), "it's \"$HOME\" `x`", "the claimed one is as it was")
        equal("some:1" in f.ok("fleet", "pools"), True)
        metrics = f.call("GET", "/metrics")[1].decode()
        equal('creations_total{outcome="ok",path="cold"} 0' in metrics, True, metrics)
        f.fails(2, "a number", "fleet", "pools", "set", "p", "x")
        for wrong in ({"pools": 7}, {"pools": [{"name": "", "size": 1, "request": {}}]},
                      {"pools": [{"name": "p", "size": 1, "request": {"environment": {}}}]},
                      {"pools": [{"name": "p", "size": 1, "request": {}}, {"name": "q", "size": 1, "request": {}}]}):
            equal(f.call("POST", "/handrail/v1/pools", wrong)[0], 400, repr(wrong))
        # two who look at the same time: neither loses what the other one sets
        seen = f.call("GET", "/handrail/v1/pools")[1]
        ours = [{"name": p["name"], "size": p["size"], "request": p["request"]} for p in seen["pools"] if p["size"] > 0]
        f.ok("fleet", "pools", "set", "q", "1", "-i", "other:1")
        for more in ([], [{"name": "r", "size": 1, "request": {"image": "r:1"}}]):
            equal(f.call("POST", "/handrail/v1/pools", {"pools": ours + more, "version": seen["version"]})[0], 409)
        equal(sorted(p["name"] for p in warm()), ["p", "q"])
        equal(f.call("POST", "/handrail/v1/pools", {
            "pools": ours, "version": f.call("GET", "/handrail/v1/pools")[1]["version"]})[0], 200)
        f.ok("fleet", "pools", "rm", "p")
        f.until(warm, lambda all: all == [])


def main():
    process.become_subreaper()
    tap = Tap()
    for test in TESTS:
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


TESTS = [by_the_command, revoked, cannot_pause, batch, nulls_and_doubles, what_a_start_gives,
         wrong_requests, lists, hostile_sandbox, clients_that_vanish,
         slow_bodies, no_descriptors, keys_and_tenants, routes_of_the_document, tenants, events, routes,
         editor, many_at_once, sample_site, settings_of_a_back_end, names_in_urls, one_that_dies, one_half_cleared_away,
         home_of_a_start_that_was_killed, idle,
         open_stream, held_without_a_key, no_rights, one_service, doctor, full_disk, pool]

if __name__ == "__main__":
    sys.exit(main())
