#!/usr/bin/env python3
"""Containers whose network has rules, with a real Engine that shares this machine with its caller, who is root: what is
allowed and refused, changes, a new network after a pause, what is refused before anything is made, and that nothing is
left."""

import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import dockerhost, process  # noqa: E402
from lib.dockerhost import IMAGE, DockerHost, docker, find_engine, make_image  # noqa: E402
from lib.egressworld import Names, tls  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import BUILD, PATIENCE, Host  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402


VALUE = "the-real-value-of-the-test"


class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append((self.command, self.headers.get("Authorization")))
        body = b"hello " + self.headers["Host"].split(":")[0].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def handle(self):
        with contextlib.suppress(ConnectionResetError):  # of a connection that is cut
            http.server.BaseHTTPRequestHandler.handle(self)

    def log_message(self, *unused):
        pass


class World(DockerHost):
    """A user with a name server and a web server on 127.0.0.1."""

    def __enter__(self):
        self.env["SANDBOX_USE_HOST_NETWORK"] = "false"
        self.names = Names(a_example="127.0.0.1", b_example="127.0.0.1")
        self.servers, self.seen = [], []  # the method and the Authorization of each request
        self.web = self.serve()
        return DockerHost.__enter__(self)

    def __exit__(self, *unused):
        for s in self.servers:
            s.shutdown()
            s.server_close()
        DockerHost.__exit__(self, *unused)

    def serve(self, context=None):
        s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
        s.seen, s.daemon_threads = self.seen, True
        if context:
            s.socket = context.wrap_socket(s.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=s.serve_forever, daemon=True).start()
        self.servers.append(s)
        return s.server_address[1]

    def up(self, *words, **more):
        rules = dict(dict(dnsServers=["127.0.0.1:%d" % self.names.port], ports=[self.web],
                          allowOut=["127.0.0.1", "a.example"]), **more)
        self.ok("up", "-q", "--network", "egress", "-s", "sandbox.network=" + json.dumps(rules), *words)

    def get(self, name):
        """What bash in the container gets from that name; "" if the connection was refused."""
        return self("run", "exec 3<>/dev/tcp/%s/%d && printf 'GET / HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n' >&3 && "
                    "tail -n 1 <&3 2>/dev/null" % (name, self.web, name)).stdout.strip()

    def egress(self, *names):
        return os.path.join(self.record(self.name)["backend"]["dir"], "egress", *names)

    def broker(self):
        with open(self.egress("record")) as f:
            return json.loads(f.readline())["pid"]

    def gone(self, *pids):
        equal([pid for pid in pids if not process.wait_gone(pid, PATIENCE)], [])
        state = self.path("state")
        equal((os.path.isdir(state) and os.listdir(state) or [], self.containers()), ([], ""))

    def containers(self):
        return docker("ps", "-aq", "--filter", "name=openhands-runtime-" + self.name,
                      universal_newlines=True).stdout


def life():
    """Only what the rules allow is reached, and they change while the container runs."""
    with World() as h:
        h.up()
        equal((h.inspect()["HostConfig"]["NetworkMode"], h.inspect()["HostConfig"]["PortBindings"] or {}), ("none", {}))
        equal(h.get("a.example"), "hello a.example")
        equal(h.get("b.example"), "")
        equal(h.get("192.0.2.1"), "")
        equal(h.get("127.0.0.1"), "", "the machine's loopback")
        equal(h("run", "exec 3<>/dev/tcp/a.example/1").returncode, 1, "a port without a rule")
        equal(h("run", "exec 3<>/dev/tcp/::1/%d" % h.web).returncode, 1, "IPv6")
        equal("b.example:%d was refused: no rule" % h.web in
              h("run", "exec 3<>/dev/tcp/b.example/%d; tail -n 1 <&3" % h.web).stderr, True)
        equal([e["name"] for e in map(json.loads, h.ok("net", "log", "--json").splitlines())
               if e["verdict"] == "deny" and e.get("name")][0], "b.example")
        h.ok("net", "allow", "b.example")
        equal(h.get("b.example"), "hello b.example")
        equal("allowOut b.example" in h.ok("net", "show").splitlines(), True)
        equal(json.loads(h.ok("url", "--json"))["web_hosts"], {})
        broker = h.broker()
        h.ok("down")
        h.gone(broker)


def paused():
    """A pause makes a new network, whose rules are there before the shell is."""
    with World() as h:
        h.up()
        h.ok("net", "allow", "b.example")
        first = h.broker()
        h.ok("pause")
        equal(process.wait_gone(first, PATIENCE), True, "the broker ends with the container")
        h.ok("resume")
        equal((h.get("a.example"), h.get("b.example"), h.get("192.0.2.1")), ("hello a.example", "hello b.example", ""))
        second = h.broker()
        docker("restart", "-t", "1", "openhands-runtime-" + h.name)
        equal(process.wait_gone(second, PATIENCE), True)
        equal(h.ok("net", "show").splitlines()[0], "what no line below allows is refused")
        third = h.broker()
        h.ok("down")
        h.gone(first, second, third)


