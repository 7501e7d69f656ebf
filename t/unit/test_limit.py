#!/usr/bin/env python3
"""t/limit: the output and status of a test, and the end of a test that hangs."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lib.process import wait_gone  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIMIT = [sys.executable, os.path.join(TOP, "t", "limit")]
LATE = "\nBail out! ended after 60 s\n"
IT_IS_LATE = "kill -ALRM $PPID; sleep 1000"  # as if the time were over, and a hang


def limited(script, program=("sh", "-c")):
    done = subprocess.run(LIMIT + ["60", "--", *program, script], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, universal_newlines=True)
    return done.returncode, done.stdout, done.stderr


def in_time():
    """The test has its output, errors and status as without a limit."""
    equal(limited("echo ok 1; echo why >&2; exit 3"), (3, "ok 1\n", "why\n"))
    equal(limited("kill -9 $$")[0], 128 + 9, "the status that a shell reports for a signal")
    equal(limited("echo $(seq 100000)")[1], " ".join(map(str, range(1, 100001))) + "\n", "a long output")
    inherited, end = os.pipe()
    os.set_inheritable(end, True)
    done = subprocess.run(LIMIT + ["60", "sh", "-c", "echo there >&%d" % end], close_fds=False)
    os.close(end)
    with os.fdopen(inherited) as f:
        equal((done.returncode, f.read()), (0, "there\n"), "make's own descriptors")


def ended(out, number):
    """Whether the test is reported, with all of its processes, whose numbers it has printed and which are gone."""
    pids = [int(line) for line in out.splitlines() if line.isdigit()]
    equal((len(pids), LATE in out), (number, True), out)
    for pid in pids:
        equal(("# process %d: " % pid in out, wait_gone(pid, 10)), (True, True), out)


def hangs():
    """A test that hangs is ended with its children, those of other sessions and those that ignore signals, too."""
    status, out, _ = limited("trap '' TERM ABRT; echo $$\nsleep 1000 & echo $!\nsetsid sleep 1000 & echo $!\n" +
                             IT_IS_LATE)
    equal(status, 99, out)
    ended(out, 3)


def closed_its_output():
    status, out, _ = limited("exec >&-; " + IT_IS_LATE)
    equal((status, LATE in out), (99, True), out)


def leftover():
    """A process that holds the output of a test that has ended."""
    status, out, _ = limited("import os, signal\nlimit, (gone, end) = os.getppid(), os.pipe()\n"
                             "if os.fork() == 0:\n os.close(end)\n os.read(gone, 1)\n"
                             " os.write(1, b'%d\\n' % os.getpid())\n"
                             " os.kill(limit, signal.SIGALRM)\n while True: signal.pause()", (sys.executable, "-c"))
    equal(status, 99, out)
    ended(out, 1)


def where_it_hangs():
    """A test in Python prints its stack."""
    err = limited("import sys; sys.path.insert(0, %r)\nimport lib.tap, os, signal\n"
                  "def waits_here():\n os.kill(os.getppid(), signal.SIGALRM)\n while True: signal.pause()\n"
                  "waits_here()" %
                  os.path.join(TOP, "t", "e2e"), (sys.executable, "-c"))[2]
    equal("waits_here" in err, True, err)


def result_of_automake():
    """automake names the file and counts one error."""
    with tempfile.TemporaryDirectory() as top:
        driver = ["sh", os.path.join(TOP, "build-aux", "tap-driver.sh"), "--test-name", "t/x.py", "--log-file",
                  top + "/log", "--trs-file", top + "/trs", "--color-tests", "no", "--"]
        out = subprocess.run(driver + LIMIT + ["1", "--", "sh", "-c", "sleep 1000"],
                             stdout=subprocess.PIPE, universal_newlines=True, check=True,
                             env=dict(os.environ, AM_TAP_AWK=os.environ.get("AWK", "awk"))).stdout
        equal(out, "ERROR: t/x.py - Bail out! ended after 1 s\n")


def main():
    tap = Tap()
    for test in (in_time, hangs, closed_its_output, leftover, where_it_hangs, result_of_automake):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
