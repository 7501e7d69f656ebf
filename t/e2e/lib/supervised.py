"""A handraild of a test: started on a free loopback port in a directory of its own, talked to over
HTTP, and proved to leave nothing behind."""

import contextlib
import faulthandler
import http.client
import json
import os
import random
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from . import boxed, process
from .tap import Skip, Tap, equal, skip_all

SRCDIR = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "../../.."))
BUILDDIR = os.path.abspath(os.environ.get("HANDRAIL_BUILDDIR") or os.getcwd())
HANDRAILD = os.path.join(BUILDDIR, "handraild")
ROOT = os.geteuid() == 0
PATIENCE = float(os.environ.get("E2E_PATIENCE", "30"))
FILE_PATIENCE = 40 * PATIENCE
# in the log, of a process that ended by a signal of its own fault: tests send others
CRASH = re.compile(r"\bsignal (4|5|6|7|8|11)\b")


CLAIMS = []


def free_port():
    """Nobody else's until this program ends, also while the server there is started again: not that of
    another test, which has to claim it too, and below those that the kernel gives to clients and that
    "handrail up" gives to servers. It stays bound, beside which only who says SO_REUSEADDR may bind it,
    as servers do and the search for a file viewer's port does not."""
    while True:
        port = random.randrange(10000, 30000)
        claim, bound = socket.socket(socket.AF_UNIX), socket.socket()
        try:
            claim.bind("\0handrail-e2e-port-%d" % port)
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            bound.close()
            continue
        CLAIMS.extend((claim, bound))
        return port


def need_entrance():
    """For a server of another account: that one may enter the build directory."""
    path = os.path.realpath(BUILDDIR)
    while ROOT and path != "/":
        if not os.stat(path).st_mode & 1:
            raise Skip("others may not enter the build directory: chmod o+x %s" % path)
        path = os.path.dirname(path)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "Answer(%d, %r)" % (self.status, self.body[:200])


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, connect, timeout):
        super().__init__("localhost", timeout=timeout)
        self.connected = connect

    def connect(self):
        self.sock = self.connected(self.timeout)


