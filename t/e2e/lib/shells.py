"""A running default session, behind the whole server or behind its keeper alone, and a client's
view of it: run() gives an Observation."""

import http.client
import json
import os
import shutil
import tempfile
import time

from . import keeper, process
from .observation import Observation


def slack():
    """Factor on upper bounds of time: for valgrind, sanitizers, a slow machine."""
    return float(os.environ.get("E2E_SLACK", "1"))


def environment():
    """What a server starts with: nothing of the machine's own."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8"}


def action(command, is_input=False, blocking=False, timeout=None, hidden=False, is_static=False,
           cwd=None, **extra):
    """The JSON of a `run` action."""
    args = {"command": command, "is_input": is_input, "blocking": blocking, "hidden": hidden}
    if is_static:
        args["is_static"] = True
    if cwd is not None:
        args["cwd"] = cwd
    act = dict({"action": "run", "args": args}, **extra)
    if timeout is not None:
        act["timeout"] = timeout
    return act


def observation(answer, seconds=0.0):
    """Of the JSON of an answer."""
    o = Observation(content=answer["content"], seconds=seconds)
    if answer["observation"] == "error":
        o.is_error = True
        return o
    extras = answer["extras"]
    data = extras["metadata"]
    o.command, o.hidden = extras["command"], extras["hidden"]
    o.exit_code, o.pid = data["exit_code"], data["pid"]
    o.prefix, o.suffix = data["prefix"], data["suffix"]
    o.working_dir, o.username, o.hostname = data["working_dir"], data["username"], data["hostname"]
    o.py_path = data["py_interpreter_path"]
    return o


class ServerShell:
    """The whole server, hermetic: a home directory of its own, no user's start-up files."""

    def __init__(self, no_change=None, env=None, key=None, args=(), su=False, settings=None):
        from . import supervised
        self.home = tempfile.mkdtemp(prefix="e2e-home-")
        full = dict(environment(), HOME=self.home, SU_TO_USER="true" if su else "false")
        if no_change is not None:
            full["NO_CHANGE_TIMEOUT_SECONDS"] = str(no_change)
        full.update(env or {})
        if key:
            full["SESSION_API_KEY"] = key
        self.key = key
        self.server = supervised.Server(env=full, settings=settings,
                                        args=["--listen", "127.0.0.1", "--no-enable-browser"] +
                                        list(args))
        # a path without links: what the shell says of its directory
        self.work_dir = os.path.realpath(self.server.work_dir)

    def log(self):
        return self.server.log()

    def headers(self):
        return {"X-Session-API-Key": self.key} if self.key else {}

    def request(self, method, path, body=None, headers=None, timeout=60):
        return self.server.request(method, path, body, dict(self.headers(), **(headers or {})),
                                   timeout)

    def post(self, act, timeout=60, headers=None):
        return self.request("POST", "/execute_action", json.dumps({"action": act}),
                            dict({"Content-Type": "application/json"}, **(headers or {})), timeout)

    def send(self, command, headers=None, **more):
        """Sends a request and does not wait: a connection, see receive()."""
        c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        c.request("POST", "/execute_action", json.dumps({"action": action(command, **more)}),
                  dict(self.headers(), **dict({"Content-Type": "application/json"},
                                              **(headers or {}))))
        return c

    def receive(self, connection):
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status != 200:
            raise AssertionError("%d %r\n%s" % (response.status, body[:500], self.log()))
        return observation(json.loads(body))

    def run(self, command, http_timeout=60, headers=None, **more):
        began = time.monotonic()
        answer = self.post(action(command, **more), http_timeout, headers)
        seconds = time.monotonic() - began
        if answer.status != 200:
            raise AssertionError("%r: %r\n%s" % (command[:80], answer, self.log()))
        return observation(answer.json(), seconds)

    def keeper_pid(self):
        return self.server.keeper()[0]

    def shell_pid(self):
        found = process.children(self.keeper_pid())
        return found[0] if found else None

    def processes(self):
        """All of the server and the shell, without what commands left: pid -> command line."""
        pids = [self.server.pid] + process.descendants(self.server.pid)
        return {pid: process.command_line(pid) for pid in pids}

    def stop(self):
        """A list of what is wrong with the end (empty: nothing)."""
        wrong = []
        try:
            status = self.server.stop()
            if status != -15:
                wrong.append("exit status %d" % status)
            self.server.__exit__(None, None, None)
        except AssertionError as error:
            wrong.append(str(error))
        except Exception as error:  # did not end in time
            wrong.append(repr(error))
            self.server.__exit__(type(error), error, None)
        shutil.rmtree(self.home, ignore_errors=True)
        return wrong


def start(keeper_program=None, no_change=10, typed=False, **more):
    if keeper_program:
        shell = keeper.Keeper(keeper_program, no_change=no_change, env=environment(), typed=typed)
    else:
        shell = ServerShell(no_change=no_change, **more)
    first = shell.run("export E2E_TERM=$TERM E2E_PATH=$PATH E2E_HOME=$HOME")
    if not first.completed or first.exit_code != 0:
        raise AssertionError("the first command: %r\n%s" % (first, shell.log()))
    return shell


def need_programs():
    """Skips the whole file where the server was not built."""
    from . import supervised
    from .tap import skip_all
    for program in ("handraild", "handrail-worker", "handrail-session"):
        if not os.access(os.path.join(supervised.BUILDDIR, program), os.X_OK):
            skip_all("%s is not built: run make" % program)
    if supervised.find_program("nginx") is None:
        skip_all("nginx is missing: apt-get install nginx-light")
