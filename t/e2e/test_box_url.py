#!/usr/bin/env python3
"""The address for a browser that "handrail url" gives a box: who can use it, and that nothing is left of it.
As root each case is done twice, by root and by another account."""

import fcntl
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.hostbox import run  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
from lib.webdriver import Window  # noqa: E402
from lib.www import live, need_browser, screen_has  # noqa: E402

STRANGER = 54329  # of no account
HEAD_S = 10  # it waits for a head so long
REFUSED = "another name than 127.0.0.1 or localhost"


def url(h, *words):
    return json.loads(h.ok("url", "--json", *words))


def up(h, *words):
    h.env["HANDRAIL_WWWDIR"] = os.path.join(SRC, "www")
    h.ok("up", *words)
    return url(h)


def port_of(address):
    return urlsplit(address).port


def forwarder(h, name="forward"):
    """The record of one that runs."""
    with open(os.path.join(h.box()["dir"], name)) as f:
        return json.loads(f.readline())


def gone(h, box, *forwarders):
    found = h.left(box) + [f for f in forwarders if not process.wait_gone(f["pid"], PATIENCE)]
    for f in forwarders:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", f["port"])) == 0:
                found.append("somebody listens on port %d" % f["port"])
    equal(found, [])


def ask(port, method, path, body=None, **headers):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        a = c.getresponse()
        return a.status, a.read(), dict(a.getheaders())
    finally:
        c.close()


def act(port, key, command):
    body = json.dumps({"action": {"action": "run", "args": {"command": command}}})
    return ask(port, "POST", "/execute_action", body, Content_Type="application/json", X_Session_API_Key=key)


def raw(port, head):
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
        s.settimeout(PATIENCE)
        s.sendall(head)
        got = b""
        while True:
            chunk = s.recv(65536)
            if not chunk:
                return got.decode()
            got += chunk


def life(h):
    """It is the same one until the box ends; pause keeps it; nothing is left of it."""
    known = up(h)
    box, first = h.box(), forwarder(h)
    base = "http://127.0.0.1:%d" % first["port"]
    equal((known["server"], known["page"], known["vscode"]), (base, base + "/handrail/", None))
    equal(h.ok("url").splitlines(), ["server " + base, "page   %s/handrail/" % base])
    equal(forwarder(h), first, "one process")
    status, answer, _ = act(first["port"], known["key"], "echo from outside")
    equal((status, json.loads(answer)["content"]), (200, "from outside"))
    if h.uid == 0:
        h.ok("pause")
        equal(process.has_ended(first["pid"]), False)
        h.ok("resume")
        equal(act(first["port"], known["key"], "true")[0], 200)
    h.ok("down")
    gone(h, box, first)
    equal((os.listdir(h.path("state")), os.listdir(h.path("tmp")), os.listdir(h.path("run"))), ([], [], []))


def chosen_port(h):
    """The setting counts for a forwarder that starts, and a taken port is an error that changes nothing."""
    h.env["HANDRAIL_WWWDIR"] = os.path.join(SRC, "www")
    h.ok("up", "-q")
    h.fails(1, "box.port must be from 0 to 65535, not 65536", "url", "-s", "box.port=65536")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        done = h("url", "-s", "box.port=%d" % port)
        equal((done.returncode > 0, "listen on port %d of 127.0.0.1" % port in done.stderr), (True, True), done.stderr)
    equal(port_of(url(h, "-s", "box.port=%d" % port)["server"]), port)
    equal(port_of(url(h)["server"]), port, "it is found")
    equal(act(port, url(h)["key"], "true")[0], 200)
    h.ok("down")


def large(h):
    """Megabytes pass in both directions on one connection, and a stream that has no end."""
    known = up(h)
    port = port_of(known["server"])
    key = {"X-Session-API-Key": known["key"]}
    data = os.urandom(1 << 20) * 9
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    form = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="big"\r\n\r\n' + data + b"\r\n--b--\r\n")
    for _ in range(2):
        c.request("POST", "/upload_file?destination=/workspace", form,
                  dict(key, **{"Content-Type": "multipart/form-data; boundary=b"}))
        a = c.getresponse()
        equal((a.status, a.read() != b""), (200, True))
        c.request("GET", "/handrail/v1/download?path=/workspace/big", headers=key)
        a = c.getresponse()
        equal((a.status, a.read() == data), (200, True))
    c.request("GET", "/handrail/v1/output?follow=true", headers=key)
    a = c.getresponse()
    h.ok("run", "echo wo''rd")
    got = b""
    while b"\nword" not in got:
        got += a.read1(4096)
    c.close()


