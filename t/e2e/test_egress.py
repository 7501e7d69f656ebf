#!/usr/bin/env python3
"""Boxes whose network has rules, as a user of the handrail command has them: what is allowed and refused, changes while
they run, secrets, and that nothing is left. As root each case is done twice, by root and by another account."""

import contextlib
import fcntl
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.egressworld import Names, tls  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC  # noqa: E402
from lib.hostbox import Boxes, run  # noqa: E402
from lib.tap import Skip, equal, skip_all  # noqa: E402

VALUE = "ghp_0123456789abcdefTheRealValue"


class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.headers.get("Authorization"))
        body = ("%s of %s\n" % (self.path, self.headers["Host"].split(":")[0])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self):
        with contextlib.suppress(ConnectionResetError):  # of a connection that is cut
            http.server.BaseHTTPRequestHandler.handle(self)

    def log_message(self, *unused):
        pass


class World(Boxes):
    """The surroundings of a user, with the servers that the machine has for the test."""

    def __enter__(self):
        self.names, self.servers, self.seen = Names(default="127.0.0.1"), [], []  # the Authorization of each request
        self.dns, self.web = self.names.port, self.serve()
        return Boxes.__enter__(self)

    def __exit__(self, *unused):
        for s in self.servers:
            s.shutdown()
            s.server_close()
        self.names.close()
        Boxes.__exit__(self, *unused)

    def serve(self, context=None, handler=Web):
        """The port of a server on the loopback address."""
        s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        s.seen, s.daemon_threads = self.seen, True
        if context:
            s.socket = context.wrap_socket(s.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=s.serve_forever, daemon=True).start()
        self.servers.append(s)
        return s.server_address[1]

    def secure(self, *names, handler=Web):
        """The port of a server with TLS for these names, whose authority the broker trusts."""
        authority, context = tls(self.path("tmp"), *names)
        os.chmod(authority.pem, 0o644)
        self.env["SSL_CERT_FILE"] = authority.pem
        return self.serve(context, handler)

    def rules(self, *allowed, **more):
        """A setting with the test's servers; an address that is allowed may be what a name leads to."""
        return "sandbox.network=" + json.dumps(dict(dnsServers=["127.0.0.1:%d" % self.dns], ports=[self.web],
                                                    allowOut=["127.0.0.1"] + list(allowed), **more))

    def up(self, setting, *words):
        self.ok("up", "-q", "--network", "egress", "-s", setting, *words)

    def get(self, name, *words):
        """What curl in the box gets from that name, or its exit status."""
        line = "curl -s --noproxy '*' -m 60 http://%s:%d/p || echo status $?" % (name, self.web)
        return self("run", *words + (line,)).stdout.strip()

    def egress(self, *names):
        return os.path.join(self.box()["dir"], "egress", *names)

    def broker(self):
        with open(self.egress("record")) as f:
            return json.loads(f.readline())["pid"]

    def events(self):
        return [json.loads(line) for line in self.ok("net", "log", "--json").splitlines()]


def allowed(name):
    return "/p of " + name


def refused(text):
    """curl's status of a connection that was reset, which curl sees when it receives, sends or connects, or refused."""
    return text in ("status 56", "status 55", "status 7", "status 52")


def processes(box):
    """Those that have the directory of the box's network in their command, or are in it."""
    place, found = os.path.join(box["dir"], "egress"), []
    for pid in process.all_pids():
        try:
            there = os.readlink("/proc/%d/cwd" % pid)
        except OSError:
            there = ""
        if place in process.command_line(pid) or there.startswith(place):
            found.append(pid)
    return found


def gone(h, box, *pids):
    found = h.left(box) + [pid for pid in pids if not process.wait_gone(pid, PATIENCE)]
    equal(found, [])
    equal((os.listdir(h.path("state")), os.listdir(h.path("tmp")), os.listdir(h.path("run"))), ([], [], []))


