#!/usr/bin/env python3
"""Providers by their names and over TLS, as they are in the world: a name server that is slow or answers nothing, a
certificate of nobody's, and Modal's tunnels, which are https alone. All of it in name spaces of the test's own, with
a name server and an authority of its own."""

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_clouds_server  # noqa: E402
from lib import certs, grpcserver, modalservice, process, standin  # noqa: E402
from lib.supervised import free_port  # noqa: E402
from lib.tap import Skip, Tap, equal, skip_all  # noqa: E402
from test_clouds_e2b import KEY, CloudHost  # noqa: E402
from test_clouds_modal import PYTHON, SECRET, ModalHost  # noqa: E402

INSIDE, READY = "HANDRAIL_TEST_NAMES", "HANDRAIL_TEST_NAMES_READY"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


# ---- the name spaces ----

def enter():
    """Runs this file again in them; they are gone with it."""
    if shutil.which("unshare") is None or not os.path.exists(AUTHORITIES):
        skip_all("needs unshare and %s: apt-get install util-linux ca-certificates" % AUTHORITIES)
    words = ["unshare"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"]) + ["--mount", "--net"]
    if subprocess.run(words + ["mount", "--bind", "/etc/hosts", "/etc/hosts"],
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        skip_all("no name space of mounts and networks can be made here: run it where unshare may, as root")
    with tempfile.TemporaryDirectory() as d:
        env = dict(os.environ, **{INSIDE: d, READY: "%d:%d" % (os.geteuid(), os.getegid())})
        return subprocess.run(words + [sys.executable, os.path.abspath(__file__)], env=env).returncode


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        name = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(s, 0x8913, name)[:18])[1]
        fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", flags | 1))


def ours(name, text):
    with open(os.path.join(os.environ[INSIDE], name), "w") as f:
        f.write(text)
    return f.name


def prepare():
    """As the root of the name spaces; then whoever began goes on, as himself."""
    loopback_up()
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as f:
        f.write("0")
    authority = certs.Authority(os.environ[INSIDE], "authority")
    authority.make("clouds", 1, names="DNS:*.e2b.test,DNS:*.modal.test,DNS:r4444.example")
    with open(authority.pem) as f:
        text = f.read()
    for place, file in ((AUTHORITIES, ours("authorities", text)), ("/etc/resolv.conf", ours("resolv.conf", ""))):
        subprocess.run(["mount", "--bind", file, os.path.realpath(place)], check=True)
    uid, gid = os.environ.pop(READY).split(":")
    if uid != "0":
        os.execvp("unshare", ["unshare", "--user", "--map-user=" + uid, "--map-group=" + gid, sys.executable,
                              os.path.abspath(__file__)])


def resolver(options=""):
    ours("resolv.conf", "nameserver 127.0.0.1\n" + options)


class Names:
    """A name server: each name is this machine. It waits so many seconds before it answers; None: it never does."""

    def __init__(self):
        self.delay, self.asked = 0, []
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            q, who = self.s.recvfrom(4096)
            at, labels = 12, []
            while q[at]:
                labels.append(q[at + 1:at + 1 + q[at]].decode())
                at += 1 + q[at]
            kind, = struct.unpack(">H", q[at + 1:at + 3])
            self.asked.append(".".join(labels))
            a = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + bytes((127, 0, 0, 1)) if kind == 1 else b""
            said = q[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, 1 if a else 0, 0, 0) + q[12:at + 5] + a
            if self.delay is not None:
                threading.Timer(self.delay, self.s.sendto, (said, who)).start()


# ---- providers ----

FRONT = r"""user root;
master_process off;
pid %(dir)s/pid;
error_log stderr error;
events { }
http {
    access_log off;
    proxy_buffering off;
    proxy_http_version 1.1;
    proxy_temp_path %(dir)s;
    client_body_temp_path %(dir)s;
    client_max_body_size 0;
    ssl_certificate %(pem)s;
    ssl_certificate_key %(key)s;
    server {
        listen 127.0.0.1:443 ssl http2;
        server_name ~^4444- r4444.example;
        location / { proxy_pass http://127.0.0.1:%(port)d; }
    }
    server {
        listen 127.0.0.1:443 ssl http2;
        server_name api.modal.test;
        location / { grpc_pass grpc://%(to)s; }
    }
    server {
        listen 127.0.0.1:443 ssl http2;
        server_name ~\.e2b\.test$;
        location / { proxy_pass http://%(to)s; proxy_set_header Host $host; }
    }
}
"""


class Fronted:
    """A stand-in that is reached at port 443, and what listens at 4444 in its sandboxes, too."""

    pair = front = None

    def serving(self, port):
        super().serving(port)
        d = tempfile.mkdtemp(dir=os.environ[INSIDE])
        with open(os.path.join(d, "conf"), "w") as f:
            f.write(FRONT % {"dir": d, "pem": self.pair[0], "key": self.pair[1], "port": port,
                             "to": self.url.partition("//")[2]})
        before = process.children(os.getpid())
        # it goes into the background once it listens, so nobody has to wait for that
        subprocess.run([nginx(), "-p", d, "-e", "stderr", "-c", f.name], check=True)
        self.front, = set(process.children(os.getpid())) - set(before)

    def __exit__(self, *unused):
        super().__exit__(*unused)
        if self.front is not None:
            os.kill(self.front, signal.SIGTERM)
            os.waitpid(self.front, 0)


def nginx():
    found = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if found is None:
        raise Skip("there is no nginx: apt-get install nginx-light")
    return found


class FrontedE2B(Fronted, standin.E2B):
    pass


class FrontedModal(Fronted, modalservice.Modal):
    pass


class E2BHost(CloudHost):
    provider = FrontedE2B

    def account(self):
        return {"E2B_API_KEY": KEY, "E2B_DOMAIN": "e2b.test"}


class NamedModalHost(ModalHost):
    provider = FrontedModal

    def account(self):
        return {"MODAL_TOKEN_ID": KEY, "MODAL_TOKEN_SECRET": SECRET, "MODAL_SERVER_URL": "https://api.modal.test"}


HOSTS = (("e2b", E2BHost), ("modal", NamedModalHost))


def slow(names, kind):
    """A name server that takes its time is waited for, and nothing is made twice."""
    resolver("options timeout:5 attempts:3\n")
    names.delay = 1
    with kind() as h:
        h.at.serving(free_port())
        h.ok("up", "-q")
        equal(h.ok("run", "echo x"), "x\n")
        h.ok("down")
        equal(h.boxes(), [])
    names.delay = 0


def silent(names, kind):
    """One that never answers: that is said, and nothing is recorded that was never made."""
    resolver("options timeout:1 attempts:1\n")
    names.delay = None
    with kind() as h:
        h.at.serving(free_port())
        done = h("up")
        equal((done.returncode != 0, "resolve host" in done.stderr, KEY in done.stderr), (True, True, False),
              done.stderr)
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []))
    names.delay = 0


