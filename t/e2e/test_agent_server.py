#!/usr/bin/env python3
"""The plugin agent-server: the agent server of OpenHands V1 in a sandbox (doc/openhands.md, "An agent inside"). With
t/e2e/agent_server.py in the place of the server; t/real/run openhands_v1 runs the real one."""

import hashlib
import json
import os
import shutil
import socket
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.supervised import PATIENCE, SRCDIR, Server, kill_wait, run_tests, write_script  # noqa: E402
from lib.tap import equal  # noqa: E402

KEY = "a-key-that-nobody-guesses"


def install(top):
    """Makes a Python that has the stand-in, and returns its path."""
    at = os.path.join(top, "openhands", "agent_server")
    os.makedirs(at)
    for name in ("../__init__.py", "__init__.py"):
        open(os.path.join(at, name), "w").close()
    shutil.copy(os.path.join(SRCDIR, "t", "e2e", "agent_server.py"), os.path.join(at, "__main__.py"))
    with open(os.path.join(at, "api.py"), "w") as f:
        f.write("from openhands.agent_server.__main__ import api\n")
    write_script(top, "python", "PYTHONPATH=%s PYTHONDONTWRITEBYTECODE=1 exec python3 \"$@\"\n" % top)
    return os.path.join(top, "python")


class Agent(Server):
    def __init__(self, installed=True, env=None, settings=None, plugins=("--plugins", "agent-server"), key=KEY):
        super().__init__(env=dict({"SESSION_API_KEY": key} if key else {}, **(env or {})), ready=None,
                         args=["--listen", "127.0.0.1", *plugins],
                         settings=dict({"openhands_v1": True}, **(settings or {})))
        self.python = os.path.join(self.top, "code", "python")
        os.makedirs(os.path.dirname(self.python), exist_ok=True)
        self.env["HANDRAIL_AGENT_SERVER_PYTHON"] = self.python
        if installed:
            self.install()
        self.start()

    def install(self):
        os.chmod(self.top, 0o755)
        install(os.path.dirname(self.python))

    def ask(self, method, path, body=None, key=KEY, **headers):
        h = {"Content-Type": "application/json"} if body else {}
        if key:
            h["X-Session-API-Key"] = key
        h.update({k.replace("_", "-"): v for k, v in headers.items()})
        return self.request(method, path, body, h)

    def state(self):
        return self.ask("GET", "/ready").json()["components"]["plugins"]["agent-server"]


def frame(text):
    data = text.encode()
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
    return b"\x81" + size + b"\0\0\0\0" + data


