"""handrail-session alone, through its frame protocol (src/proto/frame.h)."""

import fcntl
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from . import process
from .observation import Observation

MAGIC = 0x48523031
RUN, RESULT, STATUS, STATE, FOLLOW, PRESS, COMMANDS = 1, 2, 3, 4, 5, 7, 9
TAGS = ["", "command", "is_input", "blocking", "hidden", "timeout", "key", "is_error",
        "has_metadata", "exit_code", "pid", "content", "username", "hostname", "working_dir",
        "py_path", "prefix", "suffix", "ready", "running", "reason",
        "offset", "stays", "signal", "log_start", "log_end", "attempt", "again", "what", "rows", "columns",
        "id", "length", "state", "started", "elapsed", "silent", "clock", "whole"]
BOOLS = {"is_input", "blocking", "hidden", "is_error", "has_metadata", "ready", "running"}
NUMBERS = {"exit_code", "pid", "offset", "id"}


def field(name, value):
    return struct.pack("=II", TAGS.index(name), len(value)) + value


def frame(kind, payload):
    return struct.pack("=III", MAGIC, kind, len(payload)) + payload


def run_frame(command, is_input=False, blocking=False, timeout=None, hidden=False, key="",
              stays=False, whole=False):
    if isinstance(command, str):
        command = command.encode("utf-8", "surrogateescape")
    payload = field("command", command) + field("is_input", bytes([is_input])) + \
        field("blocking", bytes([blocking])) + field("hidden", bytes([hidden]))
    if timeout is not None:
        payload += field("timeout", struct.pack("=d", timeout))
    if key:
        payload += field("key", key.encode())
    if stays:
        payload += field("stays", b"\1")
    if whole:
        payload += field("whole", b"\1")
    return frame(RUN, payload)


def follow_frame(command, offset):
    """Follows one command's output to its end."""
    return frame(FOLLOW, field("offset", struct.pack("=Q", offset)) + field("stays", b"\1") +
                 field("id", struct.pack("=q", command)))


def press_frame(text):
    """Types the text into the running command."""
    return frame(PRESS, field("what", struct.pack("=q", 0)) + field("content", text.encode()))


def decode(data):
    magic, kind, length = struct.unpack_from("=III", data)
    if magic != MAGIC or length != len(data) - 12:
        raise AssertionError("not one frame: %r" % data[:80])
    fields, at = {}, 12
    while at < len(data):
        tag, size = struct.unpack_from("=II", data, at)
        value = data[at + 8:at + 8 + size]
        at += 8 + size
        name = TAGS[tag]
        if name in BOOLS:
            fields[name] = bool(value[0])
        elif name in NUMBERS:
            fields[name] = struct.unpack("=q", value)[0]
        else:
            fields[name] = value.decode("utf-8", "surrogateescape")
    return kind, fields


def read_all(sock):
    data = bytearray()
    while True:
        more = sock.recv(1 << 16)
        if not more:
            return bytes(data)
        data += more


def read_one(sock):
    """One frame: more may come on this connection."""
    data = bytearray()
    while len(data) < 12 or len(data) < 12 + struct.unpack_from("=I", data, 8)[0]:
        more = sock.recv(1 << 16)
        if not more:
            raise AssertionError("closed after %d bytes" % len(data))
        data += more
    return bytes(data)


def observation(fields, seconds):
    o = Observation(seconds=seconds)
    for name in ("content", "exit_code", "pid", "prefix", "suffix", "command", "hidden",
                 "is_error"):
        setattr(o, name, fields.get(name, getattr(o, name)))
    if fields.get("has_metadata"):
        for name in ("working_dir", "username", "hostname", "py_path"):
            setattr(o, name, fields.get(name, ""))
    return o


class Keeper:
    """A started keeper. Waits for its readiness line; run() as Server.run(). Typed: all commands
    are, as where bash cannot load handrail-line.so. Account (root only): whose the shell is."""

    def __init__(self, program, no_change=10, init=('alias git="git --no-pager"',), env=None,
                 wrapper=(), is_static=False, more=(), ready_seconds=60, typed=False, account=None,
                 cwd=None):
        self.base = tempfile.mkdtemp(prefix="e2e-keeper-")
        self.state = os.path.join(self.base, "state")
        self.work_dir = os.path.join(self.base, "work")
        self.home = os.path.join(self.base, "home")
        for path in (self.state, self.work_dir, self.home):
            os.mkdir(path, 0o700)
            if account:
                shutil.chown(path, account)
        if account:
            os.chmod(self.base, 0o711)
        self.log_path = os.path.join(self.base, "log")
        self.address = os.path.join(self.base, "socket")
        args = list(wrapper) + [program, "--name", "e2e", "--user", account or "nobody",
                                "--work-dir", self.work_dir, "--state-dir", self.state,
                                "--no-change-timeout", str(no_change)] + list(more)
        if not account:
            args.append("--stay")
        if not typed:
            args += ["--line-module", os.path.join(os.path.dirname(program), "handrail-line.so")]
        for command in init:
            args += ["--init-command", command]
        if is_static:
            args.append("--static")
            serve, self.peer = socket.socketpair()
        else:
            serve = socket.socket(socket.AF_UNIX)
            serve.bind(self.address)
            serve.listen(256)
        ready, told = os.pipe()
        full = dict(os.environ if env is None else env)
        full["HOME"] = self.home
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (told, serve.fileno())]
        os.close(told)
        serve.close()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                args, preexec_fn=lambda: [os.dup2(fd, at) for at, fd in enumerate(high, 3)],
                close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                env=full, cwd=cwd)
        for fd in high:
            os.close(fd)
        self.ready = b""
        if select.select([ready], [], [], ready_seconds)[0]:
            self.ready = os.read(ready, 4096)
        os.close(ready)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def send(self, command, **more):
        """Sends a request and does not wait: the socket, to be read to its end."""
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self.address)
        sock.sendall(run_frame(command, **more))
        return sock

    def run(self, command, http_timeout=30, **more):
        began = time.monotonic()
        with self.send(command, **more) as sock:
            sock.settimeout(http_timeout)
            data = read_all(sock)
        if not data:
            raise AssertionError("no answer to %r; log:\n%s" % (command[:80], self.log()[-2000:]))
        return observation(decode(data)[1], time.monotonic() - began)

    def status(self):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(self.address)
            sock.sendall(frame(STATUS, b""))
            return decode(read_all(sock))[1]

    def shell_pid(self):
        found = process.children(self.process.pid)
        return found[0] if found else None

    def processes(self):
        return {"keeper": self.process.pid, "shell": self.shell_pid()}

    def stop(self, signo=signal.SIGTERM, seconds=30):
        """Ends it; a list of what is wrong with the end (empty: nothing)."""
        wrong = []
        if self.process.poll() is None:
            self.process.send_signal(signo)
        try:
            status = self.process.wait(seconds)
            if status != 0:
                wrong.append("exit status %d" % status)
        except subprocess.TimeoutExpired:
            wrong.append("did not end within %d s" % seconds)
            self.process.kill()
            self.process.wait()
        wrong += ["left running: %d %s" % left for left in process.left_over((), seconds)]
        wrong += ["left behind: %s" % name for name in os.listdir(self.state)]
        if "ERROR" in self.log() or "Sanitizer" in self.log():
            wrong.append("log: " + self.log()[-2000:])
        shutil.rmtree(self.base, ignore_errors=True)
        return wrong
