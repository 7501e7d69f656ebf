#!/usr/bin/env python3
"""Unmodified SDKs of E2B against a fleet of ours, by hand, as root, in the build directory:

    ../t/real/run --get e2b

DIRECTORY has the SDKs: the row "e2b" of t/real/run gets them. The service is reached by a domain with TLS alone, as
real users reach it: an nginx in front of it has the certificate of contrib/e2b-certificate, and a name server on a
loopback address resolves all names, for the programs of this test alone. Each feature is a row of the table at the end,
each SDK a column. With words after "--" it runs these in place of its programs, with the same environment.

    e2b_sdks.py [--kind docker] DIRECTORY [-- WORD...]

With --kind docker, E2E_E2B_IMAGE names an image with the server, Python and ipykernel (handrail image build), or a file
of it (docker save), which an Engine that is started for this test needs."""

import argparse
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lib import process  # noqa: E402
from lib.dockerhost import docker, find_engine  # noqa: E402
from lib.e2bfleet import DOMAIN, E2b  # noqa: E402
from lib.fleet import Fleet, free_port  # noqa: E402
from lib.host import SRC  # noqa: E402
from lib.tap import skip_all  # noqa: E402

PYTHON, NPM = ("2.0.0", "2.45.1", "2.63.0", "2.11.5"), ("2.45.0", "2.51.0", "2.8.0")
PROGRAMS = ([("py " + v, [v + "/bin/python", os.path.join(HERE, "e2b_program.py")]) for v in PYTHON] +
            [("js " + v, ["node", os.path.join(HERE, "e2b_program.mjs"), ".", v]) for v in NPM] +
            [("cli 2.19", ["python3", os.path.join(HERE, "e2b_cli.py"), "./cli2.19.0/node_modules/.bin/e2b"])])
# passes all on as it comes
FRONT = """
daemon off; pid %(top)s/front.pid; error_log stderr crit; worker_processes 1;
events { worker_connections 1000; }
http {
	access_log off; client_body_temp_path %(top)s/body; proxy_temp_path %(top)s/proxy; fastcgi_temp_path %(top)s/f;
	uwsgi_temp_path %(top)s/u; scgi_temp_path %(top)s/s; client_max_body_size 0;
	server {
		listen 127.0.0.1:%(port)d ssl;
		ssl_certificate %(top)s/tls/server.crt; ssl_certificate_key %(top)s/tls/server.key;
		location / {
			proxy_pass http://127.0.0.1:%(to)d; proxy_http_version 1.1; proxy_set_header Host $http_host;
			proxy_set_header Connection $http_connection; proxy_set_header Upgrade $http_upgrade;
			proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 1h;
		}
	}
}
"""


# such an Engine has the host's network only
OWN_ENGINE = ("--set", "sandbox.use_host_network=true", "--set", "sandbox.runtime_binding_address=127.0.0.1")


def load_image(name):
    """The image's name, after loading it from a file."""
    if not os.path.isfile(name):
        return name
    done = docker("load", "-i", name, universal_newlines=True)
    assert done.returncode == 0, done.stderr
    return re.search(r"Loaded image: (\S+)", done.stdout)[1]


def answer(query):
    """127.0.0.1 for each name, and no other record."""
    end = query.index(b"\0", 12) + 5
    found = query[end - 4:end - 2] == b"\0\1"
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if found else b""
    return query[:2] + struct.pack(">HHHHH", 0x8180, 1, found, 0, 0) + query[12:end] + record


def serve_names(sock):
    while True:
        query, client = sock.recvfrom(4096)
        if len(query) > 16:
            sock.sendto(answer(query), client)


