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
import subprocess
import sys

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


def tls(uid):
    with E2b(uid) as f:
        by_tls(f)


if __name__ == "__main__":
    sys.exit(run([tls], made=contextlib.nullcontext))
