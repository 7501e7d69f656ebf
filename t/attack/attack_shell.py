#!/usr/bin/env python3
"""The attacks of attack_box.py by the commands of a sandbox of the back-end box: "handrail up -r box" and its shell. As
root from the shell of root's box, which is root there, and from that of "openhands"; from another account's box."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]
import attack_box  # noqa: E402
from attack_box import attacks  # noqa: E402
from lib import box, process  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from lib.host import BUILD  # noqa: E402
from lib.hostbox import Boxes as Sandboxes  # noqa: E402


class Shells(Sandboxes):
    """What the cases expect of lib.box.Boxes, by a sandbox and its shell."""

    REFUSED = 1
    room, processes = 256 << 20, 60  # of the server and its shell

    def __init__(self, uid, root):
        Sandboxes.__init__(self, uid)
        if not root:
            self.env["RUN_AS_OPENHANDS"] = "true"
        elif uid == 0:
            self.env["RUN_AS_OPENHANDS"] = "false"

    @property
    def storage(self):
        return self.path("state", "default.own")

    def directory(self, *names):
        path = Sandboxes.directory(self, *names)
        os.chmod(path, 0o777)
        return path

    def document(self, script, **more):
        return dict(more, script=script)

    def up(self, d):
        words = []
        for variable in d.get("env", []):
            if variable != box.PATH:
                words += ["-e", variable]
        volumes = ["%s:%s:%s" % (m["source"], m["target"], "ro" if m.get("read_only") else "rw") for m in
                   d.get("mounts", [])]
        words += ["-s", "sandbox.volumes=" + ",".join(volumes)] if volumes else []
        for name, value in d.get("limits", {}).items():
            words += ["-s", "sandbox.limits.%s=%s" % ({"memory_bytes": "mem_limit", "processes": "pids"}[name], value)]
        return self("up", *words)

    def run(self, d):
        """(status, output, errors) of the sandbox's command, or of "up"."""
        self("down", "-q")
        done = self.up(d)
        if done.returncode == 0:
            done = self("run", "cd %s; (%s)" % (d.get("directory", "/"), d["script"]))
        return done.returncode, done.stdout, done.stderr

    def start(self, d, **popen):
        """For the case about the terminal: the shell has one of the box's own."""
        equal(self.up(d).returncode, 0)
        words = [os.path.join(BUILD, "handrail"), "run", d["script"].replace("<&2", "").replace("exec ", "")]
        return subprocess.Popen(words, env=self.env, cwd=self.path("cwd"), stdout=subprocess.PIPE, text=True,
                                **self.change, **popen)

    def lines(self, script, **more):
        status, out, err = self.run(self.document(script, **more))
        equal(status, 0, out + err)
        return out.splitlines()


def server(b):
    """The server's key and memory; and its log, into which a command writes by every descriptor that it can open."""
    attacks(b, r"""
attack('memory', lambda: os.close(os.open('/proc/1/mem', os.O_RDONLY)))
attack('log', lambda: os.close(os.open('/proc/1/fd/2', os.O_WRONLY)))
for pid in filter(str.isdigit, os.listdir('/proc')):
    for fd in ('1', '2'):
        try:
            path = '/proc/%s/fd/%s' % (pid, fd)
            if os.readlink(path)[:8] == '/dev/pts': continue
            os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b'\n\x1b]0;FORGED\x07\nFORGED\n')
        except OSError: pass
""", 2)
    key = b.box()["key"]
    equal(key in b.ok("run", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"), False)
    b.ok("run", "curl -s -m 5 --unix-socket /run/handrail/edge/http.sock "
         "$'http://localhost/\\x1b]0;FORGED\\x07%0aFORGED'; true")
    text = b.ok("logs")
    equal(("\x1b" in text, [line for line in text.splitlines() if line.startswith("FORGED")]), (False, []))


def main():
    box.need_launcher()
    process.become_subreaper()
    tap = Tap()
    kinds = [(0, True, "root's shell"), (0, False, "openhands in root's box"), (box.UID, True, "another account")]
    for uid, root, what in kinds if os.geteuid() == 0 else [(os.geteuid(), True, "the user")]:
        with box.Boxes(uid) as boxes:
            why = box.refused(boxes)
        for case in attack_box.CASES + [server]:
            if case is attack_box.resources and not root:
                continue  # "openhands" can write in no file system that the case fills
            name = "%s, %s" % (case.__name__, what)
            if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
                continue
            if why:
                tap.skip(name, why)
                continue
            with Shells(uid, root) as b:
                tap.run(name, case, b)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
