#!/usr/bin/env python3
"""handrail-fleetd with boxes: what clients get of them, that only the service's nginx reaches their sockets, and that
nothing is left of one. As root each case is done twice, by root and by another account."""

import contextlib
import http.client
import http.server
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet, free_port  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.hostbox import Boxes, groups, run  # noqa: E402
from lib.tap import equal  # noqa: E402
from lib.webdriver import KEYS, Window  # noqa: E402
from lib.www import complaints, need_browser  # noqa: E402

DOMAIN = "dom.example"
# accepts connections at port 50000, and answers each with its request
ECHO = """
import http.server
class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Set-Cookie", "a=b")
        self.end_headers()
        self.wfile.write((self.requestline + "\\n" + str(self.headers)).encode())
    def log_message(self, *unused): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 50000), Echo)
print("up", flush=True)
s.serve_forever()
"""
# accepts connections at port 50000, and answers none
SILENT = """
import socket
s = socket.create_server(("127.0.0.1", 50000), backlog=1000)
print("up", flush=True)
kept = []
while True:
    kept.append(s.accept())
"""
VISITORS = 256
# prints why it cannot connect to each path
CONNECT = ("import os, socket, sys\n"
           "for path in sys.argv[1:]:\n"
           "    try:\n"
           "        socket.socket(socket.AF_UNIX).connect(path)\n"
           "        print('connected')\n"
           "    except OSError as why: print(os.strerror(why.errno))\n")


class BoxFleet(Fleet, Boxes):
    """A service of the account `uid`."""

    def __init__(self, uid, *options):
        Fleet.__init__(self, *options, kind="box", uid=uid)
        self.env["RUNTIME"] = "remote"  # of the command
        self.ended = []

    def spawn(self, *options):
        return subprocess.Popen(self.words() + list(options), env=self.its_environment(), stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, universal_newlines=True, cwd="/", **self.change)

    def box(self, o):
        with open(self.path("fleet", "sandboxes", o["runtime_id"] + ".json")) as f:
            box = json.load(f)["backend"]
        self.ended.append(box)
        return box

    def socket(self, o):
        return self.path("fleet", "run", "sockets", o["runtime_id"])

    def state(self, o, key=None):
        return self.call("GET", "/runtime/" + o["runtime_id"], key=key)[1]["state"]

    def until_state(self, o, state, key=None):
        self.until(lambda: self.state(o, key), lambda s: s == state)

    def pause(self, o, key=None):
        equal(self.call("POST", "/pause", {"runtime_id": o["runtime_id"]}, key=key)[0], 200)
        self.until_state(o, "paused", key)

    def __exit__(self, *unused):
        for name in os.listdir(self.path("fleet", "sandboxes")):
            if name.endswith(".json"):
                with contextlib.suppress(FileNotFoundError):  # it ends now
                    self.box({"runtime_id": name[:-5]})
        Fleet.__exit__(self, *unused)
        equal(self.left(*self.ended), [])

    def settled(self):
        Fleet.settled(self)
        self.until(lambda: os.listdir(self.path("fleet", "run", "sockets")), lambda names: names == [])


def paused_here(f, o):
    """Whether this account can pause boxes."""
    return bool(groups(f.box(o)["name"]))


def life(uid):
    """By the command and by a client of the service."""
    with BoxFleet(uid) as f:
        f.ok("up", "-e", "GREETING=a b")
        equal(f.ok("run", "echo $GREETING; cat /proc/1/comm"), "a b\nhandraild\n")
        f.file("content\n", "cwd", "file")
        f.ok("put", "file", "/workspace/copied")
        f.ok("run", "cat /workspace/copied >/workspace/back; echo more >>/workspace/back")
        f.ok("get", "/workspace/back", "back")
        with open(f.path("cwd", "back")) as back:
            equal(back.read(), "content\nmore\n")
        f.ok("down", "-q")
        o, p = f.up("a", environment={"X": "a b"}), f.up("b")
        equal(f.run(o, "echo $X >/tmp/x; cat /tmp/x"), "a b")
        equal(f.run(p, "ls /tmp/x 2>&1; echo \"<$X>\"").splitlines()[-1], "<>", "each has files of its own")
        equal(f.call("GET", "/%s/alive" % o["runtime_id"], key="")[0], 200)
        status, answer = f.call("POST", "/%s/list_files" % o["runtime_id"], {}, key="", X_Session_API_Key="wrong")
        equal((status, answer), (403, {"detail": "Invalid API Key"}))
        equal("ready: listening" in f.call("GET", "/runtime/%s?logs=true" % o["runtime_id"])[1]["pod_logs"], True)
        os.kill(f.box(p)["pid"], signal.SIGKILL)
        f.until_state(p, "died")
        equal(f.run(f.up("b"), "echo again"), "again")


