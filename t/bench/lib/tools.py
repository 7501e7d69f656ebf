"""The C programs that do the measuring, as functions that return what they print."""

import json
import os
import subprocess


# What a sandbox has: whatever the caller's holds, a shell must not search it at every prompt.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Failed(Exception):
    """A measurement that did not come about; the text says why."""


def _json(args, **more):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        raise Failed("%s: %s" % (os.path.basename(args[0]), done.stderr.strip() or
                                 "exit status %d" % done.returncode))
    return json.loads(done.stdout)


class Request:
    """One HTTP request: bench_load sends it again and again."""

    def __init__(self, path, body_file=None, expect=None, headers=()):
        self.path, self.body_file, self.expect, self.headers = path, body_file, expect, headers

    def args(self):
        args = []
        if self.body_file:
            args += ["--body", self.body_file]
        if self.expect:
            args += ["--expect", self.expect]
        for header in self.headers:
            args += ["--header", header]
        return args


class Tools:
    def __init__(self, directory, scratch):
        self.directory, self.scratch = directory, scratch
        self._bodies = {}

    def path(self, name):
        return os.path.join(self.directory, name)

    def load_args(self, address, request, seconds=1.0, connections=1, new=False, requests=None,
                  warm=None, least=5):
        args = [self.path("bench_load"), "--host", address[0], "--port", str(address[1]),
                "--connections", str(connections), "--seconds", "%g" % seconds,
                "--min", str(least)]
        if new:
            args.append("--new")
        if requests is not None:
            args += ["--requests", str(requests)]
        if warm is not None:
            args += ["--warm", str(warm)]
        return args + request.args() + [request.path]

    def load(self, address, request, **more):
        return _json(self.load_args(address, request, **more))

    def frame(self, socket_path, command, seconds):
        return _json([self.path("bench_frame"), socket_path, "%g" % seconds, command])

    def start(self, address, request, argv, env, log):
        return _json([self.path("bench_start"), "--host", address[0], "--port", str(address[1]),
                      "--log", log] + request.args() + [request.path, "--"] + argv, env=env)

    def action_file(self, action):
        """A file with the body of /execute_action, one for each different action."""
        text = json.dumps({"action": action}, separators=(",", ":"))
        if text not in self._bodies:
            path = os.path.join(self.scratch, "body%d.json" % len(self._bodies))
            with open(path, "w") as f:
                f.write(text)
            self._bodies[text] = path
        return self._bodies[text]

    def run_request(self, command, headers=(), timeout=120, blocking=False):
        """A `run` action as the original's client serialises it."""
        action = {"action": "run", "timeout": timeout, "args": {
            "command": command, "is_input": False, "thought": "", "blocking": blocking,
            "is_static": False, "cwd": None, "hidden": False, "confirmation_state": "confirmed"}}
        return Request("/execute_action", self.action_file(action), '"exit_code":0', headers)

    def read_request(self, path, headers=()):
        action = {"action": "read", "args": {
            "path": path, "start": 0, "end": -1, "thought": "", "impl_source": "default",
            "view_range": None}}
        return Request("/execute_action", self.action_file(action), '"observation":"read"', headers)


class Pty:
    """A bench_pty that stays: its shell is started once and typed at in every round."""

    def __init__(self, tools, *options):
        self.process = subprocess.Popen(
            [tools.path("bench_pty"), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd="/", env={"PATH": PATH, "HOME": "/nonexistent", "LANG": "C.UTF-8"})

    def order(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Failed("bench_pty ended at %r" % text)
        return json.loads(line)

    def loop(self, command, seconds):
        """Types the command for about so long."""
        few = self.order("loop 10 " + command)
        rate = few["n"] / few["seconds"]
        return self.order("loop %d %s" % (max(10, int(rate * seconds)), command))

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
