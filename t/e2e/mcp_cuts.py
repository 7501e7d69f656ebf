#!/usr/bin/env python3
"""Many calls of the MCP tool `run` while their connections are cut and workers killed, by hand, in the build directory:

    ../t/e2e/mcp_cuts.py [CALLS]

Four clients, each with a shell of its own. A third of the requests is cut at a moment by chance and sent again with the
same key; every few moments a worker is killed. Each command writes its number to a file and prints it: in the end each
number must be there once, in order, and each must have been answered with its own output."""

import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import Server  # noqa: E402
from lib.tap import equal  # noqa: E402

CLIENTS = 4


class Client(threading.Thread):
    def __init__(self, s, name, calls):
        super().__init__()
        self.s, self.name, self.calls, self.random = s, name, calls, random.Random(name)
        self.path = os.path.join(s.work_dir, name)
        self.cuts = self.tries = self.unknown = 0
        self.wrong = []

    def post(self, body, cut_s):
        """The answer's body; None: cut, or to be sent again."""
        c = http.client.HTTPConnection("127.0.0.1", self.s.port, timeout=60)
        try:
            c.request("POST", "/handrail/mcp", body, {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-11-25"})
            if cut_s is not None:
                time.sleep(cut_s)
                c.sock.shutdown(socket.SHUT_RDWR)
                self.cuts += 1
                return None
            a = c.getresponse()
            text = a.read().decode()
            return (a.status, text) if a.status != 503 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            c.close()

    def call(self, i):
        text = "%s-%d" % (self.name, i)
        body = json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {
            "name": "run", "arguments": {"command": "echo %s >>%s; echo %s" % (text, self.path, text),
                                         "session": self.name, "key": text}}})
        while True:
            self.tries += 1
            cut = self.random.uniform(0, 0.02) if self.random.random() < 1 / 3 else None
            a = self.post(body, cut)
            if a is None:
                continue
            if text + "\\n" in a[1] or text + '"' in a[1]:
                return
            if "not known" in a[1] or "is lost" in a[1]:
                self.unknown += 1
                return
            self.wrong.append((i, a))
            return

    def run(self):
        for i in range(self.calls):
            self.call(i)


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    kills, began = 0, time.monotonic()
    with Server(args=["--listen", "127.0.0.1"], settings={"mcp": "true"}) as s:
        clients = [Client(s, "c%d" % i, calls // CLIENTS) for i in range(CLIENTS)]
        for c in clients:
            c.start()
        while any(c.is_alive() for c in clients):
            time.sleep(random.uniform(0.3, 0.9))
            for pid in s._workers("action")[:1]:
                try:
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
        doubled = lost = 0
        for c in clients:
            with open(c.path) as f:
                lines = f.read().split()
            wanted = ["%s-%d" % (c.name, i) for i in range(c.calls)]
            doubled += len(lines) - len(set(lines))
            lost += len(set(wanted) - set(lines))
            equal((c.wrong[:3], lines == wanted), ([], True), c.name)
        print("%d calls, %d requests, %d cut, %d workers killed, %.0f s: %d doubled, %d lost, %d told as not known" % (
            calls // CLIENTS * CLIENTS, sum(c.tries for c in clients), sum(c.cuts for c in clients), kills,
            time.monotonic() - began, doubled, lost, sum(c.unknown for c in clients)))
        equal((doubled, lost), (0, 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