def rules(uid):
    """A client's rules for the network lead to public addresses alone, and the service's tokens are its own."""
    f = BoxFleet(uid)
    f.env["GITHUB_TOKEN"] = "of-the-service"
    with f:
        def start(session, network):
            return f.call("POST", "/start?wait=ready", {"session_id": session, "network": network})

        for network, why in (({"allowOut": ["10.0.0.0/8"]}, "allowOut 10.0.0.0/8"),
                             ({"dnsServers": ["1.1.1.1"]}, "dnsServers"),
                             ({"credentials": {"T": {"secret": "s", "hosts": ["a.test"]}}}, "credentials T"),
                             ({"rules": {"a.test": [{"transform": {"headers": {"X": "${secrets.s}"}}}]}},
                              "leave s out"),
                             ({"allowed": []}, "allowed"), ([], "object"), ({"denyOut": ["a.test"]}, "denyOut")):
            status, answer = start("bad", network)
            equal((status, why in answer["detail"]), (400, True), answer)
        status, o = start("good", {"allowOut": ["api.github.com", "127.0.0.1.example"]})
        equal(status, 200, o)
        equal(f.run(o, "echo ${GITHUB_TOKEN-none}; curl -s -m 60 https://refused.test/ || echo refused"),
              "none\nrefused")
    with BoxFleet(uid, "--set", "sandbox.network={\"allowOut\": [\"a.test\"]}", "--set",
                  "sandbox.security.network_mode=egress") as f:
        status, answer = f.call("POST", "/start", {"session_id": "a", "network": {}})
        equal((status, "the operator has set rules" in answer["detail"]), (400, True), answer)


