#!/usr/bin/env python3
"""The broker of a box's network, handrail-egress, between a network namespace with only a loopback interface and a
machine of the test's own. As root each case is done twice, by root and by another account."""

import base64
import contextlib
import fcntl
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import egressworld, process  # noqa: E402
from lib.egressworld import METADATA, OTHER, PRIVATE, PUBLIC, PYTHON, SIX, Server, World  # noqa: E402
from lib.egressworld import echo, tls, tunnels, web  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402

UID = 54325  # of no account
OWN = "93.184.216.40"
REFUSED = (7, 35, 52, 55, 56)  # codes of curl for a connection that is reset, at once or later


def refused(w, *words):
    code, out = w.curl(*words)
    equal((code in REFUSED, out), (True, ""), (code,) + words)


def reload(w, **rules):
    w.put(**rules)
    equal(w.ask(op="reload"), {"ok": True})


def denied(w, **want):
    """The events of a refusal, by their rule."""
    return [e["rule"] for e in w.events(verdict="deny", **want)]


def names(w):
    """An allowed name leads to its server; another one is reset, with an event."""
    server = w.serve(PUBLIC, 80, web(b"outside"))
    w.names.add(allowed_test=PUBLIC, refused_test=PUBLIC)
    reload(w, allowOut=["allowed.test"])
    equal(w.curl("http://allowed.test/"), (0, "outside"))
    refused(w, "http://refused.test/")
    equal("refused.test" in w.names.asked, False, "a question leaves the machine for an allowed connection only")
    event = w.events(name="refused.test")
    equal([(e["verdict"], e["kind"], e["port"], e["rule"], e["count"]) for e in event],
          [("deny", "tcp", 80, "no rule", 1)])
    refused(w, "http://refused.test/")
    equal([e["count"] for e in w.events(name="refused.test")], [1, 1], "the second one is counted")
    equal(w.events(name="allowed.test")[0]["verdict"], "allow")
    equal(server.count, 1)
    code, _ = w.curl("http://allowed.test:81/")
    equal(code, 7, "a port without a listener")


def version_six(w):
    """A name that has an address of IPv6 alone leads to its server, though the box has none."""
    if not os.path.exists("/proc/net/if_inet6"):
        raise Skip("needs a kernel with IPv6")
    w.serve(SIX, 80, web(b"six"))
    w.names.add(six_test=SIX)
    reload(w, allowOut=["six.test"])
    equal(w.curl("http://six.test/"), (0, "six"))


def addresses(w):
    """Rules for addresses, and addresses that no rule names."""
    for at in (PUBLIC, PRIVATE, METADATA):
        w.serve(at, 80, web(at.encode()))
    w.serve("127.0.0.1", 443, web(b"the machine's own"))
    w.names.add(private_test=PRIVATE, metadata_test=METADATA, loopback_test="127.0.0.1",
                both_test=PRIVATE + " " + PUBLIC)
    reload(w, allowOut=[PUBLIC, "private.test", "metadata.test", "loopback.test", "both.test"])
    equal(w.curl("http://%s/" % PUBLIC), (0, PUBLIC))
    equal(w.curl("http://both.test/"), (0, PUBLIC), "the public address of two")
    for name in ("private.test", "metadata.test", "loopback.test"):
        refused(w, "http://%s/" % name)
        equal(denied(w, name=name), ["the name has only private addresses"])
    for address in (PRIVATE, METADATA, OTHER, "127.0.0.1", "127.9.9.9", "198.18.0.77"):
        refused(w, "http://%s/" % address)
        equal(len(denied(w, address=address)), 0 if address.startswith("127.") else 1, address)
    refused(w, "http://127.0.0.1:443/")
    reload(w, allowOut=["private.test", PRIVATE + "/32"])
    equal(w.curl("http://private.test/"), (0, PRIVATE), "a rule names the address")
    refused(w, "http://metadata.test/")
    equal(w.curl("-g", "http://[2606:4700::1111]/")[0], 7, "IPv6 is refused at once")
    equal(w.python("""
s = socket.socket(socket.AF_INET6)
print(s.connect_ex(("2606:4700::1111", 443)))"""), "101")


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root: the test gives an interface an address")


def own_addresses(w):
    """An address of an interface of the machine is reached only if an entry names it."""
    need_root()
    made = subprocess.run("(ip link add out type dummy || ip link add out type bridge) && "
                          "ip address add %s/32 dev out && ip link set out up" % OWN,
                          shell=True, stderr=subprocess.PIPE, universal_newlines=True)
    try:
        if made.returncode:
            raise Skip("this kernel gives no dummy interface and no bridge: " + made.stderr.strip())
        ask_own(w)
    finally:
        subprocess.run(["ip", "link", "delete", "out"], stderr=subprocess.DEVNULL)


def own_loopback(w):
    """So is a public address of the loopback interface."""
    need_root()
    subprocess.run(["ip", "address", "add", OWN + "/32", "dev", "lo"], check=True)
    try:
        ask_own(w)
    finally:
        subprocess.run(["ip", "address", "delete", OWN + "/32", "dev", "lo"], check=True)


def ask_own(w):
    server = w.serve(OWN, 80, web(b"the machine's own"))
    w.serve(PUBLIC, 80, web(b"outside"))
    w.names.add(own_test=OWN, both_test=OWN + " " + PUBLIC)
    why = "the address is this machine's own, and no rule names it"
    for policy in (dict(allowOut=["own.test", "both.test"], allowInternetAccess=True),
                   dict(allowOut=["own.test", "both.test", "0.0.0.0/0"], allowInternetAccess=None)):
        reload(w, **policy)
        before = server.count, len(denied(w, rule=why))
        refused(w, "http://own.test/")
        refused(w, "http://%s/" % OWN)
        equal((server.count, len(denied(w, rule=why))), (before[0], before[1] + 2), policy)
        equal(w.curl("http://both.test/"), (0, "outside"))
    equal(w.curl("-x", "http://127.0.0.1:3128", "--proxytunnel", "-w", "%{http_connect}", "http://%s/" % OWN)[1],
          "403")
    equal(len(denied(w, address=OWN, kind="proxy", rule=why)), 1)
    reload(w, allowOut=["own.test", OWN])
    equal(w.curl("http://own.test/"), (0, "the machine's own"))
    equal(w.curl("http://%s/" % OWN), (0, "the machine's own"))


