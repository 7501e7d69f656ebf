#!/usr/bin/env python3
"""./quickstart where everything is built: the port, what it starts, and what it prints at the end."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lib.tap import Tap, equal  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "quickstart")
DEFAULT = 3000
HANDRAIL = """#!/bin/sh
echo "$*" >>%(top)s/calls
case $1 in
up) for word; do case $word in local.port=*) echo "${word#*=}" >%(top)s/port ;; esac; done ;;
url)
    port=$(cat %(top)s/port) || exit 1
    printf '{"server":"http://127.0.0.1:%%s","key":"k3y","vscode":null}\\n' "$port"
    ;;
run) echo Hello ;;
rm) rm %(top)s/port ;;
esac
"""


class Checkout:
    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="unit-quickstart-")
        os.chmod(self.top, 0o755)
        for name in ("src", "t", "conf", "man", "bin", "build/root/bin"):
            os.makedirs(os.path.join(self.top, name))
        shutil.copy(SCRIPT, self.top)
        for name in ("configure.ac", "Makefile.am", "configure", "build/Makefile"):
            self.put(name, "")
        self.put("build/options", "--prefix=%s/build/root \n" % self.top)
        self.put("bin/make", "#!/bin/sh\n")
        self.put("bin/dpkg", "#!/bin/sh\nexit 1\n")  # of versions: none is too old
        self.put("bin/dpkg-query", "#!/bin/sh\nprintf 'ii '\n")
        self.put("build/root/bin/handrail", HANDRAIL % {"top": self.top})

    def put(self, name, text):
        with open(os.path.join(self.top, name), "w") as f:
            f.write(text)
        os.chmod(f.name, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        shutil.rmtree(self.top)

    def __call__(self, *words, **env):
        """Its status, its lines and what handrail was called with."""
        self.put("calls", "")
        done = subprocess.run(["./quickstart", *words], cwd=self.top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, env=dict(
                                  {k: v for k, v in os.environ.items() if k != "HANDRAIL_PORT"},
                                  PATH=os.path.join(self.top, "bin") + ":" + os.environ["PATH"], **env))
        with open(os.path.join(self.top, "calls")) as f:
            return done.returncode, done.stdout.splitlines(), [c for c in f.read().splitlines() if c[:3] != "url"]


@contextlib.contextmanager
def taken(port=0):
    """A port that somebody has: the test, or whoever had it before."""
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
            port = s.getsockname()[1]
        except OSError:
            pass
        yield port


def next_words(c, port):
    return ["  http://127.0.0.1:%d/handrail/  # its key: handrail url -n quickstart --json" % port,
            "  export PATH=%s/build/root/bin:$PATH" % c.top,
            "  handrail run -n quickstart 'echo \"Hello from $(whoami) in $PWD\"'",
            "  handrail ps                  # doc/tutorial.md goes on from here",
            '  ./quickstart stop            # ends it, as "handrail rm quickstart" does']


def started():
    with Checkout() as c:
        with taken() as port:
            pass
        status, lines, calls = c(HANDRAIL_PORT=str(port))
        equal((status, lines[-5:]), (0, next_words(c, port)), lines)
        equal([line for line in lines if "{" in line or "k3y" in line], [], "neither JSON nor a key")
        equal(calls[0], "up -r local -n quickstart -s local.port=%d" % port, "as a person would type it")
        status, lines, calls = c(HANDRAIL_PORT=str(port))
        equal((status, lines[-5:], "It is running already." in lines), (0, next_words(c, port), True), lines)
        equal([w for w in calls if w.startswith("up")], [], "once")
        equal((c("status")[0], c("status")[1][-5:]), (0, next_words(c, port)), "status")
        equal(c("stop"), (0, ["The sandbox has ended."], ["rm -q quickstart"]))
        equal(c("stop")[:2], (0, ["The sandbox was not running."]))
        equal(c("status")[:2], (1, ["No sandbox is running."]))


def port_that_is_taken():
    with Checkout() as c:
        with taken() as port:
            status, lines, calls = c(HANDRAIL_PORT=str(port))
            said = "quickstart: the port of HANDRAIL_PORT is taken: port %d: Address already in use" % port
            equal((status, lines[-1], calls), (1, said, []), lines)
        with taken(DEFAULT):
            status, lines, calls = c()
        with open(os.path.join(c.top, "port")) as f:
            port = int(f.read())
        note = "Port %d was taken, so this is port %d. HANDRAIL_PORT chooses another." % (DEFAULT, port)
        equal((status, port == DEFAULT, lines.count(note), note in lines[-8:], lines[-5:]),
              (0, False, 2, True, next_words(c, port)), lines)


def main():
    tap = Tap()
    for test in (started, port_that_is_taken):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