@contextlib.contextmanager
def web():
    """A server of this machine, its port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served) as s:
        s.daemon_threads = True
        threading.Thread(target=s.serve_forever, daemon=True).start()
        yield s.server_address[1]
        s.shutdown()


class Served(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"here\n")

    def log_message(self, *unused):
        pass


def get(f, o, port):
    """What a box gets of that server by way of its broker's proxy, the one to a name of the outside's loopback."""
    return f.run(o, "curl -s -m 60 --socks5-hostname 127.0.0.1:1080 http://localhost:%d/ || echo refused" % port)


NETWORK = "/handrail/v1/network"


def reload(f, o, **rules):
    """What the broker of a box answers where somebody has written these rules into its file."""
    top = os.path.join(f.box(o)["dir"], "egress")
    with open(os.path.join(top, "policy.json"), "r+") as file:
        policy = dict(json.load(file), **rules)
        file.seek(0)
        json.dump(policy, file)
        file.truncate()
    fd = os.open(top, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(PATIENCE)
        s.connect("/proc/self/fd/%d/control" % fd)
        os.close(fd)
        s.sendall(b'{"op":"reload"}\n')
        return json.loads(s.makefile().readline())


def changed_rules(uid):
    """Rules are replaced while a sandbox runs or is paused, and are still in force after a kill of the service."""
    with BoxFleet(uid) as f, web() as port:
        here = ["localhost:%d" % port, "127.0.0.1:%d" % port]
        limit = {"allowOut": here + ["*.test"]}
        key, other = f.make_key("limited", network=limit), f.make_key("other")
        o = f.up("a", key)

        def rules():
            return f.call("GET", NETWORK + "?runtime_id=" + o["runtime_id"], key=key)[1]["network"]

        def change(by=key, **what):
            return f.call("POST", NETWORK, dict(what, runtime_id=o["runtime_id"]), key=by)

        equal(rules(), limit, "without rules of its own it has the key's")
        equal(get(f, o, port), "here")
        equal(change(network={}), (200, {"runtime_id": o["runtime_id"], "network": {}}))
        equal((rules(), get(f, o, port)), ({}, "refused"))
        events = f.call("GET", NETWORK + "/log?runtime_id=" + o["runtime_id"], key=key)[1]["events"]
        equal([(e["verdict"], e["name"], e["port"]) for e in events], [("deny", "localhost", port)])
        # nothing of these changes anything
        for body, status, why in (({"network": {"allowed": []}}, 400, "allowed"), ({"network": []}, 400, "object"),
                                  ({"network": {"allowOut": ["a.org"]}}, 403, "allowOut a.org"),
                                  ({"network": {"allowOut": ["a.test:22"]}}, 403, "allowOut a.test:22"),
                                  ({"network": {"allowOut": ["*.b.test", "127.0.0.0/8"]}}, 403, "127.0.0.0/8"),
                                  ({"network": {"dnsServers": ["127.0.0.1"]}}, 403, "dnsServers"),
                                  ({"allow": ["a.org"]}, 403, "allowOut a.org"), ({"allow": [1]}, 400, "strings"),
                                  ({"deny": ["x.test"]}, 400, "x.test"), ({}, 400, "runtime_id"),
                                  ({"network": {}, "allow": ["a.test"]}, 400, "runtime_id")):
            got, answer = change(**body)
            equal((got, why in answer["detail"]), (status, True), answer)
        equal([f.call("GET", path + "?runtime_id=" + o["runtime_id"], key=other)[0] for path in
               (NETWORK, NETWORK + "/log")] + [change(other, network={})[0]], [404, 404, 404])
        equal(rules(), {})
        # the broker itself holds the limit
        equal(reload(f, o, allowOut=["a.org"]), {"error": "network: allowOut a.org asks for more, at port 80, than the "
                                                          "limit allows"})
        equal((reload(f, o, allowOut=here), get(f, o, port)), ({"ok": True}, "here"))
        equal((change(network={})[0], get(f, o, port)), (200, "refused"))
        # a program of the box has the port
        f.run(o, "python3 -u -c 'import socket, time; s = socket.create_server((\"0.0.0.0\", 8443)); print(1); "
                 "time.sleep(1000)' >/tmp/up & until [ -s /tmp/up ]; do :; done")
        status, answer = change(network={"allowOut": ["a.test:8443"]})
        equal((status, "8443" in answer["detail"]), (403, True), answer)
        f.call("POST", "/handrail/v1/keys/network", {"id": 2, "network": dict(limit, ports=[80, 443, 8443])})
        status, answer = change(network={"allowOut": ["a.test:8443"]})
        equal((status, "8443" in answer["detail"], rules()), (400, True, {}), answer)
        f.call("POST", "/handrail/v1/keys/network", {"id": 2, "network": limit})
        # entries, by the operator's command
        f.ok("fleet", "net", o["runtime_id"], "allow", *here)
        equal((rules(), get(f, o, port)), ({"allowOut": here}, "here"))
        f.kill()
        f.start()
        equal((rules(), get(f, o, port)), ({"allowOut": here}, "here"))
        equal("localhost:%d" % port in f.ok("fleet", "net", o["runtime_id"]), True)
        f.ok("fleet", "net", o["runtime_id"], "deny", here[0])
        equal((rules(), get(f, o, port)), ({"allowOut": here[1:]}, "refused"))
        equal("refused proxy localhost:%d" % port in f.ok("fleet", "net", o["runtime_id"], "log"), True)
        f.file(json.dumps(limit), "cwd", "rules.json")
        f.ok("fleet", "net", o["runtime_id"], "set", "rules.json")
        equal((rules(), get(f, o, port)), (limit, "here"))
        if paused_here(f, o):
            f.pause(o, key)
            equal(change(network={})[0], 200)
            equal(f.state(o, key), "paused", "the change does not wake it")
            equal(get(f, o, port), "refused")
            f.pause(o, key)
            f.kill()
            f.start()
            equal((change(network=limit)[0], get(f, o, port)), (200, "here"))
        equal(f.call("POST", "/stop", {"runtime_id": o["runtime_id"]}, key=key)[0], 200)
        f.settled()
        equal(change(network={})[0], 409)
        # a sandbox without rules gets none
        o = f.up("plain", other)
        status, answer = f.call("POST", NETWORK, {"runtime_id": o["runtime_id"], "network": {}}, key=other)
        equal((status, "started without" in answer["detail"]), (400, True), answer)
        equal(f.call("GET", NETWORK + "?runtime_id=" + o["runtime_id"], key=other)[1]["network"], None)
        equal(f.call("GET", NETWORK + "/log?runtime_id=" + o["runtime_id"], key=other)[0], 501)


def limits_of_keys(uid):
    """No start of a limited key asks for more; a change of the limit holds for what comes after it."""
    with BoxFleet(uid) as f:
        f.file('{"allowOut": ["*.a.test"], "ports": [443]}', "cwd", "limit.json")
        key = f.ok("fleet", "keys", "make", "tenant", "--network", "limit.json").strip()
        f.secrets.append(key)
        number = [k for k in f.call("GET", "/handrail/v1/keys")[1]["keys"] if k["name"] == "tenant"][0]
        f.owners[number["id"]] = key
        equal(number["network"], {"allowOut": ["*.a.test"], "ports": [443]})
        equal("its network is limited" in f.ok("fleet", "keys"), True)

        def start(session, network):
            return f.call("POST", "/start?wait=ready", {"session_id": session, "network": network}, key=key)

        for network, why in (({"allowOut": ["a.test"]}, "allowOut a.test"), ({"allowInternetAccess": True}, "allowIn"),
                             ({"allowOut": ["x.a.test"]}, "at port 80"), ({"presets": ["pypi"]}, "preset pypi")):
            status, answer = start("a", network)
            equal((status, why in answer["detail"]), (403, True), answer)
        equal(f.sandboxes(), [])
        status, o = start("a", {"allowOut": ["x.a.test:443"]})
        equal((status, o["state"]), (200, "running"))
        # no limit of these kinds
        for network, why in (({"rules": {"a.test": [{}]}}, "rules"), ({"dnsServers": ["1.1.1.1"]}, "dnsServers"),
                             ({"nothing": 1}, "nothing"), ([], "object")):
            for path, body in (("keys", {"name": "wrong"}), ("keys/network", {"id": number["id"]})):
                status, answer = f.call("POST", "/handrail/v1/" + path, dict(body, network=network))
                equal((status, why in answer["detail"]), (400, True), answer)
        equal(f.call("POST", "/handrail/v1/keys/network", {"id": number["id"]})[0], 400)
        equal(f.call("POST", "/handrail/v1/keys/network", {"id": 999, "network": None})[0], 404)
        equal(f.call("POST", "/handrail/v1/keys/network", {"id": number["id"], "network": None}, key=key)[0], 403)
        f.file('{"allowOut": ["b.test"]}', "cwd", "limit.json")
        f.ok("fleet", "keys", "limit", str(number["id"]), "limit.json")
        equal(start("b", {"allowOut": ["x.a.test:443"]})[0], 403)
        f.ok("fleet", "keys", "limit", str(number["id"]), "none")
        equal(start("b", {"allowOut": ["x.a.test:443"]})[0], 200)
        equal(f.call("GET", "/handrail/v1/keys")[1]["keys"][1]["network"], None)
        f.ok("fleet", "keys", "limit", str(number["id"]), "limit.json")
        equal(f.sandboxes() != [], True, "those that run go on")
        # a service that has rules of its own cannot enforce a limit, and does not forget it
        f.options, options = ("--set", "sandbox.network={}", "--set", "sandbox.security.network_mode=egress"), f.options
        for more, wrong in ((f.options, True), (options, False)):
            f.options = more
            f.kill()
            f.start()
            status, answer = f.call("POST", "/start", {"session_id": "c"}, key=key)
            equal((status, "this service takes no rules" in repr(answer)), (400, True) if wrong else (200, False))
            equal(f.call("POST", "/handrail/v1/keys", {"name": "x", "network": {}})[0], 400 if wrong else 200)


def console(uid):
    """The console lists what a network refused; an operator allows it by a click, within the limit of the key."""
    need_browser()
    at = free_port()
    f = BoxFleet(uid, "--console", "127.0.0.1:%d" % at)
    f.env["HANDRAIL_WWWDIR"] = os.path.join(SRC, "www")
    with f, web() as port, Window() as w:
        here = ["localhost:%d" % port, "127.0.0.1:%d" % port]
        key = f.make_key("limited", network={"allowOut": here + ["b.test"]})
        o = f.up("boxed", key, network={"allowOut": here[1:], "rules": {"b.test": [{"methods": ["POST"]}]}})
        equal(get(f, o, port), "refused")
        f.run(o, "curl -s -m 60 http://beyond.test/; curl -s -m 60 'http://b.test/<img/src=x/onerror=document.hit=1>'")

        def sign_in(secret, look=False):
            w.open("http://127.0.0.1:%d/" % at)
            w.until("asks for the key", "return document.querySelector('#key')")
            if look:
                w.click("form input[type=checkbox]")
            w.type("#key", secret + KEYS["ENTER"])
            w.until("it is there", "return document.querySelector('.fleet tbody td.good')")
            w.js("document.querySelector('.fleet tbody .link').click()")
            w.until("refusals", "return document.querySelectorAll('.network li').length === 3")

        buttons = "return [...document.querySelectorAll('.network button')].map((b) => b.dataset.id)"
        for secret, look in ((key, False), (f.key, True)):
            sign_in(secret, look)
            equal(w.js(buttons), [], "not offered")
            w.click("header button:last-child")
        sign_in(f.key)
        equal(w.js(buttons), ["allow beyond.test:80", "allow " + here[0]])
        w.js("document.querySelector('.network button').click()")
        w.until("the limit", "return document.querySelector('[role=alert]').textContent.includes('asks for more')")
        w.js("document.querySelectorAll('.network button')[1].click()")
        w.until("it is allowed", "return document.querySelector('.network .good')?.textContent === 'allowed now'")
        equal(get(f, o, port), "here")
        equal(f.call("GET", NETWORK + "?runtime_id=" + o["runtime_id"])[1]["network"]["allowOut"], here[::-1])
        equal("onerror" in w.js("return document.querySelector('.network').textContent"), True)
        equal(w.js("return [document.hit || 0, document.querySelectorAll('img').length]"), [0, 0])
        equal([c for c in complaints(w) if "403" not in c], [])


def pause_and_resume(uid):
    """The shell and what runs in it stay; a request, a start and a resume end it."""
    with BoxFleet(uid) as f:
        o = f.up("s", environment={"X": "a b"})
        if not paused_here(f, o):
            f.call("POST", "/pause", {"runtime_id": o["runtime_id"]})
            events = f.until(lambda: f.call("GET", "/sessions/s")[1]["events"], lambda e: e[-1]["what"] == "running" and
                             len(e) > 2)
            equal("make a control group for it" in events[-1]["detail"], True, events)
            return
        equal(f.run(o, "cd /tmp; Y=7; echo $X"), "a b")
        for wake in (lambda: None, lambda: f.up("s"), lambda: f.call("POST", "/resume", o)):
            f.pause(o)
            equal(f.call("GET", "/handrail/v1/usage?runtime_id=" + o["runtime_id"])[0], 409)
            equal(f.state(o), "paused", "the question does not wake it")
            wake()
            equal(f.run(o, "echo $X $Y $PWD"), "a b 7 /tmp")
        f.pause(o)  # and so it is stopped


def new_keys(uid):
    """A resume by its client gives the sandbox another session key, also if its answer is lost. Nothing else does."""
    from lib.e2bfleet import E2b  # which imports this file
    from test_v1_sockets import Socket

    def known(f):
        o = f.call("GET", "/sessions/s")[1]
        f.secrets.append(o["session_api_key"])
        return o

    def resume(f, o):
        status, answer = f.call("POST", "/resume", {"runtime_id": o["runtime_id"]})
        equal(status, 200, answer)
        equal(answer["session_api_key"], known(f)["session_api_key"])
        return answer

    def opens(f, o):
        """Returns whether the key opens HTTP, a WebSocket, the first message of one, and the API of E2B."""
        key, at = o["session_api_key"], "/" + o["runtime_id"]
        found = [f.call("GET", at + "/api/bash/bash_events/search", key="", X_Session_API_Key=key)[0],
                 f.edge("GET", "/envs", {"sandboxID": o["runtime_id"]}, X_Access_Token=key)[0]]
        for target, first in (("?session_api_key=" + key, []), ("", [{"type": "auth", "session_api_key": key}])):
            with Socket(f.port, at + "/sockets/bash-events" + target) as w:
                found.append(False)
                with contextlib.suppress(OSError):  # it may have been closed already
                    for message in first + ["no JSON"]:
                        w.say(json.dumps(message))
                    found[-1] = w.hear() is not None
        return found

    def ask(f, o):
        with contextlib.suppress(OSError, http.client.HTTPException):
            f.call("POST", "/resume", {"runtime_id": o["runtime_id"]})

    command = "/usr/local/bin/openhands-agent-server --port 60000"
    with E2b(uid, "--resume-new-key") as f:
        first = f.up("s", command=command)
        if not paused_here(f, first):
            return
        good = opens(f, first)
        equal(good, [200, 200, True, True])
        # those who could not learn another key
        for wake in (lambda: f.run(first, "true"), lambda: f.up("s"), lambda: f.call(
                "POST", "/handrail/v1/sandboxes/resume", {"runtime_id": first["runtime_id"]})):
            f.pause(first)
            wake()
            f.until_state(first, "running")
            equal(known(f)["session_api_key"], first["session_api_key"])
        equal(resume(f, first)["session_api_key"], first["session_api_key"], "of one that runs")
        f.pause(first)
        second = resume(f, first)
        equal(second["session_api_key"] != first["session_api_key"], True)
        equal(opens(f, first)[0] in (401, 503), True, "at once")
        f.until_state(second, "running")
        equal(opens(f, first), [401, 401, False, False])
        equal(opens(f, second), good)
        o = f.create(timeout=600)
        path = "/sandboxes/" + o["sandboxID"]
        for call in ("/v2%s/connect" % path, path + "/resume"):
            equal(f.api("POST", path + "/pause")[0], 204)
            status, again = f.api("POST", call, {"timeout": 600})
            equal((status, again["envdAccessToken"]), (201, o["envdAccessToken"]), "of the E2B API")
        equal(f.api("DELETE", path)[0], 204)
        # kills of the service between the row and the answer, and before and after
        for when in (0, 0.002, 0.005, 0.01):
            f.pause(second)
            asked = threading.Thread(target=ask, args=(f, second))
            asked.start()
            asked.join(when)
            f.kill()
            f.start()
            now = known(f)
            again = resume(f, now)
            equal(opens(f, again), good)
            asked.join()
            equal(known(f)["session_api_key"], again["session_api_key"], "the present key stays the same")
            second = again


def pool(uid):
    with BoxFleet(uid) as f:
        f.ok("fleet", "pools", "set", "p", "1")
        waiting = f.until(f.sandboxes, lambda all: [s["state"] for s in all] == ["warm"])[0]
        o = f.up("s", environment={"A": "b c"})
        equal((o["runtime_id"], f.run(o, "echo $A")), (waiting["runtime_id"], "b c"))
        f.until(f.sandboxes, lambda all: sorted(s["state"] for s in all) == ["running", "warm"])


def limits(uid):
    """Those of a factor; where they cannot be enforced nothing starts."""
    with BoxFleet(uid, "--memory-mb", "200", "--cpu-percent", "50") as f:
        status, o = f.call("POST", "/start?wait=ready", {"session_id": "s", "resource_factor": 2})
        if uid != 0 and status == 409:
            equal("the limit of memory cannot be enforced" in o["detail"], True, o)
            return
        found = groups(f.box(o)["name"])
        values = set()
        for name in ("memory.limit_in_bytes", "memory.max", "cpu.cfs_quota_us", "cpu.max"):
            for path in (os.path.join(g, name) for g in found):
                if os.path.exists(path):
                    with open(path) as file:
                        values.add(file.read().split()[0])
        equal(values, {"419430400", "100000"})


def killed(uid):
    """The next service finds all of them, and what a start has begun that was killed."""
    with BoxFleet(uid) as f:
        o, p = f.up("s"), f.up("t")
        f.run(o, "Y=7")
        stays = "paused" if paused_here(f, p) else "running"
        if stays == "paused":
            f.pause(p)
        f.kill()
        f.start()
        equal((f.state(o), f.state(p)), ("running", stays))
        equal((f.run(o, "echo $Y"), f.run(p, "echo woken")), ("7", "woken"))
        # in the middle of a start
        id = f.call("POST", "/start", {"session_id": "u"})[1]["runtime_id"]
        f.until(lambda: os.listdir(f.path("fleet", "sandboxes")), lambda names: id + ".own" in names)
        f.kill()
        f.start()
        u = f.up("u")
        equal((u["runtime_id"], f.run(u, "echo on")), (id, "on"))
        # one that the store does not know, and a socket of none
        for name in ("f" * 32, "f" * 32 + ".envd"):
            with open(f.path("fleet", "run", "sockets", name), "w"):
                pass
        f.kill()
        f.start()
        equal(sorted(os.listdir(f.path("fleet", "run", "sockets"))),
              sorted(one["runtime_id"] + end for one in (o, p, u) for end in ("", ".envd")))


def other_directory(uid):
    """An nginx whose directory of sockets is missing, as that of an earlier release, or not the present one, is
    replaced by the service that is started after it, and by one that replaces another."""
    with BoxFleet(uid) as f:
        o = f.up("s")
        command = json.dumps({"action": {"action": "run", "args": {"command": "echo on"}}}).encode()

        def change():
            old, now = f.path("fleet", "run", "old"), f.path("fleet", "run", "sockets")
            os.rename(now, old)
            os.mkdir(now)
            os.chown(now, uid, uid)
            for name in os.listdir(old):
                os.rename(os.path.join(old, name), os.path.join(now, name))
            os.rmdir(old)

        def act():
            return f.call("POST", "/%s/execute_action" % o["runtime_id"], command, key="",
                          Content_Type="application/json", X_Session_API_Key=o["session_api_key"])[0]

        f.kill()
        change()
        f.start()
        equal(act(), 200)
        change()
        equal(act(), 502)
        f.process.send_signal(signal.SIGHUP)
        f.until(act, lambda status: status == 200)


def closed(uid):
    """No other account connects to a box's socket, nor does another box."""
    with BoxFleet(uid, "--set", "core.run_as_openhands=false") as f:
        o, p = f.up("s"), f.up("t")
        paths = [f.socket(o), f.box(o)["edge"] + "/http.sock", f.socket(o) + ".envd",
                 f.box(o)["edge"] + "/http.sock.envd"]
        words = ["/usr/bin/python3", "-c", CONNECT] + paths
        said = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd="/", **f.change).stdout
        equal(said, "connected\n" * 4, "its own account does")
        others = [54329, 65534] if os.geteuid() == 0 else []  # the second one is that of nginx
        for other in others:
            said = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd="/", user=other, group=other,
                                  extra_groups=[]).stdout
            equal(said, "Permission denied\n" * 4)
        command = "python3 -c \"$CONNECT\" %s /run/handrail/edge/http.sock" % " ".join(paths)
        equal(f.run(p, "export CONNECT='%s'; %s" % (CONNECT.replace("'", '"'), command)).splitlines(),
              ["No such file or directory"] * 4 + ["connected"])
        equal(f.run(p, "(exec 3<>/dev/tcp/127.0.0.1/%d) 2>&1 | grep -q refused && echo refused" % f.port), "refused")


