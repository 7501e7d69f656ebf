#!/usr/bin/env python3
"""A report of a prompt is the shell's word: whoever runs in the shell can forge one. The keeper is root here and
the shell nobody's; nothing may be done for a report that nobody could not do himself."""

import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process, shells  # noqa: E402
from lib.keeper import Keeper  # noqa: E402
from lib.supervised import BUILDDIR, need_entrance, need_root, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

# as any command finds the FIFO; the report is told apart from the shell's own by its exit code
FORGE = r'''
import os, re, sys, time
nonce, pid, euid, pwd, path = sys.argv[1:6]
script = re.search(r"'([^']*hook\.[^']*)'", os.environ["PROMPT_COMMAND"]).group(1)
fifo = re.search(r"'([^']*report\.[^']*)'", open(script).read()).group(1)
fields = ["hr1", nonce, pid, "77", "", euid, pwd, path, "", "himBHs", "emacs"]
with open(fifo, "wb") as f:
    f.write(b"".join(x.encode() + b"\0" for x in fields))
time.sleep(0.3)
'''


class Forged:
    """A keeper of nobody's shell, a directory that only root may enter with a program in it, and a report."""

    def __init__(self, cwd=None, typed=False):
        need_root()
        need_entrance()  # to handrail-line.so, which the shell loads
        self.secret = tempfile.mkdtemp(prefix="e2e-secret-")
        with open(os.path.join(self.secret, "python"), "w") as f:
            f.write("#!/bin/sh\n")
        os.chmod(f.name, 0o755)
        os.mkdir(os.path.join(self.secret, "open"), 0o755)
        self.shell = Keeper(os.path.join(BUILDDIR, "handrail-session"), account="nobody", env=shells.environment(),
                            cwd=self.secret if cwd else None, typed=typed)
        with open(os.path.join(self.shell.base, "forge.py"), "w") as f:
            f.write(FORGE)
        os.chmod(f.name, 0o644)
        self.script = f.name

    def __enter__(self):
        return self

    def __exit__(self, *wrong):
        left = self.shell.stop()
        shutil.rmtree(self.secret)
        if wrong[0] is None:
            equal(left, [])

    def tell(self, euid="65534", pwd="/", path="/usr/bin", pid="$$", nonce="\"$__hr_n\""):
        """The observation that the forged report ends."""
        o = self.shell.run("python3 %s %s %s %s '%s' '%s'" % (self.script, nonce, pid, euid, pwd, path), timeout=10)
        equal((o.completed, o.exit_code), (True, 77), o)
        return o


def who():
    with Forged() as f:
        equal(f.tell(euid="0").username, "nobody")
        equal(f.tell(euid="1").username, "nobody", "another account")
        equal(f.tell(euid="4294967295").username, "nobody", "none at all")


def what_root_finds():
    with Forged(cwd=True) as f:
        keeper = f.shell.process.pid
        for path in (f.secret, f.secret + "/open/..", "/proc/self/cwd", "/proc/%d/cwd" % keeper,
                     "/proc/%d/root%s" % (keeper, f.secret), "/proc/%d/task/%d/cwd" % (keeper, keeper)):
            for euid in ("0", "1", "65534"):
                equal(f.tell(euid=euid, path=path).py_path, "", (path, euid))
        link = os.path.join(f.shell.work_dir, "link")
        f.shell.run("ln -s /proc/self/cwd %s; ln -s %s %s2" % (link, f.secret, link))
        for path in (link, link + "2", "link", "~/../work/link"):
            equal(f.tell(euid="0", pwd=f.shell.work_dir, path=path).py_path, "", path)


def where():
    """What acts by the shell's directory with root's rights is not sent where nobody may not go."""
    with Forged() as f:
        began = f.shell.status()["working_dir"]
        equal(began, f.shell.work_dir)
        for pwd in (f.secret, f.secret + "/open", f.secret + "/none", "/proc/%d/cwd" % f.shell.process.pid,
                    "/proc/1/root", "/root/none"):
            f.tell(euid="0", pwd=pwd)
            seen = f.shell.status()["working_dir"]
            equal((seen.startswith((f.secret, "/root", "/proc"))), False, (pwd, seen))
            # the shell says so as well where it did nothing but lie
            f.shell.run("cd /tmp; mkdir -p gone.$$; cd gone.$$; rmdir ../gone.$$")
            f.tell(euid="0", pwd=pwd)
            equal(f.shell.status()["working_dir"].startswith((f.secret, "/root", "/proc")), False, pwd)
        f.shell.run("cd /")
        equal(f.shell.status()["working_dir"], "/")
        f.shell.run("mkdir -p /tmp/e2e.$$/a; ln -s a /tmp/e2e.$$/b; cd /tmp/e2e.$$/b; echo /tmp/e2e.$$")
        o = f.shell.run("echo $PWD")
        equal((o.working_dir, f.shell.status()["working_dir"]), (o.content, o.content), "a symbolic link")
        f.shell.run("chmod 0 ..")
        equal(f.shell.status()["working_dir"], os.path.realpath(o.content), "it is there, however it came there")
        f.shell.run("chmod 755 /tmp/e2e.$$; cd; rm -r /tmp/e2e.$$")


def at_a_prompt():
    """While readline has the terminal the shell waits for no answer, and what is typed is for its next command."""
    with Forged(typed=True) as f:
        ended = os.path.join(f.shell.work_dir, "ended")
        os.mkfifo(ended)
        os.chmod(ended, 0o666)
        for _ in range(3):
            f.shell.run("(python3 %s \"$__hr_n\" $$ 0 / /usr/bin; echo $? >%s) &>/dev/null &" % (f.script, ended))
            with open(ended) as sent:
                equal(sent.read(), "0\n")
            o = f.shell.run("echo ran $((6 * 7))", timeout=10)
            equal((o.exit_code, "ran 42" in o.content, "200~" in o.content), (0, True, False), o)


def a_mount_of_its_own():
    """A directory that is elsewhere for everybody else."""
    with Forged() as f:
        f.shell.run("mkdir -p mine; exec unshare -Urm --propagation private bash --norc -i", timeout=3)
        o = f.shell.run("mount --bind mine /root && cd /root && echo in", timeout=3)
        if o.content != "in":
            raise Skip("needs namespaces for everybody: sysctl kernel.unprivileged_userns_clone=1, "
                       "user.max_user_namespaces=1000")
        equal(f.shell.status()["working_dir"].startswith("/root"), False)


if __name__ == "__main__":
    process.become_subreaper()
    run_tests([who, what_root_finds, where, at_a_prompt, a_mount_of_its_own])
