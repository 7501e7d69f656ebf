"""The surroundings of a user of the handrail command, for the tests of each kind of sandbox."""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile

from . import process
from .tap import equal

BUILD = os.path.abspath(os.environ.get("HANDRAIL_BUILDDIR") or os.getcwd())
SRC = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
PATIENCE = float(os.environ.get("E2E_PATIENCE", "60"))


class Written:
    """Waits until a name appears in a directory (inotify)."""

    def __init__(self, directory):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        equal(libc.inotify_add_watch(self.fd, directory.encode(), 0x80) >= 0, True, "IN_MOVED_TO")

    def wait(self, name):
        seen = b""
        while name.encode() + b"\0" not in seen:
            equal(select.select([self.fd], [], [], PATIENCE)[0], [self.fd], "it is written")
            seen += os.read(self.fd, 4096)
        os.close(self.fd)


class Host:
    """A user's surroundings: home, state, temporary files; ends every sandbox that is left."""

    def __init__(self, **env):
        self.top = tempfile.mkdtemp(prefix="e2e-host-")
        os.chmod(self.top, 0o755)
        for name in ("home", "tmp", "cwd"):
            os.mkdir(self.path(name))
        keep = ("PATH", "LANG", "LC_ALL", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH",
                "PYENV_REHASH_TIMEOUT")
        self.env = {k: os.environ[k] for k in keep if k in os.environ}
        self.env.update(HANDRAIL_SERVER=os.path.join(BUILD, "handraild"), HANDRAIL_LIBEXECDIR=BUILD,
                        HANDRAIL_DATADIR=os.path.join(SRC, "conf"), HANDRAIL_STATE_DIR=self.path("state"),
                        HOME=self.path("home"), TMPDIR=self.path("tmp"), RUNTIME="local",
                        CACHE_DIR=self.path("cache"), FILE_STORE_PATH=self.path("store"),
                        XDG_RUNTIME_DIR=self.path("run"))
        os.mkdir(self.path("run"), 0o700)
        self.env.update(env)

    def path(self, *names):
        return os.path.join(self.top, *names)

    def __enter__(self):
        return self

    def end_orphans(self, *words):
        """Kills, and sees the end of, what only a server that was killed could have ended."""
        for pid in process.all_pids():
            if any(w in process.command_line(pid) for w in words or (self.top,)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                equal(process.wait_gone(pid, PATIENCE), True, "a process that was killed ends")

    def __exit__(self, *unused):
        self("down", "--all", "-q")
        # what ends has a moment to do so
        left = [pid for pid in process.all_pids()
                if self.top in process.command_line(pid) and not process.wait_gone(pid, PATIENCE)]
        shutil.rmtree(self.top, ignore_errors=True)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        equal([process.command_line(pid) for pid in left], [], "processes left behind")

    def popen(self, *argv, **more):
        return subprocess.Popen([os.path.join(BUILD, "handrail")] + list(argv), env=self.env, cwd=self.path("cwd"),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                **dict({"stdin": subprocess.DEVNULL}, **more))

    def __call__(self, *argv, **more):
        text = more.pop("input", None)
        if text is not None:
            more["stdin"] = subprocess.PIPE
        p = self.popen(*argv, **more)
        out, err = p.communicate(text, PATIENCE)
        return subprocess.CompletedProcess(argv, p.returncode, out, err)

    def ok(self, *argv, **more):
        done = self(*argv, **more)
        equal(done.returncode, 0, "handrail %s\n%s%s" % (" ".join(argv), done.stdout, done.stderr))
        return done.stdout

    def fails(self, status, text, *argv, **more):
        done = self(*argv, **more)
        equal((done.returncode, text in done.stderr), (status, True),
              "handrail %s: %r %r" % (" ".join(argv), done.stdout, done.stderr))
        equal(done.stderr.startswith("handrail: "), True, done.stderr)

    def record(self, name="default"):
        with open(self.path("state", name + ".json")) as f:
            return json.load(f)