def life(h):
    """A name that is allowed is reached, another one is refused with a reason, and nothing is left."""
    h.up(h.rules("a.example", "*.b.example"))
    equal(h.get("a.example"), allowed("a.example"))
    equal(h.get("x.b.example"), allowed("x.b.example"))
    for name in ("c.example", "b.example", "10.0.0.1"):
        got = h.get(name)
        equal(refused(got), True, (name, got))
    got = h.ok("run", "cat /etc/resolv.conf; tail -n +3 /proc/net/dev | cut -d: -f1")
    equal(got, "nameserver 198.18.0.1\n    lo\n")
    events = h.events()
    equal([e["rule"] for e in events if e["verdict"] == "deny" and e.get("name") == "c.example"], ["no rule"], events)
    equal("refused tcp c.example:%d: no rule" % h.web in h.ok("net", "log"), True)
    urls = ["http://%s:%d/" % (name, h.web) for name in ("a.example", "c.example")]
    equal([h("net", "test", "default", url).returncode for url in urls], [0, 1])
    equal(h("net", "test", "default", "a.example").returncode, 1, "of another port")
    equal("allowOut a.example" in h.ok("net", "test", "default", "http://a.example:%d" % h.web), True)
    equal(json.loads(h.ok("net", "show", "--json"))["allowOut"], ["127.0.0.1", "a.example", "*.b.example"])
    equal("*.b.example" in h.ok("net", "show"), True)
    box, pids = h.box(), processes(h.box())
    equal(h.broker() in pids, True, pids)
    h.ok("down")
    gone(h, box, *pids)


def changes(h):
    """Entries come and go while the box runs; an error changes nothing."""
    h.up(h.rules(presets=["npm"]))
    equal(h("net", "test", "default", "registry.npmjs.org:%d" % h.web).returncode, 0)
    equal("registry.npmjs.org" in h.ok("net", "show"), True, "the entries of a preset")
    equal(refused(h.get("a.example")), True)
    h.ok("net", "allow", "default", "a.example", "b.example")
    equal((h.get("a.example"), h.get("b.example")), (allowed("a.example"), allowed("b.example")))
    h.ok("net", "deny", "default", "b.example")
    equal((h.get("a.example"), refused(h.get("b.example"))), (allowed("a.example"), True))
    before = h.ok("net", "show", "--json")
    for text, words in (('"https://x": after the host only', ("allow", "default", "https://x")),
                        ('use "allowInternetAccess"', ("allow", "default", "*")),
                        ("is neither in allowOut", ("deny", "default", "b.example"))):
        h.fails(1, text, "net", *words)
    equal(h.ok("net", "show", "--json"), before)
    many = [h.popen("net", "allow", "default", "n%d.example" % i) for i in range(6)]
    equal([(p.communicate(timeout=PATIENCE), p.returncode)[1] for p in many], [0] * 6)
    allowed_now = json.loads(h.ok("net", "show", "--json"))["allowOut"]
    equal(len([n for n in allowed_now if re.match("n[0-9]", n)]), 6, "no change is lost")
    h.ok("net", "deny", "default", "192.0.2.0/24", "2001:db8::/32")
    equal(json.loads(h.ok("net", "show", "--json"))["denyOut"], ["192.0.2.0/24", "2001:db8::/32"])
    listener = ("import socket; s = socket.socket(); s.bind(('0.0.0.0', 4444)); s.listen(); "
                "print('ready', flush=True); s.accept()")
    h.ok("run", "python3 -c \"%s\" >/tmp/out & until grep -q ready /tmp/out; do :; done" % listener)
    before = h.ok("net", "show", "--json")
    done = h("net", "allow", "default", "a.example:4444")
    equal((done.returncode > 0, "4444" in done.stderr), (True, True), done.stderr)
    equal(h.ok("net", "show", "--json"), before)
    equal(h.get("a.example"), allowed("a.example"))
    h.ok("down")