class Server:
    """with Server(...) as s: the directory is removed at the end; a server still alive is a failure
    of the test, and is killed. unix: it listens on a Unix socket, s.unix. With E2E_BACKEND=box it is process 1 of a
    box, which has no network, and sees the directories `shown` of the machine."""

    def __init__(self, args=(), env=None, settings=None, user=None, libexec=None, prefix=(),
                 ready=True, port=None, run_dir=None, work_dir=None, name=None, unix=False, shown=()):
        if boxed.BOXED and (user is not None or prefix):
            raise Skip("a server in a box is started by its launcher, for this account")
        if user is not None:
            need_entrance()
        self.launcher = boxed.Launcher(os.path.join(BUILDDIR, "handrail-box")) if boxed.BOXED else None
        self.top = tempfile.mkdtemp(prefix="e2e-sup-")
        os.chmod(self.top, 0o755)
        self.work_dir = work_dir or os.path.join(self.top, "work")
        os.makedirs(self.work_dir, exist_ok=True)
        self.run_dir = run_dir or os.path.join(self.top, "run")
        self.port = port or free_port()
        self.unix = os.path.join(self.top, "server.sock") if unix or boxed.BOXED else None
        self.user, self.prefix, self.shown = user, list(prefix), shown
        if user is not None:
            shutil.chown(self.top, user)
            shutil.chown(self.work_dir, user)
        self.lines, self.grew = [], threading.Condition()
        self.popen, self.reader, self.settings = None, None, {}
        self.env = {k: v for k, v in os.environ.items()
                    if k not in ("SESSION_API_KEY", "NOTIFY_SOCKET", "XDG_RUNTIME_DIR", "DEBUG")}
        self.env.update(HANDRAIL_LIBEXECDIR=libexec or BUILDDIR, NO_CHANGE_TIMEOUT_SECONDS="300",
                        HANDRAIL_VIEWER_URL_FILE=os.path.join(self.top, "viewer-url"),
                        HANDRAIL_DATADIR=os.path.join(SRCDIR, "conf"),
                        HANDRAIL_WWWDIR=os.path.join(SRCDIR, "www"), HOME=self.work_dir)
        # an ordinary user is root of a box
        me = name or user or ("root" if os.geteuid() == 0 or boxed.BOXED else "tester")
        if isinstance(user, int):
            number = user
        else:
            number = pwd.getpwnam(me).pw_uid if me == "root" or user else 1000 if name else os.geteuid()
        if me == "root":
            self.env["SU_TO_USER"] = "false"  # else the shell has root's own start-up files, whatever they do
        self.env.update(env or {})
        if me != "root":
            self.env["USER"] = me  # its own account: nothing is made or changed
        self.args = [str(self.port), "--working-dir", self.work_dir, "--run-dir", self.run_dir,
                     "--username", me, "--user-id", str(number)]
        if settings is not None:
            self.write_settings(settings)
            self.args += ["--config", self.settings_file()]
        self.args += ["--listen", "unix:" + self.unix] if self.unix else []
        self.args += list(args)
        if ready is not None:
            self.start(ready)

    def settings_file(self):
        return os.path.join(self.top, "settings.json")

    def write_settings(self, settings):
        self.settings = settings if isinstance(settings, dict) else {}
        with open(self.settings_file() + ".new", "w") as f:
            f.write(settings if isinstance(settings, str) else json.dumps(settings))
        os.rename(self.settings_file() + ".new", self.settings_file())

    # ---- the process ----

    def start(self, ready=True):
        self.lines, self.whole = [], False
        if self.launcher is not None:
            shown = {self.top, BUILDDIR, SRCDIR, self.env["HANDRAIL_LIBEXECDIR"], *self.shown}
            self.popen = self.launcher.start([HANDRAILD] + self.args, self.env, sorted(shown), (BUILDDIR, SRCDIR))
        else:
            self.popen = subprocess.Popen(
                self.prefix + [HANDRAILD] + self.args, env=self.env, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, user=self.user,
                start_new_session=True)
        self.reader = threading.Thread(target=self._read, args=(self.popen.stderr, self.lines), daemon=True)
        self.reader.start()
        if ready and not self.wait_log(r" ready: "):
            why = AssertionError("not ready\n" + self.log())
            self.__exit__(type(why), why, None)  # nobody else may have a hold of it
            raise why

    def _read(self, stderr, lines):
        for line in stderr:
            with self.grew:
                lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self.grew.notify_all()
        with self.grew:
            lines.append(None)  # end of the log
            self.grew.notify_all()

    def log(self):
        return "\n".join(line for line in self.lines if line is not None)

    def wait_log(self, pattern, seconds=PATIENCE, count=1):
        """Waits for `count` matching lines; None when the log or the patience ends first."""
        def found():
            hits = [l for l in self.lines if l is not None and re.search(pattern, l)]
            return hits if len(hits) >= count or (self.lines and self.lines[-1] is None) else None
        with self.grew:
            hits = self.grew.wait_for(found, seconds)
        return hits[count - 1] if hits is not None and len(hits) >= count else None

    @property
    def pid(self):
        return self.popen.pid

    def send(self, sig):
        self.popen.send_signal(sig)

    def wait(self, seconds=PATIENCE):
        """The exit status as subprocess has it: negative for a signal."""
        status = self.popen.wait(seconds)
        self.reader.join(seconds)
        crashed = [line for line in self.lines if line is not None and CRASH.search(line)]
        if crashed:
            raise AssertionError("crashed: %s\n%s" % (crashed[0], self.log()))
        return status

    def stop(self, sig=signal.SIGTERM, seconds=PATIENCE):
        self.send(sig)
        return self.wait(seconds)

    def kill_and_start(self):
        self.send(signal.SIGKILL)
        self.wait()
        self.start()

    def upgrade(self):
        """Once after a start."""
        self.send(signal.SIGUSR2)
        equal(self.wait_log(" ready: ", count=2) is not None, True)

    def edge_workers(self):
        """Workers of nginx that take connections: one that ends says so in its name."""
        return {pid for pid in process.descendants(self.pid)
                if process.command_line(pid) == "nginx: worker process"}

    def reload(self, count=1):
        """Until none of nginx's workers takes connections by the old settings; count: how many there were with it."""
        old = self.edge_workers()
        self.send(signal.SIGHUP)
        if not self.wait_log(r" reloaded$", count=count):
            raise AssertionError("no reload\n" + self.log())
        self.until("other workers of nginx", lambda: not old & self.edge_workers())

    def pids(self, kind):
        """Children of ours whose name begins so: handrail-worker, handrail-session, nginx."""
        return [pid for pid in process.children(self.pid)
                if os.path.basename(process.command_line(pid).split(" ")[0].rstrip(":"))
                .startswith(kind)]

    def workers(self, pool):
        """A server starts most of them two seconds after it is ready."""
        if not self.whole:
            self.until("all workers are started", lambda: all(
                len(self._workers(name)) >= int(self.settings.get(name + "_workers", usual))
                for name, usual in (("control", 2), ("files", 2), ("action", 2), ("live", 1))))
            self.whole = True
        return self._workers(pool)

    def _workers(self, pool):
        return [pid for pid in self.pids("handrail-worker")
                if " --pool %s " % pool in process.command_line(pid)]

    def outside(self, pid):
        """The number here of a process of the server's; in a box it has another one."""
        return pid if self.launcher is None else self.launcher.outside(self.pid, pid)

    def keeper(self):
        return [pid for pid in self.pids("handrail-session")
                if " --static" not in process.command_line(pid)]

    # ---- what a client does ----

    def connection(self, timeout=PATIENCE):
        if self.unix is not None:
            return UnixConnection(self.connect, timeout)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE):
        c = self.connection(timeout)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return Answer(r.status, dict(r.getheaders()), r.read())
        finally:
            c.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def connect(self, timeout=PATIENCE):
        if self.unix is None:
            return socket.create_connection(("127.0.0.1", self.port), timeout)
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        try:
            s.connect(self.unix)
        except OSError:
            s.close()
            raise
        return s

    def raw(self, data):
        """Bytes in, all bytes out until the server closes."""
        with self.connect() as s:
            s.sendall(data)
            out = b""
            while True:
                chunk = s.recv(65536)
                if not chunk:
                    return out
                out += chunk

    def action(self, command, headers=None, timeout=PATIENCE, **args):
        body = {"action": {"action": "run", "args": dict(args, command=command)}}
        return self.request("POST", "/execute_action", json.dumps(body),
                            dict({"Content-Type": "application/json"}, **(headers or {})), timeout)

    def run(self, command, **args):
        """The output of a command."""
        a = self.action(command, **args)
        if a.status != 200:
            raise AssertionError("%s: %r\n%s" % (command, a, self.log()))
        return a.json()["content"]

    def in_background(self, *args, **kw):
        """An action on a thread of its own: its .answer after .join()."""
        return Background(self, *args, **kw)

    def until(self, what, test, patience=PATIENCE):
        """Asks until it is so: for what the server does not announce. Each question is a request or
        a system call, so this yields; it ends after `patience` seconds."""
        end = time.monotonic() + patience
        while not test():
            if time.monotonic() > end:
                raise AssertionError("never: %s\n%s" % (what, self.log()))
            if self.popen.poll() is not None:
                raise AssertionError("the server ended\n" + self.log())

    def pool(self, name):
        self.workers(name)
        return self.get("/ready").json()["components"]["pool_" + name]

    def refused(self):
        try:
            (self.connect(5) if boxed.BOXED else socket.create_connection(("127.0.0.1", self.port), 5)).close()
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except ConnectionResetError:
            pass  # it was in the queue of a socket that has just been closed
        return False

    # ---- the end ----

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if self.popen is not None and self.popen.poll() is None:
                if kind is None:
                    self.stop()
                else:
                    self.popen.kill()
                    self.popen.wait()
            left = process.left_over([], 0.0 if kind is not None else PATIENCE)
            if kind is None and left:
                raise AssertionError("processes are left: %r\n%s" % (left, self.log()))
            if kind is None and os.path.lexists(self.run_dir):
                raise AssertionError("the run directory is left: %r" % os.listdir(self.run_dir))
        finally:
            shutil.rmtree(self.top, ignore_errors=True)
            if self.launcher is not None:
                self.launcher.remove()


