#!/usr/bin/env python3
"""t/again: which failed cases are flaky, which are red, and that only they are run again."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lib.tap import Skip, Tap, equal  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
AGAIN = os.path.join(TOP, "t", "again")
CI = os.path.join(TOP, ".ci", "run")
# A `make` whose test file t/x.py has the cases a, b, c; a word such as a2 is a case that fails so many times more, and
# SKIP-a, XFAIL-a are other results, SKIPALL and HANGS are those of the file; with STATUS2 make fails in the first two
# runs.
MAKE = """#!/bin/sh
for word; do case $word in TESTS=*) file=${word#TESTS=} ;; esac; done
echo "run $file [$(printf %%s "$HANDRAIL_TEST_ONLY" | tr '\\n' ' ')]" >>%(top)s/runs
n=$(grep -c "run $file " %(top)s/runs)
bad=0 end=0
for case in %(cases)s; do
    name=${case%%[0-9]} times=${case#?}
    case $case in
    SKIPALL) echo "SKIP: $file - nothing here"; continue ;;
    SKIP-*) echo "SKIP: $file 1 - ${case#SKIP-} # SKIP why"; continue ;;
    XFAIL-*) echo "XFAIL: $file 1 - ${case#XFAIL-}"; continue ;;
    HANGS) echo "ERROR: $file - Bail out! ended after 600 s"; bad=1; continue ;;
    STATUS*) [ "$n" -gt "${case#STATUS}" ] || end=2; continue ;;
    esac
    if [ "$n" -le "$times" ]; then echo "FAIL: $file 1 - $name"; bad=1; else echo "PASS: $file 1 - $name"; fi
done
[ $bad -eq 0 ] || echo "ERROR: $file - exited with status 1"
[ $bad -eq 0 ] || end=2
exit $end
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


def hangs():
    """A file that t/limit ended is run again as a whole; the second hang is the last one."""
    hung = "ERROR: t/x.py - Bail out! ended after 600 s\n"
    out, status, runs = again("a0", hung)
    equal((out.startswith("FLAKY: t/x.py: Bail out! ended after 600 s, "), status, runs),
          (True, 0, "run t/x.py []\n"), out)
    out, status, runs = again("HANGS", hung)
    equal((out.splitlines(), status, runs),
          (["FAILED EACH TIME: t/x.py: Bail out! ended after 600 s", "0 flaky, 1 failed"], 1, "run t/x.py []\n"), out)


def red(cases, log, what, text=""):
    out, status, _ = again(cases, log)
    equal((out.splitlines()[-1], status), (what, 1), out)
    equal(text in out, True, out)


def skipped_is_not_passed():
    """A file that broke off and has nothing but skips now has passed nothing; nor has a case that is skipped."""
    broken = "ERROR: t/x.py - missing test plan\nERROR: t/x.py - exited with status 1\n"
    red("SKIPALL", broken, "0 flaky, 1 failed", "FAILED EACH TIME: t/x.py: missing test plan")
    red("SKIP-a SKIP-b", broken, "0 flaky, 1 failed")
    red("XFAIL-a", broken, "0 flaky, 1 failed")
    red("SKIP-a b0", log_of("a"), "0 flaky, 1 failed")
    red("SKIP-a b0", "FAIL: t/x.py 1 - a\n" + broken, "1 flaky, 1 failed", "FAILED EACH TIME: t/x.py: a")
    red("b0", "FAIL: t/x.py 1 - a\n" + broken, "1 flaky, 1 failed", "FAILED EACH TIME: t/x.py: a")
    equal(again("SKIP-a b0", broken)[1], 0, "one skip beside what passes")
    equal(again("XFAIL-a", log_of("a"))[1], 0, "a case that is expected to fail")
    equal(again("b0", "SKIP: t/x.py 1 - a # SKIP why\n" + log_of("b"))[2], "run t/x.py [b]\n", "a skip is not repeated")


def status_counts():
    """The repetition with which the last case passes ends well, too."""
    red("a0 STATUS9", log_of("a"), "0 flaky, 1 failed", "make ended with status 2 although the cases passed")
    out, status, runs = again("a0 STATUS1", log_of("a"))
    equal((out.splitlines()[-1], status, runs.count("run")), ("1 flaky, 0 failed", 0, 2), out)
    out, status, runs = again("a0 b1", log_of("a").replace("status 1", "status 139"))
    equal((out.splitlines()[-1], status, runs), ("2 flaky, 0 failed", 0, "run t/x.py []\n" * 2), out)


SUMMARY = ("Testsuite summary for handrail 1\n# TOTAL: 9\n# PASS:  3\n# SKIP:  0\n# XFAIL: 0\n# FAIL:  %d\n"
           "# XPASS: %d\n# ERROR: 1\n"
           "make[3]: *** [Makefile:1: test-suite.log] Error 1\nmake[3]: Leaving directory '/b'\n"
           "make[2]: *** [Makefile:2: check-TESTS] Error 2\nmake[1]: *** [Makefile:3: check-am] Error 2\n"
           "make: *** [Makefile:4: check] Error 2\n")


def every_result_is_named():
    """What automake counts and no line names is red; the log of failed tests repeats both lines and numbers."""
    own = "# FAIL:  7\n# ERROR: 1\n\n"
    log = log_of("a", "b") + own + log_of("a", "b")
    equal(again("a0 b0", log + SUMMARY % (2, 0))[1], 0, "all of them")
    red("a0 b0", log + SUMMARY % (3, 1), "2 flaky, 2 failed", "counts 2 bad results that no line of TOP/log names")
    red("a0 b0", log_of("a") + "FAPASS: t/y 1 - c\nIL: t/x.py 4 - b\n" + SUMMARY % (2, 0), "1 flaky, 1 failed")
    red("a0 b0", SUMMARY % (0, 0), "0 flaky, 1 failed")
    for target in ("check-all", "check-long"):
        equal(again("a0", log_of("a") + SUMMARY % (1, 0)
                    + "make: *** [Makefile:9: %s] Error 2\n" % target)[1], 0, target)
    # the same case of two numbers
    equal(again("a0", log_of("a") + "FAIL: t/x.py 4 - a\n" + SUMMARY % (2, 0))[1], 0, "a name twice")


