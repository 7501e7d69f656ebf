#!/usr/bin/env python3
"""The commands of doc/tutorial.md: an agent in a box pushes to a git server over https without the token, and learns
why another push was refused. As root it is done twice, by root and by another account."""

import base64
import http.server
import os
import re
import socketserver
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.certs import Authority  # noqa: E402
from lib.egressworld import Names  # noqa: E402
from lib.gitserver import make_repository  # noqa: E402
from lib.host import BUILD, SRC  # noqa: E402
from lib.hostbox import Boxes, run  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

TOKEN = "ghp_0123456789abcdefTheRealToken"


class Git(http.server.BaseHTTPRequestHandler):
    """git's own server, for one that knows the token."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, path))
        person = base64.b64encode(b"x-access-token:" + TOKEN.encode()).decode()
        if self.headers.get("Authorization") != "Basic " + person:
            self.answer(401, [("WWW-Authenticate", "Basic realm=git")], b"")
            return
        done = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, check=True, env=dict(
            os.environ, GIT_PROJECT_ROOT=self.server.top, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
            REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("Content-Type") or "", REMOTE_USER="agent",
            CONTENT_LENGTH=str(len(body)), HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding") or "",
            GIT_CONFIG_COUNT="2", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*",
            GIT_CONFIG_KEY_1="http.receivepack", GIT_CONFIG_VALUE_1="true")).stdout
        head, _, rest = done.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = [int(value.split()[0]) for name, value in fields if name == "Status"]
        self.answer(status[0] if status else 200, [f for f in fields if f[0] != "Status"], rest)

    do_POST = do_GET


class World(Boxes):
    """The surroundings of a user, with a git server and a name server."""

    def __enter__(self):
        Boxes.__enter__(self)
        authority = Authority(self.path("tmp"), "lab")
        self.env["SSL_CERT_FILE"] = authority.pem
        os.chmod(authority.pem, 0o644)
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Git)
        self.server.daemon_threads, self.server.seen, self.server.top = True, [], self.directory("repositories")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.make("git", 1, names="DNS:git.example"))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_address[1]
        self.names = Names(git_example="127.0.0.1")
        for name in ("work", "other"):
            make_repository(os.path.join(self.server.top, name + ".git"))
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()
        Boxes.__exit__(self, *unused)

    def log(self, name):
        words = ["git", "-c", "safe.directory=*", "-C", os.path.join(self.server.top, name + ".git")]
        return subprocess.run(words + ["log", "--format=%s", "main"], stdout=subprocess.PIPE, universal_newlines=True,
                              check=True).stdout.split()


def tutorial(h):
    """The commands of the tutorial's box with rules for git, at this server, and the lines that it shows."""
    with open(os.path.join(SRC, "doc", "tutorial.md"), encoding="utf-8") as f:
        text = f.read().replace("github.com/you/", "git.example:%d/" % h.port).replace("$GITHUB_TOKEN", "$GIT_TOKEN")
    found = re.search(r"    % handrail run '(git clone .*)' .*\n    % handrail run '(.*)' .*\n((?:    .*\n)+)", text)
    shown = [line.strip().replace(":%d" % h.port, "") for line in found.group(3).splitlines()]
    return found.group(1), found.group(2), [line for line in shown if line != "..."]


def push(h):
    """One repository may be changed, the other one only be read."""
    h.ok("secret", "set", "git", input=TOKEN)
    h.file("""[sandbox.network]
dnsServers = ["127.0.0.1:%d"]
allowOut = ["127.0.0.1"]
credentials.GIT_TOKEN = {secret = "git", hosts = ["git.example:%d"]}

[[sandbox.network.rules."git.example"]]
paths = ["/work.git/*"]
ports = [%d]

[[sandbox.network.rules."git.example"]]
paths = ["/other.git/info/refs", "/other.git/git-upload-pack"]
ports = [%d]
""" % (h.names.port, h.port, h.port, h.port), "cwd", "config.toml")
    h.ok("up", "-q", "--network", "egress")
    clone, change, shown = tutorial(h)
    h.ok("run", "cd /tmp && " + clone.replace("other", "work"))
    h.ok("run", change)
    equal(h.log("work")[0], "try")
    h.ok("run", "cd /tmp && " + clone)
    done = h("run", change)
    equal((done.returncode != 0, h.log("other")[0] == "try"), (True, False), done)
    later = h("run", "true")  # nginx reports a request after its answer, which may be a moment too late
    lines = (done.stdout + done.stderr + later.stderr).splitlines()
    equal([line for line in shown if line not in lines], [], (done, later))
    equal("refused http POST git.example:%d/other.git/git-receive-pack" % h.port in h.ok("net", "log"), True)
    seen = h("run", "env; cat /tmp/work/.git/config; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null").stdout
    equal((TOKEN in seen, "ph_" in seen), (False, True), "the box has a placeholder")
    equal(h("run", "grep -rlsF '%s''%s' /etc /home /root /run /tmp /var" % (TOKEN[:9], TOKEN[9:])).stdout, "")
    box = h.box()
    h.ok("down")
    equal(h.left(box), [])


if __name__ == "__main__":
    if not os.access(os.path.join(BUILD, "handrail-egress"), os.X_OK):
        skip_all("handrail-egress is not built: apt-get install libc-ares-dev libssl-dev, and configure again")
    process.become_subreaper()
    sys.exit(run((push,), made=World))