class Background(threading.Thread):
    def __init__(self, server, *args, **kw):
        super().__init__(daemon=True)
        self.server, self.args, self.kw = server, args, kw
        self.answer, self.error, self.seconds = None, None, None
        self.start()

    def run(self):
        began = time.monotonic()
        try:
            self.answer = self.server.action(*self.args, **self.kw)
        except (OSError, http.client.HTTPException) as error:
            self.error = error
        self.seconds = time.monotonic() - began

    def content(self):
        self.join(PATIENCE)
        if self.answer is None:
            raise AssertionError("no answer: %r\n%s" % (self.error, self.server.log()))
        if self.answer.status != 200:
            raise AssertionError("%r\n%s" % (self.answer, self.server.log()))
        return self.answer.json()["content"]


# ---- what tests are made of ----

# for who looks at processes: none is started later
ONE_WORKER_EACH = {pool + end: 1 for pool in ("control", "files", "action", "live")
                   for end in ("_workers", "_workers_max")}


def has_given_up_rights(pid):
    """Whether it is past the first thing that a worker does. What has ended is not."""
    try:
        with open("/proc/%d/status" % pid) as f:
            said = dict(line.split(":", 1) for line in f)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return said["NoNewPrivs"].strip() == "1" and int(said["CapEff"], 16) >> 19 & 1 == 0  # it traces nobody