def replaced(uid):
    """The box's root puts a link in place of the server's socket: nobody follows it."""
    with BoxFleet(uid, "--set", "core.run_as_openhands=false") as f, socket.socket(socket.AF_UNIX) as listener:
        secret = f.path("cwd", "sock")
        listener.bind(secret)
        os.chmod(secret, 0o666)
        listener.listen()
        listener.setblocking(False)
        o = f.up("s")
        f.run(o, "cd /run/handrail/edge && chmod 777 . && rm http.sock && ln -s %s http.sock" % secret)
        equal(f.run(o, "echo on"), "on", "the server is where it was")
        f.call("POST", "/pause", {"runtime_id": o["runtime_id"]})  # looks for the socket again
        f.until_state(o, "died")
        events = f.call("GET", "/sessions/s")[1]["events"]
        equal(["a program in the sandbox has replaced it" in e["detail"] for e in events].count(True), 1, events)
        with contextlib.suppress(BlockingIOError):
            equal(listener.accept(), None, "nobody connects")


def programs(uid):
    """A program of the box at a name of its own without a key, and at /ID/port/N/ with it."""
    with BoxFleet(uid, "--domain", DOMAIN) as f:
        o = f.up("s")
        hosts = f.call("GET", "/sessions/s")[1]["work_hosts"]
        equal(hosts, {"http://work-%d-%s.%s:%d" % (i, o["runtime_id"], DOMAIN, f.port): n
                      for i, n in ((1, 50000), (2, 55000))})
        f.run(o, "export ECHO='%s'; python3 -c \"$ECHO\" >/tmp/up & until test -s /tmp/up; do :; done" % ECHO)

        def ask(path, host=None, **headers):
            host = {"Host": "%s-%s.%s" % (host, o["runtime_id"], DOMAIN)} if host else {}
            return f.call("GET", path, key="", **host, **headers)

        for host in ("work-1", "50000"):
            status, said = ask("/a%2Fb//c?x=/../y", host, Cookie="c=d", X_Session_API_Key="any")
            said = said.decode()
            equal((status, said.splitlines()[0]), (200, "GET /a%2Fb//c?x=/../y HTTP/1.1"))
            equal(("Cookie: c=d" in said, re.findall("(?i)api-key|handrail-origin", said)), (True, []))
            equal(f.head["Set-Cookie"], "a=b", "it has an origin of its own")
        equal(ask("/", "work-2")[0], 503, "nothing listens there")
        for host in ("vscode", "0", "22", "30000"):
            equal(ask("/", host), (404, {"detail": "the sandbox has no such port"}))
        # the server's key, which the service adds, opens nothing else
        for path in ("/////../../../handrail/v1/session", "/////%2e%2e/%2E./.%2e/handrail/v1/session", "/x/..",
                     "/////..%2f..%2F..%2fhandrail/v1/session"):
            equal(ask(path, "work-1"), (400, {"detail": 'the path of a program must not have ".."'}), path)
        key = {"X_Session_API_Key": o["session_api_key"]}
        path = "/%s/port/50000/x" % o["runtime_id"]
        equal(ask(path)[0], 403)
        status, said = ask(path, X_Handrail_Origin="own", **key)
        equal((status, said.splitlines()[0], f.head["Set-Cookie"], f.head["Content-Security-Policy"]),
              (200, b"GET /x HTTP/1.1", None, "sandbox"))