def greetings(w):
    """The name in a TLS greeting must be that of the connection; a greeting may come in pieces."""
    a, context = tls(w.top, "allowed.test", "other.test")
    w.serve(PUBLIC, 443, web(b"secret"), context)
    w.names.add(allowed_test=PUBLIC, other_test=PUBLIC)
    reload(w, allowOut=["allowed.test", "*.wild.test"])
    trust = ("--cacert", a.pem)
    equal(w.curl(*trust, "https://allowed.test/"), (0, "secret"))
    refused(w, *trust, "https://other.test/")
    refused(w, *trust, "--connect-to", "other.test:443:allowed.test:443", "https://other.test/")
    equal(denied(w, name="allowed.test"), ["the TLS greeting names other.test"])
    equal(w.python("""
import ssl
context = ssl._create_unverified_context()
out, into = ssl.MemoryBIO(), ssl.MemoryBIO()
t = context.wrap_bio(into, out, server_hostname="allowed.test")
try:
    t.do_handshake()
except ssl.SSLWantReadError:
    pass
s = socket.create_connection(("allowed.test", 443))
for byte in out.read():
    s.sendall(bytes([byte]))
s.settimeout(%g)
print(s.recv(1) == b"\\x16")
s = socket.create_connection(("allowed.test", 443))
s.sendall(b"\\x16\\x03\\x01\\x00\\x10nonsense nonsense")
try:
    print(s.recv(1))
except ConnectionResetError:
    print("reset")""" % PATIENCE), "True\nreset")
    # without a name, as with an address in the place of it
    equal(w.curl("-k", "--connect-to", "1.2.3.4:443:allowed.test:443", "https://1.2.3.4/"), (0, "secret"))


def proxies_ports(w):
    """A rule can also name the ports of the proxies, which they keep at the loopback address."""
    w.names.add(allowed_test=PUBLIC, other_test=PUBLIC)
    for port in (3128, 1080):
        w.serve(PUBLIC, port, web(b"at %d" % port))
        reload(w, allowOut=["allowed.test"])
        before = len(denied(w))
        refused(w, "http://allowed.test:%d/" % port)
        reload(w, allowOut=["allowed.test:%d" % port])
        equal(w.curl("http://allowed.test:%d/" % port), (0, "at %d" % port))
        refused(w, "http://other.test:%d/" % port)
        equal(len(denied(w)), before + 2)
    w.serve(PUBLIC, 80, web(b"outside"))
    reload(w, allowOut=["allowed.test"])
    for way in (("-x", "http://127.0.0.1:3128"), ("--socks5-hostname", "127.0.0.1:1080")):
        equal(w.curl(*way, "http://allowed.test/"), (0, "outside"))


def by_address(w):
    """A host with rules is not reached by its address, where that is allowed; all else there is."""
    a, context = tls(w.top, "api.test", "x.wild.test", "no.test", "good.test")
    server = w.serve(PUBLIC, 443, web(b"reached"), context)
    w.serve(PUBLIC, 7000, echo)
    w.serve(PUBLIC, 7001, lambda s: s.sendall(b"220 hello") or echo(s))
    ruled = {"api.test": [{"methods": ["GET"]}], "*.wild.test": [{"paths": ["/ok"]}], "no.test": [{"deny": True}],
             "good.test": [{}]}
    ways = ((), ("--proxytunnel", "-x", "http://127.0.0.1:3128"), ("--socks5", "127.0.0.1:1080"))

    def ask(name, *way):
        return ("--cacert", a.pem, "--connect-to", "%s:443:%s:443" % (name, PUBLIC)) + way + ("https://%s/" % name,)
    for policy in (dict(allowInternetAccess=True, ports=[443, 7000, 7001]), dict(allowInternetAccess=None,
                   ports=None, allowOut=[PUBLIC, PUBLIC + ":7000", "93.184.216.0/24:7001"])):
        reload(w, rules=ruled, **policy)
        before = server.count, len(denied(w))
        for name in ("api.test", "x.wild.test", "no.test"):
            for way in ways:
                refused(w, *ask(name, *way))
                equal(denied(w, address=PUBLIC)[-1], "the TLS greeting names " + name)
            # a greeting in pieces, at a port that the rules are about or not
            equal(w.python(GREETING % (name, PUBLIC, 7000)), "reset")
        equal(len(denied(w)), before[1] + 12)
        for way in ways:
            equal(w.curl(*ask("good.test", *way)), (0, "reached"), way)
        equal(w.curl("-k", "https://%s/" % PUBLIC), (0, "reached"), "no name")
        equal(server.count >= before[0] + 4, True)
        equal(w.python(GREETING % ("other.test", PUBLIC, 7000)), "all of it", "no host with rules")
        equal(w.python("""
s = socket.create_connection(("%s", 7001))
print(s.recv(100))
s.sendall(b"\\x16")
s.sendall(b"\\x03\\x01\\x00\\x10nonsense nonsense")
try:
    print(s.recv(1))
except ConnectionResetError:
    print("reset")""" % PUBLIC), "b'220 hello'\nreset")
    equal(denied(w)[-1], "the TLS greeting is not clear")
    reload(w, rules=None)
    equal(w.curl(*ask("api.test")), (0, "reached"))
    equal(w.python("""
s = socket.create_connection(("%s", 7000))
s.sendall(b"\\x16")
print(s.recv(1))""" % PUBLIC), "b'\\x16'", "nothing is read where no host has rules")


# Sends a greeting in pieces to an echo server.
GREETING = """
import ssl
out = ssl.MemoryBIO()
t = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="%s")
try:
    t.do_handshake()
except ssl.SSLWantReadError:
    pass
hello = out.read()
s = socket.create_connection(("%s", %d))
try:
    for at in range(0, len(hello), 20):
        s.sendall(hello[at:at + 20])
    s.shutdown(socket.SHUT_WR)
    got = s.makefile("rb").read()
    print("all of it" if got == hello else got)
except OSError:
    print("reset")"""


def proxies(w):
    """CONNECT and SOCKS5 follow the same rules."""
    a, context = tls(w.top, "allowed.test")
    w.serve(PUBLIC, 443, web(b"secret"), context)
    w.serve(PUBLIC, 80, web(b"plain"))
    w.names.add(allowed_test=PUBLIC, dead_test=OTHER, private_test=PRIVATE)
    reload(w, allowOut=["allowed.test", "dead.test", "private.test"])
    for proxy in ("http://127.0.0.1:3128", "socks5h://127.0.0.1:1080"):
        words = ("--proxytunnel", "-x", proxy, "--cacert", a.pem, "-w", "%{http_connect}" if proxy[0] == "h" else "")
        code, good = ("200", "200") if proxy[0] == "h" else ("", "")
        equal(w.curl(*words, "https://allowed.test/"), (0, "secret" + good), proxy)
        equal(w.curl(*words, "http://allowed.test/"), (0, "plain" + good), proxy)
        for bad in ("refused.test", "private.test", "127.0.0.1", PUBLIC, "dead.test"):
            code, out = w.curl(*words, "https://%s/" % bad)
            equal((code, out), (56, "502" if bad == "dead.test" else "403") if good else (97, ""), bad)
        refused(w, *words[:-2], "--connect-to", "other.test:443:allowed.test:443", "https://other.test/")
    equal(denied(w, name="refused.test", kind="proxy"), ["no rule"] * 2)
    for proxy in ("-x http://127.0.0.1:3128", "--socks5 127.0.0.1:1080"):  # the client asks for the name
        equal(w.curl(*proxy.split(), "--proxytunnel", "--cacert", a.pem, "https://allowed.test/"), (0, "secret"))
    plain = ("-x", "http://127.0.0.1:3128", "-w", "%{http_code} ")
    equal(w.curl(*plain, "http://allowed.test/", "http://allowed.test/"), (0, "plain200 " * 2))
    for bad in ("refused.test", "private.test", "127.0.0.1", PUBLIC):
        equal(w.curl(*plain, "-o", "/dev/null", "http://%s/" % bad), (0, "403 "), bad)
    equal(w.python("""
def ask(port, *pieces):
    s = socket.create_connection(("127.0.0.1", port))
    for p in pieces:
        s.sendall(p)
    got = b""
    try:
        while True:
            more = s.recv(4096)
            if not more:
                return got
            got += more
    except ConnectionResetError:
        return got + b" reset"
get = b"GET / HTTP/1.0\\r\\n\\r\\n"
print(ask(3128, get).splitlines()[-1].decode())
print(b"plain" in ask(3128, b"CONNECT allowed.test:80 HTTP/1.1\\r\\n\\r\\n" + get))
print(b"plain" in ask(1080, b"\\5\\1\\0\\5\\1\\0\\3\\x0callowed.test\\0P" + get))
print(ask(1080, b"\\5\\1\\2"), ask(1080, b"\\5\\1\\0", b"\\5\\2\\0\\1\\1\\2\\3\\4\\0P"), ask(1080, b"\\4\\1"))
"""), "network: 127.0.0.1:3128: this proxy takes CONNECT and requests for http://\nTrue\nTrue\n" +
        r"b'\x05\xff' b'\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00' b' reset'")