def strangers(h):
    """Without the key there is nothing but the page's own files, for other accounts as for programs of the box."""
    h.env["HANDRAIL_WWWDIR"] = os.path.join(SRC, "www")
    h.ok("up", "-s", "box.network=host")
    known = url(h)
    port = port_of(known["server"])
    paths = ("POST /execute_action", "GET /handrail/v1/session", "GET /handrail/v1/output", "GET /handrail/v1/download",
             "GET /list_files", "GET /download_files", "POST /upload_file", "GET /metrics", "POST /handrail/mcp",
             "GET /port/22/", "GET /vscode/connection_token", "POST /handrail/v1/signin")
    script = "; ".join("curl -s -o /dev/null -w '%%{http_code} ' -X %s http://127.0.0.1:%d%s"
                       % (p.split()[0], port, p.split()[1]) for p in paths)
    want = set("403 401 404 405".split())
    equal(set(h.ok("run", script).split()) <= want, True, "a program of the box")
    if os.geteuid() == 0:
        change = dict(user=STRANGER, group=STRANGER, extra_groups=[])
        got = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, universal_newlines=True, cwd="/",
                             check=True, **change).stdout.split()
        equal((len(got), set(got) <= want), (len(paths), True), got)
        for path in (os.path.join(h.box()["dir"], "forward"), h.box()["edge"] + "/http.sock"):
            equal(subprocess.run(["cat", path], stderr=subprocess.DEVNULL, cwd="/", **change).returncode, 1, path)
    equal(act(port, known["key"], "true")[0], 200)
    with open("/proc/%d/cmdline" % forwarder(h)["pid"]) as f, open("/proc/%d/environ" % forwarder(h)["pid"]) as e:
        equal(known["key"] in f.read() + e.read(), False)


def names(h):
    """A page of another name, which leads to 127.0.0.1, gets nothing, not even the page's files."""
    known = up(h)
    port = port_of(known["server"])
    get = "GET /handrail/ HTTP/1.1\r\nConnection: close\r\n"
    for good in ("127.0.0.1:%d", "localhost:%d", "LocalHost:%d ", "   127.0.0.1:%d"):
        equal(raw(port, (get + "Host:" + good % port + "\r\n\r\n").encode()).startswith("HTTP/1.1 200"), True, good)
    ours = "Host: 127.0.0.1:%d" % port
    for bad in ("Host: evil.example:%d" % port, "Host: 127.0.0.1", "Host: localhost", "Host: 127.0.0.1:%d" % (port + 1),
                "Host: 127.0.0.1:%d.evil.example" % port, "Host: x127.0.0.1:%d" % port, "Host:", "X: y",
                ours + "\r\n" + ours, ours + "\nHost: evil.example", "Host: evil.example\n" + ours,
                "Host : 127.0.0.1:%d" % port, " Host: 127.0.0.1:%d" % port):
        got = raw(port, (get + bad + "\r\n\r\n" + ours + "\r\n\r\n").encode())
        equal((got.split("\r\n")[0], REFUSED in got), ("HTTP/1.1 403 Forbidden", True), bad)
    equal(REFUSED in raw(port, b"\r\n" + (get + ours + "\r\n\r\n").encode()), True, "an empty line")
    equal(REFUSED in raw(port, b"GET / HTTP/1.1\r\nX: ".ljust(65536, b"x")), True, "a head without an end")
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:  # in pieces
        s.settimeout(PATIENCE)
        for byte in (get + ours + "\r\n\r\n").encode():
            s.sendall(bytes([byte]))
        equal(s.recv(12), b"HTTP/1.1 200")