def presets_and_words(h):
    """Presets by their names, near entries in a refusal, hints for misspelt members, and completion."""
    def words(*line):
        return h.ok("completion", "words", *line).split()
    h.up(h.rules("a.example", "b.example:1"))
    equal("presets for \"net allow\": crates, debian, github, golang, npm, pypi\n" in h.ok("net", "show"), True)
    h.ok("net", "allow", "default", "npm", "c.example")
    rules = json.loads(h.ok("net", "show", "--json"))
    equal((rules["presets"], rules["allowOut"][-1]), (["npm"], "c.example"))
    equal(h("net", "test", "default", "registry.npmjs.org:%d" % h.web).returncode, 0)
    equal(words("net", "deny", "default", ""), ["127.0.0.1", "a.example", "b.example:1", "c.example", "npm"])
    equal(words("net", "deny", "default", "c"), ["c.example"])
    equal(words("net", "allow", "default", "g"), ["github", "golang"])
    h.ok("net", "deny", "default", "npm")
    equal((json.loads(h.ok("net", "show", "--json"))["presets"], words("net", "deny", "default", "n")), ([], []))
    equal(h("net", "test", "default", "registry.npmjs.org:%d" % h.web).returncode, 1)
    equal(refused(h.get("b.example")), True)
    near = "no rule for port %d, only allowOut b.example:1" % h.web
    equal(near in h.ok("net", "log"), True)
    equal(near in h("net", "test", "default", "b.example:%d" % h.web).stdout, True)
    h.ok("down")
    h.ok("secret", "set", "github", input=VALUE)
    h.ok("secret", "set", "other", input=VALUE)
    equal((words("secret", "rm", ""), words("secret", "rm", "g"), words("secret", "rm", "other", "")),
          (["github", "other"], ["github"], []))
    for text, more in (('did you mean "allowOut"?', {"alowOut": []}), ('did you mean "methods"?', {"rules": {
            "a.example": [{"method": ["GET"]}]}})):
        h.fails(1, text, "up", "-q", "--network", "egress", "-s", "sandbox.network=" + json.dumps(more))


def cuts(h):
    """net deny cuts what it no longer allows, says so, and leaves other connections."""
    h.up(h.rules("a.example", "b.example"))
    h.ok("run", "for n in a b; do python3 -c \"import socket; s = socket.create_connection(('$n.example', %d)); "
         "open('/tmp/$n', 'w').close()\ntry: s.recv(1)\nfinally: open('/tmp/end-$n', 'w').close()\" >/dev/null 2>&1 & "
         "done; until test -e /tmp/a && test -e /tmp/b; do sleep 0.05; done" % h.web)
    done = h("net", "deny", "default", "a.example")
    equal((done.returncode, "cut 1 open connection that" in done.stderr), (0, True), done.stderr)
    h.ok("run", "until test -e /tmp/end-a; do sleep 0.05; done; test ! -e /tmp/end-b")
    done = h("net", "deny", "default", "c.example/8")
    equal("cut" in done.stderr, False, done.stderr)
    h.ok("down")


def restarts(h):
    """A killed broker, with its keeper or without, is started again; a followed log ends with the box."""
    h.up(h.rules("a.example"))
    first = h.broker()
    for pid in process.children(first):
        if "handrail-egress" in process.command_line(pid):
            os.kill(pid, signal.SIGKILL)
            equal(process.wait_gone(pid, PATIENCE), True)
    equal(h.get("a.example"), allowed("a.example"), "the keeper starts the next one")
    equal(h.broker(), first)
    for pid in [first] + process.children(first):
        os.kill(pid, signal.SIGKILL)
        equal(process.wait_gone(pid, PATIENCE), True)
    equal(h.get("a.example"), allowed("a.example"))
    equal(h.broker() != first, True)
    second = h.broker()
    os.kill(second, signal.SIGKILL)
    equal(process.wait_gone(second, PATIENCE), True)
    equal(h.get("a.example"), allowed("a.example"), "a broker without a keeper gives its sockets to the next")
    equal(refused(h.get("c.example")), True)
    box, pids = h.box(), processes(h.box())
    log = h.popen("net", "log", "-f")
    while "refused tcp c.example" not in log.stdout.readline():
        equal(log.poll(), None)
    os.kill(box["pid"], signal.SIGKILL)
    equal(log.wait(PATIENCE), 0)
    log.communicate()
    for pid in pids:
        equal(process.wait_gone(pid, PATIENCE), True, "it ends with the box")
    h.up(h.rules("a.example"))
    equal(h.get("a.example"), allowed("a.example"), "a box with the same files")
    box, pids = h.box(), processes(h.box())
    h.ok("down")
    gone(h, box, *pids)