def questions(w):
    """Questions over UDP and TCP, from the address that was asked; types that nobody has; bounds."""
    equal(w.python("""
def question(name, kind, n=7):
    return struct.pack(">HHHHHH", n, 256, 1, 0, 0, 0) + b"".join(
        bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0" + struct.pack(">HH", kind, 1)
def answer(p):
    return p[3] & 15, struct.unpack(">H", p[6:8])[0], socket.inet_ntoa(p[-4:]) if p[7] else None
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for server in ("198.18.0.1", "8.8.8.8", "127.0.0.1"):
    s.sendto(question("one.test", 1), (server, 53))
    p, at = s.recvfrom(4096)
    print(answer(p), at)
s.connect(("1.1.1.1", 53))
for kind in (28, 65, 64, 16, 15, 12, 255, 6):
    s.send(question("one.test", kind))
    print(kind, answer(s.recv(4096)))
for name in ("2.0.18.198.in-addr.arpa", "9.0.18.198.in-addr.arpa", "1.1.1.1.in-addr.arpa", "18.198.in-addr.arpa"):
    s.send(question(name, 12))
    p = s.recv(4096)
    print(p[3] & 15, p[-10:])
for junk in (b"", b"x", b"\\0" * 12, question("a.test", 1)[:-3], b"\\xff" * 600):
    s.send(junk)
s.send(question("two.test", 1))
print(answer(s.recv(4096)))
t = socket.create_connection(("9.9.9.9", 53))
both = b"".join(struct.pack(">H", len(q)) + q for q in (question("one.test", 1), question("TWO.test", 1)))
t.sendall(both[:5])
t.sendall(both[5:])
f = t.makefile("rb")
for i in range(2):
    print(answer(f.read(struct.unpack(">H", f.read(2))[0])))
"""), """(0, 1, '198.18.0.2') ('198.18.0.1', 53)
(0, 1, '198.18.0.2') ('8.8.8.8', 53)
(0, 1, '198.18.0.2') ('127.0.0.1', 53)
28 (0, 0, None)
65 (0, 0, None)
64 (0, 0, None)
16 (5, 0, None)
15 (5, 0, None)
12 (5, 0, None)
255 (5, 0, None)
6 (5, 0, None)
0 b'\\x03one\\x04test\\x00'
3 b'\\x04arpa\\x00\\x00\\x0c\\x00\\x01'
3 b'\\x04arpa\\x00\\x00\\x0c\\x00\\x01'
5 b'\\x04arpa\\x00\\x00\\x0c\\x00\\x01'
(0, 1, '198.18.0.3')
(0, 1, '198.18.0.2')
(0, 1, '198.18.0.3')""")
    equal(w.names.asked, [])


def many_names(w):
    """A box that asks for more names than there are addresses is answered, and costs little memory."""
    got = w.python("""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("198.18.0.1", 53))
codes = {}
for i in range(66000):
    l = b"%d" % i
    s.send(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + bytes([len(l)]) + l + b"\\4test\\0\\0\\1\\0\\1")
    code = s.recv(512)[3] & 15
    codes[code] = codes.get(code, 0) + 1
print(codes)""")
    equal(got, "{0: 65536, 2: 464}")
    equal((w.ask(op="status")["names"], len(w.events(kind="dns", verdict="deny"))), (65536, 2))
    small(w, 4096)


def anonymous(pid):
    """KB of memory that is the process's own."""
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return int(re.search(r"^Anonymous: +(\d+) kB$", f.read(), re.M).group(1))


def small(w, most):
    """The broker has less than that of its own; the sanitizers' own memory is many times as much."""
    if not os.environ.get("ASAN_OPTIONS"):
        equal(anonymous(w.broker()) < most, True, "%d KB" % anonymous(w.broker()))


def killed(w):
    """A broker that is killed comes back with its names; of a killed keeper the broker lives on."""
    w.serve(PUBLIC, 80, web(b"outside"))
    w.serve(PUBLIC, 7000, echo)
    w.names.add(allowed_test=PUBLIC)
    reload(w, allowOut=["allowed.test", "allowed.test:7000"])
    lookup = "print(socket.gethostbyname('%s'))"
    first = [w.python(lookup % n) for n in ("x.test", "allowed.test")]
    for i in range(3):
        broker = w.broker()
        os.kill(broker, signal.SIGKILL)
        equal(process.wait_gone(broker, PATIENCE), True)
        if i == 1:  # a damaged record
            with open(os.path.join(w.dir, "names"), "r+b") as f:
                f.write(b"\xff" * 256)
                f.seek(0, 2)
                f.write(b"half a record")
        equal(w.curl("http://allowed.test/"), (0, "outside"))
        equal(w.python(lookup % "allowed.test"), first[1])
    equal(w.python(lookup % "x.test") == first[0], False, "the damaged name")
    keeper = w.record["pid"]
    line = Line(w, "allowed.test")
    os.kill(keeper, signal.SIGKILL)
    equal(process.wait_gone(keeper, PATIENCE), True)
    broker = w.broker()
    equal(w.curl("http://allowed.test/"), (0, "outside"))
    equal("was killed" in w.ask_reload(allowOut=["allowed.test", "allowed.test:8000"])["error"], True)
    equal(w.curl("http://allowed.test/"), (0, "outside"))
    w.put(allowOut=["allowed.test", "allowed.test:7000"])
    equal(w.start(), "")
    equal((w.record["pid"] != keeper, w.broker() != broker), (True, True))
    equal(line.say("still here"), "still here", "the old broker carries on what is open")
    equal(w.curl("http://allowed.test/"), (0, "outside"))
    line.end()
    equal(process.wait_gone(broker, PATIENCE), True, "it ends with its last tunnel")
    equal(w.python(lookup % "allowed.test"), first[1])