class Front:
    """The way to a fleet by its domain."""

    def __init__(self, fleet):
        self.top, self.port = fleet.path("front"), free_port()
        os.mkdir(self.top, 0o755)
        subprocess.run([os.path.join(SRC, "contrib", "e2b-certificate"), DOMAIN, self.top + "/tls"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(self.top + "/conf", "w") as f:
            f.write(FRONT % {"top": self.top, "port": self.port, "to": fleet.port})
        self.nginx = subprocess.Popen(["nginx", "-c", self.top + "/conf", "-p", self.top],
                                      env=dict(os.environ, LD_LIBRARY_PATH=""))
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for last in range(2, 255):
            try:
                self.sock.bind(("127.0.53.%d" % last, 53))
                break
            except OSError:
                continue
        threading.Thread(target=serve_names, args=(self.sock,), daemon=True).start()
        with open(self.top + "/resolv.conf", "w") as f:
            f.write("nameserver %s\n" % self.sock.getsockname()[0])
        key = "e2b_" + fleet.key[len("hrk_"):]
        ca = self.top + "/tls/ca.crt"
        shutil.copy(ca, self.top + "/ca.crt")
        # forks, snapshots and rules of a network are refused elsewhere
        without = "" if fleet.kind == "box" else "copies network"
        keep = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("E2B_")}
        self.env = dict(keep, E2B_DOMAIN="%s:%d" % (DOMAIN, self.port), E2B_API_KEY=key, SSL_CERT_FILE=ca,
                        NODE_EXTRA_CA_CERTS=ca, REQUESTS_CA_BUNDLE=ca, HTTP_API=str(fleet.port),
                        E2B_WITHOUT=without)

    def run(self, words, **more):
        """Runs a program for which the name server is the only one."""
        return subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"',
                               self.top + "/resolv.conf"] + words, env=self.env, stdin=subprocess.DEVNULL, **more)

    def close(self):
        self.nginx.terminate()
        self.nginx.wait()


def table(results):
    """Prints it, and returns whether each feature passed or is one that an SDK has not."""
    features = list(dict.fromkeys(f for rows in results.values() for f in rows))
    print("# %-14s" % "" + "".join("%-11s" % name for name in results))
    for feature in features:
        print("# %-14s" % feature + "".join("%-11s" % results[n].get(feature, ("-", ""))[0] for n in results))
    for name, rows in results.items():
        for feature, (result, why) in rows.items():
            if result != "-":
                print("%s - %s: %s%s" % ("ok" if result == "pass" else "not ok", name, feature, why and " # " + why))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kind", choices=["box", "docker"], default="box")
    p.add_argument("--only", default="", help="programs whose names have this")
    p.add_argument("directory")
    p.add_argument("words", nargs="*")
    options = p.parse_args()
    if os.geteuid() != 0:
        skip_all("needs root: for boxes with accounts, and for a name server of its own")
    process.become_subreaper()
    if options.kind == "box":
        made = E2b(0, "--url-by-name", "--e2b-file-forks")
    else:
        find_engine()
        made = Fleet("--image", load_image(os.environ["E2E_E2B_IMAGE"]), "--domain", DOMAIN, "--url-by-name",
                     *(OWN_ENGINE if os.environ.get("HANDRAIL_OWN_ENGINE") else ()), kind="docker",
                     DOCKER_HOST=os.environ["DOCKER_HOST"])
    results, status = {}, 0
    with made as f:
        front = Front(f)
        try:
            if options.words:
                return front.run(options.words).returncode
            for name, words in PROGRAMS:
                if options.only not in name:
                    continue
                done = front.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                                 cwd=options.directory)
                rows = {m[2]: (m[1], m[3] or "") for m in re.finditer(r"^(pass|fail|-) (\S+)(?: (.*))?$", done.stdout,
                                                                      re.M)}
                if done.returncode or not rows:
                    rows["ends"] = ("fail", "status %d" % done.returncode)
                results[name] = rows
                bad = any(result == "fail" for result, _ in rows.values())
                status |= bad
                if bad:
                    sys.stdout.write("".join("# " + line + "\n" for line in done.stdout.splitlines()))
        finally:
            front.close()
    table(results)
    return status


if __name__ == "__main__":
    sys.exit(main())