def named_ports(uid):
    """The client names the ports of programs, as the app server of OpenHands does; wrong numbers name none."""
    with BoxFleet(uid, "--domain", DOMAIN) as f:
        o = f.up("s", environment={"WORKER_1": "12000", "WORKER_2": "65536"})

        def check():
            hosts = f.call("GET", "/sessions/s")[1]["work_hosts"]
            equal(hosts, {"http://work-%d-%s.%s:%d" % (i, o["runtime_id"], DOMAIN, f.port): n
                          for i, n in ((1, 12000), (2, 55000))})
            for host in ("work-1", "12000"):
                status, said = f.call("GET", "/a", key="", Host="%s-%s.%s" % (host, o["runtime_id"], DOMAIN))
                equal((status, said.decode().splitlines()[0]), (200, "GET /a HTTP/1.1"))
        f.run(o, "export ECHO='%s'; python3 -c \"$ECHO\" >/tmp/up & until test -s /tmp/up; do :; done" %
              ECHO.replace("50000", "12000"))
        check()
        if paused_here(f, o):
            f.pause(o)
            equal(f.call("POST", "/resume", {"runtime_id": o["runtime_id"]})[0], 200)
            f.until_state(o, "running")
            check()


def visited(uid):
    """Requests without a key that a program leaves unanswered are bounded for a sandbox, by whatever way they come, and
    delay neither its server nor another one's program."""
    with BoxFleet(uid, "--domain", DOMAIN) as f, contextlib.ExitStack() as stack:
        o, p = f.up("s"), f.up("t")
        for each, program in ((o, SILENT), (p, ECHO)):
            f.run(each, "export UP='%s'; python3 -c \"$UP\" >/tmp/up & until test -s /tmp/up; do :; done" % program)

        def visit(i):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", f.port), PATIENCE))
            by_header = "X-Sandbox-ID: %s\r\nX-Sandbox-Port: work-1\r\n" % o["runtime_id"]
            # those of E2B count for the sandbox that they lead to, whatever else the request names
            by_e2b = "X-Sandbox-ID: %s\r\nX-Sandbox-Port: 1\r\nE2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 50000\r\n" % (
                p["runtime_id"], o["runtime_id"])
            name, port = "%s.%s" % (o["runtime_id"], DOMAIN), "X-Sandbox-Port: 50000-%s.%s: 1\r\n" % (
                p["runtime_id"], DOMAIN)
            # the old form has a client after the id, which names no sandbox
            old = ["50000-%s-%s.%s" % (o["runtime_id"], client, DOMAIN.upper()) for client in ("x", p["runtime_id"])]
            ways = (("x", by_header), ("x", by_e2b), ("work-1-" + name, ""), ("50000-" + name, port), (old[0], ""),
                    (old[1], ""), ("work-1-%s:80" % name, ""))
            s.sendall(("GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n" % ways[i % len(ways)]).encode())
            return s

        open_ = [visit(i) for i in range(VISITORS + 20)]
        answered = f.until(lambda: select.select(open_, [], [], 0)[0], lambda found: len(found) >= 20)
        equal([s.recv(12) for s in answered], [b"HTTP/1.1 429"] * 20)
        equal(f.run(o, "echo on"), "on")
        host = "work-1-%s.%s" % (p["runtime_id"], DOMAIN)
        equal(f.call("GET", "/", key="", Host=host)[0], 200, "another sandbox's program")
        for host in ("50000-%s.example", "%050d-%%s.%s" % (0, DOMAIN), "50000-%%s.%s.example" % DOMAIN):
            path, host = "/%s/alive" % p["runtime_id"], host % o["runtime_id"]
            equal(f.call("GET", path, key="", Host=host)[0], 200, "the path names the sandbox: " + host)