class Line:
    """A connection to an echo server, from a program in the box that lives on."""

    def __init__(self, w, name):
        self.p = w.inside(egressworld.PYTHON, "-c", "import socket, sys\n"
                          "s = socket.create_connection(('%s', 7000))\n"
                          "for l in sys.stdin:\n"
                          "    s.sendall(l.encode())\n"
                          "    print(s.makefile().readline(), end='', flush=True)" % name)
        equal(self.say("hello"), "hello")

    def say(self, text):
        self.p.stdin.write(text + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().strip()

    def end(self):
        out, err = self.p.communicate(timeout=PATIENCE)
        equal((out, err), ("", ""))


def upgraded(w):
    """An upgrade in place loses no connection and no byte."""
    w.serve(PUBLIC, 80, web(b"outside"))
    w.serve(PUBLIC, 7000, echo)
    w.names.add(allowed_test=PUBLIC)
    reload(w, allowOut=["allowed.test", "allowed.test:7000"])
    lines = []
    for i in range(3):
        lines.append(Line(w, "allowed.test"))
        before = w.broker()
        ask = w.inside(egressworld.PYTHON, "-c", "import urllib.request\nfor i in range(200):\n"
                       "    assert urllib.request.urlopen('http://allowed.test/').read() == b'outside'")
        os.kill(w.record["pid"], signal.SIGHUP)
        out, err = ask.communicate(timeout=PATIENCE)
        equal((ask.returncode, err), (0, ""))
        while w.broker() == before:
            pass
        equal([l.say("after %d" % i) for l in lines], ["after %d" % i] * len(lines))
    equal(len(w.processes()), 5, "the keeper, its broker, and a broker for each line")
    for l in lines:
        l.end()
    while len(w.processes()) > 2:
        pass
    found = w.processes()
    os.kill(w.record["pid"], signal.SIGTERM)
    equal([pid for pid in found if not process.wait_gone(pid, PATIENCE)], [])
    equal(os.path.exists(os.path.join(w.dir, "control")), False)
    equal(w.start(), "", "it can be started again")
    equal(w.curl("http://allowed.test/"), (0, "outside"))


def upgraded_meanwhile(w):
    """A broker that learns of an upgrade while it waits for a listener makes room for the next one."""
    if os.geteuid() != 0:
        raise Skip("needs root: the test reads /proc/PID/syscall of a process that hides itself")
    if os.uname().machine not in RECVMSG:
        raise Skip("needs the number of recvmsg on this machine: add it to RECVMSG in this file")
    w.serve(PUBLIC, 7000, echo)
    w.names.add(allowed_test=PUBLIC)
    reload(w, allowOut=["allowed.test:7000"])
    line, before = Line(w, "allowed.test"), w.broker()
    os.kill(w.record["pid"], signal.SIGSTOP)
    w.put(allowOut=["allowed.test:7000", "allowed.test:7001"])
    with w.talk(op="reload") as f:
        equal(waits_for_message(before), True)
        os.kill(w.record["pid"], signal.SIGHUP)  # the keeper looks at signals first
        os.kill(w.record["pid"], signal.SIGCONT)
        equal(json.loads(f.readline()), {"ok": True})
    equal((w.broker() != before, line.say("still")), (True, "still"))
    equal(sorted(w.ask(op="status")["ports"]), [53, 53, 80, 443, 1080, 3128, 7000, 7001])
    line.end()


RECVMSG = {"x86_64": "47", "aarch64": "212"}


def waits_for_message(pid):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with open("/proc/%d/syscall" % pid) as f:
            if f.read().split()[0] == RECVMSG[os.uname().machine]:
                return True
        select.select([], [], [], 0.01)
    return False


def control(w):
    """reload, status and log; an error keeps the rules."""
    w.serve(PUBLIC, 8080, web(b"outside"))
    w.names.add(allowed_test=PUBLIC)
    equal(sorted(w.ask(op="status")["ports"]), [53, 53, 80, 443, 1080, 3128])
    equal(w.curl("http://allowed.test:8080/")[0], 7)
    follow = w.talk(op="log", follow=True, **{"from": 0})
    reload(w, allowOut=["allowed.test:8080"])
    equal(sorted(w.ask(op="status")["ports"]), [53, 53, 80, 443, 1080, 3128, 8080])
    equal(w.curl("http://allowed.test:8080/"), (0, "outside"))
    event = json.loads(follow.readline())
    equal((event["verdict"], event["name"], event["port"]), ("allow", "allowed.test", 8080))
    equal(w.ask_reload(allowOut=["allowed.test"], httpsPorts=[1]).keys(), {"error"})
    equal(w.curl("http://allowed.test:8080/"), (0, "outside"), "the earlier rules")
    w.policy.pop("httpsPorts")
    taken = w.inside(egressworld.PYTHON, "-c", "import socket\ns = socket.create_server(('', 9000))\n"
                     "print('on', flush=True)\ninput()")
    equal(taken.stdout.readline(), "on\n")
    equal(w.ask_reload(allowOut=["allowed.test:9000", "allowed.test:9001"]),
          {"error": "listen on port 9000 in the network of the sandbox: Address already in use"})
    equal(sorted(w.ask(op="status")["ports"]), [53, 53, 80, 443, 1080, 3128, 8080])
    taken.communicate("\n", timeout=PATIENCE)
    reload(w, allowOut=["allowed.test:9000"])
    equal(sorted(w.ask(op="status")["ports"]), [53, 53, 80, 443, 1080, 3128, 9000])
    equal(w.curl("http://allowed.test:8080/")[0], 7, "the listener is closed")
    equal(list(w.ask(op="nonsense")), ["error"])
    follow.close()
    numbers = [e["seq"] for e in w.events()]
    equal(numbers, sorted(set(numbers)))
    os.kill(w.broker(), signal.SIGKILL)
    equal([e["seq"] for e in w.events()], numbers, "they are read from the file")
    equal(oct(os.stat(os.path.join(w.dir, "control")).st_mode & 0o777), "0o600")


def cut(w):
    """A change of the rules ends what they no longer allow: by name, by address, and by the address of a name."""
    w.serve(PUBLIC, 7000, echo)
    w.names.add(allowed_test=PUBLIC, other_test=PUBLIC)
    both = ["allowed.test:7000", "other.test:7000", PUBLIC + ":7000"]
    reload(w, allowOut=both)
    lines = [Line(w, name) for name in ("allowed.test", "other.test", PUBLIC)]
    for rules, left in ((dict(allowOut=both[:1] + both[2:]), (0, 2)), (dict(allowOut=both[:1]), (0,)),
                        (dict(denyOut=[PUBLIC + "/32"]), ())):
        equal(w.ask_reload(**rules), {"ok": True, "cut": 1}, rules)
        equal([lines[i].say("still") for i in left], ["still"] * len(left))
        equal(w.ask_reload(**rules), {"ok": True})
    equal(denied(w), ["no rule", "no rule", "its address is denied"])
    for l in lines:
        l.p.kill()
        l.p.communicate()


def cut_early(w):
    """An address that is denied while a name is connected to it gets no byte."""
    asked, go = threading.Event(), threading.Event()

    class Slow(Proxy):
        def ask_http(self, s):
            target = Proxy.ask_http(self, s)
            asked.set()
            go.wait(PATIENCE)
            return target
    server = w.serve(PUBLIC, 7000, echo)
    w.names.add(allowed_test=PUBLIC)
    Slow(w, True)
    rules = dict(allowOut=["allowed.test:7000"], egressProxy={"address": "http://%s:3128" % PRIVATE})
    reload(w, **rules)
    p = w.inside(PYTHON, "-c", """if True:
        import socket
        s = socket.create_connection(("allowed.test", 7000))
        try:
            s.sendall(b"a")
            print(s.recv(1))
        except ConnectionResetError:
            print("reset")""")
    equal(asked.wait(PATIENCE), True)
    reload(w, denyOut=[PUBLIC], **rules)
    go.set()
    equal(p.communicate(timeout=PATIENCE), ("reset\n", ""))
    equal((denied(w, kind="tcp"), server.count), (["its address is denied"], 1), "the proxy had connected")


def patience(w):
    """Clients that say nothing and receivers that read nothing stop no others."""
    big = b"x" * (8 << 20)

    def flood(s):
        s.sendall(big)
    w.serve(PUBLIC, 7000, flood)
    w.serve(PUBLIC, 80, web(b"outside"))
    w.names.add(allowed_test=PUBLIC)
    reload(w, allowOut=["allowed.test", "allowed.test:7000"])
    quiet = w.inside(egressworld.PYTHON, "-c", """if True:
        import socket
        a = [socket.create_connection(("127.0.0.1", 3128)) for i in range(200)]
        b = [socket.create_connection(("allowed.test", 7000)) for i in range(20)]
        print("on", flush=True)
        input()
        n = 0
        for s in b:
            with s.makefile("rb") as f:
                n += len(f.read())
        print(n)""")
    equal(quiet.stdout.readline(), "on\n")
    equal(w.curl("http://allowed.test/"), (0, "outside"))
    equal(w.curl("--proxytunnel", "-x", "http://127.0.0.1:3128", "http://allowed.test/"), (0, "outside"))
    small(w, 3072)  # with 20 slow receivers
    equal(quiet.communicate("\n", timeout=PATIENCE), ("%d\n" % (20 * len(big)), ""))


def ends(w):
    """Ends and resets of both sides, and bytes that are on their way, arrive as without a broker."""
    def half(s):  # the whole request, then the answer
        n = 0
        while True:
            got = s.recv(65536)
            if not got:
                break
            n += len(got)
        s.sendall(b"%d" % n)

    def first(s):  # speaks first, and ends while the client still sends
        s.sendall(b"220 hello\r\n")
        s.shutdown(socket.SHUT_WR)
        n = 0
        while True:
            got = s.recv(65536)
            if not got:
                break
            n += len(got)
        counted.append(n)
        done.set()

    def reset(s):
        s.sendall(b"part")
        s.recv(1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    counted, done = [], threading.Event()
    w.serve(PUBLIC, 7001, half)
    w.serve(PUBLIC, 7002, first)
    w.serve(PUBLIC, 7003, reset)
    w.names.add(allowed_test=PUBLIC)
    reload(w, allowOut=["allowed.test:%d" % p for p in (7001, 7002, 7003, 7004)])
    equal(w.python("""
s = socket.create_connection(("allowed.test", 7001))
s.sendall(b"x" * 3000000)
s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode())
s = socket.create_connection(("allowed.test", 7002))
print(s.recv(100), s.recv(100))
for i in range(100):
    s.sendall(b"y" * 10000)
s.close()
s = socket.create_connection(("allowed.test", 7003))
print(s.recv(100))
s.sendall(b"z")
try:
    print(s.recv(100))
except ConnectionResetError:
    print("reset")
try:  # the reset may come before the connection is reported
    s = socket.create_connection(("allowed.test", 7004))
    print(s.recv(100))
except ConnectionResetError:
    print("reset")"""), "3000000\n" + r"b'220 hello\r\n' b''" + "\nb'part'\nreset\nreset")
    equal((done.wait(PATIENCE), counted), (True, [1000000]))
    equal(w.events(port=7004, kind="error")[0]["rule"], "Connection refused")
    tunnels(w, 0)


def bounded(w):
    """More connections than are carried are reset; the others go on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # of the server here; that of a login is 1024
    try:
        many_connections(w)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def many_connections(w):
    w.serve(PUBLIC, 7000, echo)
    w.names.add(allowed_test=PUBLIC)
    reload(w, allowOut=["allowed.test:7000"])
    equal(w.python("""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
s = [socket.create_connection(("allowed.test", 7000)) for i in range(1024)]
for c in s:
    c.sendall(b"a")
print(sum(c.recv(1) == b"a" for c in s))
try:
    more = socket.create_connection(("allowed.test", 7000))
    print(more.recv(1))
except ConnectionResetError:
    print("reset")
s[5].sendall(b"b")
print(s[5].recv(1))"""), "1024\nreset\nb'b'")
    equal(denied(w, kind="error"), ["the sandbox has too many connections"])
    tunnels(w, 0)
    small(w, 3072)


def shared(w):
    """Connections that need the same name meanwhile share one lookup, whose two questions are asked three times at
    most; another name has its own."""
    go, records = threading.Event(), w.names.records
    w.names.records = lambda *question: go.wait(PATIENCE) and records(*question)
    w.serve(PUBLIC, 7000, echo)
    w.names.add(allowed_test=PUBLIC, other_test=PUBLIC)
    reload(w, allowOut=["allowed.test:7000", "other.test:7000"])
    p = w.inside(PYTHON, "-c", """
import socket
s = [socket.create_connection((name, 7000)) for name in ["allowed.test"] * 50 + ["other.test"]]
for c in s:
    c.sendall(b"a")
print(sum(c.recv(1) == b"a" for c in s))""")
    tunnels(w, 51)
    go.set()
    equal(p.communicate(timeout=PATIENCE), ("51\n", ""))
    asked = [w.names.asked.count(name) for name in ("allowed.test", "other.test")]
    equal([2 <= n <= 6 for n in asked], [True, True], asked)
    tunnels(w, 0)


def exactly(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(n - len(got))
        if not more:
            raise OSError("the end")
        got += more
    return got


class Proxy:
    """An HTTP or SOCKS5 proxy that wants this login (None: none) and refuses port 7009."""

    def __init__(self, w, http, login=None, at=("10.1.2.3", 3128)):
        self.http, self.login, self.asked = http, login, []
        self.server = w.serve(*at, self.one)

    def one(self, s):
        target = self.ask_http(s) if self.http else self.ask_socks(s)
        if target is None:
            return
        with socket.create_connection(target, source_address=("127.0.0.1", 0)) as to:
            # with the first bytes of the server, if it has said something
            ready = b"".join([to.recv(100)] if target[1] == 7008 else [])
            s.sendall((b"HTTP/1.1 200 Here\r\nVia: x\r\n\r\n" if self.http else b"\5\0\0\1" + bytes(6)) + ready)
            back = threading.Thread(target=self.pump, args=(to, s), daemon=True)
            back.start()
            self.pump(s, to)
            back.join()

    @staticmethod
    def pump(a, b):
        with contextlib.suppress(OSError):
            while True:
                got = a.recv(65536)
                if not got:
                    b.shutdown(socket.SHUT_WR)
                    return
                b.sendall(got)

    def ask_http(self, s):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += exactly(s, 1)
        line, *fields = head.decode().split("\r\n")[:-2]
        self.asked.append(line)
        want = [] if self.login is None else ["Proxy-Authorization: Basic " +
                                              base64.b64encode(":".join(self.login).encode()).decode()]
        verb, target, _ = line.split(" ")
        equal((verb, fields), ("CONNECT", ["Host: " + target] + fields[1:]))
        host, port = target.rsplit(":", 1)
        if fields[1:] != want or port == "7009":
            s.sendall(b"HTTP/1.1 %d No\r\n\r\n" % (407 if fields[1:] != want else 403))
            return None
        return host, int(port)

    def ask_socks(self, s):
        methods = exactly(s, exactly(s, 2)[1])
        s.sendall(b"\5" + (b"\0" if self.login is None else b"\2" if 2 in methods else b"\xff"))
        if self.login is not None:
            if 2 not in methods:
                return None
            user = exactly(s, exactly(s, 2)[1]).decode()
            good = (user, exactly(s, exactly(s, 1)[0]).decode()) == self.login
            s.sendall(b"\1" + (b"\0" if good else b"\1"))
            if not good:
                return None
        equal(exactly(s, 4), b"\5\1\0\1")
        host, port = socket.inet_ntoa(exactly(s, 4)), struct.unpack(">H", exactly(s, 2))[0]
        self.asked.append("%s:%d" % (host, port))
        if port == 7009:
            s.sendall(b"\5\2\0\1" + bytes(6))
            return None
        return host, port


def proxied(w):
    """All connections leave by the operator's proxy, those of nginx, too; names and addresses are judged before."""
    w.serve(PUBLIC, 7000, echo)
    w.serve(PUBLIC, 7008, lambda s: s.sendall(b"220 hello\r\n"))
    w.names.add(allowed_test=PUBLIC, private_test=PRIVATE, proxy_test=OTHER, hidden_test=PRIVATE)
    rules = {"allowOut": ["allowed.test:7000", "allowed.test:7008", "allowed.test:7009", "private.test:7000", PUBLIC]}
    ask = """
def ask(port, name="allowed.test"):
    try:
        with socket.create_connection((name, port)) as s:
            if port == 7000:
                s.sendall(b"a" * 100000)
                s.shutdown(socket.SHUT_WR)
            n = sum(map(len, iter(lambda: s.recv(65536), b"")))
            return n
    except OSError:
        return "reset"
"""
    login = ("me", "s3cret-of-proxy")
    w.file("secrets.json", {"proxy": login[1], "token": "real-and-secret"})
    for http, scheme, secret, at in ((True, "http://", False, PRIVATE + ":3128"), (False, "", False, PRIVATE + ":3129"),
                                     (True, "http://", True, "proxy.test:3128"),
                                     (False, "socks5://", True, PRIVATE + ":3130")):
        host, port = at.split(":")
        p = Proxy(w, http, login if secret else None, (OTHER if host == "proxy.test" else host, int(port)))
        proxy = dict({"address": scheme + at},
                     **({"username": login[0], "password": "${secrets.proxy}"} if secret else {}))
        reload(w, egressProxy=proxy, **rules)
        del p.asked[:]
        equal(w.python(ask + "print(ask(7000), ask(7008), ask(7009), ask(7000, 'private.test'), ask(7000, '%s'))" %
                       PUBLIC), "100000 11 reset reset reset", at)
        equal([line.split(" ")[-2] if http else line for line in p.asked],
              [PUBLIC + ":7000", PUBLIC + ":7008", PUBLIC + ":7009"], at)
        equal(w.events(port=7009, kind="error")[-1]["rule"],
              "egressProxy: the connection was refused, " + ("status 403" if http else "reply 2"))
        equal(denied(w, name="private.test")[-1], "the name has only private addresses")
        # an open connection is judged by the server's address, not by the proxy's
        equal(w.python("""
s = socket.create_connection(("allowed.test", 7000))
s.sendall(b"a")
print(s.recv(1), flush=True)
"""), "b'a'")
    for wrong, why in (({"address": "http://hidden.test:3128"},
                        "egressProxy: the address is private or this machine's own"),
                       ({"address": PRIVATE + ":3130"}, "egressProxy: username and password were refused"),
                       ({"address": "http://%s:3130" % PRIVATE, "username": "a", "password": "${secrets.proxy}"},
                        "egressProxy: the connection was closed"),
                       ({"address": PRIVATE + ":3130", "username": "you", "password": "${secrets.proxy}"},
                        "egressProxy: username and password were refused"),
                       ({"address": PRIVATE + ":3131"}, "Connection refused"),
                       ({"address": PRIVATE + ":3130", "username": "me", "password": "${secrets.other}"},
                        "egressProxy: the secret is not set")):
        reload(w, egressProxy=wrong)
        equal(w.python(ask + "print(ask(7000))"), "reset", wrong)
        equal(w.events(port=7000, kind="error")[-1]["rule"], why)
    with open(os.path.join(w.dir, "log")) as f:
        equal(login[1] in f.read(), False)
    # the longest login, and a longer one, which is refused as a whole
    long = ("u" * 255, "p" * 255)
    w.file("secrets.json", {"proxy": long[1]})
    Proxy(w, False, long, (PRIVATE, 3132))
    proxy = {"address": PRIVATE + ":3132", "username": long[0], "password": "${secrets.proxy}"}
    reload(w, egressProxy=proxy)
    equal(w.python(ask + "print(ask(7000))"), "100000")
    w.file("secrets.json", {"proxy": long[1] + "p"})
    equal(w.ask(op="reload"), {"error": 'egressProxy: the secret "proxy" has 256 bytes: the password of a SOCKS5 proxy '
                                        'must have at most 255'})
    equal(w.python(ask + "print(ask(7000))"), "100000", "the earlier rules stay")


def proxied_inspected(w):
    """Requests that nginx makes leave by the proxy, too."""
    trust = inspecting(w)
    w.file("secrets.json", {"proxy": "s3cret-of-proxy", "token": "real-and-secret"})
    p = Proxy(w, True, ("me", "s3cret-of-proxy"), (PRIVATE, 3128))
    reload(w, egressProxy={"address": "http://%s:3128" % PRIVATE, "username": "me", "password": "${secrets.proxy}"})
    for at in ("http://api.test", "https://api.test"):
        equal(w.curl(*trust, at + "/ok/x"), (0, "GET /ok/x Bearer (a secret)"), at)
        equal(w.curl(*trust, at + "/no")[1][:8], "network:", at)
    equal(p.asked, ["CONNECT %s:%d HTTP/1.1" % (PUBLIC, port) for port in (80, 443)])


def no_cores(w):
    """A secret is in no argument, environment and core file of the processes, and in no other file than it must be."""
    trust = inspecting(w)
    equal(w.curl(*trust, "https://api.test/ok/x")[0], 0)
    found = w.processes()
    equal((len(found) >= 4, len(nginx(w)) >= 2), (True, True))
    for pid in found:
        for name in ("cmdline", "environ") if os.geteuid() == 0 else ("cmdline",):  # its own account reads no environ
            with open("/proc/%d/%s" % (pid, name), "rb") as f:
                equal(b"real-and-secret" in f.read(), False, name)
        with open("/proc/%d/limits" % pid) as f:
            equal([line.split()[4:6] for line in f if line.startswith("Max core")], [["1", "1"]])
    with open("/proc/sys/kernel/core_pattern") as f:
        pattern = f.read()
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)
        equal(process.wait_gone(pid, PATIENCE), True)
    holds = []
    for at, _, files in os.walk(w.dir):
        for name in files:
            path = os.path.join(at, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as f:
                if b"real-and-secret" in f.read():
                    holds.append((os.path.relpath(path, w.dir), os.stat(path).st_mode & 0o777))
    equal(sorted(holds), [("nginx.conf", 0o600), ("secrets.json", 0o600)], pattern)


def hidden(w):
    """No other process of the account, without capabilities, reads the memory of the keeper and of its broker."""
    # another account has none, and setpriv of Debian 13 fails without them
    without = [] if w.change or os.geteuid() else ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    look = without + [PYTHON, "-c", "import sys\nfor name in sys.argv[1:]:\n"
                      "    try:\n        print(len(open(name, 'rb').read(1)))\n"
                      "    except PermissionError:\n        print('hidden')"]

    def seen(pid):
        done = subprocess.run(look + ["/proc/%d/%s" % (pid, name) for name in ("environ", "auxv", "maps")],
                              stdout=subprocess.PIPE, universal_newlines=True, cwd="/", **w.change)
        return done.stdout.split()
    with subprocess.Popen(without + ["sh", "-c", "echo up; exec sleep infinity"], stdout=subprocess.PIPE,
                          **w.change) as other:
        other.stdout.readline()
        equal(seen(other.pid), ["1"] * 3, "an ordinary process of the account")
        other.kill()
    for _ in range(2):
        before = w.broker()
        equal([seen(pid) for pid in (w.record["pid"], before)], [["hidden"] * 3] * 2)
        os.kill(w.record["pid"], signal.SIGHUP)
        equal(process.wait_gone(before, PATIENCE), True)


def serve_requests(w, port, context=None):
    """A server that answers with the request's line and its header Authorization, and keeps the connection."""
    def handle(s):
        f = s.makefile("rb")
        for line in f:
            head = {}
            for field in iter(f.readline, b"\r\n"):
                name, value = field.decode().strip().split(": ", 1)
                head[name.lower()] = value
            text = "%s %s" % (line.decode().split(" HTTP")[0], head.get("authorization"))
            s.sendall(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)).encode())
    return w.serve(PUBLIC, port, handle, context)