class Socket:
    def __init__(self, s, target, *headers):
        self.c = socket.create_connection(("127.0.0.1", s.port), PATIENCE)
        self.c.settimeout(PATIENCE)
        self.c.sendall("\r\n".join(["GET %s HTTP/1.1" % target, "Host: x", "Upgrade: websocket", "Connection: Upgrade",
                                    "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                                    *headers, "", ""]).encode())
        self.f = self.c.makefile("rb")
        self.status = int(self.f.readline().split()[1])
        while self.f.readline() not in (b"\r\n", b""):
            pass

    def say(self, text):
        self.c.sendall(frame(text))
        return self

    def hear(self):
        head = self.f.read(2)
        return self.f.read(head[1]).decode() if head else None

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.f.close()
        self.c.close()


def first(s, key, target="/sockets/events/1"):
    """The answer to a WebSocket that sends the key in its first message."""
    with Socket(s, target) as w:
        equal(w.status, 101)
        return w.say(json.dumps({"type": "auth", "session_api_key": key})).hear()


def starts_at_the_first_request():
    with Agent() as s:
        equal(s.state(), {"state": "not started"})
        equal(s.ask("GET", "/server_info").status, 200)
        equal(s.ask("POST", "/api/bash/execute_bash_command", '{"command": "echo 1"}').json()["stdout"], "1\n")
        a = s.ask("GET", "/api/conversations/search", key=None)
        equal((a.status, a.json()), (401, {"detail": "Unauthorized"}))
        equal(s.ask("GET", "/api/conversations/search", key="x").status, 401)
        equal(s.state(), {"state": "not started"}, "these are handrail's own")
        seen = s.ask("POST", "/api/conversations/search?a=%20b", '{"a": 1}', X_Handrail_Checked="0").json()
        equal((seen["path"], seen["query"], seen["body"]), ("/api/conversations/search", "a=%20b", '{"a": 1}'))
        equal(s.state(), {"state": "ready"})
        equal(s.ask("GET", "/api/settings").json()["pid"], seen["pid"], "the same process")
        for path in ("/api/file/download-trajectory/x", "/api/git/repositories/search"):
            equal(s.ask("GET", path).json()["path"], path.split("?")[0])
        for path in ("/api/bash/nothing", "/api/file/nothing", "/api/git/nothing", "/api/file/archive/x"):
            equal(s.ask("GET", path).status, 404, "handrail's own")
        equal(s.ask("GET", "/api/file/archive?path=/", key="x").status, 401)
        equal(s.ask("GET", "/api/file/archive?path=/none").json(), {"detail": "Directory not found"})
        equal(s.ask("GET", "/alive").status, 200)


def keys_stay_away():
    env = {"OH_SESSION_API_KEYS": '["another"]', "OH_SESSION_API_KEYS_0": "other", "OH_X": "1",
           "OH_SECRET_KEY": "given", "LLM_API_KEY": "2", "OTHER": "3"}
    with Agent(env=env) as s:
        seen = s.ask("GET", "/api/tools/").json()
        names = set(seen["environ"])
        equal(names & {"OH_X", "LLM_API_KEY", "OTHER"}, {"OH_X", "LLM_API_KEY"})
        equal([n for n in names if "SESSION" in n or "SECRET" in n or n.startswith("HANDRAIL")], [])
        equal((seen["dumpable"], seen["secret"]), (0, len("given")))
        text = json.dumps(seen) + open("/proc/%d/cmdline" % seen["pid"]).read() + s.log()
        equal(KEY in text, False)
        equal(seen["environ"]["OH_CONVERSATIONS_PATH"], os.path.join(s.work_dir, "conversations"))
        equal(seen["argv"], ["agent-server", "--host", "127.0.0.1"])
        shell = s.ask("POST", "/api/bash/execute_bash_command", '{"command": "env"}').json()["stdout"]
        equal(("OH_X=1" in shell, "OH_SECRET" in shell, "OH_SESSION" in shell), (True, False, False))
    with Agent(env={"HANDRAIL_AGENT_SERVER_MODULES": "a.b,c"}) as s:
        seen = s.ask("GET", "/api/tools/").json()
        equal((seen["argv"][3:], seen["secret"]), (["--import-modules", "a.b,c"], 64))
        kill_wait(seen["pid"])
        s.until("another one", lambda: s.ask("GET", "/api/tools/").status == 200)
        equal(s.ask("GET", "/api/tools/").json()["pid"] != seen["pid"], True)


def sockets():
    with Agent() as s:
        equal(first(s, KEY), "open")
        equal(first(s, KEY + "x"), "refused")
        equal(first(s, None), "refused")
        equal(first(s, 5), "refused")
        equal(first(s, "\ud800"), "refused", "no character")
        for target, headers, want in (("/sockets/session?a=b&session_api_key=" + KEY, (), "open"),
                                      ("/sockets/session?session_api_key=x", (), "refused"),
                                      ("/sockets/events/x", ("X-Session-API-Key: " + KEY,), "open"),
                                      ("/sockets/events/x", ("X-Session-API-Key: x",), "refused"),
                                      ("/sockets/x?session_api_key=x", ("X-Handrail-Checked: 1",), "refused")):
            with Socket(s, target, *headers) as w:
                equal((w.status, w.hear()), (101, want), (target, headers))
                if want == "open":
                    equal(w.say("some text").hear(), "some text")
        for path in ("/sockets/x", "/api/conversations/../../sockets/x", "/sockets/..%2Fapi/settings"):
            equal(s.ask("GET", path, key=None, X_Handrail_Checked="1").status in (401, 404), True, path)
        with Socket(s, "/sockets/x?session_api_key=" + KEY) as w:
            equal(w.hear(), "open")
            pid = s.ask("GET", "/api/tools").json()["pid"]
            s.stop()  # an open WebSocket does not hold up the end
            equal(process.has_ended(pid), True)


def keys_of_a_fleet():
    """Behind a fleet the clients have another key, and its proxy adds the sum of that key."""
    other = "the-key-that-the-fleet-gives"
    digest = hashlib.sha256(other.encode()).hexdigest()
    ask = json.dumps({"type": "auth", "session_api_key": other})
    with Agent() as s:
        for front, want in ((KEY + " " + digest, "open"), ("x " + digest, "refused"), (" " + digest, "refused"),
                            (KEY + " " + digest.upper(), "refused"), (KEY, "refused")):
            with Socket(s, "/sockets/x", "X-Handrail-Front: " + front) as w:
                equal(w.say(ask).hear(), want, front)
            with Socket(s, "/sockets/x?session_api_key=" + other, "X-Handrail-Front: " + front) as w:
                equal(w.hear(), want, front)
        equal(first(s, other), "refused")
        with Socket(s, "/sockets/x", "X-Handrail-Front: %s %s" % (KEY, digest)) as w:
            equal(w.say(json.dumps({"type": "auth", "session_api_key": KEY})).hear(), "open", "the server's own key")


def through_a_fleet():
    python, top = None, tempfile.mkdtemp(prefix="agent-server-")
    process.become_subreaper()
    try:
        python = install(os.path.join(top, "code"))
        with Fleet(HANDRAIL_OPENHANDS_V1="true", HANDRAIL_AGENT_SERVER_PYTHON=python) as f:
            o = f.up("s", command="/usr/local/bin/openhands-agent-server --port 60000")
            other = f.up("t", command=["openhands-agent-server", "--port", "60000"])
            at, key = "/" + o["runtime_id"], o["session_api_key"]
            status, seen = f.call("GET", at + "/api/settings", X_Session_API_Key=key)
            equal((status, seen["path"], [h for h in seen["headers"] if "handrail" in h]), (200, "/api/settings", []))
            for given, want in ((key, "open"), (other["session_api_key"], "refused"), ("x", "refused")):
                equal(first(f, given, at + "/sockets/events/1"), want)
                with Socket(f, at + "/sockets/x?session_api_key=" + given, "X-Handrail-Front: x y") as w:
                    equal(w.hear(), want)
    finally:
        shutil.rmtree(top)


def pages_of_other_origins():
    """Without keys, no page in a browser on this machine reaches the agent."""
    with Agent(key=None, settings={"allow_unauthenticated": True}) as s:
        for origin, good in (("http://evil.example", False), ("null", False), ("http://localhost.evil.example", False),
                             ("http://localhost:3000", True), ("https://[::1]", True)):
            a = s.ask("POST", "/api/conversations", "{}", key=None, Origin=origin)
            equal(a.status, 200 if good else 403, origin)
            with Socket(s, "/sockets/x", "Origin: " + origin) as w:
                equal(w.status, 101 if good else 403, origin)
    with Agent() as s:
        equal(s.ask("POST", "/api/conversations", "{}", Origin="http://other.example").status, 200)


def allowed_pages():
    """nginx alone decides which pages may read an answer, and answers their question without the agent server."""
    one, evil = "https://one.example", "http://evil.example"
    with Agent(settings={"cors_origins": one}) as s:
        for origin, status in ((one, 200), (evil, 400)):
            a = s.ask("OPTIONS", "/api/conversations", key=None, Origin=origin, Access_Control_Request_Method="POST")
            equal(a.status, status, origin)
        equal(s.state(), {"state": "not started"})
        for origin in (one, evil):
            a = s.raw(b"GET /api/settings HTTP/1.0\r\nX-Session-API-Key: %s\r\nOrigin: %s\r\n\r\n" % (
                KEY.encode(), origin.encode())).decode()
            found = [x.split(": ")[1] for x in a.split("\r\n") if x.startswith("Access-Control-Allow-Origin")]
            equal((" 200 " in a, found), (True, [one] if origin == one else []), a)
    with Agent(key=None, settings={"allow_unauthenticated": True, "cors_origins": one}) as s:
        for origin, good in ((one, True), (evil, False)):
            for more in ({}, {"X_Handrail_Cors": "1"}):
                a = s.ask("POST", "/api/conversations", "{}", key=None, Origin=origin, **more)
                equal(a.status, 200 if good else 403, origin)
            with Socket(s, "/sockets/x", "Origin: " + origin) as w:
                equal(w.status, 101 if good else 403, origin)


def new_keys():
    with Agent(key=None, settings={"allow_unauthenticated": True}) as s:
        path = os.path.join(s.top, "keys")
        with Socket(s, "/sockets/x") as w:
            equal(w.hear(), "open", "no key is needed")
        pid = s.ask("GET", "/api/tools", key=None).json()["pid"]
        for keys in (["one", "two"], ["two"]):
            with open(path + ".new", "w") as f:
                f.write("\n".join(keys) + "\n")
            os.rename(path + ".new", path)
            s.write_settings(dict(openhands_v1=True, session_api_key_file=path))
            s.reload()
            s.until("the keys %s" % keys, lambda: [first(s, k) for k in ("one", "two", "")] == [
                "open" if k in keys else "refused" for k in ("one", "two", "")])
        equal(s.ask("GET", "/api/tools", key="two").json()["pid"], pid, "no restart")


def without_the_server():
    with Agent(installed=False) as s:
        for method, path in (("POST", "/api/conversations"), ("GET", "/api/settings")):
            a = s.ask(method, path, "{}" if method == "POST" else None)
            equal((a.status, list(a.json())), (501, ["detail"]), a)
            equal("is not installed in this sandbox" in a.json()["detail"], True, a)
        with Socket(s, "/sockets/events/1") as w:
            equal(w.status, 501)
        s.install()
        equal(s.ask("GET", "/api/settings").status, 501, "the last answer before the process ends")
        s.until("it is found", lambda: s.ask("GET", "/api/settings").status == 200)
    with Agent(env={"OH_STAND_IN": "broken"}) as s:
        equal(s.ask("GET", "/api/settings").status, 503)
        equal(s.state()["reason"], "RuntimeError: this one is broken")
        equal(s.ask("GET", "/server_info").status, 200)


def closed():
    with Agent(settings={"openhands_v1": False}) as s:
        equal([s.ask("GET", p).status for p in ("/api/conversations", "/sockets/x")], [404, 404])
        equal(s.state(), {"state": "not started"})
    with Agent(plugins=()) as s:
        a = s.ask("GET", "/api/conversations")
        equal((a.status, a.json()), (404, {"detail": "Not Found"}))


if __name__ == "__main__":
    run_tests([starts_at_the_first_request, keys_stay_away, sockets, keys_of_a_fleet, through_a_fleet,
               pages_of_other_origins, allowed_pages, new_keys, without_the_server, closed])
