#!/usr/bin/env python3
"""t/again: which failed cases are flaky, which are red, and that only they are run again."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lib.tap import Tap, equal  # noqa: E402

AGAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "again")
# A `make` whose test file t/x.py has the cases a, b, c; a word such as a2 is a case that fails so many times more.
MAKE = """#!/bin/sh
for word; do case $word in TESTS=*) file=${word#TESTS=} ;; esac; done
echo "run $file [$(printf %%s "$HANDRAIL_TEST_ONLY" | tr '\\n' ' ')]" >>%(top)s/runs
n=$(grep -c "run $file " %(top)s/runs)
bad=0
for case in %(cases)s; do
    name=${case%%[0-9]} times=${case#?}
    if [ "$n" -le "$times" ]; then echo "FAIL: $file 1 - $name"; bad=1; else echo "PASS: $file 1 - $name"; fi
done
[ $bad -eq 0 ] || echo "ERROR: $file - exited with status 1"
exit $bad
"""


def again(cases, log, files=("t/x.py",)):
    """What it prints, its status, and the runs that it made."""
    with tempfile.TemporaryDirectory() as top:
        make = os.path.join(top, "make")
        with open(make, "w") as f:
            f.write(MAKE % {"top": top, "cases": cases})
        os.chmod(make, 0o755)
        open(os.path.join(top, "runs"), "w").close()
        os.makedirs(os.path.join(top, "t"))
        for name in files:
            with open(os.path.join(top, name.replace(".py", ".log")), "w") as f:
                f.write("# seed 4711\nnot ok 1 - a\n")
        with open(os.path.join(top, "log"), "w") as f:
            f.write(log)
        done = subprocess.run([sys.executable, AGAIN, os.path.join(top, "log"), make, "-C", top, "check"],
                              stdout=subprocess.PIPE, universal_newlines=True)
        with open(os.path.join(top, "runs")) as f:
            return done.stdout.replace(top, "TOP"), done.returncode, f.read()


def log_of(*cases, name="t/x.py"):
    return "".join("FAIL: %s 3 - %s\n" % (name, c) for c in cases) + "ERROR: %s - exited with status 1\n" % name


def passes_then():
    out, status, runs = again("a0 b0", "PASS: t/x.py 2 - b\n" + log_of("a"))
    equal((out, status), ("FLAKY: t/x.py: a, seed 4711, TOP/log.t-x.py\n1 flaky, 0 failed\n", 0))
    equal(runs, "run t/x.py [a]\n", "once, and only what failed")


def passes_at_last():
    out, status, runs = again("a1 b0", log_of("a", "b"))
    equal(([l.split(",")[0] for l in out.splitlines()], status),
          (["FLAKY: t/x.py: b", "FLAKY: t/x.py: a", "2 flaky"], 0), out)
    equal(runs.splitlines()[1], "run t/x.py [a]")


def fails_each_time():
    out, status, runs = again("a9 b0", log_of("a", "b"))
    equal((out.splitlines()[-2:], status), (["FAILED EACH TIME: t/x.py: a", "1 flaky, 1 failed"], 1), out)
    equal(runs.count("run"), 2, "up to two times")


def no_result_is_no_pass():
    """A case that the repetition does not even reach is red."""
    out, status, _ = again("b0", log_of("a"))
    equal((out, status), ("FAILED EACH TIME: t/x.py: a\n0 flaky, 1 failed\n", 1))


def cases_of_check():
    """Their names have the assertion that failed behind them."""
    name = "../t/unit/test_x.c:core:works: "
    log = "FAIL: t/x.py 3 - %sAssertion 'a' failed\n" % name
    with tempfile.TemporaryDirectory() as top:
        make = os.path.join(top, "make")
        with open(make, "w") as f:
            f.write("#!/bin/sh\necho 'PASS: t/x.py 3 - %sPassed'\n" % name)
        os.chmod(make, 0o755)
        with open(os.path.join(top, "log"), "w") as f:
            f.write(log)
        done = subprocess.run([sys.executable, AGAIN, os.path.join(top, "log"), make], stdout=subprocess.PIPE,
                              universal_newlines=True)
    equal((done.stdout.startswith("FLAKY: t/x.py: ../t/unit/test_x.c:core:works, "), done.returncode), (True, 0),
          done.stdout)


def breaks_off():
    """A file that came to no end is run again as a whole."""
    out, status, runs = again("a0", "ERROR: t/x.py - missing test plan\nERROR: t/x.py - exited with status 1\n")
    equal((out.startswith("FLAKY: t/x.py: missing test plan, "), status, runs), (True, 0, "run t/x.py []\n"), out)
    out, status, runs = again("a0", "ERROR: t/x.py - exited with status 139\n")
    equal((out.startswith("FLAKY: t/x.py: exited with status 139, "), status), (True, 0), out)


def four_are_red():
    files = ["t/%s.py" % c for c in "wxyz"]
    for n, want in ((3, ("3 flaky, 0 failed", 0)), (4, ("4 flaky, 4 failed", 1))):
        out, status, _ = again("a0", "".join(log_of("a", name=f) for f in files[:n]), files)
        equal((out.splitlines()[-1], status), want, out)


def one_by_itself():
    """A test file in Python runs the named cases alone."""
    script = ("import sys; sys.path.insert(0, %r)\nfrom lib.tap import Tap\nt = Tap()\n"
              "for n in 'abc': t.run(n, lambda: None)\nsys.exit(t.done())\n" %
              os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
    for only, want in (("a\nc", ["ok 1 - a", "ok 2 - c"]), ("", ["ok 1 - a", "ok 2 - b", "ok 3 - c"])):
        out = subprocess.run([sys.executable, "-c", script], env=dict(os.environ, HANDRAIL_TEST_ONLY=only),
                             stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
        equal([l for l in out.splitlines() if l.startswith("ok")], want)


def main():
    tap = Tap()
    for test in (passes_then, passes_at_last, fails_each_time, no_result_is_no_pass, cases_of_check, breaks_off,
                 four_are_red, one_by_itself):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
