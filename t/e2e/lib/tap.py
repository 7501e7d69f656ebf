"""Test results as TAP (https://testanything.org), for automake's driver and for people."""

import faulthandler
import os
import signal
import sys
import traceback

# A shell that runs the tests in the background has SIGINT ignored, and what the tests start would have it, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# t/limit sends SIGABRT to a test that hangs: the log then shows where.
faulthandler.enable()
# Files that tests make have the modes of the recordings: a login of an ordinary user of Debian 13 has umask 002.
os.umask(0o022)


class Skip(Exception):
    """Raised by a test that cannot run here: what is missing and how to get it."""


class Tap:
    """Numbers results as they come; the plan is printed last, so a test that dies is noticed."""

    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.count = self.failed = self.skipped = 0
        self.only = os.environ.get("HANDRAIL_TEST_ONLY", "").split("\n")  # of t/again; "": all

    def _line(self, text):
        # one line each, whatever a name holds
        self.out.write(text.replace("\n", "\\n") + "\n")
        self.out.flush()

    def diag(self, text):
        for line in str(text).splitlines():
            self._line("# " + line)

    def ok(self, good, name, detail=None):
        self.count += 1
        if not good:
            self.failed += 1
        self._line("%sok %d - %s" % ("" if good else "not ", self.count, name))
        if not good and detail:
            self.diag(detail() if callable(detail) else detail)
        return bool(good)

    def is_(self, got, want, name):
        return self.ok(got == want, name, lambda: "got:  %r\nwant: %r" % (got, want))

    def skip(self, name, why):
        self.count += 1
        self.skipped += 1
        self._line("ok %d - %s # SKIP %s" % (self.count, name, why))

    def run(self, name, function, *args):
        """One test that raises where it fails. Returns whether it passed."""
        if self.only != [""] and name not in self.only:
            return True
        try:
            function(*args)
        except Skip as why:
            self.skip(name, why)
            return True
        except AssertionError as wrong:
            return self.ok(False, name, str(wrong) or traceback.format_exc())
        except Exception:
            return self.ok(False, name, traceback.format_exc())
        return self.ok(True, name)

    def done(self):
        """Prints the plan and the sums; the exit status of the program."""
        self._line("1..%d" % self.count)
        self._line("# %d skipped" % self.skipped)
        self._line("%d passed, %d failed" % (
            self.count - self.failed - self.skipped, self.failed))
        return 1 if self.failed or self.count == 0 else 0


def skip_all(why):
    """A whole file that cannot run here."""
    print("1..0 # SKIP %s" % why)
    sys.exit(0)


def equal(got, want, what="value"):
    if got != want:
        raise AssertionError("%s\n  got:  %s\n  want: %s" % (what, short(got), short(want)))


def short(value, limit=1500):
    text = repr(value)
    return text if len(text) <= limit else "%s... (%d characters)" % (text[:limit], len(text))


def verbose():
    return os.environ.get("E2E_VERBOSE", "") not in ("", "0")
