#!/usr/bin/env python3
"""Where the session key is, and where it is not: in no process after the start, and in no worker that is
being born."""

import json
import os
import shutil
import signal
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    BUILDDIR, ONE_WORKER_EACH, ROOT, Server, need_root, run_tests)
from lib.tap import Skip, equal  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PER_AREA = 64 << 20


class Keyed(Server):
    """A server with a key; nobody has sent it yet."""

    def __init__(self, settings=None, in_file=False, **kw):
        super().__init__(ready=None, **kw)
        self.secret = "k3y" + os.urandom(24).hex()
        self.header = {"X-Session-API-Key": self.secret}
        settings = dict(ONE_WORKER_EACH, **(settings or {}))
        if in_file:
            settings["session_api_key_file"] = self.key_file = os.path.join(self.top, "keys")
            with open(os.open(self.key_file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
                f.write("another-key\n%s\n" % self.secret)
            if self.user:
                shutil.chown(self.key_file, self.user)
        else:
            self.env["SESSION_API_KEY"] = self.secret
        self.write_settings(settings)
        if self.user:
            shutil.chown(self.settings_file(), self.user)
        self.args += ["--config", self.settings_file(), "--listen", "127.0.0.1"]
        self.start(ready=False)
        equal(self.wait_log(" ready: ") is not None, True)


def memory_of(pid):
    """(area, bytes) of all that a process may write to."""
    with open("/proc/%d/maps" % pid) as f:
        areas = [line.split() for line in f]
    with open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for words in areas:
            start, end = (int(x, 16) for x in words[0].split("-"))
            if not words[1].startswith("rw") or end - start > PER_AREA:
                continue
            try:
                mem.seek(start)
                yield words[0], mem.read(end - start)
            except (OSError, OverflowError):
                pass


def holders(s):
    """Where the key is, as root sees it: (process, place)."""
    found, looked = [], 0
    needle = s.secret.encode()
    for pid in [s.pid] + process.descendants(s.pid):
        try:
            name = "%d %s" % (pid, process.command_line(pid)[:40])
            for place in ("environ", "cmdline", "auxv"):
                with open("/proc/%d/%s" % (pid, place), "rb") as f:
                    if needle in f.read():
                        found.append((name, place))
            for n in os.listdir("/proc/%d/fd" % pid):
                path = "/proc/%d/fd/%s" % (pid, n)
                if stat.S_ISREG(os.stat(path).st_mode):
                    with open(path, "rb") as f:
                        if needle in f.read():
                            found.append((name, os.readlink(path)))
            for area, data in memory_of(pid):
                looked += len(data)
                if needle in data:
                    found.append((name, area))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    equal(looked > 1 << 20, True, "memory was looked at")
    return found


def key_is_nowhere(in_file):
    need_root()
    with Keyed(in_file=in_file) as s:
        with open("/proc/%d/maps" % s.pid) as f:
            if not in_file and "libasan" in f.read():
                raise Skip("AddressSanitizer keeps the environment: configure without --enable-sanitizers")
        equal(holders(s), [], "after the start")
        equal(s.get("/ready").status, 403)
        s.send(signal.SIGHUP)
        equal(s.wait_log("reloaded") is not None, True)
        equal(holders(s), [], "after a reload")
        s.upgrade()
        equal(holders(s), [], "after an upgrade")
        for pid in s.pids("handrail-worker"):
            os.kill(pid, signal.SIGKILL)
        s.until("there are workers again", lambda: not s.refused() and s.get("/alive").status == 200)
        equal(holders(s), [], "after all workers were killed")
        equal([s.get("/ready", X_Session_API_Key=k).status for k in ("", s.secret + "x", s.secret[:-1], s.secret)],
              [403, 403, 403, 200], "and it is asked for")


def key_of_the_environment_is_nowhere():
    key_is_nowhere(False)


def key_of_a_file_is_nowhere():
    key_is_nowhere(True)


def key_is_in_no_log():
    """Also not of a request whose head nginx refuses, where the log tells all there is."""
    need_root()
    with Keyed(settings={"log_level": "debug"}) as s:
        key = s.secret.encode()
        for line in (b"X-Session-API-Key: %s" % key + b"A" * 70000, b"X-Session-API-Key: %s\0" % key,
                     b"X-Session-API-Key %s" % key, b"X-Session-API-Key\1: %s" % key, b"Cookie: %s\0" % key,
                     b"X_Session_API_Key: %s" % key, b"X-Session-API-Key: %s\r\nContent-Length: x" % key):
            s.raw(b"GET /ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n\r\n" % line)
        for kind in ("handrail-worker", "nginx"):
            for pid in s.pids(kind):
                os.kill(pid, signal.SIGKILL)
        s.until("it is asked for", lambda: not s.refused() and s.get(
            "/ready", X_Session_API_Key=s.secret).status == 200)
        equal([line for line in s.log().splitlines() if s.secret in line], [])


def newborn_workers():
    """With one account: nothing can look into a worker, from its first instruction on."""
    if ROOT and not all(os.stat(d).st_mode & 1 for d in (BUILDDIR, os.path.dirname(BUILDDIR))):
        raise Skip("others may not enter the build directory: chmod o+x it and the one above")
    with Keyed(user="nobody" if ROOT else None) as s:
        names = [os.path.join(s.work_dir, n) for n in ("newborn.py", "dump", "go", "said")]
        script, dump, go, said = names
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "newborn.py"), script)
        os.chmod(script, 0o644)
        for fifo in (go, said):
            os.mkfifo(fifo)
            if s.user:
                shutil.chown(fifo, s.user)
        answer = os.open(said, os.O_RDONLY | os.O_NONBLOCK)  # or its shell would wait for us
        equal(s.action("%s %s %s %d control 6 5 %s >%s &" % (PYTHON, script, dump, s.pid, go, said),
                       s.header).status, 200)
        with open(go, "w") as f:  # it has met those it wanted
            for _ in range(20):
                equal(s.get("/ready", X_Session_API_Key=s.secret).status, 200)
            f.write("\n")
        os.set_blocking(answer, True)
        with open(answer) as f:
            said = json.loads(f.read())
        with open(dump, "rb") as f:
            data = f.read()
        equal(s.secret.encode() in data, False, "the key")
        if "can be looked into" in s.log():  # no program can be executed from memory here: that was told
            with open("/proc/sys/vm/memfd_noexec") as f:
                equal(f.read().strip(), "2", s.log())
            return
        equal(said, {"killed": 6, "met": 0, "read": 0, "read_again": 0})
        equal(data, b"")


TESTS = [key_of_the_environment_is_nowhere, key_of_a_file_is_nowhere, key_is_in_no_log, newborn_workers]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