def interrupted(h):
    """Whenever `up` is killed, the next one works, and nothing is left after "down"."""
    for i in range(8):
        p = h.popen("up", "-q", "--network", "egress", "-s", h.rules("a.example"))
        with contextlib.suppress(subprocess.TimeoutExpired):
            p.wait(timeout=i * 0.02)
        p.kill()
        p.communicate()
        # one that was killed at its very end, or has ended before, has made a sandbox, which keeps its rules
        done = h("up", "-q", "--network", "egress", "-s", h.rules("a.example"))
        equal(done.returncode == 0 or "exists already" in done.stderr, True, done.stderr)
        equal(h.get("a.example"), allowed("a.example"), "killed after %d ms" % (20 * i))
        box, pids = h.box(), processes(h.box())
        h.ok("down")
        gone(h, box, *pids)


def stuck(h):
    """A new box does not take the broker of an earlier one, which has stopped or not ended yet, for its own."""
    h.up(h.rules("a.example"))
    first, box = h.broker(), h.box()
    os.kill(first, signal.SIGSTOP)
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(box["pid"], PATIENCE), True)
    with open(h.egress("record")) as f:
        fcntl.flock(f, fcntl.LOCK_EX)  # a broker that starts has it
        p = h.popen("up", "--network", "egress", "-s", h.rules("a.example"))
        while "holds the lock of" not in p.stderr.readline():
            equal(p.poll(), None)
    equal((p.wait(PATIENCE), h.broker() != first), (0, True), p.communicate())
    equal(process.wait_gone(first, PATIENCE), True)
    equal(h.get("a.example"), allowed("a.example"))
    box, pids = h.box(), processes(h.box())
    h.ok("down")
    gone(h, box, *pids)


