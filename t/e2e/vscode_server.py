#!/usr/bin/env python3
"""A stand-in for a VS Code server: the command line, the lines, the token and the WebSocket of one. It
writes how it was started to the file named by its first argument and runs as a child of a shell, as
the real one does."""

import base64
import hashlib
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

REPORT, ARGS = sys.argv[1], sys.argv[2:]
OPTIONS = {ARGS[i]: ARGS[i + 1] for i in range(len(ARGS) - 1)}
TOKEN, PORT = OPTIONS["--connection-token"], int(OPTIONS["--port"])
BASE = OPTIONS.get("--server-base-path", "")


def accept_key(key):
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    return base64.b64encode(digest).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        if query.get("tkn") == [TOKEN]:
            self.answer(302, b"", Location=".", Set_Cookie="vscode-tkn=" + TOKEN)
        elif "vscode-tkn=" + TOKEN not in self.headers.get("Cookie", ""):
            self.answer(403, b"Forbidden.")
        elif self.headers.get("Upgrade", "").lower() == "websocket":
            self.echo()
        else:
            seen = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}
            self.answer(200, json.dumps(seen).encode(), Content_Type="application/json")

    def echo(self):
        """What comes after the handshake goes back, byte for byte."""
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept_key(self.headers["Sec-WebSocket-Key"]))
        self.end_headers()
        self.close_connection = True
        while True:
            data = self.connection.recv(65536)
            if not data:
                return
            self.connection.sendall(data)

    def log_message(self, *what):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


def main():
    server = Server((OPTIONS["--host"], PORT), Handler)
    with open(REPORT + ".new", "w") as f:
        json.dump({"argv": ARGS, "env": dict(os.environ), "cwd": os.getcwd(), "uid": os.geteuid(),
                   "pid": os.getpid()}, f)
    os.rename(REPORT + ".new", REPORT)
    print("Server bound to 127.0.0.1:%d (IPv4)\nExtension host agent listening on %d\n" % (PORT, PORT))
    print("Web UI available at http://localhost:%d%s?tkn=%s" % (PORT, BASE, TOKEN), flush=True)
    server.serve_forever()


main()
