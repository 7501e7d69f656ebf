"""Boxes of a test: documents for handrail-box, which root's tests run as root and as another account."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from . import process
from .host import BUILD, PATIENCE
from .tap import Tap, equal, skip_all

UID = 54322  # of no account
PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"


class Boxes:
    """A directory for the boxes of one account."""

    REFUSED = 125  # status of a launcher that cannot do as it was told
    room, processes = 0, 0  # memory and processes of what a box has besides its program

    def __init__(self, uid):
        self.uid = uid
        self.top = tempfile.mkdtemp(prefix="e2e-box-")
        self.program = os.path.join(self.top, "handrail-box")
        shutil.copy(os.path.join(BUILD, "handrail-box"), self.program)
        os.chmod(self.top, 0o711)
        self.change = {} if uid == os.geteuid() else dict(user=uid, group=uid, extra_groups=[])
        self.storage = self.directory("storage")
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # the kernel's work directories have mode 0, and may have whiteouts in them
        subprocess.run(["chmod", "-R", "u+rwX", self.top], check=True)
        subprocess.run(["rm", "-rf", self.top], check=True)

    def directory(self, name):
        path = os.path.join(self.top, name)
        os.mkdir(path, 0o700)
        os.chown(path, self.uid, -1)
        return path

    def document(self, script, **more):
        self.count += 1
        d = {"name": "e2e-%d-%d" % (os.getpid(), self.count), "storage": self.storage,
             "argv": ["/bin/sh", "-c", script], "env": [PATH]}
        d.update(more)
        return d

    def start(self, document, *args, **popen):
        text = document if isinstance(document, str) else json.dumps(document)
        popen.setdefault("stderr", subprocess.PIPE)
        p = subprocess.Popen([self.program] + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             cwd="/", **self.change, **popen)
        try:
            p.stdin.write(text)
            p.stdin.close()
        except BrokenPipeError:
            pass  # a wrong command is refused before that
        p.stdin = None
        return p

    def run(self, document, *args):
        """(status, output, errors)"""
        p = self.start(document, *args)
        out, err = p.communicate(timeout=PATIENCE)
        return p.returncode, out, err

    def lines(self, script, **more):
        status, out, err = self.run(self.document(script, **more))
        equal((status, err), (0, ""), out)
        return out.splitlines()


def groups(name):
    found = []
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(top) == "handrail":
            found += [os.path.join(top, n) for n in names if n == name]
            names[:] = []
    return found


def allowed(b):
    """Whether the kernel allows that account all that a box needs: one that fails then is a fault, and no reason to
    skip."""
    return subprocess.run(["unshare", "-mpfinu", "--mount-proc"] + (["-r"] if b.uid else []) + ["true"],
                          stderr=subprocess.DEVNULL, cwd="/", **b.change).returncode == 0


def refused(b):
    """Why no box can be made here; None: one can."""
    status, _, err = b.run(b.document("true"))
    return "no box can be made here: " + err.strip() if status == 125 and not allowed(b) else None


def need_launcher():
    if not os.access(os.path.join(BUILD, "handrail-box"), os.X_OK):
        skip_all("handrail-box is not built: apt-get install libseccomp-dev, and configure again")


def run_each(cases, other, why_none, made, left_out, then=lambda tap: None):
    """Runs the cases as each account: root's tests are root and the account `other`. `made` gives the argument of a
    case for an account, `left_out` says whether a case is not for it; `then` runs more tests."""
    need_launcher()
    tap = Tap()
    for uid in (0, other) if os.geteuid() == 0 else (os.geteuid(),):
        why = why_none(uid)
        for case in cases:
            if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:] or left_out(case, uid):
                continue
            name = "%s, %s" % (case.__name__, "root" if uid == 0 else "another account")
            if why:
                tap.skip(name, why)
                continue
            with made(uid) as b:
                tap.run(name, case, b)
    then(tap)
    return tap.done()


def main(cases, once=()):
    """Runs each case for each account; `once` are (case, whether root runs it)."""
    def why_none(uid):
        with Boxes(uid) as b:
            return refused(b)

    process.become_subreaper()
    return run_each(cases, UID, why_none, Boxes, lambda case, uid: os.geteuid() == 0 and (case, uid != 0) in once)