def secrets(h):
    """The value is nowhere that the box, or a list of processes, shows; its variable has a placeholder."""
    rules = h.rules("a.example", credentials={"GITHUB_TOKEN": {"secret": "github", "hosts": ["api.example"]}})
    h.fails(3, 'there is no secret "github": "handrail secret set github"', "up", "-q", "--network", "egress",
            "-s", rules)
    equal(os.listdir(h.path("run")), [])
    equal(os.listdir(h.path("state")) if os.path.exists(h.path("state")) else [], [], "nothing was left")
    h.ok("secret", "set", "github", input=VALUE + "\n")
    equal((h.ok("secret", "list"), json.loads(h.ok("secret", "list", "--json"))), ("github\n", ["github"]))
    h.env["GITHUB_TOKEN"] = VALUE  # as that of a user who had it there before
    h.fails(1, "the sandbox is given the variable GITHUB_TOKEN", "up", "-q", "--network", "egress", "-s", rules,
            "-e", "GITHUB_TOKEN=x")
    h.up(rules)
    seen = h.ok("run", "echo $GITHUB_TOKEN; env; cat ~/.bashrc; "
                "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    equal(re.match(r"ph_[0-9a-f]{36}$", seen.splitlines()[0]) is not None, True, seen.splitlines()[0])
    equal(VALUE in seen, False)
    # in two parts, since the command is in the journal
    places = "/dev/shm /etc /home /root /run /tmp /var /workspace"
    equal(h("run", "grep -rlsF '%s''%s' %s" % (VALUE[:9], VALUE[9:], places)).stdout, "")
    for pid in process.all_pids():
        equal(VALUE in process.command_line(pid), False, "an argument")
    for where in (h.box()["dir"], h.path("state")):
        for top, _, files in os.walk(where):
            for name in files:
                path = os.path.join(top, name)
                with contextlib.suppress(OSError), open(path, "rb") as f:
                    if VALUE.encode() in f.read():
                        equal((os.path.relpath(path, h.path("state")), os.stat(path).st_mode & 0o777),
                              (os.path.relpath(path, h.path("state")), 0o600))
                        equal(name in ("secrets.json", "github", "nginx.conf"), True, path)
    for words in (("config",), ("logs",), ("net", "show"), ("net", "log"), ("inspect",)):
        done = h(*words)
        equal(VALUE in done.stdout + done.stderr, False, words)
    with open(h.egress("secrets.json")) as f:
        equal(json.load(f), {"github": VALUE})
    h.ok("secret", "set", "github", input="another-value")
    with open(h.egress("secrets.json")) as f:
        equal(json.load(f), {"github": "another-value"}, "of the box that runs")
    placeholder = seen.splitlines()[0]
    os.kill(h.box()["pid"], signal.SIGKILL)
    equal(process.wait_gone(h.box()["pid"], PATIENCE), True)
    h.up(rules)
    equal(h.ok("run", "echo $GITHUB_TOKEN").strip(), placeholder, "files of the agent's may have it")
    h.ok("down")
    equal(os.listdir(h.path("state")), ["secrets"])
    h.ok("secret", "rm", "github")
    h.fails(3, 'there is no secret "github"', "secret", "rm", "github")
    h.fails(1, "it must have 8 to 65536", "secret", "set", "x", input="1234567")
    equal(h.ok("secret", "list"), "")


def left_behind(h):
    """A box that was killed leaves neither names nor secrets to the next one."""
    h.ok("secret", "set", "github", input=VALUE)
    rules = h.rules("a.example", credentials={"TOKEN": {"secret": "github", "hosts": ["b.example:444"]}})
    h.up(rules)
    equal(h.get("a.example"), allowed("a.example"))
    box = h.box()
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(box["pid"], PATIENCE), True)
    equal(os.path.exists(h.egress("secrets.json")), True)
    h.ok("secret", "rm", "github")
    h.fails(3, 'there is no secret "github"', "up", "-q", "--network", "egress", "-s", rules)
    equal([os.path.exists(h.egress(name)) for name in ("secrets.json", "nginx.conf", "names")], 3 * [False])
    h.ok("secret", "set", "github", input=VALUE)
    h.up(rules)
    equal(h.get("a.example"), allowed("a.example"))
    h.ok("down")
    h.ok("secret", "rm", "github")


def requests(h):
    """Rules for requests: what passes, the reason of a refusal, and a credential for its own host alone."""
    port = h.secure("a.example", "b.example")
    rules = h.rules("b.example:%d" % port,
                    rules={"a.example": [{"methods": ["GET"], "paths": ["/p"], "ports": [port]}]},
                    credentials={"TOKEN": {"secret": "github", "hosts": ["a.example:%d" % port]}})
    h.ok("secret", "set", "github", input=VALUE)
    h.up(rules)
    curl = "curl -s -m 60 -H \"Authorization: Bearer $TOKEN\" https://%s:%d%s"
    equal(h.ok("run", curl % ("a.example", port, "/p")), "/p of a.example\n")
    equal(h.seen, ["Bearer " + VALUE])
    said = h.ok("run", curl % ("a.example", port, "/q"))
    equal(("network: GET a.example" in said, "refused" in said, len(h.seen)), (True, True, 1), said)
    equal(h.ok("run", curl % ("b.example", port, "/p")), "/p of b.example\n")
    equal((h.seen[1].startswith("Bearer ph_"), len(h.seen)), (True, 2))
    equal("refused http GET a.example:%d/q" % port in h.ok("net", "log"), True)
    plain = (curl % ("a.example", port, "/p")).replace("https:", "http:")
    equal((h("run", plain).returncode, len(h.seen)), (56, 2), "no secret leaves in clear")
    equal("a secret is sent by TLS" in h.ok("net", "log"), True)
    urls = ["https://a.example:%d%s" % (port, path) for path in ("/p", "/q")]
    equal([h("net", "test", "default", url).returncode for url in urls], [0, 1])
    equal(h("net", "test", "default", urls[0], "-X", "POST").returncode, 1)
    h.ok("secret", "set", "github", input="another-value")
    for _ in range(100):  # nginx's last worker with the old value may get some
        equal(h.ok("run", curl % ("a.example", port, "/p")), "/p of a.example\n")
        if h.seen[-1] != "Bearer " + VALUE:
            break
    equal(h.seen[-1], "Bearer another-value", "a value that is set again")
    box, pids = h.box(), processes(h.box())
    h.ok("down")
    h.ok("secret", "rm", "github")
    os.rmdir(h.path("state", "secrets"))
    for name in os.listdir(h.path("tmp")):
        os.remove(h.path("tmp", name))  # of the authority
    gone(h, box, *pids)