def editor(h):
    """The editor has a port of its own, the same here and in the box: HTTP and WebSockets pass, with its token."""
    code = h.directory("code")
    h.file('#!/bin/sh\nenv python3 /mnt/e2e/vscode_server.py /tmp/seen "$@"\nexit $?\n', "code", "server")
    os.chmod(h.path("code", "server"), 0o755)
    volumes = "sandbox.volumes=%s:/mnt/code:ro,%s:/mnt/e2e:ro" % (code, os.path.join(SRC, "t/e2e"))
    known = up(h, "-p", "vscode", "-e", "HANDRAIL_VSCODE_SERVER=/mnt/code/server", "-s", volumes)
    h.ok("run", "until [ -e /tmp/seen ]; do :; done")
    while known["vscode"] is None:  # the token follows the line by which the plugin is ready
        known = url(h)
    at = urlsplit(known["vscode"])
    token = at.query.split("&")[0][4:]
    equal((at.hostname, at.port), ("127.0.0.1", h.box()["vscode_port"]))
    equal(ask(at.port, "GET", "/?tkn=" + token)[0], 302)
    equal(ask(at.port, "GET", "/")[0], 403, "without the token")
    status, _, headers = ask(port_of(known["server"]), "GET", "/vscode/?tkn=x", Accept="text/html")
    equal((status, headers["Location"]), (302, "http://127.0.0.1:%d/?tkn=x" % at.port), "the page's link")
    equal(ask(at.port, "GET", "/", Host="evil.example:%d" % at.port, Cookie="vscode-tkn=" + token)[0], 403)
    with socket.create_connection(("127.0.0.1", at.port), PATIENCE) as s:
        s.settimeout(PATIENCE)
        s.sendall(("GET /s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Key: x\r\nCookie: vscode-tkn=%s\r\n\r\n" % (at.netloc, token)).encode())
        with s.makefile("rb") as f:
            equal(f.readline(), b"HTTP/1.1 101 Switching Protocols\r\n")
            while f.readline() != b"\r\n":
                pass
            for data in (b"\x81\x05hello", os.urandom(300000)):
                s.sendall(data)
                equal(f.read(len(data)) == data, True, "%d bytes" % len(data))
    other, first = forwarder(h), forwarder(h, "forward.editor")
    os.kill(first["pid"], signal.SIGKILL)
    equal(process.wait_gone(first["pid"], PATIENCE), True)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", at.port))
        taken.listen()
        h.fails(1, "the way to the sandbox's editor: listen on port %d of 127.0.0.1: Address already" % at.port, "url")
    equal((url(h), forwarder(h)), (known, other))
    box, last = h.box(), forwarder(h, "forward.editor")
    h.ok("down")
    gone(h, box, other, last)


def ended(h):
    """It ends with the box; killed, it is started again."""
    known = up(h)
    box, first = h.box(), forwarder(h)
    os.kill(first["pid"], signal.SIGKILL)
    equal(process.wait_gone(first["pid"], PATIENCE), True)
    known = url(h)
    second = forwarder(h)
    equal(act(port_of(known["server"]), known["key"], "true")[0], 200)
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(second["pid"], PATIENCE), True, "nobody else ends it")
    h.fails(5, 'the box of sandbox "default" has ended', "url")
    h.ok("up", "-q")
    known = url(h)
    equal(act(port_of(known["server"]), known["key"], "true")[0], 200)
    third = forwarder(h)
    h.ok("down")
    gone(h, box, first, second, third)


def running(box):
    """The forwarders of that box, by the socket that they have open."""
    at = os.stat(box["edge"] + "/http.sock")
    found = []
    for pid in process.all_pids():
        try:
            st = os.stat("/proc/%d/fd/4" % pid)
        except OSError:
            continue
        if process.command_line(pid).split()[:2] == ["handrail-forward", "server"] and st.st_ino == at.st_ino:
            found.append(pid)
    return found


def interrupted(h):
    """Whenever "handrail url" is killed, the next one works, and there is one forwarder; none after "down"."""
    h.env["HANDRAIL_WWWDIR"] = os.path.join(SRC, "www")
    for i in range(10):
        h.ok("up", "-q")
        p = h.popen("url")
        try:
            p.wait(timeout=i * 0.003)
        except subprocess.TimeoutExpired:
            pass
        p.kill()
        p.communicate()
        both = [h.popen("url", "--json") for _ in range(2)]
        done = [p.communicate(timeout=PATIENCE) for p in both]
        equal([p.returncode for p in both], [0, 0], done)
        one, other = [json.loads(out) for out, _ in done]
        equal(one, other)
        equal(act(port_of(one["server"]), one["key"], "true")[0], 200)
        box, now = h.box(), forwarder(h)
        equal(running(box), [now["pid"]], "killed after %d ms" % (3 * i))
        h.ok("down")
        gone(h, box, now)


def held(h):
    """A process that holds the lock of a record, and does not go on, keeps no box from ending."""
    up(h)
    box, now = h.box(), forwarder(h)
    with open(os.path.join(box["dir"], "forward")) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        done = h("down")
    equal((done.returncode, "holds the lock of" in done.stderr), (0, True), done.stderr)
    gone(h, box, now)


