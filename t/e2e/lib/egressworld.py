"""A machine for the broker of a box's network, in a network namespace of the test's own: public and private
addresses, name servers, servers; and boxes in it, as the launcher makes their network."""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading

from . import process
from .certs import Authority
from .host import BUILD, PATIENCE
from .tap import Skip, equal, skip_all

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PUBLIC, OTHER, PRIVATE, METADATA = "93.184.216.34", "93.184.216.35", "10.1.2.3", "169.254.169.254"
SIX = "2606:4700::9999"
PYTHON = "/usr/bin/python3"


def become(libc, inside, outside_uid, outside_gid):
    """Moves an ordinary user's process into a user namespace, which has that account alone, as INSIDE."""
    if libc.unshare(CLONE_NEWUSER) != 0:
        skip_all("this machine gives no user namespace: " + os.strerror(ctypes.get_errno()))
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (inside[0], outside_uid)),
                       ("gid_map", "%d %d 1" % (inside[1], outside_gid))):
        with open("/proc/self/" + name, "w") as f:
            f.write(text)


def enter():
    """Gives this process, while it has one thread, a network of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    if uid:
        become(libc, (0, 0), uid, gid)
    if libc.unshare(CLONE_NEWNET) != 0:
        skip_all("this machine gives no network namespace: " + os.strerror(ctypes.get_errno()))
    if shutil.which("ip") is None or not os.access(PYTHON, os.X_OK):
        skip_all("needs ip (package iproute2) and " + PYTHON)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # routes, since no interface of the machine may have the addresses of other machines
    for address in (PUBLIC, OTHER, PRIVATE, METADATA):
        subprocess.run(["ip", "route", "add", "local", address + "/32", "dev", "lo"], check=True)
    if os.path.exists("/proc/net/if_inet6"):
        subprocess.run(["ip", "-6", "route", "add", "local", SIX + "/128", "dev", "lo"], check=True)
    if uid:
        with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as f:
            f.write("0")  # for the servers of the tests
        become(libc, (uid, gid), 0, 0)  # the tests ask which account they have


class Names:
    """A name server on 127.0.0.1, which knows these names; all others are at `default`, or nowhere."""

    def __init__(self, default=None, **zone):
        self.zone, self.asked, self.default = {}, [], default
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.add(**zone)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def add(self, **zone):
        for name, addresses in zone.items():
            self.zone[name.replace("_", ".")] = addresses.split()

    def records(self, name, kind):
        """The records of that type; None: there is no such name."""
        found = self.zone.get(name, self.default.split() if self.default else None)
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        return None if found is None else [
            b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 5, len(a)) + a
            for a in (socket.inet_pton(family, a) for a in found if family == (
                socket.AF_INET6 if ":" in a else socket.AF_INET))]

    def serve(self):
        while True:
            question, client = self.socket.recvfrom(4096)
            if not question:
                return
            name, end = question_name(question)
            self.asked.append(name)
            found = self.records(name, struct.unpack(">H", question[end:end + 2])[0])
            self.socket.sendto(question[:2] + (b"\x81\x83" if found is None else b"\x81\x80") +
                               struct.pack(">HHHH", 1, len(found or ()), 0, 0) + question[12:end + 4] +
                               b"".join(found or ()), client)

    def close(self):
        self.socket.sendto(b"", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()


def question_name(p):
    at, labels = 12, []
    while p[at]:
        labels.append(p[at + 1:at + 1 + p[at]].decode())
        at += 1 + p[at]
    return ".".join(labels), at + 1


class Server:
    """A server of TCP, or of TLS, which calls handler(socket) for each connection in a thread of its own."""

    def __init__(self, address, port, handler, context=None):
        six = ":" in address  # which a server can only bind to if an interface has it
        self.listener = socket.create_server(("::" if six else address, port), backlog=128,
                                             family=socket.AF_INET6 if six else socket.AF_INET)
        self.address, self.port = self.listener.getsockname()[:2]
        self.handler, self.context, self.count = handler, context, 0
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.one, args=(s,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self.thread.join()
        self.listener.close()

    def one(self, s):
        with contextlib.suppress(OSError), s:
            if self.context:
                s = self.context.wrap_socket(s, server_side=True)
            self.handler(s)


def web(text):
    """A handler that answers one request of HTTP."""
    def handle(s):
        got = b""
        while b"\r\n\r\n" not in got:
            more = s.recv(4096)
            if not more:
                return
            got += more
        s.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    return handle


def echo(s):
    """A handler that sends back, and ends after the client."""
    while True:
        got = s.recv(65536)
        if not got:
            s.shutdown(socket.SHUT_WR)
            return
        s.sendall(got)


def tls(directory, *names):
    """An authority, and the context of a server with these names."""
    a = Authority(directory, "outside")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*a.make("server", 1, names=",".join("DNS:" + n for n in names)))
    return a, context


def private(path, flags):
    return os.open(path, flags, 0o600)


class World:
    """A box without the launcher, its broker, and the user of both."""

    def __init__(self, directory, uid, policy):
        self.uid, self.top = uid, directory
        self.change = {} if uid == os.geteuid() else dict(user=uid, group=uid, extra_groups=[])
        self.dir = os.path.join(directory, "egress")
        os.mkdir(self.dir, 0o700)
        os.chown(self.dir, uid, uid)
        with open(os.path.join(directory, "resolv.conf"), "w") as f:
            f.write("nameserver 198.18.0.1\n")
        self.names, self.servers, self.sessions = Names(), [], set()
        self.policy = dict({"dnsServers": ["127.0.0.1:%d" % self.names.port]}, **policy)
        self.put()
        self.box = subprocess.Popen(
            ["unshare", "-mnpf", "--mount-proc", "--kill-child"] + ([] if uid == 0 else ["-Ur"]) +
            ["sh", "-c", 'mount --bind "$0" /etc/resolv.conf && ip link set lo up && '
             'ip route add local 0.0.0.0/0 dev lo && echo up && exec sleep infinity',
             os.path.join(directory, "resolv.conf")], stdout=subprocess.PIPE, universal_newlines=True, **self.change)
        equal(self.box.stdout.readline(), "up\n")
        self.first = process.children(self.box.pid)[0]
        self.start()

    def serve(self, *what):
        self.servers.append(Server(*what))
        return self.servers[-1]

    def put(self, **changes):
        self.policy.update(changes)
        self.file("policy.json", self.policy)

    def file(self, name, value):
        path = os.path.join(self.dir, name)
        with open(path + ".new", "w", opener=private) as f:  # a broker may be about to read it
            json.dump(value, f)
        os.chown(path + ".new", self.uid, self.uid)
        os.rename(path + ".new", path)

    def program(self, *words, **more):
        return subprocess.run([os.path.join(BUILD, "handrail-egress")] + list(words), stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=PATIENCE, cwd="/", **dict(self.change, **more))

    def start(self):
        """Starts a broker as src/host/box does. Returns what it complains."""
        pidfd = os.pidfd_open(self.first)
        path = os.path.join(self.dir, "record")
        try:
            with open(path, "w+", opener=private) as f:
                os.chown(path, self.uid, self.uid)
                fcntl.flock(f, fcntl.LOCK_EX)
                done = self.program(self.dir, stdout=f, pass_fds=(3,), preexec_fn=lambda: os.dup2(pidfd, 3))
            with open(path) as f:
                fcntl.flock(f, fcntl.LOCK_SH)  # the keeper has it until the record is written
                text = f.read()
        finally:
            os.close(pidfd)
        self.record = json.loads(text) if text else None
        if text:
            self.sessions.add(self.record["pid"])
        return done.stderr

    def talk(self, **request):
        """A connection to the broker that has sent a request, as a file."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(os.path.join(self.dir, "control"))
            s.sendall(json.dumps(request).encode() + b"\n")
            return s.makefile("r", encoding="utf-8")

    def ask(self, **request):
        with self.talk(**request) as f:
            return json.loads(f.readline())

    def events(self, **want):
        with self.talk(op="log", **{"from": 0}) as f:
            found = [json.loads(line) for line in f]
        return [e for e in found if all(e.get(k) == v for k, v in want.items())]

    def inside(self, *words, **more):
        """Starts a program in the box."""
        return subprocess.Popen(
            ["nsenter", "-t", str(self.first), "-m", "-n"] +
            ([] if self.uid == 0 else ["-U", "--preserve-credentials"]) + list(words),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
            cwd="/", **dict(self.change, **more))

    def run(self, *words):
        p = self.inside(*words)
        out, err = p.communicate(timeout=PATIENCE)
        return p.returncode, out, err

    def python(self, script):
        """Runs a script in the box, after some imports. Returns what it prints."""
        code, out, err = self.run(PYTHON, "-c", "import socket, struct, sys, time\nsocket.setdefaulttimeout(%g)\n%s"
                                  % (PATIENCE, script))
        equal((code, err), (0, ""))
        return out.strip()

    def curl(self, *words):
        """Returns curl's exit code and output."""
        return self.run("curl", "-sS", "--max-time", "%g" % PATIENCE, *words)[:2]

    def ask_reload(self, **changes):
        self.put(**changes)
        return self.ask(op="reload")

    def broker(self):
        return self.ask(op="status")["pid"]

    def processes(self):
        """All keepers, and the others of their sessions."""
        return [pid for pid in process.all_pids() if not process.has_ended(pid) and
                int((process.stat_fields(pid) or [b"0"] * 4)[3]) in self.sessions]

    def end(self):
        """Ends the box. Nothing of the broker is left."""
        for s in self.servers + [self.names]:
            s.close()
        found = self.processes()
        self.box.kill()
        self.box.communicate(timeout=PATIENCE)
        equal([pid for pid in found if not process.wait_gone(pid, PATIENCE)], [], "processes end with the box")


def tunnels(world, n):
    """Waits until that many are open: each change is an answer to a question, no time."""
    while world.ask(op="status")["tunnels"] != n:
        select.select([], [], [], 0.01)