def certificates(h):
    """The box trusts its own authority beside those of the machine, by the file and by the variables."""
    h.up(h.rules("a.example"))
    got = h.ok("run", "grep -c BEGIN $SSL_CERT_FILE; grep -c BEGIN $NODE_EXTRA_CA_CERTS; "
               "test /etc/ssl/certs/ca-certificates.crt -ef $CURL_CA_BUNDLE && echo same; "
               "(echo x >>/etc/ssl/certs/ca-certificates.crt) 2>/dev/null || echo refused").split()
    equal((int(got[0]) > 0, got[1:]), (True, ["1", "same", "refused"]), got)
    with open("/etc/ssl/certs/ca-certificates.crt") as f:
        equal(int(got[0]), f.read().count("BEGIN") + 1)
    h.ok("down")


def refusals(h):
    """Rules that nothing would enforce are errors, and make nothing."""
    rules = h.rules("a.example")
    for status, text, words in (
            (1, "sandbox.network has rules, and the network of the sandbox is none: use --network", ("-s", rules)),
            (1, "the network of the sandbox is host", ("-s", rules, "--network", "host")),
            (1, "network: egressProxy", ("--network", "egress", "-s", 'sandbox.network={"egressProxy": {}}')),
            (1, "programs need this variable", ("--network", "egress", "-s", h.rules(
                "a.example", credentials={"PATH": {"secret": "s", "hosts": ["a.example"]}}))),
            (1, "there is no such preset", ("--network", "egress", "-s", h.rules(presets=["pipy"]))),
            (1, "maskRequestHost",
             ("--network", "egress", "-s", 'sandbox.network={"maskRequestHost": 1}')),
            (1, "sandbox.network is set, but the back-end local does not support it", ("-r", "local", "-s", rules)),
            (1, "network_mode is egress, but the back-end local does not support that",
             ("-r", "local", "--network", "egress")),
            (3, "sandbox.network_file", ("--network", "egress", "-s", "sandbox.network_file=/nonexistent"))):
        h.fails(status, text, "up", "-q", *words)
        equal([name for d in ("state", "run") if os.path.exists(h.path(d)) for name in os.listdir(h.path(d))], [])
    h.ok("secret", "set", "proxy", input="p" * 256)
    h.fails(1, 'egressProxy: the secret "proxy" has 256 bytes', "up", "-q", "--network", "egress", "-s", h.rules(
        "a.example", egressProxy={"address": "127.0.0.1:1", "username": "me", "password": "${secrets.proxy}"}))
    h.env["SANDBOX_NETWORK"] = '{"allowOut": ["a.example"]'
    h.fails(1, "SANDBOX_NETWORK", "up", "-q", "--network", "egress")
    del h.env["SANDBOX_NETWORK"]
    h.ok("up", "-q")
    for words in (("show",), ("log",), ("allow", "default", "x"), ("test", "default", "x")):
        h.fails(1, 'the network of sandbox "default" has no rules: "handrail down -n default" ends it', "net", *words)
    h.ok("down")


