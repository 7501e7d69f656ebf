"""Plays recorded traffic back: a server that answers call n with response n, and what is compared of the requests."""

import base64
import email.parser
import http.server
import json
import os
import re
import socket
import struct
import subprocess
import threading
import urllib.parse

from .host import BUILD, PATIENCE, SRC

CORPUS = os.path.join(SRC, "t/corpus/clouds")
KEPT = ("x-api-key", "authorization", "x-access-token", "e2b-sandbox-id", "e2b-sandbox-port",
        "connect-protocol-version", "connect-timeout-ms", "keepalive-ping-interval", "x-daytona-source",
        "x-daytona-preview-token", "x-request-id")


def scenarios(provider):
    with open(os.path.join(CORPUS, provider + ".jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def plain(v, names):
    """Without the marks for what differs from run to run."""
    if isinstance(v, str):
        return re.sub(r"\{\{(\w+)\}\}", lambda m: names.get(m.group(1), m.group(1).lower()), v)
    if isinstance(v, list):
        return [plain(x, names) for x in v]
    return {k if k == "b64" else plain(k, names): x if k == "b64" else plain(x, names)
            for k, x in v.items()} if isinstance(v, dict) else v


def body_bytes(body):
    if not body:
        return b""
    if "b64" in body:
        return base64.b64decode(body["b64"])
    if "raw" in body:
        return body["raw"].encode()
    return body["text"].encode() if "text" in body else json.dumps(body["json"]).encode()


def frames(b):
    found = []
    while b:
        flags, length = struct.unpack(">BI", b[:5])
        found.append([flags, json.loads(b[5:5 + length])])
        b = b[5 + length:]
    return found


def parts(content_type, b):
    """[field, file name, content] of each part."""
    boundary = b"--" + re.search(r'boundary="?([^";]+)', content_type).group(1).encode()
    found = []
    for part in (b"\r\n" + b).split(b"\r\n" + boundary)[1:-1]:
        head, _, content = part[2:].partition(b"\r\n\r\n")
        head = head.decode()
        found.append([re.search(r'[ ;]name="([^"]*)"', head).group(1), file_name(head), content])
    return found


def file_name(header):
    m = re.search(r'filename="((?:[^"\\]|\\.)*)"', header)
    return m.group(1) if m else None


def what_counts(method, path, raw_query, headers, body, kind):
    """Of a request: kind says what the body is."""
    query = sorted(urllib.parse.parse_qsl(raw_query, keep_blank_values=True))
    return {"method": method, "path": urllib.parse.unquote(path), "query": query,
            "headers": {k: v for k, v in headers.items() if k in KEPT},
            "kind": kind, "body": body}


def recorded(r):
    body = r.get("body") or {}
    if "frames" in body:
        kind, b = "frames", [[f["flags"], f["json"]] for f in body["frames"]]
    elif "multipart" in body:
        kind, b = "parts", [multipart(p) for p in body["multipart"]]
    elif "json" in body:
        kind, b = "json", body["json"]
    else:
        kind, b = "bytes", body_bytes(body)
    return what_counts(r["method"], r["path"], r.get("raw_query", ""), r["headers"], b, kind)


def multipart(p):
    m = email.parser.Parser().parsestr("\r\n".join(p["headers"]) + "\r\n\r\n")
    content = base64.b64decode(p["b64"]) if "b64" in p else p.get("text", "").encode()
    return [m.get_param("name", header="content-disposition"), file_name(p["headers"][0]), content]


class Replay:
    """Answers in order. `seen` is what was asked; `responses` may be changed before."""

    def __init__(self, responses):
        self.responses, self.seen, self.lock = responses, [], threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

            def do(self):
                outer.one(self)

            do_GET = do_POST = do_DELETE = do_PUT = do

            def log_message(self, *unused):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *unused: None  # a client that was killed
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, n, request):
        """Of the nth request."""
        return self.responses[n] if n < len(self.responses) else {"connection": "there is no more"}

    def one(self, h):
        length = h.headers.get("Content-Length")
        b = h.rfile.read(int(length)) if length else b""
        path, _, query = h.path.partition("?")
        headers = {k.lower(): v for k, v in h.headers.items()}
        kind = headers.get("content-type", "")
        if kind.startswith("application/connect+json"):
            body, kind = frames(b), "frames"
        elif kind.startswith("multipart/form-data"):
            body, kind = parts(kind, b), "parts"
        elif kind.startswith("application/json") and b:
            body, kind = json.loads(b), "json"
        else:
            body, kind = b, "bytes"
        with self.lock:
            n = len(self.seen)
            self.seen.append(what_counts(h.command, path, query, headers, body, kind))
            answer = self.answer(n, self.seen[n])
        if "connection" in answer:
            h.close_connection = True
            h.connection.shutdown(socket.SHUT_RDWR)
            return
        content = body_bytes(answer.get("body"))
        h.send_response(answer["status"])
        for k, v in answer.get("headers", {}).items():
            if k.lower() not in ("content-length", "transfer-encoding", "connection", "content-encoding", "date"):
                h.send_header(k, v)
        if answer["status"] != 204:
            h.send_header("Content-Length", str(len(content)))
        h.end_headers()
        h.wfile.write(content)
        if answer.get("cut"):
            h.close_connection = True


class Player:
    """t/host/cloudplay."""

    def __init__(self, provider, **env):
        keep = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH")
        self.p = subprocess.Popen([os.path.join(BUILD, "t/host/cloudplay"), provider],
                                  env=dict({k: os.environ[k] for k in keep if k in os.environ},
                                           HANDRAIL_LIBEXECDIR=BUILD, **env),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.p.stdin.close()
        err = self.p.stderr.read().decode()
        code = self.p.wait(PATIENCE)
        self.p.stdout.close()
        self.p.stderr.close()
        if code != 0:
            raise AssertionError("cloudplay ended with %d: %s" % (code, err[-3000:]))

    def __call__(self, op, **args):
        self.p.stdin.write(json.dumps(dict(args, op=op)).encode() + b"\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            raise AssertionError("cloudplay died of %s: %s" % (op, self.p.stderr.read().decode()[-3000:]))
        return json.loads(line)