def killed():
    """Without its broker a container reaches nothing; the next command starts one."""
    with World() as h:
        h.up()
        pid = h.broker()
        os.killpg(pid, signal.SIGKILL)
        equal(process.wait_gone(pid, PATIENCE), True)
        inside = docker("exec", "openhands-runtime-" + h.name, "bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/%d" % h.web)
        equal((inside.returncode, b"refused" in inside.stderr), (1, True), inside.stderr)
        equal(h.get("a.example"), "hello a.example")
        h.ok("down")


def stopped():
    """A container that was started again does not take the broker of its earlier network, which has not ended, for its
    own."""
    with World() as h:
        h.up()
        first = h.broker()
        os.kill(first, signal.SIGSTOP)
        docker("restart", "-t", "1", "openhands-runtime-" + h.name)
        equal(h.get("a.example"), "hello a.example")
        equal((process.wait_gone(first, PATIENCE), h.broker() != first), (True, True))
        h.ok("down")
        h.gone(first)


def changes():
    """Rules change by "net allow" and "net deny" while the container runs, which cuts what is open; "net test" asks
    them, and a change that is refused changes nothing."""
    with World() as h:
        h.up()
        at = "b.example:%d" % h.web
        equal((h("net", "test", at).returncode, h("net", "test", "a.example:%d" % h.web).returncode), (1, 0))
        h.ok("net", "allow", at)
        equal((h("net", "test", at).returncode, h.get("b.example")), (0, "hello b.example"))
        before = h.ok("net", "show", "--json")
        h.fails(1, "after the host only", "net", "allow", "https://x")
        equal(h.ok("net", "show", "--json"), before)
        h.ok("run", "exec 7<>/dev/tcp/a.example/%d && printf 'GET / HTTP/1.1\\r\\n' >&7" % h.web)
        equal("cut 1 open connection" in h("net", "deny", "a.example").stderr, True)
        equal((h.get("a.example"), h.get("b.example")), ("", "hello b.example"))
        equal([e["verdict"] for e in map(json.loads, h.ok("net", "log", "--json").splitlines())
               if e.get("name") == "a.example"][-1], "deny")
        h.ok("down")
        h.gone()


