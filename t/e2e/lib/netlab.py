"""What stands for the internet in tests of a box's network: a DNS server and servers of several names, all on loopback
addresses of this machine. They record what they are asked."""

import http.server
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

from .certs import Authority


class Dns:
    """Answers A from `names`, and everything else with NXDOMAIN. .asked: the names, in order."""

    def __init__(self, names):
        self.names, self.asked = dict(names), []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                query, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
                at += 1 + query[at]
            kind = struct.unpack(">H", query[at + 1:at + 3])[0]
            name = ".".join(labels).lower()
            self.asked.append(name)
            address = self.names.get(name)
            answer = b""
            if address and kind == 1:
                answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton(address)
            self.socket.sendto(query[:2] + struct.pack(">HHHHH", 0x8180 if address else 0x8183, 1, 1 if answer else 0,
                                                       0, 0) + query[12:at + 5] + answer, peer)

    def close(self):
        self.socket.close()


class Site:
    """HTTP, or HTTPS with a certificate for `names`: answers with what it was sent as JSON, and records it."""

    def __init__(self, address="127.0.0.1", certificate=None):
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                said = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                        "body": body.decode("latin-1")}
                outer.requests.append(said)
                text = json.dumps(said).encode()
                if self.path.startswith("/bytes/"):
                    text = b"x" * int(self.path[7:])
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = answer

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *unused):
                pass  # a client has gone, or failed to speak TLS

        self.server = Server((address, 0), Handler)
        self.port = self.server.server_address[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Lab:
    """with Lab() as lab: .dns, .tls (all names), .plain; .bundle: certificates by which clients outside know .tls."""

    NAMES = ("a.test", "b.test", "api.test", "git.test", "www.wild.test", "deep.www.wild.test")

    def __init__(self, names=NAMES):
        self.top = tempfile.mkdtemp(prefix="e2e-lab-")
        os.chmod(self.top, 0o755)
        self.authority = Authority(self.top, "lab")
        certificate = self.authority.make("lab", 2, names=",".join("DNS:" + n for n in names))
        self.bundle = self.authority.pem
        self.tls, self.plain = Site(certificate=certificate), Site()
        self.dns = Dns({n: "127.0.0.1" for n in names})

    def rules(self, **more):
        """Rules by which a box asks this server, and reaches these ports of loopback by name."""
        return dict({"dnsServers": [self.dns.address], "ports": [self.tls.port, self.plain.port],
                     "allowOut": ["127.0.0.0/8:1"]}, **more)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.tls.close()
        self.plain.close()
        self.dns.close()
        shutil.rmtree(self.top)


def git_repository(path):
    """A bare repository that takes pushes, with one commit."""
    work = path + ".work"
    git = ["git", "-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run(["git", "init", "-q", "-b", "main", work], check=True)
    with open(os.path.join(work, "file"), "w") as f:
        f.write("first\n")
    subprocess.run(git + ["-C", work, "add", "."], check=True)
    subprocess.run(git + ["-C", work, "commit", "-qm", "first"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", work, path], check=True)
    subprocess.run(["git", "-C", path, "config", "http.receivepack", "true"], check=True)
    shutil.rmtree(work)