ATTACKS = """
import errno, socket, struct
socket.setdefaulttimeout(60)

def tried(what, *args):
    try:
        return what(*args) or "done"
    except OSError as e:
        return errno.errorcode[e.errno]

def udp(at, data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(at)
        s.send(data)
        return s.recv(512)

def ask(at, kind):
    query = struct.pack(">6H", 7, 256, 1, 0, 0, 0) + b"\\6secret\\1c\\7example\\0" + struct.pack(">2H", kind, 1)
    got = udp((at, 53), query)
    return got[3] & 15, got[-4:-2] if kind == 1 else b""

for args in ((socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), (socket.AF_INET6, socket.SOCK_RAW, 58),
             (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), (socket.AF_PACKET, socket.SOCK_RAW)):
    print(tried(socket.socket, *args))
print(tried(udp, ("8.8.8.8", 443), b"x"), tried(udp, ("169.254.169.254", 80), b"x"))
print(ask("8.8.8.8", 1), ask("10.0.0.53", 16), ask("198.18.0.1", 10))
"""


def attacks(h):
    """Ways around the broker: other protocols and resolvers, the files and the route that lead to it, the machine's own
    services. Nothing of these reaches a server or the machine's resolver."""
    h.up(h.rules("a.example"))
    got = h.ok("run", "/usr/bin/python3 - <<'E'\n%sE" % ATTACKS).split("\n")
    equal([line in ("EPERM", "EACCES") for line in got[:4]], [True] * 4, got)
    equal(got[4:6], ["ECONNREFUSED ECONNREFUSED", r"(0, b'\xc6\x12') (5, b'') (5, b'')"])
    h.ok("run", "ip -V")
    for change in ("echo nameserver 127.0.0.1 >/etc/resolv.conf", "rm -f /etc/resolv.conf", "umount /etc/resolv.conf",
                   "umount /etc/ssl/certs/ca-certificates.crt", "echo x >/run/handrail/network/refused",
                   "ip route del local default dev lo", "ip route add unreachable 93.184.216.0/24",
                   "ip link set lo down", "ip link add x type dummy"):
        equal(h("run", "(%s) 2>/dev/null" % change).returncode != 0, True, change)
    seen = len(h.seen)
    for target in ("127.0.0.1", "localhost", "127.9.9.9", "169.254.169.254", "[::1]", "[2606:4700::1111]"):
        equal(refused(h.get(target)), True, target)
    proxied = "curl -s -m 60 -o /dev/null -w '%%{http_connect}' -p -x http://127.0.0.1:3128 http://%s/"
    for target in ("a.example:22", "127.0.0.1:%d" % h.web, "localhost:%d" % h.web, "169.254.169.254:80"):
        equal(h("run", proxied % target).stdout.strip(), "403", target)
    equal((len(h.seen), h.names.asked), (seen, []))
    equal((h.get("a.example"), refused(h.get("c.example"))), (allowed("a.example"), True))
    equal(h.names.asked, ["a.example"] * 2)
    h.ok("down")


