#!/usr/bin/env python3
"""The API of E2B by a domain with TLS: the proxy of doc/e2b.md, with a certificate of contrib/e2b-certificate."""

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.e2bfleet import DOMAIN, E2b  # noqa: E402
from lib.fleet import free_port  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.hostbox import run  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

NGINX = """daemon off; master_process off; pid %(top)s/pid; error_log stderr;
events {}
http {
access_log off;
client_body_temp_path %(top)s/body; proxy_temp_path %(top)s/proxy; fastcgi_temp_path %(top)s/fastcgi;
uwsgi_temp_path %(top)s/uwsgi; scgi_temp_path %(top)s/scgi;
%(server)s
}
"""


def by_tls(f):
    if shutil.which("openssl") is None:
        raise Skip("needs openssl: apt-get install openssl")
    port, top = free_port(), f.path("tls")
    subprocess.run([os.path.join(SRC, "contrib/e2b-certificate"), DOMAIN, top], stdout=subprocess.DEVNULL, check=True)
    with open(os.path.join(SRC, "doc/e2b.md")) as file:
        server = re.search("```nginx\n(.*?)```", file.read(), re.S)[1]
    for old, new in (("443", "127.0.0.1:%d" % port), ("8000", str(f.port)), ("DIRECTORY", top),
                     ("sandboxes.example.org", DOMAIN)):
        equal(old in server, True, server)
        server = server.replace(old, new)
    with open(top + "/nginx.conf", "w") as file:
        file.write(NGINX % {"top": top, "server": server})
    context = ssl.create_default_context(cafile=top + "/ca.crt")

    def get(host, path, **headers):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
            c = http.client.HTTPConnection(host, timeout=PATIENCE)
            c.sock = context.wrap_socket(plain, server_hostname=host)
            c.request("GET", path, headers=headers)
            r = c.getresponse()
            return r.status, r.read()

    def listens():
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE).close()
        except ConnectionRefusedError:
            return False
        return True

    o = f.create()
    nginx = subprocess.Popen(["nginx", "-e", "stderr", "-c", top + "/nginx.conf"], stderr=subprocess.DEVNULL,
                             env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin"))
    try:
        f.until(listens, bool)
        status, text = get("api." + DOMAIN, "/sandboxes/" + o["sandboxID"], **{"X-API-KEY": f.e2b_key})
        equal((status, json.loads(text)["domain"]), (200, DOMAIN))
        equal(get("49983-%s.%s" % (o["sandboxID"], DOMAIN), "/health")[0], 204)
    finally:
        nginx.terminate()
        nginx.wait(PATIENCE)


def query(port, name, kind):
    """The status and the answers' data of a DNS server, for a record of this type."""
    question = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    question += struct.pack(">BHH", 0, kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(("127.0.0.1", port))
        sock.send(struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + question)
        answer = sock.recv(4096)
    _, flags, _, count, _, _ = struct.unpack(">6H", answer[:12])
    return flags & 15, [answer[12 + len(question) + 16 * n + 12:][:4] for n in range(count)]


def names(_):
    """The document's dnsmasq leads every name of the domain to the service, and has no other address for it."""
    path = os.environ["PATH"] + ":/usr/sbin"
    if shutil.which("dnsmasq", path=path) is None:
        raise Skip("there is no dnsmasq (package dnsmasq-base)")
    with open(os.path.join(SRC, "doc/e2b.md")) as file:
        text = re.search("```dnsmasq\n(.*?)```", file.read(), re.S)[1]
    port = free_port()
    with tempfile.NamedTemporaryFile("w", prefix="e2e-dnsmasq-") as conf:
        conf.write(text)
        conf.flush()
        dns = subprocess.Popen(["dnsmasq", "--keep-in-foreground", "--log-facility=-", "--user=", "--pid-file=",
                                "--port=%d" % port, "--conf-file=" + conf.name], stderr=subprocess.PIPE,
                               universal_newlines=True, env=dict(os.environ, PATH=path))
        try:
            started = dns.stderr.readline()
            equal("started" in started, True, started)
            for name in ("api", "3000-i0123456789abcdef", "49983-i0123456789abcdef"):
                equal(query(port, name + ".sandboxes.example.org", 1), (0, [bytes([127, 0, 0, 1])]))
                equal(query(port, name + ".sandboxes.example.org", 28), (0, []), "no address of IPv6")
        finally:
            dns.terminate()
            dns.wait(PATIENCE)
            dns.stderr.close()


def tls(uid):
    with E2b(uid) as f:
        by_tls(f)


if __name__ == "__main__":
    sys.exit(run([tls, names], made=contextlib.nullcontext))
