#!/usr/bin/env python3
"""The API of E2B with containers of a real Engine, the one of DOCKER_HOST, or for root one that is started for this
test: the account `user`, commands, files, ports, the code interpreter, templates, pools, and pauses."""

import base64
import json
import os
import shutil
import socket
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.dockerhost import IMAGE, docker, find_engine, make_image  # noqa: E402
from lib.e2bfleet import DOMAIN, Calls  # noqa: E402
from lib.e2breplay import frames  # noqa: E402
from lib.fleet import Fleet, free_port  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

# this machine's programs, in the place of the few in the image
USR = ("--set", "sandbox.volumes=/usr:/usr:ro", "--set", 'sandbox.runtime_startup_env_vars={"OPERATOR":"1"}')
PASSWD = "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/:/bin/false\nother:x:1000:1001::/:/bin/sh\n"
GROUP = "root:x:0:\nsudo:x:27:\nwww-data:x:33:\nother:x:1001:\n"
WEB = ("import http.server, os; os.chdir('/home/user'); "
       "http.server.HTTPServer.address_family = %d; "
       "http.server.HTTPServer(('%s', %d), http.server.SimpleHTTPRequestHandler).serve_forever()")


class Service(Calls, Fleet):
    def __init__(self, *options, engine=None):
        super().__init__("--image", IMAGE, "--domain", DOMAIN, "--set", "sandbox.use_host_network=true", "--set",
                         "sandbox.runtime_binding_address=127.0.0.1", *USR, *options, kind="docker",
                         DOCKER_HOST=engine or os.environ["DOCKER_HOST"])
        self.use_e2b()

    def start_process(self, o, command, user=None):
        """The messages of a command."""
        message = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command]}, "stdin": False}).encode()
        more = {"Authorization": "Basic " + base64.b64encode(user.encode() + b":").decode()} if user else {}
        status, _ = self.edge("POST", "/process.Process/Start", o, body=struct.pack(">BI", 0, len(message)) + message,
                              Content_Type="application/connect+json", X_Access_Token=o["envdAccessToken"], **more)
        equal(status, 200)
        return [json.loads(text) for _, text in frames(self.text)]

    def output(self, o, command, user=None):
        events = [m["event"] for m in self.start_process(o, command, user) if "event" in m]
        equal(events[-1]["end"]["status"], "exit status 0", events)
        return b"".join(base64.b64decode(e["data"].get("stdout", "")) for e in events if "data" in e).decode()

    def rpc(self, o, name, message):
        return self.edge("POST", "/" + name, o, body=json.dumps(message), Content_Type="application/json",
                         X_Access_Token=o["envdAccessToken"])


def commands_and_files():
    """The image lacks the account and the directory, and another account has the usual number."""
    with Service() as f:
        o = f.create(envVars={"X": "a b"}, metadata={"m": "1"})
        equal(f.output(o, "whoami; pwd; echo $X; id -u; stat -c %U:%G ."),
              "user\n/home/user\na b\n1002\nuser:user\n")
        equal(f.output(o, "whoami", user="root"), "root\n")
        # the image has no sudo; one that has it lets the account use it without a password
        equal((f.output(o, "id -nG").split(), f.output(o, "grep sudo /etc/sudoers", user="root"),
               f.output(o, "grep NoNewPrivs /proc/self/status").split()[1]),
              (["user", "sudo"], "%sudo ALL=(ALL) NOPASSWD:ALL\n", "0"))
        equal(f.output(o, "cd /run/e2b && cat .E2B_SANDBOX .E2B_SANDBOX_ID .E2B_TEMPLATE_ID"),
              "true" + o["sandboxID"] + "base")
        equal(f.edge("POST", "/files?path=d/f.txt", o, body=b"written", Content_Type="application/octet-stream",
                     X_Access_Token=o["envdAccessToken"])[0], 200)
        equal(f.output(o, "stat -c %U:%a d/f.txt; cat d/f.txt"), "user:644\nwritten")
        equal(f.rpc(o, "filesystem.Filesystem/Stat", {"path": "d"})[1]["entry"]["owner"], "user")
        equal([s["sandboxID"] for s in f.api("GET", "/v2/sandboxes")[1]], [o["sandboxID"]])
        made = json.loads(docker("inspect", "openhands-runtime-" + o["sandboxID"]).stdout)[0]["Config"]["Env"]
        equal([v in made for v in ("OPERATOR=1", "HANDRAIL_PORT_PATHS=true")], [True, True], "the operator's variables")


def ports():
    """Programs of the container, through the fleet's nginx; they are asked only while the sandbox runs."""
    with Service() as f:
        o = f.create()
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            port = free_port()
            f.output(o, "echo page > /home/user/p; nohup setsid python3 -c \"%s\" >/dev/null 2>&1 &" % (
                WEB % (family, address, port)))
            for host in (None, "%d-%s.%s" % (port, o["sandboxID"], DOMAIN)):
                f.until(lambda: f.edge("GET", "/p", o, port=port, host=host), lambda got: got == (200, "page\n"))
        closed = free_port()
        equal(f.edge("GET", "/p", o, port=closed),
              (502, {"sandboxId": o["sandboxID"], "message": "The sandbox is running but port is not open",
                     "port": closed, "code": 502}))