def inspecting(w):
    """The world with two inspected hosts; gives curl's options for the box's authority."""
    if not os.access("/usr/sbin/nginx", os.X_OK):
        raise Skip("needs nginx")
    done = w.program("--prepare", w.dir)
    equal((done.returncode, done.stderr), (0, ""))
    outside, context = tls(w.top, "api.test", "other.test")
    with open(os.path.join(w.dir, "trust.pem"), "a") as f, open(outside.pem) as pem:
        f.write(pem.read())
    serve_requests(w, 443, context)
    serve_requests(w, 80)
    w.names.add(api_test=PUBLIC, other_test=PUBLIC, evil_test=PRIVATE)
    w.file("secrets.json", {"token": "real-and-secret"})
    reload(w, rules={"api.test": [{"methods": ["GET"], "paths": ["/ok/*"], "ports": [80, 443],
                                   "transform": {"headers": {"Authorization": "Bearer ${secrets.token}"}}}],
                     "evil.test": [{"methods": ["GET"]}]})
    shutil.copy(os.path.join(w.dir, "ca.crt"), os.path.join(w.top, "ca.crt"))
    os.chmod(os.path.join(w.top, "ca.crt"), 0o644)
    return "--cacert", os.path.join(w.top, "ca.crt")


def prepared(w):
    """Two processes that make the authority of a box do it one after the other."""
    def waits(pid, inode):
        with open("/proc/locks") as f:
            return any(line.split()[1] == "->" and line.split()[5:7] == [str(pid), inode] for line in f)
    st = os.stat(w.dir)
    inode = "%02x:%02x:%d" % (os.major(st.st_dev), os.minor(st.st_dev), st.st_ino)
    held = os.open(w.dir, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = [subprocess.Popen([os.path.join(egressworld.BUILD, "handrail-egress"), "--prepare", w.dir],
                                 stderr=subprocess.PIPE, cwd="/", **w.change) for _ in range(2)]
        for p in done:
            while not waits(p.pid, inode):
                equal(p.poll(), None, "it waits for the other one")
                select.select([], [], [], 0.01)
        equal(os.path.exists(os.path.join(w.dir, "ca.key")), False)
    finally:
        os.close(held)
    equal([(p.communicate(timeout=PATIENCE)[1], p.returncode) for p in done], [(b"", 0)] * 2)
    with open(os.path.join(w.dir, "ca.crt")) as cert, open(os.path.join(w.dir, "trust.pem")) as trust:
        equal(trust.read().endswith(cert.read()), True)


def nginx(w):
    return [pid for pid in w.processes() if process.command_line(pid).startswith("nginx:")]


def inspected(w):
    """Requests of hosts with rules for them lead through nginx, which has no network."""
    trust = inspecting(w)
    good = "GET /ok/x Bearer real-and-secret"
    secret = good.replace("real-and-secret", "(a secret)")
    equal(nginx(w), [], "it is started when it is needed")
    for at in ("http://api.test", "https://api.test"):
        equal(w.curl(*trust, at + "/ok/x", at + "/ok/x"), (0, secret * 2), at)
        equal(w.curl(*trust, at + "/no"), (0, "network: GET api.test/no was refused: no rule\n"), at)
    for proxy in ("http://127.0.0.1:3128", "socks5h://127.0.0.1:1080"):
        equal(w.curl(*trust, "--proxytunnel", "-x", proxy, "https://api.test/ok/x"), (0, secret))
    equal(w.curl("-x", "http://127.0.0.1:3128", "http://api.test/ok/x", "http://api.test/ok/x"), (0, secret * 2))
    equal(w.curl("-x", "http://127.0.0.1:3128", "http://api.test/no")[1],
          "network: GET api.test/no was refused: no rule\n")
    equal(w.curl("-x", "http://127.0.0.1:3128", "-H", "Host: other.test", "http://api.test/ok/x")[1][:8], "network:")
    equal(w.curl(*trust, "-d", "x", "https://api.test/ok/x")[1], "network: POST api.test/ok/x was refused: no rule\n")
    refused(w, *trust, "--connect-to", "other.test:443:api.test:443", "https://other.test/ok/x")
    equal("could not be reached" in w.curl("http://evil.test/")[1], True)
    equal(denied(w, name="evil.test"), ["the name has only private addresses"])
    seen = [(e["verdict"], e["port"], e["method"], e["path"]) for e in w.events(kind="http", name="api.test")]
    equal(set(seen) >= {("allow", 80, "GET", "/ok/x"), ("deny", 443, "GET", "/no"), ("deny", 443, "POST", "/ok/x")},
          True, seen)
    while len(nginx(w)) > 2:  # workers from before the second host
        pass
    for pid in nginx(w):
        if os.geteuid() == 0:
            known = [os.readlink("/proc/%s/ns/net" % p) for p in ("self", w.first)]
            equal(os.readlink("/proc/%d/ns/net" % pid) in known, False, "it has no network")
        with open("/proc/%d/cmdline" % pid) as c:
            equal("real-and-secret" in c.read(), False)
    equal([n for n in os.listdir(w.dir) if os.stat(os.path.join(w.dir, n)).st_mode & 0o77
           and n not in ("ca.crt", "trust.pem")], [])
    for pid in nginx(w):
        with open("/proc/%d/status" % pid) as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        equal([int(status[k], 16) for k in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb", "NoNewPrivs")],
              [0, 0, 0, 0, 0, 1])
        equal(os.stat("/proc/%d" % pid).st_uid, w.uid or os.geteuid())
        if os.geteuid() == 0 and not w.uid:
            with open("/proc/%d/mountinfo" % pid) as f:
                mounts = [line.split() for line in f]
            writable = {m[4] for m in mounts if "ro" not in m[5].split(",")}
            equal(writable, {os.path.realpath(w.dir)}, "all else is read-only")


def inspected_changes(w):
    """Rules, a killed nginx, a killed broker and an upgrade, with connections that stay open."""
    trust = inspecting(w)
    equal(w.curl(*trust, "https://api.test/ok/x")[0], 0)
    for pid in nginx(w)[:1]:
        os.kill(pid, signal.SIGKILL)
        process.wait_gone(pid, PATIENCE)  # a connection that it takes before is lost with it
    equal(w.curl(*trust, "https://api.test/ok/x")[0], 0, "nginx is started again")
    os.kill(w.broker(), signal.SIGKILL)
    equal(w.curl(*trust, "https://api.test/ok/x")[0], 0)
    while len(nginx(w)) > 2:  # those of the killed ones end
        pass
    open_line = w.inside(egressworld.PYTHON, "-c", """if True:
        import http.client, sys
        c = http.client.HTTPConnection("api.test")
        for line in sys.stdin:
            try:
                c.request("GET", line.strip())
                print(c.getresponse().read().decode().strip(), flush=True)
            except (ConnectionError, http.client.HTTPException):
                print("closed", flush=True)""")

    def ask(path):
        open_line.stdin.write(path + "\n")
        open_line.stdin.flush()
        return open_line.stdout.readline()
    equal(ask("/ok/1"), "GET /ok/1 Bearer (a secret)\n")
    before, judges = w.broker(), nginx(w)
    os.kill(w.record["pid"], signal.SIGHUP)
    while w.broker() == before:
        pass
    reload(w, rules={"api.test": [{"methods": ["GET"], "paths": ["/new"]}]})
    equal([pid for pid in judges if not process.wait_gone(pid, PATIENCE)], [], "nothing holds the idle connection open")
    equal(ask("/ok/2"), "closed\n", "nobody judges by the earlier rules")
    equal(ask("/ok/3").startswith("network: GET api.test/ok/3 was refused"), True, "a connection of its own")
    open_line.communicate(timeout=PATIENCE)
    equal(process.wait_gone(before, PATIENCE), True)
    equal(w.curl(*trust, "https://api.test/new"), (0, "GET /new None"))
    equal(w.curl(*trust, "https://api.test/ok/x")[1].startswith("network: "), True)
    equal("secret" in w.ask_reload(rules={"api.test": [{"transform": {"headers": {"X": "${secrets.none}"}}}]})["error"],
          True)
    equal(w.curl(*trust, "https://api.test/new"), (0, "GET /new None"), "the earlier rules")
    reload(w, rules={})
    refused(w, *trust, "https://api.test/new")


def inspected_names(w):
    """A box that makes up names under an inspected wildcard locks out no other host, and gets few processes."""
    trust = inspecting(w)
    reload(w, rules={"*.wild.test": [{"methods": ["GET"]}], "api.test": [{"methods": ["GET"], "ports": [80, 443]}]})
    equal(w.curl(*trust, "https://api.test/x")[0], 0)
    flood = w.inside(egressworld.PYTHON, "-c", """if True:
        import socket
        def ask(name):
            s = socket.create_connection((name, 80))
            try:
                s.sendall(b"GET / HTTP/1.1\\r\\nHost: %s\\r\\n" % name.encode())
            except ConnectionError:
                pass
            return s
        held = [ask("%d.wild.test" % i) for i in range(300)]
        print("on", flush=True)
        input()""")
    equal(flood.stdout.readline(), "on\n")
    equal("too many hosts have rules for requests" in denied(w), True, "all places have somebody who waits")
    most = 0
    code = None
    os.close(os.open(os.path.join(w.dir, "certs", "before.wild.test.crt"), os.O_CREAT, 0o600))
    until = time.monotonic() + PATIENCE
    while code != 0 and time.monotonic() < until:
        code, _ = w.curl("http://api.test/x")  # was not served before
        most = max(most, len(nginx(w)))
    equal(code, 0)
    equal(most < 40, True, "%d processes" % most)
    flood.communicate("\n", timeout=PATIENCE)
    equal(len([n for n in os.listdir(os.path.join(w.dir, "edge")) if n.startswith("out-")]) <= 64, True)
    equal(os.path.exists(os.path.join(w.dir, "certs", "before.wild.test.crt")), False, "what is not served is removed")


def storm(w):
    """Whatever is killed, the next command brings everything back, and the end of the box ends all of it."""
    trust = inspecting(w)
    chance = random.Random(7)
    for _ in range(20):
        found = w.processes()
        for pid in chance.sample(found, chance.randint(1, len(found))):
            what = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGHUP))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)
            equal(what == signal.SIGHUP or process.wait_gone(pid, PATIENCE), True)
        if process.has_ended(w.record["pid"]):
            equal(w.start(), "")
        equal(w.curl(*trust, "--retry", "3", "--retry-all-errors", "https://api.test/ok/x")[0], 0)


CASES = (names, version_six, addresses, own_addresses, own_loopback, greetings, proxies_ports, by_address, proxies,
         questions, many_names, killed, upgraded, upgraded_meanwhile, control, cut, cut_early, patience, ends,
         bounded, shared, no_cores, hidden, proxied, proxied_inspected, inspected, inspected_changes,
         inspected_names, prepared, storm)


def main():
    process.become_subreaper()
    egressworld.enter()
    tap = Tap()
    uids = (0, UID) if os.geteuid() == 0 and not os.environ.get("E2E_UID") else (os.geteuid(),)
    for case in CASES:
        if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
            continue
        for uid in uids:
            tap.run(case.__name__ + (", another account" if uid else ""), alone, case, uid)
    return tap.done()


def alone(case, uid):
    top = tempfile.mkdtemp(prefix="e2e-egress-")
    os.chmod(top, 0o755)
    try:
        w = World(top, uid, {"allowOut": []})
        try:
            case(w)
        finally:
            w.end()
            process.reap(())
    finally:
        shutil.rmtree(top)


if __name__ == "__main__":
    sys.exit(main())