def errors_of_make():
    """A target that failed beside the tests is red, although what is run again passes."""
    for line in ("make[1]: *** [Makefile:9: src/x.o] Error 1", "make: *** [Makefile:9: check-local] Error 2",
                 "make[3]: *** [Makefile:2: check-TESTS] Terminated", "make: *** No rule to make target 'y'.  Stop."):
        red("a0", line + "\n" + log_of("a") + SUMMARY % (1, 0), "1 flaky, 1 failed", "FAILED: no test: " + line)


def in_ci(log="", status=2, again_is=None, phase="distcheck", quickstart="exit 0", long_ones="",
          make_first=""):
    """The last line and the status of .ci/run in a tree whose make prints LOG, LONG_ONES for check-long, and whose
    repetitions pass."""
    if not os.path.exists(CI):
        raise Skip("a release has no .ci/run: run this test from a checkout")
    with tempfile.TemporaryDirectory() as top:
        for name in (".ci", "t", "build", "bin"):
            os.mkdir(os.path.join(top, name))
        shutil.copy(CI, os.path.join(top, ".ci", "run"))
        for name, text in (
                ("configure", ""), ("build/Makefile", ""), ("log", log), ("long", long_ones),
                ("quickstart", "case $1 in packages) exit 0 ;; esac; %s\n" % quickstart),
                ("t/again", again_is or 'exec %s %s "$@"' % (sys.executable, AGAIN)),
                ("bin/make", "%s\n" % make_first +
                             "case \" $* \" in *' check-long '*) cat long ;; esac\n"
                             "case \" $* \" in *' distcheck '*) ;; *) exit 0 ;; esac\n"
                             "echo 'archives ready for distribution'\n"
                             "case $* in *TESTS=t/x.py*) echo 'PASS: t/x.py 1 - a'; exit 0 ;; esac\n"
                             "cat log\nexit %d\n" % status)):
            with open(os.path.join(top, name), "w") as f:
                f.write("#!/bin/sh\n" * (name not in ("log", "long", "build/Makefile")) + text)
            os.chmod(os.path.join(top, name), 0o755)
        done = subprocess.run([os.path.join(top, ".ci", "run"), *phase.split()], universal_newlines=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, PATH=top + "/bin:" + os.environ["PATH"]))
        return done.stdout.splitlines()[-1], done.returncode, done.stdout


def ci_is_red():
    """.ci/run ends badly where t/again or a phase breaks off, or make fails beside the tests."""
    log = log_of("a") + SUMMARY % (1, 0)
    for want, more in (
            (("5 passed, 0 failed", 0), {"log": log}),
            (("4 passed, 2 failed", 1), {"log": log, "again_is": "kill -9 $$"}),
            (("4 passed, 2 failed", 1), {"log": log, "again_is": "exit 1"}),
            (("4 passed, 2 failed", 1), {"log": log, "again_is": "echo 0 flaky, 0 failed; exit 1"}),
            (("4 passed, 1 failed", 1), {"log": log_of("a") + SUMMARY % (2, 0)}),
            (("4 passed, 1 failed", 1), {"log": "make: *** [Makefile:9: src/x.o] Error 1\n" + log}),
            (("5 passed, 1 failed", 1), {"log": log, "status": 137}),
            (("9 passed, 0 failed", 0), {"phase": "quickstart", "quickstart": "echo 7 passed, 0 failed",
                                         "long_ones": "Testsuite summary for handrail 1\n# PASS:  2\n"}),
            (("7 passed, 1 failed", 1), {"phase": "quickstart", "quickstart": "echo 7 passed, 0 failed"}),
            (("7 passed, 1 failed", 1), {"phase": "quickstart", "quickstart": "echo 7 passed, 08 failed"})):
        last, status, out = in_ci(**more)
        equal((last, status), want, "%r\n%s" % (more, out))


def builds_ahead():
    """The build with sanitizers begins while make check-long runs, if that phase is wanted; its errors are those of
    its phase."""
    summary = "printf 'Testsuite summary for handrail 1\\n# PASS:  2\\n'; "
    make = ("case \" $* \" in\n*'/sanitizers '*' check TESTS= ') echo begun >>built; exit 2 ;;\n"
            "*'/sanitizers '*' check '*) " + summary + "exit %d ;;\n"
            "*' check-long '*) " + summary + "%s ;;\nesac")
    begun = "tail -n 1 -F --pid=$PPID built 2>&1 | grep -qx begun"
    for phases, status, while_long, want in (
            ("quickstart sanitizers", 0, begun, ("12 passed, 0 failed", 0)),
            ("quickstart sanitizers", 2, begun, ("12 passed, 1 failed", 1)),
            ("quickstart", 0, "exit 0", ("9 passed, 0 failed", 0))):
        last, status, out = in_ci(phase=phases, quickstart="echo 7 passed, 0 failed",
                                  make_first=make % (status, while_long))
        equal((last, status), want, out)


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
                 hangs, skipped_is_not_passed, status_counts, every_result_is_named, errors_of_make, ci_is_red,
                 builds_ahead, four_are_red, one_by_itself):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