def replaced(h):
    """The box's root puts a link in place of the server's socket: the forwarder leads to nobody else's socket."""
    if h.uid == 0:
        h.env["RUN_AS_OPENHANDS"] = "false"
    known = up(h)
    secret = h.path("cwd", "sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(secret)
        os.chown(secret, h.uid, -1)
        listener.listen()
        h.ok("run", "ln -sf %s /run/handrail/edge/http.sock" % secret)
        equal(act(port_of(known["server"]), known["key"], "true")[0], 200, "it leads to the server as before")
        h.fails(5, "a program in the sandbox has replaced it", "url")
        listener.setblocking(False)
        try:
            listener.accept()
            equal("accepted", "", "nobody connects")
        except BlockingIOError:
            pass
    box, now = h.box(), forwarder(h)
    h.ok("down")
    gone(h, box, now)


def many(h):
    """More connections than it carries wait, and are served when others end."""
    known = up(h)
    port = port_of(known["server"])
    idle = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(300)]
    for s in idle:
        s.close()
    equal(act(port, known["key"], "echo on")[0], 200)


def silent(h):
    """Connections that say nothing keep others out for 10 s at most, and a refusal needs no server."""
    known = up(h)
    port = port_of(known["server"])
    quiet = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(256)]
    try:
        equal(act(port, known["key"], "echo through")[0], 200)
    finally:
        for s in quiet:
            s.close()
    equal("403 Forbidden" in raw(port, b"GET / HTTP/1.1\r\nX: " + b"x" * 16384), True, "a long head")
    h.ok("down")


def others(h):
    """Silent connections of another account leave room for those of the owner, and for some of other accounts."""
    if os.geteuid() != 0:
        raise Skip("only root has another account")
    known = up(h)
    port = port_of(known["server"])
    script = ("import socket, sys\n"
              "kept = [socket.create_connection(('127.0.0.1', %d)) for _ in range(300)]\n"
              "print('open', flush=True)\n"
              "sys.stdin.read()" % port)
    p = subprocess.Popen(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
                         user=STRANGER, group=STRANGER, extra_groups=[], universal_newlines=True)
    try:
        equal(p.stdout.readline(), "open\n")
        quiet = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(150)]
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=HEAD_S / 2)
        c.request("GET", "/alive")
        equal(c.getresponse().status, 200)
        c.close()
        for s in quiet:
            s.close()
    finally:
        p.communicate("")
    change = dict(user=STRANGER, group=STRANGER, extra_groups=[])
    equal(subprocess.run(["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:%d/alive" % port], cwd="/",
                         **change).returncode, 0)
    h.ok("down")


def rights(h):
    """It has no more rights than it needs, root's as well, and descriptors for all connections."""
    h.env["HANDRAIL_WWWDIR"] = os.path.join(SRC, "www")
    h.ok("up", "-q")
    few = (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    p = h.popen("url", "--json", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
    known = json.loads(p.communicate()[0])
    with open("/proc/%d/status" % forwarder(h)["pid"]) as f:
        has = dict(line.rstrip().split(":", 1) for line in f)
    names = ["CapInh", "CapPrm", "CapEff", "CapAmb"] + (["CapBnd"] if h.uid == 0 else [])
    equal([int(has[n], 16) for n in names], [0] * len(names))
    equal((has["NoNewPrivs"].strip(), has["Groups"].strip()), ("1", ""))
    port = port_of(known["server"])
    idle = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(200)]
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=HEAD_S / 2)
    c.request("GET", "/alive")
    equal(c.getresponse().status, 200)
    for s in idle:
        s.close()
    h.ok("down")


def keyless(h):
    """No variable makes a server that asks for no key, which each account could use by the port."""
    h.env["SESSION_API_KEY"] = ""
    known = up(h, "-e", "SESSION_API_KEY=", "-s", 'sandbox.runtime_startup_env_vars={"SESSION_API_KEY": ""}')
    equal(len(known["key"]) >= 32, True, known)
    equal((act(port_of(known["server"]), "", "true")[0], act(port_of(known["server"]), known["key"], "true")[0]),
          (403, 200))


def in_a_browser(h):
    """The page signs in, shows the shell and types into it."""
    need_browser()
    known = up(h)
    with Window() as w:
        w.open(known["page"])
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", known["key"])
        w.click("button[type=submit]")
        live(w)
        h.ok("run", "echo se''en")
        screen_has(w, "seen")


sys.exit(run([life, chosen_port, large, strangers, names, editor, ended, interrupted, held, replaced, many, silent,
              others, rights, keyless, in_a_browser]))