def stranger(names, kind):
    """A certificate that nobody vouches for: the key is not told to whoever has it."""
    resolver()
    with kind() as h:
        h.at.pair = certs.Authority(h.path("tmp"), "nobody").make("x", 1, names="DNS:*.e2b.test,DNS:*.modal.test")
        h.at.serving(free_port())
        done = h("up")
        equal((done.returncode != 0, "certificate" in done.stderr.lower(), h.at.seen), (True, True, []), done.stderr)
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []))


def a_server(names, kind):
    """Its sandboxes' own names lead to the server in them."""
    resolver()
    before = len(names.asked)
    test_clouds_server.life(kind)
    wanted = "r4444.example" if kind is NamedModalHost else "4444-box1.e2b.test"
    equal(wanted in names.asked[before:], True, names.asked[before:])


def main():
    if grpcserver.missing and os.path.exists(PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(PYTHON):
        os.execv(PYTHON, [PYTHON] + sys.argv)
    if grpcserver.missing:
        skip_all(grpcserver.missing)
    if INSIDE not in os.environ:
        return enter()
    if READY in os.environ:
        prepare()
    process.become_subreaper()
    tap = Tap()
    Fronted.pair = [os.path.join(os.environ[INSIDE], "clouds-1" + n) for n in (".pem", ".key")]
    names = Names()
    for test in (slow, silent, stranger, a_server):
        for name, kind in HOSTS:
            tap.run("%s: %s" % (test.__name__.replace("_", " "), name), test, names, kind)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