def code():
    with Service() as f:
        o = f.create(envVars={"X": "y"})

        def run(code):
            status, _ = f.edge("POST", "/execute", o, port=49999, body=json.dumps({"code": code}),
                               Content_Type="application/json", X_Access_Token=o["envdAccessToken"])
            equal(status, 200, f.text)
            return [json.loads(line) for line in f.text.splitlines()]

        equal(f.edge("GET", "/health", o, port=49999)[1], "OK")
        lines = run("import os, pwd; x = 41; [os.getcwd(), os.environ['X'], pwd.getpwuid(os.getuid()).pw_name]")
        equal([line["text"] for line in lines if line["type"] == "result"], ["['/home/user', 'y', 'root']"], lines)
        equal([line["text"] for line in run("x + 1") if line["type"] == "result"], ["42"])


def pauses():
    """Memory and processes outlive a pause; only connect wakes it, or traffic if the client says so."""
    with Service() as f:
        o, path = f.create(timeout=600, envVars={"X": "y"}), "/sandboxes/%s"
        f.output(o, "echo kept >f; nohup setsid sleep 98765 >/dev/null 2>&1 & echo $! >/tmp/pid")
        equal(f.api("POST", path % o["sandboxID"] + "/pause")[0], 204)
        equal((f.info(o)[1]["state"], f.info(o)[1]["pauseMode"]), ("paused", "full"))
        equal(f.edge("GET", "/health", o)[0], 502)
        equal(f.api("POST", "/v2/sandboxes/%s/connect" % o["sandboxID"], {"timeout": 60})[0], 201)
        equal(f.output(o, "cat f; kill -0 $(cat /tmp/pid) && whoami"), "kept\nuser\n")
        # without the memory: the files stay, the processes end, and the variables are there again
        equal(f.api("POST", path % o["sandboxID"] + "/pause", {"memory": False})[0], 204)
        equal((f.info(o)[1]["state"], f.info(o)[1]["pauseMode"]), ("paused", "filesystem"))
        equal(f.edge("GET", "/health", o)[0], 502)
        equal(f.api("POST", "/v2/sandboxes/%s/connect" % o["sandboxID"], {"timeout": 60})[0], 201)
        equal(f.output(o, "cat f; grep -qs '9876[5]' /proc/$(cat /tmp/pid)/cmdline || echo $X; whoami"),
              "kept\ny\nuser\n")
        equal(f.api("POST", path % o["sandboxID"] + "/pause")[0], 204)
        equal(f.info(o)[1]["pauseMode"], "full")
        p = f.create(timeout=1, autoPause=True, autoResume={"enabled": True})
        f.until(lambda: f.info(p)[1]["state"], lambda state: state == "paused")
        equal(f.output(p, "whoami"), "user\n")
        equal(f.api("DELETE", path % p["sandboxID"])[0], 204)
        equal(f.info(p)[0], 404)


def engines_that_do_not_answer():
    """Nothing is said of a pause that is not known, no sandbox dies of it, and a start does not wait for long."""
    with tempfile.TemporaryDirectory(prefix="test-e2b-docker-") as top, socket.socket(socket.AF_UNIX) as silent:
        real, path = os.environ["DOCKER_HOST"].removeprefix("unix://"), os.path.join(top, "engine")
        silent.bind(os.path.join(top, "silent"))
        silent.listen()

        def lead(to):
            os.symlink(to, path + "~")
            os.rename(path + "~", path)
        lead(real)
        with Service(engine="unix://" + path) as f:
            o = f.create(timeout=600)
            equal(f.api("POST", "/sandboxes/%s/pause" % o["sandboxID"])[0], 204)
            equal((f.info(o)[1]["state"], f.info(o)[1]["pauseMode"]), ("paused", "full"))
            lead("nowhere")
            equal((f.info(o)[1]["state"], f.info(o)[1].get("pauseMode")), ("paused", None))
            f.process.terminate()
            f.process.wait(PATIENCE)
            lead("silent")
            begun = time.monotonic()
            f.start()
            equal(time.monotonic() - begun < 60, True, "of two questions each takes 10 s")
            lead(real)
            equal((f.info(o)[1]["state"], f.info(o)[1]["pauseMode"]), ("paused", "full"))


def templates():
    """A template's image, account and directory; a pool of them has its account before the claim."""
    with Service("--e2b-template", "tools=%s;user=other;workdir=/tmp" % IMAGE) as f:
        o = f.create(templateID="tools:latest")
        equal(f.output(o, "whoami; pwd"), "other\n/tmp\n")
        equal((o["templateID"], f.api("GET", "/templates/aliases/tools")[0]), ("tools:latest", 200))
        pool = {"name": "p", "size": 1, "request": {"e2b": {"user": "user"}, "command": ["--plugins", "jupyter"]}}
        equal(f.call("POST", "/handrail/v1/pools", {"pools": [pool]})[0], 200)
        waiting = f.until(f.sandboxes, lambda all: [s for s in all if s["state"] == "warm"])
        o = f.create(envVars={"X": "1"})
        equal(o["sandboxID"] in [s["runtime_id"] for s in waiting], True, "it comes from the pool")
        equal(f.output(o, "whoami; echo $X"), "user\n1\n")


def main():
    find_engine()
    process.become_subreaper()
    top = tempfile.mkdtemp(prefix="test-e2b-docker-")
    tap = Tap()
    try:
        make_image(top, {"/etc/passwd": PASSWD, "/etc/group": GROUP}, {"home": 0})
        for test in TESTS:
            if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
                tap.run(test.__name__.replace("_", " "), test)
    finally:
        docker("rmi", "-f", IMAGE)
        shutil.rmtree(top, ignore_errors=True)
    return tap.done()


TESTS = [commands_and_files, ports, code, pauses, engines_that_do_not_answer, templates]

if __name__ == "__main__":
    sys.exit(main())