def wait_all_up(s, headers=None):
    """Until each of those workers has answered: a server is ready while some of them still begin. That
    the viewer has places of its own lets the pool for files have a second one, at any request."""
    for path in ("/alive", "/handrail/v1/output", "/download_files?path=" + s.work_dir):
        equal(s.request("GET", path, headers=headers).status, 200, path)
    s.run("true", headers=headers)
    s.until("all workers have given up their rights", lambda: all(
        has_given_up_rights(pid) for pid in s.pids("handrail-worker")))


def find_program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin")


def need(program):
    path = find_program(program)
    if path is None:
        raise Skip("there is no " + program)
    return path


def need_root():
    if not ROOT:
        raise Skip("needs root")


def met(s, path, mode):
    """Opens and closes a FIFO: when somebody else has opened it. A command that never comes to that fails
    the test."""
    def meet():
        with open(path, mode) as f:
            if mode == "r":
                f.read()
    t = threading.Thread(target=meet, daemon=True)
    t.start()
    t.join(PATIENCE)
    if t.is_alive():
        raise AssertionError("nobody opened %s\n%s" % (path, s.log()))
    os.unlink(path)


def marker(s, name="began"):
    """A FIFO by which a command tells that it runs: (shell text, function that waits)."""
    path = os.path.join(s.work_dir, name)
    os.mkfifo(path)
    os.chmod(path, 0o666)
    return "echo >%s" % path, lambda: met(s, path, "r")


def gate(s, name="gate"):
    """A FIFO on which a command waits: (shell text, function that lets it go on)."""
    path = os.path.join(s.work_dir, name)
    os.mkfifo(path)
    os.chmod(path, 0o666)
    return "cat %s" % path, lambda: met(s, path, "w")


def write_script(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


class Libexec:
    """A directory of programs, some of them stand-ins."""

    def __init__(self, **scripts):
        self.path = tempfile.mkdtemp(prefix="e2e-libexec-")
        os.chmod(self.path, 0o755)
        for name in ("handrail-session", "handrail-worker", "handrail-charset.so", "handrail-kind.so",
                     "handrail-zip.so"):
            os.symlink(os.path.join(BUILDDIR, name), os.path.join(self.path, name))
        for name, text in scripts.items():
            name = name.replace("_", "-")
            os.unlink(os.path.join(self.path, name))
            write_script(self.path, name, text)

    def __enter__(self):
        return self.path

    def __exit__(self, *what):
        shutil.rmtree(self.path)


@contextlib.contextmanager
def beside(*functions):
    """Calls each again and again on a thread of its own while the block runs; what one of them raises
    fails the test."""
    stop, raised = threading.Event(), []

    def repeat(function):
        try:
            while not stop.is_set():
                function()
        except Exception as error:
            raised.append(error)
    threads = [threading.Thread(target=repeat, args=(f,), daemon=True) for f in functions]
    for t in threads:
        t.start()
    try:
        yield
    finally:
        stop.set()
        for t in threads:
            t.join(PATIENCE)
    equal([t for t in threads if t.is_alive()], [])
    if raised:
        raise raised[0]


def kill_wait(pid):
    """It may have ended of itself since it was listed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    equal(process.wait_gone(pid, PATIENCE), True, "killed")


def kill_together(pids):
    """None of them takes on what another one drops: nginx tries no third one."""
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass
    for pid in pids:
        kill_wait(pid)


def kill_keeper(s):
    """Whatever it is at; it may be about to be started."""
    s.until("there is a keeper", s.keeper)
    kill_wait(s.keeper()[0])


def kill_keeper_and_shell(s):
    """Of a command that does not read: what is typed for it waits in the keeper, so that nobody can know
    how much of it the terminal has, and its successor does not go on with that shell."""
    a = s.request("POST", "/handrail/v1/input", json.dumps({"text": "x\n" * 200000}),
                  {"Content-Type": "application/json"})
    equal(a.status, 200, a)
    kill_wait(s.keeper()[0])


def run_tests(tests):
    """The main program of a test file: all of them, or those named on the command line."""
    for program in ("handraild", "handrail-worker", "handrail-session"):
        if not os.access(os.path.join(BUILDDIR, program), os.X_OK):
            skip_all("%s is not built" % program)
    if find_program("nginx") is None:
        skip_all("there is no nginx")
    process.become_subreaper()
    # the last resort of a file that hangs: it says where
    faulthandler.dump_traceback_later(FILE_PATIENCE, exit=True)
    names = [test.__name__ for test in tests]
    for name in sys.argv[1:]:
        if name not in names:
            sys.exit("%s has no case %s; its cases: %s" % (sys.argv[0], name, " ".join(names)))
    tap = Tap()
    for test in tests:
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        tap.run(test.__name__, test)
    return tap.done()
