"""The process of a server in a box, in the place of subprocess.Popen: with E2E_BACKEND=box lib.supervised starts each
handraild by handrail-box, as the back-end box does. The box sees the server's directory, at its own place."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading

from . import process
from .tap import equal

BOXED = os.environ.get("E2E_BACKEND") == "box"


class Launcher:
    """The launcher's program and the files of the boxes, which one server starts one after the other."""

    def __init__(self, program):
        self.program = program
        self.storage = tempfile.mkdtemp(prefix="e2e-boxed-")

    def start(self, argv, env, shown, kept=()):
        """handraild as process 1 of a box that sees the directories `shown`, and cannot change those of `kept`: a test
        that empties the box's /tmp would remove a build below the host's /tmp."""
        kept = [os.path.realpath(d) for d in kept]
        # sanitizers report into a directory of the build, whose mount comes first
        shown = [*shown, *{m.group(1) for m in map(re.compile(r"log_path=([^:]+)/").search, env.values()) if m}]
        document = {"name": os.path.basename(self.storage).replace("_", "-"), "storage": self.storage, "argv": argv,
                    "env": ["%s=%s" % v for v in env.items()],
                    "mounts": [{"source": d, "target": d, "read_only": d in kept}
                               for d in map(os.path.realpath, shown)]}
        return Process(self.program, json.dumps(document).encode())

    @staticmethod
    def outside(first, pid):
        """The number here of the process that is `pid` in the box of process `first`."""
        for other in [first] + process.descendants(first):
            with open("/proc/%d/status" % other) as f:
                if re.search(r"^NSpid:.*\t%d$" % pid, f.read(), re.M):
                    return other
        raise AssertionError("no process %d in the box" % pid)

    def remove(self):
        subprocess.run(["rm", "-rf", self.storage], check=True)  # the kernel's work directories have mode 0


class Process:
    """Our child once its launcher has ended: the test is a subreaper."""

    def __init__(self, program, document):
        ours, other = socket.socketpair()
        with ours, other:
            launcher = subprocess.Popen([program, "--detach", str(other.fileno())], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=[other.fileno()],
                                        start_new_session=True, cwd="/")
            other.close()
            self.stderr = launcher.stderr
            launcher.stdin.write(document)
            launcher.stdin.close()
            with ours.makefile("r") as lines:
                line = lines.readline()
            if line:
                ours.sendall(b"g")
            launcher.wait()
        if launcher.returncode != 0:
            raise AssertionError("the launcher ended with %d: %s" % (launcher.returncode, self.stderr.read().decode()))
        self.pid, self.groups = (json.loads(line)[name] for name in ("pid", "groups"))
        self.lock, self.returncode = threading.Lock(), None

    def poll(self):
        with self.lock:
            if self.returncode is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._end()
        return self.returncode

    def _end(self):
        """A process 1 cannot end by a signal of its own, and handraild reports that in its status."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.returncode = 128 - status if status > 128 else status
        for group in self.groups:
            os.rmdir(group)

    def wait(self, seconds=None):
        if self.poll() is None:
            if not process.wait_gone(self.pid, seconds):
                raise subprocess.TimeoutExpired("a box", seconds)
            equal(self.poll() is not None, True, "the box has ended")
        return self.returncode

    def send_signal(self, sig):
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self):
        self.send_signal(signal.SIGKILL)
