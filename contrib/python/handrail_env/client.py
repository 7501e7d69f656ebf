"""A sandbox of the command `handrail`, for scripts. Each call waits for its answer; threads may call at once."""

import contextlib
import http.client
import json
import os
import posixpath
import re
import shlex
import ssl
import subprocess
import urllib.parse
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

DOOR = "HANDRAIL_SWEREX"  # what execute() goes through
RAISED = {"builtins." + c.__name__: c for c in (FileExistsError, FileNotFoundError, IsADirectoryError,
                                                NotADirectoryError, PermissionError, ValueError, OSError)}
RAISED["swerex.exceptions.CommandTimeoutError"] = TimeoutError
NOT_RUN = '\n[Your command "'  # what the server says of a command while another one runs
ERRNO = {13: PermissionError, 2: FileNotFoundError, 20: NotADirectoryError, 21: IsADirectoryError}


class HandrailError(Exception):
    """What the command or the sandbox said."""


class BusyError(HandrailError):
    """The shell runs another command, so this one was not run."""


class Executed(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


class Ran(NamedTuple):
    exit_code: int  # -1: it still runs, and the shell is busy until it ends
    output: str  # without its last line end
    directory: str


def parsed(source, body):
    """The object that an answer is."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):  # it may be a proxy's, with what nobody should see in a log
        raise HandrailError("%s: the answer is not a JSON object" % source)
    return answer


def assignments(env):
    """Variables in the words of sh(1)."""
    text = ""
    for name, value in env.items():
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError("a variable's name has letters, digits and underscores alone: %r" % name)
        if "\0" in str(value):
            raise ValueError("the variable %s has a null character" % name)
        text += "export %s=%s\n" % (name, shlex.quote(str(value)))
    return text.encode(errors="surrogateescape")


def handrail(*words, program=None, env=None):
    """One call of the command; what it printed. env: further variables of its own."""
    program = program or os.environ.get("HANDRAIL", "handrail")
    try:
        # the kind local hands its environment on to the server
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              env=dict(os.environ, **{DOOR: "true"}, **(env or {})))
    except FileNotFoundError:
        raise HandrailError("there is no command %r: install handrail, or name it by $HANDRAIL" % program) from None
    if done.returncode != 0:
        raise HandrailError(done.stderr.decode(errors="replace").strip() or
                            "handrail %s: status %d" % (words[0], done.returncode))
    return done.stdout


def _afterwards(fine, call, *args, **more):
    """Cleans up. Where something went wrong before (not fine) that is the error which counts: it stays the one."""
    try:
        call(*args, **more)
    except (HandrailError, OSError):
        if fine:
            raise


class Branches(list):
    """The branches of a fork. `with` ends those that are in the list at its end, so pop() or remove() keeps one."""

    def down(self):
        if self:
            handrail("down", "-q", *(box.name for box in self), program=self[0].program)

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        _afterwards(kind is None, self.down)


class Sandbox:
    """with Sandbox.up("local") as box: print(box.run("ls").output)"""

    def __init__(self, url, key=None, name=None, program=None):
        self.url, self.key, self.name, self.program = url, key, name, program
        self.context = ssl.create_default_context() if url.startswith("https:") else None
        self.directory = None  # where relative paths are from

    @classmethod
    def up(cls, runtime=None, name=None, settings=(), env=None, plugins=(), options=(), program=None, own=False,
           server=None):
        """Starts one, or finds that of the name. settings: "key=value" of handrail(1); options: further ones of it.
        server: variables of its server, see handraild(8). own: nobody else knows the name; where the sandbox does
        not answer it is ended."""
        own, name = own or not name, name or "py-" + uuid.uuid4().hex[:16]
        words = ["up", "-q", "-n", name, *options]
        if runtime:
            words += ["-r", runtime]
        # of the kind local a variable of the sandbox would be a line of its user's own ~/.bashrc
        if (runtime or cls._kind(options, program)) != "local":
            words += ["-s", "sandbox.runtime_startup_env_vars=" + json.dumps({DOOR: "true", **(server or {})})]
        for setting in settings:
            words += ["-s", setting]
        for plugin in plugins or ["none"]:
            words += ["-p", plugin]
        # not "-e NAME=VALUE": arguments are for all to see
        handrail(*words, program=program, env={**(server or {}), **{"SANDBOX_ENV_%s" % n: str(value)
                                                                    for n, value in (env or {}).items()}})
        try:
            return cls.attach(name, program)
        except BaseException:
            if own:
                _afterwards(False, handrail, "down", "-q", name, program=program)
            raise

    @staticmethod
    def _kind(options, program):
        said = parsed("handrail config", handrail("config", *options, program=program))
        return said.get("core", {}).get("runtime")

    @classmethod
    def attach(cls, name="default", program=None):
        """One that was started, by this or by the command."""
        at = parsed("handrail url", handrail("url", "-q", "--json", "-n", name, program=program))
        box = cls(at["server"], at["key"], name, program)
        box.directory = box.execute(["pwd"]).stdout.rstrip("\n")
        return box

    @classmethod
    def from_snapshot(cls, tag, name=None, options=(), **more):
        """Starts a box with the files of a snapshot. The other arguments are those of up()."""
        return cls.up("box", name, options=("--from", tag, *options), **more)

    def snapshot(self, tag=None):
        """Copies the files of a box, and returns the name of the snapshot. `handrail snapshot rm` removes it."""
        return handrail("snapshot", "-q", self.name, *([tag] if tag else []), program=self.program).decode().strip()

    def fork(self, count=1, name=None, freeze=False):
        """Starts branches of a box, with its files and its shell; all or none. Their names are `name` with "-1" and
        so on. freeze: also while a command runs or a file is open for writing."""
        words = ["fork", "-q", self.name, name or "py-" + uuid.uuid4().hex[:16], "--count", str(count)]
        names = handrail(*words, *(["--freeze"] if freeze else []), program=self.program).decode().split()
        try:
            with ThreadPoolExecutor(8) as pool:
                return Branches(pool.map(lambda branch: self.attach(branch, self.program), names))
        except BaseException:
            _afterwards(False, handrail, "down", "-q", *names, program=self.program)
            raise

    def down(self):
        handrail("down", "-q", self.name, program=self.program)

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        _afterwards(kind is None, self.down)

    # ---- HTTP ----

    def ask(self, method, path, body=None, type="application/json", timeout=None, **headers):
        """(status, bytes)"""
        at = urllib.parse.urlsplit(self.url)
        if self.context:
            c = http.client.HTTPSConnection(at.hostname, at.port, timeout=timeout, context=self.context)
        else:
            c = http.client.HTTPConnection(at.hostname, at.port, timeout=timeout)
        if self.key:
            headers["X-Session-API-Key"] = self.key
        if body is not None:
            headers["Content-Type"] = type
        try:
            c.request(method, at.path.rstrip("/") + path, body, headers)
            answer = c.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as e:
            raise HandrailError("%s: the answer is cut, or no HTTP: %s" % (path, e.__class__.__name__)) from None
        finally:
            c.close()

    def _post(self, path, message, take):
        # a name of its own: a request that is sent twice is done once
        return self._taken(path, take,
                           *self.ask("POST", path, json.dumps(message), **{"X-Request-ID": uuid.uuid4().hex}))

    def call(self, path, message):
        """Posts to a path of handrail's own (doc/live.md) and returns the answer."""
        status, body = self.ask("POST", path, json.dumps(message), **{"X-Request-ID": uuid.uuid4().hex})
        return self._taken(path, dict, 200 if status == 201 else status, body)

    @staticmethod
    def _taken(path, take, status, body):
        """take(answer), where it is one."""
        if status == 404 and path.startswith("/swerex/"):
            raise HandrailError("the sandbox has no %s: its server must be started with %s=true. A fleet of the kind "
                                "local, and a pool of any fleet, give the variables of a start to shells alone, so the "
                                'operator of the fleet sets this one: see doc/agents.md, "From Python"' % (path, DOOR))
        answer = parsed("%s: status %d" % (path, status), body)
        try:
            if status == 511:
                e = answer["swerexception"]
                raise RAISED.get(e["class_path"], HandrailError)(e["message"])
            if status != 200:
                raise HandrailError(answer.get("detail") or "%s: status %d" % (path, status))
            return take(answer)
        except (KeyError, TypeError):
            raise HandrailError("%s: status %d: the answer is none of handrail's" % (path, status)) from None

    # ---- commands ----

    def run(self, command, timeout=None):
        """Runs a command in the shell that all calls share: directory and variables stay. A command that outlives its
        timeout continues, and the exit_code is -1. Raises BusyError if such a command still runs, and runs nothing."""
        more = {} if timeout is None else {"timeout": timeout}
        o = self.act("run", {"command": command, "blocking": True}, exact=True, **more)
        if o["observation"] != "run":
            raise HandrailError(o["content"])
        at = o["extras"]["metadata"]
        if at["exit_code"] == -1 and str(at.get("suffix", "")).startswith(NOT_RUN):
            raise BusyError("not run: the shell is busy with another command; wait for its end, or interrupt it by "
                            '"handrail run -i C-c"')
        prefix = str(at.get("prefix", ""))
        cut = prefix if prefix.startswith("[Previous command outputs are truncated.") else ""
        return Ran(at["exit_code"], cut + o["content"].removesuffix("\n"), at["working_dir"])

    def act(self, name, args, session=None, **more):
        """Performs an action (doc/actions.md), in the shell `session` if it is named, and returns the observation."""
        path = "/handrail/v1/run?session=" + session if session else "/execute_action"
        return self._post(path, {"action": dict(more, action=name, args=args)}, self._observation)

    @staticmethod
    def _observation(o):
        """Returns an observation whose members have their types, and raises TypeError or KeyError otherwise."""
        if o["observation"] == "run":
            at = o["extras"]["metadata"]
            whole = isinstance(at["exit_code"], int) and isinstance(at["working_dir"], (str, type(None)))
        else:
            whole = isinstance(o["extras"], dict)
        if not whole or not isinstance(o["content"], str):
            raise TypeError
        return o

    def execute(self, words, input=None, cwd=None, env=None, user=None, timeout=None):
        """Runs a program beside all shells, with its two streams apart. Raises TimeoutError if the program was ended
        after `timeout` seconds."""
        words, files = list(words), []
        if env:  # not as arguments, which are for all to see
            words = ["/bin/sh", "-c", 'eval "$(/bin/cat <&3)"; exec 3<&-; exec "$@"', "sh", *words]
            files.append(("3", assignments(env)))
        if user is not None:
            words = ["/usr/sbin/runuser", "-u", str(user), "--", *words]
        if input is not None:
            files.append(("0", input))
        if not files:
            return self._execute(words, cwd, timeout)
        with self.inputs(*(data for _, data in files)) as names:
            for name, (number, _) in zip(names, files):
                words = ["/bin/sh", "-c", 'exec %s<"$0"; exec "$@"' % number, name, *words]
            return self._execute(words, cwd, timeout)

    @contextlib.contextmanager
    def inputs(self, *contents):
        """The names of files with these contents, which nobody else can read and which are removed at the end."""
        names, fine = ["/tmp/handrail-input-" + uuid.uuid4().hex for _ in contents], False
        try:
            # nobody else's to read: a file that is there keeps its mode
            self._execute(["/bin/sh", "-c", 'umask 077; for f; do : >"$f"; done', "sh", *names], None, None)
            for name, data in zip(names, contents):
                self.write(name, data)
            yield names
            fine = True
        finally:
            _afterwards(fine, self._execute, ["/bin/rm", "-f", "--", *names], None, None)

    def _execute(self, words, cwd, timeout):
        message = {"command": words, "cwd": self.path(cwd) if cwd else None, "timeout": timeout}
        return self._post("/swerex/execute", message, lambda a: Executed(a["exit_code"], a["stdout"], a["stderr"]))

    # ---- files ----

    def path(self, path):
        return posixpath.join(self.directory or "/", str(path))

    def read(self, path, most=None):
        """The bytes of a file; of more than `most` of them only that many and one more."""
        path = self.path(path)
        headers = {} if most is None else {"Range": "bytes=0-%d" % most}
        status, body = self.ask("GET", "/download_file?" + urllib.parse.urlencode({"path": path}), **headers)
        if status in (200, 206):
            return body
        if status == 416:
            return b""
        return self._fail("%s: status %d" % (path, status), body, path)

    def write(self, path, data):
        """A whole file, with the directories above it."""
        if isinstance(data, str):
            data = data.encode()
        mark, part = uuid.uuid4().hex, '--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n'
        body = (part % (mark, "target_path", "") + self.path(path) + "\r\n").encode()
        body += (part % (mark, "file", '; filename="f"')).encode() + data + ("\r\n--%s--\r\n" % mark).encode()
        type = "multipart/form-data; boundary=" + mark
        self._taken("/swerex/upload", bool, *self.ask("POST", "/swerex/upload", body, type))

    def put(self, source, path="."):
        """A file or a directory of this machine, as `handrail put` does: a relative path is from the shell's directory
        on. HandrailError names what could not be copied."""
        handrail("put", "-q", "-n", self.name, "--", os.fspath(source), os.fspath(path), program=self.program)

    def get(self, path, target="."):
        """The same the other way, as `handrail get` does."""
        handrail("get", "-q", "-n", self.name, "--", os.fspath(path), os.fspath(target), program=self.program)

    @staticmethod
    def _fail(source, body, path):
        said = str(parsed(source, body).get("detail", ""))
        kind = HandrailError
        if said.startswith("404: "):
            kind = FileNotFoundError
        elif said == "400: Path is a directory":
            kind = IsADirectoryError
        for number, error in ERRNO.items():
            if said.startswith("[Errno %d]" % number):
                kind = error
        raise kind("%s: %s" % (said.partition(": ")[2] or said, path))