def account(uid):
    """The user and the group of a request, which the app server of OpenHands gives."""
    with BoxFleet(uid) as f:
        ids = {"run_as_user": 54321, "run_as_group": 54322, "fs_group": 54322}
        if uid:
            status, said = f.call("POST", "/start?wait=ready", dict(ids, session_id="s"))
            equal((status, "has the account 0 alone" in json.dumps(said)), (409, True), said)
            return
        o = f.up("s", **ids)
        look = "id -u; id -g; touch file; stat -c %u:%g . file ~"
        equal(f.run(o, look).split(), ["54321", "54322"] + ["54321:54322"] * 3)
        f.pause(o)
        equal(f.call("POST", "/resume", {"runtime_id": o["runtime_id"]})[0], 200)
        f.until_state(o, "running")
        equal(f.run(o, look).split(), ["54321", "54322"] + ["54321:54322"] * 3)


def refused(uid):
    """An nginx of others does not reach boxes."""
    with BoxFleet(uid) as f:
        f.kill()
        for words in (("--no-nginx",), ("--no-nginx", "--check")):
            p = f.spawn(*words)
            said = p.communicate()[1]
            equal((p.returncode, "--no-nginx: only the service's own nginx reaches" in said), (1, True), said)


CASES = [life, rules, changed_rules, limits_of_keys, console, pause_and_resume, new_keys, pool, limits, killed,
         other_directory, closed, replaced, programs, named_ports, visited, account, refused]

if __name__ == "__main__":
    sys.exit(run(CASES, made=contextlib.nullcontext))
