#!/usr/bin/env python3
"""The client of contrib/python against a sandbox of the kind local. Its two harnesses, which need packages of PyPI, are
tried by hand: inspect_check.py and harbor_check.py."""

import os
import sys
import threading
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, SRC, Host  # noqa: E402
from lib.supervised import run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SRC, "contrib", "python"))
from handrail_env import HandrailError, Sandbox  # noqa: E402


class User(Host):
    """Whose environment this process has."""

    def __enter__(self):
        self.patch = mock.patch.dict(os.environ, dict(self.env, HANDRAIL=os.path.join(BUILD, "handrail")), clear=True)
        self.patch.start()
        return super().__enter__()

    def __exit__(self, *what):
        self.patch.stop()
        super().__exit__(*what)


def raises(kind, text, call, *args, **more):
    try:
        got = call(*args, **more)
    except kind as e:
        equal((type(e), text in str(e)), (kind, True), str(e))
    else:
        raise AssertionError("%s and not %s" % (got, kind.__name__))


def commands():
    with User(), Sandbox.up("local", env={"FROM_UP": "1"}) as box:
        equal(box.run("cd /usr; A=1; echo $FROM_UP"), (0, "1", "/usr"))
        equal(box.run("echo $A; false"), (1, "1", "/usr"))
        equal(box.run("read x", timeout=0.2).exit_code, -1)
        equal(box.execute(["sh", "-c", "echo out; echo err >&2; exit 3"]), (3, "out\n", "err\n"))
        equal(box.execute(["pwd"]).stdout, box.directory + "\n", "not where the shell is")
        equal(box.execute(["pwd"], cwd="/tmp").stdout, "/tmp\n")
        equal(box.execute(["sh", "-c", 'echo "$A $B"'], env={"A": "x y", "B": "'$HOME'"}).stdout, "x y '$HOME'\n")
        equal(box.execute(["cat"], input="$HOME `x` '\"\\\n\u00fc"), (0, "$HOME `x` '\"\\\n\u00fc", ""))
        equal(box.execute(["cat"], input="").stdout, "")
        equal(box.execute(["od", "-An", "-tx1"], input=b"\xff\0\r\n").stdout, " ff 00 0d 0a\n")
        equal(box.execute(["sh", "-c", "kill -TERM $$"]).exit_code, 143)
        name = box.execute(["readlink", "/proc/self/fd/0"], input="x").stdout.strip()
        equal((name.startswith("/tmp/handrail-input-"), os.path.exists(name)), (True, False), "nothing is left")
        equal(box.execute(["stat", "-Lc", "%a", "/proc/self/fd/0"], input="x").stdout, "600\n", "and nobody reads it")
        raises(TimeoutError, "exceeded", box.execute, ["sleep", "600"], timeout=0.5)
        raises(PermissionError, "/etc/passwd", box.execute, ["/etc/passwd"])
        raises(FileNotFoundError, "no-such-program", box.execute, ["no-such-program"])
        raises(FileNotFoundError, "/nowhere", box.execute, ["true"], cwd="/nowhere")
        done = {}
        threads = [threading.Thread(target=lambda i=i: done.update({i: box.execute(["echo", str(i)]).stdout}))
                   for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        equal(done, {i: "%d\n" % i for i in range(4)})


def files():
    with User() as h, Sandbox.up("local") as box:
        data = bytes(range(256)) * 5000
        for name in ("a/b/\u00fc \"&+.bin", "not-unpacked.zip", "/tmp/../" + h.path("absolute")):
            box.write(name, data)
            equal(box.read(name) == data, True, name)
        box.write("text", "one\r\ntwo")
        equal(box.read("text"), b"one\r\ntwo")
        equal((box.read("text", 3), box.read("text", 7), box.read("text", 8)), (b"one\r", b"one\r\ntwo", b"one\r\ntwo"))
        box.write("text", b"")
        equal((box.read("text"), box.read("text", 10)), (b"", b""))
        raises(FileNotFoundError, "none", box.read, "none")
        raises(IsADirectoryError, "directory", box.read, "a")
        raises(IsADirectoryError, "directory", box.write, "a", "x")
        raises(FileExistsError, "text", box.write, "text/x", "x")
        os.makedirs(h.path("tree", "sub"))
        with open(h.path("tree", "sub", "f"), "wb") as f:
            f.write(data)
        box.execute(["mkdir", "up"])
        box.put(h.path("tree"), "up")
        equal(box.read("up/tree/sub/f") == data, True)
        os.mkdir(h.path("down"))
        box.get("up/tree", h.path("down"))
        with open(h.path("down", "tree", "sub", "f"), "rb") as f:
            equal(f.read() == data, True)


def variables():
    """What is in one is no argument of the command, since all users see those."""
    with User() as h:
        words, program = h.path("tmp", "words"), h.path("cwd", "handrail")
        with open(program, "w") as f:
            f.write('#!/bin/sh\nprintf "%%s\\n" "$@" >>%s\nexec %s "$@"\n' % (words, os.environ["HANDRAIL"]))
        os.chmod(program, 0o755)
        with Sandbox.up("local", env={"SECRET": "to be= kept", "N": 1}, program=program) as box:
            equal(box.run('echo "$SECRET" $N').output, "to be= kept 1")
        with open(words) as f:
            said = f.read()
        equal(("up" in said.split("\n"), "kept" in said), (True, False), said)


def sandboxes():
    """It is found by its name, the key is in no argument, and what cannot be is said."""
    with User() as h:
        box = Sandbox.up("local", "one")
        same = Sandbox.attach("one")
        equal((same.url, same.key, len(box.key) >= 32), (box.url, box.key, True))
        equal([pid for pid in process.all_pids() if box.key in process.command_line(pid)], [])
        raises(HandrailError, "Invalid API Key", Sandbox(box.url, "wrong").run, "true")
        raises(HandrailError, "Not authenticated", Sandbox(box.url, "wrong").execute, ["true"])
        box.down()
        raises(HandrailError, "one", Sandbox.attach, "one")
        Sandbox.up(name="two").down()  # of the kind that the settings name, which is local
        if os.path.exists(h.path("home", ".bashrc")):
            with open(h.path("home", ".bashrc")) as f:
                equal("SWEREX" in f.read(), False, "the user's own file")
        h.ok("up", "-q", "-n", "closed", "-p", "none")
        raises(HandrailError, "HANDRAIL_SWEREX=true", Sandbox.attach, "closed")
        raises(HandrailError, "there is no command", Sandbox.up, program=h.path("handrail"))
        raises(HandrailError, "no-such-kind", Sandbox.up, "no-such-kind")
        h.ok("down", "-q", "closed")
        with mock.patch.object(Sandbox, "execute", side_effect=HandrailError("no answer")):
            raises(HandrailError, "no answer", Sandbox.up, "local")
            equal(h.ok("ps", "--json").strip(), "[]", "nobody knows its name: it is ended")
            raises(HandrailError, "no answer", Sandbox.up, "local", "three")
        Sandbox.attach("three").down()


if __name__ == "__main__":
    sys.exit(run_tests([commands, files, variables, sandboxes]))
