#!/usr/bin/env python3
"""What the host sends to a sandbox's server, and what it makes of answers that a real one seldom gives: a
server of this test stands in for it."""

import http.server
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

SETUP = ".openhands/setup.sh"
HOOK = ".openhands/pre-commit.sh"


def ran(content, status=0):
    return {"observation": "run", "content": content, "extras": {"metadata": {"exit_code": status}}}


class Stand(Host):
    """A sandbox of the kind local, of which only the record and this server are there. answer() is given the
    arguments of each action; None: it waits until the end."""

    def __init__(self, answer, **ports):
        super().__init__()
        self.seen, outer = [], self
        self.over = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *unused):
                pass

            def do_POST(self):
                action = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["action"]
                outer.seen.append(action)
                body = answer(action["action"], action["args"])
                if body is None:
                    outer.over.wait()
                    self.close_connection = True
                    return
                body = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever)
        # what "down" ends instead of a server
        self.process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        with open("/proc/%d/stat" % self.process.pid) as f:
            started = int(f.read().rsplit(")", 1)[1].split()[19])
        os.mkdir(self.path("state"), 0o700)
        os.mkdir(self.path("work"))
        backend = dict({"url": "http://127.0.0.1:%d" % self.http.server_address[1], "key": "k",
                        "workspace": self.path("work"), "log": self.path("state", "default.log"),
                        "run_dir": self.path("run"), "home": self.path("home"),
                        "own_workspace": False, "port": 1, "vscode_port": 0, "app_port_1": 0, "app_port_2": 0,
                        "pid": self.process.pid, "started": started}, **ports)
        with open(self.path("state", "default.json"), "w") as f:
            json.dump({"sid": "default", "runtime": "local", "url": backend["url"], "created": 1, "backend": backend},
                      f)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        try:
            super().__exit__()
        finally:
            self.process.stdin.close()
            self.process.wait()
            self.http.shutdown()
            self.thread.join()
            self.http.server_close()

    def commands(self):
        return [a["args"]["command"] for a in self.seen if a["action"] == "run"]


def reads(*names):
    """Answers to `read`: these files are there."""
    def answer(kind, args):
        if kind == "read" and args["path"] in names:
            return {"observation": "read", "content": "", "extras": {}}
        if kind == "read":
            return {"observation": "error", "content": "File not found", "extras": {}}
        return None
    return answer


def setup_script():
    """Blocking, and with ten minutes: no other clock cuts a slow one."""
    def answer(kind, args):
        return reads(SETUP)(kind, args) or ran("")

    with Stand(answer) as h:
        h.ok("repo", "setup")
        runs = [a for a in h.seen if a["action"] == "run"]
        equal(len(runs), 1, "one run")
        equal((runs[0]["timeout"], runs[0]["args"]), (600.0, {
            "command": "chmod +x .openhands/setup.sh && source .openhands/setup.sh", "hidden": True,
            "blocking": True}))
    with Stand(reads()) as h:
        h.ok("repo", "setup")
        equal(h.commands(), [], "no script: no run")


def hook_directory_fails():
    """The first step that fails is told of with its output, and the last."""
    def answer(kind, args):
        return reads(HOOK)(kind, args) or ran("mkdir: denied", 1)

    with Stand(answer) as h:
        done = h("repo", "setup")
        equal((done.returncode, "Failed to create git hooks directory: mkdir: denied" in done.stderr), (0, True),
              done.stderr)
        equal(h.commands(), ["mkdir -p .git/hooks"])
        equal([a["action"] for a in h.seen if a["action"] == "write"], [], "nothing is written")


def time_is_up():
    """Five seconds after the action's own limit the host stops waiting."""
    with Stand(lambda kind, args: None) as h:
        h.fails(4, "Runtime failed to return execute_action before the requested timeout of 0.500s", "run", "-t", "0.5",
                "true")
        equal((h.seen[0]["timeout"], len(h.seen)), (0.5, 1), "asked once")


def no_ports():
    with Stand(lambda kind, args: None) as h:
        equal(json.loads(h.ok("url", "--json"))["web_hosts"], {}, "none")
    with Stand(lambda kind, args: None, app_port_1=7, app_port_2=8) as h:
        equal(sorted(json.loads(h.ok("url", "--json"))["web_hosts"].values()), [7, 8], "two")


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (setup_script, hook_directory_fails, time_is_up, no_ports):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