def credentials():
    """A secret is added outside, for its own host and requests that the rules name; the container has a placeholder,
    and the value is in no byte of it."""
    with World() as h:
        os.mkdir(h.path("tls"))
        authority, context = tls(h.path("tls"), "a.example", "b.example")
        h.env["SSL_CERT_FILE"] = authority.pem
        port = h.serve(context)
        equal(Host.__call__(h, "secret", "set", "api", input=VALUE).returncode, 0)
        h.up(ports=[port], allowOut=["127.0.0.1", "b.example"],
             rules={"a.example": [{"methods": ["GET"], "paths": ["/ok"], "ports": [port]}]},
             credentials={"API_TOKEN": {"secret": "api", "hosts": ["a.example:%d" % port]}})
        curl = "curl -s -H \"Authorization: Bearer $API_TOKEN\" %s https://%s.example:%d/ok"
        equal(h.ok("run", curl % ("", "a", port)).strip(), "hello a.example")
        equal(h.seen, [("GET", "Bearer " + VALUE)])
        done = h("run", curl % ("-X POST", "a", port))
        equal("network: POST a.example" in done.stdout + done.stderr, True, done)
        equal(len(h.seen), 1, "the request that was refused")
        equal(h.ok("run", curl % ("", "b", port)).strip(), "hello b.example")
        equal((h.seen[1][1].startswith("Bearer ph_"), VALUE in h.seen[1][1]), (True, False), "another host")
        name = "openhands-runtime-" + h.name
        texts = {words: h.ok(*words).encode()
                 for words in (("config",), ("logs",), ("net", "log"), ("run", "env; set"))}
        for words in (("export", name), ("inspect", name), ("logs", name),
                      ("exec", name, "bash", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline")):
            done = docker(*words)
            texts[words] = done.stdout + done.stderr
        equal([words for words, text in texts.items() if not text or VALUE.encode() in text], [])
        equal(b"API_TOKEN=ph_" in docker("inspect", name).stdout, True)
        h.ok("down")
        equal(Host.__call__(h, "secret", "rm", "api").returncode, 0)
        os.rmdir(h.path("state", "secrets"))
        h.gone()


def without_a_broker():
    """A start whose broker does not start fails, and leaves nothing."""
    with World() as h:
        os.mkdir(h.path("programs"))
        for name in os.listdir(BUILD):
            if name.startswith("handrail") and name != "handrail-egress":
                os.symlink(os.path.join(BUILD, name), h.path("programs", name))
        with open(h.path("programs", "handrail-egress"), "w") as f:
            f.write("#!/bin/sh\n[ \"$1\" != --prepare ] || exec %s/handrail-egress \"$@\"\n"
                    "echo no >&2\nexit 1\n" % BUILD)
        os.chmod(h.path("programs", "handrail-egress"), 0o755)
        h.env["HANDRAIL_LIBEXECDIR"] = h.path("programs")
        h.fails(1, "the broker of the sandbox's network: no", "up", "--network", "egress")
        h.gone()


def refusals():
    """What cannot be enforced is refused with a reason, before anything is made."""
    with World() as h:
        rules = 'sandbox.network={"allowOut":["a.example"]}'
        for text, words, env in (
                ("the network of the sandbox is default: use --network egress", ("-s", rules), {}),
                ("sandbox.use_host_network is true", ("--network", "egress"), {"SANDBOX_USE_HOST_NETWORK": "true"}),
                ("do not hold for sandbox.additional_networks", ("--network", "egress", "-s",
                                                                 'sandbox.additional_networks=["x"]'), {}),
                ("cannot be held with privileged", ("--network", "egress", "-s",
                                                    'sandbox.docker_runtime_kwargs={"privileged":true}'), {}),
                ("another machine", ("--network", "egress"), {"DOCKER_HOST": "tcp://127.0.0.1:1"})):
            before = dict(h.env)
            h.env.update(env)
            h.fails(1, text, "up", *words)
            h.env = before
        h.gone()
        os.chmod(h.top, 0o755)
        done = subprocess.run([os.path.join(BUILD, "handrail"), "up", "-n", h.name, "--network", "egress"],
                              env=dict(h.env, HANDRAIL_STATE_DIR="/nonexistent"), user=54323, group=54323,
                              extra_groups=[], stderr=subprocess.PIPE, universal_newlines=True)
        equal((done.returncode, "only root can enforce rules of a container's network" in done.stderr), (1, True),
              done.stderr)


class Engine(http.server.BaseHTTPRequestHandler):
    """An Engine without containers, which runs those in a user namespace."""

    def do_GET(self):
        found = {"info": {"SecurityOptions": ["name=seccomp,profile=builtin", "name=userns"]}, "containers/json": [],
                 "_ping": []}.get(re.sub("^/(v[0-9.]+/)?|[?].*", "", self.path))
        body = json.dumps({"message": "none"} if found is None else found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Api-Version", "1.41")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "a Unix socket"

    def log_message(self, *unused):
        pass


class EngineServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def user_namespaces():
    """Where the Engine has user namespaces, a service promises no rules, and none of the sandboxes gets them."""
    with tempfile.TemporaryDirectory(prefix="e2e-engine-") as top, \
            EngineServer(os.path.join(top, "socket"), Engine) as engine:
        threading.Thread(target=engine.serve_forever, daemon=True).start()
        at = "unix://" + os.path.join(top, "socket")
        with World() as h:
            h.env["DOCKER_HOST"] = at
            h.fails(1, "the Engine runs containers in a user namespace (name=userns)", "up", "--network", "egress",
                    "-s", 'sandbox.network={"allowOut":["a.example"]}')
            equal(os.path.isdir(h.path("state")) and os.listdir(h.path("state")) or [], [])
        with Fleet("--image", "none:1", kind="docker", DOCKER_HOST=at) as f:
            status, answer = f.call("POST", "/start", {"session_id": "a", "image": "none:1",
                                                       "network": {"allowOut": ["a.example"]}})
            equal((status, "network: this service takes no rules from its clients" in str(answer)), (400, True), answer)
            equal("no sandbox can have rules of a network: the Engine runs containers in a user namespace" in f.said(),
                  True, f.said())
        engine.shutdown()


def main():
    if not os.access(os.path.join(BUILD, "handrail-egress"), os.X_OK):
        skip_all("handrail-egress is not built: apt-get install libc-ares-dev libssl-dev, and configure again")
    find_engine()
    if os.geteuid() != 0:
        skip_all("needs root: only root can hold the rules of a container's network")
    process.become_subreaper()
    dockerhost.PROGRAMS.append("curl")
    tap = Tap()
    top = tempfile.mkdtemp(prefix="e2e-image-")
    try:
        make_image(top)
    finally:
        shutil.rmtree(top)
    try:
        for test in (life, paused, killed, stopped, changes, credentials, without_a_broker, refusals,
                     user_namespaces):
            if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
                tap.run(test.__name__.replace("_", " "), test)
    finally:
        docker("rmi", "-f", IMAGE)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