def pool(h):
    """A waiting box is taken for the same rules alone, by their content; frozen, its broker works."""
    h.file(json.dumps(json.loads(h.rules("a.example").split("=", 1)[1])), "cwd", "net.json")
    words = ("--network", "egress", "-s", "sandbox.network_file=net.json")
    settings = ("-s", "sandbox.security.network_mode=egress", "-s", "sandbox.network_file=net.json")
    h.ok("pool", "-q", *settings + ("1",))
    with open(h.path("state", "warm", [n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")][0])) as f:
        waiting = json.load(f)["backend"]["name"]
    h.up(h.rules("b.example"), "-n", "other")
    equal(h.box("other")["name"] != waiting, True)
    equal(refused(h.get("a.example", "-n", "other")), True)
    h.ok("up", "-q", *words)
    equal(h.box()["name"], waiting)
    equal((h.get("a.example"), refused(h.get("b.example"))), (allowed("a.example"), True))
    h.ok("net", "allow", "default", "b.example")
    equal(h.get("b.example"), allowed("b.example"))
    if h.uid == 0:
        h.ok("pause")
        h.ok("net", "deny", "default", "b.example")
        h.ok("resume")
        equal(refused(h.get("b.example")), True)
    h.ok("down", "--all")


def doctor(h):
    """It says whether boxes can have rules here."""
    equal("box.network=egress works" in h("doctor", "box").stdout, True)
    h.env["HANDRAIL_LIBEXECDIR"] = h.directory("libexec")
    os.symlink(os.path.join(BUILD, "handrail-box"), h.path("libexec", "handrail-box"))
    done = h("doctor", "box")
    equal(("box.network=egress needs handrail-egress" in done.stdout, done.returncode), (True, 1), done.stdout)


def tokens(h):
    """A token of the caller's is a credential for the provider's hosts that the rules allow, and else stays outside."""
    h.env["GITHUB_TOKEN"] = VALUE
    rules = dict(dnsServers=["127.0.0.1:%d" % h.dns], ports=[443, h.web], allowOut=["127.0.0.1", "api.github.com"])
    h.up("sandbox.network=" + json.dumps(rules))
    placeholder = h.ok("run", "echo $GITHUB_TOKEN").strip()
    seen = h.ok("run", "env; cat ~/.bashrc 2>&1; tr '\\0' '\\n' </proc/1/environ; true")
    equal((placeholder.startswith("ph_"), VALUE in seen), (True, False), placeholder)
    shown = h.ok("net", "show")
    equal(("GITHUB_TOKEN: api.github.com gets" in shown, "uploads" in shown), (True, False), shown)
    del h.env["GITHUB_TOKEN"]  # a change of the rules by a caller without it keeps it
    h.ok("net", "allow", "default", "other.test")
    with open(h.egress("secrets.json")) as f:
        equal(json.load(f), {"GITHUB_TOKEN": VALUE})
    h.ok("down")
    h.env["GITHUB_TOKEN"] = VALUE
    done = h("up", "--network", "egress", "-s", h.rules("good.test"))
    equal((done.returncode, "GITHUB_TOKEN stays outside" in done.stderr), (0, True), done.stderr)
    equal((h.ok("run", "echo ${GITHUB_TOKEN-unset}").strip(), "GITHUB_TOKEN" in h.ok("net", "show")), ("unset", False))
    h.ok("down")


def told(h):
    """The command that met a refusal says so to every reader, and the box cannot change the list."""
    h.up(h.rules("good.test"))
    fact = "Network: bad.test:%d was refused: no rule" % h.web
    equal([fact in h("run", "curl -s http://%s.test:%d/; true" % (name, h.web)).stderr for name in ("bad", "good")],
          [True, False])
    equal(fact in h("run", "-q", "curl -s http://bad.test:%d/; true" % h.web).stderr, False)
    o = json.loads(h.ok("run", "--json", "for i in 1 2; do curl -s http://bad.test:%d/; done; true" % h.web))
    equal(o["extras"]["metadata"]["suffix"].endswith("[%s, 2 times.]" % fact), True, o)
    list_of = "/run/handrail/network/refused"
    lines = h.ok("run", "cat " + list_of).splitlines()
    equal([line.split(" ", 1)[1] for line in lines], 4 * ["bad.test:%d %s" % (h.web, fact.split(" ", 1)[1])])
    h("run", "echo forged >>%s; rm -f %s; mv %s /tmp; umount /run/handrail/network; mount -o remount,rw "
      "/run/handrail/network; echo forged >/run/handrail/network/x" % (list_of, list_of, list_of))
    equal(h.ok("run", "cat " + list_of).splitlines(), lines)
    equal(os.listdir(h.egress("box")), ["refused"])
    box = h.box()
    h.ok("down")
    gone(h, box)


def main():
    if not os.access(os.path.join(BUILD, "handrail-egress"), os.X_OK):
        skip_all("handrail-egress is not built: apt-get install libc-ares-dev libssl-dev, and configure again")
    process.become_subreaper()
    return run((life, changes, presets_and_words, cuts, restarts, interrupted, stuck,
                secrets, left_behind, requests, certificates, refusals, attacks, tokens,
                told, pool, doctor), made=World)


if __name__ == "__main__":
    sys.exit(main())
